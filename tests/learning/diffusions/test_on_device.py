"""Fits computed on a device are those of `fit_logit`."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sandlab.learning.diffusions.classifiers import EvenLogit, PolynomialLogit, fit_logit
from sandlab.learning.diffusions.on_device import feature_rows, fit_logit_on, fit_there
from sandlab.worlds.diffusions.contrast import GaussianContrast
from sandlab.worlds.diffusions.pairs import ContrastivePairs
from sandlab.worlds.diffusions.potentials import Quadratic
from sandlab.worlds.diffusions.processes import OrnsteinUhlenbeck


@pytest.mark.parametrize(("d", "features"), [(1, EvenLogit()), (1, PolynomialLogit(1, 4)), (2, PolynomialLogit(2))])
def test_the_same_minimum(d: int, features: EvenLogit | PolynomialLogit) -> None:
    process = OrnsteinUhlenbeck(Quadratic(tuple(map(tuple, np.eye(d).tolist()))))
    pairs = ContrastivePairs(process, GaussianContrast(0.0, 1.5), 0.5, "single").pairs(2000, np.random.default_rng(0))
    rows = feature_rows(features, torch.from_numpy(pairs.x), torch.from_numpy(pairs.later))
    np.testing.assert_allclose(rows.T.numpy(), features(pairs.x, pairs.later), atol=1e-12)
    here, there = fit_logit(pairs, features), fit_there("cpu", pairs, features)
    np.testing.assert_allclose(there.theta, here.theta, atol=1e-5)
    assert there.loss == pytest.approx(here.loss, abs=1e-12)
    assert fit_logit_on("cpu", pairs, features).loss == here.loss
