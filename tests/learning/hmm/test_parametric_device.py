"""Fits on a device: the same as the ordinary ones, a few restarts at a time."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sandlab.learning.hmm import _parametric_device
from sandlab.learning.hmm._parametric_device import fit_parametric_on
from sandlab.learning.hmm.parametric import _Problem, fit_parametric
from sandlab.worlds.hmm.models import HMM


def test_parts_of_the_restarts_give_what_all_give(monkeypatch: pytest.MonkeyPatch) -> None:
    targets, starts = HMM().predictor("2x3|1").ravel(), np.random.default_rng(0).normal(size=(5, 21))
    whole = fit_parametric(("2x3|1",), targets, 4, 3, starts=starts, evaluations=20)
    monkeypatch.setattr(_parametric_device, "LARGEST", 2 * targets.size * starts.shape[1])
    parts = fit_parametric_on("cpu", ("2x3|1",), targets, 4, 3, starts=starts, evaluations=20)
    np.testing.assert_allclose([each.loss for each in parts], [each.loss for each in whole], rtol=1e-6, atol=1e-20)


@pytest.mark.parametrize("task", ["2|1", "1|3", "2x3|1", "1x3|2", "1x2|3"])
def test_nothing_is_made_on_another_device(task: str) -> None:
    entries = 4 ** (3 if "x" in task else 2)
    with torch.device("meta"):  # a device without numbers: mixing it with another is an error
        problem = _Problem((task,), torch.empty(entries, dtype=torch.float64), 4, 3, None)
        theta = torch.empty(5, 21, dtype=torch.float64)
        assert problem.jacobian(theta).shape == (5, entries, 21)
        assert problem.residuals(theta).device.type == "meta"
