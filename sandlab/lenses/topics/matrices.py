"""Topic structure of a matrix over words: blocks of topics, and the distance from the optima of stage 1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float
from scipy.stats import rankdata

from sandlab.errors import require
from sandlab.registry import register
from sandlab.worlds.topics.masking import MaskedStatistics, topic_of_word

__all__ = ["BlockContrast", "block_contrast", "block_sums", "optimality_residuals"]


@dataclass(frozen=True)
class BlockContrast:
    """Entries of a matrix over words, [MASK] left out.

    same, different       mean over pairs of one topic (the diagonal included) and of two topics
    same_std, different_std   their standard deviations
    diagonal, beside      mean of the diagonal, and of the rest of the pairs of one topic
    auc                   probability that a pair of one topic has a larger entry than a pair of two
    error                 standard error of beside − different
    """

    same: float
    different: float
    same_std: float
    different_std: float
    diagonal: float
    beside: float
    auc: float
    error: float

    @property
    def contrast(self) -> float:
        return self.same - self.different

    @property
    def ratio(self) -> float:
        """|same| / |different|"""
        return abs(self.same) / max(abs(self.different), 1e-300)

    @property
    def diagonality(self) -> float:
        """(diagonal − beside)/(diagonal − different): 0 for uniform blocks, 1 for a diagonal"""
        return (self.diagonal - self.beside) / (self.diagonal - self.different)


def _same_topic(count: int, words: int) -> Bool[np.ndarray, "count count"]:
    topic = topic_of_word(np.arange(1, count + 1), words)
    return topic[:, None] == topic


@register("lenses")
def block_contrast(matrix: Float[np.ndarray, "vocab vocab"], words: int) -> BlockContrast:
    """Compare the entries of same-topic and different-topic pairs; row and column 0 belong to [MASK]."""
    inner = np.asarray(matrix, dtype=float)[1:, 1:]
    require(len(inner) > words, "matrix", inner.shape, "of at least two topics")
    same, diagonal = _same_topic(len(inner), words), np.eye(len(inner), dtype=bool)
    inside, outside, beside = inner[same], inner[~same], inner[same & ~diagonal]
    ranks = rankdata(np.concatenate([inside, outside]))[: len(inside)].sum()
    auc = (ranks - len(inside) * (len(inside) + 1) / 2) / (len(inside) * len(outside))
    return BlockContrast(
        same=float(inside.mean()),
        different=float(outside.mean()),
        same_std=float(inside.std()),
        different_std=float(outside.std()),
        diagonal=float(inner[diagonal].mean()),
        beside=float(beside.mean()),
        auc=float(auc),
        error=float(np.hypot(beside.std() / np.sqrt(len(beside)), outside.std() / np.sqrt(len(outside)))),
    )


def block_sums(matrix: Float[np.ndarray, "vocab vocab"], words: int) -> tuple[float, float]:
    """Mean row sum over the word's own topic, and over each other topic: Σ_{l∈t} W_il."""
    inner = np.asarray(matrix, dtype=float)[1:, 1:]
    sums = inner.reshape(len(inner), -1, words).sum(2)
    own = np.repeat(np.eye(sums.shape[1], dtype=bool), words, axis=0)
    return float(sums[own].mean()), float(sums[~own].mean())


@register("lenses")
def optimality_residuals(value: Float[np.ndarray, "vocab vocab"], statistics: MaskedStatistics) -> dict[str, float]:
    """Largest violations of the constraints that make a value matrix a stage-1 optimum (Theorem 2.1.4).

    The shift u_i of a row is read off the sums over other topics: their mean, divided by v.
    """
    s = statistics
    sums = value @ s.topic_sums.T
    own = np.concatenate([np.zeros((1, s.topics)), s.topic_sums[:, 1:].T]) > 0
    others = np.where(own, np.nan, sums)
    shifts = np.nanmean(others, 1) / s.words
    column = -s.c2 * shifts - s.c1 * (np.arange(s.vocab) > 0)
    return {
        "own topic": float(np.abs(sums[own] - s.c3 - s.words * shifts[1:]).max()),
        "other topics": float(np.nanmax(np.abs(others - s.words * shifts[:, None]))),
        "mask": float(np.abs(value[:, 0] - column).max()),
    }
