"""Linear probes: what a linear map can read off an activation, on examples the probe has not seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from sandlab.errors import number, require
from sandlab.lenses.predictions import evaluating
from sandlab.models.hooks import record
from sandlab.registry import register

__all__ = ["FittedProbe", "linear_probe", "probe_activation"]


@dataclass(frozen=True)
class FittedProbe:
    """A fitted probe.

    train, test  accuracy (classes) or R² (numbers) on the examples it was fitted on and on the others
    chance       score on the test part of the best constant: the most frequent training class, or 0 for R²
    weights      (class or output, feature) and bias of the map
    """

    train: float
    test: float
    chance: float
    weights: np.ndarray
    bias: np.ndarray


@register("lenses")
def linear_probe(
    features: Float[Tensor, "sample feature"],
    labels: Tensor,
    *,
    rng: torch.Generator,
    groups: Tensor | None = None,
    test_share: float = 0.3,
    strength: float = 1.0,
) -> FittedProbe:
    """Fit labels from features by a regularised linear map and score it on held-out samples (scikit-learn).

    labels    whole numbers: logistic regression, accuracy; real numbers (one or several columns): ridge, R²
    groups    samples of one group (positions of one sequence) go to the same side of the split
    strength  weight of the squared norm of the map
    """
    number("test_share", test_share, low=0.01, high=0.99)
    require(len(features) == len(labels), "labels", len(labels), f"as many as there are samples ({len(features)})")
    groups = torch.arange(len(features)) if groups is None else groups.cpu()
    tested = _held_out(groups, test_share, rng)
    x, y = features.detach().double().cpu().numpy(), labels.detach().cpu().numpy()
    fit = _fit_classes if not np.issubdtype(y.dtype, np.floating) else _fit_numbers
    return fit(x[~tested], y[~tested], x[tested], y[tested], strength)


def probe_activation(
    model: nn.Module,
    inputs: Tensor,
    activation: str,
    labels: Tensor,
    *,
    rng: torch.Generator,
    test_share: float = 0.3,
    strength: float = 1.0,
) -> FittedProbe:
    """`linear_probe` from one named activation (example, time, feature) to labels (example, time); −1 is left out.

    Whole sequences are held out, not positions: neighbouring positions are correlated.
    """
    with evaluating(model), torch.no_grad(), record(model, activation) as cache:
        model(inputs)
    value = cache[activation]
    require(value.ndim == 3, "activation", tuple(value.shape), "of shape (example, time, feature)")
    groups = torch.arange(value.shape[0]).unsqueeze(-1).expand(value.shape[:2])
    kept = labels >= 0 if not labels.is_floating_point() else ~labels.isnan()
    kept = kept.cpu()
    return linear_probe(
        value.cpu()[kept], labels.cpu()[kept], rng=rng, groups=groups[kept], test_share=test_share, strength=strength
    )


def _held_out(groups: Tensor, share: float, rng: torch.Generator) -> np.ndarray:
    distinct, index = groups.unique(return_inverse=True)
    tests = max(1, round(share * len(distinct)))
    require(tests < len(distinct), "groups", len(distinct), "at least 2, so that one can be held out")
    order = torch.randperm(len(distinct), generator=rng, device=rng.device).cpu()
    chosen = torch.zeros(len(distinct), dtype=torch.bool)
    chosen[order[:tests]] = True
    held_out: np.ndarray = chosen[index].numpy()
    return held_out


def _fit_classes(x: np.ndarray, y: np.ndarray, x_test: np.ndarray, y_test: np.ndarray, strength: float) -> FittedProbe:
    from sklearn.linear_model import LogisticRegression

    values, counts = np.unique(y, return_counts=True)
    require(len(values) >= 2, "labels", values.tolist(), "of at least two classes")
    probe = LogisticRegression(C=1 / strength, max_iter=2000).fit(x, y)
    chance = float((y_test == values[counts.argmax()]).mean())
    return FittedProbe(probe.score(x, y), probe.score(x_test, y_test), chance, probe.coef_, probe.intercept_)


def _fit_numbers(x: np.ndarray, y: np.ndarray, x_test: np.ndarray, y_test: np.ndarray, strength: float) -> FittedProbe:
    from sklearn.linear_model import Ridge

    probe = Ridge(alpha=strength).fit(x, y)
    return FittedProbe(
        probe.score(x, y), probe.score(x_test, y_test), 0.0, np.atleast_2d(probe.coef_), np.atleast_1d(probe.intercept_)
    )
