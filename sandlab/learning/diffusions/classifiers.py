"""Contrastive classifiers: tables, polynomial logits fitted by BFGS, and the kernel a classifier implies."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.optimize import minimize
from scipy.special import expit

from sandlab.errors import choice, integer
from sandlab.worlds.diffusions.contrast import ContrastLaw, GaussianContrast, NearbyContrast, StationaryContrast
from sandlab.worlds.diffusions.pairs import Pairs
from sandlab.worlds.diffusions.processes import OrnsteinUhlenbeck

__all__ = [
    "EvenLogit",
    "KernelEstimate",
    "LogitClassifier",
    "PolynomialLogit",
    "fit_logit",
    "fit_table",
    "ou_logit",
    "read_ou",
]


@dataclass(frozen=True)
class PolynomialLogit:
    """All monomials of degree ≤ `degree` of (x, x′): degree 2 realises h* of an OU process with Gaussian q."""

    dimensions: int = 1
    degree: int = 2

    def __call__(self, x: Float[np.ndarray, "*lead d"], later: Float[np.ndarray, "*lead d"]) -> np.ndarray:
        both = np.concatenate([x, later], -1)
        chosen = itertools.chain.from_iterable(
            itertools.combinations_with_replacement(range(2 * self.dimensions), size) for size in range(self.degree + 1)
        )
        return np.stack([both[..., list(index)].prod(-1) for index in chosen], -1)


@dataclass(frozen=True)
class EvenLogit:
    """Four features [1, z², z′², zz′] of a one-dimensional pair, enough when nothing is shifted."""

    def __call__(self, x: np.ndarray, later: np.ndarray) -> np.ndarray:
        z, w = x[..., 0], later[..., 0]
        return np.stack([np.ones_like(z), z**2, w**2, z * w], -1)


@dataclass(frozen=True)
class LogitClassifier:
    """h = σ(θᵀ features(x, x′)), with its training loss."""

    features: Callable[[np.ndarray, np.ndarray], np.ndarray]
    theta: np.ndarray
    loss: float

    def logit(self, x: np.ndarray, later: np.ndarray) -> Float[np.ndarray, "*lead"]:
        return self.features(x, later) @ self.theta


def fit_logit(
    pairs: Pairs, features: Callable[[np.ndarray, np.ndarray], np.ndarray], *, loss: str = "squared"
) -> LogitClassifier:
    """Minimise the squared loss (h − y)² or the cross-entropy from θ = 0 by BFGS with exact gradients."""
    choice("loss", loss, ("squared", "cross-entropy"))
    rows, y = features(pairs.x, pairs.later), pairs.y.astype(np.float64)

    def value(theta: np.ndarray) -> tuple[float, np.ndarray]:
        logit = rows @ theta
        h = expit(logit)
        if loss == "squared":
            slope = 2 * (h - y) * h * (1 - h)
            return float(((h - y) ** 2).mean()), rows.T @ slope / len(y)
        return float((np.logaddexp(0, logit) - y * logit).mean()), rows.T @ (h - y) / len(y)

    found = minimize(value, np.zeros(rows.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-9, "maxiter": 500})
    return LogitClassifier(features, found.x, float(found.fun))


def fit_table(
    pairs: Pairs, edges: Float[np.ndarray, " edge"]
) -> tuple[Float[np.ndarray, "cell cell"], Float[np.ndarray, "cell cell"]]:
    """The tabular classifier: share of positives in each cell of (x, x′), and how many pairs fell into it."""
    integer("cells", len(edges) - 1, low=1)
    sizes = np.histogram2d(pairs.x[:, 0], pairs.later[:, 0], bins=[edges, edges])[0]
    positive = np.histogram2d(pairs.x[pairs.y, 0], pairs.later[pairs.y, 0], bins=[edges, edges])[0]
    return positive / np.maximum(sizes, 1), sizes


def ou_logit(rho: float, eta: float, q: ContrastLaw) -> Float[np.ndarray, " 4"]:
    """θ on [1, z², z′², zz′] that realises h* exactly, for a one-dimensional OU process and a centred Gaussian q."""
    a = math.exp(-rho * eta)
    v = (1 - a**2) / rho
    s = _sd(q)
    near = 1 / s**2 if isinstance(q, NearbyContrast) else 0.0
    return np.array([math.log(s / math.sqrt(v)), -(a**2) / (2 * v) + near / 2, 0.5 / s**2 - 0.5 / v, a / v - near])


def read_ou(classifier: LogitClassifier, eta: float, q: ContrastLaw) -> dict[str, float]:
    """ρ̂, â, v̂ of the OU kernel that a quadratic logit implies; NaN when that kernel cannot be normalised."""
    theta, s = classifier.theta, _sd(q)
    if isinstance(classifier.features, PolynomialLogit):  # monomials 1, z, z′, z², zz′, z′²
        theta = theta[[0, 3, 5, 4]]
    curvature = theta[2] - 0.5 / s**2
    if curvature >= 0:
        return {"rho": math.nan, "a": math.nan, "v": math.nan}
    v = -0.5 / curvature
    a = (theta[3] + (1 / s**2 if isinstance(q, NearbyContrast) else 0.0)) * v
    return {"rho": -math.log(a) / eta if a > 0 else math.nan, "a": a, "v": v}


def _sd(q: ContrastLaw) -> float:
    if isinstance(q, StationaryContrast):
        assert isinstance(q.process, OrnsteinUhlenbeck)
        return q.process.rho**-0.5
    assert isinstance(q, (GaussianContrast, NearbyContrast))
    return q.sd


@dataclass(frozen=True)
class KernelEstimate:
    """p(z, z′) = q(z′) e^{u(z, z′)} of a classifier's logit u: h q/(1 − h) in log space, not normalised (eq. 2.12)."""

    logit: Callable[[np.ndarray, np.ndarray], np.ndarray]
    q: ContrastLaw

    def log_density(self, z: np.ndarray, later: np.ndarray) -> Float[np.ndarray, "*lead"]:
        return self.logit(z, later) + self.q.log_pdf(later, z)

    def on_grid(self, x: Float[np.ndarray, " cell"], width: float) -> Float[np.ndarray, "cell cell"]:
        """Masses of cells: row z, column z′; rows sum to the mass of the estimate, not to 1."""
        return np.exp(self._logs(x)) * width

    def normalised(self, x: Float[np.ndarray, " cell"], width: float) -> Float[np.ndarray, "cell cell"]:
        """The same with rows that sum to 1; a logit that is huge somewhere does no harm."""
        logs = self._logs(x)
        raw = np.exp(logs - logs.max(1, keepdims=True))
        return raw / raw.sum(1, keepdims=True)

    def _logs(self, x: np.ndarray) -> Float[np.ndarray, "cell cell"]:
        z, later = (np.broadcast_to(each[..., None], (len(x), len(x), 1)) for each in (x[:, None], x[None, :]))
        return self.log_density(z, later)
