"""The bounds of the theorems: each statement as measured over bound, and the steps that descent needs."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from sandlab.errors import BadInput, number
from sandlab.learning.nce.problem import NCEProblem
from sandlab.lenses.nce.annulus import mean_distance, steepest_point
from sandlab.lenses.nce.constants import (
    condition_number,
    curvature_range,
    fisher_constants,
    hessian_neighbourhood,
    nce_spectrum,
)
from sandlab.random import rng
from sandlab.registry import register

__all__ = ["NormalisedBound", "bound_ratios", "gd_step_lower_bound", "newton_step_lower_bound", "ngd_step_upper_bound"]


def bound_ratios(problem: NCEProblem, points: int = 300) -> dict[str, float]:
    """Measured over bound for the statements about Gaussian means at one distance R: at most 1 where they hold.

    "…-printed" are misprints of the source. Statements about every τ are checked at `points` random coordinates.
    Source: Liu 2024 (thesis), section 4.1: proposition 8, claim 6, lemmas 46, 48, 50, 52, 53, 54 and 60.
    """
    distance = mean_distance(problem)
    fisher, overlap = fisher_constants(problem), problem.bc()
    kappa, kappa_ence = (float(condition_number(problem, kind)) for kind in ("nce", "ence"))
    change, around = 2 * math.e * fisher.ratio, hessian_neighbourhood(problem, "ence")
    largest = math.exp(float(nce_spectrum(problem)[-1]) + distance**2 / 8)
    at_noise = float(torch.linalg.eigvalsh(problem.hess(problem.tau_q))[-1])
    return {
        "quadratic": _quadratic_excess(problem, distance),
        "largest-curvature": largest / (distance / math.sqrt(2 * math.pi)),
        "noise-curvature": (distance**2 + 2) / 8 / at_noise,
        "noise-curvature-printed": distance**2 / 2 / at_noise,
        "gradient": _gradient_share(problem, distance, points),
        "ring-jump": _ring_jump(problem, distance, points),
        "ence-condition": kappa_ence / fisher.ratio,
        "neighbourhood": max(around.upper / change, 1 / change / around.lower),
        "condition-safe": kappa / (4 * fisher.ratio**2 / overlap),
        "condition-printed": kappa / (fisher.ratio / 2 / overlap),
        "overlap": (1 - distance**2 / 8) / overlap,
    }


def _quadratic_excess(problem: NCEProblem, distance: float) -> float:
    """Largest of (L(τ) − L*)/(½σ_max δ²·1.05) on a circle of radius δ = 0.1/max(R, 1)."""
    small = 0.1 / max(distance, 1.0)
    angle = torch.linspace(0, 2 * math.pi, 65, dtype=torch.float64)[:-1]
    circle = problem.tau_star + small * torch.stack([angle.cos(), angle.sin()], -1)
    increase = problem.loss(circle) - problem.loss(problem.tau_star)
    largest = math.exp(float(nce_spectrum(problem)[-1]))
    return float(increase.max() / (0.5 * largest * small**2 * 1.05))


def _scattered(problem: NCEProblem, distance: float, points: int, nearest: float) -> Float[Tensor, "point two"]:
    """Coordinates in random directions, between `nearest` and 4R away from the optimum."""
    direction = torch.randn(points, 2, generator=rng(0, "theorems"), dtype=torch.float64)
    length = torch.linspace(nearest, 4 * distance, points, dtype=torch.float64).unsqueeze(-1)
    return problem.tau_star + length * direction / direction.norm(dim=-1, keepdim=True)


def _gradient_share(problem: NCEProblem, distance: float, points: int) -> float:
    """Largest ‖∇L‖/(32·max(R, |b|)) over scattered coordinates."""
    tau = _scattered(problem, distance, points, 0.0)
    norms = problem.population("nce", 1001).gradient(tau).value.norm(dim=-1)
    return float((norms / (32 * tau[:, 0].abs().clamp(min=distance))).max())


def _ring_jump(problem: NCEProblem, distance: float, points: int) -> float:
    """Largest 0.15R/‖τ′ − τ*‖ after one step of 0.01 from at least 0.2R away."""
    tau = _scattered(problem, distance, points, 0.2 * distance)
    moved = tau - 0.01 * problem.population("nce", 1001).gradient(tau).value
    return float((0.15 * distance / problem.distance(moved)).max())


@register("lenses")
def gd_step_lower_bound(problem: NCEProblem, rate: float) -> float:
    """log of 0.05R/(η·max_A |radial gradient|): fewer steps cannot carry gradient descent across the annulus.

    One step shortens the distance by at most η times the radial gradient. Source: Liu 2024 (thesis), theorem 17.
    """
    number("rate", rate, low=0.0)
    distance = mean_distance(problem)
    return math.log(0.05 * distance) - math.log(rate) - steepest_point(problem).log_gradient


@register("lenses")
def newton_step_lower_bound(problem: NCEProblem, rate: float | None = None) -> float:
    """log of the steps damped Newton needs across the annulus, at the conservative step η = λ_ρ/λ_M by default.

    One step shortens the distance by at most η/σ_min(∇²L) times the radial gradient, and σ_min ≥ λ_ρ there by the
    source's argument: 0.05R·λ_ρ/(η·max_A |radial gradient|). Source: Liu 2024 (thesis), theorem 18, eq. 4.62.
    """
    curvature = curvature_range(problem)
    rate = curvature.newton_rate if rate is None else number("rate", rate, low=0.0)
    per_step = math.log(rate) - curvature.log_smallest + steepest_point(problem).log_gradient
    return math.log(0.05 * mean_distance(problem)) - per_step


@dataclass(frozen=True)
class NormalisedBound:
    """A guarantee for normalised descent: `iterations` steps of size `rate` bring an iterate within `target` of τ*."""

    rate: float
    iterations: float
    target: float


@register("lenses")
def ngd_step_upper_bound(
    problem: NCEProblem, target: float, kind: str = "ence", *, constants: str = "measured"
) -> NormalisedBound:
    """Step η = √(β_l/(β_u κ*))·δ and count (β_u κ*/β_l)·‖τ_q − τ*‖²/δ², for δ ≤ 1/β_Z.

    constants  "measured": β's of the ball of radius 1/β_Z; "theory": β_u = 2e·λ_max/λ_min = 1/β_l and
               κ* ≤ λ_max/λ_min (eNCE only). Source: Liu 2024 (thesis), theorems 19 and 21, lemma 54.
    """
    fisher = fisher_constants(problem)
    number("target", target, low=0.0, high=1 / fisher.lipschitz * (1 + 1e-12), hint="the theorem needs δ ≤ 1/β_Z")
    if constants == "theory":
        if kind != "ence":
            raise BadInput("constants='theory' is proved for kind='ence' only: use constants='measured'")
        spread = (2 * math.e * fisher.ratio) ** 2
    else:
        around = hessian_neighbourhood(problem, kind)
        spread = around.upper / around.lower
    kappa = float(condition_number(problem, kind))
    squared = float(problem.distance(problem.tau_q)) ** 2
    return NormalisedBound(
        rate=target / math.sqrt(spread * kappa), iterations=spread * kappa * squared / target**2, target=target
    )
