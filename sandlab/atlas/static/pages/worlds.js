// Worlds: all of them; one with its settings, examples, the oracle on what is typed, and a game of guessing.
import { ask, code, colour, element, go, inTurn, joined, letters, main, panel, plot, told, view } from "../base.js";

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
            element("span", { class: "tag" }, each.chapter),
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
  const now = { settings: JSON.parse(state.settings ?? "{}"), seed: Number(state.seed ?? 0), text: state.text },
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

function remember(name, { settings, seed, text }) {
  go(
    "world",
    { name, settings: Object.keys(settings).length ? JSON.stringify(settings) : "", seed: seed || "", text },
    true,
  );
}

function partsOf(facts, name, now, fresh) {
  const [first, ...rest] = facts.text.split("\n");
  const about = panel(
    "",
    element("p", { class: "lead" }, first),
    rest.length > 1 &&
      element("details", {}, element("summary", {}, "More"), element("pre", {}, rest.join("\n").trim())),
    code(facts.code),
  );
  if (!facts.tokens) return [about, panel(`${facts.points.length} examples`, pointsOf(facts))];
  return [about, typingPanel(facts, name, now), examplesPanel(facts, fresh), gamePanel(facts, name, now.settings)];
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

function control(field, settings, changed) {
  const value = settings[field.name] ?? field.value,
    id = `field-${field.name}`;
  const shown = element("output", {}, String(value));
  const ranged = (low, high, step) =>
    element("input", { id, type: "range", min: low, max: Math.max(low, high), step, value });
  const low = field.low ?? 0,
    given = Number(field.value);
  let input;
  if (field.kind === "bool") {
    input = element(
      "select",
      { id },
      ...["True", "False"].map((each) =>
        element(
          "option",
          { value: each.toLowerCase(), selected: String(value).toLowerCase() === each.toLowerCase() },
          each,
        ),
      ),
    );
  } else if (field.choices)
    input = element(
      "select",
      { id },
      ...field.choices.map((each) => element("option", { value: each, selected: each === String(value) }, each)),
    );
  else if (field.kind === "int" && given >= low)
    input = ranged(low, Math.min(field.high ?? Infinity, Math.max(16, 4 * given)), 1);
  else if (field.kind === "float" && given >= low && field.low != null)
    input = ranged(low, field.high ?? Math.max(1, 4 * given), "any");
  else if (field.kind === "float" && field.high == null)
    input = ranged(-Math.max(2, 4 * Math.abs(given)), Math.max(2, 4 * Math.abs(given)), "any");
  else input = element("input", { id, type: "text", value });
  input.addEventListener("input", () => {
    shown.textContent = field.kind === "float" ? String(Number(Number(input.value).toPrecision(3))) : input.value;
  });
  input.addEventListener(input.type === "range" ? "input" : "change", () =>
    changed(
      input.type === "range" && field.kind === "float"
        ? String(Number(Number(input.value).toPrecision(3)))
        : input.value,
    ),
  );
  return element(
    "div",
    { class: "field" },
    element("label", { for: id }, field.name, input.type === "range" && shown),
    input,
  );
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

function gamePanel(facts, name, settings) {
  const board = element("div", { id: "board" }),
    score = element("p", { id: "score", "aria-live": "polite" });
  const rival = element("select", { id: "rival" }, element("option", { value: "" }, "the oracle alone"));
  ask("/kept")
    .then(({ kept }) =>
      rival.append(
        ...kept
          .filter((each) => each.world === name)
          .map((each) =>
            element(
              "option",
              { value: each.name },
              `the oracle and a kept ${each.model} (loss ${each.loss?.toFixed(3)})`,
            ),
          ),
      ),
    )
    .catch(() => {});
  let game;
  const begin = told(async () => {
    const seed = Math.floor(Math.random() * 1e6),
      kept = rival.value;
    const fresh = await view("world", { name, settings: JSON.stringify(settings), seed, examples: 1 });
    const row = fresh.rows[0].slice(0, 40),
      text = joined(row, facts.letters);
    const found = await (kept
      ? view("guess", { kept, text })
      : view("predict", { name, settings: JSON.stringify(settings), text }));
    if (!found.probs || found.probs.length < 3 || !facts.follows) {
      board.replaceChildren(
        element(
          "p",
          { class: "muted" },
          "This world asks for one answer at the end: there is nothing to guess letter by letter.",
        ),
      );
      return;
    }
    game = {
      row,
      laws: found.probs,
      model: found.model,
      at: Math.min(3, row.length - 2),
      right: { you: 0, "the oracle": 0, "the model": 0 },
      rounds: 0,
    };
    score.textContent = "";
    turn();
  });
  function turn() {
    const done = game.rounds >= 10 || game.at >= game.row.length - 1;
    board.replaceChildren(
      letters(game.row.slice(0, game.at + 1), facts.letters),
      done
        ? element("p", {}, "Finished.")
        : element(
            "div",
            { class: "keys" },
            ...facts.answers
              .map((letter, number) => element("button", { onclick: () => guess(number) }, letter))
              .slice(0, 30),
          ),
    );
  }
  function guess(number) {
    const truth = game.row[game.at + 1],
      best = (law) => law.indexOf(Math.max(...law)),
      law = game.laws[game.at];
    game.right.you += number === truth;
    game.right["the oracle"] += best(law) === truth;
    if (game.model) game.right["the model"] += best(game.model[game.at]) === truth;
    game.rounds += 1;
    game.at += 1;
    const players = Object.entries(game.right)
      .filter(([who]) => game.model || who !== "the model")
      .map(([who, right]) => `${who} ${right}`);
    score.textContent = `Right: ${players.join(", ")}, of ${game.rounds}. It was ${facts.letters[truth]}; the oracle gave it ${(100 * law[truth]).toFixed(0)} %.`;
    turn();
  }
  return panel(
    "Guess the next letter",
    element(
      "div",
      { class: "row" },
      element("div", { class: "field" }, element("label", { for: "rival" }, "Against"), rival),
      element("button", { id: "play", onclick: begin }, "Play ten rounds"),
    ),
    board,
    score,
  );
}
