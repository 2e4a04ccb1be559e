"""Reading an unknown kernel off a sequence with a known causal graph: disentangled transformers, weights by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from sandlab.errors import integer, number, require
from sandlab.models.markov.disentangled import DisentangledTransformer
from sandlab.registry import register

__all__ = ["causal_graph_estimator", "parent_heads_estimator"]


@register("circuits")
def causal_graph_estimator(
    states: int,
    parents: Sequence[int],
    *,
    temperature: float = 60.0,
    silence_roots: bool = True,
    floor: float = 0.0,
    output: str = "probabilities",
) -> DisentangledTransformer:
    """The law of what followed s_T among the children of a causal tree: copy the parent, compare, read the counts.

    parents[i] < i, or −1 for a root; the last position holds the query s_T and has no child of its own. With the
    stream [token | position] (d₀ = S + T coordinates):
    layer 1   A[S + i, S + p(i)] = β, a root attends to itself: block 1 holds the parent's token
    layer 2   A[a, d₀ + a] = β: the query's token against the keys' parent tokens
    readout   the token coordinates of what layer 2 fetched: #{i : x_{p(i)} = s_T, x_i = ·}/#{i : x_{p(i)} = s_T}

    A root, and the last position, would match whenever its own token equals s_T. `silence_roots` adds
    A[S + T−1, S + i] = −2β in layer 2 for each of them, which makes the output equal the counts exactly; without it
    they are counted. Where nothing matches, the output averages the other positions.

    Source: Nichani, Damian and Lee 2024, construction of §4; the root penalty is ours.
    """
    length = len(parents)
    found = _checked_parents(parents)
    first, second = 0, 1
    model = _blank(states, length, (1, 1), output, floor)
    number("temperature", temperature, low=0.0)
    with torch.no_grad():
        scores = _scores(model)
        scores[first][
            0, states + torch.arange(length), states + torch.where(found < 0, torch.arange(length), found)
        ] = temperature
        token, width = torch.arange(states), states + length
        scores[second][0, token, width + token] = temperature
        if silence_roots:
            silent = (found < 0).nonzero().flatten().tolist() + [length - 1]
            scores[second][0, states + length - 1, states + torch.tensor(silent)] = -2 * temperature
        model.unembed.weight[token, 2 * width + token] = 1.0
    return model


@register("circuits")
def parent_heads_estimator(
    states: int,
    parents: Sequence[Sequence[int]],
    *,
    temperature: float = 60.0,
    floor: float = 0.0,
    output: str = "probabilities",
) -> DisentangledTransformer:
    """One first-layer head per parent: the law of what followed the present configuration of several parents.

    parents[i] lists the parents of position i, the same number k everywhere or none; the last entry belongs to the
    token that is predicted, so sequences have len(parents) − 1 tokens. Head h copies the h-th parent's token; at the
    last position it copies the h-th parent of the predicted token instead. Layer 2 compares block h with block h for
    all h: score β · (number of parents that agree). Positions without parents, and the last one (whose own history
    gave way to the query), score −2kβ. Output #{i : parents agree, x_i = ·}/# over the others; an order-k chain is
    parents[i] = (i − 1, …, i − k).

    Source: Nichani, Damian and Lee 2024, §6 (several parents).
    """
    length = len(parents) - 1
    integer("length", length, low=1)
    families = [tuple(family) for family in parents]
    heads = len(families[-1])
    require(heads >= 1, "parents of the predicted token", families[-1], "at least one position")
    for place, family in enumerate(families):
        fits = len(family) in (0, heads) and all(0 <= parent < min(place, length) for parent in family)
        require(fits, f"parents[{place}]", family, f"empty or {heads} earlier positions")
    number("temperature", temperature, low=0.0)
    model = _blank(states, length, (heads, 1), output, floor)
    width, token = states + length, torch.arange(states)
    with torch.no_grad():
        first, second = _scores(model)
        for head in range(heads):
            rows = [*families[: length - 1], families[-1]]
            keys = torch.tensor([family[head] if family else place for place, family in enumerate(rows)])
            first[head, states + torch.arange(length), states + keys] = temperature
            block = (1 + head) * width + token
            second[0, block, block] = temperature
        silent = [place for place in range(length) if not families[place] or place == length - 1]
        second[0, states + length - 1, states + torch.tensor(silent)] = -2 * heads * temperature
        model.unembed.weight[token, (1 + heads) * width + token] = 1.0
    return model


def _checked_parents(parents: Sequence[int]) -> torch.Tensor:
    integer("length", len(parents), low=2)
    for place, parent in enumerate(parents):
        require(-1 <= parent < place, f"parents[{place}]", parent, f"between −1 (a root) and {place - 1}")
    return torch.tensor(list(parents))


def _blank(states: int, length: int, heads: tuple[int, ...], output: str, floor: float) -> DisentangledTransformer:
    model = DisentangledTransformer(vocab=states, length=length, heads=heads, output=output, floor=floor).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    return model


def _scores(model: DisentangledTransformer) -> list[Any]:
    return [layer.attention.weight for layer in model.layers]  # type: ignore[union-attr]
