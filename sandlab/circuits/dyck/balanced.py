"""Exact Dyck generators with attention of any balanced shape (Wen et al. 2023, Theorem 1 and Corollary 1)."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from sandlab.circuits.builder import CircuitBuilder, Head, Matrix
from sandlab.circuits.gadgets import Network, look_up
from sandlab.circuits.targets import Frame, to_balance
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
    """The next-bracket probabilities of bounded Dyck prefixes, exact at every length, with the given attention scores.

    `scores` (key, query) between (type, depth) codes must be balanced; None is uniform attention. The value of a
    closing bracket is minus e^{a} times that of its opening one, a = score(open) − score(close), so matched pairs
    cancel and only the unmatched brackets are left, each in its own direction; a ReLU network with two hidden layers
    reads the type on top of the stack and writes the probabilities. However different two such attention maps look,
    both models are perfect. `coordinates`: an invertible matrix whose rows are the codes' embeddings (None: one-hot
    ones); any linearly independent embeddings will do. Source: Wen et al. 2023, Theorem 1 (sufficiency), with
    embeddings padded so that the readout does not see the coordinates of the last token.
    """
    codes = 2 * types * depth + 1
    circuit = _stack_circuit(
        types, depth, opening, np.zeros((codes, codes)) if scores is None else scores.double().numpy()
    )
    frame = None
    if coordinates is not None:
        require(coordinates.shape == (codes, codes), "coordinates", tuple(coordinates.shape), f"({codes}, {codes})")
        rows = np.eye(circuit.width)
        rows[:codes, :codes] = coordinates.double().numpy()
        frame = Frame.of(rows)
    return to_balance([circuit], types=types, depth=depth, floor=floor, frame=frame)


def _stack_circuit(types: int, depth: int, opening: float, scores: Matrix) -> CircuitBuilder:
    """The layer of `balanced_dyck`: a block of one-hot codes and a block that attention writes the stack into."""
    integer("types", types, low=1)
    integer("depth", depth, low=1)
    number("opening", opening, low=0.0, high=1.0)
    codes, pairs = 2 * types * depth + 1, types * depth
    require(scores.shape == (codes, codes), "scores", scores.shape, f"({codes}, {codes})")
    circuit = CircuitBuilder(codes, 1)
    code, stack = circuit.channels("code", codes, letters=np.eye(codes)), circuit.channels("stack", pairs + 1)
    basis, offsets = _helmert(pairs + 1), _offsets(scores, types, depth)
    value = np.zeros((codes, pairs + 1))
    for direction, offset, (kind, level) in zip(basis, offsets, _pairs(types, depth)):
        opened = pair_code(kind, level, depth)
        value[opened], value[opened + 1] = direction, -np.exp(offset) * direction
    layer = circuit.layer(0)
    layer.heads = [
        Head(
            query=[(code, range(codes), scores.T)],
            key=[(code, range(codes), 1.0)],
            value=[(code, range(pairs + 1), value)],
            output=[(stack, range(pairs + 1), 1.0)],
        )
    ]
    network = _stack_network(basis, types, depth, opening, _threshold(scores, types, depth))
    layer.feed(network, [*stack, *code], range(2 * types))
    return circuit


@register("circuits")
def uniform_dyck(
    types: int = 2, depth: int = 4, opening: float = 0.5, *, rng: torch.Generator | None = None
) -> BalanceTransformer:
    """The same probabilities from plain tokens with uniform attention in both layers and no positions (Corollary 1).

    Layer 1 averages +1 for opening, −1 for closing brackets and 1 for START; the norm turns (depth, 1)/(n+1) into a
    direction that tells the depth whatever n is, and a look-up network writes the (type, depth) embedding. Layer 2 is
    `balanced_dyck` with zero scores. A start token and the causal mask are needed.
    """
    codes, tokens = 2 * types * depth + 1, 2 * types + 1
    second = _stack_circuit(types, depth, opening, np.zeros((codes, codes)))
    first = CircuitBuilder(tokens, 1)
    token = first.channels("token", tokens, letters=np.eye(tokens))
    value = np.zeros((tokens, 2))
    value[0:-1:2, 0], value[1:-1:2, 0], value[-1, 1] = 1.0, -1.0, 1.0
    points = []
    for code in range(codes):
        number_of, after = _token_and_depth(code, types, depth)
        mixed = np.zeros(tokens)
        mixed[:2] = after, 1.0
        centred = mixed - mixed.mean()
        points.append(centred / np.linalg.norm(centred) + np.eye(tokens)[number_of])
    first.layer(0).heads = [Head(value=[(token, range(2), value)], output=[(token[:2], range(2), 1.0)])]
    first.layer(0).feed(look_up(points, np.eye(codes, second.width), rng=rng), token, range(second.width))
    return to_balance([first, second], types=types, depth=depth, coding="tokens")


def zero_head(model: BalanceTransformer) -> BalanceTransformer:
    """The model with its last map set to zero: the output is zero whatever attention does (Proposition 6)."""
    with torch.no_grad():
        for parameter in model.layers[-1].maps[-1].parameters():
            parameter.zero_()
    return model


def _token_and_depth(code: int, types: int, depth: int) -> tuple[int, int]:
    """The token of a code and the depth after it."""
    if code == 2 * types * depth:
        return 2 * types, 0
    pair, closing = divmod(code, 2)
    kind, level = divmod(pair, depth)
    return 2 * kind + closing, level + 1 - closing


def _helmert(size: int) -> Float[np.ndarray, "rest size"]:
    """An orthonormal basis of the vectors of `size` numbers that sum to zero."""
    rows = np.tril(np.ones((size - 1, size)))
    rows[np.arange(size - 1), np.arange(1, size)] = -np.arange(1, size)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def _offsets(scores: Matrix, types: int, depth: int) -> Float[np.ndarray, "pair"]:
    """a of each pair: score(open) − score(close) at the closing queries, the same at all of them by balance."""
    queries = np.array(
        [pair_code(kind, level, depth) + 1 for kind in range(types) for level in range(min(2, depth), depth + 1)]
    )
    opens = np.array([pair_code(kind, level, depth) for kind, level in _pairs(types, depth)])
    differences = scores[np.ix_(opens, queries)] - scores[np.ix_(opens + 1, queries)]
    if depth > 1:
        spread = float(np.ptp(differences, axis=1).max())
        allowed = "balanced: score(open) − score(close) of a pair the same at all closing queries of level 2 and above"
        require(spread < 1e-9, "scores", f"a difference of {spread:.3g}", allowed, "see random_balanced_scores")
    return differences[:, 0]


def _threshold(scores: Matrix, types: int, depth: int) -> float:
    """Half of the smallest share that an unmatched bracket can have of the output's length, over queries and stacks."""
    smallest = 1.0
    for kind in range(types):
        for level in range(2, depth + 1):
            query = pair_code(kind, level, depth) + 1
            keys = [[pair_code(other, below, depth) for other in range(types)] for below in range(1, level)]
            weights = np.exp(scores[keys, query])
            largest = np.square(weights.max(1))
            for least, rest in zip(weights.min(1), largest.sum() - largest):
                smallest = min(smallest, float(least / np.sqrt(least**2 + rest)))
    return smallest / 2


