// An automaton that is drawn with the mouse, filled in with the keyboard, or pasted as a table.
import { colour, element } from "../base.js";

const SIZE = 320,
  RADIUS = 20;

// {letters: "ab", table: [[next state of state 0 under a, under b], …], start, accepting}  ⇄  the text the server reads.
export const written = ({ letters, table, start, accepting }) =>
  JSON.stringify({ letters: [...letters], transitions: table, start, ...(accepting.length ? { accepting } : {}) });

export function readTable(text) {
  const trimmed = text.trim();
  const isJson = trimmed.startsWith("{") || trimmed.startsWith("[");
  const rows = () =>
    trimmed.split(/\n+/).map((line) =>
      line
        .trim()
        .split(/[\s,;]+/)
        .map(Number),
    );
  const found = numbered(isJson ? JSON.parse(trimmed) : rows());
  const { table } = found;
  if (!Array.isArray(table) || !table.length || !table.every((row) => row?.length && row.length === table[0].length))
    throw new Error("a table has one row per state and one column per letter");
  for (const state of [...table.flat(), found.start, ...found.accepting])
    if (!Number.isInteger(state) || state < 0 || state >= table.length)
      throw new Error(`${state} is no state: states are 0 to ${table.length - 1}`);
  return { ...found, letters: found.letters ?? "abcdefghij".slice(0, table[0].length) };
}

// A bare table, or an object of numbers or of names, as an object of numbers.
function numbered(given) {
  if (Array.isArray(given)) return { table: given, start: 0, accepting: [] };
  const named = given.transitions != null && !Array.isArray(given.transitions);
  const letters = (given.letters ?? (named ? Object.keys(Object.values(given.transitions)[0]) : null))?.map(String);
  if (letters?.some((each) => each.length !== 1)) throw new Error("a drawing has letters of one sign each");
  const states = named ? (given.states ?? Object.keys(given.transitions)).map(String) : [];
  const number = (state) => (named ? states.indexOf(String(state)) : state);
  const table = named
    ? states.map((state) => letters.map((letter) => number(given.transitions[state]?.[letter])))
    : given.transitions;
  const start = named ? number(given.start ?? states[0]) : (given.start ?? 0);
  return { letters: letters?.join(""), table, start, accepting: (given.accepting ?? []).map(number) };
}

function positions(count) {
  if (count === 1) return [[SIZE / 2, SIZE / 2]];
  return d3
    .range(count)
    .map((state) => [
      SIZE / 2 + (SIZE / 2 - 52) * Math.sin((2 * Math.PI * state) / count),
      SIZE / 2 - (SIZE / 2 - 52) * Math.cos((2 * Math.PI * state) / count),
    ]);
}

function arrow([x1, y1], [x2, y2], bend) {
  if (x1 === x2 && y1 === y2) {
    const away = Math.atan2(y1 - SIZE / 2, x1 - SIZE / 2),
      tip = (turn) => [x1 + RADIUS * Math.cos(away + turn), y1 + RADIUS * Math.sin(away + turn)];
    const far = (turn) => [x1 + 46 * Math.cos(away + turn), y1 + 46 * Math.sin(away + turn)],
      [a, b, c, d] = [tip(-0.5), far(-0.6), far(0.6), tip(0.5)];
    return { path: `M${a}C${b} ${c} ${d}`, label: [x1 + 48 * Math.cos(away), y1 + 48 * Math.sin(away)] };
  }
  const dx = x2 - x1,
    dy = y2 - y1,
    long = Math.hypot(dx, dy),
    nx = -dy / long,
    ny = dx / long;
  const middle = [(x1 + x2) / 2 + bend * nx, (y1 + y2) / 2 + bend * ny],
    cut = (x, y) => {
      const far = Math.hypot(middle[0] - x, middle[1] - y);
      return [x + (RADIUS * (middle[0] - x)) / far, y + (RADIUS * (middle[1] - y)) / far];
    };
  return {
    path: `M${cut(x1, y1)}Q${middle} ${cut(x2, y2)}`,
    label: [(x1 + x2) / 2 + (bend * 0.5 + 9) * nx, (y1 + y2) / 2 + (bend * 0.5 + 9) * ny],
  };
}

// Where an arrow from nowhere meets the start: beside the loop that leads away from the middle.
function entrance([x, y]) {
  const angle = Math.atan2(y - SIZE / 2, x - SIZE / 2) - 1.2;
  const at = (far) => [x + far * Math.cos(angle), y + far * Math.sin(angle)];
  return `M${at(RADIUS + 24)}L${at(RADIUS)}`;
}

