// Decoding: a walk on the tree of prefixes, algorithms at equal cost, and the steps of parallel decoding.
import {
  choose,
  code,
  colour,
  element,
  go,
  labelled,
  main,
  panel,
  pause,
  plot,
  slider,
  swatches,
  told,
  later,
  view,
} from "../base.js";

const ALGORITHMS = ["rejection", "tokenwise-rejection", "best-of-4", "value-guided", "backtracking", "vgb"];
const RULES = [
  "as many a as b",
  "ends as it begins",
  "no letter twice in a row",
  "an even number of b",
  "exactly one b",
];
const WORDS = {
  "": "the empty string",
  sampled: "writes",
  argmax: "writes the likeliest",
  restored: "puts back",
  tried: "tries",
  erased: "takes back",
  rejected: "the verifier rejects",
};

export async function decodingPage(state) {
  const tab = state.tab ?? "walk",
    open = { walk: walkTab, race: raceTab, refine: refineTab }[tab] ?? walkTab;
  const tabs = [
    ["walk", "A walk"],
    ["race", "A race"],
    ["refine", "In parallel"],
  ].map(([name, title]) =>
    element("a", { href: `#/decoding?tab=${name}`, "aria-current": name === tab ? "page" : null }, title),
  );
  const body = element("div", {});
  main.replaceChildren(
    element("h2", {}, "Decoding"),
    element("nav", { class: "tabs", "aria-label": "Parts" }, ...tabs),
    body,
  );
  await open(body, state);
}

// The form of the two pages on a small language model; `change` gets all values.
function game(state, extra, change) {
  const tokens = choose(
      "tokens",
      [
        ["2", "a, b"],
        ["3", "a, b, c"],
      ],
      state.tokens ?? "2",
    ),
    rule = choose("rule", RULES, state.rule ?? RULES[0]);
  const [depth, depthField] = slider("depth", "Length", { min: 2, max: 6, step: 1, value: state.depth ?? 4 });
  const [error, errorField] = slider("error", "Error of the values", {
    min: 0,
    max: 2,
    step: 0.1,
    value: state.error ?? 0.5,
  });
  const [seed, seedField] = slider("seed", "Language model number", {
    min: 0,
    max: 20,
    step: 1,
    value: state.seed ?? 0,
  });
  const fields = { tokens, rule, depth, error, seed, ...extra.inputs };
  const values = () => Object.fromEntries(Object.entries(fields).map(([name, input]) => [name, input.value]));
  const told = later(80, () => change(values()));
  for (const input of Object.values(fields)) input.addEventListener("input", told);
  return [
    values,
    panel(
      "",
      ...extra.fields,
      labelled("Letters", tokens),
      labelled("The language: a string …", rule),
      depthField,
      errorField,
      seedField,
    ),
  ];
}

async function walkTab(body, state) {
  const algorithm = choose("algorithm", ALGORITHMS, state.algorithm ?? "vgb");
  let run = Number(state.run ?? 1),
    film,
    at = 0,
    playing = false;
  const stage = element("div", { id: "stage", class: "wide" }),
    line = element("p", { id: "moment", class: "lead", "aria-live": "off" }),
    facts = element("p", { class: "muted" }),
    python = element("div", {});
  const time = element("input", {
    id: "moment-at",
    type: "range",
    min: 0,
    max: 0,
    value: 0,
    "aria-label": "Moment of the walk",
  });
  const play = element("button", { class: "main", onclick: () => (playing ? halt() : roll()) }, "Play");
  const halt = () => {
    playing = false;
    play.textContent = "Play";
  };
  function show(moment) {
    at = moment;
    time.value = moment;
    const each = film.moments[moment],
      word = each.string.map((token) => film.letters[token]).join("");
    line.textContent = `${moment}: ${WORDS[each.kind] ?? each.kind}${each.kind ? `, now “${word}”` : ""}`;
    stage.replaceChildren(treeOf(film, moment, stage.clientWidth));
  }
  async function roll() {
    if (at >= film.moments.length - 1) show(0);
    playing = true;
    play.textContent = "Pause";
    while (playing && stage.isConnected && at < film.moments.length - 1) {
      await pause(350);
      if (playing) show(at + 1);
    }
    halt();
  }
  const load = told(async (asked, from = 0) => {
    halt();
    go("decoding", { tab: "walk", ...asked, run, at: from || "" }, true);
    film = await view("walk", { ...asked, run });
    time.max = film.moments.length - 1;
    facts.textContent = `Came to “${film.string.map((token) => film.letters[token]).join("")}” after ${film.calls.oracle_calls} questions to the model and ${film.calls.verifier_calls} to the verifier; ${film.calls.tokens_erased} letters were taken back. Law of what comes out: ${film.law}.`;
    python.replaceChildren(code(film.code));
    show(Math.min(from, film.moments.length - 1));
  });
  const [values, form] = game(state, { inputs: { algorithm }, fields: [labelled("Algorithm", algorithm)] }, (asked) =>
    load(asked),
  );
  time.addEventListener("input", () => {
    halt();
    show(Number(time.value));
  });
  time.addEventListener("change", () => go("decoding", { tab: "walk", ...values(), run, at: time.value }, true));
  const again = element(
    "button",
    {
      id: "again",
      onclick: () => {
        run += 1;
        load(values());
      },
    },
    "Another run",
  );
  const legend = element(
    "p",
    { class: "muted" },
    "Every prefix is a dot, as large as its value; crosses cannot be completed. Dots that were visited are blue, the string being written is the thick path, and what was taken back fades.",
  );
  body.replaceChildren(
    element(
      "div",
      { class: "columns" },
      form,
      element(
        "div",
        {},
        panel("", element("div", { class: "keys" }, play, again), line, stage, time, facts, legend, python),
      ),
    ),
  );
  await load(values(), Number(state.at ?? 0));
}

