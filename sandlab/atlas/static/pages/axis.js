// A claim as a picture: interval, bound and the source's number on one axis.
import { element } from "../base.js";

export const digits = (value, count) => String(Number(value.toPrecision(count)));

// A claim: its verdict and statement, what it must be and is, notes in words, what can be done with it, and the axis.
export function claimCard(each, notes, ...buttons) {
  const made = CARD.cloneNode(true),
    words = made.firstChild,
    head = words.firstChild,
    verdict = head.firstChild;
  const corrected = each.verdict === "fails" && !each.expected && "expected to fail: the source is corrected here";
  made.setAttribute("data-claim", each.id);
  verdict.className = `verdict ${each.verdict}`;
  write(verdict, each.verdict);
  write(head.lastChild, each.statement);
  write(words.lastChild, [each.id, asked(each), corrected, ...notes].filter(Boolean).join("\n"));
  words.append(...buttons);
  if (each.mean == null) made.lastChild.replaceWith(element("div", {}));
  else drawAxis(made.lastChild, each);
  return made;
}

const asked = (each) =>
  [`must be ${each.relation}`, each.paper && `source: ${each.paper}`, ours(each)].filter(Boolean).join("; ");

// The ends of what a relation allows.
export function bounds(relation) {
  const numbers = (relation.match(/-?\d+(?:\.\d+)?(?:e[+-]?\d+)?/g) ?? []).map(Number);
  if (/^[>≥]/.test(relation)) return [numbers[0], numbers[1] ?? Infinity]; // "> 1, < 2" has both
  if (/^[<≤]/.test(relation)) return [-Infinity, numbers[0]];
  if (relation.startsWith("in")) return [numbers[0], numbers[1]];
  if (/^[=≈]/.test(relation)) return [numbers[0] - (numbers[1] ?? 0), numbers[0] + (numbers[1] ?? 0)];
  return [-Infinity, Infinity];
}

// The number that was found, with its interval where there is one.
export function ours({ mean, low, high, count }) {
  if (mean == null) return "";
  const width = low != null && high != null && high > low && `[${digits(low, 4)}, ${digits(high, 4)}]`;
  return [`ours: ${digits(mean, 4)}`, width, count > 1 && `over ${count}`].filter(Boolean).join(" ");
}

function shape(name, facts, text) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(facts)) made.setAttribute(key, value);
  if (text) made.textContent = text;
  return made;
}

// What the marks of the axes mean.
export function legend() {
  const mark = (text, ...shapes) => {
    const svg = shape("svg", { class: "mark", viewBox: "0 0 30 16", width: 30, "aria-hidden": "true" });
    svg.append(...shapes.map(([name, facts]) => shape(name, facts)));
    return element("span", {}, svg, text);
  };
  return element(
    "p",
    { class: "legend claim-marks" },
    mark(
      "ours: mean and interval over seeds",
      ["line", { x1: 2, x2: 28, y1: 8, y2: 8, class: "interval" }],
      ["circle", { cx: 15, cy: 8, r: 4, class: "mean" }],
    ),
    mark(
      "single seeds",
      ["circle", { cx: 8, cy: 8, r: 2, class: "value" }],
      ["circle", { cx: 20, cy: 8, r: 2, class: "value" }],
    ),
    mark("what the claim allows", ["rect", { x: 2, y: 2, width: 26, height: 12, class: "allowed" }]),
    mark("the source's number", ["path", { d: "M15,2L20,8L15,14L10,8z", class: "source" }]),
  );
}

function drawAxis(svg, each) {
  const [low, high] = bounds(each.relation),
    source = each.point ?? NaN;
  const points = [each.mean, each.low, each.high, low, high, source].filter((value) => Number.isFinite(value));
  let left = Math.min(...points),
    right = Math.max(...points);
  const pad = (right - left || Math.abs(left) || 1) * 0.15;
  left -= pad;
  right += pad;
  const x = (value) => (6 + (328 * (value - left)) / (right - left)).toFixed(1),
    from = x(Math.max(left, low)),
    to = Math.max(Number(from) + 2, x(Math.min(right, high))),
    dot = (value) => `M${x(value)},15h0`,
    dots = (each.values ?? []).filter((value) => value != null && value >= left && value <= right);
  const lines = {
    allowed: (Number.isFinite(low) || Number.isFinite(high)) && `M${from},8H${to}V22H${from}z`,
    axis: "M6,15H334",
    values: dots.map(dot).join(""),
    interval: each.low != null && each.high != null && `M${x(each.low)},15H${x(each.high)}`,
    mean: dot(each.mean),
    source: Number.isFinite(source) && `M${x(source)},9l5,6l-5,6l-5,-6z`,
  };
  svg.setAttribute("aria-label", `ours ${each.mean}, must be ${each.relation}`);
  let path = svg.firstChild;
  for (const name of LINES) {
    if (lines[name]) path.setAttribute("d", lines[name]);
    if (name === "source" && lines[name]) path.append(shape("title", {}, `the source: ${each.paper}`));
    path = path.nextSibling;
  }
  const places = Math.max(3, 2 + Math.ceil(Math.log10(Math.max(Math.abs(left), Math.abs(right)) / (right - left))));
  write(path, digits(left, places));
  write(path.nextSibling, digits(right, places));
}

const write = (node, text) => {
  node.firstChild.data = text;
};

// A card with nothing on it yet: a copy of the whole is made several times faster than its parts.
const LINES = ["allowed", "axis", "values", "interval", "mean", "source"];
const CARD = element(
  "article",
  { class: "claim" },
  element(
    "div",
    {},
    element("div", {}, element("span", {}, "–"), " ", element("strong", {}, "–")),
    element("div", { class: "muted mono" }, "–"),
  ),
  shape("svg", { viewBox: "0 0 340 44", role: "img" }),
);
CARD.lastChild.append(
  ...LINES.map((name) => shape("path", { class: name })),
  shape("text", { x: 6, y: 38 }, "–"),
  shape("text", { x: 334, y: 38, "text-anchor": "end" }, "–"),
);
