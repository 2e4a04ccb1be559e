"""Is a task identifiable? Equality of predictors, nullity of their Jacobian, and a search for a second model."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float

from sandlab.errors import integer
from sandlab.learning.hmm.parametric import fit_parametric, task_tensor
from sandlab.learning.hmm.recovery import parameter_error
from sandlab.registry import register
from sandlab.worlds.hmm.models import HMM, GaussianHMM
from sandlab.worlds.hmm.tasks import MaskedTask
from sandlab.worlds.hmm.twins import gap_one_twin, orbit, reflected_ghmm

__all__ = [
    "Identifiability",
    "equivalent",
    "identifiable",
    "jacobian_nullity",
    "predictor_difference",
    "same_predictor",
]


@register("lenses")
def predictor_difference(
    first: HMM | GaussianHMM, second: HMM | GaussianHMM, task: str, *observed: np.ndarray
) -> float:
    """Largest difference between the optimal predictors of two models; a Gaussian HMM needs points to compare at."""
    points = observed or _points(first, MaskedTask.parse(task))
    return float(np.abs(first.predictor(task, *points) - second.predictor(task, *points)).max())


def _points(model: HMM | GaussianHMM, task: MaskedTask, count: int = 64) -> tuple[np.ndarray, ...]:
    """Fixed Gaussian points for models whose observations are continuous."""
    if isinstance(model, HMM):
        return ()
    rng = np.random.default_rng(0)
    return tuple(rng.normal(size=(count, len(model.M))) for _ in task.given)


@register("lenses")
def same_predictor(first: HMM | GaussianHMM, second: HMM | GaussianHMM, task: str, tolerance: float = 1e-10) -> bool:
    """Whether a task cannot tell two models apart."""
    return predictor_difference(first, second, task) <= tolerance


@register("lenses")
def equivalent(first: HMM | GaussianHMM, second: HMM | GaussianHMM, tolerance: float = 1e-8) -> bool:
    """Whether two models are equal up to a permutation of the hidden states (Definition 2)."""
    same = first.means.shape == second.means.shape
    return same and parameter_error(first, second.means, second.T).largest <= tolerance


@register("lenses")
def jacobian_nullity(
    model: HMM | GaussianHMM, tasks: Sequence[str], *, threshold: float = 1e-7, points: int = 60
) -> int:
    """Dimension of the directions in parameter space along which no prediction changes, to first order.

    Free parameters: sum-free columns of O ((d − 1)k) or directions orthogonal to each unit centre, and sum-free rows
    and columns of T ((k − 1)²). Singular values below `threshold` × the largest count as zero. 0 means that the task is
    locally identifiable; discrete ambiguities stay invisible.
    """
    directions = _tangents(model)
    means, transitions = torch.from_numpy(model.means.copy()), torch.from_numpy(model.T.copy())
    probes = torch.from_numpy(np.random.default_rng(0).normal(size=(points, len(model.means))))

    def predict(step: torch.Tensor) -> torch.Tensor:
        moved = step @ torch.from_numpy(directions)
        m = means + moved[: means.numel()].reshape(means.shape)
        t = transitions + moved[means.numel() :].reshape(transitions.shape)
        scores = probes @ m if isinstance(model, GaussianHMM) else None
        phi = m / m.sum(1, keepdim=True) if scores is None else scores.softmax(1)
        return torch.cat([task_tensor(task, m, t, phi).flatten() for task in tasks])

    jacobian = torch.func.jacfwd(predict)(torch.zeros(len(directions), dtype=torch.float64))
    values = torch.linalg.svdvals(jacobian)
    rank = int((values > threshold * values[0]).sum())
    return len(directions) - rank


def _tangents(model: HMM | GaussianHMM) -> Float[np.ndarray, "free entries"]:
    """Orthonormal directions of the free parameters, each over the entries of (means, T)."""
    d, k = model.means.shape
    differences = np.linalg.svd(np.ones((1, k)))[2][1:]
    if isinstance(model, HMM):
        within = np.linalg.svd(np.ones((1, d)))[2][1:]
        first = [np.outer(direction, np.eye(k)[state]) for state in range(k) for direction in within]
    else:
        unit = model.M / np.linalg.norm(model.M, axis=0)
        first = [
            np.outer(direction, np.eye(k)[state])
            for state in range(k)
            for direction in np.linalg.svd(unit[:, [state]].T)[2][1:]
        ]
    second = [np.outer(row, column) for row in differences for column in differences]
    rows = [np.concatenate([each.ravel(), np.zeros(k * k)]) for each in first]
    rows += [np.concatenate([np.zeros(d * k), each.ravel()]) for each in second]
    return np.stack(rows)


@dataclass(frozen=True)
class Identifiability:
    """The answer to "is my task identifiable?" for one model.

    nullity   dimension of the local ambiguity; twin: a different model with the same predictions, when one was found
    """

    tasks: tuple[str, ...]
    nullity: int
    twin: HMM | GaussianHMM | None
    distance: float

    @property
    def verdict(self) -> str:
        """The answer in words."""
        names = ", ".join(self.tasks)
        if self.nullity:
            return f"{names}: not identifiable, a family of dimension {self.nullity} makes the same predictions" + (
                f"; a second model lies at distance {self.distance:.3g}" if self.twin is not None else ""
            )
        if self.twin is not None:
            return f"{names}: locally identifiable, but a second model lies at distance {self.distance:.3g}"
        return f"{names}: identifiable as far as the search saw (no flat direction, no second model)"


@register("lenses")
def identifiable(
    model: HMM | GaussianHMM,
    tasks: Sequence[str],
    *,
    restarts: int = 12,
    seed: int = 0,
    apart: float = 1e-3,
    loss: float = 1e-12,
) -> Identifiability:
    """Whether these tasks determine the model: local nullity, then a search for an explicit second model.

    Twins in closed form are tried first, then least-squares fits from random starts; a fit whose loss is below `loss`
    and whose parameters differ by more than `apart` is the second model.
    """
    integer("restarts", restarts, low=0)
    names = tuple(str(MaskedTask.parse(task)) for task in tasks)
    found = [*_known_twins(model), *_fits(model, names, restarts, seed, loss)]
    twins = [each for each in found if all(same_predictor(model, each, task, 1e-7) for task in names)]
    distances = [parameter_error(model, each.means, each.T).largest for each in twins]
    best = int(np.argmax(distances)) if distances else -1
    far = bool(distances) and distances[best] > apart
    return Identifiability(
        names, jacobian_nullity(model, names), twins[best] if far else None, distances[best] if far else 0.0
    )


def _known_twins(model: HMM | GaussianHMM) -> list[HMM | GaussianHMM]:
    """Twins in closed form, as far as they are valid models: the orbit, the family of one gap, the mirror image."""
    if isinstance(model, GaussianHMM):
        return _valid([lambda: reflected_ghmm(model)])
    angles = (0.3, 0.1, 0.03) if model.hidden >= 3 else ()
    return _valid(
        [lambda angle=angle: orbit(model, angle) for angle in angles]
        + [lambda mix=mix: gap_one_twin(model, mix) for mix in (0.1, 0.03)]
    )


def _valid(makers: Sequence[Callable[[], HMM | GaussianHMM]]) -> list[HMM | GaussianHMM]:
    """What can be made: a twin with a negative entry is no model."""
    found: list[HMM | GaussianHMM] = []
    for make in makers:
        with contextlib.suppress(ValueError):
            found.append(make())
    return found


def _fits(
    model: HMM | GaussianHMM, tasks: Sequence[str], restarts: int, seed: int, loss: float
) -> list[HMM | GaussianHMM]:
    d, k = model.means.shape
    rng = np.random.default_rng(seed)
    gaussian = isinstance(model, GaussianHMM)
    probes = rng.normal(size=(60, d)) if gaussian else None
    given = () if probes is None else (probes,)
    targets = np.concatenate([model.predictor(task, *given).ravel() for task in tasks])
    if not restarts:
        return []
    starts = rng.normal(size=(restarts, d * k + k * k))
    fits = fit_parametric(tasks, targets, d, k, starts=starts, probes=probes, evaluations=40)
    return [each.model for each in fits if each.loss < loss]
