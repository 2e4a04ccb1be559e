"""From a network's answers to tables and parameters: exact networks give exact tables."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from sandlab.learning.hmm.networks import (
    conditionals_table,
    joint_head_table,
    network_predictor,
    read_network_ghmm,
    separate_heads_table,
    vertex_columns,
)
from sandlab.learning.hmm.recovery import parameter_error
from sandlab.worlds.base import Batch
from sandlab.worlds.hmm.masked import MaskedPrediction, MaskedStrings
from sandlab.worlds.hmm.models import HMM, GaussianHMM


class Optimal(nn.Module):
    """A world's oracle in the place of a network."""

    def __init__(self, world: MaskedStrings) -> None:
        super().__init__()
        self.world, self.unused = world, nn.Parameter(torch.zeros(1))

    def forward(self, inputs: Tensor) -> Tensor:
        hidden = [tuple(np.flatnonzero(row == self.world.model.vocab).tolist()) for row in inputs.numpy()]
        chosen = torch.tensor([self.world.patterns.index(each) for each in hidden])
        return self.world.oracle(Batch(inputs, inputs, inputs >= 0, {"pattern": chosen}))


def test_the_pair_is_read_off_the_joint_head_and_off_the_conditionals() -> None:
    truth = HMM().predictor("2x3|1")
    np.testing.assert_allclose(joint_head_table(Optimal(MaskedStrings(HMM(), 2, True)), 4), truth, atol=1e-12)
    np.testing.assert_allclose(conditionals_table(Optimal(MaskedStrings(HMM(), 1)), 4), truth, atol=1e-12)
    apart = separate_heads_table(Optimal(MaskedStrings(HMM(), 2)), 4)
    np.testing.assert_allclose(apart.sum(2), truth.sum(2), atol=1e-12)
    assert np.abs(apart - truth).max() > 0.04


def test_a_network_s_predictor_has_one_axis_per_target() -> None:
    world = MaskedPrediction(GaussianHMM(), "2x3|1")
    network = nn.Sequential(nn.Linear(3, 9), nn.Unflatten(1, (1, 9)))
    assert network_predictor(network, world)(np.zeros((5, 3))).shape == (5, 3, 3)


def test_corners_of_a_simplex_are_found_among_points_of_its_inside() -> None:
    rng = np.random.default_rng(0)
    corners = rng.normal(size=(4, 3))
    shares = np.concatenate([rng.dirichlet(np.ones(3), 200), np.eye(3)])
    found = vertex_columns(shares @ corners.T, 3)
    np.testing.assert_allclose(np.sort(found, 1), np.sort(corners, 1), atol=1e-12)


def test_an_exact_predictor_is_read_off_within_reach() -> None:
    ghmm = GaussianHMM()
    found = read_network_ghmm(lambda x: ghmm.predictor("2|1", x), 3, 3, reach=60.0)
    (kept,) = [each for each in found if each.accepted]
    assert parameter_error(ghmm, kept.means, kept.transitions).largest < 1e-3
