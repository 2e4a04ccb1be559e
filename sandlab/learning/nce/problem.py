"""Noise-contrastive estimation: the loss, its gradient and its Hessian, exact or from samples, without overflow.

Every quantity is an expectation of a function of the log-ratio r_τ(x) = ⟨τ − τ_q, T(x)⟩:

    L(τ) = ½ E_P*[l(r)] + ½ E_Q[l(−r)]        l(m) = log(1 + e^(−m)) (NCE) or e^(−m/2) (eNCE)
    ∇L   = ½ E_P*[l′(r) T] − ½ E_Q[l′(−r) T]
    ∇²L  = ½ E_P*[l″(r) T Tᵀ] + ½ E_Q[l″(−r) T Tᵀ]     positive semi-definite: both losses are convex in τ

Densities are never formed: log-weights are added, the largest is taken out as a common exponent, and only then are
they exponentiated. A gradient of size e^(−800) keeps an exact direction.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from sandlab.errors import BadInput, choice, integer
from sandlab.learning.nce.losses import MarginLoss, Scaled, Stabiliser, margin_loss
from sandlab.worlds.nce.exponential_family import ExponentialFamily
from sandlab.worlds.nce.gaussians import Contrast

__all__ = ["ClosedFormObjective", "ContrastiveObjective", "NCEProblem", "QuadratureObjective", "SampleObjective"]

Coordinates = Float[Tensor, "*lead coordinate"]
Given: TypeAlias = "Coordinates | Sequence[float]"


class ContrastiveObjective(Protocol):
    """A loss over the free coordinates τ, with any number of leading axes."""

    def log_loss(self, tau: Coordinates) -> Float[Tensor, "*lead"]: ...

    def gradient(self, tau: Coordinates) -> Scaled: ...

    def hessian(self, tau: Coordinates) -> Scaled: ...


@dataclass(frozen=True)
class _Side:
    """Weighted points of one distribution: statistics T(x), log-weights, and the sign y of its margin."""

    statistics: Float[Tensor, "node coordinate"]
    log_weight: Float[Tensor, " node"]
    sign: float


@dataclass(frozen=True)
class SampleObjective:
    """The loss on given points of both sides: an average over samples, or a quadrature rule."""

    loss: MarginLoss
    tau_q: Float[Tensor, " coordinate"]
    data: _Side
    noise: _Side
    stabiliser: Stabiliser = field(default_factory=Stabiliser)

    def log_loss(self, tau: Coordinates) -> Tensor:
        sides = []
        for side in (self.data, self.noise):
            ratio = self.stabiliser.ratio(self._ratio(tau, side))
            sides.append(torch.logsumexp(self.loss.log_value(side.sign * ratio) + side.log_weight, -1))
        return torch.logaddexp(*sides) - math.log(2)

    def gradient(self, tau: Coordinates) -> Scaled:
        data, noise = (self._slopes(tau, side) for side in (self.data, self.noise))
        top = _common_exponent(data, noise)
        up, down = (noise - top).exp(), (data - top).exp()
        if self.data.statistics is self.noise.statistics:  # quadrature: differences point by point, one product
            push = (up - down) @ self.noise.statistics
        else:
            push = up @ self.noise.statistics - down @ self.data.statistics
        return Scaled(push / 2, top.squeeze(-1))

    def hessian(self, tau: Coordinates) -> Scaled:
        curves = []
        for side in (self.data, self.noise):
            ratio = self._ratio(tau, side)
            curves.append(self.loss.log_curvature(side.sign * ratio) + side.log_weight)
        top = _common_exponent(curves[0], curves[1])
        total = torch.zeros(())
        for side, curve in zip((self.data, self.noise), curves, strict=True):
            weighted = (curve - top).exp().unsqueeze(-1) * side.statistics
            total = total + side.statistics.mT @ weighted
        return Scaled(total / 2, top.squeeze(-1))

    def _ratio(self, tau: Coordinates, side: _Side) -> Float[Tensor, "*lead node"]:
        return (tau - self.tau_q) @ side.statistics.mT

    def _slopes(self, tau: Coordinates, side: _Side) -> Tensor:
        """Log of the weight with which each point's T enters the gradient."""
        ratio = self._ratio(tau, side)
        slope = self.loss.log_slope(side.sign * self.stabiliser.ratio(ratio))
        if not self.stabiliser.idle:
            slope = self.stabiliser.weight(slope, ratio, side.statistics.norm(dim=-1).log())
        return slope + side.log_weight


