// Worlds: all of them; one with its settings, examples, the oracle on what is typed, and a game of guessing.
import { code, colour, element, go, inTurn, joined, letters, main, panel, plot, told, view } from "../base.js";
import { gamePanel } from "./game.js";
import { control, readSettings } from "./settings.js";

const SHOWN = 72; // letters of an example
const MEMBERSHIP = {
  word: ["A word of the language.", "holds"],
  beginning: ["No word of the language yet, but it can still become one.", "inconclusive"],
  outside: ["Outside the language: no continuation belongs to it.", "fails"],
  "no word": ["No word of the language.", "fails"],
};

export async function worldsPage(state) {
  const { worlds } = await view("worlds");
  const list = element("div", { class: "grid" }),
    count = element("h2", {});
  const search = element("input", {
    type: "search",
    placeholder: "Search worlds",
    "aria-label": "Search worlds",
    value: state.words ?? "",
  });
  function fill() {
    const wanted = search.value.toLowerCase();
    go("worlds", { words: search.value }, true);
    const found = worlds.filter((each) =>
      `${each.name} ${each.summary} ${each.chapter}`.toLowerCase().includes(wanted),
    );
    count.textContent = `${found.length} worlds`;
    list.replaceChildren(
      ...found.map((each) =>
        element(
          "a",
          { class: "panel", href: `#/world?name=${encodeURIComponent(each.name)}` },
          element(
            "div",
            { class: "head" },
            element("strong", {}, each.name),
            element("span", { class: "tag" }, each.chapter.replaceAll("_", " ")),
          ),
          element("div", { class: "muted" }, each.summary),
        ),
      ),
    );
  }
  search.addEventListener("input", fill);
  fill();
  main.replaceChildren(count, element("p", {}, search), list, code('sl.names("worlds")\nsl.get("worlds", "dyck")()'));
}

export async function worldPage(state) {
  const now = {
      settings: readSettings(state.settings),
      seed: Number(state.seed ?? 0),
      text: state.text,
      against: state.against,
    },
    right = element("div", {});
  let asked = 0;
  const soon = inTurn(told(refresh));
  // The settings stay where they are, with the keyboard in them; what depends on them is drawn anew.
  async function refresh() {
    const turn = (asked += 1),
      facts = await view("world", {
        name: state.name,
        settings: JSON.stringify(now.settings),
        seed: now.seed,
        examples: 8,
      });
    if (turn === asked)
      right.replaceChildren(
        ...partsOf(facts, state.name, now, () => {
          now.seed += 1;
          remember(state.name, now);
          told(refresh)();
        }),
      );
    return facts;
  }
  const facts = await refresh();
  const controls = panel(
    "Settings",
    ...facts.fields.map((field) =>
      control(field, now.settings, (value) => {
        now.settings[field.name] = value;
        remember(state.name, now);
        soon();
      }),
    ),
  );
  main.replaceChildren(
    element("h2", {}, element("a", { class: "back", href: "#/worlds" }, "Worlds"), " / ", facts.name),
    element("div", { class: "columns" }, controls, right),
  );
}

const texts = (settings) => (Object.keys(settings).length ? JSON.stringify(settings) : "");
function remember(name, { settings, seed, text, against }) {
  go("world", { name, settings: texts(settings), seed: seed || "", text, against }, true);
}

function partsOf(facts, name, now, fresh) {
  const [first, ...rest] = facts.text.split("\n");
  const train = new URLSearchParams({ world: name, settings: texts(now.settings) });
  const about = panel(
    "",
    element("p", { class: "lead" }, first),
    rest.length > 1 &&
      element("details", {}, element("summary", {}, "More"), element("pre", {}, rest.join("\n").trim())),
    facts.tokens && element("p", {}, element("a", { href: `#/training?${train}` }, "Train a model on it")),
    code(facts.code),
  );
  if (!facts.tokens) return [about, panel(`${facts.points.length} examples`, pointsOf(facts))];
  return [about, typingPanel(facts, name, now), examplesPanel(facts, fresh), gamePanel(facts, name, now, remember)];
}

// Examples that are numbers: a histogram of one coordinate, or two of them as dots; coloured by their answers.
function pointsOf({ points, kinds }) {
  const rows = points.map((each, index) => ({ x: each[0], y: each[1], kind: kinds[index] ?? "examples" })),
    names = [...new Set(rows.map((row) => row.kind))].sort(),
    one = points[0].length < 2;
  const options = {
    most: 620,
    height: 300,
    marginLeft: 50,
    marginBottom: 42,
    color: { legend: names.length > 1, domain: names, range: names.map((_, index) => colour(index)) },
    x: { label: one ? "value" : "first coordinate" },
  };
  const marks = one
    ? [Plot.rectY(rows, Plot.binX({ y: "count" }, { x: "x", fill: "kind", thresholds: 40 })), Plot.ruleY([0])]
    : [Plot.dot(rows, { x: "x", y: "y", r: 2.5, fill: "kind", fillOpacity: 0.7 })];
  return plot("examples", { ...options, y: { label: one ? "examples" : "second coordinate" }, marks });
}

