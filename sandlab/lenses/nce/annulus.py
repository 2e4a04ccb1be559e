"""The flat ring around the optimum of Gaussian mean estimation: annulus, region of the expansions, tail integrals.

All for data N(R, 1), noise N(0, 1) and models p(x) = exp(−x²/2 + bx − c); points are τ = [b, c].
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from sandlab.errors import BadInput, integer, number
from sandlab.learning.nce.problem import NCEProblem
from sandlab.registry import register
from sandlab.worlds.nce.families import GaussianMean

__all__ = [
    "SteepestPoint",
    "TailTerms",
    "annulus_points",
    "decay_exponent",
    "in_annulus",
    "in_region",
    "mean_distance",
    "radial_gradient",
    "steepest_point",
    "tail_terms",
]

_LOG_ROOT_TWO_PI = 0.5 * math.log(2 * math.pi)


def mean_distance(problem: NCEProblem) -> float:
    """R of a problem of one-dimensional Gaussian means with noise at 0; anything else is refused."""
    if problem.family != GaussianMean() or problem.theta_q != (0.0,) or problem.theta_star[0] <= 0:
        raise BadInput(
            f"the annulus is defined for one-dimensional Gaussian means, noise at 0 and data at R > 0, got "
            f"{problem.family!r} with data {problem.theta_star} and noise {problem.theta_q}"
        )
    return problem.theta_star[0]


@register("lenses")
def annulus_points(distance: float, *, radii: int = 21, angles: int = 180) -> Float[Tensor, "radius angle two"]:
    """Points of A = {(b, c): 0.1R ≤ ‖(b, c) − (R, R²/2)‖ ≤ 0.2R}, on circles.

    The centre leaves out log √2π, as in the source. Liu 2024 (thesis), lemma 49.
    """
    number("distance", distance, low=0.0)
    length = torch.linspace(0.1, 0.2, integer("radii", radii, low=2), dtype=torch.float64) * distance
    angle = 2 * math.pi * torch.arange(integer("angles", angles, low=4), dtype=torch.float64) / angles
    circle = torch.stack([angle.cos(), angle.sin()], dim=-1)
    centre = torch.tensor([distance, distance**2 / 2], dtype=torch.float64)
    return centre + length[:, None, None] * circle


def in_annulus(tau: Float[Tensor, "*lead two"], distance: float) -> Bool[Tensor, "*lead"]:
    """Whether (b, c) lies in A."""
    centre = torch.tensor([distance, distance**2 / 2], dtype=torch.float64)
    length = (tau - centre).norm(dim=-1)
    return (length >= 0.1 * distance * (1 - 1e-12)) & (length <= 0.2 * distance * (1 + 1e-12))


@register("lenses")
def in_region(tau: Float[Tensor, "*lead two"], distance: float) -> Bool[Tensor, "*lead"]:
    """Whether (b, c) lies in V = {b ≥ R/2, b(R − b) ≤ c ≤ b·min(b, R)}, where the tail expansions hold.

    Source: Liu 2024 (thesis), eq. 4.17 and the grey area of figure 4.1.
    """
    b, c = tau[..., 0], tau[..., 1]
    return (b >= distance / 2) & (c >= b * (distance - b)) & (c <= b * b.clamp(max=distance))


@dataclass(frozen=True)
class TailTerms:
    """The four integrals on either side of the point where p = q, of order 0 and with an extra factor x.

    T₁ = ∫_{x<x₀} p,  T₂ = ∫_{x≥x₀} q,  T₃ = ∫_{x<x₀} p*,  T₄ = ∫_{x≥x₀} p*q/p,  x₀ = (c − log √2π)/b.
    """

    zeroth: Float[Tensor, "*lead four"]
    first: Float[Tensor, "*lead four"]
    split: Float[Tensor, "*lead"]


@register("lenses")
def tail_terms(tau: Float[Tensor, "*lead two"], distance: float) -> TailTerms:
    """T₁ … T₄ and their first moments, by the exact normal distribution function (b > 0).

    Each is a Gaussian of mean μ and log-mass k truncated at x₀: ∫_{x<x₀} = e^k Φ(x₀ − μ), with moment
    e^k (μΦ(x₀ − μ) − φ(x₀ − μ)); to the right of x₀, e^k Φ(μ − x₀) and e^k (μΦ(μ − x₀) + φ(x₀ − μ)).
    They bound the gradient: |∫ q(p − p*)/(p + q)| ≤ T₁ + T₂ + T₃ + T₄. Source: Liu 2024, eqs. 4.16, 4.27–4.34.
    """
    b, c = tau[..., 0], tau[..., 1]
    if not bool((b > 0).all()):
        raise BadInput("tail terms are defined for b > 0: for b ≤ 0 the model lies on the far side of the noise")
    zero = torch.zeros_like(b)
    split = (c - _LOG_ROOT_TWO_PI) / b
    centre = torch.stack([b, zero, zero + distance, distance - b], dim=-1)
    fourth = ((distance - b) ** 2 - distance**2) / 2 + c - _LOG_ROOT_TWO_PI
    mass = torch.stack([b**2 / 2 - c + _LOG_ROOT_TWO_PI, zero, zero, fourth], dim=-1)
    side = torch.tensor([1.0, -1.0, 1.0, -1.0], dtype=torch.float64)  # +1: the part left of the split
    gap = split.unsqueeze(-1) - centre
    zeroth = (mass + torch.special.log_ndtr(side * gap)).exp()
    edge = (mass - gap.square() / 2 - _LOG_ROOT_TWO_PI).exp()
    return TailTerms(zeroth, centre * zeroth - side * edge, split)


def radial_gradient(problem: NCEProblem, tau: Float[Tensor, "*lead two"], kind: str = "nce") -> Float[Tensor, "*lead"]:
    """log |⟨∇L(τ), (τ* − τ)/‖τ* − τ‖⟩|: the log of how much closer to τ* a unit step of descent comes."""
    gradient = problem.population(kind, points=1001).gradient(tau)
    toward = problem.tau_star - tau
    inner = (gradient.mantissa * toward).sum(-1) / toward.norm(dim=-1)
    return inner.abs().log() + gradient.exponent


@register("lenses")
def decay_exponent(problem: NCEProblem, tau: Float[Tensor, "*lead two"]) -> Float[Tensor, "*lead"]:
    """κ(b, c) such that the radial gradient is e^(−κR²/8).

    Printed range on the annulus: [3/4, 5/4]; its minimum tends to 9/16, at b = 0.8R. Liu 2024 (thesis), lemma 49.
    """
    return -8 * radial_gradient(problem, tau) / mean_distance(problem) ** 2


@dataclass(frozen=True)
class SteepestPoint:
    """The point (b, c) of the annulus with the largest radial gradient.

    log_gradient   log of that gradient; exponent: the κ of e^(−κR²/8), smallest there
    inside         share of the annulus that lies in V
    """

    b: float
    c: float
    log_gradient: float
    exponent: float
    inside: float


def steepest_point(problem: NCEProblem, *, radii: int = 9, angles: int = 180) -> SteepestPoint:
    """Where on the annulus the radial gradient is largest, and how large it is."""
    distance = mean_distance(problem)
    points = annulus_points(distance, radii=radii, angles=angles).flatten(0, 1)
    logs = radial_gradient(problem, points).numpy()
    worst = int(np.argmax(logs))
    return SteepestPoint(
        b=float(points[worst, 0]),
        c=float(points[worst, 1]),
        log_gradient=float(logs[worst]),
        exponent=float(-8 * logs[worst] / distance**2),
        inside=float(in_region(points, distance).double().mean()),
    )
