// An automaton that is drawn with the mouse, filled in with the keyboard, or pasted as a table.
import { colour, element } from "../base.js";

const SIZE = 320,
  RADIUS = 20;

// {letters: "ab", table: [[next state of state 0 under a, under b], …]}  ⇄  the text that the server reads.
export const written = ({ letters, table }) => JSON.stringify({ letters: [...letters], transitions: table, start: 0 });

export function readTable(text) {
  const trimmed = text.trim();
  const found =
    trimmed.startsWith("{") || trimmed.startsWith("[")
      ? JSON.parse(trimmed)
      : trimmed.split(/\n+/).map((line) =>
          line
            .trim()
            .split(/[\s,;]+/)
            .map(Number),
        );
  const table = Array.isArray(found) ? found : found.transitions;
  if (
    !Array.isArray(table) ||
    !table.length ||
    !table.every((row) => Array.isArray(row) && row.length === table[0].length)
  )
    throw new Error("a table has one row per state and one column per letter");
  for (const next of table.flat())
    if (!Number.isInteger(next) || next < 0 || next >= table.length)
      throw new Error(`${next} is no state: states are 0 to ${table.length - 1}`);
  const letters = found.letters?.join("") ?? "abcdefghij".slice(0, table[0].length);
  return { letters, table };
}

function positions(count) {
  if (count === 1) return [[SIZE / 2, SIZE / 2]];
  return d3
    .range(count)
    .map((state) => [
      SIZE / 2 + (SIZE / 2 - 52) * Math.sin((2 * Math.PI * state) / count),
      SIZE / 2 - (SIZE / 2 - 52) * Math.cos((2 * Math.PI * state) / count),
    ]);
}

function arrow([x1, y1], [x2, y2], bend) {
  if (x1 === x2 && y1 === y2) {
    const away = Math.atan2(y1 - SIZE / 2, x1 - SIZE / 2),
      tip = (turn) => [x1 + RADIUS * Math.cos(away + turn), y1 + RADIUS * Math.sin(away + turn)];
    const far = (turn) => [x1 + 46 * Math.cos(away + turn), y1 + 46 * Math.sin(away + turn)],
      [a, b, c, d] = [tip(-0.5), far(-0.6), far(0.6), tip(0.5)];
    return { path: `M${a}C${b} ${c} ${d}`, label: [x1 + 48 * Math.cos(away), y1 + 48 * Math.sin(away)] };
  }
  const dx = x2 - x1,
    dy = y2 - y1,
    long = Math.hypot(dx, dy),
    nx = -dy / long,
    ny = dx / long;
  const middle = [(x1 + x2) / 2 + bend * nx, (y1 + y2) / 2 + bend * ny],
    cut = (x, y) => {
      const far = Math.hypot(middle[0] - x, middle[1] - y);
      return [x + (RADIUS * (middle[0] - x)) / far, y + (RADIUS * (middle[1] - y)) / far];
    };
  return {
    path: `M${cut(x1, y1)}Q${middle} ${cut(x2, y2)}`,
    label: [(x1 + x2) / 2 + (bend * 0.5 + 9) * nx, (y1 + y2) / 2 + (bend * 0.5 + 9) * ny],
  };
}

