"""What the studies of causal graphs share: the source, the graph families, the experiments and their probes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from matplotlib.axes import Axes
from torch import Tensor

from sandlab import figures
from sandlab.learning.experiment import Experiment, Runs, Snapshot, Training
from sandlab.learning.markov.layerwise import TokenMatching, token_matching_config
from sandlab.lenses.markov.attention import TreeAttention, tree_attention
from sandlab.models.markov.disentangled import DisentangledTransformerConfig
from sandlab.studies.markov._shared import KnownLosses
from sandlab.worlds.markov.causal_graphs import InContextTree, chain_parents, pair_parents, random_parents

SOURCE = "Nichani, Damian & Lee 2024, How transformers learn causal structure with gradient descent"
Family = Callable[[int], tuple[int, ...]]
FAMILIES: dict[str, Family] = {"chain": chain_parents, "pairs": pair_parents, "random": partial(random_parents, seed=1)}
"""Graph family → function from the length to the parents."""


def joint_experiment(
    parents: tuple[int, ...], seeds: int, *, states: int = 3, steps: int = 4000, batch_size: int = 64, lr: float = 4.0
) -> Experiment:
    """Both layers of a disentangled transformer with one head each, from A = 0 and W = 0, by gradient descent."""
    model = DisentangledTransformerConfig(vocab=states, length=len(parents), heads=(1, 1))
    training = Training(steps, batch_size, lr, "sgd", schedule="cosine", evals=25, eval_examples=2048)
    final = (first_layer, KnownLosses(("graph", "uniform")))
    return Experiment(InContextTree(states, parents, 0.1), model, training, seeds, (parent_attention,), final)


def first_layer_experiment(parents: tuple[int, ...], seeds: int, *, states: int) -> Experiment:
    """The first stage of layer-wise training: the second layer compares tokens with a fixed β₀, the readout counts."""
    return Experiment(
        world=InContextTree(states, parents, concentration=0.1),
        model=token_matching_config(states, len(parents)),
        training=Training(400, lr=50.0, optimizer="sgd", eval_examples=512),
        seeds=seeds,
        probes=(parent_attention,),
        final=(first_layer,),
        prepare=TokenMatching(),
    )


def parent_attention(now: Snapshot) -> dict[str, Tensor]:
    """Mean attention of the first layer on the true parents: "match"."""
    return {"match": _read(now, 128).match}


def first_layer(now: Snapshot) -> dict[str, Tensor]:
    """Mean attention of the first layer ("pattern"), its "match" to the graph, and which "edges" it recovers."""
    found = _read(now, 512)
    return {"pattern": found.pattern, "match": found.match, "edges": found.edges}


def _read(now: Snapshot, examples: int) -> TreeAttention:
    assert isinstance(now.world, InContextTree)
    return tree_attention(now.model, now.batch[:examples].inputs, now.world.parents)


def recovered(runs: Runs) -> np.ndarray:
    """Whether the whole graph is recovered, for each seed."""
    return runs.final["edges"].all(-1)


def ring(axis: Axes, edges: Sequence[tuple[int, int]], size: float, width: float = 1.8, first: int = 0) -> None:
    """Rings around the entries (child, parent) of a drawn matrix whose rows begin with position `first`."""
    rows, columns = [child - first for child, _ in edges], [parent for _, parent in edges]
    colour = figures.COLOURS[1]
    axis.plot(columns, rows, "o", color="none", markeredgecolor=colour, markersize=size, markeredgewidth=width)
