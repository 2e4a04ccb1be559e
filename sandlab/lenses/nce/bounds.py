"""How many steps each descent method needs at least, or at most, according to the theorems."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sandlab.errors import BadInput, number
from sandlab.learning.nce.problem import NCEProblem
from sandlab.lenses.nce.annulus import mean_distance, steepest_point
from sandlab.lenses.nce.constants import (
    condition_number,
    curvature_range,
    fisher_constants,
    hessian_neighbourhood,
)
from sandlab.registry import register

__all__ = ["NormalisedBound", "gd_step_lower_bound", "newton_step_lower_bound", "ngd_step_upper_bound"]


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
    """A guarantee for normalised descent: within `steps` steps of size `rate`, an iterate is within `target` of τ*."""

    rate: float
    steps: float
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
        rate=target / math.sqrt(spread * kappa), steps=spread * kappa * squared / target**2, target=target
    )
