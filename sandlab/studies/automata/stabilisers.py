"""What steadies training: averaged weights, dropout, patience with the learning rate."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sandlab import figures
from sandlab.studies.automata.runs import SOURCE, Run, Task, by_task, measured
from sandlab.studies.claims import Above, Below, Claim
from sandlab.studies.study import Lab, Outcome, study

GROUPS, MEMORIES = (Task("D8"), Task("Q8")), (Task("Grid9"), Task("Dyck4_2"))
AVERAGED = Run(batch_size=32, lr=2e-3, schedule="constant", steps=700, looks=70)
DROPPED = Run(tasks=GROUPS + MEMORIES, length=16, layers=4, width=128, steps=3000)
WATCHED = Run(schedule="constant", steps=1000, looks=40)


@dataclass(frozen=True)
class Settings:
    """Seeds; decays of the weight average; dropout rates and patiences (evaluations); the runs of each comparison."""

    seeds: int = 3
    decays: tuple[float, ...] = (0.9,)
    rates: tuple[float, ...] = ()
    patiences: tuple[int, ...] = ()
    average: Run = AVERAGED
    dropout: Run = DROPPED
    patience: Run = WATCHED


@study(
    "automata/stabilisers",
    title="Averaged weights smooth the curves of training and cost nothing",
    source=f"{SOURCE}, §5.1 and appendix on training",
    quick=Settings(),
    full=Settings(
        seeds=5,
        decays=(0.85, 0.9, 0.95),
        rates=(0.0, 0.1, 0.2, 0.3),
        patiences=(1, 8),
        average=replace(AVERAGED, length=16, steps=3000),
    ),
    claims=[
        Claim(
            "smoother",
            "The curve of the averaged weights is smoother than that of the weights themselves.",
            f"{SOURCE}, §5.1",
            "spread of the changes between evaluations, averaged over plain weights, mean over seeds and decays",
            Below(1.0),
        ),
        Claim(
            "no-worse",
            "Averaging does not cost accuracy.",
            f"{SOURCE}, §5.1",
            "mean accuracy over the second half of training, averaged minus plain weights, mean over seeds and decays",
            Above(-0.01),
        ),
        Claim(
            "insensitive",
            "The decay of the average matters little.",
            f"{SOURCE}, §5.1",
            "largest difference of the final mean accuracies of two decays (averaged weights)",
            Below(0.1),
            exact=True,
            paper="insensitive in 0.85 to 0.95",
            presets=("full",),
        ),
        Claim(
            "dropout-groups",
            "A little dropout does not hurt on groups.",
            f"{SOURCE}, §5.1",
            "best accuracy with dropout 0.1 minus without, mean over D₈ and Q₈",
            Above(-0.005),
            exact=True,
            paper="0.1 is the best rate for dihedral and quaternion groups",
            presets=("full",),
        ),
        Claim(
            "dropout-memories",
            "Dropout does not help on memories and walks.",
            f"{SOURCE}, §5.1",
            "best accuracy with dropout 0.1 minus without, mean over Dyck and Grid₉",
            Below(0.005),
            exact=True,
            paper="harmful",
            presets=("full",),
        ),
        Claim(
            "patience",
            "A scheduler that lowers the rate only after long plateaus does better than a hasty one.",
            f"{SOURCE}, appendix on training",
            "mean accuracy on C₂ with the largest patience minus that with the smallest",
            Above(0.0),
            exact=True,
            paper="larger patience helps",
            presets=("full",),
        ),
    ],
)
def stabilisers(config: Settings, lab: Lab) -> Outcome:
    """Training on automata is unstable; three remedies of the source, each against its absence.

    Averaged weights: w̄ ← γ w̄ + (1 − γ) w after every step, evaluated beside w on the same words; the learning rate
    stays constant, so that w keeps moving. Dropout of residual branches, attention and embeddings. A scheduler that
    halves the rate when the loss on fixed words has not fallen for so many evaluations (its patience).

    Published: γ in {0.85, 0.9, 0.95}, dropout in {0, 0.1, 0.2, 0.3}, two patiences, length 100. Quick: C₂ with 12
    letters, γ = 0.9, 700 batches of 32 words at rate 2e-3, an evaluation every 10, 3 seeds. Full: C₂ with 16 letters
    and three γ; dropout on D₈, Q₈, Grid₉ and Dyck (16 letters, 4 layers of width 128, 3000 batches); patiences of 1 and
    8 evaluations on C₂ (12 letters, 2 layers, 1000 batches); 5 seeds.

    What to look for: the thin line (plain weights) is ragged, the thick one (averaged) runs through its middle. With γ
    = 0.9 the average reaches back about ten steps: it removes noise between neighbouring steps, not the differences
    between seeds.
    """
    averaged = [replace(config.average, ema=decay) for decay in config.decays]
    dropped = [replace(config.dropout, dropout=rate) for rate in config.rates]
    watched = [replace(config.patience, patience=patience) for patience in config.patiences]
    found = by_task(lab, [*averaged, *dropped, *watched], config.seeds, "stabilisers")
    parts = iter(found)
    averages = {decay: next(parts) for decay in config.decays}
    dropouts = {rate: next(parts)["token"] for rate in config.rates}
    patiences = {patience: next(parts)["token"][Task()] for patience in config.patiences}
    few, many = min(config.patiences, default=0), max(config.patiences, default=0)
    others, lacking = measured(
        {
            "dropout-groups": lambda: _gain(dropouts, GROUPS),
            "dropout-memories": lambda: _gain(dropouts, MEMORIES),
            "patience": lambda: float(patiences[many].mean() - patiences[few].mean()),
        }
    )
    measurements = _averages(averages) | others
    if "insensitive" not in measurements:
        lacking["insensitive"] = "left out by the settings: a second decay"
    last = {decay: table["ema/accuracy curve"][Task()][:, -1] for decay, table in averages.items()}
    rows = [_row(f"average, decay {decay}", "C2", values) for decay, values in last.items()]
    for rate, by_machine in dropouts.items():
        rows += [_row(f"dropout {rate}", task.machine, values) for task, values in by_machine.items()]
    rows += [_row(f"patience {patience}", "C2", values) for patience, values in patiences.items()]
    return Outcome(
        measurements, {"stabilisers": _draw(averages, dropouts, config)}, {"stabilisers": rows}, unmeasured=lacking
    )


def _averages(averages: dict[float, Any]) -> dict[str, Any]:
    plain = [table["accuracy curve"][Task()] for table in averages.values()]
    smooth = [table["ema/accuracy curve"][Task()] for table in averages.values()]
    rough = [np.diff(curves, axis=1).std(1) for curves in plain]
    calm = [np.diff(curves, axis=1).std(1) for curves in smooth]
    half = plain[0].shape[1] // 2
    last = [float(curves[:, -1].mean()) for curves in smooth]
    found: dict[str, Any] = {
        "smoother": np.mean([soft / np.maximum(hard, 1e-9) for soft, hard in zip(calm, rough)], 0),
        "no-worse": np.mean([(after - before)[:, half:].mean(1) for before, after in zip(plain, smooth)], 0),
    }
    return found | ({"insensitive": max(last) - min(last)} if len(last) > 1 else {})


def _gain(dropouts: dict[float, dict[Task, np.ndarray]], tasks: tuple[Task, ...]) -> float:
    return float(np.mean([dropouts[0.1][task].max() - dropouts[0.0][task].max() for task in tasks]))


def _row(setting: str, machine: str, values: np.ndarray) -> dict[str, Any]:
    return {
        "setting": setting,
        "automaton": machine,
        "mean": float(values.mean()),
        "median": float(np.median(values)),
        "best": float(values.max()),
    }


def _draw(averages: dict[float, Any], dropouts: dict[float, dict[Task, np.ndarray]], config: Settings) -> Any:
    figure, axes = figures.new(columns=1 + bool(dropouts), width=5.0, height=3.2)
    decay, table = next(iter(averages.items()))
    steps = table["steps"][Task()]
    for seed, (plain, smooth) in enumerate(zip(table["accuracy curve"][Task()], table["ema/accuracy curve"][Task()])):
        colour = figures.COLOURS[seed % 8]
        thin: dict[str, Any] = {"linewidth": 0.6, "alpha": 0.7, "label": "" if seed else "weights"}
        axes[0].plot(steps, plain, color=colour, linestyle="-", **thin)
        label = "" if seed else f"averaged weights, γ = {decay:g}"
        axes[0].plot(steps, smooth, color=colour, linewidth=1.8, linestyle="-", label=label)
    axes[0].set(title="C₂", xlabel="training step", ylabel="token accuracy")
    axes[0].legend(loc="lower right")
    if dropouts:
        for task in config.dropout.tasks:
            best = [values[task].max() for values in dropouts.values()]
            axes[1].plot(list(dropouts), best, marker="o", label=task.machine)
        axes[1].set(title="best run", xlabel="dropout", ylabel="token accuracy")
        axes[1].legend()
    return figure