def _stack_network(basis: Matrix, types: int, depth: int, opening: float, threshold: float) -> Network:
    """(stack, code of the last token) ↦ probabilities of the next bracket.

    Hidden 1: the coordinates along each pair's direction, the same minus the threshold, and the code; hidden 2: which
    bracket is on top of the stack after a closing one, and the code.
    """
    pairs, codes, tops = types * depth, 2 * types * depth + 1, types * (depth - 1)
    first = np.zeros((2 * pairs + codes, pairs + 1 + codes))
    first[:pairs, : pairs + 1] = first[pairs : 2 * pairs, : pairs + 1] = basis
    first[2 * pairs :, pairs + 1 :] = np.eye(codes)
    second = np.zeros((tops + codes, len(first)))
    for top, (kind, level) in enumerate((k, d) for k in range(types) for d in range(1, depth)):
        pair = kind * depth + level - 1
        second[top, pair], second[top, pairs + pair] = 1 / threshold, -1 / threshold
        for other in range(types):  # the last token closes a pair of the level above: this bracket is on top
            second[top, 2 * pairs + pair_code(other, level + 1, depth) + 1] = 1.0
    second[tops:, 2 * pairs :] = np.eye(codes)
    biases = np.repeat([0.0, -threshold, 0.0], [pairs, pairs, codes]), np.repeat([-1.0, 0.0], [tops, codes])
    return Network([first, second, _readout(types, depth, opening, tops)], biases)


def _readout(types: int, depth: int, opening: float, tops: int) -> Matrix:
    """Linear readout: the distribution of the next bracket from the last token and the bracket on top of the stack."""
    last = np.zeros((2 * types, tops + 2 * types * depth + 1))
    opens = slice(0, 2 * types, 2)
    last[opens, -1] = 1 / types
    for kind in range(types):
        last[2 * kind + 1, kind * (depth - 1) : (kind + 1) * (depth - 1)] = 1 - opening
        for level in range(1, depth + 1):
            opened = tops + pair_code(kind, level, depth)
            last[opens, opened + 1] = 1 / types if level == 1 else opening / types
            last[2 * kind + 1, opened] = 1.0 if level == depth else 1 - opening
            if level < depth:
                last[opens, opened] = opening / types
    return last
