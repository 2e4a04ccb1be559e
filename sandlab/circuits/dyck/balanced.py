"""Exact Dyck generators with attention of any balanced shape (Wen et al. 2023, Theorem 1 and Corollary 1)."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from sandlab.circuits.dyck.relu_gadgets import look_up
from sandlab.errors import integer, number, require
from sandlab.models.dyck.codes import BalanceTransformer, pair_code
from sandlab.registry import register

__all__ = ["balanced_dyck", "random_balanced_scores", "stack_like_scores", "uniform_dyck", "zero_head"]


def _pairs(types: int, depth: int) -> list[tuple[int, int]]:
    return [(kind, level) for kind in range(types) for level in range(1, depth + 1)]


def random_balanced_scores(
    types: int, depth: int, *, rng: torch.Generator, scale: float = 0.7
) -> Float[Tensor, "key query"]:
    """Arbitrary attention scores between codes that satisfy the balance condition.

    Normal draws; then, on the columns of closing queries of level ≥ 2, each opening row is shifted so that
    score(open) − score(close) of its pair is the same for all of them.
    """
    codes = 2 * types * depth + 1
    scores = scale * torch.randn(codes, codes, generator=rng, dtype=torch.float64)
    queries = [pair_code(j, d, depth) + 1 for j in range(types) for d in range(2, depth + 1)]
    for kind, level in _pairs(types, depth):
        row = pair_code(kind, level, depth)
        difference = scores[row, queries] - scores[row + 1, queries]
        scores[row, queries] -= difference - difference.mean()
    return scores


def stack_like_scores(types: int, depth: int, *, strength: float = 6.0) -> Float[Tensor, "key query"]:
    """Balanced attention scores that look like a stack: queries prefer the level of the bracket to be closed next.

    An opening query prefers brackets like itself, a closing one of level d all brackets of level d − 1, opening and
    closing alike: their difference is 0 for every query, so the balance condition holds. On a word without earlier
    brackets of that level the maximum is the last unmatched bracket.
    """
    codes = 2 * types * depth + 1
    scores = torch.zeros(codes, codes, dtype=torch.float64)
    for kind, level in _pairs(types, depth):
        opening = pair_code(kind, level, depth)
        scores[opening, opening] = strength
        for other, below in _pairs(types, depth):
            if below == level - 1:
                key = pair_code(other, below, depth)
                scores[[key, key + 1], opening + 1] = strength
    return scores


@register("circuits")
def balanced_dyck(
    types: int = 2,
    depth: int = 4,
    opening: float = 0.5,
    *,
    scores: Float[Tensor, "key query"] | None = None,
    coordinates: Float[Tensor, "code code"] | None = None,
    floor: float = 1e-9,
) -> BalanceTransformer:
    """The next-bracket law of bounded Dyck prefixes, exactly and at every length, with the given attention scores.

    `scores` (key, query) between (type, depth) codes must be balanced; None is uniform attention. The value of a
    closing bracket is minus e^{a} times that of its opening one, a = score(open) − score(close), so matched pairs
    cancel and only the unmatched brackets are left, each in its own direction; a ReLU network with two hidden layers
    reads the type on top of the stack and writes the law. However different two such attention maps look, both models
    are perfect. `coordinates`: an invertible matrix whose rows are the codes' embeddings (None: one-hot ones); any
    linearly independent embeddings will do. Source: Wen et al. 2023, Theorem 1 (sufficiency), with embeddings padded
    so that the read-out does not see the last token's own coordinates.
    """
    integer("types", types, low=1)
    integer("depth", depth, low=1)
    number("opening", opening, low=0.0, high=1.0)
    codes, pairs = 2 * types * depth + 1, types * depth
    scores = torch.zeros(codes, codes, dtype=torch.float64) if scores is None else scores.double()
    require(scores.shape == (codes, codes), "scores", tuple(scores.shape), f"({codes}, {codes})")
    width = codes + pairs + 1
    model = BalanceTransformer(
        types=types,
        depth=depth,
        widths=(width, 2 * types),
        hidden=((2 * pairs + codes, types * max(depth - 1, 0) + codes),),
        floor=floor,
    ).double()
    basis = _helmert(pairs + 1)
    layer: Any = model.layers[0]
    with torch.no_grad():
        model.embedding.copy_(torch.eye(codes, width, dtype=torch.float64))
        layer.score.zero_()
        layer.score[:codes, :codes] = scores
        layer.value.zero_()
        offsets = _offsets(scores, types, depth)
        for place, (kind, level) in enumerate(_pairs(types, depth)):
            code = pair_code(kind, level, depth)
            layer.value[codes:, code] = basis[place]
            layer.value[codes:, code + 1] = -offsets[place].exp() * basis[place]
        _read_stack(layer.maps, basis, codes, types, depth, _threshold(scores, types, depth))
        _write_law(layer.maps[-1], codes, types, depth, opening)
        if coordinates is not None:
            _change_coordinates(model, coordinates.double(), codes)
    return model


def _change_coordinates(model: BalanceTransformer, rows: Tensor, codes: int) -> None:
    """Embed code c as row c instead of a unit vector, and let everything that reads the stream read it that way."""
    require(rows.shape == (codes, codes), "coordinates", tuple(rows.shape), f"({codes}, {codes})")
    back = torch.linalg.inv(rows)  # a stream e = rows[c] is taken back to the unit vector of c by e ↦ e · back
    layer: Any = model.layers[0]
    model.embedding[:, :codes] = rows
    layer.score[:codes, :codes] = back @ layer.score[:codes, :codes] @ back.mT
    layer.value[:, :codes] = layer.value[:, :codes] @ back.mT
    layer.maps[0].weight[:, :codes] = layer.maps[0].weight[:, :codes] @ back.mT


@register("circuits")
def uniform_dyck(
    types: int = 2, depth: int = 4, opening: float = 0.5, *, rng: torch.Generator | None = None
) -> BalanceTransformer:
    """The same law from plain tokens with uniform attention in both layers and no positions (Corollary 1).

    Layer 1 averages +1 for opening, −1 for closing brackets and 1 for START; the norm turns (depth, 1)/(n+1) into a
    direction that tells the depth whatever n is, and a look-up network writes the (type, depth) embedding. Layer 2 is
    `balanced_dyck` with zero scores. A start token and the causal mask are needed.
    """
    second = balanced_dyck(types, depth, opening)
    codes, tokens = 2 * types * depth + 1, 2 * types + 1
    width = second.config.widths[0]
    value = torch.zeros(tokens, tokens, dtype=torch.float64)
    value[0, 0 : 2 * types : 2], value[0, 1 : 2 * types : 2], value[1, 2 * types] = 1.0, -1.0, 1.0
    points, targets = [], []
    for code in range(codes):
        token, after = _token_and_depth(code, types, depth)
        mixed = torch.zeros(tokens, dtype=torch.float64)
        mixed[0], mixed[1] = after, 1.0
        centred = mixed - mixed.mean()
        points.append(centred / centred.norm() + torch.eye(tokens, dtype=torch.float64)[token])
        targets.append(torch.eye(codes, width, dtype=torch.float64)[code])
    table = look_up(torch.stack(points), torch.stack(targets), rng=rng)
    model = BalanceTransformer(
        types=types,
        depth=depth,
        coding="tokens",
        widths=(tokens, width, 2 * types),
        hidden=(tuple(table.widths), second.config.hidden[0]),
    ).double()
    first, last = (model.layers[0], model.layers[1])
    with torch.no_grad():
        model.embedding.copy_(torch.eye(tokens, dtype=torch.float64))
        layer: Any = first
        layer.score.zero_()
        layer.value.copy_(value)
        for linear_map, weight, bias in zip(layer.maps, table.weights, table.biases):
            linear_map.weight.copy_(weight)
            linear_map.bias.copy_(bias)
        last.load_state_dict(second.layers[0].state_dict())
    return model


def zero_head(model: BalanceTransformer) -> BalanceTransformer:
    """The model with its last map set to zero: the output is zero whatever attention does (Proposition 6)."""
    layer: Any = model.layers[-1]
    with torch.no_grad():
        layer.maps[-1].weight.zero_()
        layer.maps[-1].bias.zero_()
    return model


def _token_and_depth(code: int, types: int, depth: int) -> tuple[int, int]:
    """The token of a code and the depth after it."""
    if code == 2 * types * depth:
        return 2 * types, 0
    pair, closing = divmod(code, 2)
    kind, level = divmod(pair, depth)
    return 2 * kind + closing, level + 1 - closing


def _helmert(size: int) -> Float[Tensor, "rest size"]:
    """An orthonormal basis of the vectors of `size` numbers that sum to zero."""
    rows = torch.zeros(size - 1, size, dtype=torch.float64)
    for place in range(1, size):
        rows[place - 1, :place] = 1.0
        rows[place - 1, place] = -place
    return rows / rows.norm(dim=1, keepdim=True)


def _offsets(scores: Tensor, types: int, depth: int) -> Float[Tensor, "pair"]:
    """a of each pair: score(open) − score(close) at the closing queries (any of them, by balance)."""
    level = min(2, depth)
    query = pair_code(0, level, depth) + 1
    opens = torch.tensor([pair_code(kind, level, depth) for kind, level in _pairs(types, depth)])
    return scores[opens, query] - scores[opens + 1, query]


def _threshold(scores: Tensor, types: int, depth: int) -> float:
    """Half of the smallest share that an unmatched bracket can have of the output's length, over queries and stacks."""
    smallest = 1.0
    for kind in range(types):
        for level in range(2, depth + 1):
            query = pair_code(kind, level, depth) + 1
            weights = torch.stack(
                [scores[[pair_code(t, e, depth) for t in range(types)], query].exp() for e in range(1, level)]
            )
            for place in range(level - 1):
                least = weights[place].min()
                rest = weights.amax(1).square().sum() - weights[place].max().square()
                smallest = min(smallest, float(least / (least.square() + rest).sqrt()))
    return smallest / 2


