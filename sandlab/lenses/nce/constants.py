"""Constants of an estimation problem: Fisher matrix over a segment, curvature at and around the optimum, overlap."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from sandlab.errors import integer, number
from sandlab.learning.nce.problem import NCEProblem
from sandlab.registry import register
from sandlab.worlds.nce.exponential_family import ExponentialFamily, as_parameter

__all__ = [
    "CurvatureRange",
    "FisherConstants",
    "HessianNeighbourhood",
    "bhattacharyya",
    "condition_number",
    "curvature_range",
    "fisher_constants",
    "hessian_neighbourhood",
    "nce_spectrum",
]


@dataclass(frozen=True)
class FisherConstants:
    """Bounds over a parameter set Θ, with M(θ) = E_θ[TTᵀ] (Liu 2024, assumptions 11–14).

    largest, smallest             λ_max = max σ_max(M), λ_min = min σ_min(M)
    lipschitz                     β_Z = max ‖∇ log Z‖
    largest_slope, smallest_slope γ_max = max ‖∇_θ σ_max(M)‖, γ_min = max ‖∇_θ σ_min(M)‖
    radius                        ω = max ‖θ‖
    """

    largest: float
    smallest: float
    lipschitz: float
    largest_slope: float
    smallest_slope: float
    radius: float

    @property
    def ratio(self) -> float:
        """λ_max/λ_min."""
        return self.largest / self.smallest


@register("lenses")
def fisher_constants(problem: NCEProblem, points: int = 201) -> FisherConstants:
    """λ_max, λ_min, β_Z, γ_max, γ_min and ω over Θ, the segment between the parameters of noise and data.

    Source: Liu 2024 (thesis, CMU-ML-24-110), assumptions 11–14.
    """
    theta = _segment(problem, points).requires_grad_(True)
    spectrum = torch.linalg.eigvalsh(problem.family.fisher(theta))
    slopes = [
        torch.autograd.grad(part.sum(), theta, retain_graph=True)[0] for part in (spectrum[:, -1], spectrum[:, 0])
    ]
    theta, spectrum = theta.detach(), spectrum.detach()
    return FisherConstants(
        largest=float(spectrum[:, -1].max()),
        smallest=float(spectrum[:, 0].min()),
        lipschitz=float(problem.family.mean(theta).norm(dim=-1).max()),
        largest_slope=float(slopes[0].norm(dim=-1).max()),
        smallest_slope=float(slopes[1].norm(dim=-1).max()),
        radius=float(theta.norm(dim=-1).max()),
    )


@register("lenses")
def bhattacharyya(
    family: ExponentialFamily, first: Sequence[float] | Tensor, second: Sequence[float] | Tensor
) -> float:
    """BC = ∫ √(p₁p₂) = Z((θ₁+θ₂)/2) / √(Z(θ₁)Z(θ₂)), between 0 (disjoint) and 1 (equal).

    Source: Liu 2024 (thesis), section 4.1.4.2.
    """
    first, second = family.check(as_parameter(first), "first"), family.check(as_parameter(second), "second")
    return float(family.log_affinity(first, second).exp())


def nce_spectrum(problem: NCEProblem, kind: str = "nce", tau: Tensor | None = None) -> Float[Tensor, "*lead c"]:
    """Logs of the eigenvalues of ∇²L at τ (default τ*), smallest first; finite however small they are."""
    hessian = problem.population(kind).hessian(problem.tau_star if tau is None else tau)
    values = torch.linalg.eigvalsh(hessian.mantissa)
    floor = torch.finfo(torch.float64).eps * values[..., -1:]
    return torch.maximum(values, floor).log() + hessian.exponent.unsqueeze(-1)


@register("lenses")
def condition_number(problem: NCEProblem, kind: str = "nce", tau: Tensor | None = None) -> float | np.ndarray:
    """κ = σ_max/σ_min of ∇²L at the optimum τ* (or at `tau`, one number per leading index).

    For eNCE at τ* the Hessian is (BC/4)·E_mid[TTᵀ], mid = (θ* + θ_q)/2: κ is that of a Fisher matrix and polynomial
    in the distance. For NCE and Gaussian means κ → R⁶/(16π²). Sources: Liu 2024 (thesis), lemmas 46, 47, 53, 60.
    """
    logs = nce_spectrum(problem, kind, tau)
    ratio = (logs[..., -1] - logs[..., 0]).exp()
    return float(ratio) if ratio.ndim == 0 else ratio.numpy()


@dataclass(frozen=True)
class HessianNeighbourhood:
    """β_u = max σ_max(H(τ))/σ_max(H(τ*)) and β_l = min σ_min(H(τ))/σ_min(H(τ*)) over a ball around τ*."""

    upper: float
    lower: float
    radius: float


@register("lenses")
def hessian_neighbourhood(
    problem: NCEProblem,
    kind: str = "ence",
    *,
    radius: float | None = None,
    directions: int = 128,
    shells: int = 8,
    rng: torch.Generator | None = None,
) -> HessianNeighbourhood:
    """How much the Hessian changes within `radius` (default 1/β_Z) of τ*, measured on directions × shells.

    Directions are evenly spaced angles in two coordinates, random ones (`rng`) in more. The theory's values for eNCE
    are β_u ≤ 2e·λ_max/λ_min and β_l ≥ (1/2e)·λ_min/λ_max. Source: Liu 2024 (thesis), assumption 15 and lemma 54.
    """
    if radius is None:
        radius = 1 / fisher_constants(problem).lipschitz
    number("radius", radius, low=0.0)
    unit = _directions(len(problem.tau_star), integer("directions", directions, low=4), rng)
    lengths = torch.linspace(0, radius, shells + 1, dtype=torch.float64)[1:]
    around = problem.tau_star + lengths[:, None, None] * unit
    here = nce_spectrum(problem, kind)
    there = nce_spectrum(problem, kind, torch.cat([problem.tau_star[None], around.flatten(0, 1)]))
    return HessianNeighbourhood(
        upper=math.exp(float((there[:, -1] - here[-1]).max())),
        lower=math.exp(float((there[:, 0] - here[0]).min())),
        radius=radius,
    )


@dataclass(frozen=True)
class CurvatureRange:
    """Logs of λ_M = max σ_max(∇²L(τ(θ))) and λ_ρ = min σ_min(∇²L(τ(θ))) over Θ."""

    log_largest: float
    log_smallest: float

    @property
    def largest(self) -> float:
        return math.exp(self.log_largest)

    @property
    def smallest(self) -> float:
        return math.exp(self.log_smallest)

    @property
    def newton_rate(self) -> float:
        """The conservative Newton step λ_ρ/λ_M."""
        return math.exp(self.log_smallest - self.log_largest)


def curvature_range(problem: NCEProblem, kind: str = "nce", points: int = 101) -> CurvatureRange:
    """λ_M and λ_ρ over the normalised densities between noise and data; 1/λ_M is the standard gradient step.

    Source: Liu 2024 (thesis), theorems 17 and 18.
    """
    logs = nce_spectrum(problem, kind, problem.family.coordinates(_segment(problem, points)))
    return CurvatureRange(float(logs[:, -1].max()), float(logs[:, 0].min()))


def _segment(problem: NCEProblem, points: int) -> Float[Tensor, "point parameters"]:
    share = torch.linspace(0, 1, integer("points", points, low=2), dtype=torch.float64).unsqueeze(-1)
    return problem.theta_noise + share * (problem.theta_data - problem.theta_noise)


def _directions(width: int, count: int, rng: torch.Generator | None) -> Float[Tensor, "direction c"]:
    if width == 2:
        angle = 2 * math.pi * torch.arange(count, dtype=torch.float64) / count
        return torch.stack([angle.cos(), angle.sin()], dim=-1)
    rng = rng or torch.Generator().manual_seed(0)
    normal = torch.randn(count, width, generator=rng, dtype=torch.float64)
    return normal / normal.norm(dim=-1, keepdim=True)
