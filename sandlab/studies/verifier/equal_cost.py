"""Five ways to spend model evaluations on a right string, at equal cost.

Three tasks: completing unfamiliar Dyck words, the last of several test cases of list append, JSON records. All
algorithms but backtracking check a finished string exactly.

- *rejection*: whole strings until one is right;
- *best of n*: n whole strings, a right one if there is one;
- *backtracking*: tokenwise rejection with backtracking (B = 4, τ = 0.3), the quota Q growing with the budget;
- *value-guided*: tokens accepted with probability V, begun anew when stuck;
- *walk*: value-guided sampling with backtracking (VGB), first leaf of the padded tree.

V(s) ≈ P(success | s) is a small network on the last layer's activation, trained on the outcomes of the model's own
rollouts, exact on complete strings. A budget k means k times the tokens of one completion; cost is what was computed:
every prefix that the network read, for the distribution of the next token or for V. The distance to the target is
measured with the largest budget: total variation between what came out right and rejection's samples, over the same
between two samples of rejection (1 is no distance). What is looked at of a string: the first three brackets, the
length of the line, the number of tags.

The comparison is the laboratory's own: no source gives it a size. In full it has 8 seeds for 3, 5 times the prompts
and 10 times the rollouts of quick, budgets up to 32 for 8, and walks of 20 H² steps for 6 H². Its models are as small
as those of quick (2 layers of width 64, where the published model of Dyck words has 6 of width 512; 4 test cases of
lists of 2, where the full studies of code have 8 of 5): one core trains each of them within minutes.

Two algorithms are compared at equal cost: at the largest cost that both have paid, each line read between its points.

What to look for: each line is one algorithm, further left is cheaper, further up is better. Written down before the
first run: at equal cost the walk is right more often than value-guided sampling with the same values, and nearer to the
target; backtracking, which promises no law, is right more often than best of n.

**What was learnt** (full, 2026-11-18; quick points the same way). The walk pays for its law: about the square of the
length in evaluations, 58, 82 and 132 a prompt on the three tasks, where value-guided sampling needs 20, 24 and 15 and
plain rejection 26, 26 and 19. At the largest cost that value-guided sampling pays, the walk has hardly ever reached a
leaf (accuracy lower by 0.92). Ten times the rollouts make the values better calibrated (a gap of 0.03 for 0.07) but not
sharp (area under ROC 0.74). Walk and value-guided sampling are so near to the target that no distance between them is
seen (−0.2 ± 0.7). Where strings are checked exactly in the end, restarting is cheaper than walking back. Backtracking
is ahead of best of n for the same evaluations (by 0.09) and farthest from the target.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter

from sandlab import figures
from sandlab.studies.claims import Mean
from sandlab.studies.study import Lab, Rows, Study
from sandlab.studies.verifier._cost_runs import (
    ALGORITHMS,
    BUDGETS,
    Curves,
    Settings,
    collect_curves,
    records_experiment,
)
from sandlab.studies.verifier._decoding_runs import QUERIES, THESIS, spread, untrained
from sandlab.studies.verifier._exact import WALKS
from sandlab.studies.verifier.codegen import _code_runs as code
from sandlab.studies.verifier.dyck import _dyck_runs as dyck

# The Dyck and code models are those of the other studies, which a store keeps.
QUICK = Settings(
    dyck=replace(dyck.SMALL, seeds=3),
    append=code.QUICK.model,
    records=records_experiment(seeds=3, steps=500, width=48, layers=2),
    prompts=60,
    rollouts=400,
    repeated=3,
    samples=40,
    budgets=(1, 3, 8),
    tries=16,
    walk_steps=6,
)
# The same small models, so that no GPU is needed: `--on processes:8` gives every seed a core.
FULL = Settings(
    dyck=replace(dyck.SMALL, seeds=8),
    append=replace(code.QUICK.model, seeds=8),
    records=records_experiment(seeds=8, steps=1000, width=64, layers=2),
    budgets=(*BUDGETS, 32),
    prompts=300,
    rollouts=4000,
    samples=100,
)
NULL = replace(QUICK, dyck=untrained(QUICK.dyck), append=untrained(QUICK.append), records=untrained(QUICK.records))

study = Study(
    "verifier/equal-cost",
    title="Five ways to spend model evaluations on a right string, at equal cost",
    source=f"{WALKS}; {QUERIES}",
    at=f"{THESIS}, §3.3.1",
    quick=QUICK,
    full=FULL,
    null=NULL,
)


@dataclass(frozen=True)
class Results:
    """Task → what the model of each seed gave."""

    curves: dict[str, list[Curves]]

    def line(self, task: str, algorithm: str, what: str) -> np.ndarray:
        """Seed × budget."""
        return np.array(
            [
                [getattr(point, what) for point in curve.points if point.algorithm == algorithm]
                for curve in self.curves[task]
            ]
        )

    def over_tasks(self, values: list[list[float]] | list[np.ndarray]) -> np.ndarray:
        """Mean over tasks, one number for each seed that all tasks have."""
        seeds = min(map(len, values))
        return np.mean([np.asarray(each)[:seeds] for each in values], axis=0)

    def last(self, algorithm: str, what: str) -> np.ndarray:
        """With the largest budget, mean over tasks."""
        return self.over_tasks([self.line(task, algorithm, what)[:, -1] for task in self.curves])

    def gain(self, algorithm: str, other: str) -> np.ndarray:
        """Accuracy of one algorithm minus another's at the largest cost that both have paid, mean over tasks."""
        return self.over_tasks([self._gains(task, algorithm, other) for task in self.curves])

    def _gains(self, task: str, algorithm: str, other: str) -> list[float]:
        lines = [[self.line(task, name, what) for what in ("cost", "accuracy")] for name in (algorithm, other)]
        return [
            _at_cost(*(each[seed] for each in lines[0]), cost=common)
            - _at_cost(*(each[seed] for each in lines[1]), cost=common)
            for seed, common in enumerate(np.minimum(*(cost.max(1) for cost, _ in lines)))
        ]


