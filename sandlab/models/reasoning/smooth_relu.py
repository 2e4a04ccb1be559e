"""Smooth ReLUs: a power below a threshold, linear above it."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from sandlab.errors import choice, require

__all__ = ["SMOOTH_RELU_VARIANTS", "modified_smooth_relu", "smooth_relu", "smooth_relu_slope"]

SMOOTH_RELU_VARIANTS = ("zero-neg", "paper")


def smooth_relu(
    x: Float[Tensor, "*shape"], power: int = 4, threshold: float = 0.1, variant: str = "zero-neg"
) -> Float[Tensor, "*shape"]:
    """x^q/(qϱ^{q−1}) up to ϱ, then x − ϱ(1 − 1/q).

    variant   "zero-neg": 0 for x ≤ 0 (once continuously differentiable); "paper": the power also on (−ϱ, 0] and the
              constant ϱ/q below, which the OCR of the source lost and which continuity and Lemma D.13 force

    Source: Huang et al. 2025, Definition 3.4.
    """
    _check(power, threshold, variant)
    inside = x.clamp(0.0 if variant == "zero-neg" else -threshold, threshold)
    return inside**power / (power * threshold ** (power - 1)) + (x - threshold).clamp(min=0.0)


def smooth_relu_slope(
    x: Float[Tensor, "*shape"], power: int = 4, threshold: float = 0.1, variant: str = "zero-neg"
) -> Float[Tensor, "*shape"]:
    """The derivative: (x/ϱ)^{q−1} inside, 1 above, 0 below; in the paper's variant it jumps from 0 to −1 at −ϱ."""
    _check(power, threshold, variant)
    low = 0.0 if variant == "zero-neg" else -threshold
    return torch.where(x > low, (x.clamp(low, threshold) / threshold) ** (power - 1), 0.0)


def modified_smooth_relu(
    x: Float[Tensor, "*shape"], power: int = 4, threshold: float = 0.1, slope: float = 1e-3, floor: float = 10.0
) -> Float[Tensor, "*shape"]:
    """The smooth ReLU with a slope −ϖ on the negative side that ends at −B; it pulls over-suppressed features back.

    ½x² on (−ϖ, 0], −ϖx − ϖ²/2 on (−B, −ϖ], constant below: a once continuously differentiable choice.

    Source: Huang et al. 2025, Assumption B.2 (pieces reconstructed).
    """
    _check(power, threshold, "zero-neg")
    require(0 < slope < floor, "slope", slope, f"between 0 and the floor {floor}")
    low = x.clamp(-floor, 0.0)
    negative = torch.where(low > -slope, 0.5 * low**2, -slope * low - 0.5 * slope**2)
    return smooth_relu(x, power, threshold) + negative


def _check(power: int, threshold: float, variant: str) -> None:
    choice("variant", variant, SMOOTH_RELU_VARIANTS)
    require(power >= 2 and power % 2 == 0, "power", power, "an even number of at least 2")
    require(threshold > 0, "threshold", threshold, "above 0")
