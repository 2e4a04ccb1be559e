// The pages of the atlas. State lives in the address (#/page?…): a view can be shared and the back button works.
const token = document.querySelector('meta[name="sandlab-token"]').content;
const main = document.getElementById("main");
const said = document.getElementById("said");
const PALETTE = ["#0b3954", "#d1495b", "#4f9d69", "#edae49", "#7b5ea7", "#30a2c7", "#8a8d91", "#5c2e0d", "#b07aa1", "#76b7b2"];
let leaving = new AbortController();

export function element(name, attributes = {}, ...inside) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key === "class") made.className = value;
    else if (value === true) made.setAttribute(key, "");
    else if (value !== false && value != null) made.setAttribute(key, value);
  }
  made.append(...inside.flat().filter((part) => part != null && part !== false));
  return made;
}

async function ask(path, options = {}) {
  const headers = { "X-Sandlab-Token": token, ...(options.body ? { "Content-Type": "application/json" } : {}) };
  const answer = await fetch(path, { signal: leaving.signal, ...options, headers });
  const found = await answer.json().catch(() => ({ error: `the server answered ${answer.status}` }));
  if (!answer.ok) throw new Error(found.error ?? `the server answered ${answer.status}`);
  return found;
}
const view = (name, parameters = {}) => ask(`/api/${name}?${new URLSearchParams(parameters)}`);

function tell(problem) {
  if (problem?.name === "AbortError") return;
  said.textContent = problem ? problem.message : "";
}

