"""The fit of polynomial logits on a GPU: features and predictions stay there, BFGS sees numbers only."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Float
from scipy.optimize import minimize
from torch import Tensor

from sandlab.errors import require
from sandlab.learning.diffusions.classifiers import EvenLogit, LogitClassifier, PolynomialLogit, fit_logit
from sandlab.worlds.diffusions.pairs import Pairs

__all__ = ["fit_logit_on"]


def fit_logit_on(
    device: str, pairs: Pairs, features: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> LogitClassifier:
    """`fit_logit` by the squared loss, in double precision: on a CPU as it is, on a GPU for millions of pairs."""
    return fit_logit(pairs, features) if device == "cpu" else fit_there(device, pairs, features)


def fit_there(device: str, pairs: Pairs, features: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> LogitClassifier:
    """Minimise (h − y)² from θ = 0 by BFGS; loss and gradient are computed on the device."""
    rows = feature_rows(features, *(torch.from_numpy(each).to(device) for each in (pairs.x, pairs.later)))
    y = torch.from_numpy(pairs.y.astype(np.float64)).to(device)

    def value(theta: np.ndarray) -> tuple[float, np.ndarray]:
        h = torch.sigmoid(torch.from_numpy(theta).to(device) @ rows)
        gap = h - y
        slope = 2 * gap * h * (1 - h)
        found = torch.cat([gap.square().mean().view(1), rows @ slope / len(y)]).cpu().numpy()
        return float(found[0]), found[1:]

    found = minimize(value, np.zeros(len(rows)), jac=True, method="BFGS", options={"gtol": 1e-9, "maxiter": 500})
    return LogitClassifier(features, found.x, float(found.fun))


def feature_rows(
    features: Callable[[np.ndarray, np.ndarray], np.ndarray], x: Float[Tensor, "m d"], later: Float[Tensor, "m d"]
) -> Float[Tensor, "feature m"]:
    """The features of `EvenLogit` or `PolynomialLogit` as tensors, in the same order, one row for each."""
    known = isinstance(features, EvenLogit | PolynomialLogit)
    require(known, "features", features, "EvenLogit or PolynomialLogit")
    if isinstance(features, EvenLogit):
        z, w = x[:, 0], later[:, 0]
        return torch.stack([torch.ones_like(z), z**2, w**2, z * w])
    assert isinstance(features, PolynomialLogit)
    both, sizes = torch.cat([x, later], 1).T, range(features.degree + 1)
    chosen = [each for size in sizes for each in itertools.combinations_with_replacement(range(len(both)), size)]
    rows = torch.ones(len(chosen), len(x), dtype=x.dtype, device=x.device)
    for row, monomial in zip(rows, chosen):
        for place in monomial:
            row.mul_(both[place])
    return rows
