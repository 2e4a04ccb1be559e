// Sources as a map, cards of architectures side by side, and the lab's jobs.
import { ask, code, element, go, main, panel, pause, plot, tell, view } from "../base.js";
import { follow } from "./training.js";

const ORDER = ["fails", "inconclusive", "corrected", "holds", "covered", "open"];
const MEANING = {
  holds: "claims hold",
  fails: "a claim fails",
  inconclusive: "inconclusive",
  corrected: "printed wrong, corrected here",
  covered: "built, nothing to judge",
  open: "open",
};
const title = (chapter) => {
  const words = chapter.replace(/^\d+-/, "").replaceAll("-", " ");
  return (words[0].toUpperCase() + words.slice(1)).replace(/^Nce\b/, "NCE").replace(/^Cot\b/, "CoT");
};
const worst = (row) =>
  row.verdicts.length
    ? (["fails", "inconclusive", "corrected", "holds"].find((each) => row.verdicts.includes(each)) ?? "open")
    : row.places.length
      ? "covered"
      : "open";

export async function sourcesPage(state) {
  const { rows, errata } = await view("sources");
  const marked = rows.map((row) => ({ ...row, worst: worst(row) })),
    chapters = Map.groupBy(marked, (row) => row.chapter);
  const tally = Map.groupBy(marked, (row) => row.worst);
  const detail = element("div", { id: "detail", "aria-live": "polite" });
  const show = (row) => {
    go("sources", { id: row.id, chapter: row.chapter }, true);
    const claims = row.places
      .filter((each) => each.startsWith("claim:") || each.startsWith("study:"))
      .map((each) => each.slice(6));
    detail.replaceChildren(
      panel(
        row.id,
        element("p", { class: row.worst }, MEANING[row.worst]),
        element("ul", { class: "plain mono" }, ...row.places.map((each) => element("li", {}, each))),
        ...claims.map((each) =>
          element("p", {}, element("a", { href: `#/claims?words=${encodeURIComponent(each)}` }, `Claims of ${each}`)),
        ),
      ),
    );
  };
  const tile = (row) =>
    element("button", {
      class: `tile ${row.worst}`,
      title: `${row.id}: ${MEANING[row.worst]}`,
      "aria-label": `${row.id}: ${MEANING[row.worst]}`,
      onclick: () => show(row),
    });
  main.replaceChildren(
    element("h2", {}, `${rows.length} definitions, theorems and experiments of the sources`),
    element(
      "p",
      { class: "legend" },
      ...ORDER.map((each) =>
        element(
          "span",
          {},
          element("i", { class: `tile ${each}` }),
          `${MEANING[each]}: ${tally.get(each)?.length ?? 0}`,
        ),
      ),
    ),
    element(
      "div",
      { class: "columns map" },
      element(
        "div",
        {},
        ...[...chapters].map(([chapter, inside]) =>
          element(
            "section",
            { class: "source" },
            element("h3", {}, title(chapter), element("span", { class: "muted" }, ` ${inside.length}`)),
            element("div", { class: "tiles" }, ...inside.map(tile)),
          ),
        ),
        ...erratumSections(errata, detail),
      ),
      detail,
    ),
    code("sandlab coverage", "at the terminal"),
  );
  const chosen = marked.find((row) => row.id === state.id && (!state.chapter || row.chapter === state.chapter));
  if (chosen) show(chosen);
  else
    detail.replaceChildren(
      panel("", element("p", { class: "muted" }, "Choose a tile to see where it lives and what was found.")),
    );
}

