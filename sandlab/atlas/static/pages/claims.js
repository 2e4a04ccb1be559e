// Claims: interval, bound and the source's number on one axis; filters, history, figures, and running it now.
import { ask, choose, code, element, go, later, main, told, view } from "../base.js";

const KINDS = ["all", "near the edge", "quick", "full", "with the source's number", "stale", "reduced"];
const MOST = 150; // rows at once: the rest come with the button below them

export async function claimsPage(state) {
  const { claims } = await view("claims");
  const every = (name, values) => [["", `all ${name}`], ...values];
  const filter = { chapter: choose("chapter", every("chapters", [...new Set(claims.map((each) => each.chapter))].sort()), state.chapter),
    source: choose("source", every("sources", [...new Set(claims.map((each) => each.source))].sort().map((each) => [each, each.length > 60 ? `${each.slice(0, 58)}…` : each])), state.source),
    verdict: choose("verdict", every("verdicts", ["holds", "fails", "inconclusive"]), state.verdict), edge: choose("which", KINDS.map((each) => [each === "all" ? "" : each, each]), state.edge),
    words: element("input", { id: "words", type: "search", placeholder: "Search statements", value: state.words ?? "" }) };
  for (const [name, input] of Object.entries(filter)) input.setAttribute("aria-label", { edge: "Which", words: "Search statements" }[name] ?? name[0].toUpperCase() + name.slice(1));
  const list = element("div", { id: "claims" }), count = element("p", { class: "muted", id: "count" }), standings = new Map();
  let opened = state.open ?? "", room = MOST;
  const values = () => Object.fromEntries(Object.entries(filter).map(([name, input]) => [name, input.value]));
  const fill = told(async () => {
    const chosen = values();
    go("claims", { ...chosen, open: opened }, true);
    let shown = claims.filter((each) => (!chosen.chapter || each.chapter === chosen.chapter) && (!chosen.source || each.source === chosen.source) && (!chosen.verdict || each.verdict === chosen.verdict)
      && (!chosen.words || `${each.id} ${each.statement}`.toLowerCase().includes(chosen.words.toLowerCase())) && fits(each, chosen.edge));
    if (["stale", "reduced"].includes(chosen.edge)) shown = await standing(shown, chosen.edge, standings, count);
    const tally = d3.rollup(shown, (rows) => rows.length, (each) => each.verdict);
    const expected = shown.filter((each) => each.verdict === "fails" && !each.expected).length, number = (verdict) => tally.get(verdict) ?? 0;
    count.textContent = `${shown.length} claims: ${number("holds")} hold, ${number("inconclusive")} inconclusive, ${number("fails")} fail${expected ? `, ${expected} of them as expected: printed wrong in the source and corrected here` : ""}.`;
    const more = shown.length > room && element("button", { onclick: () => { room += 3 * MOST; fill(); } }, `Show more of the ${shown.length}`);
    list.replaceChildren(...shown.slice(0, room).map((each) => claimRow(each, each.id === opened, (id) => { opened = id; go("claims", { ...values(), open: opened }, true); })), more || "");
  });
  for (const input of Object.values(filter)) input.addEventListener("input", later(60, () => { room = MOST; fill(); }));
  main.replaceChildren(element("h2", {}, "Claims of the sources, judged"), element("div", { class: "filters" }, ...Object.values(filter)), count, legend(), list, code("sandlab claims", "at the terminal"));
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
  return rows.filter((each) => { const run = known.get(each.chapter).get(`${each.study} ${each.preset}`); return run && (edge === "stale" ? run.status !== "current" : run.reduced.length); });
}

export function bounds(relation) {
  const numbers = (relation.match(/-?\d+(?:\.\d+)?(?:e[+-]?\d+)?/g) ?? []).map(Number);
  if (/^[>≥]/.test(relation)) return [numbers[0], numbers[1] ?? Infinity]; // "> 1, < 2" has both
  if (/^[<≤]/.test(relation)) return [-Infinity, numbers[0]];
  if (relation.startsWith("in")) return [numbers[0], numbers[1]];
  if (/^[=≈]/.test(relation)) return [numbers[0] - (numbers[1] ?? 0), numbers[0] + (numbers[1] ?? 0)];
  return [-Infinity, Infinity];
}
function nearEdge(each) {
  if (each.mean == null || each.low == null || each.high == null) return false;
  return bounds(each.relation).some((edge) => Number.isFinite(edge) && Math.abs(edge - each.mean) <= 2 * Math.max(each.high - each.low, 1e-12));
}

