// Claims: interval, bound and the source's number on one axis; filters, history, figures, and running it now.
import { ask, choose, code, element, go, later, main, panel, pictured, started, told, view } from "../base.js";
import { bounds, claimCard, digits, legend } from "./axis.js";

const KINDS = ["all", "near the edge", "quick", "full", "with the source's number", "stale", "reduced"];
const RUNS = { quick: "quick run", full: "full run", null: "null run, where there is nothing to find" };

export async function claimsPage(state) {
  const { claims } = await view("claims");
  if (!claims.length) {
    main.replaceChildren(
      element("h2", {}, "Claims of the sources, judged"),
      panel(
        "",
        element(
          "p",
          {},
          "No recorded run is here: they are part of a checkout of the repository. Judge a study yourself:",
        ),
        element("pre", {}, "sandlab run markov/weight-tying"),
      ),
    );
    return;
  }
  const every = (name, values) => [["", `all ${name}`], ...values];
  const filter = {
    chapter: choose(
      "chapter",
      every("chapters", [...new Set(claims.map((each) => each.chapter))].sort()),
      state.chapter,
    ),
    source: choose(
      "source",
      every(
        "sources",
        [...new Set(claims.map((each) => each.source))]
          .sort()
          .map((each) => [each, each.length > 60 ? `${each.slice(0, 58)}…` : each]),
      ),
      state.source,
    ),
    verdict: choose("verdict", every("verdicts", ["holds", "fails", "inconclusive"]), state.verdict),
    edge: choose(
      "which",
      KINDS.map((each) => [each === "all" ? "" : each, each]),
      state.edge,
    ),
    words: element("input", {
      id: "words",
      type: "search",
      placeholder: "Search statements",
      value: state.words ?? "",
    }),
  };
  for (const [name, input] of Object.entries(filter))
    input.setAttribute(
      "aria-label",
      { edge: "Which", words: "Search statements" }[name] ?? name[0].toUpperCase() + name.slice(1),
    );
  const list = element("div", { id: "claims" }),
    count = element("p", { class: "muted", id: "count" }),
    standings = new Map(),
    rows = new Map();
  let opened = state.open ?? "";
  const values = () => Object.fromEntries(Object.entries(filter).map(([name, input]) => [name, input.value]));
  const fill = told(async () => {
    const chosen = values();
    go("claims", { ...chosen, open: opened }, true);
    let shown = claims.filter(
      (each) =>
        (!chosen.chapter || each.chapter === chosen.chapter) &&
        (!chosen.source || each.source === chosen.source) &&
        (!chosen.verdict || each.verdict === chosen.verdict) &&
        (!chosen.words || `${each.id} ${each.statement}`.toLowerCase().includes(chosen.words.toLowerCase())) &&
        fits(each, chosen.edge),
    );
    if (["stale", "reduced"].includes(chosen.edge)) shown = await standing(shown, chosen.edge, standings, count);
    const number = (verdict) => shown.filter((each) => each.verdict === verdict).length,
      expected = shown.filter((each) => each.verdict === "fails" && !each.expected).length;
    count.textContent = `${shown.length} ${shown.length === 1 ? "claim" : "claims"}: ${number("holds")} hold, ${number("inconclusive")} inconclusive, ${number("fails")} fail${expected ? `, ${expected} of them as expected: printed wrong in the source and corrected here` : ""}.`;
    list.replaceChildren(...shown.map((each) => rows.get(each) ?? keep(each)));
    list.dataset.whole = "yes";
  });
  // A row is drawn once; filters leave it away and bring it back as it was.
  function keep(each) {
    const made = claimRow(each);
    rows.set(each, made);
    if (each.id === opened) showMore(made, each);
    return made;
  }
  const known = new Map(claims.map((each) => [each.id, each]));
  list.addEventListener("click", ({ target }) => {
    const made = target.closest("button.link")?.closest("article.claim");
    if (!made) return;
    const more = made.querySelector(".more");
    if (more) more.remove();
    else showMore(made, known.get(made.dataset.claim));
    opened = more ? "" : made.dataset.claim;
    go("claims", { ...values(), open: opened }, true);
  });
  for (const input of Object.values(filter)) input.addEventListener("input", later(60, fill));
  main.replaceChildren(
    element("h2", {}, "Claims of the sources, judged"),
    element("div", { class: "filters" }, ...Object.values(filter)),
    count,
    legend(),
    list,
    code("sandlab claims", "at the terminal"),
  );
  await fill();
}

