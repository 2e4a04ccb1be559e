"""Beyond the training length attention thins out, on predicates and on answers.

The models of Figure 2 at lengths 10, 20 and 40: attention of each answer on the predicate that it needs (Figure 6)
and on itself (Figure 7), against the relative position of the step. The source reports that both fall with length,
that the predicate's share decays with position for S_5 and stays flat for C_6, and that the answer's share is stable
for S_5 and decays for C_6 without loss of accuracy. The specification's probes did not see the contrast between the
tasks: the slopes are tabulated and not claimed.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.learning.experiment import Runs
from sandlab.studies.claims import Mean, NotMeasured
from sandlab.studies.nulls import untrained
from sandlab.studies.reasoning import _shared as shared
from sandlab.studies.reasoning._shared import Pair, PairRuns
from sandlab.studies.study import Lab, Rows, Study

LENGTHS = (10, 20, 40)

study = Study(
    "reasoning/attention-out-of-length",
    title="Attention on the needed clauses thins out as chains grow",
    source=shared.SOURCE,
    at="Figures 6 and 7",
    quick=shared.QUICK,
    full=shared.FULL,
    null=untrained(shared.QUICK),
)


@study.collect
def collect(settings: Pair, lab: Lab) -> PairRuns:
    return shared.trained_pair(settings, lab)


def diagonal(runs: Runs, kind: str, length: int) -> np.ndarray:
    """Attention on the needed predicate or answer (seed, step); refused where attention is not on them at all."""
    if runs.final["predicate 10"].mean() < 0.2:
        raise NotMeasured("attention does not find the predicates")
    found: np.ndarray = runs.final[f"{kind} {length}"]
    return found


@study.claim(Mean(below=0.02), at="Figure 6", paper="scores fall when the length grows from 10 to 20")
def predicates_thin_out(results: PairRuns) -> np.ndarray:
    """Attention on the needed predicate does not grow when the length doubles.

    Mean over steps at length 20 minus that at length 10, the larger of both tasks.
    """
    changes = [
        diagonal(runs, "predicate", 20).mean(1) - diagonal(runs, "predicate", 10).mean(1)
        for runs in results.both().values()
    ]
    return np.maximum(*changes)


@study.claim(Mean(below=0.0), at="Figure 7", paper="C6: sharp decay with position")
def answers_decay_with_position(results: PairRuns) -> np.ndarray:
    """On the cyclic task the last answers of a chain get less attention than the first.

    Attention on the last answer minus that on the first, length 20.
    """
    found = diagonal(results.cyclic, "answer", 20)
    return found[:, -1] - found[:, 0]


@study.claim(Mean(below=0.0), at="Figure 7")
def answers_thin_out(results: PairRuns) -> np.ndarray:
    """Attention on the answer falls with length on the cyclic task.

    Mean over steps at length 40 minus that at length 10.
    """
    return diagonal(results.cyclic, "answer", 40).mean(1) - diagonal(results.cyclic, "answer", 10).mean(1)


def slope(values: np.ndarray) -> float:
    """Slope of attention against relative position, mean over seeds."""
    place = np.arange(1, values.shape[1] + 1) / values.shape[1]
    return float(np.polyfit(place, values.mean(0), 1)[0])


@study.table
def slopes(results: PairRuns) -> Rows:
    return [
        {
            "task": name,
            "clause": kind,
            "length": length,
            "mean": float(values.mean()),
            "first": float(values[:, 0].mean()),
            "last": float(values[:, -1].mean()),
            "slope": slope(values),
        }
        for name, runs in results.both().items()
        for kind in ("predicate", "answer")
        for length in LENGTHS
        for values in [runs.final[f"{kind} {length}"]]
    ]


@study.figure
def diagonals(results: PairRuns) -> dict[str, Figure]:
    return {
        "predicates": draw(results, "predicate", "needed predicate"),
        "answers": draw(results, "answer", "answer itself"),
    }


def draw(results: PairRuns, kind: str, name: str) -> Figure:
    """Diagonals by relative position for three lengths, and the maps at length 20."""
    figure, axes = figures.new(columns=4, width=3.6, title=f"Attention on the {name} beyond the training length")
    for axis, (task, runs) in zip(axes, results.both().items()):
        for length in LENGTHS:
            values = runs.final[f"{kind} {length}"]
            figures.band(axis, np.arange(1, length + 1) / length, values, label=f"length {length}")
        axis.set(title=task, xlabel="relative position of the step", ylabel=f"attention on the {name}", ylim=(0, 1))
        axis.legend()
    for axis, (task, runs) in zip(axes[2:], results.both().items()):
        block = runs.final["block 20"].mean(0)
        part = block[:, :20] if kind == "predicate" else block[:, 20:]
        figures.heatmap(axis, part, title=f"{task}, length 20", x=f"{kind} clause", y="answer", low=0.0, high=0.7)
    return figure
