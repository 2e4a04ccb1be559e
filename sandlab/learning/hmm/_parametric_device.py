"""Least squares of many restarts on a GPU, a part of them at a time."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float

from sandlab.learning.hmm.parametric import ParametricFit, _levenberg_marquardt, _Problem, _tensor

LARGEST = 200_000_000
"""Entries of the Jacobians that are held at once."""


def fit_parametric_on(
    device: str,
    tasks: Sequence[str],
    targets: Float[np.ndarray, " entries"],
    d: int,
    k: int,
    *,
    starts: Float[np.ndarray, "restart parameters"],
    evaluations: int = 120,
) -> list[ParametricFit]:
    """`fit_parametric` of a discrete HMM, computed on a device: restarts are independent of each other."""
    problem = _Problem(tuple(tasks), _tensor(targets, device), d, k, None)
    at_once = max(1, LARGEST // (targets.size * starts.shape[1]))
    with torch.device(device):  # what the fit makes for itself (dampings, unit matrices) is made there
        parts = [_levenberg_marquardt(problem, part, evaluations) for part in _tensor(starts, device).split(at_once)]
    return [fit for theta, losses in parts for fit in problem.fits(theta, losses)]
