"""Balance: matched brackets must cancel in attention's output (Wen et al. 2023, Theorems 1 and 2).

u(key | query) = exp(score(key, query)) · P⊥ W_V e(key) is what a key adds to the un-normalised, centred output of the
second layer. A matched pair cancels when u(open | ·) + u(close | ·) = 0 for every closing query.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from sandlab.errors import choice, require
from sandlab.models.dyck.codes import BalanceTransformer, MinimalDyck, pair_code
from sandlab.registry import register

__all__ = [
    "BalanceReport",
    "balance_gap",
    "balance_report",
    "balance_violation",
    "contribution",
    "pair_frequencies",
    "seen_drift",
]

CodedModel: TypeAlias = "MinimalDyck | BalanceTransformer"
"""A model with a minimal first layer: its attention sees the (type, level) codes of brackets."""


@dataclass(frozen=True)
class BalanceReport:
    """Pair residues ‖S‖, the scale P they compete with, and the violation β = mean ‖S‖/P.

    residues   (d−2, j, d'−1, i): the query is the closing bracket of type j and level d = 2…D, the pair has type i and
               level d' = 1…D
    scale      P (d−2, j)
    smallest   the smallest ‖Q‖ of each query (d−2, j)
    """

    residues: np.ndarray
    scale: np.ndarray
    smallest: np.ndarray

    @property
    def ratios(self) -> np.ndarray:
        """‖S‖/P, in the shape of the residues."""
        return self.residues / self.scale[:, :, None, None]

    @property
    def violation(self) -> float:
        """β: mean over queries and pairs of ‖S‖/P."""
        return float(self.ratios.mean())

    @property
    def worst_violation(self) -> float:
        """The variant that divides each query's largest ‖S‖ by its smallest ‖Q‖."""
        return float((self.residues.max((2, 3)) / self.smallest).mean())


def contribution(model: CodedModel) -> Float[Tensor, "query key dim"]:
    """u(key | query) for all codes of a model with a minimal first layer, float64."""
    scores, values = model.contributions()
    return scores.mT.exp().unsqueeze(-1) * values


@register("lenses")
def balance_report(model: CodedModel) -> BalanceReport:
    """Residues of matched pairs and the scale they compete with, from the weights alone.

    S(d, d', i, j) = u(open(i, d') | q) + u(close(i, d') | q) for the query q = closing bracket of type j at level d;
    Q(j, d, t) is the whole output on the string t · open(j) close(j), where t are d − 1 open brackets;
    P(d, j) is the smallest ‖Q‖ over those t whose last bracket differs from that of the minimiser over all t.
    """
    types, depth = model.config.types, model.config.depth
    require(types >= 2 and depth >= 2, "model", (types, depth), "one with at least two types and depth two")
    u = contribution(model)
    residues = np.zeros((depth - 1, types, depth, types))
    scale, smallest = np.zeros((depth - 1, types)), np.zeros((depth - 1, types))
    opens = torch.tensor([[pair_code(i, level, depth) for i in range(types)] for level in range(1, depth + 1)])
    for d, j in itertools.product(range(2, depth + 1), range(types)):
        opener = pair_code(j, d, depth)
        seen = u[opener + 1]
        residues[d - 2, j] = (seen[opens] + seen[opens + 1]).norm(dim=-1).numpy()
        own = seen[2 * types * depth] + seen[opener] + seen[opener + 1]
        stacks = list(itertools.product(range(types), repeat=d - 1))
        sums = [own + seen[opens[torch.arange(d - 1), torch.tensor(stack)]].sum(0) for stack in stacks]
        lengths = torch.stack(sums).norm(dim=-1).numpy()
        best = int(lengths.argmin())
        others = [length for stack, length in zip(stacks, lengths) if stack[-1] != stacks[best][-1]]
        smallest[d - 2, j], scale[d - 2, j] = lengths[best], min(others)
    return BalanceReport(residues, scale, smallest)


@register("lenses")
def balance_violation(model: CodedModel, variant: str = "mean") -> float:
    """β: how badly matched pairs fail to cancel, relative to what must be told apart; 0 is perfect balance.

    "mean" averages ‖S‖/P; "max" divides each query's largest residue by its smallest output.
    """
    report = balance_report(model)
    return report.violation if choice("variant", variant, ("mean", "max")) == "mean" else report.worst_violation


@register("lenses")
def balance_gap(scores: Float[Tensor, "key query"], types: int, depth: int) -> float:
    """Largest |(e(open i,d') − e(close i,d'))ᵀ M (e(close j₁,d₁) − e(close j₂,d₂))| over pairs and closing queries.

    Zero is the balance condition on attention alone: score(open) − score(close) does not depend on the closing query.
    Queries are closing brackets that leave at least one bracket open (levels 2…D).
    """
    require(types * depth <= len(scores), "types times depth", types * depth, f"at most the {len(scores)} keys")
    pairs = [(kind, level) for kind in range(types) for level in range(1, depth + 1)]
    opens = torch.tensor([pair_code(kind, level, depth) for kind, level in pairs])
    queries = torch.tensor([pair_code(kind, level, depth) + 1 for kind, level in pairs if level >= 2])
    gaps = scores[opens][:, queries] - scores[opens + 1][:, queries]
    return float((gaps.amax(1) - gaps.amin(1)).max())


def pair_frequencies(depth: int, opening: float = 0.5) -> Float[np.ndarray, "level"]:
    """Matched pairs of each level 1…D per bracket of a long word: closing moves of the stationary depth chain."""
    up = np.array([1.0] + [opening] * (depth - 1) + [0.0])
    moves = np.diag(up[:-1], 1) + np.diag(1 - up[1:], -1)
    values, vectors = np.linalg.eig(moves.T)
    stationary = np.abs(np.real(vectors[:, np.argmin(np.abs(values - 1))]))
    frequencies: np.ndarray = (stationary / stationary.sum() * (1 - up))[1:]
    return frequencies


@register("lenses")
def seen_drift(model: MinimalDyck, opening: float = 0.5) -> float:
    """How fast residues of matched pairs push the read-out towards a wrong closing bracket, per bracket of the word.

    For a closing query q of level d and two types a, b, with r the difference of the read-out's rows of their closing
    brackets: |r·Σ f(e) S(e, i)/k| over |r·(u(open(a, d−1)) − u(open(b, d−1)))|, where f is `pair_frequencies`; the mean
    over queries and pairs of types. β measures residues in all directions, this only what decides between brackets.
    For models with attention, norm and read-out alone.
    """
    plain = isinstance(model, MinimalDyck) and model.skip is None and model.mlp is None
    require(plain, "model", type(model).__name__, "a MinimalDyck without residual or MLP")
    types, depth = model.config.types, model.config.depth
    u = contribution(model)
    rows = (model.unembed.weight * model.norm.weight).detach().double()
    opens = torch.tensor([[pair_code(i, level, depth) for i in range(types)] for level in range(1, depth + 1)])
    shares = torch.from_numpy(pair_frequencies(depth, opening)).view(-1, 1, 1) / types
    found = []
    for d, j in itertools.product(range(2, depth + 1), range(types)):
        seen = u[pair_code(j, d, depth) + 1]
        drift = (shares * (seen[opens] + seen[opens + 1])).sum((0, 1))
        for a, b in itertools.combinations(range(types), 2):
            across = rows[2 * a + 1] - rows[2 * b + 1]
            told = across @ (seen[opens[d - 2, a]] - seen[opens[d - 2, b]])
            found.append(abs(float(across @ drift)) / abs(float(told)))
    return float(np.mean(found))
