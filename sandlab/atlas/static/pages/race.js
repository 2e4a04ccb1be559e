// Algorithms at equal cost: how far what they draw is from the target, and from their own exact laws.
import { code, colour, element, go, panel, plot, slider, swatches, told, view } from "../base.js";
import { gameForm } from "./language.js";

export async function raceTab(body, state) {
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
  const [values, form] = gameForm(state, { inputs: { draws }, fields: [drawsField] }, (asked) => load(asked));
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
