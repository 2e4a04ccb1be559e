"""Predictions on Markov data: exact at the kernel, the marginal, the true lag and the counting estimator."""

from __future__ import annotations

import pytest
import torch

from sandlab.circuits import causal_graph_estimator, kernel_predictor, marginal_predictor
from sandlab.lenses import chain_predictions, enumerated_chain_loss, lag_found, prior_errors
from sandlab.random import rng
from sandlab.worlds.markov.causal_graphs import InContextTree, chain_parents
from sandlab.worlds.markov.chain import MarkovChain
from sandlab.worlds.markov.interleaved import InterleavedChains


@pytest.mark.parametrize(("p", "q"), [(0.2, 0.3), (0.5, 0.8)])
def test_the_enumerated_loss_is_the_entropy_rate_at_the_kernel_and_the_marginals_entropy_there(
    p: float, q: float
) -> None:
    world, loss = MarkovChain.binary(p, q), enumerated_chain_loss(p, q, 4)
    assert loss(kernel_predictor(p, q, length=4)).item() == pytest.approx(world.entropy_rate(), abs=1e-12)
    assert loss(marginal_predictor(p, q, length=4)).item() == pytest.approx(world.marginal_entropy(), abs=1e-12)


def test_the_expected_loss_is_the_entropy_rate_for_the_kernel_and_follows_the_marginal() -> None:
    world = MarkovChain.binary(0.2, 0.3, length=16)
    batch = world.sample(128, rng=rng(0))
    kernel = chain_predictions(kernel_predictor(0.2, 0.3, length=16), world, batch)
    assert float(kernel["expected loss"]) == pytest.approx(world.entropy_rate(), abs=1e-9)
    assert float(kernel["after zero"]) == pytest.approx(0.2)
    assert float(kernel["after one"]) == pytest.approx(0.7)
    marginal = chain_predictions(marginal_predictor(0.2, 0.3, length=16), world, batch)
    assert float(marginal["expected loss"]) == pytest.approx(world.marginal_entropy(), abs=0.02)


def test_the_bayes_predictor_finds_the_lag_at_the_end_of_long_sequences_and_the_true_lag_always() -> None:
    world = InterleavedChains.random(3, seed=1, concentration=0.3, lags=(1, 2, 3), length=60)
    batch = world.sample(400, rng=rng(0))
    assert float(lag_found(world, batch, world.oracle(batch))[-1]) > 0.95
    index = [world.lags.index(int(lag)) for lag in batch.truth["lag"]]
    true = world.lag_predictions(batch.inputs)[torch.arange(400), :, index].log()
    assert (lag_found(world, batch, true)[3:] == 1).all()


def test_the_circuit_errs_like_counting_on_kernels_of_every_prior() -> None:
    world = InContextTree(3, chain_parents(40), concentration=0.1)
    circuit = causal_graph_estimator(3, world.parents)
    model, counting = prior_errors(circuit, world, (0.1, 3.0), rng=rng(0), examples=512)
    assert model.tolist() == pytest.approx(counting.tolist(), abs=0.02)
    batch = world.sample(512, rng=rng(0))
    errors = [float((a - b).abs().max()) for a, b in zip(world.baselines()["graph"](batch).exp(), batch.targets)]
    assert float(counting[0]) == pytest.approx(sum(errors) / 512)