function place() {
  const [page, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  return { page: page || "worlds", state: Object.fromEntries(new URLSearchParams(query)) };
}
function go(page, state, replace = false) {
  const kept = Object.fromEntries(Object.entries(state).filter(([, value]) => value !== "" && value != null));
  const hash = `#/${page}${Object.keys(kept).length ? `?${new URLSearchParams(kept)}` : ""}`;
  if (replace) history.replaceState(null, "", hash);
  else location.hash = hash;
}

const colour = (index) => PALETTE[index % PALETTE.length];
const code = (text) => element("details", {}, element("summary", { class: "muted" }, "The same in Python"), element("pre", {}, text));
const later = (milliseconds, call) => { let timer; return (...rest) => { clearTimeout(timer); timer = setTimeout(() => call(...rest), milliseconds); }; };

// ---- Worlds ---------------------------------------------------------------------------------------------------------
async function worldsPage() {
  const { worlds } = await view("worlds");
  const list = element("div", { class: "grid" });
  const search = element("input", { type: "search", placeholder: "Search worlds", "aria-label": "Search worlds", oninput: () => fill() });
  function fill() {
    const wanted = search.value.toLowerCase();
    list.replaceChildren(...worlds.filter((each) => `${each.name} ${each.summary} ${each.chapter}`.toLowerCase().includes(wanted))
      .map((each) => element("a", { class: "panel", href: `#/world?name=${encodeURIComponent(each.name)}` },
        element("strong", {}, each.name), " ", element("span", { class: "muted" }, each.chapter), element("div", {}, each.summary))));
  }
  fill();
  main.replaceChildren(element("h2", {}, `${worlds.length} worlds`), search, element("p", {}), list);
}

async function worldPage(state) {
  const settings = JSON.parse(state.settings ?? "{}");
  const seed = Number(state.seed ?? 0);
  const facts = await view("world", { name: state.name, settings: JSON.stringify(settings), seed, examples: 8 });
  const change = (more) => go("world", { ...state, ...more }, true);
  const controls = element("div", { class: "panel" }, element("h3", {}, "Settings"), ...facts.fields.map((field) => control(field, settings, (value) => {
    settings[field.name] = value;
    change({ settings: JSON.stringify(settings) });
    draw(worldPage, { ...state, settings: JSON.stringify(settings) });
  })));
  const right = element("div", {});
  main.replaceChildren(element("h2", {}, facts.name), element("div", { class: "columns" }, controls, right));
  const about = element("details", {}, element("summary", {}, facts.text.split("\n")[0]), element("pre", {}, facts.text));
  right.append(element("div", { class: "panel" }, about, code(facts.code)));
  if (!facts.tokens) { right.append(element("p", { class: "muted" }, "This world gives numbers, not letters: see its page in the documentation.")); return; }
  right.append(examplesPanel(facts, () => { change({ seed: seed + 1 }); draw(worldPage, { ...state, seed: seed + 1 }); }), typingPanel(facts, state, settings), gamePanel(facts, state, settings));
}

function control(field, settings, changed) {
  const value = settings[field.name] ?? field.value;
  const id = `field-${field.name}`;
  const shown = element("output", {}, ` ${value}`);
  let input;
  if (field.kind === "bool") input = element("select", { id }, ...["True", "False"].map((each) => element("option", { value: each.toLowerCase(), selected: String(value).toLowerCase() === each.toLowerCase() }, each)));
  else if (field.kind === "int") input = element("input", { id, type: "range", min: 0, max: Math.max(16, 4 * Number(field.value)), step: 1, value });
  else if (field.kind === "float" && Number(field.value) <= 1 && Number(field.value) >= 0) input = element("input", { id, type: "range", min: 0, max: 1, step: 0.01, value });
  else input = element("input", { id, type: "text", value });
  input.addEventListener("input", () => { shown.textContent = ` ${input.value}`; });
  input.addEventListener("change", () => changed(input.value));
  return element("div", {}, element("label", { for: id }, field.name, shown), input);
}

function letters(row, names, truth = {}) {
  const line = element("div", { class: "letters" }, ...row.map((token, at) => {
    const hidden = Object.entries(truth).map(([name, values]) => `${name} ${values[at]}`).join(", ");
    const made = element("span", { title: hidden || names[token] }, names[token]);
    made.style.background = `color-mix(in srgb, ${colour(token)} 28%, transparent)`;
    return made;
  }));
  return line;
}

function examplesPanel(facts, fresh) {
  const lanes = Object.keys(facts.truth);
  return element("div", { class: "panel" }, element("h3", {}, "Examples "), element("button", { onclick: fresh }, "Fresh examples"),
    ...facts.rows.map((row, index) => {
      const truth = Object.fromEntries(lanes.map((name) => [name, facts.truth[name][index]]));
      return element("div", {}, letters(row, facts.letters, truth),
        ...lanes.slice(0, 2).map((name) => element("div", { class: "lane mono" }, `${name}: ${truth[name].join(" ")}`)));
    }));
}

function typingPanel(facts, state, settings) {
  const start = state.text ?? facts.rows[0].slice(0, 12).map((token) => facts.letters[token]).join(facts.letters.every((each) => each.length === 1) ? "" : " ");
  const input = element("input", { id: "typed", type: "text", value: start, spellcheck: "false", autocomplete: "off" });
  const word = element("div", {}), bars = element("div", {}), verdict = element("p", { id: "verdict" });
  let found, at;
  function show() {
    if (!found) return;
    word.replaceChildren(letters(found.row, found.letters));
    [...word.firstChild.children].forEach((each, index) => {
      each.setAttribute("role", "button"); each.tabIndex = 0;
      each.className = index === at ? "now" : "";
      const choose = () => { at = index; show(); };
      each.addEventListener("click", choose);
      each.addEventListener("keydown", (event) => { if (event.key === "Enter") choose(); });
    });
    verdict.textContent = found.accepts == null ? "" : found.accepts ? "This word belongs to the language." : "This word does not belong to the language.";
    verdict.className = found.accepts === false ? "fails" : "holds";
    if (!found.probs) { bars.replaceChildren(element("p", { class: "muted" }, found.why ?? "There is no oracle for a text alone.")); return; }
    const probs = found.probs[Math.min(at, found.probs.length - 1)];
    const rows = probs.map((p, index) => ({ letter: found.answers[index] ?? String(index), p, index })).filter((row) => probs.length <= 40 || row.p > 0.002);
    const picture = Plot.plot({ width: 560, height: 60 + 20 * rows.length, marginLeft: 70, x: { domain: [0, 1], label: "probability of what comes next" }, y: { label: null, domain: rows.map((r) => r.letter) },
      marks: [Plot.barX(rows, { x: "p", y: "letter", fill: (r) => colour(r.index) }), Plot.text(rows, { x: "p", y: "letter", text: (r) => r.p.toFixed(3), dx: 22, fill: "currentColor" }), Plot.ruleX([0])] });
    picture.setAttribute("role", "img"); picture.setAttribute("aria-label", "the oracle's law of the next letter");
    const list = element("span", { id: "law", class: "skip", "data-letters": found.row.length }, JSON.stringify(probs));
    bars.replaceChildren(element("p", { class: "muted" }, `After letter ${at + 1} (choose another by a click):`), picture, list);
  }
  const update = later(30, async () => {
    try {
      go("world", { ...state, settings: JSON.stringify(settings), text: input.value }, true);
      found = await view("predict", { name: state.name, settings: JSON.stringify(settings), text: input.value });
      at = found.row.length - 1;
      tell(); show();
    } catch (problem) { tell(problem); }
  });
  input.addEventListener("input", update);
  update();
  return element("div", { class: "panel" }, element("h3", {}, "Type your own"), element("label", { for: "typed" }, "A string of this world's letters"), input, word, verdict, bars);
}

function gamePanel(facts, state, settings) {
  const board = element("div", {}), score = element("p", {});
  let probs, row, at = 0, yours = 0, best = 0, rounds = 0;
  async function begin() {
    try {
      const fresh = await view("world", { name: state.name, settings: JSON.stringify(settings), seed: Math.floor(Math.random() * 1e6), examples: 1 });
      row = fresh.rows[0].slice(0, 40);
      const joined = row.map((token) => facts.letters[token]).join(facts.letters.every((each) => each.length === 1) ? "" : " ");
      probs = (await view("predict", { name: state.name, settings: JSON.stringify(settings), text: joined })).probs;
      if (!probs || probs.length < 3 || facts.answers.length !== facts.letters.length) { board.replaceChildren(element("p", { class: "muted" }, "This world asks for one answer at the end: there is nothing to guess letter by letter.")); return; }
      at = Math.min(3, row.length - 2); yours = best = rounds = 0; turn();
    } catch (problem) { tell(problem); }
  }
  function turn() {
    const known = row.slice(0, at + 1);
    const done = rounds >= 10 || at >= row.length - 1;
    board.replaceChildren(letters(known, facts.letters), done ? element("p", {}, "Finished.") : element("div", { class: "row" },
      ...facts.letters.map((letter, token) => element("button", { onclick: () => guess(token) }, letter)).slice(0, 30)));
  }
  function guess(token) {
    const law = probs[at], truth = row[at + 1];
    yours += token === truth; best += law.indexOf(Math.max(...law)) === truth; rounds += 1; at += 1;
    score.textContent = `Right: you ${yours}, the oracle ${best}, of ${rounds}. It was ${facts.letters[truth]}; the oracle gave it ${(100 * law[truth]).toFixed(0)} %.`;
    turn();
  }
  return element("div", { class: "panel" }, element("h3", {}, "Guess the next letter"), element("button", { onclick: begin }, "Play ten rounds against the oracle"), board, score);
}

// ---- Circuits -------------------------------------------------------------------------------------------------------
async function circuitsPage(state) {
  const machine = state.machine ?? "(abab)*", length = state.length ?? "16", method = state.method ?? "auto";
  const form = { machine: element("input", { id: "machine", type: "text", value: machine }), length: element("input", { id: "length", type: "number", min: 1, max: 256, value: length }),
    method: element("select", { id: "method" }, ...["auto", "scan", "krohn-rhodes", "sequential", "rnn"].map((each) => element("option", { selected: each === method }, each))),
    word: element("input", { id: "word", type: "text", value: state.word ?? "" }), bits: element("input", { id: "bits", type: "range", min: 0, max: 32, value: state.bits ?? 32 }) };
  const out = element("div", {}), bitsShown = element("output", {}, "");
  const now = (off = state.off ?? "") => ({ machine: form.machine.value, length: form.length.value, method: form.method.value, word: form.word.value, ...(Number(form.bits.value) < 32 ? { bits: form.bits.value } : {}), ...(off ? { off } : {}) });
  let off = state.off ?? "";
  const update = later(120, async () => {
    try { const asked = now(off); go("circuits", asked, true); bitsShown.textContent = asked.bits ?? "all"; showCircuit(out, await view("circuit", asked), off, (head) => { off = off === head ? "" : head; update(); }); tell(); } catch (problem) { tell(problem); }
  });
  for (const input of Object.values(form)) input.addEventListener("input", update);
  main.replaceChildren(element("h2", {}, "Automata as transformers with exact weights"), element("div", { class: "columns" },
    element("div", { class: "panel" }, element("label", { for: "machine" }, "Regular expression, name (S5, C6, …) or JSON table"), form.machine,
      element("label", { for: "length" }, "Longest word"), form.length, element("label", { for: "method" }, "Construction"), form.method,
      element("label", { for: "word" }, "A word (empty: a random one)"), form.word, element("label", { for: "bits" }, "Bits behind the point: ", bitsShown), form.bits), out));
  update();
}

function showCircuit(out, found, off, ablate) {
  const names = found.states, wrong = found.answers.map((each, at) => each !== found.truth[at]);
  const head = element("p", {}, element("strong", {}, found.algebra.depth ?? ""), " ", found.note);
  const facts = Object.entries(found.algebra).filter(([, value]) => typeof value !== "object").map(([key, value]) => element("tr", {}, element("th", {}, key), element("td", {}, String(value))));
  const line = element("table", {}, element("tr", {}, element("th", {}, "letter"), ...found.word.map((token) => element("td", { class: "mono" }, found.letters[token]))),
    element("tr", {}, element("th", {}, "answer"), ...found.answers.map((each, at) => element("td", { class: `mono ${wrong[at] ? "fails" : "holds"}` }, names[each] ?? String(each)))),
    element("tr", {}, element("th", {}, "truth"), ...found.truth.map((each) => element("td", { class: "mono muted" }, names[each] ?? String(each)))));
  const right = element("p", { id: "right", class: found.right === 1 ? "holds" : "fails" }, `${Math.round(100 * found.right)} % of the states are right${off ? ` without head ${off}` : ""}.`);
  const layers = found.layers.map((layer, depth) => element("div", {}, element("h3", {}, layer.name), ...layer.heads.map((head, index) => {
    const key = `${depth}.${index}`;
    return element("figure", {}, arcs(head, found), element("button", { "aria-pressed": String(off === key), onclick: () => ablate(key) }, off === key ? "Give the head back" : `Remove head ${index + 1}`));
  })));
  out.replaceChildren(element("div", { class: "panel" }, head, right, line, code(found.code)), element("div", { class: "panel" }, element("h3", {}, "Who reads whom"), ...layers), element("div", { class: "panel" }, element("h3", {}, "Algebra"), element("table", {}, ...facts)));
}

function arcs(weights, found) {
  const step = Math.max(18, Math.min(44, 680 / weights.length)), width = step * weights.length + 20, height = 90;
  const svg = d3.create("svg").attr("viewBox", `0 0 ${width} ${height}`).attr("width", width).attr("role", "img").attr("aria-label", "attention arcs");
  const x = (index) => 10 + step * (index + 0.5);
  const shift = weights.length - found.word.length; // a scan begins with padding
  weights.forEach((row, query) => row.forEach((weight, key) => {
    if (weight < 0.04) return;
    const far = Math.abs(query - key), lift = 14 + Math.min(58, 7 * far);
    svg.append("path").attr("d", `M${x(key)},${height - 18}C${x(key)},${height - 18 - lift} ${x(query)},${height - 18 - lift} ${x(query)},${height - 18}`).attr("fill", "none").attr("stroke", key < shift ? "#999999" : colour(found.word[key - shift])).attr("stroke-opacity", Math.min(1, weight)).attr("stroke-width", 2).append("title").text(`position ${query + 1 - shift} reads ${key + 1 - shift}: ${weight.toFixed(3)}`);
  }));
  found.word.forEach((token, index) => { svg.append("text").attr("x", x(index + shift)).attr("y", height - 4).attr("text-anchor", "middle").attr("fill", "currentColor").attr("font-size", 12).text(found.letters[token]); });
  return svg.node();
}

// ---- Claims ---------------------------------------------------------------------------------------------------------
async function claimsPage(state) {
  const { claims } = await view("claims");
  const chapters = [...new Set(claims.map((each) => each.chapter))].sort();
  const filter = { chapter: element("select", { "aria-label": "Chapter" }, element("option", { value: "" }, "all chapters"), ...chapters.map((each) => element("option", { selected: state.chapter === each }, each))),
    verdict: element("select", { "aria-label": "Verdict" }, element("option", { value: "" }, "all verdicts"), ...["holds", "fails", "inconclusive"].map((each) => element("option", { selected: state.verdict === each }, each))),
    words: element("input", { type: "search", placeholder: "Search statements", "aria-label": "Search statements", value: state.words ?? "" }),
    edge: element("select", { "aria-label": "Which" }, ...["all", "near the edge", "quick", "full", "with the source's number"].map((each) => element("option", { selected: state.edge === each }, each))) };
  const list = element("div", { id: "claims" }), count = element("p", { class: "muted", id: "count" });
  function fill() {
    const chosen = { chapter: filter.chapter.value, verdict: filter.verdict.value, words: filter.words.value, edge: filter.edge.value === "all" ? "" : filter.edge.value };
    go("claims", { ...chosen, open: state.open }, true);
    const shown = claims.filter((each) => (!chosen.chapter || each.chapter === chosen.chapter) && (!chosen.verdict || each.verdict === chosen.verdict)
      && (!chosen.words || `${each.id} ${each.statement}`.toLowerCase().includes(chosen.words.toLowerCase()))
      && (!chosen.edge || (["quick", "full"].includes(chosen.edge) ? each.preset === chosen.edge : chosen.edge === "near the edge" ? nearEdge(each) : /\d/.test(each.paper))));
    const tally = d3.rollup(shown, (rows) => rows.length, (each) => each.verdict);
    count.textContent = `${shown.length} claims: ${[...tally].map(([verdict, number]) => `${number} ${verdict}`).join(", ")}`;
    list.replaceChildren(...shown.slice(0, 400).map((each) => claimRow(each, state)), ...(shown.length > 400 ? [element("p", { class: "muted" }, "The first 400 are drawn: narrow the filter for the others.")] : []));
  }
  for (const input of Object.values(filter)) input.addEventListener("input", later(60, fill));
  main.replaceChildren(element("h2", {}, "Claims of the sources, judged"), element("div", { class: "row" }, ...Object.values(filter)), count, list);
  fill();
}

function bounds(relation) {
  const numbers = (relation.match(/-?\d+(?:\.\d+)?(?:e[+-]?\d+)?/g) ?? []).map(Number);
  if (relation.startsWith(">")) return [numbers[0], Infinity];
  if (relation.startsWith("<")) return [-Infinity, numbers[0]];
  if (relation.startsWith("in")) return [numbers[0], numbers[1]];
  if (relation.startsWith("=")) return [numbers[0] - (numbers[1] ?? 0), numbers[0] + (numbers[1] ?? 0)];
  return [-Infinity, Infinity];
}
function nearEdge(each) {
  if (each.mean == null || each.low == null || each.high == null) return false;
  return bounds(each.relation).some((edge) => Number.isFinite(edge) && Math.abs(edge - each.mean) <= 2 * Math.max(each.high - each.low, 1e-12));
}

function claimRow(each, state) {
  const more = element("div", {});
  const opened = async () => {
    if (more.childNodes.length) { more.replaceChildren(); return; }
    try {
      const found = await view("history", { claim: each.id });
      more.replaceChildren(element("p", { class: "muted" }, `${each.source}. ${found.status}${found.reduced.length ? `, smaller than the source: ${found.reduced.join("; ")}` : ""}`),
        ...found.figures.slice(0, 4).map((figure) => element("img", { class: "figure", loading: "lazy", alt: `${figure.study}, ${figure.name}`, src: `/figure/${figure.study}/${encodeURIComponent(figure.preset)}/${encodeURIComponent(figure.name)}` })),
        element("table", {}, ...found.history.map((entry) => element("tr", {}, element("td", {}, String(entry.date ?? entry.finished ?? "").slice(0, 10)), element("td", {}, entry.preset ?? ""), element("td", { class: entry.verdict }, entry.verdict)))),
        element("button", { onclick: () => runStudy(each.study) }, "Run it now"), code(`sl.run("${each.study}")`));
    } catch (problem) { tell(problem); }
  };
  return element("article", { class: "claim" }, element("div", {}, element("div", {}, element("span", { class: each.verdict }, each.verdict), " ", element("strong", {}, each.statement)),
    element("div", { class: "muted mono" }, `${each.id}  must be ${each.relation}${each.paper ? `  source: ${each.paper}` : ""}`), element("button", { onclick: opened, "aria-label": `More about ${each.id}` }, "History and figures"), more), axisOf(each));
}

function axisOf(each) {
  if (each.mean == null) return element("div", {});
  const [low, high] = bounds(each.relation), source = (each.paper.match(/-?\d+(?:\.\d+)?/) ?? []).map(Number)[0];
  const points = [each.mean, each.low, each.high, low, high, source].filter((value) => Number.isFinite(value));
  let [left, right] = d3.extent(points); const pad = (right - left || Math.abs(left) || 1) * 0.15; left -= pad; right += pad;
  const x = d3.scaleLinear([left, right], [6, 334]), svg = d3.create("svg").attr("viewBox", "0 0 340 44").attr("role", "img").attr("aria-label", `ours ${each.mean}, must be ${each.relation}`);
  svg.append("rect").attr("x", x(Math.max(left, low))).attr("width", Math.max(2, x(Math.min(right, high)) - x(Math.max(left, low)))).attr("y", 8).attr("height", 14).attr("fill", "#4f9d69").attr("fill-opacity", 0.22);
  svg.append("line").attr("x1", 6).attr("x2", 334).attr("y1", 15).attr("y2", 15).attr("stroke", "currentColor").attr("stroke-opacity", 0.3);
  for (const value of each.values ?? []) if (Number.isFinite(value) && value >= left && value <= right) svg.append("circle").attr("cx", x(value)).attr("cy", 15).attr("r", 2).attr("fill", "currentColor").attr("fill-opacity", 0.35);
  if (each.low != null && each.high != null) svg.append("line").attr("x1", x(each.low)).attr("x2", x(each.high)).attr("y1", 15).attr("y2", 15).attr("stroke", "#d1495b").attr("stroke-width", 3);
  svg.append("circle").attr("cx", x(each.mean)).attr("cy", 15).attr("r", 4).attr("fill", "#d1495b");
  if (Number.isFinite(source)) svg.append("path").attr("d", d3.symbol(d3.symbolDiamond, 50)()).attr("transform", `translate(${x(source)},15)`).attr("fill", "none").attr("stroke", "currentColor").attr("stroke-width", 1.5).append("title").text(`the source: ${each.paper}`);
  svg.append("text").attr("x", 6).attr("y", 38).attr("font-size", 10).attr("fill", "currentColor").text(d3.format(".3~g")(left));
  svg.append("text").attr("x", 334).attr("y", 38).attr("text-anchor", "end").attr("font-size", 10).attr("fill", "currentColor").text(d3.format(".3~g")(right));
  return svg.node();
}

// ---- Training -------------------------------------------------------------------------------------------------------
async function trainingPage(state) {
  const { worlds } = await view("worlds");
  const form = { world: element("select", { id: "world" }, ...worlds.map((each) => element("option", { selected: each.name === (state.world ?? "in-context-markov") }, each.name))),
    model: element("select", { id: "model" }, ...["transformer", "lstm", "rnn", "state-space", "hybrid"].map((each) => element("option", { selected: each === state.model }, each))),
    length: element("input", { id: "train-length", type: "number", min: 2, max: 128, value: state.length ?? 24 }), steps: element("input", { id: "steps", type: "number", min: 1, max: 20000, value: state.steps ?? 300 }),
    seeds: element("input", { id: "seeds", type: "number", min: 1, max: 16, value: state.seeds ?? 3 }), lr: element("input", { id: "lr", type: "number", step: "any", value: state.lr ?? 0.003 }) };
  const out = element("div", { class: "panel", id: "live" }, element("p", { class: "muted" }, "Losses of all seeds appear here as they train, beside those of the oracle and of the world's baselines."));
  const labelled = (text, input) => element("div", {}, element("label", { for: input.id }, text), input);
  async function begin() {
    try {
      const asked = Object.fromEntries(Object.entries(form).map(([name, input]) => [name, input.value]));
      go("training", asked, true);
      const job = await ask("/jobs", { method: "POST", body: JSON.stringify({ kind: "train", world: asked.world, model: asked.model, settings: { length: asked.length }, steps: Number(asked.steps), seeds: Number(asked.seeds), lr: Number(asked.lr) }) });
      follow(job.number, out);
    } catch (problem) { tell(problem); }
  }
  main.replaceChildren(element("h2", {}, "Watch a training"), element("div", { class: "columns" }, element("div", { class: "panel" }, labelled("World", form.world), labelled("Model", form.model), labelled("Length", form.length), labelled("Steps", form.steps), labelled("Seeds", form.seeds), labelled("Learning rate", form.lr), element("p", {}, element("button", { class: "main", onclick: begin }, "Train"))), out));
}

async function follow(number, out) {
  const points = []; let levels = {}, since = 0, words = "";
  const stop = element("button", { onclick: () => ask(`/jobs/${number}`, { method: "DELETE" }).catch(tell) }, "Stop");
  const status = element("p", { id: "state" }), picture = element("div", {}), text = element("pre", {});
  out.replaceChildren(status, stop, picture, text);
  while (out.isConnected) {
    let job;
    try { job = await ask(`/jobs/${number}?since=${since}`); } catch (problem) { tell(problem); return; }
    since = job.next;
    for (const line of job.lines) {
      if (line.levels) levels = line.levels;
      if (line.loss) line.loss.forEach((loss, seed) => points.push({ step: line.step, loss, seed: `seed ${seed}` }));
      if (line.text) words = `${words}${line.text}\n`.slice(-6000);
    }
    status.textContent = `${job.title}: ${job.state}`; text.textContent = words; text.hidden = !words;
    if (points.length) picture.replaceChildren(Plot.plot({ width: 680, height: 340, marginLeft: 50, color: { legend: true }, x: { label: "training step" }, y: { label: "held-out loss (nats)" },
      marks: [Plot.line(points, { x: "step", y: "loss", stroke: "seed" }), Plot.ruleY(Object.values(levels), { strokeDasharray: "4 3", strokeOpacity: 0.6 }), Plot.text(Object.entries(levels), { x: d3.max(points, (p) => p.step), y: (each) => each[1], text: (each) => each[0], textAnchor: "end", dy: -6, fill: "currentColor" })] }));
    if (!["waiting", "running"].includes(job.state)) { stop.disabled = true; return; }
    await new Promise((done) => setTimeout(done, 400));
  }
}

async function runStudy(study) {
  try { await ask("/jobs", { method: "POST", body: JSON.stringify({ kind: "run", study }) }); go("lab", {}); } catch (problem) { tell(problem); }
}

// ---- Sources, cards, lab --------------------------------------------------------------------------------------------
async function sourcesPage(state) {
  const { rows } = await view("sources");
  const chapters = d3.group(rows, (row) => row.chapter);
  main.replaceChildren(element("h2", {}, `${rows.length} systems of the sources`), ...[...chapters].map(([chapter, inside]) => element("details", { class: "panel", open: state.chapter === chapter }, element("summary", {}, `${chapter}: ${inside.length} systems${tallyOf(inside)}`),
    element("table", {}, ...inside.map((row) => element("tr", {}, element("td", {}, row.id), element("td", { class: "mono muted" }, row.places.join(", ")), element("td", {}, ...row.verdicts.map((verdict) => element("span", { class: verdict }, `${verdict} `)))))))));
}

function tallyOf(rows) {
  const tally = d3.rollup(rows.flatMap((row) => row.verdicts), (each) => each.length, (each) => each);
  return tally.size ? `; claims: ${[...tally].map(([verdict, number]) => `${number} ${verdict}`).join(", ")}` : "";
}

async function cardsPage() {
  const { cards } = await view("cards");
  if (!cards.length) { main.replaceChildren(element("h2", {}, "Cards"), element("p", {}, "No card is recorded yet: give `sandlab card my_file.py:MyModule`.")); return; }
  const rows = cards.flatMap((card) => card.rows.map((row) => ({ ...row, label: `${row.task}: ${row.test}`, model: `${card.model} (${card.size})` })));
  const names = [...new Set(rows.map((row) => row.label))];
  main.replaceChildren(element("h2", {}, "Stress cards of the built-in architectures"), element("div", { class: "panel" }, Plot.plot({ width: 900, height: 60 + 20 * names.length, marginLeft: 220, marginTop: 60, x: { axis: "top", label: null, tickRotate: -20 }, y: { domain: names, label: null }, color: { scheme: "cividis", domain: [0, 1], legend: true, label: "score (0 guessing, 1 optimum)" }, marks: [Plot.cell(rows, { x: "model", y: "label", fill: "score" }), Plot.text(rows, { x: "model", y: "label", text: (row) => row.score.toFixed(2), fill: (row) => (row.score < 0.55 ? "white" : "black") })] })));
}

async function labPage() {
  const list = element("div", { class: "grid" }), detail = element("div", { class: "panel" });
  main.replaceChildren(element("h2", {}, "The lab"), list, detail);
  while (list.isConnected) {
    let found;
    try { found = await ask("/jobs"); } catch (problem) { tell(problem); return; }
    list.replaceChildren(...found.jobs.map((job) => element("button", { class: "panel", onclick: () => follow(job.number, detail) }, element("strong", {}, job.title), element("div", { class: "muted" }, `${job.kind} ${job.number}: ${job.state}`))));
    if (!found.jobs.length) detail.textContent = "Nothing runs. Start a training, or a study from its claim.";
    await new Promise((done) => setTimeout(done, 1000));
  }
}

// ---- Which page -----------------------------------------------------------------------------------------------------
const PAGES = { worlds: worldsPage, world: worldPage, circuits: circuitsPage, claims: claimsPage, training: trainingPage, sources: sourcesPage, cards: cardsPage, lab: labPage };

async function draw(page, state) {
  tell();
  try { await page(state); main.dataset.ready = "yes"; } catch (problem) { tell(problem); }
}
function open() {
  leaving.abort(); leaving = new AbortController();
  const { page, state } = place();
  main.dataset.ready = "";
  for (const link of document.querySelectorAll("nav a")) link.toggleAttribute("aria-current", false);
  const current = document.querySelector(`nav a[href="#/${page === "world" ? "worlds" : page}"]`);
  if (current) current.setAttribute("aria-current", "page");
  document.title = `${page} · SandLab atlas`;
  main.replaceChildren(element("p", { class: "muted" }, "…"));
  draw(PAGES[page] ?? worldsPage, state);
}
window.addEventListener("hashchange", open);
open();
