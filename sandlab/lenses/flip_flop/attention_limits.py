"""Two limits of a single attention head on long inputs (Liu et al. 2023, Propositions 4 and 5).

Soft attention is diluted: with bounded scores the largest weight goes to zero as the input grows. Hard attention with
linear positions i/C has a margin that changes sign at a computable length.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from sandlab.errors import integer, number
from sandlab.models.flip_flop.linear_memory import LinearPositionMemory
from sandlab.random import rng
from sandlab.registry import register

__all__ = ["LinearPositionHead", "dilution_bound", "dilution_excess", "failure_gap", "largest_attention"]


@register("lenses")
def dilution_bound(spectral_norm: float, length: int) -> float:
    """Upper bound of every attention weight: e^{2σ} / (e^{2σ} + T − 1).

    σ is the top singular value of W_Kᵀ W_Q and the T vectors have norm at most 1, so every score lies in [−σ, σ].
    Tight when the largest score is σ and all others are −σ. (Liu et al. 2023, Prop. 4.)
    """
    number("spectral_norm", spectral_norm, low=0.0)
    integer("length", length, low=1)
    return 1 / (1 + (length - 1) * math.exp(-2 * spectral_norm))


def largest_attention(vectors: Float[Tensor, "time dim"], score_matrix: Float[Tensor, "dim dim"]) -> float:
    """The largest attention weight of the last query, for scores v_jᵀ M v_T."""
    scores = vectors @ score_matrix @ vectors[-1]
    return float(scores.softmax(0).max())


@register("lenses")
@dataclass(frozen=True)
class LinearPositionHead:
    """Scores of one head with positions i/C on flip-flop inputs, and the lengths at which a wrong key wins.

    With κ = W_Qp·W_Kp, b = e₀ᵀW_Qeᵀ W_Kp, g_a = (e_a − e₀)ᵀW_Keᵀ W_Qp and A_a = e₀ᵀW_Qeᵀ W_Ke (e_a − e₀), tokens
    0 = no-op, 1 and 2 = writes, positions counted from 1:

        input 1,0,0,…       s_{T→1} − s_{T→T}   = A₁ − b(T−1)/C + g₁T/C − κT(T−1)/C²
        input 1,0,…,0,2,0   s_{T→T−1} − s_{T→1} = A₂ − A₁ + b(T−2)/C + (g₂−g₁)T/C + κT(T−2)/C²

    κ > 0 makes the first negative for long inputs, κ < 0 the second. With κ = 0, success at all lengths needs g_a ≥ b
    and b ≥ |g₂ − g₁|. (Liu et al. 2023, Prop. 5, with the transposes that the printed statement lacks.)
    """

    query_tokens: Float[Tensor, "token head"]
    key_tokens: Float[Tensor, "token head"]
    query_position: Float[Tensor, "head"]
    key_position: Float[Tensor, "head"]
    scale: float = 64.0

    @classmethod
    def of(cls, model: LinearPositionMemory) -> LinearPositionHead:
        """The head of a model, split into token and position parts, in float64."""
        tokens = model.embedding.weight.detach().double()
        query, key = model.query.weight.detach().double(), model.key.weight.detach().double()
        parts = tokens @ query[:, :-1].mT, tokens @ key[:, :-1].mT
        return cls(*parts, query[:, -1], key[:, -1], model.config.scale)

    @classmethod
    def memory_unit(cls, curvature: float, scale: float = 64.0) -> LinearPositionHead:
        """score(T→j) = −2·1[no-op] + j/C + κTj/C²: a head that finds the latest write, with a tunable curvature κ."""
        query = torch.tensor([[1.0, 1.0, 0.0]] * 3, dtype=torch.float64)
        key = torch.tensor([[-2.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]], dtype=torch.float64)
        query_position, key_position = torch.tensor([[0.0, 0.0, curvature], [0.0, 1.0, 1.0]], dtype=torch.float64)
        return cls(query, key, query_position, key_position, scale)

    def scores(self, tokens: Int[Tensor, "time"]) -> Float[Tensor, "time"]:
        """s_{T→j} for the last query T and every key j."""
        position = torch.arange(1, len(tokens) + 1, dtype=self.query_tokens.dtype) / self.scale
        query = self.query_tokens[tokens[-1]] + position[-1] * self.query_position
        keys = self.key_tokens[tokens] + position.unsqueeze(-1) * self.key_position
        return keys @ query

    @property
    def curvature(self) -> float:
        """κ = W_Qp·W_Kp, which must be 0 for success at all lengths."""
        return float(self.query_position @ self.key_position)

    def first_margin(self, length: np.ndarray | int) -> np.ndarray:
        """A write at position 1, then no-ops: score of the write minus score of the last no-op."""
        t, c = np.asarray(length, dtype=float), self.scale
        return self._gain(1) - self._lean * (t - 1) / c + self._drift(1) * t / c - self.curvature * t * (t - 1) / c**2

    def second_margin(self, length: np.ndarray | int) -> np.ndarray:
        """Write 1 at position 1, write 2 at position T−1: score of the newer write minus score of the older."""
        t, c = np.asarray(length, dtype=float), self.scale
        tokens = self._gain(2) - self._gain(1) + (self._drift(2) - self._drift(1)) * t / c
        return tokens + self._lean * (t - 2) / c + self.curvature * t * (t - 2) / c**2

    def failure_lengths(self, longest: int = 4096) -> tuple[int | None, int | None]:
        """Smallest lengths at which hard attention errs on each input, by the formulas (None: not up to `longest`)."""
        lengths = np.arange(3, longest + 1)
        return _first(lengths, self.first_margin(lengths) <= 0), _first(lengths, self.second_margin(lengths) <= 0)

    def measured_failure_lengths(self, longest: int = 512) -> tuple[int | None, int | None]:
        """The same, found by computing the scores on the inputs of every length."""
        wrong_first, wrong_second = [], []
        lengths = np.arange(3, longest + 1)
        for length in lengths:
            idle = torch.zeros(int(length), dtype=torch.long)
            once, twice = idle.clone(), idle.clone()
            once[0] = 1
            twice[0], twice[-2] = 1, 2
            first, second = self.scores(once), self.scores(twice)
            wrong_first.append(bool(first[0] <= first[-1]))
            wrong_second.append(bool(second[-2] <= second[0]))
        return _first(lengths, np.array(wrong_first)), _first(lengths, np.array(wrong_second))

    def _gain(self, write: int) -> float:
        return float(self.query_tokens[0] @ (self.key_tokens[write] - self.key_tokens[0]))

    def _drift(self, write: int) -> float:
        return float((self.key_tokens[write] - self.key_tokens[0]) @ self.query_position)

    @property
    def _lean(self) -> float:
        return float(self.query_tokens[0] @ self.key_position)


def dilution_excess(heads: int) -> float:
    """Largest attention weight of random heads minus `dilution_bound`: not above 0."""
    generator, excess = rng(1), []
    for index in range(heads):
        length, norm = 8 + index % 200, 0.5 + (index % 40) / 8
        vectors = torch.randn(length, 6, generator=generator, dtype=torch.float64)
        matrix = torch.randn(6, 6, generator=generator, dtype=torch.float64)
        matrix = matrix * norm / torch.linalg.matrix_norm(matrix, 2)
        weight = largest_attention(vectors / vectors.norm(dim=1, keepdim=True), matrix)
        excess.append(weight - dilution_bound(norm, length))
    return max(excess)


def failure_gap(heads: int) -> int:
    """Largest difference between predicted and measured failure lengths of random heads, up to length 100."""
    gaps = []
    for seed in range(heads):
        tokens = torch.randn(2, 3, 4, generator=rng(seed, "tokens"), dtype=torch.float64)
        positions = torch.randn(2, 4, generator=rng(seed, "positions"), dtype=torch.float64)
        head = LinearPositionHead(*tokens, *positions, scale=16.0)
        both = zip(head.failure_lengths(100), head.measured_failure_lengths(100))
        gaps += [abs((predicted or 101) - (measured or 101)) for predicted, measured in both]
    return max(gaps)


def _first(lengths: np.ndarray, wrong: np.ndarray) -> int | None:
    return int(lengths[wrong.argmax()]) if wrong.any() else None
