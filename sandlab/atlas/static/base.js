// What every page uses: elements, questions to the server, the address as state, letters and colours.
const token = document.querySelector('meta[name="sandlab-token"]').content;
const PALETTE = [
  "#2f7ea8",
  "#d1495b",
  "#4f9d69",
  "#e09f2d",
  "#8a6bbd",
  "#30a2c7",
  "#8a8d91",
  "#a0622d",
  "#b07aa1",
  "#5fa8a0",
];
export const main = document.getElementById("main");
const said = document.getElementById("said");
let leaving = new AbortController();

export function element(name, attributes = {}, ...inside) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key === "class") made.className = value;
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value != null) made.setAttribute(key, value);
  }
  made.append(...inside.flat(2).filter((part) => part != null && part !== false));
  return made;
}

export function unreached(problem) {
  throw problem.name === "AbortError"
    ? problem
    : new Error("The server does not answer: is sandlab serve still running?");
}
export async function ask(path, options = {}) {
  const headers = { "X-Sandlab-Token": token, ...(options.body ? { "Content-Type": "application/json" } : {}) };
  const answer = await fetch(path, { signal: leaving.signal, ...options, headers }).catch(unreached);
  const found = await answer.json().catch(() => ({ error: `the server answered ${answer.status}` }));
  if (!answer.ok) throw new Error(found.error ?? `the server answered ${answer.status}`);
  return found;
}
// A picture is fetched without headers: where the page itself needs the token, so does its address.
export const pictured = (path) =>
  new URLSearchParams(location.search).has("token") ? `${path}?token=${encodeURIComponent(token)}` : path;
