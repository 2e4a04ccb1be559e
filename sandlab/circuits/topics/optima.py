"""Optimal value matrices and embeddings of the one-layer topic model, for uniform attention on infinite documents.

Matrices act on columns: W x is the prediction for a document with masked frequencies x.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from sandlab.errors import choice, require
from sandlab.worlds.topics.masking import MaskedStatistics, topic_of_word

__all__ = [
    "block_value",
    "diagonal_value",
    "embedding_optimum",
    "level_attention",
    "ridge_fit",
    "ridge_value",
    "value_family",
]

Matrix = Float[np.ndarray, "rows vocab"]


def value_family(
    statistics: MaskedStatistics, shifts: Float[np.ndarray, " vocab"], spread: Matrix | None = None
) -> Float[np.ndarray, "vocab vocab"]:
    """A member of the set of all stage-1 optima (Lemma 2.1.1, Theorem 2.1.4).

        row 0:   W₀₀ = −c₂u₀,          Σ_{l∈t} W₀l = u₀v
        row i:   W_i0 = −c₁ − c₂u_i,   Σ_{l∈t} W_il = u_i v + c₃·1[t = topic(i)]

    shifts   u₀ … u_Tv, free
    spread   any matrix: its entries, less their mean over each topic, move weight within topics
    """
    s = statistics
    value = block_pattern(s) * s.c3 / s.words + shifts[:, None]
    value[:, 0] = -s.c2 * shifts
    value[1:, 0] -= s.c1
    return value if spread is None else value + _within_topics(s, spread)


def block_pattern(statistics: MaskedStatistics) -> Float[np.ndarray, "vocab vocab"]:
    """1 where both words have the same topic."""
    return statistics.topic_sums.T @ statistics.topic_sums


def _within_topics(statistics: MaskedStatistics, spread: Matrix) -> Matrix:
    moved = spread - spread @ block_pattern(statistics) / statistics.words
    moved[:, 0] = 0.0
    return moved


def block_value(statistics: MaskedStatistics) -> Float[np.ndarray, "vocab vocab"]:
    """The optimum of smallest Frobenius norm, the limit λ → 0 (Theorem 2.1.2): constant on blocks of topics.

    W₀j = 0, and u_i = −(c₁c₂ + c₃)/(c₂² + Tv) in every other row.
    """
    s = statistics
    shifts = np.full(s.vocab, -(s.c1 * s.c2 + s.c3) / (s.c2**2 + s.topics * s.words))
    shifts[0] = 0.0
    return value_family(s, shifts)


def diagonal_value(statistics: MaskedStatistics) -> Float[np.ndarray, "vocab vocab"]:
    """The diagonal optimum (Definition 2.1.2): D_ii = c₃ and D_i0 = −c₁ for i ≥ 1, zero elsewhere."""
    value = np.diag(np.full(statistics.vocab, statistics.c3))
    value[:, 0] = -statistics.c1
    value[0] = 0.0
    return value


def ridge_value(
    statistics: MaskedStatistics, frequencies: Float[np.ndarray, "documents vocab"], strength: float
) -> Float[np.ndarray, "vocab vocab"]:
    """The value matrix of `ridge_fit` on infinite documents with the given frequencies."""
    return ridge_fit(statistics.masked(frequencies), frequencies, strength)


def ridge_fit(
    seen: Float[np.ndarray, "documents vocab"], wanted: Float[np.ndarray, "documents vocab"], strength: float
) -> Float[np.ndarray, "vocab vocab"]:
    """Minimiser of mean ‖W x − y‖² + λ‖W‖² over documents: W = `E[y xᵀ] (E[x xᵀ] + λI)⁻¹`.

    seen     x: frequencies of the shown tokens; wanted: y, frequencies of the true words at predicted positions
    """
    require(strength > 0, "strength", strength, "positive", "without it the minimiser is not unique")
    gram = seen.T @ seen / len(seen) + strength * np.eye(seen.shape[1])
    return np.linalg.solve(gram, seen.T @ wanted / len(seen)).T


def embedding_optimum(
    statistics: MaskedStatistics, kind: str = "diagonal"
) -> tuple[Float[np.ndarray, "width vocab"], Float[np.ndarray, " vocab"]]:
    """Embeddings W and output bias b with WᵀW x + b = P on every infinite document (Theorem 2.1.1).

    kind   "diagonal": √c₃·diag(0, 1, …, 1);  "block": one dimension per topic, √(c₃/v) on its words
    The bias is −p_m p_r/(kTv) on words and 0 on [MASK].
    """
    s = statistics
    choice("kind", kind, ("diagonal", "block"))
    bias = np.full(s.vocab, -s.offset)
    bias[0] = 0.0
    if kind == "block":
        return np.sqrt(s.c3 / s.words) * s.topic_sums, bias
    return np.sqrt(s.c3) * np.diag((np.arange(s.vocab) > 0).astype(float)), bias


def level_attention(
    statistics: MaskedStatistics, alpha: float, beta: float
) -> tuple[Float[np.ndarray, "vocab vocab"], Float[np.ndarray, "vocab vocab"]]:
    """Key and query maps whose attention has three levels (Assumption 2.1.2), for one-hot embeddings.

    Weights ∝ β for the same word, α for another word of the topic, 1 otherwise; queries at [MASK] are uniform. Keys
    are the identity; the query map carries √d against the division of the scores.
    """
    s = statistics
    require(alpha > 0 and beta > 0, "levels", (alpha, beta), "positive")
    scores = block_pattern(s) * np.log(alpha)
    words = topic_of_word(np.arange(s.vocab), s.words) > 0
    scores[words, words] = np.log(beta)
    return np.eye(s.vocab), np.sqrt(s.vocab) * scores
