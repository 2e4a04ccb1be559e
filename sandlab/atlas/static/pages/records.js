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
        element("p", {}, "No card is in the store yet. Measure one, and it stands here beside the next:"),
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
  const seeds = (row) =>
    `${row.model}, ${row.label}: seeds ${row.scores.map((score) => score?.toFixed(2) ?? "–").join(", ")}`;
  const place = { x: "model", y: "label" };
  const picture = plot("scores of the architectures", {
    width: 70 + 6.4 * d3.max(names, (name) => name.length) + 62 * models.length,
    height: 110 + 24 * names.length,
    marginLeft: 14 + 6.4 * d3.max(names, (name) => name.length),
    marginRight: 60,
    marginTop: 90,
    x: { axis: "top", label: null, domain: models, tickRotate: -35 },
    y: { domain: names, label: null, tickSize: 0 },
    color: { scheme: "cividis", domain: [0, 1], legend: true, marginLeft: 12, label: "score (0 guessing, 1 optimum)" },
    marks: [
      Plot.cell(rows, { ...place, fill: "score", inset: 1, title: seeds }),
      Plot.text(rows, {
        ...place,
        text: (row) => row.score?.toFixed(2) ?? "–",
        fill: (row) => (row.score < 0.55 ? "white" : "black"),
        pointerEvents: "none",
      }),
    ],
  });
  main.replaceChildren(
    element("h2", {}, "Stress cards of architectures"),
    panel("", element("div", { class: "wide cards" }, picture), code("sandlab card --help", "at the terminal")),
  );
}

export async function labPage(state) {
  const list = element("div", { class: "grid" });
  const detail = element("div", { class: "panel", id: "live" });
  const store = element("div", {});
  const same = code("sandlab results\nsandlab doctor", "at the terminal");
  main.replaceChildren(element("h2", {}, "The lab"), list, detail, store, same);
  if (state.job) follow(state.job, detail);
  showMachine(store).catch(tell);
  watchJobs(list, detail).catch(tell);
}

async function showMachine(place) {
  const [facts, { devices }] = await Promise.all([ask("/lab"), view("devices")]);
  const named = Object.entries(devices).map(([name, about]) => [`device ${name}`, about]);
  const line = ([key, value]) => element("tr", {}, element("th", {}, key), element("td", {}, String(value)));
  place.replaceChildren(panel("This machine", element("table", {}, ...[...Object.entries(facts), ...named].map(line))));
}

// The jobs, newest first; drawn anew when one has changed, with the keyboard where it was.
async function watchJobs(list, detail) {
  const card = (job) => {
    const open = () => {
      go("lab", { job: job.number }, true);
      follow(job.number, detail);
    };
    const words = [
      element("strong", {}, job.title),
      element("div", { class: "muted" }, `${job.kind} ${job.number}: ${job.state}`),
    ];
    return element("button", { class: "panel", "data-job": job.number, onclick: open }, ...words);
  };
  let drawn = "";
  while (list.isConnected) {
    const { jobs } = await ask("/jobs");
    const now = JSON.stringify(jobs.map((job) => [job.number, job.state]));
    if (now !== drawn) {
      const held = document.activeElement.dataset.job;
      list.replaceChildren(...jobs.toReversed().map(card));
      if (held) list.querySelector(`[data-job="${held}"]`)?.focus();
      drawn = now;
    }
    if (!detail.querySelector("#state"))
      detail.textContent = jobs.length
        ? "Choose a job to follow it."
        : "Nothing runs. Start a training, or a study from its claim.";
    await pause(1000);
  }
}
