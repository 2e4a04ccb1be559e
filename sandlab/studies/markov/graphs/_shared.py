"""What the studies of causal graphs share: the source, the graph families, the experiments and their probes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from matplotlib.axes import Axes
from torch import Tensor, nn

from sandlab import figures
from sandlab.errors import BadInput
from sandlab.learning.experiment import Experiment, Runs, Snapshot, Training
from sandlab.lenses.attention_patterns import attention_maps, attention_match, parent_pattern
from sandlab.models.markov.disentangled import DisentangledTransformer, DisentangledTransformerConfig
from sandlab.studies.markov._shared import KnownLosses
from sandlab.worlds.markov.causal_graphs import InContextTree, chain_parents, pair_parents, random_parents

SOURCE = "Nichani, Damian & Lee 2024, How transformers learn causal structure with gradient descent"


def family(name: str, length: int, seed: int = 1) -> tuple[int, ...]:
    """Parents of one of the three graph families: "chain", "pairs" or "random"."""
    if name == "chain":
        return chain_parents(length)
    if name == "pairs":
        return pair_parents(length)
    if name == "random":
        return random_parents(length, seed)
    raise BadInput(f"no graph family called {name!r}: there are chain, pairs, random")


def joint_experiment(
    parents: tuple[int, ...], seeds: int, *, states: int = 3, steps: int = 4000, batch_size: int = 64, lr: float = 4.0
) -> Experiment:
    """Both layers of a disentangled transformer with one head each, from A = 0 and W = 0, by gradient descent."""
    return Experiment(
        world=InContextTree(states, parents, concentration=0.1),
        model=DisentangledTransformerConfig(vocab=states, length=len(parents), heads=(1, 1)),
        training=Training(steps, batch_size, lr, "sgd", schedule="cosine", evals=25, eval_examples=2048),
        seeds=seeds,
        probes=(parent_attention,),
        final=(first_layer, KnownLosses(("oracle", "uniform"))),
    )


def first_layer_experiment(parents: tuple[int, ...], seeds: int, *, states: int) -> Experiment:
    """The first stage of layer-wise training: the second layer compares tokens with a fixed β₀, the readout counts."""
    return Experiment(
        world=InContextTree(states, parents, concentration=0.1),
        model=matching_config(states, len(parents)),
        training=Training(400, lr=50.0, optimizer="sgd", eval_examples=512),
        seeds=seeds,
        probes=(parent_attention,),
        final=(first_layer,),
        prepare=TokenMatching(temperature=1.0),
    )


def matching_config(states: int, length: int) -> DisentangledTransformerConfig:
    """A model whose readout gives probabilities, output log(p + 10⁻³)."""
    return DisentangledTransformerConfig(states, length, heads=(1, 1), output="probabilities", floor=1e-3)


@dataclass(frozen=True)
class TokenMatching:
    """A¹ = 0; A² compares the last token with each position's fetched token, β₀ · identity; the readout counts.

    The point at which the gradient of the first layer measures χ² information. Only the first layer is trained.
    """

    temperature: float

    def __call__(self, model: nn.Module) -> None:
        assert isinstance(model, DisentangledTransformer)
        token, width = torch.arange(model.config.vocab), model.config.widths[0]
        with torch.no_grad():
            for name, weight in model.named_parameters():
                weight.zero_().requires_grad_(name.startswith("layers.0."))
            model.get_parameter("layers.1.attention.weight")[0, token, width + token] = self.temperature
            model.unembed.weight[token, 2 * width + token] = 1.0


def parent_attention(now: Snapshot) -> dict[str, Tensor]:
    """Mean attention of the first layer on the true parents: "match"."""
    return {"match": _read(now, 128)[1]}


def first_layer(now: Snapshot) -> dict[str, Tensor]:
    """Mean attention of the first layer ("pattern"), its "match" to the graph, and which "edges" it recovers.

    An edge is recovered when the largest attention of the child, over the earlier positions, is that of its parent.
    """
    pattern, match, parents = *_read(now, 512), _parents(now)
    children = [child for child, parent in enumerate(parents[:-1]) if parent >= 0]
    found = pattern.tril(-1).argmax(-1)[:, children]
    truth = torch.tensor([parents[child] for child in children], device=found.device)
    return {"pattern": pattern, "match": match, "edges": found == truth}


def recovered(runs: Runs) -> np.ndarray:
    """Whether the whole graph is recovered, for each seed."""
    return runs.final["edges"].all(-1)


def _read(now: Snapshot, examples: int) -> tuple[Tensor, Tensor]:
    """Mean attention map of the first layer and its match; the last position is the query and belongs to no tree."""
    pattern = attention_maps(now.model, now.batch[:examples].inputs)["layers.0.attention.pattern"][:, 0, :-1, :-1]
    return pattern, attention_match(pattern, parent_pattern(_parents(now))[:-1, :-1].to(pattern))


def _parents(now: Snapshot) -> tuple[int, ...]:
    assert isinstance(now.world, InContextTree)
    return now.world.parents


def ring_parents(axis: Axes, parents: Sequence[int], size: float = 8, down: int = 0) -> None:
    """Rings around the entries (child, parent) of a drawn matrix whose rows begin with position `down`."""
    edges = [(parent, child - down) for child, parent in enumerate(parents[:-1]) if parent >= 0]
    rings = {"markeredgecolor": figures.COLOURS[1], "markersize": size, "markeredgewidth": 1.8}
    axis.plot(*zip(*edges), "o", color="none", **rings)
