"""Descent on contrastive losses: gradient descent, heavy ball, Newton and normalised gradient descent."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from sandlab.errors import BadInput, choice, integer, number
from sandlab.learning.nce.losses import Scaled, Stabiliser
from sandlab.learning.nce.problem import ContrastiveObjective, NCEProblem

__all__ = ["DESCENT_METHODS", "Trajectory", "newton_direction", "optimise", "steps_to_reach"]


@dataclass(frozen=True)
class _State:
    """The state of a descent: the loss, the coordinates, the gradient there."""

    objective: ContrastiveObjective
    tau: Tensor
    gradient: Scaled


Step = Callable[[_State, Tensor, Tensor], tuple[Tensor, Tensor]]


@dataclass(frozen=True)
class Trajectory:
    """The path of a descent, step axis first, then one axis per rate when several were given.

    tau        coordinates at steps 0 ... steps
    log_loss   log L at each of them (on that step's samples, if sampled)
    log_norm   log ‖∇L‖ likewise
    distance   ‖τ − τ*‖; `best` is its running minimum, which is what the theorems are about
    """

    tau: Float[Tensor, "step *rate coordinate"]
    log_loss: Float[Tensor, "step *rate"]
    log_norm: Float[Tensor, "step *rate"]
    distance: Float[Tensor, "step *rate"]

    @property
    def best(self) -> Float[Tensor, "step *rate"]:
        """min over s ≤ t of ‖τ_s − τ*‖."""
        return self.distance.cummin(0).values

    @property
    def loss(self) -> Tensor:
        return self.log_loss.exp()

    @property
    def grad_norm(self) -> Tensor:
        return self.log_norm.exp()

    def reached(self, radius: float) -> np.ndarray:
        """First step at which the distance is at most `radius`, −1 where it never is."""
        inside = (self.distance <= radius).numpy()
        return np.where(inside.any(0), inside.argmax(0), -1)


def _descend(at: _State, memory: Tensor, rate: Tensor) -> tuple[Tensor, Tensor]:
    """τ ← τ − η ∇L."""
    return at.tau - rate * at.gradient.value, memory


def _heavy_ball(at: _State, memory: Tensor, rate: Tensor) -> tuple[Tensor, Tensor]:
    """v ← 0.9 v + ∇L, τ ← τ − η v (Polyak 1964)."""
    memory = 0.9 * memory + at.gradient.value
    return at.tau - rate * memory, memory


def _normalised(at: _State, memory: Tensor, rate: Tensor) -> tuple[Tensor, Tensor]:
    """τ ← τ − η ∇L/‖∇L‖; stays where the gradient is exactly zero."""
    return at.tau - rate * at.gradient.direction, memory


def _newton(at: _State, memory: Tensor, rate: Tensor) -> tuple[Tensor, Tensor]:
    """τ ← τ − η (∇²L)⁻¹ ∇L."""
    return at.tau - rate * _solve(at.objective.hessian(at.tau), at.gradient), memory


DESCENT_METHODS: dict[str, Step] = {
    "gd": _descend,
    "momentum": _heavy_ball,
    "ngd": _normalised,
    "newton": _newton,
}


def newton_direction(objective: ContrastiveObjective, tau: Float[Tensor, "*lead c"]) -> Float[Tensor, "*lead c"]:
    """(∇²L)⁻¹ ∇L."""
    return _solve(objective.hessian(tau), objective.gradient(tau))


def _solve(hessian: Scaled, gradient: Scaled) -> Float[Tensor, "*lead c"]:
    """H⁻¹g by eigenvalues, with both on one scale so that neither underflows.

    Eigenvalues are floored at 10⁻¹⁵ of the largest: what lies below is rounding, and the Hessian is never indefinite.
    """
    values, vectors = torch.linalg.eigh(hessian.mantissa)
    floor = 1e-15 * values[..., -1:].clamp(min=torch.finfo(torch.float64).tiny)
    inner = (vectors.mT @ gradient.mantissa.unsqueeze(-1)).squeeze(-1) / torch.maximum(values, floor)
    solved = (vectors @ inner.unsqueeze(-1)).squeeze(-1)
    return solved * (gradient.exponent - hessian.exponent).exp().unsqueeze(-1)


def optimise(
    problem: NCEProblem,
    kind: str = "nce",
    method: str = "ngd",
    *,
    rate: float | Tensor,
    steps: int,
    gradient: str = "population",
    batch: int = 1000,
    fresh: bool = True,
    rng: torch.Generator | None = None,
    start: Tensor | None = None,
    stabiliser: Stabiliser | None = None,
) -> Trajectory:
    """Minimise a contrastive loss from τ_q (or `start`) with a constant step, keeping the whole path.

    rate      one step size, or a vector of them: the paths are then computed together, on the same samples
    gradient  "population" (exact) or "sample" (`batch` draws from each side, new ones every step if `fresh`)
    A path whose next point is not finite (an overflowing step, a loss that is infinite there) stays where it is.
    """
    advance, rates, tau = _begin(problem, method, rate, steps, start)
    choice("gradient", gradient, ("population", "sample"))
    if gradient == "sample" and rng is None:
        raise BadInput("gradient='sample' draws examples: give it rng=sandlab.rng(seed)")
    if gradient == "population":
        objective = problem.population(kind)
    memory = torch.zeros_like(tau)
    kept: list[tuple[Tensor, Tensor, Tensor]] = []
    for step in range(steps + 1):
        if gradient == "sample" and (step == 0 or fresh):
            assert rng is not None
            objective = problem.sample(kind, n=batch, rng=rng, stabiliser=stabiliser)
        at = _State(objective, tau, objective.gradient(tau))
        kept.append((tau, objective.log_loss(tau), at.gradient.log_norm))
        if step < steps:
            tau, memory = _guarded(advance, at, memory, rates)
    path, losses, norms = (torch.stack(column) for column in zip(*kept, strict=True))
    return Trajectory(path, losses, norms, problem.distance(path))


def steps_to_reach(
    problem: NCEProblem,
    radius: float,
    kind: str = "nce",
    method: str = "ngd",
    *,
    rate: float | Tensor,
    limit: int,
    points: int = 801,
    start: Tensor | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Steps on the population loss until ‖τ − τ*‖ ≤ radius, and the smallest distance seen, one per rate.

    A count of −1 means that `limit` steps were not enough. Only the current point is kept, so that millions of steps
    are possible.
    """
    number("radius", radius, low=0.0)
    advance, rates, tau = _begin(problem, method, rate, limit, start)
    tau, rates = torch.atleast_2d(tau), torch.atleast_2d(rates)
    objective = problem.population(kind, points)
    counts = np.full(len(tau), -1)
    closest = problem.distance(tau)
    memory = torch.zeros_like(tau)
    waiting = torch.arange(len(tau))
    for step in range(limit + 1):
        closest[waiting] = torch.minimum(closest[waiting], problem.distance(tau))
        arrived = closest[waiting] <= radius
        if bool(arrived.any()):
            counts[waiting[arrived].numpy()] = step
            left = ~arrived
            waiting, tau, memory, rates = waiting[left], tau[left], memory[left], rates[left]
        if len(waiting) == 0:
            break
        if step < limit:
            tau, memory = _guarded(advance, _State(objective, tau, objective.gradient(tau)), memory, rates)
    return counts, closest.numpy()


def _begin(
    problem: NCEProblem, method: str, rate: float | Tensor, steps: int, start: Tensor | None
) -> tuple[Step, Tensor, Tensor]:
    choice("method", method, DESCENT_METHODS)
    integer("steps", steps, low=1)
    rates = torch.as_tensor(rate, dtype=torch.float64)
    if rates.ndim > 1 or not bool((rates > 0).all()):
        raise BadInput(f"rate must be one positive number or a vector of them, got {rate!r}")
    start = problem.tau_q if start is None else torch.as_tensor(start, dtype=torch.float64)
    if start.shape != problem.tau_q.shape:
        raise BadInput(f"start must have {len(problem.tau_q)} coordinates, got shape {tuple(start.shape)}")
    return DESCENT_METHODS[method], rates.unsqueeze(-1), start.expand(*rates.shape, len(start)).clone()


def _guarded(advance: Step, at: _State, memory: Tensor, rates: Tensor) -> tuple[Tensor, Tensor]:
    moved, memory = advance(at, memory, rates)
    sound = torch.isfinite(moved).all(-1, keepdim=True)
    return torch.where(sound, moved, at.tau), torch.where(sound, memory, 0.0)
