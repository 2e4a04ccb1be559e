// Sources as a map: every definition, theorem and experiment a tile; every erratum with what is true.
import { code, element, go, main, panel, view } from "../base.js";

const ORDER = ["fails", "inconclusive", "corrected", "holds", "covered", "open"];
const MEANING = {
  holds: "claims hold",
  fails: "a claim fails",
  inconclusive: "inconclusive",
  corrected: "printed wrong, corrected here",
  covered: "built, nothing to judge",
  open: "open",
};
const HINT = "Choose a tile to see where it lives and what was found. The arrow keys move from tile to tile.";

export async function sourcesPage(state) {
  const { rows, errata } = await view("sources");
  const things = rows.map((row) => ({ ...row, worst: worst(row) }));
  const detail = element("div", { id: "detail", "aria-live": "polite" });
  const now = {
    id: state.id,
    chapter: state.chapter,
    erratum: state.erratum,
    words: state.words ?? "",
    only: state.only ?? "",
  };
  const remember = (change) => go("sources", Object.assign(now, change), true);
  const map = [];
  // A tile on the map: what it says when it is chosen, and in which state it is.
  function tile(kind, label, about, show) {
    const made = element("button", {
      class: `tile ${kind}`,
      title: label,
      "aria-label": label,
      tabindex: "-1",
      onclick: show,
    });
    map.push({ made, kind, words: about.toLowerCase(), show });
    return made;
  }
  const sections = [...Map.groupBy(things, (row) => row.chapter)].map(([chapter, inside]) =>
    section(
      titleOf(chapter),
      inside.map((row) =>
        tile(row.worst, `${row.id}: ${MEANING[row.worst]}`, `${row.id} ${row.places.join(" ")}`, () => {
          remember({ id: row.id, chapter: row.chapter, erratum: "" });
          detail.replaceChildren(thingPanel(row));
        }),
      ),
    ),
  );
  const errataSections = [
    ...Map.groupBy(
      errata.map((each, number) => ({ ...each, number })),
      (each) => each.chapter,
    ),
  ].map(([chapter, inside]) =>
    section(
      chapter,
      inside.map((each) =>
        tile("erratum", `Erratum: ${each.printed}`, `${each.printed} ${each.true}`, () => {
          remember({ id: "", chapter: "", erratum: String(each.number) });
          detail.replaceChildren(erratumPanel(each));
        }),
      ),
    ),
  );
  const filters = filterRow(things, now, () => {
    remember({});
    dim(map, now);
  });
  main.replaceChildren(
    element("h2", {}, `${rows.length} definitions, theorems and experiments of the sources`),
    filters,
    element(
      "div",
      { class: "columns map" },
      element(
        "div",
        { id: "map" },
        ...sections,
        errata.length > 0 && element("h2", { id: "errata" }, `${errata.length} errata`),
        ...errataSections,
      ),
      detail,
    ),
    code("sandlab coverage", "at the terminal"),
  );
  moveWithArrows(main.querySelector("#map"), map);
  dim(map, now);
  detail.replaceChildren(panel("", element("p", { class: "muted" }, HINT)));
  const asked = state.erratum
    ? rows.length + Number(state.erratum)
    : things.findIndex((row) => row.id === state.id && (!state.chapter || row.chapter === state.chapter));
  map[orderOf(asked, things, errata)]?.show();
}

// Tiles are drawn source by source: the place of the asked one in that order.
function orderOf(asked, things, errata) {
  const numbers = (rows, from) =>
    [
      ...Map.groupBy(
        rows.map((row, at) => [row.chapter, at + from]),
        ([chapter]) => chapter,
      ).values(),
    ]
      .flat()
      .map(([, at]) => at);
  return [...numbers(things, 0), ...numbers(errata, things.length)].indexOf(asked);
}