// The picture of a table; `drawn(from, to)` is told when an arrow is dragged, `added()` when empty space is double-clicked.
export function picture(
  { letters, table, names = d3.range(table.length).map(String), now = -1, start = 0 },
  { drawn, added } = {},
) {
  const svg = d3
    .create("svg")
    .attr("viewBox", `0 0 ${SIZE} ${SIZE}`)
    .attr("width", SIZE)
    .attr("class", "automaton")
    .attr("role", "img")
    .attr("aria-label", `automaton with ${table.length} states`);
  svg
    .append("defs")
    .append("marker")
    .attr("id", "tip")
    .attr("viewBox", "0 0 8 8")
    .attr("refX", 7)
    .attr("refY", 4)
    .attr("markerWidth", 7)
    .attr("markerHeight", 7)
    .attr("orient", "auto-start-reverse")
    .append("path")
    .attr("d", "M0,0L8,4L0,8z")
    .attr("fill", "currentColor");
  const at = positions(table.length);
  const edges = d3.rollups(
    table.flatMap((row, from) => row.map((to, letter) => ({ from, to, letter }))),
    (each) => each.map((edge) => edge.letter),
    (edge) => `${edge.from} ${edge.to}`,
  );
  for (const [key, which] of edges) {
    const [from, to] = key.split(" ").map(Number),
      { path, label } = arrow(at[from], at[to], edges.some(([other]) => other === `${to} ${from}`) ? 22 : 6);
    svg.append("path").attr("d", path).attr("class", "edge").attr("marker-end", "url(#tip)");
    const text = svg
      .append("text")
      .attr("x", label[0])
      .attr("y", label[1] + 4)
      .attr("text-anchor", "middle")
      .attr("class", "edge-name");
    which.forEach((letter, index) =>
      text
        .append("tspan")
        .attr("fill", colour(letter))
        .text(`${index ? " " : ""}${letters[letter] ?? letter}`),
    );
  }
  const rubber = svg.append("line").attr("class", "rubber").attr("visibility", "hidden");
  const states = at.map(([x, y], state) => {
    const group = svg
      .append("g")
      .attr("class", `state${state === now ? " now" : ""}`)
      .attr("data-state", state);
    group.append("circle").attr("cx", x).attr("cy", y).attr("r", RADIUS);
    if (state === start)
      group
        .append("circle")
        .attr("cx", x)
        .attr("cy", y)
        .attr("r", RADIUS - 4)
        .attr("class", "start");
    group
      .append("text")
      .attr("x", x)
      .attr("y", y + 4)
      .attr("text-anchor", "middle")
      .attr("font-size", names[state].length > 3 ? 9 : 12)
      .text(names[state].slice(0, 6));
    return group.node();
  });
  if (!drawn) return svg.node();
  const node = svg.node(),
    where = (event) => {
      const box = node.getBoundingClientRect();
      return [((event.clientX - box.left) * SIZE) / box.width, ((event.clientY - box.top) * SIZE) / box.height];
    };
  const nearest = (event) => {
    const [x, y] = where(event);
    return at.findIndex(([a, b]) => Math.hypot(a - x, b - y) < RADIUS + 8);
  };
  let from = -1;
  node.addEventListener("pointerdown", (event) => {
    from = nearest(event);
    if (from >= 0) {
      node.setPointerCapture(event.pointerId);
      event.preventDefault();
    }
  });
  node.addEventListener("pointermove", (event) => {
    if (from < 0) return;
    const [x, y] = where(event);
    rubber.attr("visibility", "visible").attr("x1", at[from][0]).attr("y1", at[from][1]).attr("x2", x).attr("y2", y);
  });
  node.addEventListener("pointerup", (event) => {
    const to = nearest(event),
      begun = from;
    from = -1;
    rubber.attr("visibility", "hidden");
    if (begun >= 0 && to >= 0) drawn(begun, to);
  });
  node.addEventListener("dblclick", (event) => {
    if (nearest(event) < 0) added();
  });
  states.forEach((each) => each.classList.add("grab"));
  return node;
}

// The editor: picture and table side by side, both change the same automaton.
export function editor(automaton, changed) {
  let now = automaton,
    letter = 0,
    box = element("div", { class: "editor" });
  const set = (next) => {
    now = next;
    changed(now);
    show();
  };
  const add = () => {
    if (now.table.length < 12)
      set({ ...now, table: [...now.table, now.letters.split("").map(() => now.table.length)] });
  };
  const drop = () => {
    const last = now.table.length - 1;
    if (last > 0)
      set({ ...now, table: now.table.slice(0, last).map((row) => row.map((next) => (next === last ? 0 : next))) });
  };
  const move = (from, to, which = letter) =>
    set({
      ...now,
      table: now.table.map((row, state) =>
        state === from ? row.map((next, each) => (each === which ? to : next)) : row,
      ),
    });
  const alphabet = (count) =>
    set({
      letters: "abcdefgh".slice(0, count),
      table: now.table.map((row, state) => d3.range(count).map((each) => row[each] ?? state)),
    });
  function show() {
    const grid = element(
      "table",
      { class: "small" },
      element("tr", {}, element("th", {}, "state"), ...[...now.letters].map((each) => element("th", {}, each))),
      ...now.table.map((row, from) =>
        element(
          "tr",
          {},
          element("th", {}, String(from)),
          ...row.map((to, which) =>
            element(
              "td",
              {},
              element(
                "select",
                {
                  "aria-label": `from ${from} under ${now.letters[which]}`,
                  onchange: (event) => move(from, Number(event.target.value), which),
                },
                ...now.table.map((_, state) =>
                  element("option", { value: state, selected: state === to }, String(state)),
                ),
              ),
            ),
          ),
        ),
      ),
    );
    const pens = [...now.letters].map((each, which) =>
      element(
        "button",
        {
          "aria-pressed": String(which === letter),
          onclick: () => {
            letter = which;
            show();
          },
        },
        each,
      ),
    );
    box.replaceChildren(
      element(
        "div",
        {},
        element(
          "p",
          { class: "muted" },
          "Drag from state to state to draw an arrow for the chosen letter; double-click empty space for a new state. State 0 is the start.",
        ),
        element(
          "div",
          { class: "keys" },
          ...pens,
          element("button", { onclick: add }, "Add a state"),
          element("button", { onclick: drop }, "Remove the last"),
          element("button", { onclick: () => alphabet(Math.min(4, now.letters.length + 1)) }, "One letter more"),
          element("button", { onclick: () => alphabet(Math.max(1, now.letters.length - 1)) }, "One letter less"),
        ),
        picture(now, { drawn: (from, to) => move(from, to), added: add }),
      ),
      grid,
    );
  }
  show();
  return box;
}
