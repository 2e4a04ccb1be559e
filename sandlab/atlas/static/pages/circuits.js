// Circuits: a regular expression, a table or a drawing; its algebra, its compiled model, and every layer at work.
import {
  choose,
  code,
  colour,
  element,
  go,
  heat,
  labelled,
  later,
  main,
  panel,
  slider,
  swatches,
  told,
  view,
  waiting,
} from "../base.js";
import { crowded, editor, picture, readTable, written } from "./automaton.js";

const heats = (power) => 10 ** Number(power);

export async function circuitsPage(state) {
  const form = {
    machine: element("textarea", { id: "machine", rows: 2, spellcheck: "false" }),
    length: element("input", { id: "length", type: "number", min: 1, max: 256, value: state.length ?? 16 }),
    method: choose("method", ["auto", "scan", "krohn-rhodes", "sequential", "rnn"], state.method ?? "auto"),
    word: element("input", {
      id: "word",
      type: "text",
      value: state.word ?? "",
      spellcheck: "false",
      autocomplete: "off",
    }),
  };
  form.machine.value = state.machine ?? "(abab)*";
  const [bits, bitsField] = slider("bits", "Bits behind the point", {
    min: 0,
    max: 32,
    step: 1,
    value: state.bits ?? 32,
    show: (value) => (Number(value) >= 32 ? "all" : value),
  });
  const [warmth, warmthField] = slider("temperature", "Temperature of the attention", {
    min: -1,
    max: 5,
    step: 0.1,
    value: Math.log10(Number(state.temperature ?? 1)),
    show: (value) => `× ${d3.format(".3~g")(heats(value))}`,
  });
  const out = element("div", {}, waiting()),
    draw = element("details", { class: "panel" }, element("summary", {}, "Draw an automaton, or paste a table"));
  let off = state.off ?? "",
    asked = 0;
  const now = () => ({
    machine: form.machine.value,
    length: form.length.value,
    method: form.method.value,
    word: form.word.value,
    ...(Number(bits.value) < 32 ? { bits: bits.value } : {}),
    ...(Number(warmth.value) ? { temperature: String(heats(warmth.value)) } : {}),
    ...(off ? { off } : {}),
  });
  const compute = told(async () => {
    const turn = (asked += 1),
      wanted = now();
    go("circuits", wanted, true);
    out.className = "busy";
    try {
      const found = await view("circuit", wanted);
      if (turn === asked) showCircuit(out, found, off, ablate);
    } finally {
      if (turn === asked) out.className = "";
    }
  });
  const update = later(120, compute);
  const ablate = told(async (head) => {
    off = off === head ? "" : head;
    await compute();
    out.querySelector(`[data-head="${head}"]`)?.focus(); // drawn anew; the keyboard stays where it was
  });
  for (const input of [...Object.values(form), bits, warmth]) input.addEventListener("input", update);
  draw.append(
    drawing((automaton) => {
      form.machine.value = written(automaton);
      if ([...form.word.value].some((letter) => !automaton.letters.includes(letter))) form.word.value = "";
      update();
    }, form.machine.value),
  );
  main.replaceChildren(
    element("h2", {}, "Automata as transformers with exact weights"),
    element(
      "div",
      { class: "columns" },
      element(
        "div",
        {},
        panel(
          "",
          labelled("Regular expression, name (S5, C6, …) or JSON table", form.machine),
          labelled("Longest word", form.length),
          labelled("Construction", form.method),
          labelled("A word (empty: an example)", form.word),
          bitsField,
          warmthField,
        ),
        draw,
      ),
      out,
    ),
  );
  await compute();
}

