// A job as it goes: its words; of a training the curves beside the baselines, the plateaus and the attention.
import { ask, colour, download, element, heat, pause, plot, tell, told, view } from "../base.js";
import { claimCard, legend, ours } from "./axis.js";

const ENDED = { waiting: "waits for its turn", failed: "has failed" };

export async function follow(number, out, afterKeep = () => {}) {
  const seen = {
    points: [],
    steps: 0,
    step: 0,
    levels: {},
    plateaus: [],
    attention: null,
    row: [],
    words: "",
    since: 0,
  };
  const parts = controlsOf(number, afterKeep);
  const status = element("p", { id: "state" });
  const picture = element("div", {});
  const maps = element("div", {});
  const text = element("pre", { hidden: true });
  out.replaceChildren(
    status,
    element("div", { class: "keys" }, parts.stop, parts.keep, parts.save),
    picture,
    maps,
    text,
  );
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
    status.textContent = `${job.title}: ${progress(job, seen)}`;
    if (job.lines.length) {
      text.textContent = seen.words;
      text.hidden = !seen.words;
      if (seen.points.length) picture.replaceChildren(curves(seen, out));
      if (job.lines.some((line) => line.attention)) showAttention(maps, seen);
    }
    parts.update(job);
    if (!job.alive) {
      if (job.kind === "run" && job.state === "done") await told(showFindings)(number, picture);
      status.dataset.ended = "yes";
      return;
    }
    await pause(400);
  }
}

// What a study has found just now, each beside its recorded verdict.
async function showFindings(number, place) {
  const [{ claims: now }, { claims }] = await Promise.all([ask(`/jobs/${number}/findings`), view("claims")]);
  const recorded = new Map(claims.map((each) => [each.id, each]));
  const past = ({ id }) => {
    const each = recorded.get(id);
    return each ? `recorded: ${each.verdict}; ${ours(each)} (${each.preset} run)` : "not recorded yet";
  };
  place.replaceChildren(legend(), ...now.map((each) => claimCard(each, [past(each)])));
}

function progress(job, seen) {
  if (job.state === "running" && seen.steps) return `step ${seen.step} of ${seen.steps}, running`;
  return ENDED[job.state] ?? job.state;
}

function controlsOf(number, afterKeep) {
  const stop = element("button", { onclick: told(() => ask(`/jobs/${number}`, { method: "DELETE" })) }, "Stop");
  const keepIt = async () => {
    await ask(`/jobs/${number}/keep`, { method: "POST", body: "{}" });
    keep.textContent = "Kept";
    keep.disabled = true;
    afterKeep();
  };
  const keep = element("button", { hidden: true, onclick: told(keepIt) }, "Keep");
  const exported = () => download(`/jobs/${number}/export`, `sandlab-training-${number}.zip`);
  const save = element("button", { hidden: true, onclick: told(exported) }, "Export");
  function update(job) {
    keep.hidden = save.hidden = !(job.saved && !job.alive);
    if (job.kept) keep.textContent = "Kept";
    keep.disabled = Boolean(job.kept);
    stop.disabled = !["waiting", "running"].includes(job.state);
  }
  return { stop, keep, save, update };
}

function note(seen, line) {
  if (line.levels) Object.assign(seen, { levels: line.levels, steps: line.steps });
  if (line.loss) {
    seen.step = line.step;
    line.loss.forEach((loss, seed) => {
      if (loss != null) seen.points.push({ step: line.step, loss, seed: `seed ${seed}` }); // no number: it has diverged
    });
  }
  if (line.plateaus) seen.plateaus = line.plateaus;
  if (line.attention) Object.assign(seen, { attention: line.attention, row: line.row });
  if (line.text) seen.words = `${seen.words}${line.text}\n`.slice(-6000);
}

function curves(seen, out) {
  const last = Math.max(
    1,
    seen.steps / 60,
    d3.max(seen.points, (point) => point.step),
  );
  const levels = apart(seen);
  const seeds = [...new Set(seen.points.map((point) => point.seed))];
  const written = { fill: "currentColor", stroke: "var(--card)", strokeWidth: 4 };
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
      Plot.ruleY(levels, { y: "level", strokeDasharray: "4 3", strokeOpacity: 0.6 }),
      Plot.line(seen.points, { x: "step", y: "loss", stroke: "seed", strokeWidth: 1.8 }),
      Plot.ruleY(seen.plateaus, {
        x1: "start",
        x2: "stop",
        y: "loss",
        stroke: "currentColor",
        strokeWidth: 6,
        strokeOpacity: 0.18,
      }),
      Plot.text(levels, { x: last, y: "level", text: "name", textAnchor: "end", dy: -7, ...written }),
      Plot.text(seen.plateaus, {
        x: (each) => (each.start + each.stop) / 2,
        y: "loss",
        text: (each) => plateauName(each, seen.levels),
        dy: 14,
        ...written,
      }),
    ],
  });
}

// A plateau has the name of the nearest baseline; one that lies apart from it says how far.
function plateauName({ name, loss }, levels) {
  const apart = loss - levels[name];
  if (Math.abs(apart) < 0.02) return `plateau: ${name}`;
  return `plateau: ${Math.abs(apart).toPrecision(2)} ${apart > 0 ? "above" : "below"} ${name}`;
}

// The levels as lines; names of levels that would be written over each other stand side by side on the lowest.
function apart(seen) {
  const losses = [...seen.points.map((point) => point.loss), ...Object.values(seen.levels)];
  const near = (d3.max(losses) - d3.min(losses)) / 22;
  const found = [];
  let first;
  for (const [name, level] of Object.entries(seen.levels).sort((a, b) => a[1] - b[1])) {
    if (first && level - first.level < near) {
      first.name += `, ${name}`;
      found.push({ name: "", level });
    } else found.push((first = { name, level }));
  }
  return found;
}

function showAttention(maps, seen) {
  const chosen = Number(maps.querySelector("select")?.value ?? 0);
  if (maps.querySelector("select:focus")) {
    maps.querySelector(".films").replaceWith(films(seen, chosen)); // whoever is choosing goes on
    return;
  }
  const options = seen.attention.map((_, seed) =>
    element("option", { value: seed, selected: seed === chosen }, `seed ${seed}`),
  );
  const redraw = (event) => maps.querySelector(".films").replaceWith(films(seen, Number(event.target.value)));
  const choice = element(
    "select",
    { id: "member", "aria-label": "Attention of which seed", onchange: redraw },
    ...options,
  );
  maps.replaceChildren(
    element("h3", { class: "row" }, element("span", {}, "Attention on a held-out example (rows read columns)"), choice),
    films(seen, chosen),
  );
}

function films(seen, seed) {
  const names = seen.row;
  const size = Math.max(12, Math.min(16, 300 / names.length));
  const figure = (layer, depth) => (head, index) =>
    element(
      "figure",
      {},
      element("figcaption", {}, `layer ${depth + 1}, head ${index + 1}`),
      heat(head, { size, about: layer.name, rowNames: names, columnNames: names }),
    );
  const layers = seen.attention[Math.min(seed, seen.attention.length - 1)];
  return element(
    "div",
    { class: "films wide" },
    ...layers.flatMap((layer, depth) => layer.heads.map(figure(layer, depth))),
  );
}
