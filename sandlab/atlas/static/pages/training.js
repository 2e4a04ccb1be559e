// Training live: curves of all seeds beside the oracle and the baselines, plateaus, attention; stop, keep, export.
import {
  ask,
  choose,
  code,
  colour,
  download,
  element,
  go,
  heat,
  labelled,
  main,
  panel,
  pause,
  plot,
  tell,
  told,
  view,
} from "../base.js";

const MODELS = ["transformer", "lstm", "rnn", "state-space", "hybrid"];

export async function trainingPage(state) {
  const { worlds } = await view("worlds");
  const field = (id, facts) => element("input", { id, type: "number", ...facts });
  const form = {
    world: choose(
      "world",
      worlds.map((each) => each.name),
      state.world ?? "in-context-markov",
    ),
    model: choose("model", MODELS, state.model ?? "transformer"),
    length: field("train-length", { min: 2, max: 128, value: state.length ?? 24 }),
    steps: field("steps", { min: 1, max: 20000, value: state.steps ?? 300 }),
    seeds: field("seeds", { min: 1, max: 16, value: state.seeds ?? 3 }),
    lr: field("lr", { step: "any", value: state.lr ?? 0.003 }),
  };
  const out = element(
    "div",
    { class: "panel", id: "live" },
    element(
      "p",
      { class: "muted" },
      "Losses of all seeds appear here as they train, beside those of the oracle and of the world's baselines. Plateaus are named after the nearest baseline.",
    ),
  );
  const values = () => Object.fromEntries(Object.entries(form).map(([name, input]) => [name, input.value]));
  const python = element("div", { class: "whole" }),
    kept = element("div", {});
  const begin = told(async () => {
    const asked = values();
    const body = {
      kind: "train",
      world: asked.world,
      model: asked.model,
      settings: asked.length ? { length: asked.length } : {},
      steps: Number(asked.steps),
      seeds: Number(asked.seeds),
      lr: Number(asked.lr),
    };
    const job = await ask("/jobs", { method: "POST", body: JSON.stringify(body) });
    go("training", { ...asked, job: job.number }, true);
    follow(job.number, out, showKept);
  });
  const showKept = told(async () => {
    kept.replaceChildren(...keptList((await ask("/kept")).kept));
  });
  const write = () => {
    const now = values(),
      length = now.length && `length=${now.length}`;
    python.replaceChildren(
      code(
        [
          `world = sl.get("worlds", "${now.world}")(${length})`,
          `config = sl.lab.fit_config(world, sl.get("models", "${now.model}"), {})`,
          `training = sl.learning.Training(steps=${now.steps}, batch_size=32, lr=${now.lr})`,
          `sl.lab.train_experiment(sl.learning.Experiment(world, config, training, seeds=${now.seeds}))`,
        ].join("\n"),
      ),
    );
  };
  for (const input of Object.values(form))
    input.addEventListener("input", () => {
      write();
      go("training", values(), true);
    });
  write();
  main.replaceChildren(
    element("h2", {}, "Watch a training"),
    element(
      "div",
      { class: "columns" },
      element(
        "div",
        {},
        panel(
          "",
          labelled("World", form.world),
          labelled("Model", form.model),
          labelled("Length (empty: the world's own)", form.length),
          labelled("Steps", form.steps),
          labelled("Seeds", form.seeds),
          labelled("Learning rate", form.lr),
          element("p", {}, element("button", { id: "train", class: "main", onclick: begin }, "Train")),
          python,
        ),
        kept,
      ),
      out,
    ),
  );
  showKept();
  if (state.job) follow(state.job, out, showKept);
}

function keptList(kept) {
  if (!kept.length) return [];
  return [
    panel(
      "Kept",
      element(
        "ul",
        { class: "plain" },
        ...kept.map((each) =>
          element(
            "li",
            {},
            element(
              "a",
              {
                href: `#/world?name=${encodeURIComponent(each.world)}&settings=${encodeURIComponent(JSON.stringify(each.settings))}`,
              },
              `${each.model} on ${each.world}`,
            ),
            element("span", { class: "muted" }, ` loss ${each.loss?.toFixed(3)}: guess against it`),
          ),
        ),
      ),
    ),
  ];
}