// Errata of the sources: what is printed, what is true, and the test that shows it.
function erratumSections(errata, detail) {
  if (!errata.length) return [];
  const show = (each) =>
    detail.replaceChildren(
      panel(
        "Erratum",
        element("p", {}, element("span", { class: "muted" }, "Printed: "), each.printed),
        element("p", {}, element("span", { class: "muted" }, "True: "), each.true),
        each.test && element("p", { class: "mono" }, each.test),
      ),
    );
  const tile = (each) =>
    element("button", {
      class: "tile corrected",
      title: each.printed,
      "aria-label": `Erratum: ${each.printed}`,
      onclick: () => show(each),
    });
  return [
    element("h2", { id: "errata" }, `${errata.length} errata`),
    ...[...Map.groupBy(errata, (each) => each.chapter)].map(([chapter, inside]) =>
      element(
        "section",
        { class: "source" },
        element("h3", {}, chapter, element("span", { class: "muted" }, ` ${inside.length}`)),
        element("div", { class: "tiles" }, ...inside.map(tile)),
      ),
    ),
  ];
}

export async function cardsPage() {
  const { cards } = await view("cards");
  if (!cards.length) {
    main.replaceChildren(
      element("h2", {}, "Cards of architectures"),
      panel(
        "",
        element("p", {}, "No card is recorded yet. Measure one:"),
        element("pre", {}, "sandlab card my_file.py:MyModule"),
      ),
    );
    return;
  }
  const rows = cards.flatMap((card) =>
    card.rows.map((row) => ({ ...row, label: `${row.task}: ${row.test}`, model: `${card.model} (${card.size})` })),
  );
  const names = [...new Set(rows.map((row) => row.label))],
    models = [...new Set(rows.map((row) => row.model))];
  const picture = plot("scores of the architectures", {
    width: 320 + 90 * models.length,
    height: 110 + 24 * names.length,
    marginLeft: 230,
    marginRight: 60,
    marginTop: 80,
    x: { axis: "top", label: null, domain: models, tickRotate: -35 },
    y: { domain: names, label: null },
    color: { scheme: "cividis", domain: [0, 1], legend: true, marginLeft: 12, label: "score (0 guessing, 1 optimum)" },
    marks: [
      Plot.cell(rows, { x: "model", y: "label", fill: "score", inset: 1 }),
      Plot.text(rows, {
        x: "model",
        y: "label",
        text: (row) => row.score.toFixed(2),
        fill: (row) => (row.score < 0.55 ? "white" : "black"),
      }),
    ],
  });
  main.replaceChildren(
    element("h2", {}, "Stress cards of the built-in architectures"),
    panel("", element("div", { class: "wide cards" }, picture), code("sandlab card --help", "at the terminal")),
  );
}

export async function labPage(state) {
  const list = element("div", { class: "grid" }),
    detail = element("div", { class: "panel", id: "live" }),
    store = element("div", {});
  main.replaceChildren(
    element("h2", {}, "The lab"),
    list,
    detail,
    store,
    code("sandlab results\nsandlab doctor", "at the terminal"),
  );
  if (state.job) follow(state.job, detail);
  Promise.all([ask("/lab"), view("devices")])
    .then(([facts, { devices }]) => ({
      ...facts,
      ...Object.fromEntries(Object.entries(devices).map(([name, about]) => [`device ${name}`, about])),
    }))
    .then((facts) =>
      store.replaceChildren(
        panel(
          "This machine",
          element(
            "table",
            {},
            ...Object.entries(facts).map(([key, value]) =>
              element("tr", {}, element("th", {}, key), element("td", {}, String(value))),
            ),
          ),
        ),
      ),
    )
    .catch(tell);
  (async () => {
    while (list.isConnected) {
      let found;
      try {
        found = await ask("/jobs");
      } catch (problem) {
        tell(problem);
        return;
      }
      list.replaceChildren(
        ...found.jobs.toReversed().map((job) =>
          element(
            "button",
            {
              class: "panel",
              onclick: () => {
                go("lab", { job: job.number }, true);
                follow(job.number, detail);
              },
            },
            element("strong", {}, job.title),
            element("div", { class: "muted" }, `${job.kind} ${job.number}: ${job.state}`),
          ),
        ),
      );
      if (!state.job && !detail.querySelector("#state"))
        detail.textContent = found.jobs.length
          ? "Choose a job to follow it."
          : "Nothing runs. Start a training, or a study from its claim.";
      await pause(1000);
    }
  })();
}
