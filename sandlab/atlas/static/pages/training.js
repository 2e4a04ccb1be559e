// Training live: what to train with which settings; the trainings that were kept.
import { ask, choose, code, element, go, inTurn, labelled, main, panel, started, told, view } from "../base.js";
import { follow } from "./job.js";
import { control, readSettings } from "./settings.js";

const FIRST = { world: "in-context-markov", settings: '{"length":"24"}' }; // short enough to be quick on any machine

export async function trainingPage(state) {
  const first = state.world ? state : { ...FIRST, ...state };
  const now = { settings: readSettings(first.settings), options: readSettings(first.options) };
  const { worlds } = await view("worlds");
  const number = (id, facts) => element("input", { id, type: "number", ...facts });
  const names = worlds.map((each) => each.name);
  const form = {
    world: choose("world", names, first.world),
    model: choose("model", [state.model ?? "transformer"]),
    steps: number("steps", { min: 1, max: 20000, value: state.steps ?? 300 }),
    seeds: number("seeds", { min: 1, max: 16, value: state.seeds ?? 3 }),
    lr: number("lr", { step: "any", min: 0, value: state.lr ?? 0.003 }),
  };
  const python = element("div", { class: "whole" });
  const kept = element("div", {});
  const out = element("div", { class: "panel", id: "live" }, element("p", { class: "muted" }, PROMISE));
  const fields = { settings: settingsBox("Settings of the world"), options: settingsBox("Settings of the model") };

  const texts = (values) => (Object.keys(values).length ? JSON.stringify(values) : "");
  const asked = () => ({
    ...Object.fromEntries(Object.entries(form).map(([name, input]) => [name, input.value])),
    settings: texts(now.settings),
    options: texts(now.options),
  });
  let drawn = "";
  async function refresh() {
    const { world, model, steps, lr, seeds } = asked();
    const found = await view("training", {
      world,
      model,
      settings: texts(now.settings) || "{}",
      options: texts(now.options) || "{}",
    });
    python.replaceChildren(code(found.code + linesOf(steps, lr, seeds)));
    if (drawn === `${world} ${model}`) return; // the controls stay, with the keyboard in them
    drawn = `${world} ${model}`;
    form.model.replaceChildren(
      ...found.models.map((each) => element("option", { value: each, selected: each === model }, each)),
    );
    for (const [kind, box] of Object.entries(fields))
      box.fill(
        found[kind].map((field) =>
          control(field, now[kind], (value) => {
            now[kind][field.name] = value;
            changed();
          }),
        ),
      );
  }
  const soon = inTurn(told(refresh));
  const changed = () => {
    go("training", asked(), true);
    return soon();
  };
  form.world.addEventListener("input", () => {
    now.settings = {};
  });
  form.model.addEventListener("input", () => {
    now.options = {};
  });
  for (const input of Object.values(form)) input.addEventListener("input", changed);

  const showKept = told(async () => {
    kept.replaceChildren(...keptList((await ask("/kept")).kept));
  });
  const begin = told(async () => {
    const { world, model, steps, seeds, lr } = asked();
    const plan = { kind: "train", world, model, ...now, steps: Number(steps), seeds: Number(seeds), lr: Number(lr) };
    const job = await ask("/jobs", { method: "POST", body: JSON.stringify(plan) });
    started();
    go("training", { ...asked(), job: job.number }, true);
    follow(job.number, out, showKept);
  });
  const train = element("button", { id: "train", class: "main", onclick: begin }, "Train");
  const left = panel(
    "",
    labelled("World", form.world),
    labelled("Model", form.model),
    labelled("Steps", form.steps),
    labelled("Seeds", form.seeds),
    labelled("Learning rate", form.lr),
    element("p", {}, train),
    fields.settings.box,
    fields.options.box,
    python,
  );
  main.replaceChildren(
    element("h2", {}, "Watch a training"),
    element("div", { class: "columns" }, element("div", {}, left, kept), out),
  );
  showKept();
  if (state.job) follow(state.job, out, showKept);
  await soon();
}

const PROMISE =
  "Losses of all seeds appear here as they train, beside those of the oracle and of the world's baselines. " +
  "Plateaus are named after the nearest baseline.";

// A part of the form that is opened when it is wanted.
function settingsBox(title) {
  const inside = element("div", { class: "settings" });
  return {
    box: element("details", { class: "whole" }, element("summary", {}, title), inside),
    fill: (controls) => inside.replaceChildren(...controls),
  };
}

const linesOf = (steps, lr, seeds) =>
  `training = sl.learning.Training(steps=${steps}, batch_size=32, lr=${lr}, eval_examples=256)\n` +
  `sl.lab.train_experiment(sl.learning.Experiment(world, config, training, seeds=${seeds}))`;

function keptList(kept) {
  if (!kept.length) return [];
  const line = (each) => {
    const place = new URLSearchParams({
      name: each.world,
      settings: JSON.stringify(each.settings),
      against: each.name,
    });
    const loss = each.loss == null ? "" : ` loss ${each.loss.toFixed(3)}:`;
    return element(
      "li",
      {},
      element("a", { href: `#/world?${place}` }, `${each.model} on ${each.world}`),
      element("span", { class: "muted" }, `${loss} guess against it`),
    );
  };
  return [panel("Kept", element("ul", { class: "plain" }, ...kept.map(line)))];
}
