"""What the studies of this chapter share."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

SOURCE = "Liu 2024 (thesis, CMU-ML-24-110)"


def pseudo_ratios(statistic: Callable[[np.ndarray], float], sample: np.ndarray) -> np.ndarray:
    """Jackknife of a positive statistic on the log scale: exp(n·log θ − (n − 1)·log θ without seed i), for each seed i.

    Makes one value per seed (the last axis of `sample`) of a statistic of all seeds, such as a ratio of standard
    deviations; their geometric mean is the statistic with its bias of order 1/n removed, their spread gives its error.
    """
    n = sample.shape[-1]
    whole = np.log(statistic(sample))
    without = [np.log(statistic(np.delete(sample, index, -1))) for index in range(n)]
    return np.exp(np.clip([n * whole - (n - 1) * each for each in without], -300, 300))
