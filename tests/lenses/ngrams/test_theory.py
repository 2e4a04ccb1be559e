"""Near-stationarity of sub-n-grams: gradients by autograd, by enumeration and in closed form."""

from __future__ import annotations

import itertools
import math

import pytest
import torch

from sandlab import BadInput, rng
from sandlab.circuits.markov.suffix_tables import SuffixTable, suffix_table
from sandlab.circuits.ngrams.counting import all_heads_bigram, ngram_estimator
from sandlab.lenses.ngrams.theory import (
    covered,
    enumerate_world,
    exact_gradient,
    key_gradient,
    monte_carlo_gradient,
    random_like,
    score_gradient,
    stationarity_condition,
)
from sandlab.models.base import seeded
from sandlab.models.ngrams.simplified import SimplifiedTransformer
from sandlab.models.transformer import Transformer
from sandlab.worlds.base import Batch
from sandlab.worlds.markov.chain import MarkovChain
from sandlab.worlds.ngrams.estimators import CountingEstimator
from sandlab.worlds.ngrams.in_context import InContextNgrams


def gradient_on(model, batch: Batch) -> dict[str, torch.Tensor]:
    """Plain autograd of the mean soft cross-entropy."""
    loss = -(batch.targets * model(batch.inputs)).sum(-1).mean()
    names, parameters = zip(*model.named_parameters())
    return dict(zip(names, torch.autograd.grad(loss, parameters)))


@pytest.mark.parametrize(
    "world",
    [
        MarkovChain.binary(0.2, 0.3, length=6),
        MarkovChain.random(3, 2, length=5),
        InContextNgrams(2, 2, 7, 0.5),
        InContextNgrams(3, 1, 5, 1.0),
        InContextNgrams(2, 2, 7, 0.5, lags=(1, 3)),
    ],
    ids=repr,
)
def test_enumerated_sequences_have_the_frequencies_of_samples(world):
    batch = enumerate_world(world)
    probability = batch.truth["probability"]
    assert float(probability.sum()) == pytest.approx(1.0, abs=1e-12)
    drawn = world.sample(60_000, rng=rng(0)).inputs
    code = (drawn * world.vocab ** torch.arange(world.length - 1, -1, -1)).sum(-1)
    frequency = torch.bincount(code, minlength=len(probability)).double() / 60_000
    assert float((frequency - probability).abs().max()) < 5 * math.sqrt(float(probability.max()) / 60_000)


@pytest.mark.parametrize("kind", ["simplified", "transformer"])
def test_gradient_is_the_mean_of_prediction_error_times_score(kind):
    batch = enumerate_world(InContextNgrams(2, 2, 6, 1.0))
    with seeded(0):
        if kind == "simplified":
            model = SimplifiedTransformer(vocab=2, length=6, floor=1e-300).double()
        else:
            model = Transformer(vocab=2, length=6, width=8, layers=1, read="last", init_std=0.5).double()
    direct, scored = exact_gradient(model, batch), score_gradient(model, batch)
    for name, gradient in direct.items():
        assert torch.allclose(gradient, scored[name], atol=1e-10)
    assert max(float(gradient.abs().max()) for gradient in direct.values()) > 1e-3


@pytest.mark.parametrize("lags", [(), (1,), (2,)])
def test_a_table_of_the_exact_suffix_distribution_is_stationary_although_not_optimal(lags):
    chain = MarkovChain.random(2, 2, seed=1)
    found = stationarity_condition(suffix_table(chain, lags), chain, 4, lags)
    assert found.score_spread < 1e-14 and found.prediction_gap < 1e-14
    assert found.gradient_norm < 1e-15
    assert found.oracle_gap > 0.05


def test_another_table_over_the_same_suffix_is_not_stationary():
    chain = MarkovChain.random(2, 2, seed=1)
    model = suffix_table(chain, (1,))
    with torch.no_grad():
        model.table[0, 0] += 0.5
    found = stationarity_condition(model, chain, 4, (1,))
    assert found.score_spread < 1e-14 and found.prediction_gap > 0.05 and found.gradient_norm > 1e-2