class QuadratureObjective:
    """The population loss of a family whose x can be summed over: trapezoid rule on a line, exact sums for counts.

    The points cover P*, Q and every model density met so far: new ones are chosen when τ leaves the previous box.
    """

    def __init__(self, problem: NCEProblem, loss: MarginLoss, points: int) -> None:
        self.problem = problem
        self.loss = loss
        self.points = integer("points", points, low=16)
        anchors = torch.stack([problem.theta_data, problem.theta_noise])
        self._box = torch.stack([anchors.amin(0), anchors.amax(0)])
        self._rule = self._place_nodes()

    def _place_nodes(self) -> SampleObjective:
        problem = self.problem
        anchors = torch.stack([problem.theta_data, problem.theta_noise])
        x, log_weight = problem.family.nodes(anchors, self._box, self.points)
        statistics = problem.family.statistics(x)
        sides = [
            _Side(statistics, problem.family.log_density(x, theta) + log_weight, sign)
            for theta, sign in ((problem.theta_data, 1.0), (problem.theta_noise, -1.0))
        ]
        return SampleObjective(self.loss, problem.tau_q, sides[0], sides[1])

    def _at(self, tau: Coordinates) -> SampleObjective:
        theta = tau[..., :-1].reshape(-1, tau.shape[-1] - 1)
        low, high = theta.amin(0), theta.amax(0)
        if bool((low < self._box[0]).any() | (high > self._box[1]).any()):
            margin = 0.25 * (self._box[1] - self._box[0] + 1)
            low = torch.where(low < self._box[0], low - margin, self._box[0])
            high = torch.where(high > self._box[1], high + margin, self._box[1])
            self._box = torch.stack([low, high])
            self._rule = self._place_nodes()
        return self._rule

    def log_loss(self, tau: Coordinates) -> Tensor:
        return self._at(tau).log_loss(tau)

    def gradient(self, tau: Coordinates) -> Scaled:
        return self._at(tau).gradient(tau)

    def hessian(self, tau: Coordinates) -> Scaled:
        return self._at(tau).hessian(tau)


@dataclass(frozen=True)
class ClosedFormObjective:
    """The population eNCE loss of any exponential family, from its log-partition function alone.

    With θ₁ = θ* + (θ_q − θ)/2, θ₂ = (θ + θ_q)/2, A = ½ exp(log Z(θ₁) − α* − (α_q − α)/2) and
    B = ½ exp(log Z(θ₂) − (α + α_q)/2):

        L = A + B,   ∇L = ½(B E_θ₂[T] − A E_θ₁[T]),   ∇²L = ¼(A E_θ₁[TTᵀ] + B E_θ₂[TTᵀ])

    Where θ₁ or θ₂ leaves the natural parameter space the loss is +∞. Source: Liu 2024 (thesis), eqs. 4.11–4.13.
    """

    problem: NCEProblem

    def log_loss(self, tau: Coordinates) -> Tensor:
        first, second, _, _ = self._halves(tau)
        return torch.logaddexp(first, second)

    def gradient(self, tau: Coordinates) -> Scaled:
        first, second, theta_first, theta_second = self._halves(tau)
        family, top = self.problem.family, torch.maximum(first, second)
        push = (second - top).exp().unsqueeze(-1) * family.extended_mean(theta_second)
        pull = (first - top).exp().unsqueeze(-1) * family.extended_mean(theta_first)
        return Scaled((push - pull) / 2, top)

    def hessian(self, tau: Coordinates) -> Scaled:
        first, second, theta_first, theta_second = self._halves(tau)
        family, top = self.problem.family, torch.maximum(first, second)
        weights = [(part - top).exp()[..., None, None] for part in (first, second)]
        return Scaled((weights[0] * family.fisher(theta_first) + weights[1] * family.fisher(theta_second)) / 4, top)

    def _halves(self, tau: Coordinates) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """log A, log B, θ₁, θ₂."""
        problem = self.problem
        theta, alpha = tau[..., :-1], tau[..., -1]
        theta_first = problem.theta_data + (problem.theta_noise - theta) / 2
        theta_second = (theta + problem.theta_noise) / 2
        alpha_data, alpha_noise = problem.tau_star[-1], problem.tau_q[-1]
        first = problem.family.log_partition(theta_first) - alpha_data - (alpha_noise - alpha) / 2
        second = problem.family.log_partition(theta_second) - (alpha + alpha_noise) / 2
        return first - math.log(2), second - math.log(2), theta_first, theta_second