function fits(each, edge) {
  if (edge === "quick" || edge === "full") return each.preset === edge;
  if (edge === "near the edge") return nearEdge(each);
  return edge !== "with the source's number" || each.point != null;
}

// Which runs are stale or reduced is found by reading the code: chapter by chapter, when it is asked for.
async function standing(rows, edge, known, count) {
  for (const chapter of new Set(rows.map((each) => each.chapter))) {
    if (known.has(chapter)) continue;
    count.textContent = `Reading the code of ${chapter} …`;
    const { runs } = await view("standing", { chapter });
    known.set(chapter, new Map(runs.map((run) => [`${run.study} ${run.preset}`, run])));
  }
  return rows.filter((each) => {
    const run = known.get(each.chapter).get(`${each.study} ${each.preset}`);
    return run && (edge === "stale" ? run.status !== "current" : run.reduced.length);
  });
}

function nearEdge(each) {
  if (each.mean == null || each.low == null || each.high == null) return false;
  return bounds(each.relation).some(
    (edge) => Number.isFinite(edge) && Math.abs(edge - each.mean) <= 2 * Math.max(each.high - each.low, 1e-12),
  );
}

// What a claim measures, its figures, its recorded verdicts, and the study to be run now.
function detailsOf(each, found) {
  const picture = (figure) => {
    const place = `/figure/${figure.study}/${encodeURIComponent(figure.preset)}/${encodeURIComponent(figure.name)}`;
    const about = { class: "figure", loading: "lazy", alt: `${figure.study}, ${figure.name}`, src: pictured(place) };
    const caption = element("figcaption", {}, `${figure.name}, ${RUNS[figure.preset] ?? figure.preset}`);
    return element("figure", {}, caption, element("div", { class: "wide" }, element("img", about)));
  };
  const rank = (figure) => (figure.preset === each.preset ? 0 : figure.preset === "null" ? 2 : 1);
  const figures = found.figures.toSorted((a, b) => rank(a) - rank(b)).slice(0, 4);
  const reduced = found.reduced.length ? `, smaller than the source: ${found.reduced.join("; ")}` : "";
  return [
    element("p", {}, `${each.quantity}${each.note ? `. ${each.note}` : ""}`),
    element("p", { class: "muted" }, `${each.source}. Recorded run: ${found.status}${reduced}.`),
    ...figures.map(picture),
    element(
      "div",
      { class: "wide" },
      element("table", { class: "past" }, ...found.history.map((entry) => pastRow(entry, each))),
    ),
    element("p", {}, element("button", { class: "main", onclick: () => runStudy(each.study) }, "Run it now")),
    code(`sl.run("${each.study}")`),
  ];
}

// A former verdict; where the claim was another one then, what it had to be.
function pastRow(entry, { relation }) {
  const round = (value) => (value == null ? "?" : digits(value, 4));
  const date = new Date(1000 * (entry.date ?? 0)).toISOString().slice(0, 10);
  const numbers = entry.mean == null ? "" : `${round(entry.mean)}  [${round(entry.low)}, ${round(entry.high)}]`;
  return element(
    "tr",
    {},
    element("td", {}, date),
    element("td", { class: entry.verdict }, entry.verdict),
    element("td", { title: RUNS[entry.preset] }, entry.preset ?? ""),
    element("td", { class: "mono" }, numbers),
    element(
      "td",
      { class: "muted" },
      entry.relation && entry.relation !== relation ? `had to be ${entry.relation}` : "",
    ),
  );
}

const BUTTON = element("button", { class: "link" }, "History and figures");
function claimRow(each) {
  const button = BUTTON.cloneNode(true);
  button.setAttribute("aria-label", `More about ${each.id}`);
  return claimCard(each, [], button);
}

const showMore = told(async (row, each) => {
  const more = element("div", { class: "more" });
  row.append(more);
  more.replaceChildren(...detailsOf(each, await view("history", { claim: each.id })));
});

const runStudy = told(async (study) => {
  const job = await ask("/jobs", { method: "POST", body: JSON.stringify({ kind: "run", study }) });
  started();
  go("lab", { job: job.number });
});
