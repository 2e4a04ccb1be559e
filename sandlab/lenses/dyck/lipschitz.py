"""How much one attention layer can change when its input does: the constants behind pruning (Wen et al. 2023).

Norms: ‖A‖₁₂ is the largest 2-norm of a column, ‖A‖₁₁ the largest 1-norm of a column. Columns are positions.
"""

from __future__ import annotations

import math

from jaxtyping import Float
from torch import Tensor

from sandlab.errors import require
from sandlab.registry import register

__all__ = [
    "attention_lipschitz",
    "column_norm",
    "composition_error",
    "floor_norm",
    "layer_norm_lipschitz",
    "overwhelming_norm",
    "softmax_change",
]


def floor_norm(x: Float[Tensor, "dim *columns"], floor: float) -> Float[Tensor, "dim *columns"]:
    """LN_C(a) = P⊥a / max(‖P⊥a‖₂, C) on columns: centred, scaled to length 1 unless shorter than C."""
    centred = x - x.mean(0)
    return centred / centred.norm(dim=0).clamp(min=floor)


def column_norm(x: Float[Tensor, "dim columns"]) -> float:
    """‖x‖₁₂, the largest 2-norm of a column."""
    return float(x.norm(dim=0).max())


@register("lenses")
def softmax_change(largest_change: float) -> float:
    """‖σ(x) − σ(y)‖₁ ≤ e^{2ε} − 1 when no score changes by more than ε (Lemma 31)."""
    return math.expm1(2 * largest_change)


def layer_norm_lipschitz(floor: float) -> float:
    """2/C: ‖LN_C(x) − LN_C(y)‖ ≤ (2/C) ‖x − y‖ (Lemma 33)."""
    require(floor > 0, "floor", floor, "above 0", "without a floor the map is not continuous at 0")
    return 2 / floor


@register("lenses")
def attention_lipschitz(radius: float, floor: float) -> float:
    """200 L²/C bounds the change of LN_C(W_V X σ(mask + (W_K X)ᵀ W_Q X)) per change of X (Lemma 36).

    For ‖X‖₁₂ ≤ 4L with L ≥ 1 and matrices of spectral norm at most 1.
    """
    require(radius >= 1, "radius", radius, "at least 1")
    return 200 * radius**2 / floor


def overwhelming_norm(accuracy: float) -> float:
    """R = 4/ε + 1: if ‖r‖ ≥ R max(‖a‖, ‖b‖), then r + a and r + b point the same way to within ε (Lemma 24).

    The printed constant carries another factor, which is not needed.
    """
    require(accuracy > 0, "accuracy", accuracy, "above 0")
    return 4 / accuracy + 1


def composition_error(first: float, second: float, growth: float, lipschitz: float) -> float:
    """ε₁λ₂ + ε₂λ₁ + ε₁ε₂: error of f₂∘f₁ ≈ g₂∘g₁ (Lemma 28, with the printed names of the two maps swapped back).

    ‖f_i(x) − g_i(x)‖ ≤ ε_i‖x‖, ‖g₁(x)‖ ≤ λ₁‖x‖ (`growth`), g₂ is λ₂-Lipschitz (`lipschitz`).
    """
    return first * lipschitz + second * growth + first * second
