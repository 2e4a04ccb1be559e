"""Predictors of the right parametric form, fitted by squared loss: Levenberg–Marquardt on derivatives by autodiff."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from sandlab.worlds.hmm.doubly_stochastic import sinkhorn, sinkhorn_jacobian
from sandlab.worlds.hmm.instances import make_ghmm, make_hmm
from sandlab.worlds.hmm.models import HMM, GaussianHMM
from sandlab.worlds.hmm.tasks import MaskedTask

__all__ = [
    "ParametricFit",
    "fit_parametric",
    "fit_parametric_adam",
    "fit_parametric_stream",
    "posterior_rows",
    "task_tensor",
]

POLISH = 60
"""Alternations of Sinkhorn's algorithm inside the parametrisation."""


@dataclass(frozen=True)
class ParametricFit:
    """A fitted model: its sum of squared residuals per entry, and the model itself."""

    loss: float
    model: HMM | GaussianHMM


def task_tensor(task: str | MaskedTask, means: Tensor, transitions: Tensor, phi: Tensor) -> Tensor:
    """E[⊗ x_τ | x_t] for one given token with posterior rows `phi`, differentiable in (means, T).

    Targets before t see the reversed chain Tᵀ, targets after it T; both branches meet at h_t.
    """
    task = MaskedTask.parse(task)
    (now,) = task.given
    past = _branch([now - time for time in reversed(task.targets) if time < now], means, transitions.T)
    future = _branch([time - now for time in task.targets if time > now], means, transitions)
    before = sum(time < now for time in task.targets)
    past = past.permute(*reversed(range(before)), before)  # the nearest token came first
    whole = torch.einsum("nh,ph,fh->npf", phi, past.reshape(-1, len(transitions)), future.reshape(-1, len(transitions)))
    return whole.reshape(len(phi), *[len(means)] * len(task.targets))


def _branch(gaps: list[int], means: Tensor, step: Tensor) -> Tensor:
    """E[⊗ x at the gaps | h_now], nearest first: axes (tokens …, state)."""
    states = len(step)
    if not gaps:
        return torch.ones(states, dtype=means.dtype, device=means.device)
    message = torch.linalg.matrix_power(step, gaps[0])
    carried, before = message.unsqueeze(0), gaps[0]
    for index, gap in enumerate(gaps):
        if index:
            carried = torch.einsum("gh,phs->pgs", torch.linalg.matrix_power(step, gap - before), carried)
        carried = torch.einsum("xh,phs->pxhs", means, carried).flatten(0, 1)
        before = gap
    return carried.sum(1).reshape(*[len(means)] * len(gaps), states)


def fit_parametric(
    tasks: Sequence[str],
    targets: Float[np.ndarray, " entries"],
    d: int,
    k: int,
    *,
    starts: Float[np.ndarray, "restart parameters"],
    probes: np.ndarray | None = None,
    norm: float = 1.0,
    evaluations: int = 120,
) -> list[ParametricFit]:
    """Least squares from every start (d·k + k² numbers each) to the given predictions, all restarts at once.

    Levenberg–Marquardt with a damping of its own for each restart. Derivatives: forward-mode autodiff from (O, T) to
    the predictions, closed forms from θ to (O, T). `probes` are the points x at which a Gaussian HMM predicts and
    `norm` is the length of its centres; without probes the model is a discrete HMM.
    """
    problem = _Problem(tuple(tasks), _tensor(targets), d, k, None if probes is None else _tensor(probes), norm)
    theta, losses = _levenberg_marquardt(problem, _tensor(starts), evaluations)
    return problem.fits(theta, losses)


