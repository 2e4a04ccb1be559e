"""Distances of predictions to known estimators."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from scipy import stats
from torch import nn

from sandlab.errors import BadInput
from sandlab.lenses import distance_by_position, distances_to_estimators, divergence
from sandlab.random import rng
from sandlab.worlds.base import Batch, World


@dataclass(frozen=True)
class Toy(World):
    """Uniform tokens; the oracle depends on the current token; the last position is not counted."""

    def sample(self, n, *, rng):
        tokens = torch.randint(3, (n, 4), generator=rng)
        return Batch(tokens, tokens, torch.tensor([True, True, True, False]).expand(n, 4))

    def oracle(self, batch):
        table = torch.tensor([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]], dtype=torch.float64)
        return table[batch.inputs].log()

    def baselines(self):
        return {"uniform": lambda batch: torch.full((*batch.inputs.shape, 3), 1 / 3, dtype=torch.float64).log()}


class Table(nn.Module):
    def __init__(self, rows):
        super().__init__()
        self.rows = torch.tensor(rows, dtype=torch.float64)

    def forward(self, tokens):
        return self.rows[tokens].log()


def test_divergences_equal_scipys():
    p, q = np.random.default_rng(0).dirichlet(np.ones(5), 2)
    p_log, q_log = torch.tensor(p).log(), torch.tensor(q).log()
    assert float(divergence(p_log, q_log, "kl")) == pytest.approx(stats.entropy(p, q))
    assert float(divergence(p_log, q_log, "reverse-kl")) == pytest.approx(stats.entropy(q, p))
    assert float(divergence(p_log, q_log, "total-variation")) == pytest.approx(0.5 * np.abs(p - q).sum())


def test_a_class_that_the_truth_excludes_costs_nothing():
    truth = torch.tensor([1.0, 0.0], dtype=torch.float64).log()
    assert float(divergence(truth, torch.tensor([0.5, 0.5]).double().log())) == pytest.approx(np.log(2))


def test_the_oracles_own_table_is_at_distance_zero_from_the_oracle():
    world = Toy()
    batch = world.sample(50, rng=rng(0))
    model = Table([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.3, 0.3, 0.4]])
    found = distance_by_position(model, world, batch)
    assert found[:3].abs().max() < 1e-12
    assert found[3].isnan(), "the last position is never counted"


def test_distance_by_position_is_the_mean_over_examples_of_the_divergence():
    world = Toy()
    batch = world.sample(40, rng=rng(1))
    model = Table([[0.2, 0.2, 0.6], [0.5, 0.4, 0.1], [0.3, 0.6, 0.1]])
    found = distance_by_position(model, world, batch, kind="total-variation")
    table = world.oracle(Batch(torch.arange(3), torch.arange(3), torch.ones(3).bool())).exp().numpy()
    by_token = 0.5 * np.abs(table - model.rows.numpy()).sum(-1)
    expected = by_token[batch.inputs.numpy()].mean(0)
    np.testing.assert_allclose(found[:3], expected[:3])
    overall = distances_to_estimators(model, world, batch, kind="total-variation")
    assert float(overall["oracle"]) == pytest.approx(expected[:3].mean())


def test_the_nearest_estimator_of_a_uniform_model_is_uniform():
    world = Toy()
    found = distances_to_estimators(Table([[1.0, 1.0, 1.0]] * 3), world, world.sample(20, rng=rng(0)))
    assert min(found, key=lambda name: float(found[name])) == "uniform"
    assert float(found["uniform"]) == pytest.approx(0, abs=1e-12)


def test_an_unknown_estimator_is_refused_with_the_nearest_name():
    world = Toy()
    with pytest.raises(BadInput, match="did you mean 'uniform'"):
        distance_by_position(Table([[1.0] * 3] * 3), world, world.sample(2, rng=rng(0)), to="uniforn")