def test_scores_that_look_further_back_break_the_condition():
    chain = MarkovChain.random(2, 2, seed=1)
    found = stationarity_condition(suffix_table(chain, (1, 2)), chain, 4, (1,))
    assert found.score_spread > 0.1
    assert found.gradient_norm < 1e-15 and found.oracle_gap < 1e-14


@pytest.mark.parametrize("states", [2, 3, 5])
def test_every_gradient_vanishes_exactly_at_the_unigram_point(states):
    world = InContextNgrams(states, 2, 20, 0.5)
    gradients = gradient_on(ngram_estimator(states, 0, 20, heads=2), world.sample(50, rng=rng(0)))
    assert max(float(gradient.abs().max()) for gradient in gradients.values()) == 0.0


@pytest.mark.parametrize(("order", "task"), [(1, 2), (2, 3)])
def test_one_block_of_the_gradient_survives_at_a_sub_ngram_point(order, task):
    states, length, c = 3, 256, 30.0
    world = InContextNgrams(states, task, length, 1.0)
    batch = world.sample(200, rng=rng(1))
    batch = batch[covered(batch.inputs, states, order)]
    assert len(batch) > 20
    gradients = gradient_on(ngram_estimator(states, order, length, heads=task, temperature=c), batch)
    key = gradients.pop("layers.1.attention.key.weight")
    assert max(float(gradient.norm()) for gradient in gradients.values()) < 1e-10
    probs = CountingEstimator.of_order(states, order, boundary="clamped").probabilities(batch.inputs)[:, -1]
    expected = torch.zeros_like(key)
    for h in range(1, order + 1):
        token = torch.nn.functional.one_hot(batch.inputs[:, -h], states).double()
        block = math.sqrt(c) * token.T @ (probs - batch.targets[:, 0]) / len(batch)
        expected[h * states : (h + 1) * states, :states] = block
    assert float((key - expected).abs().max()) < 1e-10
    assert float(expected.abs().max()) > 1e-3


def test_the_bigram_with_all_heads_is_near_stationary_too():
    states, length, c, heads = 3, 200, 30.0, 2
    world = InContextNgrams(states, 2, length, 1.0)
    batch = world.sample(150, rng=rng(2))
    batch = batch[covered(batch.inputs, states, 1)]
    gradients = gradient_on(all_heads_bigram(states, heads, length, temperature=c), batch)
    key = gradients.pop("layers.1.attention.key.weight")
    assert max(float(gradient.norm()) for gradient in gradients.values()) < 1e-10
    probs = CountingEstimator.of_order(states, 1, boundary="clamped").probabilities(batch.inputs)[:, -1]
    token = torch.nn.functional.one_hot(batch.inputs[:, -1], states).double()
    block = math.sqrt(c) * token.T @ (probs - batch.targets[:, 0]) / len(batch)
    for h in range(1, heads + 1):
        assert torch.allclose(key[h * states : (h + 1) * states, :states], block, atol=1e-10)


def test_attention_gradient_of_the_first_layer_falls_exponentially_with_the_temperature():
    batch = InContextNgrams(3, 2, 32, 1.0).sample(500, rng=rng(3))
    norms = [
        float(gradient_on(ngram_estimator(3, 1, 32, heads=2, temperature=c), batch)["layers.0.attention.weight"].norm())
        for c in (10.0, 15.0, 20.0)
    ]
    assert norms[1] < 0.03 * norms[0] and norms[2] < 0.03 * norms[1]


def test_at_a_fixed_length_a_higher_temperature_makes_the_gradient_larger():
    """Symbols never seen after a match keep ∂ log p of order c: the limit needs T → ∞ first."""
    batch = InContextNgrams(3, 2, 32, 1.0).sample(2000, rng=rng(4))
    norms = [
        float(gradient_on(ngram_estimator(3, 2, 32, temperature=c), batch)["layers.0.attention.value"].norm())
        for c in (5.0, 10.0, 20.0)
    ]
    assert norms[0] < norms[1] < norms[2]
    assert norms[2] / norms[1] == pytest.approx(2.0, rel=0.25)


