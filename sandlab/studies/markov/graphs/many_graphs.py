"""Not only for nice graphs: attention finds the parents of many random trees.

The graph that a transformer learns is the data's, whatever it is. The same training as in `markov/causal-graph`, on
random trees: each position's parent is uniform among the earlier positions and "none".

**Set-up.** Seven trees of 10 positions, S = 3, kernels Dirichlet(0.1), two-layer disentangled transformer from A = 0,
W = 0, gradient descent with learning rate 4 and cosine decay, 4000 steps of 64 sequences. Full: 20 trees of 20
positions, 2¹³ steps of 64 sequences, four seeds (source: learning rate 1, 2¹⁴ steps). In addition, twelve trees of 20
positions on which the first layer alone is trained (see `markov/causal-graph`; full: forty).

**In the figure.** Each tree's adjacency matrix over the attention that was learnt on it: rings are the true parents.
Last: mean attention on the parent, tree by tree.

**What was learnt.** At the quick size a position that shares its parent with several others splits its attention
between the parent and itself; nearly every edge is still the largest entry of its row.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.learning.experiment import Experiment, Runs
from sandlab.studies.claims import Mean, Share
from sandlab.studies.markov.graphs._shared import SOURCE, first_layer_experiment, joint_experiment, ring
from sandlab.studies.nulls import untrained
from sandlab.studies.study import Lab, Study
from sandlab.worlds.markov.causal_graphs import InContextTree, random_parents


@dataclass(frozen=True)
class Settings:
    """Random trees on which both layers are trained, and trees on which the first layer alone is."""

    trees: tuple[Experiment, ...]
    first_layer: tuple[Experiment, ...]


def settings(trees: int, length: int, seeds: int, steps: int, first_layers: int) -> Settings:
    """Trees are numbered 1, 2, …; those of the first layer have 20 positions and one seed each."""
    numbers, others = range(1, 1 + trees), range(1, 1 + first_layers)
    return Settings(
        tuple(joint_experiment(random_parents(length, number), seeds, steps=steps) for number in numbers),
        tuple(first_layer_experiment(random_parents(20, number), 1, states=3) for number in others),
    )


QUICK = settings(trees=7, length=10, seeds=1, steps=4000, first_layers=12)
study = Study(
    "markov/many-graphs",
    title="Attention finds the parents of many random trees",
    source=f"{SOURCE}, appendix",
    quick=QUICK,
    full=settings(trees=20, length=20, seeds=4, steps=2**13, first_layers=40),
    null=untrained(QUICK),
)


@dataclass(frozen=True)
class Results:
    """edges: (child, parent) pairs of each tree."""

    edges: list[list[tuple[int, int]]]
    trees: list[Runs]
    first_layer: list[Runs]

    @property
    def scores(self) -> list[float]:
        """Mean attention on the true parent, tree by tree."""
        return [float(runs.final["match"].mean()) for runs in self.trees]


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    edges = [each.world.edges for each in settings.trees if isinstance(each.world, InContextTree)]
    trees = lab.train(settings.trees, label="training")
    return Results(edges, trees, lab.train(settings.first_layer, label="first layer alone"))


@study.claim(Mean(above=0.6))
def attention(results: Results) -> list[float]:
    """Over random trees, the first layer's attention goes to the parents.

    Mean attention on the true parent, one value per tree (mean over its seeds).
    """
    return results.scores


@study.claim(Mean(above=0.8), presets=("full",))
def sharp(results: Results) -> list[float]:
    """At the source's size the attention is mostly on the parents.

    Mean attention on the true parent, one value per tree (mean over its seeds).
    """
    return results.scores


@study.claim(Mean(above=0.8), source=f"{SOURCE}, appendix; first stage of the theorem's algorithm")
def layer_by_layer(results: Results) -> list[float]:
    """Trained alone, with a second layer that compares tokens, the first layer finds the parents of every tree.

    Mean attention on the true parent, one value per random tree of 20 positions.
    """
    return [float(runs.final["match"].mean()) for runs in results.first_layer]


@study.claim(Share(above=0.8))
def edges(results: Results) -> np.ndarray:
    """Almost all edges are recovered by each position's largest attention.

    Share of positions with a parent, over trees and seeds, whose largest attention is the parent's.
    """
    return np.concatenate([runs.final["edges"].ravel() for runs in results.trees])


@study.figure
def trees(results: Results) -> Figure:
    figure, axes = figures.new(4, 2, width=3.0, height=2.8, title="Learnt attention (colours) and true parents (rings)")
    for axis in axes[len(results.trees) : -1]:
        axis.set_axis_off()
    for number, (axis, edges, runs) in enumerate(zip(axes[:7], results.edges, results.trees), start=1):
        figures.heatmap(
            axis, runs.final["pattern"][0], title=f"tree {number}", x="key", y="query", low=0, high=1, bar=False
        )
        ring(axis, edges, size=8)
    axes[-1].barh(np.arange(1, 1 + len(results.trees)), results.scores, color=figures.COLOURS[0])
    axes[-1].axvline(0.6, color="#555555", linestyle=":")
    axes[-1].set(xlim=(0, 1), xlabel="mean attention on the parent", ylabel="tree", title="all trees")
    return figure
