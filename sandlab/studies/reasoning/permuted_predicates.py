"""Shuffled predicates are found all the same: retrieval is by content.

The trained models see the same chains with their predicate clauses in random order. Without positions this is an exact
symmetry: logits stay as they are and the attention columns move with the clauses. Any positional information that
crept in would break it, which the null shows with position-dependent scores.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.learning.experiment import Experiment
from sandlab.models.reasoning.lego import LegoConfig
from sandlab.studies.claims import Mean
from sandlab.studies.nulls import untrained
from sandlab.studies.reasoning import _shared as shared
from sandlab.studies.reasoning._shared import Pair, PairRuns
from sandlab.studies.study import Lab, Study


def with_positions(given: Experiment) -> Experiment:
    """The same experiment with linear position biases (ALiBi)."""
    assert isinstance(given.model, LegoConfig)
    return replace(given, model=replace(given.model, positions="alibi"))


study = Study(
    "reasoning/permuted-predicates",
    title="Answers find their predicate wherever it stands",
    source=shared.SOURCE,
    at="Figure 5",
    quick=shared.QUICK,
    full=shared.FULL,
    null=untrained(Pair(with_positions(shared.QUICK.cyclic), with_positions(shared.QUICK.symmetric))),
)


@study.collect
def collect(settings: Pair, lab: Lab) -> PairRuns:
    return shared.trained_pair(settings, lab)


@study.claim(Mean(below=1e-4), at="Figure 5")
def logits_stay(results: PairRuns) -> np.ndarray:
    """Shuffling the predicates changes no logit.

    Largest change of a logit over 100 chains, the larger of both tasks.
    """
    return np.maximum(*(runs.final["logit change"] for runs in results.both().values()))


@study.claim(Mean(above=0.95), at="Figure 5", paper="the diagonal follows the permutation")
def attention_follows(results: PairRuns) -> np.ndarray:
    """The attended predicate is the needed one, wherever it stands.

    Share of rows whose largest predicate key is the moved clause, the smaller of both tasks.
    """
    return np.minimum(*(runs.final["followed"] for runs in results.both().values()))


@study.figure
def permuted(results: PairRuns) -> Figure:
    figure, axes = figures.new(columns=3, width=3.8, title="Attention on shuffled predicates follows the permutation")
    order = results.cyclic.final["permutation"][0]
    truth = (np.arange(len(order))[:, None] == order).astype(float)
    figures.heatmap(axes[0], truth, title="where predicate k stands", x="predicate clause", y="answer", bar=False)
    for axis, (name, runs) in zip(axes[1:], results.both().items()):
        block = runs.final["permuted map"].mean(0)[:, : len(order)]
        figures.heatmap(axis, block, title=name, x="predicate clause", y="answer", low=0.0, high=0.7)
    return figure
