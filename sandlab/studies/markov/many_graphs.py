"""Not only for nice graphs: attention finds the parents of many random trees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sandlab import figures
from sandlab.studies.claims import Above, Claim
from sandlab.studies.markov.graph_runs import FirstLayerRun, GraphRun, train_first_layer, train_on_tree
from sandlab.studies.study import Lab, Outcome, study
from sandlab.worlds.markov.causal_graphs import random_parents

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SOURCE = "Nichani, Damian & Lee 2024, How transformers learn causal structure with gradient descent, appendix"


@dataclass(frozen=True)
class Settings:
    """`graphs` random trees (numbered 1, 2, …), one training run per tree and seed."""

    seeds: int = 1
    graphs: int = 7
    states: int = 3
    length: int = 10
    concentration: float = 0.1
    steps: int = 4000
    batch: int = 64
    lr: float = 4.0
    first_layers: int = 12
    first_length: int = 20


@study(
    "markov/many-graphs",
    title="Attention finds the parents of many random trees",
    source=SOURCE,
    quick=Settings(),
    full=Settings(seeds=4, graphs=20, length=20, steps=2**13, batch=64, first_layers=40),
    claims=[
        Claim(
            "attention",
            "Over random trees, the first layer's attention goes to the parents.",
            SOURCE,
            "mean attention on the true parent, one value per tree (mean over its seeds)",
            Above(0.6),
        ),
        Claim(
            "sharp",
            "At the source's size the attention is mostly on the parents.",
            SOURCE,
            "mean attention on the true parent, one value per tree (mean over its seeds)",
            Above(0.8),
            presets=("full",),
        ),
        Claim(
            "layer-by-layer",
            "Trained alone, with a second layer that compares tokens, the first layer finds the parents of every tree.",
            f"{SOURCE}; first stage of the theorem's algorithm",
            "mean attention on the true parent, one value per random tree of 20 positions",
            Above(0.8),
        ),
        Claim(
            "edges",
            "Almost all edges are recovered by each position's largest attention.",
            SOURCE,
            "share of positions with a parent, over trees and seeds, whose largest attention is the parent's",
            Above(0.8),
            over="share",
        ),
    ],
)
def many_graphs(settings: Settings, lab: Lab) -> Outcome:
    """The graph that a transformer learns is the data's, whatever it is.

    The same training as in `markov/causal-graph`, on random trees: each position's parent is uniform among the earlier
    positions and "none".

    **Set-up.** Seven trees of 10 positions, S = 3, kernels Dirichlet(0.1), two-layer disentangled transformer from
    A = 0, W = 0, gradient descent with learning rate 4 and cosine decay, 4000 steps of 64 sequences. Full: 20 trees of
    20 positions, 2¹³ steps of 64 sequences, four seeds (source: learning rate 1, 2¹⁴ steps). Besides, twelve trees of
    20 positions on which the first layer alone is trained (see `markov/causal-graph`; full: forty).

    **In the figure.** Each tree's adjacency matrix over the attention that was learnt on it: rings are the true
    parents. Last: mean attention on the parent, tree by tree.

    **What was learnt.** At the quick size a position that shares its parent with several others splits its attention
    between the parent and itself; nearly every edge is still the largest entry of its row.
    """
    seeds = tuple(range(settings.seeds))
    trees = [random_parents(settings.length, 1 + number) for number in range(settings.graphs)]
    runs = [
        GraphRun(
            tree,
            seeds,
            lab.device,
            settings.states,
            settings.concentration,
            settings.steps,
            settings.batch,
            settings.lr,
        )
        for tree in trees
    ]
    results = lab.map(train_on_tree, runs, label="training")
    alone = [
        FirstLayerRun(random_parents(settings.first_length, 1 + number), (0,), lab.device, states=settings.states)
        for number in range(settings.first_layers)
    ]
    firsts = lab.map(train_first_layer, alone, label="first layer alone")
    scores = [float(result["final match"].mean()) for result in results]
    return Outcome(
        measurements={
            "attention": scores,
            "sharp": scores,
            "layer-by-layer": [float(first["final match"].mean()) for first in firsts],
            "edges": np.concatenate([result["final edges"].ravel() for result in results]).tolist(),
        },
        figures={"trees": trees_figure(trees, results)},
    )


def trees_figure(trees: list[tuple[int, ...]], results: list[dict[str, Any]]) -> Figure:
    """Learnt attention with the true parents ringed, for up to seven trees, and the score of every tree."""
    shown = min(7, len(trees))
    figure, axes = figures.new(4, 2, width=3.0, height=2.8, title="Learnt attention (colours) and true parents (rings)")
    with figures.style():
        for number, axis in enumerate(axes[:shown]):
            figures.heatmap(
                axis, results[number]["final pattern"], title=f"tree {number + 1}", low=0, high=1, bar=False
            )
            edges = [(parent, child) for child, parent in enumerate(trees[number][:-1]) if parent >= 0]
            axis.plot(
                *zip(*edges), "o", color="none", markeredgecolor=figures.COLOURS[1], markersize=8, markeredgewidth=1.8
            )
            axis.set(xlabel="key", ylabel="query")
        for axis in axes[shown:-1]:
            axis.set_axis_off()
        scores = [float(result["final match"].mean()) for result in results]
        axes[-1].barh(np.arange(1, len(scores) + 1), scores, color=figures.COLOURS[0])
        axes[-1].axvline(0.6, color="#555555", linestyle=":")
        axes[-1].set(xlim=(0, 1), xlabel="mean attention on the parent", ylabel="tree", title="all trees")
    return figure