// A question that a page is about to ask is on its way while the page itself loads.
const foreseen = new Map();
export function foresee(name) {
  const answer = ask(`/api/${name}?`);
  answer.catch(() => {}); // whoever asks is told
  foreseen.set(name, answer);
}
export function view(name, parameters = {}) {
  const known = Object.keys(parameters).length ? undefined : foreseen.get(name);
  foreseen.delete(name);
  return known ?? ask(`/api/${name}?${new URLSearchParams(parameters)}`);
}
export async function download(path, name) {
  const answer = await fetch(path, { headers: { "X-Sandlab-Token": token } }).catch(unreached);
  if (!answer.ok) throw new Error((await answer.json()).error);
  const link = element("a", { href: URL.createObjectURL(await answer.blob()), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

// A page has started a job: the header counts those that are not done, and asks about them as long as there are any.
export const started = () => window.dispatchEvent(new Event("job"));

export function tell(problem) {
  if (problem?.name === "AbortError") return;
  said.textContent = problem ? problem.message : "";
}
// Work that fails says so at the foot of the page.
export const told =
  (call) =>
  async (...given) => {
    try {
      tell();
      return await call(...given);
    } catch (problem) {
      tell(problem);
    }
  };
export function leave() {
  leaving.abort();
  leaving = new AbortController();
  foreseen.clear();
  clearTimeout(writing);
  writing = 0;
  tell();
}

export function place() {
  const [page, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  return { page: page || "worlds", state: Object.fromEntries(new URLSearchParams(query)) };
}
export function go(page, state, replace = false) {
  const kept = Object.fromEntries(Object.entries(state).filter(([, value]) => value !== "" && value != null));
  const hash = `#/${page}${Object.keys(kept).length ? `?${new URLSearchParams(kept)}` : ""}`;
  if (!replace) {
    location.hash = hash;
    return;
  }
  wanted = hash;
  if (!writing) {
    write();
    writing = setTimeout(settle, 200);
  }
}
// Browsers allow few changes of the address a second: those of a moving slider or a quick typist are gathered.
let wanted = "",
  written = "",
  writing = 0;
function write() {
  history.replaceState(null, "", wanted);
  written = location.hash;
}
function settle() {
  writing = 0;
  if (location.hash === written) write(); // not when a link was followed meanwhile
}

export const colour = (index) => PALETTE[index % PALETTE.length];
export const ink = () => getComputedStyle(document.documentElement).getPropertyValue("--ink");
export const pause = (milliseconds) => new Promise((done) => setTimeout(done, milliseconds));
export const later = (milliseconds, call) => {
  let timer;
  return (...rest) => {
    clearTimeout(timer);
    timer = setTimeout(() => call(...rest), milliseconds);
  };
};
// One question at a time, asked at once; what changes meanwhile is asked for when its answer has come.
export function inTurn(call) {
  let busy = false,
    again = false;
  return async function turn() {
    if (busy) {
      again = true;
      return;
    }
    busy = true;
    try {
      do {
        again = false;
        await call();
      } while (again);
    } finally {
      busy = false;
    }
  };
}
export const panel = (title, ...inside) =>
  element("section", { class: "panel" }, title && element("h3", {}, title), ...inside);
export const code = (text, where = "in Python") =>
  element("details", { class: "python" }, element("summary", {}, `The same ${where}`), element("pre", {}, text));
export const waiting = () => element("p", { class: "muted waiting" }, "One moment …");
export const choose = (id, options, chosen) =>
  element(
    "select",
    { id },
    ...options.map((each) => {
      const [value, name] = Array.isArray(each) ? each : [each, each];
      return element("option", { value, selected: value === chosen }, name);
    }),
  );
export const labelled = (text, input) =>
  element("div", { class: "field" }, element("label", { for: input.id }, text), input);
export function slider(id, text, { min, max, step, value, show = String }) {
  const input = element("input", { id, type: "range", min, max, step, value });
  const shown = element("output", { for: id }, show(value));
  input.addEventListener("input", () => {
    shown.textContent = show(input.value);
  });
  return [input, element("div", { class: "field" }, element("label", { for: id }, text, shown), input)];
}

// The libraries of the drawings: pages of text do without them. They run in this order, Plot needs d3.
let library;
const script = (name) =>
  new Promise((done, failed) => {
    const made = element("script", {
      src: `/static/vendor/${name}.min.js`,
      onload: done,
      onerror: () => failed(new Error(`${name} does not load`)),
    });
    made.async = false;
    document.head.append(made);
  });
export const drawing = () => (library ??= Promise.all([script("d3"), script("plot.umd")]));

// Drawing: plots take the width that there is.
export function plot(about, { inside, less = 440, most = 760, ...options }) {
  const narrow = window.innerWidth <= 960; // one column: see the style sheet
  const room = (inside ?? main).clientWidth - (narrow && !inside ? 56 : less);
  const width = Math.max(260, Math.min(most, room));
  const made = Plot.plot({ style: { background: "transparent", fontSize: "12px" }, width, ...options });
  made.setAttribute("role", "img");
  made.setAttribute("aria-label", about);
  return made;
}
export function swatches(names, paint = colour) {
  return element(
    "div",
    { class: "swatches" },
    ...names.map((name, index) => {
      const spot = element("i", {});
      spot.style.background = paint(index);
      return element("span", {}, spot, name);
    }),
  );
}
export function heat(rows, { rowNames = [], columnNames = [], about = "", low = 0, high = 1, size = 16 }) {
  const left = rowNames.length ? 12 + 6.3 * d3.max(rowNames, (name) => name.length) : 4,
    wordy = d3.max(columnNames, (name) => name.length) > 2;
  const top = columnNames.length ? (wordy ? 10 + 6.3 * d3.max(columnNames, (name) => name.length) : 18) : 4;
  const columns = d3.max(rows, (row) => row.length),
    width = left + size * columns + 4,
    height = top + size * rows.length + 4;
  const svg = d3
    .create("svg")
    .attr("viewBox", `0 0 ${width} ${height}`)
    .attr("width", width)
    .attr("role", "img")
    .attr("aria-label", about);
  const paint = d3.scaleLinear([low, high], [0, 1]).clamp(true);
  rows.forEach((row, y) =>
    row.forEach((value, x) =>
      svg
        .append("rect")
        .attr("x", left + x * size)
        .attr("y", top + y * size)
        .attr("width", size - 1)
        .attr("height", size - 1)
        .attr("rx", 2)
        .attr("class", "cell")
        .attr("fill-opacity", 0.05 + 0.95 * paint(Math.abs(value)))
        .attr("data-sign", value < 0 ? "minus" : "plus")
        .append("title")
        .text(`${rowNames[y] ?? y + 1}, ${columnNames[x] ?? x + 1}: ${value}`),
    ),
  );
  const word = (x, y, text, anchor) =>
    svg
      .append("text")
      .attr("x", x)
      .attr("y", y)
      .attr("text-anchor", anchor)
      .attr("font-size", 11)
      .attr("fill", "currentColor")
      .text(text);
  rowNames.forEach((name, y) => word(left - 6, top + y * size + size * 0.7, name, "end"));
  columnNames.forEach((name, x) => {
    const middle = left + (x + 0.5) * size;
    if (wordy) word(0, 0, name, "start").attr("transform", `translate(${middle + 4},${top - 5})rotate(-90)`);
    else word(middle, 12, name, "middle");
  });
  return svg.node();
}

const short = (value) => (typeof value === "number" && !Number.isInteger(value) ? value.toFixed(2) : String(value));
export function letters(row, names, truth = {}) {
  return element(
    "div",
    { class: "letters" },
    ...row.map((tokenNumber, at) => {
      const hidden = Object.entries(truth)
        .map(([name, values]) => `${name} ${values[at]}`)
        .join(", ");
      const below = Object.values(truth)
        .slice(0, 2)
        .map((values) => element("small", {}, short(values[at])));
      const made = element("span", { title: hidden || names[tokenNumber] }, names[tokenNumber], ...below);
      made.style.background = `color-mix(in srgb, ${colour(tokenNumber)} 30%, transparent)`;
      return made;
    }),
  );
}
export const joined = (row, names) =>
  row.map((each) => names[each]).join(names.every((each) => each.length === 1) ? "" : " ");
