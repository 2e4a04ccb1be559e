"""With SGD from near zero the values grow first and attention follows; with Adam all grow at once.

**Set-up.** LDA documents as in `topics/value-blocks`; one-hot embeddings; keys, queries, values and their biases are
trained together with the cross-entropy from weights near zero, and norms are read after every fourth step. The source
does not say which optimiser, rates and scales its figure has; those here show the stages within its thousand steps.

**Why.** With weights of size ε, the gradient of the values tends to a constant, those of keys and queries to zero as
ε². SGD moves in proportion, so attention waits for the values. Adam divides by the size of the gradient: everything
moves at once, and there are no two stages at any learning rate.

**What was learnt** (full, 20 seeds, one H200, 2026-11-16). The detector says yes to all sixty runs with SGD and to none
of forty with Adam. With SGD keys or queries have gained a tenth of their growth at step 92, 200 and 320, values at 42,
70 and 108; with Adam keys at 20 and 24, values at 16 and 32.

**What to look for.** Shaded is the time until the first of keys and queries has gained a tenth of its growth. That keys
and queries grow does not mean that attention is topical: with the cross-entropy, keys first learn to look away from
[MASK].
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from matplotlib.figure import Figure

from sandlab.figures import COLOURS, new
from sandlab.learning.experiment import Experiment, Training
from sandlab.lenses.topics.dynamics import StageTimes, attention_norms, stage_times
from sandlab.models.topics.one_layer import OneLayerTopicsConfig
from sandlab.studies.claims import Mean, NotMeasured, Ratio
from sandlab.studies.nulls import untrained
from sandlab.studies.study import Lab, Rows, Study
from sandlab.studies.topics import _shared as shared

PARTS = ("key", "query", "value")
SGD = {"SGD, 20": (20.0, 0.005), "SGD, 10": (10.0, 0.002), "SGD, 5": (5.0, 0.01)}
ADAM = {"Adam, 0.01": (0.01, 0.001), "Adam, 0.003": (0.003, 0.001)}
FASTEST = "SGD, 20"


@dataclass(frozen=True)
class Settings:
    """One experiment for each optimiser, learning rate and scale of the first weights; names say the first two."""

    names: tuple[str, ...]
    runs: tuple[Experiment, ...]


def experiment(optimizer: str, lr: float, std: float, steps: int, seeds: int) -> Experiment:
    how = Training(steps=steps, batch_size=40, lr=lr, optimizer=optimizer, evals=max(1, steps // 4), eval_examples=8)
    model = OneLayerTopicsConfig(vocab=shared.VOCAB, read=shared.LAST, std=std)
    return Experiment(shared.WORLD, model, how, seeds, probes=(attention_norms,))


def settings(steps: int, seeds: int) -> Settings:
    slow = [experiment("sgd", lr, std, steps, seeds) for lr, std in SGD.values()]
    fast = [experiment("adam", lr, std, steps, seeds) for lr, std in ADAM.values()]
    return Settings((*SGD, *ADAM), (*slow, *fast))


QUICK = settings(1000, 8)
study = Study(
    "topics/two-stages",
    title="With SGD from near zero the values grow first and attention follows; with Adam all grow at once",
    source=shared.SOURCE,
    at="Figure 2.4",
    quick=QUICK,
    full=settings(1000, 20),
    null=replace(QUICK, runs=tuple(untrained(each) for each in QUICK.runs)),
)


@dataclass(frozen=True)
class Results:
    """Norms (seed, step) of keys, queries and values in each setting."""

    eval_steps: np.ndarray
    norms: dict[str, dict[str, np.ndarray]]

    def times(self, name: str) -> list[StageTimes]:
        curves = self.norms[name]
        seeds = range(len(curves["value"]))
        return [stage_times(self.eval_steps, {part: curves[part][seed] for part in PARTS}) for seed in seeds]

    def lateness(self, name: str) -> np.ndarray:
        """How many times later than values keys or queries gain a tenth of their growth; 1 when nothing grows."""
        found = [(min(each.tenth["key"], each.tenth["query"]), each.tenth["value"]) for each in self.times(name)]
        return np.array([late / max(first, 1) if np.isfinite(first) else 1.0 for late, first in found])


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    runs = lab.train(settings.runs, label="norms")
    norms = {
        name: {part: each.metrics[f"{part} norm"][:, :, 0] for part in PARTS}
        for name, each in zip(settings.names, runs)
    }
    return Results(runs[0].eval_steps, norms)


@study.claim(Ratio(above=2.0), at="Figure 2.4", paper="stage 1 to step 400, stage 2 to step 1000")
def values_first_with_sgd(results: Results) -> np.ndarray:
    """With SGD, values grow at least twice as early as keys and queries, in every setting.

    Step at which keys or queries have gained a tenth of their growth / that of values; the smallest of the settings.
    """
    return np.min([results.lateness(name) for name in SGD], axis=0)


@study.claim(Ratio(below=2.0, above=0.0), at="§2.1.6.1", paper="not visible with default hyper-parameters")
def together_with_adam(results: Results) -> np.ndarray:
    """With Adam they do not.

    Step at which keys or queries have gained a tenth of their growth / that of values; the largest of the settings.
    """
    if not all((results.norms[name]["value"].max(1) > 1.5 * results.norms[name]["value"][:, 0]).all() for name in ADAM):
        raise NotMeasured("values that grow")
    return np.max([results.lateness(name) for name in ADAM], axis=0)


@study.claim(Mean(below=10.0), at="Figure 2.4")
def values_move_at_once(results: Results) -> list[float]:
    """With SGD at rate 20 the norm of the values doubles within a few steps.

    Step at which it is twice its first value; the last step when it never is.
    """
    return [min(each.double["value"], float(results.eval_steps[-1]) + 10) for each in results.times(FASTEST)]


@study.claim(Mean(above=50.0), at="Figure 2.4")
def attention_waits(results: Results) -> list[float]:
    """Keys and queries take many more.

    Step at which the first of their norms is twice its first value; 0 where the norm of the values never is.
    """
    times = [each.double for each in results.times(FASTEST)]
    return [min(each["key"], each["query"], 1e6) if np.isfinite(each["value"]) else 0.0 for each in times]


@study.table
def times(results: Results) -> Rows:
    rows = []
    for name in results.norms:
        found = results.times(name)
        row: dict[str, object] = {"setting": name, "two stages": f"{sum(e.two_stages for e in found)} of {len(found)}"}
        row |= {f"{part}: a tenth": float(np.median([each.tenth[part] for each in found])) for part in PARTS}
        row |= {f"{part}: doubled": float(np.median([each.double[part] for each in found])) for part in PARTS}
        rows.append(row)
    return rows


@study.figure
def norms(results: Results) -> Figure:
    figure, axes = new(columns=len(results.norms), width=3.0, height=2.8, title="Values first with SGD, all with Adam")
    for axis, (name, curves) in zip(axes, results.norms.items()):
        for part, colour in zip(PARTS, COLOURS):
            for index, curve in enumerate(curves[part]):
                axis.plot(results.eval_steps, curve / curve.max(), color=colour, alpha=0.7, label="" if index else part)
        first = np.median([min(each.tenth["key"], each.tenth["query"]) for each in results.times(name)])
        if np.isfinite(first):
            axis.axvspan(0, first, color="#dddddd", alpha=0.5, linewidth=0)
        axis.set(title=name, xlabel="training step")
    axes[0].set_ylabel("norm (share of its largest)")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure
