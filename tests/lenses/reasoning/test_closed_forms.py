"""Closed forms of the theory against automatic differentiation, enumeration and dense forward passes."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch

from sandlab import rng
from sandlab.circuits.reasoning.ideal import ideal_features, ideal_lego_transformer
from sandlab.learning.reasoning.algorithms import enumerate_lego, next_clause_loss
from sandlab.learning.reasoning.reduced import ReducedLego, attention_left_over, attention_masses, sample_chains
from sandlab.lenses.reasoning.events import collision_rates, confusion_events, counted_confusions
from sandlab.lenses.reasoning.horizon import (
    chain_logits,
    dilution_bounds,
    length_horizon,
    measured_horizon,
    solved_chains,
)
from sandlab.lenses.reasoning.tensor_power import noisy_power_growth, power_bounds, winner_takes_all
from sandlab.lenses.reasoning.value_oracle import attention_gradient, ffn_gradient, lambda_oracle, logit_floor
from sandlab.models.base import seeded
from sandlab.models.hooks import record
from sandlab.models.reasoning.theory import LegoTheoryTransformer
from sandlab.worlds.reasoning.actions import named_action
from sandlab.worlds.reasoning.lego import Lego


def random_model(world: Lego, clip: float = 50.0, variant: str = "zero-neg") -> LegoTheoryTransformer:
    with seeded(1):
        model = LegoTheoryTransformer(
            vocab=world.vocab, neurons=3, clip=clip, threshold=0.6, bias=0.1, init_std=0.7, variant=variant
        )
        torch.nn.init.normal_(model.q43, std=0.5)
        torch.nn.init.normal_(model.q44, std=0.5)
    return model.double()


@pytest.mark.parametrize("clip", [50.0, 0.8])
@pytest.mark.parametrize("variant", ["zero-neg", "paper"])
def test_the_gradient_of_the_neurons_is_the_printed_one(clip, variant):
    world = Lego("S3", variables=6, length=3, predict_blanks=True)
    model, batch = random_model(world, clip, variant), world.sample(40, rng=rng(0))
    (gradient,) = torch.autograd.grad(next_clause_loss(model, batch, 3), model.weight)
    assert torch.allclose(ffn_gradient(model, batch, 3), -gradient, atol=1e-12)


@pytest.mark.parametrize("slot", [4, 5])
def test_the_gradient_of_attention_is_the_printed_one(slot):
    world = Lego("C4", variables=6, length=3, predict_blanks=True)
    model, batch = random_model(world), world.sample(40, rng=rng(0))
    wanted = torch.autograd.grad(next_clause_loss(model, batch, 3, (slot,)), [model.q43, model.q44])
    for found, gradient in zip(attention_gradient(model, batch, 3, slot), wanted):
        assert torch.allclose(found, -gradient, atol=1e-12)


def test_off_diagonal_gradients_are_smaller_by_the_number_of_variables():
    ratios = []
    for variables in (4, 6):
        world = Lego("C3", variables=variables, length=2, predict_blanks=True)
        model = ideal_lego_transformer(world, 0.3)
        batch = enumerate_lego(world)
        for found in attention_gradient(model, batch, 2):
            square = found[:variables, :variables]
            assert float(square.diag().std()) < 1e-12
            off = square - square.diag().diag()
            ratios.append(float(off.abs().max() / square.diag().abs().max()) * (variables - 1))
    assert max(ratios) < 2.0


@pytest.mark.parametrize("name", ["C6", "S3", "S4"])
def test_the_lambda_oracle_equals_a_dense_pass_for_any_attention(name):
    action, draws = named_action(name), rng(3)
    chains = sample_chains(action, 5, 30, rng=draws)
    attention = torch.rand(30, 9, generator=draws, dtype=torch.float64)
    attention /= attention.sum(1, keepdim=True)
    features = ideal_features(action, 9.0)
    dense = torch.einsum("nk,njrk->njr", attention[:, :5], features.actions[:, :, chains.actions].permute(2, 0, 1, 3))
    dense += torch.einsum(
        "nk,njrk->njr", attention[:, 5:], features.values[:, :, chains.values[:, :4]].permute(2, 0, 1, 3)
    )
    found = lambda_oracle(action, 9.0, chains.actions, chains.values[:, :4], attention, bias=0.2)
    assert torch.allclose(found, dense + 0.2, atol=1e-10)


def test_uniform_attention_ties_the_right_and_the_spurious_pair_at_a_third_of_the_clip():
    first, second, start = torch.tensor([[1, 4]]), torch.tensor([[2]]), 6
    found = lambda_oracle("C6", 3.0, first, second, torch.full((1, 3), 1 / 3, dtype=torch.float64))[0]
    right, spurious = (1 + 2) % start, (4 + 2) % start
    assert float(found[right, 2]) == pytest.approx(1.0) == pytest.approx(float(found[spurious, 2]))
    assert float(found[right, 0]) <= 1e-12


def test_reduced_logits_are_those_of_the_dense_ideal_network():
    world = Lego("S3", variables=9, length=6, predict_blanks=True)
    batch = world.sample(20, rng=rng(4))
    clip = 4 * math.log(world.vocab)
    model = ideal_lego_transformer(world, 1.7, 1.1, clip=clip)
    logits = model(batch.inputs).unflatten(1, (-1, 5))[:, -6:, 4, world.first_value : world.blank]
    reduced = ReducedLego("S3", vocab=world.vocab)
    chains = sample_chains("S3", 6, 20, rng=rng(0))
    chains = replace(chains, actions=batch.truth["actions"], values=batch.truth["values"])
    found = chain_logits(reduced, chains, 1.7, 1.1)
    assert torch.allclose(found, logits, atol=1e-9)
    assert torch.allclose(reduced.logits(chains, 4, 1.7, 1.1), logits[:, 3], atol=1e-9)


def test_attention_masses_are_those_of_the_dense_network_and_dilution_bounds_hold():
    world = Lego("C4", variables=12, length=8)
    model, batch = ideal_lego_transformer(world, 2.0, 1.5), world.sample(2, rng=rng(0))
    with record(model, "pattern") as cache:
        model(batch.inputs)
    for step in range(1, 9):
        row = cache["pattern"][0, 8 + step - 1]
        predicate, answer, other = attention_masses(8, step, 2.0, 1.5)
        assert float(row[step - 1]) == pytest.approx(predicate, abs=1e-12)
        assert float(row[8 + step - 1]) == pytest.approx(answer, abs=1e-12)
        assert 1 - predicate - answer == pytest.approx(attention_left_over(8, step, 2.0, 1.5), abs=1e-12)
        assert other == pytest.approx(float(row[0 if step > 1 else 1]), abs=1e-12)
    for length in (2, 4, 16, 64):
        for beta in (0.0, 1.0, 4.0):
            found = dilution_bounds(length, beta, beta)
            assert found["doubling"] <= 2 and found["any step"] <= 4 and found["slack"] >= -1e-12


@pytest.mark.parametrize("points", [3, 4, 5])
def test_event_probabilities_are_those_of_the_enumeration(points):
    formula, counted = confusion_events(points), counted_confusions(f"S{points}")
    assert formula == pytest.approx(counted, abs=1e-12) and sum(formula.values()) == pytest.approx(1)


def test_event_probabilities_of_five_points_have_the_known_digits():
    assert list(confusion_events(5).values()) == pytest.approx([0.52, 0.12, 0.16, 0.04, 0.12, 0.04])


def test_collision_rates_behave_as_counts_of_balls_in_bins():
    rates = collision_rates("S4", 8, rng=rng(0))
    assert rates.repeated == pytest.approx(1 / 4, abs=0.03) and rates.share == pytest.approx(2 / 8)
    # At L = 2 one other predicate may agree, U L = 1 allows it.
    assert collision_rates("S5", 2, rng=rng(0)).crowded == 0.0
    exact = 1 - sum(math.comb(7, k) * 0.25**k * 0.75 ** (7 - k) for k in range(3))
    assert rates.crowded == pytest.approx(exact, abs=0.03)


TABLE = {
    ("C6", 3.0): (1, 1, 1, 0, 0, 0),
    ("C6", 4.0): (1, 1, 1, 1, 0.04, 0),
    ("C6", 5.0): (1,) * 6,
    ("S3", 3.0): (1, 1, 1, 0.78, 0, 0),
    ("S3", 4.0): (1, 1, 1, 1, 1, 0),
    ("S3", 5.0): (1,) * 6,
    ("S4", 3.0): (1, 1, 1, 0.02, 0, 0),
    ("S4", 4.0): (1, 1, 1, 1, 1, 0),
    ("S4", 5.0): (1,) * 6,
    ("S5", 3.0): (1, 1, 1, 0, 0, 0),
    ("S5", 4.0): (1, 1, 1, 1, 0.8, 0),
    ("S5", 5.0): (1,) * 6,
}


@pytest.mark.parametrize("case", TABLE, ids=str)
def test_the_table_of_horizons_is_reproduced(case):
    name, beta = case
    model = ReducedLego(name, vocab=400)
    for length, wanted in zip((5, 10, 20, 40, 80, 160), TABLE[case]):
        chains = sample_chains(name, length, 100, rng=rng(5, "table", length))
        found = float(solved_chains(model, chains, beta, beta).double().mean())
        assert found == pytest.approx(wanted, abs=0.02 if wanted in (0, 1) else 0.15)


def test_the_measured_horizon_lies_near_the_mean_field_one():
    for beta in (3.0, 5.0):
        found = measured_horizon(ReducedLego("C6", vocab=400), beta, chains=60)
        assert 0.5 < found / length_horizon("C6", beta) < 1.3


@pytest.mark.parametrize(("power", "start"), [(4, 0.05), (4, 0.1), (6, 0.2), (6, 0.3)])
def test_growth_of_the_power_method_lies_between_its_bounds(power, start):
    found = power_bounds(start, 4 * start, power, 1e-4)
    assert found.low <= found.measured <= found.high
    assert found.measured == pytest.approx(found.limit, rel=0.1)


def test_the_larger_start_wins_and_the_rival_stays_small():
    assert winner_takes_all(0.1, 0.06, 2.0, 4, 1e-3) < 0.12
    assert winner_takes_all(0.1, 0.08, 2.0, 4, 1e-3) > 0.5
    assert noisy_power_growth(0.1, 0.5, 4, 1e-3, 0.02) < noisy_power_growth(0.1, 0.5, 4, 1e-3, 0.0)


def test_the_least_distance_of_a_probability_from_one():
    logits = torch.zeros(200, dtype=torch.float64)
    logits[3] = 9.0
    assert logit_floor(200, 9.0) == pytest.approx(1 - float(logits.softmax(0)[3]), rel=1e-9)
    assert np.isclose(logit_floor(200, 0.0), 199 / 200)
