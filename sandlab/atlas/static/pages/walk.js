// One run of a decoder on the tree of prefixes, event by event.
import { choose, code, element, go, labelled, panel, pause, told, view } from "../base.js";
import { gameForm } from "./language.js";

const ALGORITHMS = ["rejection", "tokenwise-rejection", "best-of-4", "value-guided", "backtracking", "vgb"];
const WORDS = {
  "": "the empty string",
  sampled: "writes",
  argmax: "writes the likeliest",
  restored: "puts back",
  tried: "tries",
  erased: "takes back",
  rejected: "the verifier rejects",
};

export async function walkTab(body, state) {
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
  const [values, form] = gameForm(
    state,
    { inputs: { algorithm }, fields: [labelled("Algorithm", algorithm)] },
    (asked) => load(asked),
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
    largest = Math.min(11, (0.92 * (width - 28)) / arity ** film.depth / 2); // neighbours do not touch
  for (const string of nodes) {
    const size = largest * (0.3 + 0.7 * Math.sqrt(value(string) / most)),
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
