"""The tensor power method: how long x ← x + ηC x^{q−1} takes, and why the largest start wins."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sandlab.errors import require
from sandlab.registry import register

__all__ = ["PowerBounds", "noisy_power_growth", "power_bounds", "power_growth", "winner_takes_all"]


@dataclass(frozen=True)
class PowerBounds:
    """Σ ηC_t until x > A: measured, its lower and upper bound, and the continuous limit 1/((q−2)x₀^{q−2})."""

    measured: float
    low: float
    high: float
    limit: float


def power_growth(start: float, end: float, power: int, rate: float) -> int:
    """Number of steps t with x_t ≤ A of x ← x + η x^{q−1}."""
    x, steps = start, 0
    while x <= end:
        x, steps = x + rate * x ** (power - 1), steps + 1
    return steps


@register("lenses")
def power_bounds(start: float, end: float, power: int, rate: float, delta: float = 0.1) -> PowerBounds:
    """Time of the growth x ← x + η x^{q−1} from x₀ to A against its bounds (Lemma B.13).

    Upper: [(1+δ)^{q−2}/(q−2) + κ]/x₀^{q−2};
    lower: [δ(1+δ)^{−1}/((1+δ)^{q−2} − 1)·(1 − ((1+δ)x₀/A)^{q−2}) − κ]/x₀^{q−2},
    with κ = ηA^{q−1}/x₀ · log(A/x₀)/log(1+δ). The lower one is reconstructed.

    Source: Huang et al. 2025, Lemma B.13, Corollary B.1.
    """
    require(0 < start < end, "start", start, f"between 0 and {end}")
    order = power - 2
    slack = rate * end ** (power - 1) / start * math.log(end / start) / math.log1p(delta)
    low = delta / (1 + delta) / ((1 + delta) ** order - 1) * (1 - ((1 + delta) * start / end) ** order)
    measured = rate * power_growth(start, end, power, rate)
    scale = start**order
    return PowerBounds(
        measured, (low - slack) / scale, ((1 + delta) ** order / order + slack) / scale, 1 / (order * scale)
    )


def winner_takes_all(start: float, rival: float, factor: float, power: int, rate: float, end: float = 1.0) -> float:
    """y at the moment when x reaches A, where y grows S times as fast: y ← y + ηS y^{q−1} (Corollary B.1).

    If x₀ ≥ y₀ S^{1/(q−2)} (1 + 1/polylog), y stays of the order of y₀.
    """
    x, y = start, rival
    while x <= end and y <= end:
        x, y = x + rate * x ** (power - 1), y + rate * factor * y ** (power - 1)
    return y


def noisy_power_growth(start: float, end: float, power: int, rate: float, noise: float) -> float:
    """Time of x ← x + η E(ξ + x)^p with ξ ~ N(0, σ²), by Gauss–Hermite quadrature (Lemma B.12; p = q − 1)."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(40)
    weights = weights / weights.sum()
    x, steps = start, 0
    while x <= end:
        x, steps = x + rate * float(weights @ (noise * nodes + x) ** (power - 1)), steps + 1
    return rate * steps
