"""The learning rate falls on plateaus, as torch's own scheduler would have it."""

from __future__ import annotations

import pytest
import torch

import sandlab as sl
from sandlab.errors import BadInput
from sandlab.learning.plateau import Plateau
from sandlab.worlds.automata.counters import Cyclic


@pytest.mark.parametrize("patience", [0, 1, 3])
def test_rates_are_those_of_torchs_scheduler(patience):
    values = [1.0, 0.9, 0.95, 0.9, 0.92, 0.8, 0.81, 0.85, 0.9, 0.79999, 0.7, 0.7, 0.7, 0.7, 0.7, 0.7, 0.6]
    plateau = Plateau(0.1, patience=patience, factor=0.5)
    plateau.optimizer([torch.zeros(1, requires_grad=True)])
    reference = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(reference, factor=0.5, patience=patience)
    for step, value in enumerate(values):
        plateau(step, None, {"loss": value})
        scheduler.step(value)
        assert plateau.rates[-1][0] == reference.param_groups[0]["lr"]


def test_each_member_has_its_own_rate_and_a_lower_one_moves_it_less():
    population = sl.learning.Population(lambda seed: sl.models.LSTM(vocab=2, width=4), seeds=[0, 0])
    plateau = Plateau(0.01, patience=0)

    def one_member_stands_still(model):
        step = len(plateau.rates)
        return {"loss": torch.tensor([1.0 / (1 + step), 1.0])}

    sl.learning.train(
        population,
        Cyclic(length=6),
        steps=6,
        batch_size=4,
        rng=sl.rng(0),
        optimizer=plateau.optimizer,
        evaluate=one_member_stands_still,
        every=1,
        callbacks=[plateau],
    )
    assert plateau.rates[-1].tolist() == [1.0, 0.5**6]
    start = sl.learning.Population(lambda seed: sl.models.LSTM(vocab=2, width=4), seeds=[0, 0])
    moved = (population.rows[0] - start.rows[0]).detach().norm(dim=1)
    assert moved[1] < 0.7 * moved[0]


def test_a_metric_that_is_not_evaluated_is_refused():
    with pytest.raises(BadInput, match="accuracy"):
        Plateau(0.1, patience=1, metric="accuracy")(0, None, {"loss": 1.0})