function treeOf(film, moment, room) {
  const arity = film.letters.length,
    fits = Math.min(room || 760, 960),
    width = Math.max(fits, Math.min(760, 12 * arity ** film.depth)),
    height = 70 + 58 * film.depth,
    key = (string) => string.join("");
  const x = (string) => {
      const place = string.reduce((sum, token) => arity * sum + token, 0);
      return 14 + ((width - 28) * (place + 0.5)) / arity ** string.length;
    },
    y = (level) => 26 + 58 * level;
  const svg = d3
    .create("svg")
    .attr("viewBox", `0 0 ${width} ${height - 20}`)
    .attr("width", width)
    .attr("class", width > fits ? "tree broad" : "tree")
    .attr("role", "img")
    .attr("aria-label", `tree of prefixes at moment ${moment}`);
  const nodes = [];
  const grow = (string) => {
    nodes.push(string);
    if (string.length < film.depth) for (let token = 0; token < arity; token += 1) grow([...string, token]);
  };
  grow([]);
  const number = (string) => string.reduce((sum, token) => arity * sum + token, 0),
    value = (string) => film.values[string.length][number(string)];
  const seen = new Map(),
    gone = new Map(); // how often visited; when last taken back
  film.moments.slice(0, moment + 1).forEach((each, time) => {
    seen.set(key(each.string), (seen.get(key(each.string)) ?? 0) + 1);
    if (each.kind === "erased") {
      const before = film.moments[time - 1].string;
      gone.set(key(before), { time, string: before });
    }
  });
  for (const string of nodes)
    if (string.length)
      svg
        .append("line")
        .attr("x1", x(string.slice(0, -1)))
        .attr("y1", y(string.length - 1))
        .attr("x2", x(string))
        .attr("y2", y(string.length))
        .attr("class", "twig");
  const thick = (string, kind, opacity) =>
    svg
      .append("line")
      .attr("x1", x(string.slice(0, -1)))
      .attr("y1", y(string.length - 1))
      .attr("x2", x(string))
      .attr("y2", y(string.length))
      .attr("class", `bough ${kind}`)
      .attr("stroke-opacity", opacity);
  for (const { time, string } of gone.values()) thick(string, "erased", Math.max(0.12, 0.9 * 0.8 ** (moment - time)));
  const now = film.moments[moment].string;
  now.forEach((_, level) => thick(now.slice(0, level + 1), "written", 1));
  const most = d3.max(film.values.flat()) || 1,
    crowd = arity ** film.depth > 80 ? 0.55 : 1;
  for (const string of nodes) {
    const size = crowd * (3 + 8 * Math.sqrt(value(string) / most)),
      visits = seen.get(key(string)) ?? 0;
    if (value(string) <= 0)
      svg
        .append("path")
        .attr("d", "M-3,-3L3,3M-3,3L3,-3")
        .attr("transform", `translate(${x(string)},${y(string.length)})`)
        .attr("class", "dead");
    else
      svg
        .append("circle")
        .attr("cx", x(string))
        .attr("cy", y(string.length))
        .attr("r", size)
        .attr("class", visits ? "seen" : "unseen")
        .attr("fill-opacity", visits ? Math.min(1, 0.35 + 0.13 * visits) : 1)
        .append("title")
        .text(
          `“${string.map((token) => film.letters[token]).join("")}”: value ${value(string)}, visited ${visits} times`,
        );
  }
  now.forEach((token, level) =>
    svg
      .append("text")
      .attr("x", (x(now.slice(0, level)) + x(now.slice(0, level + 1))) / 2 + 8)
      .attr("y", (y(level) + y(level + 1)) / 2 + 2)
      .attr("class", "step")
      .text(film.letters[token]),
  );
  svg.append("circle").attr("cx", x(now)).attr("cy", y(now.length)).attr("r", 12).attr("class", "here");
  return svg.node();
}