function canvas(states) {
  const svg = d3.create("svg").attr("viewBox", `0 0 ${SIZE} ${SIZE}`).attr("width", SIZE).attr("class", "automaton");
  svg.attr("role", "img").attr("aria-label", `automaton with ${states} states`);
  const tip = svg.append("defs").append("marker").attr("id", "tip").attr("viewBox", "0 0 8 8");
  tip.attr("refX", 7).attr("refY", 4).attr("markerWidth", 7).attr("markerHeight", 7).attr("orient", "auto");
  tip.append("path").attr("d", "M0,0L8,4L0,8z");
  return svg;
}

// So many arrows that names beside them would lie on each other: they have the colours of their letters instead.
export const crowded = (table) =>
  table.length > 4 && new Set(table.flatMap((row, from) => row.map((to) => `${from} ${to}`))).size > 3 * table.length;

function drawEdges(svg, at, { letters, table }) {
  const dense = crowded(table);
  const edges = d3.rollups(
    table.flatMap((row, from) => row.map((to, letter) => ({ from, to, letter }))),
    (each) => each.map((edge) => edge.letter),
    (edge) => `${edge.from} ${edge.to}`,
  );
  const back = new Set(edges.map(([key]) => key.split(" ").reverse().join(" ")));
  for (const [key, which] of edges) {
    const [from, to] = key.split(" ").map(Number);
    const { path, label } = arrow(at[from], at[to], back.has(key) ? 22 : 6);
    const drawn = svg.append("path").attr("d", path).attr("class", "edge").attr("marker-end", "url(#tip)");
    if (dense) {
      drawn.classed("coloured", true).style("stroke", colour(which[0]));
      drawn.append("title").text(which.map((letter) => letters[letter] ?? letter).join(" "));
      continue;
    }
    const text = svg.append("text").attr("text-anchor", "middle").attr("class", "edge-name");
    text.attr("x", label[0]).attr("y", label[1] + 4);
    which.forEach((letter, index) => {
      const name = `${index ? " " : ""}${letters[letter] ?? letter}`;
      text.append("tspan").attr("fill", colour(letter)).text(name);
    });
  }
}

function drawStates(svg, at, names, { start = 0, accepting = [] }) {
  svg.append("path").attr("d", entrance(at[start])).attr("class", "edge entrance").attr("marker-end", "url(#tip)");
  at.forEach(([x, y], state) => {
    const group = svg.append("g").attr("class", "state").attr("data-state", state);
    const ring = (radius) => group.append("circle").attr("cx", x).attr("cy", y).attr("r", radius);
    ring(RADIUS);
    if (accepting?.includes(state)) ring(RADIUS - 4).attr("class", "accepting");
    const text = group
      .append("text")
      .attr("x", x)
      .attr("y", y + 4)
      .attr("text-anchor", "middle");
    text.attr("font-size", names[state].length > 3 ? 9 : 12).text(names[state].slice(0, 6));
  });
}

// The picture of a table, with a ring around accepting states and an arrow from nowhere to the start.
// `drawn(from, to)` is told when an arrow is dragged, `added()` when empty space is double-clicked.
export function picture(automaton, { drawn, added } = {}) {
  const { table, names = d3.range(table.length).map(String) } = automaton;
  const at = positions(table.length),
    svg = canvas(table.length);
  drawEdges(svg, at, automaton);
  const rubber = svg.append("line").attr("class", "rubber").attr("visibility", "hidden");
  drawStates(svg, at, names, automaton);
  if (drawn) makeDrawable(svg, at, rubber, drawn, added);
  return svg.node();
}

function makeDrawable(svg, at, rubber, drawn, added) {
  const node = svg.node();
  const where = (event) => {
    const box = node.getBoundingClientRect();
    return [((event.clientX - box.left) * SIZE) / box.width, ((event.clientY - box.top) * SIZE) / box.height];
  };
  const nearest = (event) => {
    const [x, y] = where(event);
    return at.findIndex(([a, b]) => Math.hypot(a - x, b - y) < RADIUS + 8);
  };
  let from = -1;
  node.addEventListener("pointerdown", (event) => {
    from = nearest(event);
    if (from < 0) return;
    node.setPointerCapture(event.pointerId);
    event.preventDefault();
  });
  node.addEventListener("pointermove", (event) => {
    if (from < 0) return;
    const [x, y] = where(event);
    rubber.attr("visibility", "visible").attr("x1", at[from][0]).attr("y1", at[from][1]).attr("x2", x).attr("y2", y);
  });
  node.addEventListener("pointerup", (event) => {
    const to = nearest(event),
      begun = from;
    from = -1;
    rubber.attr("visibility", "hidden");
    if (begun >= 0 && to >= 0) drawn(begun, to);
  });
  node.addEventListener("dblclick", (event) => {
    if (nearest(event) < 0) added();
  });
  svg.selectAll(".state").classed("grab", true);
}