def fit_parametric_adam(
    tasks: Sequence[str],
    targets: Float[np.ndarray, " entries"],
    d: int,
    k: int,
    *,
    starts: Float[np.ndarray, "restart parameters"],
    probes: np.ndarray | None = None,
    steps: int = 20_000,
    lr: float = 1e-2,
    last_lr: float = 1e-4,
    device: str = "cpu",
) -> list[ParametricFit]:
    """The same fit by Adam with a falling learning rate, for sizes whose Jacobian does not fit in memory."""
    points = None if probes is None else _tensor(probes, device)
    problem = _Problem(tuple(tasks), _tensor(targets, device), d, k, points)
    theta = _tensor(starts, device).clone().requires_grad_(True)
    optimiser = torch.optim.Adam([theta], lr=lr)
    falling = torch.optim.lr_scheduler.ExponentialLR(optimiser, (last_lr / lr) ** (1 / max(steps, 1)))
    for _ in range(steps):
        optimiser.zero_grad(set_to_none=True)
        means, transitions = problem.means(theta), ImplicitSinkhorn.apply(problem.logits(theta))
        ((problem.predict(means, transitions) - problem.goal) ** 2).mean(1).sum().backward()
        optimiser.step()
        falling.step()
    with torch.no_grad():
        losses = (problem.residuals(theta) ** 2).mean(1)
    return problem.fits(theta.detach(), losses)


def fit_parametric_stream(
    task: str,
    draw: Callable[[], tuple[Tensor, Tensor]],
    d: int,
    k: int,
    *,
    start: Float[np.ndarray, " parameters"],
    norm: float = 1.0,
    steps: int = 1000,
    lr: float = 1e-2,
    last_lr: float = 1e-4,
) -> GaussianHMM:
    """A Gaussian HMM fitted by Adam to a stream of batches (x, ⊗ targets): memory does not grow with the data."""
    x, targets = draw()
    theta = _tensor(start[None], str(x.device)).clone().requires_grad_(True)
    optimiser = torch.optim.Adam([theta], lr=lr)
    falling = torch.optim.lr_scheduler.ExponentialLR(optimiser, (last_lr / lr) ** (1 / max(steps, 1)))
    for _ in range(steps):
        problem = _Problem((task,), targets.flatten().double(), d, k, x.double(), norm)
        means, transitions = problem.means(theta), ImplicitSinkhorn.apply(problem.logits(theta))
        optimiser.zero_grad(set_to_none=True)
        ((problem.predict(means, transitions) - problem.goal) ** 2).mean().backward()
        optimiser.step()
        falling.step()
        x, targets = draw()
    (found,) = problem.fits(theta.detach(), torch.zeros(1))
    assert isinstance(found.model, GaussianHMM)
    return found.model


def _tensor(values: np.ndarray, device: str = "cpu") -> Tensor:
    return torch.from_numpy(np.asarray(values, dtype=np.float64)).to(device)


