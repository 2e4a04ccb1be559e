// Cards of architectures side by side, and the lab: its jobs, its store, its machine.
import { ask, code, element, go, main, panel, pause, plot, tell, view } from "../base.js";
import { follow } from "./job.js";

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