async function raceTab(body, state) {
  const [draws, drawsField] = slider("draws", "Strings of each algorithm", {
    min: 50,
    max: 1000,
    step: 50,
    value: state.draws ?? 200,
  });
  let run = Number(state.run ?? 0),
    chosen = state.shown ?? "vgb";
  const out = element("div", {});
  const load = told(async (asked) => {
    go("decoding", { tab: "race", ...asked, run, shown: chosen }, true);
    out.classList.add("busy");
    const found = await view("race", { ...asked, run });
    out.classList.remove("busy");
    showRace(out, found, chosen, (name) => {
      chosen = name;
      go("decoding", { tab: "race", ...asked, run, shown: chosen }, true);
    });
  });
  const [values, form] = game(state, { inputs: { draws }, fields: [drawsField] }, (asked) => load(asked));
  body.replaceChildren(
    element(
      "div",
      { class: "columns" },
      element(
        "div",
        {},
        form,
        element(
          "button",
          {
            id: "again",
            onclick: () => {
              run += 1;
              load(values());
            },
          },
          "Race again",
        ),
      ),
      out,
    ),
  );
  await load(values());
}

function showRace(out, found, chosen, choosing) {
  const names = found.runners.map((each) => each.name),
    equal = d3.min(found.runners, (each) => each.curve.at(-1)?.cost ?? Infinity);
  const points = found.runners.flatMap((each) => each.curve.map((point) => ({ ...point, name: each.name })));
  const at = (each) => each.curve.filter((point) => point.cost <= equal).at(-1)?.distance;
  const curves = plot("distance from the target by cost", {
    most: 720,
    height: 330,
    marginLeft: 50,
    marginBottom: 42,
    color: { domain: names, range: names.map((_, index) => colour(index)) },
    x: { type: "log", label: "questions asked so far (model and verifier)" },
    y: { label: "total variation from the target", domain: [0, 1] },
    marks: [
      Plot.ruleY(found.runners, { y: "limit", stroke: "name", strokeDasharray: "2 4", strokeOpacity: 0.8 }),
      Plot.line(points, { x: "cost", y: "distance", stroke: "name", strokeWidth: 2 }),
      Plot.ruleX([equal], { strokeDasharray: "4 3", strokeOpacity: 0.5 }),
    ],
  });
  const laws = element("div", {}),
    pick = (name) => {
      laws.replaceChildren(...lawsOf(found, found.runners.find((each) => each.name === name) ?? found.runners[0]));
      choosing(name);
    };
  const rows = found.runners.map((each, index) => {
    const spot = element("i", { class: "spot" });
    spot.style.background = colour(index);
    return element(
      "tr",
      { "data-runner": each.name },
      element("td", {}, spot, element("button", { class: "link", onclick: () => pick(each.name) }, each.name)),
      element("td", {}, each.cost.toFixed(1)),
      element("td", {}, at(each)?.toFixed(3) ?? ""),
      element("td", {}, each.limit.toFixed(3)),
      element("td", {}, each.own.toFixed(3)),
    );
  });
  const head = element(
    "tr",
    {},
    ...[
      "algorithm",
      "questions per string",
      "distance at equal cost",
      "distance of its exact law",
      "drawn from exact law",
    ].map((text) => element("th", {}, text)),
  );
  out.replaceChildren(
    panel(
      "Distance from the target as questions are asked",
      swatches(names),
      curves,
      element(
        "p",
        { class: "muted" },
        "Dotted: the distance of the algorithm's exact law, which more strings do not improve. Dashed: the cost at which all have run.",
      ),
      element("div", { class: "wide" }, element("table", { id: "runners" }, head, ...rows)),
    ),
    panel("What it draws, and what it should", laws, code(found.code)),
  );
  pick(chosen);
}

function lawsOf(found, runner) {
  const rows = found.strings.flatMap((string, index) => [
    { string, p: runner.counts[index] / Math.max(1, runner.drawn), which: "drawn" },
    { string, p: runner.exact[index], which: "exact law" },
  ]);
  const dots = found.strings.map((string, index) => ({ string, p: found.target[index] }));
  const picture = plot(`law of ${runner.name}`, {
    most: 720,
    height: 260,
    marginLeft: 50,
    marginBottom: 60,
    x: { domain: found.strings, label: null, tickRotate: -60 },
    y: { label: "probability" },
    marks: [
      Plot.barY(
        rows.filter((row) => row.which === "drawn"),
        { x: "string", y: "p", fill: colour(0), fillOpacity: 0.45 },
      ),
      Plot.tickY(
        rows.filter((row) => row.which !== "drawn"),
        { x: "string", y: "p", stroke: colour(1), strokeWidth: 3 },
      ),
      Plot.dot(dots, { x: "string", y: "p", stroke: "currentColor", r: 3.5 }),
      Plot.ruleY([0]),
    ],
  });
  const values = element(
    "span",
    { class: "skip", id: "laws" },
    JSON.stringify({ name: runner.name, exact: runner.exact, counts: runner.counts, target: found.target }),
  );
  return [
    element("p", {}, element("strong", {}, runner.name), `: ${runner.drawn} strings. Its law in words: ${runner.law}.`),
    swatches(
      ["drawn", "its exact law", "the target (rings)"],
      (index) => ["#2f7ea873", "#d1495b", "transparent"][index],
    ),
    picture,
    values,
  ];
}

