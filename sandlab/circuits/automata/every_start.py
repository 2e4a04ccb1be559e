"""Circuits of one automaton from many starts, checked together: shared layers are computed once."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Int
from torch import Tensor, nn

from sandlab.models.automata.theory import TheoryTransformer
from sandlab.worlds.automata.machine import Automaton

__all__ = ["count_errors_together", "layers_in_common"]

# How many tokens are computed at once.
_TOKENS = {"cpu": 1 << 16, "cuda": 1 << 20}


@torch.no_grad()
def count_errors_together(
    models: Sequence[TheoryTransformer], machines: Sequence[Automaton], words: Int[Tensor, "word time"]
) -> int:
    """Positions at which a model's label differs from that of its machine, summed over pairs of model and machine.

    The machines differ in their starts. The scan's circuits differ only at the end, where the state is read off the
    map of the letters so far: the layers that they share read each word once.
    """
    first, common = models[0], layers_in_common(models)
    device = first.embedding.device
    tokens = first.config.prefix + words.shape[1]
    wrong = 0
    for part in words.to(device).split(max(1, _TOKENS[device.type] // tokens)):
        shared = _through(first, _embed(first, part), 0, common) if common >= 0 else None
        for model, machine in zip(models, machines):
            stream = _through(model, _embed(model, part) if shared is None else shared, max(common, 0))
            found = model.readout(stream[:, model.config.prefix :]).argmax(-1)
            labels = torch.as_tensor(machine.labels, device=device)[machine.run(part)]
            wrong += int((found != labels).sum())
    return wrong


def layers_in_common(models: Sequence[TheoryTransformer]) -> int:
    """How many layers, from the first on, are the same in all models; −1 when the embeddings already differ."""
    first, others = models[0], models[1:]
    for other in others:
        tables = zip((first.embedding, first.anchors, first.position), (other.embedding, other.anchors, other.position))
        if not all(torch.equal(one, another) for one, another in tables):
            return -1
    common = 0
    while common < len(first.layers) and all(_equal(first.layers[common], other.layers[common]) for other in others):
        common += 1
    return common


def _equal(one: nn.Module, other: nn.Module) -> bool:
    left, right = one.state_dict(), other.state_dict()
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


def _embed(model: TheoryTransformer, words: Int[Tensor, "word time"]) -> Tensor:
    letters = model.embedding[words] + model.position[: words.shape[1]]
    return torch.cat([model.anchors.expand(len(words), -1, -1), letters], 1)


def _through(model: TheoryTransformer, stream: Tensor, first: int, last: int | None = None) -> Tensor:
    for layer in list(model.layers)[first:last]:
        stream = layer(stream)
    return stream