class ImplicitSinkhorn(torch.autograd.Function):
    """Sinkhorn's matrix whose gradient is that of its fixed point, not of its alternations."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor) -> Tensor:
        matrix = sinkhorn(logits, POLISH)
        ctx.save_for_backward(matrix)
        return matrix

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        (matrix,) = ctx.saved_tensors
        return torch.einsum("...ij,...ijab->...ab", gradient, sinkhorn_jacobian(matrix))


@dataclass(frozen=True, eq=False)
class _Problem:
    """Targets of some tasks, and the way from many parameter vectors θ (restart axis first) to predictions."""

    tasks: tuple[str, ...]
    goal: Tensor
    d: int
    k: int
    probes: Tensor | None
    norm: float = 1.0

    def raw(self, theta: Tensor) -> Tensor:
        return theta[:, : self.d * self.k].unflatten(1, (self.d, self.k))

    def means(self, theta: Tensor) -> Tensor:
        raw = self.raw(theta)
        return raw.softmax(1) if self.probes is None else self.norm * raw / raw.norm(dim=1, keepdim=True)

    def logits(self, theta: Tensor) -> Tensor:
        return theta[:, self.d * self.k :].unflatten(1, (self.k, self.k))

    def predict(self, means: Tensor, transitions: Tensor) -> Tensor:
        return torch.func.vmap(self._predict_one)(means, transitions)

    def _predict_one(self, means: Tensor, transitions: Tensor) -> Tensor:
        phi = posterior_rows(means, self.probes)
        return torch.cat([task_tensor(task, means, transitions, phi).flatten() for task in self.tasks])

    def residuals(self, theta: Tensor) -> Tensor:
        return self.predict(self.means(theta), sinkhorn(self.logits(theta), POLISH)) - self.goal

    def jacobian(self, theta: Tensor) -> Float[Tensor, "restart entries parameters"]:
        """Chain rule: ∂predictions/∂(O, T) by autodiff, ∂(O, T)/∂θ in closed form."""
        means, transitions = self.means(theta), sinkhorn(self.logits(theta), POLISH)
        by_means, by_steps = torch.func.vmap(torch.func.jacfwd(self._predict_one, (0, 1)))(means, transitions)
        first = torch.einsum("reak,rabk->rebk", by_means, self._mean_jacobian(theta, means))
        second = torch.einsum("reij,rijab->reab", by_steps, sinkhorn_jacobian(transitions))
        return torch.cat([first.flatten(2), second.flatten(2)], 2)

    def _mean_jacobian(self, theta: Tensor, means: Tensor) -> Float[Tensor, "restart d d k"]:
        """∂means_ak/∂raw_bk: softmax, or projection on the sphere, column by column."""
        unit = torch.eye(self.d, dtype=theta.dtype)[None, :, :, None]
        outer = means[:, :, None] * means[:, None]
        if self.probes is None:
            return unit * means[:, :, None] - outer
        return self.norm * (unit - outer / self.norm**2) / self.raw(theta).norm(dim=1)[:, None, None]

    def fits(self, theta: Tensor, losses: Tensor) -> list[ParametricFit]:
        means, transitions = self.means(theta).cpu().numpy(), sinkhorn(self.logits(theta), POLISH).cpu().numpy()
        make = make_hmm if self.probes is None else make_ghmm
        return [ParametricFit(float(loss), make(m, t)) for loss, m, t in zip(losses, means, transitions)]


def posterior_rows(means: Tensor, probes: Tensor | None) -> Float[Tensor, "given k"]:
    """φ of every token (discrete, rows of O normalised) or of every probe point (Gaussian, centres of equal norm)."""
    return means / means.sum(1, keepdim=True) if probes is None else torch.softmax(probes @ means, dim=1)


def _levenberg_marquardt(
    problem: _Problem, theta: Tensor, evaluations: int
) -> tuple[Float[Tensor, "restart parameters"], Float[Tensor, " restart"]]:
    """Damped Gauss–Newton steps: the damping falls after a step that helps and grows after one that does not.

    Restarts that are found or stuck leave the batch.
    """
    theta, current = theta.clone(), problem.residuals(theta)
    damping = torch.full((len(theta),), 1e-2, dtype=theta.dtype)
    active = torch.arange(len(theta))
    for _ in range(evaluations):
        jacobian, now = problem.jacobian(theta[active]), current[active]
        ridge = torch.diag_embed((damping[active] + 1e-15)[:, None].expand(-1, theta.shape[1]))
        step = torch.linalg.solve(jacobian.mT @ jacobian + ridge, jacobian.mT @ now.unsqueeze(-1))
        tried = theta[active] - step.squeeze(-1)
        new = problem.residuals(tried)
        better = (new**2).sum(1) < (now**2).sum(1)
        theta[active[better]], current[active[better]] = tried[better], new[better]
        damping[active] = torch.where(better, damping[active] / 3, damping[active] * 4).clamp(1e-14, 1e8)
        still = better & ((new**2).sum(1) > (1 - 1e-10) * (now**2).sum(1))  # at the bottom of a loss that is not 0
        active = active[((current[active] ** 2).mean(1) >= 1e-26) & (damping[active] <= 1e6) & ~still]
        if not len(active):
            break
    return theta, (current**2).mean(1)