function examplesPanel(facts, fresh) {
  const lanes = Object.keys(facts.truth);
  return panel(
    "Examples",
    element("button", { onclick: fresh }, "Fresh examples"),
    ...facts.rows.map((row, index) => {
      const truth = Object.fromEntries(lanes.map((name) => [name, facts.truth[name][index]]));
      const more = row.length > SHOWN && element("span", { class: "muted" }, `… ${row.length - SHOWN} more`);
      return element("div", { class: "example" }, letters(row.slice(0, SHOWN), facts.letters, truth), more);
    }),
    lanes.length > 0 && element("p", { class: "muted" }, `Under the letters: ${lanes.slice(0, 2).join(", then ")}.`),
  );
}

function typingPanel(facts, name, now) {
  if (facts.letters.some((each) => each.includes(" ")))
    return panel(
      "Type your own",
      element("p", { class: "muted" }, "The letters of this world contain spaces: its strings are drawn, not typed."),
    );
  const start = now.text ?? joined(facts.rows[0].slice(0, facts.typed), facts.letters);
  const input = element("input", { id: "typed", type: "text", value: start, spellcheck: "false", autocomplete: "off" });
  const word = element("div", { class: "letters" }),
    under = element("p", { class: "muted" }),
    bars = element("div", {}),
    verdict = element("p", { id: "verdict" }),
    python = element("div", {});
  let found,
    at,
    drawn = [];
  // Letters that have not changed stay where they are: a long text costs no more to type than a short one.
  function write() {
    const lanes = Object.values(found.hidden),
      keys = found.row.map((token, index) => [found.letters[token], ...lanes.map((values) => values[index])].join(" "));
    const same = keys.findIndex((key, index) => key !== drawn[index]),
      kept = same < 0 ? keys.length : same;
    const rest = Object.fromEntries(Object.entries(found.hidden).map(([name, values]) => [name, values.slice(kept)]));
    [...word.children].slice(kept).forEach((each) => each.remove());
    for (const each of [...letters(found.row.slice(kept), found.letters, rest).children]) {
      each.setAttribute("role", "button");
      word.append(each);
    }
    drawn = keys;
  }
  // One letter is in the order of the tab key; the arrow keys choose its neighbours.
  function choose(index) {
    for (const each of word.querySelectorAll(".now")) {
      each.className = "";
      each.tabIndex = -1;
    }
    at = Math.max(0, Math.min(index, word.children.length - 1));
    word.children[at].className = "now";
    word.children[at].tabIndex = 0;
    bars.replaceChildren(...lawOf(found, at));
  }
  word.addEventListener("click", (event) => {
    const index = [...word.children].indexOf(event.target.closest("[role=button]"));
    if (index >= 0) {
      choose(index);
      word.children[at].focus();
    }
  });
  word.addEventListener("keydown", (event) => {
    const next = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: word.children.length - 1 }[event.key];
    if (next != null) {
      event.preventDefault();
      choose(next);
      word.children[at].focus();
    }
  });
  function show() {
    write();
    const [text, kind] = MEMBERSHIP[found.membership] ?? ["", ""],
      lanes = Object.keys(found.hidden);
    verdict.textContent = text;
    verdict.className = kind;
    under.textContent = lanes.length ? `Under the letters: ${lanes.join(", then ")}.` : "";
    python.replaceChildren(code(found.code));
    choose(found.row.length - 1);
  }
  async function read() {
    found = await view("predict", { name, settings: JSON.stringify(now.settings), text: input.value });
    show();
  }
  const update = inTurn(told(read));
  input.addEventListener("input", () => {
    now.text = input.value;
    remember(name, now);
    update();
  });
  // An example that cannot be read back as text is no mistake of the reader's.
  if (now.text == null)
    read().catch((problem) => bars.replaceChildren(element("p", { class: "muted" }, problem.message)));
  else update();
  return panel(
    "Type your own",
    element("label", { for: "typed" }, "A string of this world's letters"),
    input,
    word,
    under,
    verdict,
    bars,
    python,
  );
}

function lawOf(found, at) {
  if (!found.probs) return [element("p", { class: "muted" }, `No law of what comes next: ${found.why}.`)];
  const probs = found.probs[Math.min(at, found.probs.length - 1)];
  const rows = probs
    .map((p, index) => ({ letter: found.answers[index] ?? String(index), p, index }))
    .filter((row) => probs.length <= 12 || row.p > 0.002);
  const picture = plot("the oracle's law of the next letter", {
    most: 560,
    height: 62 + 22 * rows.length,
    marginLeft: 70,
    marginRight: 46,
    marginBottom: 40,
    x: { domain: [0, 1], label: found.follows ? "probability of what comes next" : "probability of the answer" },
    y: { label: null, domain: rows.map((r) => r.letter), tickSize: 0 },
    marks: [
      Plot.barX(rows, { x: "p", y: "letter", fill: (r) => colour(r.index), rx: 2 }),
      Plot.text(rows, {
        x: "p",
        y: "letter",
        text: (r) => r.p.toFixed(3),
        dx: 5,
        textAnchor: "start",
        fill: "currentColor",
      }),
      Plot.ruleX([0]),
    ],
  });
  const list = element("span", { id: "law", class: "skip", "data-letters": found.row.length }, JSON.stringify(probs));
  return [
    element(
      "p",
      { class: "muted" },
      found.probs.length < found.row.length
        ? "At the end of the text:"
        : `${found.follows ? "After" : "At"} letter ${at + 1} (choose another by a click or with the arrow keys):`,
    ),
    picture,
    list,
  ];
}
