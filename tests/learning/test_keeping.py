"""Weights of the best evaluation, averages whose decay follows the step, early stopping inside an experiment."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

import sandlab as sl
from sandlab.lab._exec.jobs import canonical
from sandlab.learning._engine.evaluation import evaluate_batch
from sandlab.learning.experiment import Experiment, Members, Training, train_members
from sandlab.learning.objectives import CrossEntropy
from sandlab.learning.population import Population
from sandlab.learning.schedules import PowerDecay
from sandlab.learning.stopping import EarlyStop
from sandlab.models.transformer import TransformerConfig
from sandlab.worlds.dyck.language import Dyck

WORLD = Dyck(types=2, depth=3, length=8)
CHAOTIC = Experiment(
    world=WORLD,
    model=TransformerConfig(vocab=WORLD.vocab, outputs=WORLD.outputs, length=8, layers=1, width=8),
    training=Training(steps=12, batch_size=8, lr=0.5, evals=6, eval_examples=64, keep="loss"),
    seeds=2,
)


def kept_losses(experiment: Experiment) -> tuple[np.ndarray, np.ndarray]:
    """Loss of each seed's kept weights on the held-out examples, and the evaluations during training."""
    runs = train_members(Members(experiment, (0, 1), weights=True))
    batch = WORLD.sample(experiment.training.eval_examples, rng=sl.rng(1, "held out"))
    models = [runs.model(experiment.model, index) for index in range(2)]
    found = [float(evaluate_batch(model, batch, CrossEntropy())["loss"]) for model in models]
    return np.array(found), runs.metrics[experiment.training.keep or "loss"]


@pytest.mark.parametrize(("ema", "keep"), [(None, "loss"), (0.6, "ema/loss")])
def test_each_seed_keeps_the_weights_of_its_smallest_loss(ema: float | None, keep: str) -> None:
    found, curves = kept_losses(replace(CHAOTIC, training=replace(CHAOTIC.training, ema=ema, keep=keep)))
    assert np.allclose(found, curves.min(1), atol=1e-5)
    assert not np.allclose(curves.min(1), curves[:, -1], atol=1e-3)  # the last weights are others


def test_the_first_of_equals_is_kept() -> None:
    weights: list[torch.Tensor] = []

    def evaluate(population: Population) -> dict[str, np.ndarray]:
        weights.append(population.rows[0].detach().clone())
        return {"loss": np.array([[0.5, 0.5, 0.5], [0.5, 0.4, 0.6]])[:, len(weights) - 1]}

    population = Population(lambda seed: torch.nn.Embedding(WORLD.vocab, WORLD.outputs), seeds=(0, 1))
    histories = sl.learning.train(population, WORLD, steps=2, every=1, rng=sl.rng(0), evaluate=evaluate, keep="loss")
    for index, (history, evaluation) in enumerate(zip(histories, (0, 1))):
        assert history.best is not None
        kept = history.best["weight"].flatten()
        assert torch.equal(kept, weights[evaluation][index][: len(kept)])


def test_a_metric_that_is_not_evaluated_is_refused() -> None:
    with pytest.raises(sl.BadInput, match="'los', which is not evaluated: did you mean 'loss'"):
        kept_losses(replace(CHAOTIC, training=replace(CHAOTIC.training, keep="los")))


def test_the_decay_follows_early_weights_and_then_stays() -> None:
    decay = PowerDecay(decay=0.999, power=0.67, start=100)
    expected = [0.999, 0.999, 1 - 101**-0.67, 1 - 1000**-0.67, 0.999]
    assert [decay(step) for step in (0, 99, 100, 999, 40_000)] == pytest.approx(expected)


def test_an_experiment_with_early_stopping_has_a_key() -> None:
    stopping = replace(CHAOTIC, training=replace(CHAOTIC.training, stop=EarlyStop(below=10.0)))
    assert canonical(stopping) != canonical(CHAOTIC)
    assert stopping == replace(CHAOTIC, training=replace(CHAOTIC.training, stop=EarlyStop(below=10.0)))
    assert train_members(Members(stopping, (0,))).loss.shape == (1, 0)
