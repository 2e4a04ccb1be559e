"""The gap of trained networks: quadrature against closed forms, claims on made-up results, a small run."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from claim_cases import check
from stand_in import LAB
from torch import Tensor, nn

import sandlab as sl
from sandlab.learning.experiment import Training
from sandlab.learning.objectives import MemberBatch
from sandlab.lenses.diffusions.kernels import ou_optimal_risk
from sandlab.studies.diffusions import network_gap
from sandlab.worlds.diffusions.contrast import StationaryContrast

NOISE = np.random.default_rng(0)


class Optimal(nn.Module):
    """The logit log p*/π of the Ornstein–Uhlenbeck process, from x and the displacement."""

    def __init__(self, eta: float) -> None:
        super().__init__()
        self.eta = eta

    def forward(self, x: Tensor) -> Tensor:
        z, a = x[:, 0].double(), math.exp(-self.eta)
        later = z + x[:, 1].double() * math.sqrt(2 * self.eta)
        logit = -((later - a * z) ** 2) / (2 * (1 - a**2)) - 0.5 * math.log(1 - a**2) + later**2 / 2
        return torch.stack([torch.zeros_like(logit), logit], -1).unsqueeze(1)


@pytest.mark.parametrize("eta", [0.01, 0.1, 3.0])
def test_the_optimal_classifier_has_the_smallest_risk_and_the_true_kernel(eta: float) -> None:
    risk, kl = network_gap.Quadrature.of(eta, "cpu").measure(Optimal(eta))
    assert risk == pytest.approx(ou_optimal_risk(StationaryContrast(), eta), abs=1e-6)
    assert kl == pytest.approx(0.0, abs=1e-6)


def test_every_member_draws_from_its_own_path() -> None:
    labels = torch.arange(3)[:, None].expand(3, 5)
    inputs = labels.unsqueeze(-1).expand(3, 5, 2).float()
    batch = MemberBatch.split(network_gap.PathPairs(inputs, labels).sample(12, rng=sl.rng(0)), 3)
    assert torch.equal(batch.targets[:, :, 0], torch.arange(3)[:, None].expand(3, 4))
    assert torch.equal(batch.inputs[..., 0].long(), batch.targets[:, :, 0])


def test_claims_on_made_up_gaps() -> None:
    settings = network_gap.QUICK
    times, steps = np.array(settings.times)[:, None, None], np.array([1, 1.1, 3.0, 6.0])[:, None]
    level = NOISE.uniform(0.98, 1.02, (3, 4, 8))
    none, rest = np.zeros((3, 4, 8)), (np.ones((3, 4, 8)), np.full(4, 0.2))
    good = network_gap.Results(settings.times, settings.etas, none, times**-0.7 * steps * level, *rest)
    flat = np.array([1, 2.0, 3.0, 3.0])[:, None] * level
    check(network_gap.study, good, replace(good, population=flat))


def test_a_small_run_from_end_to_end() -> None:
    how = Training(steps=2, batch_size=4)
    small = replace(network_gap.QUICK, times=(20.0, 40.0), hidden=(4,), training=how, seeds=4)
    for settings in (small, replace(small, independent=True)):
        found = network_gap.study.run(settings, LAB, "quick").results
        assert found.gap.shape == (2, 4, 4) and np.isfinite(found.kl).all()