def _read_stack(maps: Any, basis: Tensor, codes: int, types: int, depth: int, threshold: float) -> None:
    """First map: the coordinates along each pair's direction, and the last token; second: the type on top."""
    pairs = types * depth
    first, second = maps[0], maps[1]
    for linear_map in (first, second):
        linear_map.weight.zero_()
        linear_map.bias.zero_()
    first.weight[:pairs, codes:] = basis
    first.weight[pairs : 2 * pairs, codes:] = basis
    first.bias[pairs : 2 * pairs] = -threshold
    first.weight[2 * pairs :, :codes] = torch.eye(codes, dtype=torch.float64)
    tops = types * max(depth - 1, 0)
    for place, (kind, level) in enumerate((k, d) for k in range(types) for d in range(1, depth)):
        pair = kind * depth + level - 1
        second.weight[place, pair] = 1 / threshold
        second.weight[place, pairs + pair] = -1 / threshold
        for other in range(types):  # the last token closes a pair of the level above: this bracket is on top
            second.weight[place, 2 * pairs + pair_code(other, level + 1, depth) + 1] = 1.0
        second.bias[place] = -1.0
    second.weight[tops:, 2 * pairs :] = torch.eye(codes, dtype=torch.float64)


def _write_law(last: Any, codes: int, types: int, depth: int, opening: float) -> None:
    """Linear read-out: the law of the next bracket from the last token and the type on top of the stack."""
    tops = types * max(depth - 1, 0)
    last.weight.zero_()
    last.bias.zero_()
    opens = slice(0, 2 * types, 2)
    last.weight[opens, tops + codes - 1] = 1 / types
    for kind in range(types):
        for level in range(1, depth):
            last.weight[2 * kind + 1, kind * (depth - 1) + level - 1] = 1 - opening
        for level in range(1, depth + 1):
            opened, closed = tops + pair_code(kind, level, depth), tops + pair_code(kind, level, depth) + 1
            after = level - 1
            last.weight[opens, closed] = 1 / types if after == 0 else opening / types
            last.weight[2 * kind + 1, opened] = 1.0 if level == depth else 1 - opening
            if level < depth:
                last.weight[opens, opened] = opening / types