function drawing(changed, text) {
  let start = readTable("1 0\n0 1");
  try {
    if (/^[{[]/.test(text.trim())) start = readTable(text);
  } catch {
    /* what is typed is no table yet */
  }
  const place = element("div", {}, editor(start, changed));
  const pasted = element("textarea", { id: "pasted", rows: 3, placeholder: "1 0\n0 1" });
  const take = told(() => {
    const found = readTable(pasted.value);
    place.replaceChildren(editor(found, changed));
    changed(found);
  });
  return element(
    "div",
    {},
    place,
    labelled("Next states, one row per state", pasted),
    element("button", { id: "take", onclick: take }, "Take this table"),
  );
}

const headName = (off) =>
  off
    .split(".")
    .map((each) => Number(each) + 1)
    .join(".");
const membership = ({ word, letters, accepted }) =>
  `${word.map((each) => letters[each]).join("")} is ${accepted ? "a" : "no"} word of the language.`;

function showCircuit(out, found, off, ablate) {
  const names = found.states,
    wrong = found.answers.map((each, at) => each !== found.truth[at]),
    cell = (each) => names[each] ?? String(each);
  const line = (title, cells) => element("tr", {}, element("th", {}, title), ...cells);
  const word = element(
    "table",
    { class: "word" },
    line(
      "letter",
      found.word.map((each) => element("td", { class: "mono" }, found.letters[each])),
    ),
    line(
      "answer",
      found.answers.map((each, at) => element("td", { class: `mono ${wrong[at] ? "fails" : "holds"}` }, cell(each))),
    ),
    line(
      "truth",
      found.truth.map((each) => element("td", { class: "mono muted" }, cell(each))),
    ),
  );
  const right = element(
    "p",
    { id: "right", class: `big ${found.right === 1 ? "holds" : "fails"}` },
    `${Math.round(100 * found.right)} % of the states are right${off ? ` without head ${headName(off)}` : ""}.`,
  );
  const belongs = found.accepted != null && element("p", { id: "accepted" }, membership(found));
  const facts = Object.entries(found.algebra)
    .filter(([, value]) => typeof value !== "object")
    .map(([key, value]) => element("tr", {}, element("th", {}, key), element("td", {}, String(value))));
  const heads = (layer, depth) =>
    layer.heads.map((head, index) => {
      const key = `${depth}.${index}`,
        gone = off === key;
      return element(
        "figure",
        {},
        arcs(head, found),
        element(
          "button",
          { "aria-pressed": String(gone), "data-head": key, onclick: () => ablate(key) },
          gone ? "Give the head back" : `Remove head ${index + 1}`,
        ),
      );
    });
  const table = found.transitions,
    drawn =
      table.length &&
      table.length <= 12 &&
      element("div", {}, picture({ ...found, table, names }), crowded(table) && swatches(found.letters));
  const positions = (rows) => {
    const shift = rows[0].length - found.word.length;
    return d3.range(rows[0].length).map((at) => (at < shift ? "" : found.letters[found.word[at - shift]]));
  };
  out.replaceChildren(
    panel(
      "",
      right,
      element("div", { class: "wide" }, word),
      belongs,
      element(
        "p",
        { class: "muted" },
        `${found.note ? `${found.note}; ` : ""}${d3.format(",")(found.parameters)} parameters.`,
      ),
      code(found.code),
    ),
    panel(
      "The machine",
      element(
        "div",
        { class: "beside" },
        drawn || element("p", { class: "muted" }, `${names.length} states`),
        element("div", {}, element("table", {}, ...facts), ...decomposition(found.algebra.decomposition ?? [])),
      ),
    ),
    found.layers.length
      ? panel(
          "Who reads whom",
          element(
            "p",
            { class: "muted" },
            "An arc leads from a letter to the position that reads it; a loop reads itself. Grey: the places before the word.",
          ),
          ...found.layers.map((layer, depth) =>
            element(
              "div",
              {},
              element("h4", {}, `Layer ${depth + 1}`),
              element("div", { class: "wide heads" }, ...heads(layer, depth)),
            ),
          ),
        )
      : "",
    found.streams.length
      ? panel(
          "The stream after each layer: channels by position",
          element(
            "div",
            { class: "wide streams" },
            ...found.streams.map((stream, depth) =>
              element(
                "figure",
                {},
                element("figcaption", {}, depth ? `after layer ${depth}` : "letters and positions"),
                heat(stream.rows, {
                  columnNames: positions(stream.rows),
                  rowNames: stream.rows.map((_, each) => found.channels[each] ?? `${each + 1}`),
                  high: d3.max(stream.rows.flat(), Math.abs) || 1,
                  about: stream.name,
                  size: Math.max(9, Math.min(16, 330 / stream.rows[0].length)),
                }),
              ),
            ),
          ),
        )
      : "",
  );
}

// The components of the holonomy decomposition, from the top: which set each divides, and what permutes its parts.
function decomposition(components) {
  if (!components.length) return [];
  const set = (names) => (names.length > 8 ? `${names.length} states` : `{${names.join(", ")}}`),
    tiles = (each) => (each.tiles.length > 8 ? `${each.tiles.length} parts` : each.tiles.map(set).join(" "));
  const rows = components
    .slice(0, 12)
    .map((each) =>
      element(
        "tr",
        {},
        element("td", {}, String(each.level)),
        element("td", {}, set(each.set)),
        element("td", {}, tiles(each)),
        element("td", {}, each.group || "none: resets"),
      ),
    );
  const more = components.length > 12 && element("p", { class: "muted" }, `and ${components.length - 12} more`);
  return [
    element("h4", {}, "Decomposition (Krohn–Rhodes, holonomy form)"),
    element(
      "div",
      { class: "wide" },
      element(
        "table",
        { id: "decomposition" },
        element("tr", {}, ...["level", "divides", "into", "group"].map((text) => element("th", {}, text))),
        ...rows,
      ),
    ),
    more,
  ];
}

function arcs(weights, found) {
  const shift = weights.length - found.word.length,
    step = Math.max(18, Math.min(27, 560 / found.word.length)),
    pad = Math.min(7, step); // a scan begins with padding
  const x = (index) => 10 + (index < shift ? pad * (index + 0.5) : pad * shift + step * (index - shift + 0.5)),
    width = 20 + pad * shift + step * found.word.length;
  const long = d3.max(found.word, (each) => found.letters[each].length) > 2,
    below = long ? 48 : 18,
    lifted = (far) => 14 + Math.min(52, far / 5);
  const farthest = d3.max(weights, (row, query) =>
      d3.max(row, (weight, key) => (weight < 0.04 ? 0 : Math.abs(x(query) - x(key)))),
    ),
    foot = Math.max(26, 0.75 * lifted(farthest) + 8),
    height = foot + below;
  const svg = d3
    .create("svg")
    .attr("viewBox", `0 0 ${width} ${height}`)
    .attr("width", width)
    .attr("role", "img")
    .attr("aria-label", "attention arcs");
  weights.forEach((row, query) =>
    row.forEach((weight, key) => {
      if (weight < 0.04) return;
      const far = Math.abs(x(query) - x(key)),
        lift = lifted(far),
        loop = Math.min(13, pad);
      const path =
        query === key
          ? `M${x(key)},${foot}c${-loop},${-22} ${loop},${-22} 0,0`
          : `M${x(key)},${foot}C${x(key)},${foot - lift} ${x(query)},${foot - lift} ${x(query)},${foot}`;
      svg
        .append("path")
        .attr("d", path)
        .attr("fill", "none")
        .attr("stroke", key < shift ? "#8a8d91" : colour(found.word[key - shift]))
        .attr("stroke-opacity", Math.min(1, weight))
        .attr("stroke-width", 2)
        .append("title")
        .text(`position ${query + 1 - shift} reads ${key + 1 - shift}: ${weight.toFixed(3)}`);
    }),
  );
  found.word.forEach((each, index) => {
    const text = svg.append("text").attr("fill", "currentColor").attr("font-size", 12).text(found.letters[each]);
    if (long)
      text.attr("transform", `translate(${x(index + shift) + 4},${foot + 6})rotate(-90)`).attr("text-anchor", "end");
    else
      text
        .attr("x", x(index + shift))
        .attr("y", height - 4)
        .attr("text-anchor", "middle");
  });
  return svg.node();
}
