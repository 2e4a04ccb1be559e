"""The loss of stage 2 in closed form: attention of levels α and β over a value matrix that is frozen at its optimum.

The loss is that of masked positions that show a token. Positions that show [MASK] add (1 − p_c − p_r)(1 − 1/(τv))
when their attention is uniform (`mask_queries`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import digamma

from sandlab.errors import choice, require
from sandlab.registry import register
from sandlab.worlds.topics.masking import MaskedStatistics

__all__ = [
    "StageTwoBounds",
    "asymptotic_block_loss",
    "asymptotic_diagonal_loss",
    "block_level",
    "loss_floors",
    "mask_queries",
    "normalisers",
    "stage_one_loss",
    "stage_two_loss",
]

Levels = Float[np.ndarray, "*grid"]


def block_level(statistics: MaskedStatistics, alpha: Levels, beta: Levels) -> Levels:
    """γ = ((v − 1)α + β)/v, the mean level inside a topic: all that a block value matrix sees of α and β."""
    return np.asarray(((statistics.words - 1) * np.asarray(alpha) + beta) / statistics.words)


def stage_one_loss(statistics: MaskedStatistics) -> float:
    """1 − 1/(τv): squared loss of every stage-1 optimum on infinite documents, at each masked position."""
    return 1 - 1 / (statistics.present * statistics.words)


def mask_queries(statistics: MaskedStatistics) -> float:
    """(1 − p_c − p_r)(1 − 1/(τv)): the part of the loss that masked positions showing [MASK] contribute."""
    return (1 - statistics.keep - statistics.swap) * stage_one_loss(statistics)


def loss_floors(topics: int, words: int, concentration: float) -> dict[str, float]:
    """Least losses of uniform attention on infinite LDA documents: those of the true word frequencies.

    squared 1 − (1 + α)/(v(1 + Tα)),  cross-entropy ψ(Tα + 1) − ψ(α + 1) + ln v
    """
    total = topics * concentration
    entropy = digamma(total + 1) - digamma(concentration + 1) + np.log(words)
    return {"squared": 1 - (1 + concentration) / (words * (1 + total)), "cross-entropy": float(entropy)}


def normalisers(
    statistics: MaskedStatistics, alpha: Levels, beta: Levels, *, mask: bool = True
) -> tuple[Levels, Levels]:
    """z₁, z₂: total attention, before division, of a query whose topic is present, or absent.

    The source leaves out the keys that show [MASK] (`mask=False`); only with them does attention sum to one.
    """
    s = statistics
    p1, p2, v, rest = s.p_present, s.p_absent, s.words, s.topics - s.present
    own, hidden = block_level(s, alpha, beta) * v, s.mask_mass if mask else 0.0
    return own * p1 + p1 * v * (s.present - 1) + p2 * v * rest + hidden, (
        own * p2 + p1 * v * s.present + p2 * v * (rest - 1) + hidden
    )


@dataclass(frozen=True)
class _Outputs:
    """Predictions for a word by its attention: x ↦ c₃x + constant, for one kind of query (present or absent topic)."""

    total: Levels
    constant: Levels
    slope: float

    def __call__(self, attention: Levels) -> Levels:
        return np.asarray(self.slope * attention / self.total + self.constant)


def _outputs(s: MaskedStatistics, total: Levels, value: str, form: str) -> _Outputs:
    if form == "source":
        return _Outputs(total, np.asarray(-s.offset), s.c3)
    hidden = s.mask_mass / total
    if value == "diagonal":
        return _Outputs(total, -s.c1 * hidden, s.c3)
    different = -(s.c1 * s.c2 + s.c3) / (s.c2**2 + s.topics * s.words)
    return _Outputs(total, (-s.c1 - s.c2 * different) * hidden + different * (1 - hidden), s.c3)


@register("lenses")
def stage_two_loss(
    statistics: MaskedStatistics, alpha: Levels, beta: Levels, *, value: str = "block", form: str = "exact"
) -> Levels:
    """L(α, β) of §2.1.7.7 (block) and §2.1.7.8 (diagonal).

    Cases by true word and shown token: same word, same topic, another present topic, a token of an absent topic.
    form   "exact", or "source": as printed, without the [MASK] keys
    """
    choice("value", value, ("block", "diagonal"))
    choice("form", form, ("exact", "source"))
    s = statistics
    alpha, beta = np.broadcast_arrays(np.asarray(alpha, float), np.asarray(beta, float))
    z1, z2 = normalisers(s, alpha, beta, mask=form == "exact")
    near, far = _outputs(s, z1, value, form), _outputs(s, z2, value, form)
    inside = (block_level(s, alpha, beta),) * 2 if value == "block" else (alpha, beta)
    return _mixture(s, near, far, *inside)


def _mixture(s: MaskedStatistics, near: _Outputs, far: _Outputs, other: Levels, same: Levels) -> Levels:
    """The four cases; `same` and `other` are the levels of the shown word and of the other words of its topic."""
    v, t, p1, p2, rest = s.words, s.present, s.p_present, s.p_absent, s.topics - s.present
    one = np.ones_like(same)
    word, topic, present, absent = (near(level) for level in (p1 * same, p1 * other, p1 * one, p2 * one))
    energy = word**2 + (v - 1) * topic**2 + v * (t - 1) * present**2 + v * rest * absent**2
    shown, friends, true, others = (far(level) for level in (p2 * same, p2 * other, p1 * one, p2 * one))
    far_energy = v * t * true**2 + shown**2 + (v - 1) * friends**2 + v * (rest - 1) * others**2
    return np.asarray(
        (s.keep + s.swap / (v * s.topics)) * (energy + 1 - 2 * word)
        + s.swap / s.topics * (1 - 1 / v) * (energy + 1 - 2 * topic)
        + s.swap * (t - 1) / s.topics * (energy + 1 - 2 * present)
        + s.swap * (1 - t / s.topics) * (far_energy + 1 - 2 * true)
    )


def asymptotic_block_loss(statistics: MaskedStatistics, gamma: Levels) -> Levels:
    """Equation (2.27) as printed, for T ≫ τ ≫ 1: p_c[(1 − x)² + (v − 1)x²] + p_r + p_r y²."""
    s, c4 = statistics, statistics.c3
    swapped, gamma = s.rate * s.swap, np.asarray(gamma, float)
    x = c4 * gamma / (s.words * (gamma + s.present - 1 + c4 * swapped * s.present))
    y = c4 * swapped * gamma / (s.words * (swapped * gamma + (1 / c4 + swapped) * s.topics))
    return np.asarray(s.keep * ((1 - x) ** 2 + (s.words - 1) * x**2) + s.swap + s.swap * y**2)


def asymptotic_diagonal_loss(statistics: MaskedStatistics, alpha: Levels, beta: Levels) -> Levels:
    """Equation (2.36), for T ≫ τ ≫ 1."""
    s, c4 = statistics, statistics.c3
    swapped, own = s.rate * s.swap, np.asarray(beta) + (s.words - 1) * np.asarray(alpha)
    near = own + (1 + c4 * swapped) * s.words * s.present
    far = own + (1 / (c4 * swapped) + 1) * s.words * s.topics
    kept = (1 - c4 * beta / near) ** 2 + (s.words - 1) * (c4 * alpha / near) ** 2
    return np.asarray(s.keep * kept + s.swap * (1 + (c4 * beta / far) ** 2 + (s.words - 1) * (c4 * alpha / far) ** 2))


@dataclass(frozen=True)
class StageTwoBounds:
    """The constants of Theorems 2.1.3 and 2.1.5.

    block      λ₁(τ − 1) < γ* < λ₂T, with λ₁ as stated or as proved
    diagonal   λ₃τ < β* < λ₄T and α* < λ₅β*
    """

    statistics: MaskedStatistics

    def __post_init__(self) -> None:
        require(self.statistics.swap * self.statistics.rate > 0, "swap", self.statistics.swap, "positive")

    @property
    def lambda1_stated(self) -> float:
        s = self.statistics
        return self._whole * (1 + (1 - s.keep) * s.rate) / (2 * s.true_mass)

    @property
    def lambda1_proof(self) -> float:
        """(k + p_m p_r)(2k − 1)/(2k): what the proof derives"""
        return self._whole * (2 * self.statistics.true_mass - 1) / (2 * self.statistics.true_mass)

    @property
    def lambda2(self) -> float:
        return 100 * (self.statistics.true_mass / self._swapped + 1)

    @property
    def lambda3(self) -> float:
        return self.statistics.words * self._whole / 100

    @property
    def lambda4(self) -> float:
        s = self.statistics
        return s.true_mass / (np.sqrt(s.words - 1) - 2 + (1 - s.keep) * s.rate) * self._whole / self._swapped * s.words

    @property
    def lambda5(self) -> float:
        return 1 / ((self.statistics.words - 1) * self.statistics.true_mass)

    @property
    def _swapped(self) -> float:
        return self.statistics.rate * self.statistics.swap

    @property
    def _whole(self) -> float:
        return self.statistics.true_mass + self._swapped