async function refineTab(body, state) {
  const edges = choose("edges", ["cycle", "path", "complete"], state.edges ?? "cycle");
  const make = (id, text, min, max, step, value) => slider(id, text, { min, max, step, value: state[id] ?? value });
  const parts = {
    sites: make("sites", "Sites", 3, 9, 1, 8),
    coupling: make("coupling", "Coupling of neighbours", -1, 1.5, 0.05, 0.5),
    block: make("block", "Sites of a block", 1, 6, 1, 3),
    steps: make("steps", "Steps", 4, 40, 1, 16),
    seed: make("seed", "Seed", 0, 20, 1, 0),
  };
  const inputs = { edges, ...Object.fromEntries(Object.entries(parts).map(([name, [input]]) => [name, input])) },
    out = element("div", {});
  const load = told(async () => {
    const asked = Object.fromEntries(Object.entries(inputs).map(([name, input]) => [name, input.value]));
    go("decoding", { tab: "refine", ...asked }, true);
    showRefinement(out, await view("refine", asked));
  });
  for (const input of Object.values(inputs)) input.addEventListener("input", later(120, load));
  body.replaceChildren(
    element(
      "div",
      { class: "columns" },
      panel("", labelled("Neighbours", edges), ...Object.values(parts).map(([, field]) => field)),
      out,
    ),
  );
  await load();
}

function showRefinement(out, found) {
  const names = found.films.map((film) => film.name),
    curve = (key) => found.films.flatMap((film) => film[key].map((value, step) => ({ step, value, name: film.name })));
  const drawn = (title, key, marks, more) =>
    plot(title, {
      most: 720,
      height: 240,
      marginLeft: 50,
      marginBottom: 42,
      color: { domain: names, range: names.map((_, index) => colour(index)) },
      x: { label: "step (one pass of the model each)" },
      y: { label: title, ...more },
      marks: [Plot.line(curve(key), { x: "step", y: "value", stroke: "name", strokeWidth: 2 }), ...marks],
    });
  const films = found.films.map((film, index) => {
    const title = element("figcaption", {}, film.name);
    title.style.color = colour(index);
    return element("figure", {}, title, spins(film));
  });
  out.replaceChildren(
    panel(
      "One chain, step by step",
      element(
        "p",
        { class: "muted" },
        "Each row is the string after a step, from top to bottom; framed sites were drawn in that step. All begin with every spin down.",
      ),
      element("div", { class: "films wide" }, ...films),
    ),
    panel(
      `${found.chains} chains against the exact law`,
      swatches(names),
      drawn("distance from the exact law", "distance", [], { domain: [0, 1] }),
      drawn("neighbours that agree", "agree", [Plot.ruleY([found.agree], { strokeDasharray: "4 3" })]),
      element(
        "p",
        { class: "muted", id: "agree", "data-exact": found.agree },
        "Dashed: the exact value. All sites at once from the old string is the fastest step, and settles in the wrong law.",
      ),
      code(found.code),
    ),
  );
}

function spins(film) {
  const size = 17,
    width = size * film.states[0].length + 26,
    height = size * film.states.length + 4;
  const svg = d3
    .create("svg")
    .attr("viewBox", `0 0 ${width} ${height}`)
    .attr("width", width)
    .attr("role", "img")
    .attr("aria-label", `states of ${film.name}`);
  film.states.forEach((state, step) => {
    svg
      .append("text")
      .attr("x", 18)
      .attr("y", step * size + 13)
      .attr("text-anchor", "end")
      .attr("font-size", 10)
      .attr("fill", "currentColor")
      .attr("fill-opacity", 0.6)
      .text(step);
    state.forEach((spin, site) => {
      const fresh = step > 0 && film.hidden[step - 1][site];
      svg
        .append("rect")
        .attr("x", 24 + site * size)
        .attr("y", step * size + 2)
        .attr("width", size - 3)
        .attr("height", size - 3)
        .attr("rx", 3)
        .attr("class", `spin ${spin ? "up" : "down"}${fresh ? " fresh" : ""}`);
    });
  });
  return svg.node();
}