@dataclass(frozen=True)
class NCEProblem:
    """Estimate the parameter of the data by telling data from noise: family, θ* (data) and θ_q (noise).

    >>> problem = NCEProblem(GaussianMean(), (16.0,), (0.0,))
    >>> problem.loss(problem.tau_star)              # 1.919388e-15
    >>> problem.grad(problem.tau_q, kind="ence")
    >>> problem.loss(problem.tau_q, mode="sample", n=1000, rng=sl.rng(0))

    Coordinates are τ = [θ, α] with a free log-partition α; `tau_star` and `tau_q` are those of P* and Q.
    """

    family: ExponentialFamily
    theta_star: tuple[float, ...]
    theta_q: tuple[float, ...]
    points: int = 4001
    theta_data: Tensor = field(init=False, repr=False, compare=False)
    theta_noise: Tensor = field(init=False, repr=False, compare=False)
    tau_star: Tensor = field(init=False, repr=False, compare=False)
    tau_q: Tensor = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        for name, given, target in (
            ("theta_star", self.theta_star, ("theta_data", "tau_star")),
            ("theta_q", self.theta_q, ("theta_noise", "tau_q")),
        ):
            theta = self.family.check(given, name)
            object.__setattr__(self, name, tuple(theta.tolist()))
            object.__setattr__(self, target[0], theta)
            object.__setattr__(self, target[1], self.family.coordinates(theta))

    @classmethod
    def of(cls, world: Contrast, points: int = 4001) -> NCEProblem:
        """The estimation problem of a world of data and noise."""
        return cls(world.family, tuple(world.theta_data.tolist()), tuple(world.theta_noise.tolist()), points)

    def population(self, kind: str = "nce", points: int | None = None) -> ContrastiveObjective:
        """The exact loss: quadrature or sums for NCE, closed form for eNCE."""
        loss = margin_loss(kind)
        return ClosedFormObjective(self) if kind == "ence" else QuadratureObjective(self, loss, points or self.points)

    def quadrature(self, kind: str = "nce", points: int | None = None) -> QuadratureObjective:
        """Either loss by summation over x; for eNCE an independent check of the closed form."""
        return QuadratureObjective(self, margin_loss(kind), points or self.points)

    def sample(
        self, kind: str = "nce", *, n: int, rng: Generator, stabiliser: Stabiliser | None = None
    ) -> SampleObjective:
        """The loss on n fresh draws from P* and n from Q."""
        data = self.family.draw(n, self.theta_data, rng=rng)
        noise = self.family.draw(n, self.theta_noise, rng=rng)
        return self.on(data, noise, kind, stabiliser)

    def on(
        self, data: Tensor, noise: Tensor, kind: str = "nce", stabiliser: Stabiliser | None = None
    ) -> SampleObjective:
        """The loss on given draws of data and noise."""
        sides = []
        for name, x, sign in (("data", data, 1.0), ("noise", noise, -1.0)):
            if x.ndim != 2 or x.shape[-1] != self.family.event:
                raise BadInput(
                    f"{name} must have shape (examples, {self.family.event}) for {self.family!r}, got {tuple(x.shape)}"
                )
            even = torch.full((len(x),), -math.log(len(x)), dtype=torch.float64, device=x.device)
            sides.append(_Side(self.family.statistics(x), even, sign))
        tau_q = self.tau_q.to(data.device)
        return SampleObjective(margin_loss(kind), tau_q, sides[0], sides[1], stabiliser or Stabiliser())

    def objective(
        self, kind: str = "nce", mode: str = "population", n: int = 10_000, rng: Generator | None = None
    ) -> ContrastiveObjective:
        """`population` or `sample`, by name."""
        choice("mode", mode, ("population", "sample"))
        if mode == "population":
            return self.population(kind)
        if rng is None:
            raise BadInput("mode 'sample' draws examples: give it rng=sandlab.rng(seed)")
        return self.sample(kind, n=n, rng=rng)

    def loss(
        self, tau: Given, kind: str = "nce", mode: str = "population", n: int = 10_000, rng: Generator | None = None
    ) -> Tensor:
        """L(τ); `n` and `rng` are for mode "sample"."""
        return self.objective(kind, mode, n, rng).log_loss(self._checked(tau)).exp()

    def grad(
        self, tau: Given, kind: str = "nce", mode: str = "population", n: int = 10_000, rng: Generator | None = None
    ) -> Tensor:
        """∇L(τ)."""
        return self.objective(kind, mode, n, rng).gradient(self._checked(tau)).value

    def hess(
        self, tau: Given, kind: str = "nce", mode: str = "population", n: int = 10_000, rng: Generator | None = None
    ) -> Tensor:
        """∇²L(τ)."""
        return self.objective(kind, mode, n, rng).hessian(self._checked(tau)).value

    def kl(self) -> float:
        """KL(P* ‖ Q)."""
        return float(self.family.kl(self.theta_data, self.theta_noise))

    def bc(self) -> float:
        """Bhattacharyya coefficient ∫ √(p*q)."""
        return float(self.family.log_affinity(self.theta_data, self.theta_noise).exp())

    def distance(self, tau: Coordinates) -> Tensor:
        """‖τ − τ*‖₂."""
        return (tau - self.tau_star.to(tau.device)).norm(dim=-1)

    def maximum_likelihood(self, n: int, *, rng: Generator) -> Tensor:
        """τ of the maximum-likelihood estimate from n draws of the data: the statistical reference."""
        return self.family.coordinates(self.family.fit(self.family.draw(n, self.theta_data, rng=rng)))

    def _checked(self, tau: Given) -> Tensor:
        tau = torch.as_tensor(tau, dtype=torch.float64)
        if tau.ndim == 0 or tau.shape[-1] != len(self.tau_q):
            raise BadInput(
                f"tau must end in an axis of {len(self.tau_q)} coordinates [theta, alpha], got {tuple(tau.shape)}"
            )
        return tau


def _common_exponent(first: Float[Tensor, "*lead n"], second: Float[Tensor, "*lead m"]) -> Float[Tensor, "*lead one"]:
    """The largest log-weight, kept as an axis of one; 0 where every weight is zero."""
    top = torch.maximum(first.amax(-1, keepdim=True), second.amax(-1, keepdim=True))
    return torch.where(torch.isfinite(top), top, 0.0)