function claimRow(each, open, opening) {
  const more = element("div", {});
  const show = told(async () => {
    const found = await view("history", { claim: each.id });
    const picture = (figure) => element("img", { class: "figure", loading: "lazy", alt: `${figure.study}, ${figure.name}`, src: `/figure/${figure.study}/${encodeURIComponent(figure.preset)}/${encodeURIComponent(figure.name)}` });
    const date = (when) => new Date(1000 * when).toISOString().slice(0, 10), round = d3.format(".4~g");
    const past = found.history.map((entry) => element("tr", {}, element("td", {}, date(entry.date ?? 0)), element("td", {}, entry.preset ?? ""), element("td", { class: entry.verdict }, entry.verdict), element("td", { class: "mono" }, entry.mean == null ? "" : `${round(entry.mean)}  [${round(entry.low)}, ${round(entry.high)}]`)));
    more.replaceChildren(element("p", {}, `${each.quantity}${each.note ? `. ${each.note}` : ""}`), element("p", { class: "muted" }, `${each.source}. Recorded run: ${found.status}${found.reduced.length ? `, smaller than the source: ${found.reduced.join("; ")}` : ""}.`),
      ...found.figures.slice(0, 4).map(picture), element("table", { class: "past" }, ...past), element("p", {}, element("button", { class: "main", onclick: () => runStudy(each.study) }, "Run it now")), code(`sl.run("${each.study}")`));
  });
  const toggle = () => { if (more.childNodes.length) { more.replaceChildren(); opening(""); } else { opening(each.id); show(); } };
  if (open) show();
  return element("article", { class: "claim", "data-claim": each.id }, element("div", {}, element("div", {}, element("span", { class: `verdict ${each.verdict}` }, each.verdict), " ", element("strong", {}, each.statement)),
    element("div", { class: "muted mono" }, each.id, element("br"), `must be ${each.relation}${each.paper ? `; source: ${each.paper}` : ""}`, each.verdict === "fails" && !each.expected && [element("br"), "expected to fail: the source is corrected here"]), element("button", { class: "link", onclick: toggle, "aria-label": `More about ${each.id}` }, "History and figures"), more), axisOf(each));
}

// What the marks of the axes mean.
function legend() {
  const mark = (text, ...shapes) => {
    const svg = d3.create("svg").attr("class", "mark").attr("viewBox", "0 0 30 16").attr("width", 30).attr("aria-hidden", "true");
    for (const [name, facts] of shapes) { const made = svg.append(name); for (const [key, value] of Object.entries(facts)) made.attr(key, value); }
    return element("span", {}, svg.node(), text);
  };
  return element("p", { class: "legend claim-marks" },
    mark("ours: mean and interval over seeds", ["line", { x1: 2, x2: 28, y1: 8, y2: 8, class: "interval" }], ["circle", { cx: 15, cy: 8, r: 4, class: "mean" }]),
    mark("single seeds", ["circle", { cx: 8, cy: 8, r: 2, class: "value" }], ["circle", { cx: 20, cy: 8, r: 2, class: "value" }]),
    mark("what the claim allows", ["rect", { x: 2, y: 2, width: 26, height: 12, class: "allowed" }]),
    mark("the source's number", ["path", { d: "M15,2L20,8L15,14L10,8z", class: "source" }]));
}

function axisOf(each) {
  if (each.mean == null) return element("div", {});
  const [low, high] = bounds(each.relation), source = each.point ?? NaN;
  const points = [each.mean, each.low, each.high, low, high, source].filter((value) => Number.isFinite(value));
  let [left, right] = d3.extent(points); const pad = (right - left || Math.abs(left) || 1) * 0.15; left -= pad; right += pad;
  const x = d3.scaleLinear([left, right], [6, 334]), NS = "http://www.w3.org/2000/svg", svg = document.createElementNS(NS, "svg");
  const add = (name, facts, text) => { const made = svg.appendChild(document.createElementNS(NS, name)); for (const [key, value] of Object.entries(facts)) made.setAttribute(key, value); if (text) made.textContent = text; return made; };
  for (const [key, value] of Object.entries({ viewBox: "0 0 340 44", role: "img", "aria-label": `ours ${each.mean}, must be ${each.relation}` })) svg.setAttribute(key, value);
  const from = x(Math.max(left, low)), to = x(Math.min(right, high));
  if (Number.isFinite(low) || Number.isFinite(high)) add("rect", { x: from, width: Math.max(2, to - from), y: 8, height: 14, class: "allowed" });
  add("line", { x1: 6, x2: 334, y1: 15, y2: 15, class: "axis" });
  for (const value of each.values ?? []) if (Number.isFinite(value) && value >= left && value <= right) add("circle", { cx: x(value), cy: 15, r: 2, class: "value" });
  if (each.low != null && each.high != null) add("line", { x1: x(each.low), x2: x(each.high), y1: 15, y2: 15, class: "interval" });
  add("circle", { cx: x(each.mean), cy: 15, r: 4, class: "mean" });
  if (Number.isFinite(source)) add("path", { d: "M0,-6L5,0L0,6L-5,0z", transform: `translate(${x(source)},15)`, class: "source" }).appendChild(document.createElementNS(NS, "title")).textContent = `the source: ${each.paper}`;
  add("text", { x: 6, y: 38 }, d3.format(".3~g")(left));
  add("text", { x: 334, y: 38, "text-anchor": "end" }, d3.format(".3~g")(right));
  return svg;
}

const runStudy = told(async (study) => {
  const job = await ask("/jobs", { method: "POST", body: JSON.stringify({ kind: "run", study }) });
  go("lab", { job: job.number });
});
