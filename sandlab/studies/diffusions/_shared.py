"""What the studies of this chapter share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

SOURCE = "Liu 2024 (thesis, CMU-ML-24-110)"


def pseudo_values(statistic: Callable[[np.ndarray], float], sample: np.ndarray) -> np.ndarray:
    """Jackknife: n·θ − (n − 1)·θ without seed i, for each seed i (the last axis of `sample`).

    Makes one value per seed of a statistic of all seeds, such as a ratio of standard deviations; the mean of the
    values is the statistic with its bias of order 1/n removed, and their spread gives its error.
    """
    n = sample.shape[-1]
    whole = statistic(sample)
    return np.array([n * whole - (n - 1) * statistic(np.delete(sample, index, -1)) for index in range(n)])
