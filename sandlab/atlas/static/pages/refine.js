// The steps of parallel decoding: spins drawn again one at a time, in blocks, in two colours, or all at once.
import {
  choose,
  code,
  colour,
  element,
  go,
  labelled,
  later,
  panel,
  plot,
  slider,
  swatches,
  told,
  view,
} from "../base.js";

export async function refineTab(body, state) {
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
