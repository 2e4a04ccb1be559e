// Circuits: a regular expression, a table or a drawing; its algebra, its compiled model, and every layer at work.
import { choose, code, colour, element, go, heat, labelled, later, main, panel, slider, told, view } from "../base.js";
import { editor, picture, readTable, written } from "./automaton.js";

const heats = (power) => 10 ** Number(power);

export async function circuitsPage(state) {
  const form = { machine: element("textarea", { id: "machine", rows: 2, spellcheck: "false" }), length: element("input", { id: "length", type: "number", min: 1, max: 256, value: state.length ?? 16 }),
    method: choose("method", ["auto", "scan", "krohn-rhodes", "sequential", "rnn"], state.method ?? "auto"), word: element("input", { id: "word", type: "text", value: state.word ?? "", spellcheck: "false", autocomplete: "off" }) };
  form.machine.value = state.machine ?? "(abab)*";
  const [bits, bitsField] = slider("bits", "Bits behind the point", { min: 0, max: 32, step: 1, value: state.bits ?? 32, show: (value) => (Number(value) >= 32 ? "all" : value) });
  const [warmth, warmthField] = slider("temperature", "Temperature of the attention", { min: -1, max: 5, step: 0.1, value: Math.log10(Number(state.temperature ?? 1)), show: (value) => `× ${d3.format(".3~g")(heats(value))}` });
  const out = element("div", {}), draw = element("details", { class: "panel" }, element("summary", {}, "Draw an automaton, or paste a table"));
  let off = state.off ?? "", asked = 0;
  const now = () => ({ machine: form.machine.value, length: form.length.value, method: form.method.value, word: form.word.value,
    ...(Number(bits.value) < 32 ? { bits: bits.value } : {}), ...(Number(warmth.value) ? { temperature: String(heats(warmth.value)) } : {}), ...(off ? { off } : {}) });
  const update = later(120, told(async () => {
    const turn = asked += 1, wanted = now();
    go("circuits", wanted, true);
    const found = await view("circuit", wanted);
    if (turn === asked) showCircuit(out, found, off, (head) => { off = off === head ? "" : head; update(); });
  }));
  for (const input of [...Object.values(form), bits, warmth]) input.addEventListener("input", update);
  draw.append(drawing((automaton) => { form.machine.value = written(automaton); form.word.value = ""; update(); }, form.machine.value));
  main.replaceChildren(element("h2", {}, "Automata as transformers with exact weights"), element("div", { class: "columns" },
    element("div", {}, panel("", labelled("Regular expression, name (S5, C6, …) or JSON table", form.machine), labelled("Longest word", form.length), labelled("Construction", form.method),
      labelled("A word (empty: a random one)", form.word), bitsField, warmthField), draw), out));
  update();
}

function drawing(changed, text) {
  let start = { letters: "ab", table: [[1, 0], [0, 1]] };
  try { if (/^[{[]/.test(text.trim())) start = readTable(text); } catch { /* what is typed is no table yet */ }
  const place = element("div", {}, editor(start, changed));
  const pasted = element("textarea", { id: "pasted", rows: 3, placeholder: "1 0\n0 1" });
  const take = told(() => { const found = readTable(pasted.value); place.replaceChildren(editor(found, changed)); changed(found); });
  return element("div", {}, place, labelled("Next states, one row per state", pasted), element("button", { id: "take", onclick: take }, "Take this table"));
}

function showCircuit(out, found, off, ablate) {
  const names = found.states, wrong = found.answers.map((each, at) => each !== found.truth[at]), cell = (each) => names[each] ?? String(each);
  const line = (title, cells) => element("tr", {}, element("th", {}, title), ...cells);
  const word = element("table", { class: "word" }, line("letter", found.word.map((each) => element("td", { class: "mono" }, found.letters[each]))),
    line("answer", found.answers.map((each, at) => element("td", { class: `mono ${wrong[at] ? "fails" : "holds"}` }, cell(each)))), line("truth", found.truth.map((each) => element("td", { class: "mono muted" }, cell(each)))));
  const right = element("p", { id: "right", class: `big ${found.right === 1 ? "holds" : "fails"}` }, `${Math.round(100 * found.right)} % of the states are right${off ? ` without head ${off}` : ""}.`);
  const facts = Object.entries(found.algebra).filter(([, value]) => typeof value !== "object").map(([key, value]) => element("tr", {}, element("th", {}, key), element("td", {}, String(value))));
  const heads = (layer, depth) => layer.heads.map((head, index) => {
    const key = `${depth}.${index}`, gone = off === key;
    return element("figure", {}, arcs(head, found), element("button", { "aria-pressed": String(gone), onclick: () => ablate(key) }, gone ? "Give the head back" : `Remove head ${index + 1}`));
  });
  const table = found.transitions, drawn = table.length && table.length <= 12 && picture({ letters: found.letters, table, names, start: found.start });
  const positions = (rows) => { const shift = rows[0].length - found.word.length; return d3.range(rows[0].length).map((at) => (at < shift ? "" : found.letters[found.word[at - shift]])); };
  out.replaceChildren(panel("", right, element("div", { class: "wide" }, word), element("p", { class: "muted" }, `${found.note ? `${found.note}; ` : ""}${d3.format(",")(found.parameters)} parameters.`), code(found.code)),
    panel("Who reads whom", ...found.layers.map((layer, depth) => element("div", {}, element("h4", {}, `Layer ${depth + 1}`), element("div", { class: "wide heads" }, ...heads(layer, depth))))),
    found.streams.length ? panel("The stream after each layer (channels × positions)", element("div", { class: "wide streams" }, ...found.streams.map((stream, depth) => element("figure", {}, element("figcaption", {}, depth ? `after layer ${depth}` : "letters and positions"),
      heat(stream.rows, { columnNames: positions(stream.rows), rowNames: stream.rows.map((_, each) => `${each + 1}`), high: d3.max(stream.rows.flat(), Math.abs) || 1, about: stream.name }))))) : "",
    panel("The machine", element("div", { class: "columns even" }, drawn || element("p", { class: "muted" }, `${names.length} states`), element("table", {}, ...facts))));
}

function arcs(weights, found) {
  const step = Math.max(18, Math.min(44, 640 / weights.length)), width = step * weights.length + 20, height = 84;
  const svg = d3.create("svg").attr("viewBox", `0 0 ${width} ${height}`).attr("width", width).attr("role", "img").attr("aria-label", "attention arcs");
  const x = (index) => 10 + step * (index + 0.5), shift = weights.length - found.word.length; // a scan begins with padding
  weights.forEach((row, query) => row.forEach((weight, key) => {
    if (weight < 0.04) return;
    const lift = 14 + Math.min(52, 7 * Math.abs(query - key)), foot = height - 18;
    svg.append("path").attr("d", `M${x(key)},${foot}C${x(key)},${foot - lift} ${x(query)},${foot - lift} ${x(query)},${foot}`).attr("fill", "none").attr("stroke", key < shift ? "#8a8d91" : colour(found.word[key - shift]))
      .attr("stroke-opacity", Math.min(1, weight)).attr("stroke-width", 2).append("title").text(`position ${query + 1 - shift} reads ${key + 1 - shift}: ${weight.toFixed(3)}`);
  }));
  found.word.forEach((each, index) => { svg.append("text").attr("x", x(index + shift)).attr("y", height - 4).attr("text-anchor", "middle").attr("fill", "currentColor").attr("font-size", 12).text(found.letters[each]); });
  return svg.node();
}