function worst(row) {
  if (!row.verdicts.length) return row.places.length ? "covered" : "open";
  return ["fails", "inconclusive", "corrected", "holds"].find((each) => row.verdicts.includes(each)) ?? "open";
}

function titleOf(chapter) {
  const words = chapter.replace(/^\d+-/, "").replaceAll("-", " ");
  return (words[0].toUpperCase() + words.slice(1)).replace(/^Nce\b/, "NCE").replace(/^Cot\b/, "CoT");
}

const section = (title, tiles) =>
  element(
    "section",
    { class: "source" },
    element("h3", {}, title, element("span", { class: "muted" }, ` ${tiles.length}`)),
    element("div", { class: "tiles" }, ...tiles),
  );

// The legend is a filter too: a press shows one state alone.
function filterRow(things, now, changed) {
  const tally = Map.groupBy(things, (row) => row.worst);
  const search = element("input", {
    type: "search",
    id: "find",
    placeholder: "Search names and places",
    "aria-label": "Search names and places",
    value: now.words,
  });
  search.addEventListener("input", () => {
    now.words = search.value;
    changed();
  });
  const keys = ORDER.map((each) => {
    const pressed = () => String(now.only === each);
    const made = element(
      "button",
      { class: "key", "aria-pressed": pressed(), "data-state": each },
      element("i", { class: `tile ${each}` }),
      `${MEANING[each]}: ${tally.get(each)?.length ?? 0}`,
    );
    made.addEventListener("click", () => {
      now.only = now.only === each ? "" : each;
      for (const other of keys) other.setAttribute("aria-pressed", String(other.dataset.state === now.only));
      changed();
    });
    return made;
  });
  return element("div", {}, element("div", { class: "legend" }, ...keys), element("p", {}, search));
}

function dim(map, { words, only }) {
  const wanted = words.toLowerCase();
  for (const { made, kind, words: about } of map)
    made.classList.toggle("dim", !(about.includes(wanted) && (!only || kind === only)));
}

// One tile is in the order of the tab key; the arrow keys choose its neighbours among those that are not dimmed.
function moveWithArrows(place, map) {
  const tiles = map.map(({ made }) => made);
  if (tiles.length) tiles[0].tabIndex = 0;
  const enter = (tile) => {
    for (const each of tiles) each.tabIndex = -1;
    tile.tabIndex = 0;
  };
  place.addEventListener("focusin", (event) => {
    if (tiles.includes(event.target)) enter(event.target);
  });
  place.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const bright = tiles.filter((each) => !each.classList.contains("dim") || each === event.target);
    const at = bright.indexOf(event.target);
    const next = { Home: bright[0], End: bright.at(-1) }[event.key] ?? (step && at >= 0 ? bright[at + step] : null);
    if (!next) return;
    event.preventDefault();
    next.focus();
  });
}

function thingPanel(row) {
  const names = row.places.filter((each) => /^(claim|study):/.test(each)).map((each) => each.slice(6));
  const claims = names.map((each) =>
    element("p", {}, element("a", { href: `#/claims?words=${encodeURIComponent(each)}` }, `Claims of ${each}`)),
  );
  const tally = ORDER.filter((each) => row.verdicts.includes(each)).map(
    (each) => `${row.verdicts.filter((verdict) => verdict === each).length} ${each}`,
  );
  return panel(
    row.id,
    element(
      "p",
      { class: row.worst },
      MEANING[row.worst],
      tally.length > 0 && element("span", { class: "muted" }, ` (${tally.join(", ")})`),
    ),
    element("ul", { class: "plain mono" }, ...row.places.map((each) => element("li", {}, each))),
    ...claims,
  );
}

function erratumPanel(each) {
  const line = (title, text) => element("p", {}, element("span", { class: "muted" }, `${title}: `), text);
  return panel(
    `Erratum: ${each.chapter}`,
    line("Printed", each.printed),
    line("True", each.true),
    each.test && element("p", { class: "mono" }, each.test),
  );
}