def _at_cost(costs: np.ndarray, values: np.ndarray, *, cost: float) -> float:
    """A line read at one cost, straight between its points on a logarithmic axis."""
    order = np.argsort(costs)
    return float(np.interp(np.log(cost), np.log(costs[order]), values[order]))


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    return Results(collect_curves(settings, lab))


@study.claim(Mean(above=0.8), at="§3.3.1")
def values_rank(results: Results) -> np.ndarray:
    """The value function ranks prefixes that end well above the others.

    Area under ROC on unseen rollouts, mean over tasks.
    """
    return results.over_tasks([[curve.area for curve in curves] for curves in results.curves.values()])


@study.claim(Mean(below=0.1), at="§3.3.1")
def values_calibrated(results: Results) -> np.ndarray:
    """It is calibrated: values are probabilities.

    Mean gap between value and share that ended well, by tenths of the value, mean over tasks; 1 where fewer than one
    string in a hundred ends well, which any value near 0 foretells.
    """
    gaps = [[c.calibration if c.success > 0.01 else 1.0 for c in curves] for curves in results.curves.values()]
    return results.over_tasks(gaps)


@study.claim(Mean(above=0.0), source=WALKS, at="experiments", paper="better at equal cost")
def walk_beats_guided(results: Results) -> np.ndarray:
    """The walk is right more often than value-guided sampling without backtracking.

    Accuracy of the walk minus value-guided at equal cost, mean over tasks.
    """
    return results.gain("walk", "value-guided")


@study.claim(Mean(below=0.0), source=WALKS, at="error amplification", paper="nearer to the target")
def walk_is_nearer(results: Results) -> np.ndarray:
    """Its strings are nearer to the model given the language than those of value-guided sampling.

    Distance to the target of the walk minus value-guided, mean over tasks.
    """
    return results.last("walk", "distance") - results.last("value-guided", "distance")


@study.claim(Mean(above=0.0), source=QUERIES, at="Table 3.2")
def backtracking_pays(results: Results) -> np.ndarray:
    """Backtracking is right more often than one sample of the model.

    Accuracy of backtracking with the second budget minus best of 1, mean over tasks.
    """
    gained = [
        results.line(task, "backtracking", "accuracy")[:, 1] - results.line(task, "best of n", "accuracy")[:, 0]
        for task in results.curves
    ]
    return results.over_tasks(gained)


@study.claim(Mean(above=0.0), source=QUERIES, at="Figure 3.3", paper="more for the same queries")
def backtracking_beats_best_of_n(results: Results) -> np.ndarray:
    """Backtracking is right more often than best of n for the same evaluations.

    Accuracy of backtracking minus best of n at equal cost, mean over tasks.
    """
    return results.gain("backtracking", "best of n")


@study.table
def at_the_largest_budget(results: Results) -> Rows:
    return [
        {
            "task": task,
            "algorithm": name,
            "accuracy": spread(results.line(task, name, "accuracy")[:, -1]),
            "evaluations": spread(results.line(task, name, "cost")[:, -1], 1),
            "verifier calls": spread(results.line(task, name, "asked")[:, -1], 1),
            "distance to the target": spread(results.line(task, name, "distance")[:, -1], 2),
        }
        for task in results.curves
        for name in ALGORITHMS
    ]


@study.figure
def accuracy_against_cost(results: Results) -> Figure:
    figure, axes = figures.new(columns=len(results.curves), width=3.6, height=3.2)
    for axis, task in zip(axes, results.curves):
        for name in ALGORITHMS:
            cost, accuracy = results.line(task, name, "cost").mean(0), results.line(task, name, "accuracy").mean(0)
            axis.plot(cost, accuracy, marker="o", markersize=4, label=name)
        axis.set(xscale="log", xlabel="model evaluations per prompt", title=task, ylim=(0, 1.03))
        axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.xaxis.set_major_formatter("{x:g}")
        axis.xaxis.set_minor_formatter(NullFormatter())
    axes[0].set_ylabel("prompts with a right string")
    axes[-1].legend(fontsize=7, loc="lower right")
    return figure


@study.figure
def calibration(results: Results) -> Figure:
    figure, axes = figures.new(columns=len(results.curves), width=3.2, height=3.0)
    for axis, (task, curves) in zip(axes, results.curves.items()):
        axis.plot([0, 1], [0, 1], ":", color="#555555")
        for curve in curves:
            axis.plot(curve.predicted, curve.observed, marker="o", markersize=3)
        axis.set(xlabel="value of a prefix", title=task, xlim=(0, 1), ylim=(0, 1.02))
    axes[0].set_ylabel("share that ended well")
    return figure
