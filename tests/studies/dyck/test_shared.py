"""What the studies of Dyck languages share."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sandlab.learning.experiment import Experiment
from sandlab.learning.objectives import CrossEntropy
from sandlab.learning.penalties import InvariantLogits, Penalised
from sandlab.studies.claims import NotMeasured
from sandlab.studies.dyck import _shared as shared
from sandlab.studies.dyck._shared import jackknife
from sandlab.worlds.dyck.language import Dyck
from sandlab.worlds.dyck.nested_prefix import NestedPrefix


def test_the_probe_word_nests_each_of_two_types_to_the_largest_depth() -> None:
    assert shared.probe_word(2, 4)[0].tolist() == [4] + [0] * 4 + [1] * 4 + [2] * 4 + [3] * 4
    assert bool(torch.as_tensor(Dyck(length=16, words="complete").accepts(shared.probe_word(2, 4)[0, 1:])))


def test_the_penalty_asks_for_logits_that_nested_pairs_do_not_change() -> None:
    world = Dyck(3, 2, words="bounded")
    plain = Experiment(world, shared.minimal(world), shared.training(10))
    objective = shared.contrastive(plain, 0.2).training.objective
    assert objective == Penalised(CrossEntropy(), (InvariantLogits(NestedPrefix(3, 2), 0.2),))


def test_linear_positions_and_the_norm_of_the_theory_are_options_of_the_transformer() -> None:
    plain, linear = (shared.transformer(shared.BOUNDED, linear=linear) for linear in (False, True))
    assert (plain.positions, plain.readout_bias, plain.token_std) == ("none", False, None)
    assert (linear.positions, linear.position_slope, linear.readout_bias) == ("learned-linear", 1 / 6000, True)
    theory = shared.transformer(shared.BOUNDED, norm="attention-branch")
    assert theory.norm == "attention-branch" and theory.token_std == 7**-0.5


def test_pseudo_values_have_the_mean_and_the_jackknife_spread_of_the_variation() -> None:
    points = np.random.default_rng(0).normal(size=(6, 1, 4))
    distances = ((points[:, None] - points[None]) ** 2).sum((-1, -2))
    values = jackknife(np.asarray, distances.sum(1) / 5)
    keep = [[other for other in range(6) if other != seed] for seed in range(6)]
    without = [distances[np.ix_(rest, rest)].sum() / 20 for rest in keep]
    assert np.allclose(values, 6 * distances.sum() / 30 - 5 * np.array(without))
    with pytest.raises(NotMeasured, match="three"):
        jackknife(np.asarray, np.ones(2))