// What can be done to an automaton; each gives a new one.
const change = {
  add: (old) =>
    old.table.length < 12 ? { ...old, table: [...old.table, [...old.letters].map(() => old.table.length)] } : old,
  drop(old) {
    const last = old.table.length - 1;
    if (!last) return old;
    const table = old.table.slice(0, last).map((row) => row.map((next) => (next === last ? 0 : next)));
    return {
      ...old,
      table,
      start: old.start === last ? 0 : old.start,
      accepting: old.accepting.filter((s) => s < last),
    };
  },
  move: (old, from, to, letter) => ({
    ...old,
    table: old.table.map((row, state) => (state === from ? row.with(letter, to) : row)),
  }),
  alphabet: (old, count) => ({
    ...old,
    letters: old.letters.length >= count ? old.letters.slice(0, count) : "abcdefgh".slice(0, count),
    table: old.table.map((row, state) => d3.range(count).map((each) => row[each] ?? state)),
  }),
  accept: (old, state) => ({
    ...old,
    accepting: old.accepting.includes(state)
      ? old.accepting.filter((s) => s !== state)
      : [...old.accepting, state].sort(),
  }),
};

// The editor: picture and table, both change the same automaton.
export function editor(automaton, changed) {
  let now = automaton,
    letter = 0;
  const box = element("div", { class: "editor" });
  const set = (next) => {
    now = next;
    letter = Math.min(letter, now.letters.length - 1);
    changed(now);
    show();
  };
  const button = (text, next) => element("button", { onclick: () => set(next()) }, text);
  function tools() {
    const pens = [...now.letters].map((each, which) =>
      element(
        "button",
        {
          "aria-pressed": String(which === letter),
          "aria-label": `draw arrows for ${each}`,
          onclick: () => {
            letter = which;
            show();
          },
        },
        each,
      ),
    );
    return [
      ...pens,
      button("Add a state", () => change.add(now)),
      button("Remove the last", () => change.drop(now)),
      button("One letter more", () => change.alphabet(now, Math.min(4, now.letters.length + 1))),
      button("One letter less", () => change.alphabet(now, Math.max(1, now.letters.length - 1))),
    ];
  }
  function line(row, from) {
    const cells = row.map((to, which) => {
      const label = `from ${from} under ${now.letters[which]}`;
      const options = now.table.map((_, state) =>
        element("option", { value: state, selected: state === to }, String(state)),
      );
      const moved = (event) => set(change.move(now, from, Number(event.target.value), which));
      return element("td", {}, element("select", { "aria-label": label, onchange: moved }, ...options));
    });
    const starts = element("input", {
      type: "radio",
      name: "start",
      "aria-label": `start in ${from}`,
      checked: from === now.start,
      onchange: () => set({ ...now, start: from }),
    });
    const accepts = element("input", {
      type: "checkbox",
      "aria-label": `accept in ${from}`,
      checked: now.accepting.includes(from),
      onchange: () => set(change.accept(now, from)),
    });
    return element(
      "tr",
      {},
      element("th", {}, String(from)),
      ...cells,
      element("td", {}, starts),
      element("td", {}, accepts),
    );
  }
  function show() {
    const held = box.contains(document.activeElement) ? nameOf(document.activeElement) : "";
    const titles = ["state", ...now.letters, "start", "accepts"].map((each) => element("th", {}, each));
    const grid = element("table", { class: "small" }, element("tr", {}, ...titles), ...now.table.map(line));
    const help =
      "Drag from state to state to draw an arrow for the chosen letter; double-click empty space for a new state.";
    const drawing = picture(now, {
      drawn: (from, to) => set(change.move(now, from, to, letter)),
      added: () => set(change.add(now)),
    });
    box.replaceChildren(
      element(
        "div",
        {},
        element("p", { class: "muted" }, help),
        element("div", { class: "keys" }, ...tools()),
        drawing,
      ),
      element("div", { class: "wide" }, grid),
    );
    // The keyboard stays where it was, though everything is drawn anew.
    if (held) [...box.querySelectorAll("select, input, button")].find((each) => nameOf(each) === held)?.focus();
  }
  show();
  return box;
}
const nameOf = (control) => control.getAttribute("aria-label") ?? control.textContent;
