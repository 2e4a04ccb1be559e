"""Attention of each answer falls on two clauses: the predicate it needs, and itself.

Attention of the answer clauses at the training length, averaged over both heads and 100 fresh chains (Figure 2); one
chain with its two arrows, as thick as the attention (Figure 3, from live data); and the 5 × 5 blocks of the query
matrix, where a block's colour is how much more it scores equal than different variables (Figure 4): the block (4, 3) is
predicate look-up, (4, 4) is attention to the answer itself.
"""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.lenses.reasoning.pictures import draw_step
from sandlab.studies.claims import Mean
from sandlab.studies.nulls import untrained
from sandlab.studies.reasoning import _shared as shared
from sandlab.studies.reasoning._shared import Pair, PairRuns
from sandlab.studies.study import Lab, Study

study = Study(
    "reasoning/attention-maps",
    title="Answers attend to the predicate that they need and to themselves",
    source=shared.SOURCE,
    at="Figures 2, 3, 4",
    quick=shared.QUICK,
    full=shared.FULL,
    null=untrained(shared.QUICK),
)


@study.collect
def collect(settings: Pair, lab: Lab) -> PairRuns:
    return shared.trained_pair(settings, lab)


def both_tasks(results: PairRuns, name: str) -> np.ndarray:
    """A final measurement of both tasks, the smaller of the two for each seed."""
    values = [np.asarray(runs.final[name]).reshape(len(runs), -1).mean(1) for runs in results.both().values()]
    return np.minimum(*values)


@study.claim(Mean(above=0.9), at="Figure 2", paper="two diagonals")
def concentrated(results: PairRuns) -> np.ndarray:
    """Nearly all attention of the answers falls on the two clauses.

    1 − ε, mean over steps, the smaller of both tasks.
    """
    largest = [runs.final["left over"].mean(1) for runs in results.both().values()]
    return 1 - np.maximum(*largest)


@study.claim(Mean(above=0.95), at="Figure 2")
def predicate_is_largest(results: PairRuns) -> np.ndarray:
    """Among the predicates the needed one gets most.

    Share of rows whose largest predicate key is the needed one, the smaller of both tasks.
    """
    return both_tasks(results, "top predicate")


@study.claim(Mean(above=0.95), at="Figure 2")
def answer_is_largest(results: PairRuns) -> np.ndarray:
    """Among the answers the last one gets most.

    Share of rows whose largest answer key is the clause itself, the smaller of both tasks.
    """
    return both_tasks(results, "top answer")


@study.claim(Mean(above=1.0), at="Figure 4", paper="Q_{4,3} and Q_{4,4} alone are learnt")
def two_blocks(results: PairRuns) -> np.ndarray:
    """Variables are matched in the blocks (4, 3) and (4, 4) of the query matrix.

    Mean score difference of these two blocks minus the largest of the other blocks of answer queries, in nats, the
    smaller of both tasks.
    """
    return np.minimum(*(_block_lead(runs.final["blocks"]) for runs in results.both().values()))


def _block_lead(blocks: np.ndarray) -> np.ndarray:
    others = np.ones((5, 5), dtype=bool)
    others[3, 2] = others[3, 3] = False
    # Queries are answers: only their own slots, the fourth and the fifth, ever score.
    others[:3] = False
    return blocks[:, 3, 2:4].mean(1) - blocks[:, others].max(1)


@study.figure
def maps(results: PairRuns) -> Figure:
    figure, axes = figures.new(
        columns=2, width=4.8, title="Attention of the answers, mean over heads, chains and seeds"
    )
    for axis, (name, runs) in zip(axes, results.both().items()):
        figures.heatmap(axis, runs.final["map"].mean(0), title=name, x="clause", y="answer", low=0.0, high=0.7)
        axis.axvline(4.5, color="white", linewidth=1)
    return figure


@study.figure
def blocks(results: PairRuns) -> Figure:
    figure, axes = figures.new(
        columns=2, width=4.2, title="Blocks of the query matrix: score of equal minus different variables"
    )
    for axis, (name, runs) in zip(axes, results.both().items()):
        values = runs.final["blocks"].mean(0)
        figures.heatmap(axis, values, title=name, x="key slot", y="query slot", numbers=True, bar=False)
        axis.set_xticks(range(5), [str(i) for i in range(1, 6)])
        axis.set_yticks(range(5), [str(i) for i in range(1, 6)])
        axis.text(2, 3.38, "predicate", ha="center", fontsize=7)
        axis.text(3, 3.38, "itself", ha="center", fontsize=7)
    return figure


@study.figure
def instance(results: PairRuns) -> Figure:
    """One step of a chain: which clauses the second answer reads."""
    name, runs = next(iter(results.both().items()))
    texts = [f"x{k} = g{k}(x{k - 1})" for k in range(1, 6)] + ["x0 = y0", "x1 = y1"]
    return draw_step(texts, runs.final["map"][0, 1, : len(texts)], f"{name}: what the second answer reads")
