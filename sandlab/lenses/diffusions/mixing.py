"""Mixing of stationary processes and what it costs: β, pairs, blocking bounds, Rademacher complexity."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from jaxtyping import Float
from scipy.special import gamma

from sandlab.errors import integer, number
from sandlab.registry import register
from sandlab.worlds.diffusions.grid import GridChain

__all__ = [
    "beta_mixing",
    "blocking_bound",
    "generalization_gap",
    "massart_cap",
    "mean_norm_bound",
    "ou_mean_norm",
    "pair_mixing",
    "pointwise_mixing",
    "rademacher",
]


@register("lenses")
def beta_mixing(chain: GridChain, time: float) -> float:
    """β(t) = E_π TV(P^t(· | x), π) (Definition 1)."""
    return float(chain.stationary @ pointwise_mixing(chain, time))


def pointwise_mixing(chain: GridChain, time: float) -> Float[np.ndarray, " cell"]:
    """TV(P^t(· | x), π) from every cell."""
    return 0.5 * np.abs(chain.kernel(time) - chain.stationary).sum(1)


@register("lenses")
def pair_mixing(chain: GridChain, eta: float, lag: int, *, labelled: bool = True) -> float:
    """β of the sequence of contrastive pairs at `lag` pairs, with q = π, by summing over all pairs (Lemma 4).

    Labelled: a positive pair's last point is at time η, a negative one's x at time 0, so that
    β_S(2iη) = ½β_L(2iη) + ½β_L((2i − 1)η). Unlabelled pairs mix the two posteriors over the last point.
    """
    integer("lag", lag, low=1)
    pi, step = chain.stationary, chain.kernel(eta)
    far, near = chain.kernel(2 * lag * eta), chain.kernel((2 * lag - 1) * eta)
    if labelled:
        return float(0.25 * pi @ np.abs(far - pi).sum(1) + 0.25 * (pi @ step) @ np.abs(near - pi).sum(1))
    positive = step / (step + pi)  # P(y = 1 | x, x′)
    total = 0.0
    for index, weight in enumerate(pi):
        law = positive[index][:, None] * near + (1 - positive[index])[:, None] * far[index]
        total += weight * ((step[index] + pi) / 2 @ (0.5 * np.abs(law - pi).sum(1)))
    return float(total)


def ou_mean_norm(rho: float, d: int = 1) -> float:
    """B = E_π‖x‖ = √(2/ρ) Γ((d+1)/2)/Γ(d/2) of an isotropic OU process."""
    return float(math.sqrt(2 / rho) * gamma((d + 1) / 2) / gamma(d / 2))


@register("lenses")
def mean_norm_bound(density_at_minimum: float, rho: float, d: int = 1, *, printed: bool = False) -> float:
    """B ≤ π(z*) (2π/ρ)^{d/2} √(d/ρ); `printed` drops (2π/ρ)^{d/2} as eq. 2.2 does, and is then violated."""
    factor = 1.0 if printed else (2 * math.pi / rho) ** (d / 2)
    return density_at_minimum * factor * math.sqrt(d / rho)


@register("lenses")
def rademacher(values: Float[np.ndarray, "classifier m"], rng: np.random.Generator, draws: int = 200) -> float:
    """(1/m) E_ε sup_h |Σ ε_i h(x_i)| of a finite class, by Monte Carlo over the signs (eq. 2.8)."""
    signs = rng.choice([-1.0, 1.0], size=(values.shape[1], integer("draws", draws, low=1)))
    return float(np.abs(values @ signs).max(0).mean() / values.shape[1])


def massart_cap(classifiers: int, m: int) -> float:
    """√(2 log(2|H|)/m)."""
    return math.sqrt(2 * math.log(2 * classifiers) / m)


@register("lenses")
def blocking_bound(
    total: float,
    beta: Callable[[float], float],
    complexity: Callable[[int], float],
    delta: float,
    *,
    factor: float = 1.0,
    most: int = 4096,
) -> tuple[int, float]:
    """(μ, bound): Φ ≤ ℜ_μ + √(log(2/(δ − Δ))/(2μ)) with Δ = 2(μ − 1)β(T/(2μ)), minimised over the blocks μ (Lemma 2).

    Infeasible μ (Δ ≥ δ) are left out; `factor` multiplies ℜ, whose definition differs between sources.
    """
    number("delta", delta, low=0.0, high=1.0)
    found = []
    for blocks in range(1, integer("most", most, low=1) + 1):
        slack = delta - 2 * (blocks - 1) * beta(total / (2 * blocks))
        if slack > 0:
            found.append((factor * complexity(blocks) + math.sqrt(math.log(2 / slack) / (2 * blocks)), blocks))
    bound, blocks = min(found)
    return blocks, float(bound)


@register("lenses")
def generalization_gap(
    predictions: Float[np.ndarray, "classifier m"], y: np.ndarray, population: Float[np.ndarray, " classifier"]
) -> float:
    """Φ = sup_h |R̂(h) − R(h)| of a finite class under the squared loss (eq. 2.7)."""
    return float(np.abs(((predictions - y) ** 2).mean(1) - population).max())