def test_longer_sequences_bring_the_gradient_down_and_a_random_point_stays():
    norms: dict[str, list[float]] = {"construction": [], "random": []}
    for length in (32, 256):
        world = InContextNgrams(3, 2, length, 1.0)
        point = ngram_estimator(3, 1, length, heads=2, temperature=10.0)
        batch = world.sample(600, rng=rng(5))
        norms["construction"].append(float(gradient_on(point, batch)["layers.0.attention.value"].norm()))
        other = random_like(point, rng=rng(6))
        for mine, its in zip(point.parameters(), other.parameters()):
            assert float(mine.detach().norm()) == pytest.approx(float(its.detach().norm()), rel=1e-9)
        norms["random"].append(float(gradient_on(other, batch)["layers.0.attention.value"].norm()))
    assert norms["construction"][1] < 0.1 * norms["construction"][0]
    assert norms["random"][1] > 0.3 * norms["random"][0]


@pytest.mark.parametrize(("order", "length", "diagonal", "unseen"), [(1, 64, 2.7e-3, 6.9e-3), (2, 64, 3.1e-3, 8.2e-2)])
def test_surviving_block_has_the_measured_size(order, length, diagonal, unseen):
    found = key_gradient(InContextNgrams(3, 2, length, 1.0), order, 2**15, rng=rng(0))
    assert found.blocks.shape == (order, 3, 3)
    assert abs(found.diagonal - diagonal) < 4 * found.diagonal_error + 2e-4
    assert found.unseen == pytest.approx(unseen, rel=0.15)
    assert found.norm > found.noise


def test_surviving_block_agrees_with_monte_carlo_autograd_within_its_errors():
    world = InContextNgrams(3, 2, 128, 1.0)
    found = key_gradient(world, 1, 2**14, rng=rng(1))
    estimate = monte_carlo_gradient(
        ngram_estimator(3, 1, 128, heads=1, temperature=20.0), world, 2**13, rng=rng(2), chunk=512
    )
    block = estimate.mean["layers.1.attention.key.weight"][3:6, :3] / math.sqrt(20.0)
    assert float(((block - found.blocks[0]).abs() / (2 * found.errors[0])).max()) < 4


@pytest.mark.slow
def test_surviving_block_falls_like_one_over_the_length_and_not_exponentially():
    lengths = (64, 128, 256, 512)
    sizes = [key_gradient(InContextNgrams(3, 2, t, 1.0), 2, 2**16, rng=rng(t)).diagonal for t in lengths]
    slope = torch.tensor(sizes).log().diff().sum() / math.log(512 / 64)
    assert -1.4 < float(slope) < -0.6


def test_monte_carlo_gradient_equals_the_enumerated_one_within_its_error_bars():
    world = InContextNgrams(2, 2, 8, 1.0)
    with seeded(3):
        model = SimplifiedTransformer(vocab=2, length=8, floor=1e-300).double()
    truth = exact_gradient(model, enumerate_world(world))
    estimate = monte_carlo_gradient(model, world, 2**14, rng=rng(0), chunk=512)
    for name, gradient in truth.items():
        exact = float(gradient.square().sum())
        assert abs(estimate.squared[name] - exact) < 5 * estimate.error[name] + 1e-12
        assert float((estimate.mean[name] - gradient).norm()) < 3 * estimate.noise[name]
    total = sum(float(gradient.square().sum()) for gradient in truth.values())
    assert abs(estimate.squared["all"] - total) < 5 * estimate.error["all"]


def test_covered_sequences_show_every_symbol_after_the_context():
    tokens = torch.tensor(list(itertools.product(range(2), repeat=6)))
    mask = covered(tokens, 2, 1)
    for row, ok in zip(tokens.tolist(), mask.tolist()):
        clamped = [row[max(at - 1, 0)] for at in range(6)]
        followers = {row[at] for at in range(6) if clamped[at] == row[-1]}
        assert ok == (followers == {0, 1})


def test_impossible_questions_are_refused():
    with pytest.raises(BadInput, match="length"):
        enumerate_world(InContextNgrams(3, 1, 20))
    with pytest.raises(BadInput, match="start"):
        enumerate_world(InContextNgrams(2, 1, 5, start="stationary"))
    with pytest.raises(BadInput, match="examples"):
        monte_carlo_gradient(SuffixTable(vocab=2), MarkovChain(), 10, rng=rng(0))
    with pytest.raises(BadInput, match="sequence length"):
        SuffixTable(vocab=2, lags=(3,))(torch.zeros(1, 2, dtype=torch.int64))