export async function follow(number, out, afterKeep = () => {}) {
  const seen = { points: [], steps: 0, levels: {}, plateaus: [], attention: null, row: [], words: "", since: 0 };
  const stop = element("button", { onclick: told(() => ask(`/jobs/${number}`, { method: "DELETE" })) }, "Stop");
  const keep = element(
    "button",
    {
      hidden: true,
      onclick: told(async () => {
        await ask(`/jobs/${number}/keep`, { method: "POST", body: "{}" });
        keep.textContent = "Kept";
        keep.disabled = true;
        afterKeep();
      }),
    },
    "Keep",
  );
  const save = element(
    "button",
    { hidden: true, onclick: told(() => download(`/jobs/${number}/export`, `sandlab-training-${number}.zip`)) },
    "Export",
  );
  const status = element("p", { id: "state" }),
    picture = element("div", {}),
    maps = element("div", {}),
    text = element("pre", { hidden: true });
  out.replaceChildren(status, element("div", { class: "keys" }, stop, keep, save), picture, maps, text);
  while (out.isConnected && status.isConnected) {
    let job;
    try {
      job = await ask(`/jobs/${number}?since=${seen.since}`);
    } catch (problem) {
      tell(problem);
      return;
    }
    seen.since = job.next;
    for (const line of job.lines) note(seen, line);
    status.textContent = `${job.title}: ${job.state}`;
    if (job.lines.length) {
      text.textContent = seen.words;
      text.hidden = !seen.words;
      if (seen.points.length) picture.replaceChildren(curves(seen, out));
      if (job.lines.some((line) => line.attention)) maps.replaceChildren(...attention(seen));
    }
    keep.hidden = save.hidden = !(job.saved && !job.alive);
    if (job.kept) {
      keep.textContent = "Kept";
      keep.disabled = true;
    }
    if (!["waiting", "running"].includes(job.state)) stop.disabled = true;
    if (!job.alive) {
      status.dataset.ended = "yes";
      return;
    }
    await pause(400);
  }
}

function note(seen, line) {
  if (line.levels) {
    seen.levels = line.levels;
    seen.steps = line.steps;
  }
  if (line.loss) line.loss.forEach((loss, seed) => seen.points.push({ step: line.step, loss, seed: `seed ${seed}` }));
  if (line.plateaus) seen.plateaus = line.plateaus;
  if (line.attention) {
    seen.attention = line.attention;
    seen.row = line.row;
  }
  if (line.text) seen.words = `${seen.words}${line.text}\n`.slice(-6000);
}

function curves(seen, out) {
  const last = Math.max(
      1,
      seen.steps / 60,
      d3.max(seen.points, (point) => point.step),
    ),
    levels = apart(seen),
    seeds = [...new Set(seen.points.map((point) => point.seed))];
  return plot("held-out losses", {
    inside: out,
    less: 36,
    height: 380,
    marginLeft: 50,
    marginBottom: 42,
    marginRight: 16,
    color: { legend: true, domain: seeds, range: seeds.map((_, index) => colour(index)) },
    x: { label: "training step", domain: [0, last] },
    y: { label: "held-out loss (nats)", nice: true },
    marks: [
      Plot.ruleY(levels, { y: (each) => each[1], strokeDasharray: "4 3", strokeOpacity: 0.6 }),
      Plot.text(levels, {
        x: last,
        y: (each) => each[1],
        text: (each) => each[0],
        textAnchor: "end",
        dy: -7,
        fill: "currentColor",
        stroke: "var(--card)",
        strokeWidth: 4,
      }),
      Plot.line(seen.points, { x: "step", y: "loss", stroke: "seed", strokeWidth: 1.8 }),
      Plot.ruleY(seen.plateaus, {
        x1: "start",
        x2: "stop",
        y: "loss",
        stroke: "currentColor",
        strokeWidth: 6,
        strokeOpacity: 0.18,
      }),
      Plot.text(seen.plateaus, {
        x: (each) => (each.start + each.stop) / 2,
        y: "loss",
        text: (each) => `plateau: ${each.name}`,
        dy: 14,
        fill: "currentColor",
        stroke: "var(--card)",
        strokeWidth: 4,
      }),
    ],
  });
}

// The levels as lines; names of levels that would be written over each other stand side by side.
function apart(seen) {
  const [low, high] = d3.extent([...seen.points.map((point) => point.loss), ...Object.values(seen.levels)]),
    near = (high - low) / 22;
  return Object.entries(seen.levels)
    .sort((a, b) => a[1] - b[1])
    .reduce((found, [name, level]) => {
      const before = found.at(-1),
        first = before && found.find((each) => each[2] === before[2]);
      if (first && level - first[2] < near) {
        first[0] += `, ${name}`;
        found.push(["", level, first[2]]);
      } else found.push([name, level, level]);
      return found;
    }, []);
}

function attention(seen) {
  const names = seen.row,
    size = Math.max(12, Math.min(16, 300 / names.length));
  return [
    element("h3", {}, "Attention of the first seed on a held-out example (rows read columns)"),
    element(
      "div",
      { class: "films wide" },
      ...seen.attention.flatMap((layer, depth) =>
        layer.heads.map((head, index) =>
          element(
            "figure",
            {},
            element("figcaption", {}, `layer ${depth + 1}, head ${index + 1}`),
            heat(head, { size, about: layer.name, rowNames: names, columnNames: names }),
          ),
        ),
      ),
    ),
  ];
}
