"""Predictors of the right parametric form, fitted by squared loss: Levenberg–Marquardt on derivatives by autodiff."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from sandlab.worlds.hmm.doubly_stochastic import sinkhorn
from sandlab.worlds.hmm.instances import make_ghmm, make_hmm
from sandlab.worlds.hmm.models import HMM, GaussianHMM
from sandlab.worlds.hmm.tasks import MaskedTask

__all__ = ["ParametricFit", "fit_parametric", "parametric_predictions", "task_tensor"]

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
        return torch.ones(states, dtype=means.dtype)
    message = torch.linalg.matrix_power(step, gaps[0])
    carried, before = message.unsqueeze(0), gaps[0]
    for index, gap in enumerate(gaps):
        if index:
            carried = torch.einsum("gh,phs->pgs", torch.linalg.matrix_power(step, gap - before), carried)
        carried = torch.einsum("xh,phs->pxhs", means, carried).flatten(0, 1)
        before = gap
    return carried.sum(1).reshape(*[len(means)] * len(gaps), states)


def parametric_predictions(
    theta: Tensor, tasks: Sequence[str], d: int, k: int, probes: Tensor | None = None
) -> Float[Tensor, " entries"]:
    """All predictions of the model with parameters θ, in one vector: softmax O (or unit centres) and Sinkhorn T.

    probes   None for a discrete HMM (all tokens are given in turn), points x for a Gaussian one
    """
    means, transitions = _unpack(theta, d, k, probes is not None)
    if probes is None:
        phi = means / means.sum(1, keepdim=True)
    else:
        phi = torch.softmax(probes @ means, dim=1)
    return torch.cat([task_tensor(task, means, transitions, phi).flatten() for task in tasks])


def _unpack(theta: Tensor, d: int, k: int, gaussian: bool) -> tuple[Tensor, Tensor]:
    raw = theta[: d * k].reshape(d, k)
    means = raw / raw.norm(dim=0) if gaussian else raw.softmax(0)
    return means, sinkhorn(theta[d * k :].reshape(k, k), POLISH)


def fit_parametric(
    tasks: Sequence[str],
    targets: Float[np.ndarray, " entries"],
    d: int,
    k: int,
    *,
    starts: Float[np.ndarray, "restart parameters"],
    probes: np.ndarray | None = None,
    evaluations: int = 120,
) -> list[ParametricFit]:
    """Least squares from every start (d·k + k² numbers each) to the given predictions, all restarts at once.

    Levenberg–Marquardt with a damping of its own for each restart; derivatives by forward-mode autodiff. `probes` are
    the points x at which a Gaussian HMM predicts; without them the model is a discrete HMM.
    """
    points = None if probes is None else torch.from_numpy(np.asarray(probes, dtype=np.float64))
    goal = torch.from_numpy(np.asarray(targets, dtype=np.float64))

    def residual(theta: Tensor) -> Tensor:
        return parametric_predictions(theta, tasks, d, k, points) - goal

    theta, losses = _levenberg_marquardt(residual, torch.from_numpy(np.asarray(starts)), evaluations)
    return [_fit(each, float(loss), d, k, probes is not None) for each, loss in zip(theta, losses)]


def _levenberg_marquardt(
    residual: Callable[[Tensor], Tensor], theta: Tensor, evaluations: int
) -> tuple[Float[Tensor, "restart parameters"], Float[Tensor, " restart"]]:
    """Damped Gauss–Newton steps: the damping falls after a step that helps and grows after one that does not."""
    values, slopes = torch.func.vmap(residual), torch.func.vmap(torch.func.jacfwd(residual))
    damping = torch.full((len(theta), 1, 1), 1e-2, dtype=theta.dtype)
    identity, jacobian, current = torch.eye(theta.shape[1], dtype=theta.dtype), slopes(theta), values(theta)
    for _ in range(evaluations):
        gram = jacobian.mT @ jacobian
        step = torch.linalg.solve(gram + (damping + 1e-15) * identity, jacobian.mT @ current.unsqueeze(-1))
        tried = theta - step.squeeze(-1)
        new = values(tried)
        better = (new**2).sum(1) < (current**2).sum(1)
        theta, current = torch.where(better[:, None], tried, theta), torch.where(better[:, None], new, current)
        damping = torch.where(better[:, None, None], damping / 3, damping * 4).clamp(1e-14, 1e8)
        if bool((((current**2).mean(1) < 1e-26) | (damping[:, 0, 0] > 1e6)).all()):  # found, or stuck
            break
        jacobian = slopes(theta)
    return theta, (current**2).mean(1)


def _fit(theta: Tensor, loss: float, d: int, k: int, gaussian: bool) -> ParametricFit:
    means, transitions = (each.numpy() for each in _unpack(theta, d, k, gaussian))
    return ParametricFit(loss, make_ghmm(means, transitions) if gaussian else make_hmm(means, transitions))
