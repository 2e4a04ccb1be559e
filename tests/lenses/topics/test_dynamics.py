"""Norms, rotation, stages and sizes of gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pytest
import torch

from sandlab.learning.experiment import Experiment, Training
from sandlab.learning.topics.losses import MaskedSquares
from sandlab.lenses.topics.dynamics import (
    ValueRotation,
    attention_norms,
    rotation,
    stage_gradient_norms,
    stage_times,
)
from sandlab.models.base import seeded
from sandlab.models.topics.encoder import MaskedEncoderConfig
from sandlab.models.topics.one_layer import OneLayerTopics, OneLayerTopicsConfig
from sandlab.random import rng
from sandlab.studies.study import Lab
from sandlab.worlds.topics.documents import LDATopics
from sandlab.worlds.topics.pseudo_wiki import PseudoWiki


class InOrder(Lab):
    """Runs every job at once, here."""

    def map(
        self, job: Callable[..., Any], configs: Iterable[Any], *, given: Iterable[Any] | None = None, label: str = ""
    ) -> list[Any]:
        return [job(config) for config in configs]


LAB = InOrder()
STEPS = np.arange(101.0)
PARTS = ("key", "query", "value")


def curve(start: float, stop: float) -> np.ndarray:
    """A norm that grows from 1 to 3 between two steps."""
    return 1 + 2 * np.clip((STEPS - start) / (stop - start), 0, 1)


def test_times_are_those_of_straight_curves() -> None:
    found = stage_times(STEPS, {"key": curve(40, 80), "query": curve(50, 60), "value": curve(0, 20)})
    assert found.tenth == {"key": 44, "query": 51, "value": 2}
    assert found.double == {"key": 60, "query": 55, "value": 10}
    assert found.two_stages


def test_growing_together_is_one_stage_and_so_is_no_growth() -> None:
    together = dict.fromkeys(PARTS, curve(10, 60))
    assert not stage_times(STEPS, together).two_stages
    still = stage_times(STEPS, dict.fromkeys(PARTS, np.ones(101)))
    assert not still.two_stages and set(still.tenth.values()) == {np.inf}
    only_values = together | {"key": np.ones(101), "query": np.ones(101)}
    assert not stage_times(STEPS, only_values).two_stages


def test_rotation_is_half_of_one_minus_the_cosine() -> None:
    a, b = torch.tensor([1.0, 0.0]), torch.tensor([0.0, 2.0])
    assert float(rotation(a, 3 * a)) == 0 and float(rotation(a, b)) == 0.5 and float(rotation(a, -b - 0 * a)) == 0.5
    assert float(rotation(a, -a)) == 1


@pytest.mark.parametrize("many", [False, True])
def test_probes_measure_every_layer_at_every_step(many: bool) -> None:
    how = Training(steps=6, batch_size=4, lr=0.1, optimizer="sgd", evals=6, eval_examples=4)
    if many:
        wiki = PseudoWiki(size=60, stops=5, topics=3, lengths=(12, 12), marked=6)
        model = MaskedEncoderConfig(vocab=62, length=12, layers=3, heads=2, width=8, marked=6, attention_std=1e-3)
        experiment = Experiment(wiki, model, how, 2, probes=(attention_norms, ValueRotation(2)))
    else:
        plain = LDATopics(topics=3, words=2, lengths=(9, 9))
        experiment = Experiment(
            plain, OneLayerTopicsConfig(vocab=7), how, 2, probes=(attention_norms, ValueRotation(2))
        )
    runs = LAB.train(experiment, weights=True)
    layers = 3 if many else 1
    assert runs.metrics["value norm"].shape == (2, 7, layers) == runs.metrics["rotation"].shape
    assert np.isnan(runs.metrics["rotation"][:, :2]).all() and (runs.metrics["rotation"][:, 2:] >= 0).all()
    assert runs.weights is not None
    name = "layers.0.attention.key.weight" if many else "key"
    expected = [float(weight.norm()) for weight in runs.weights[name]]
    np.testing.assert_allclose(runs.metrics["key norm"][:, -1, 0], expected, rtol=1e-5)


def test_rotation_after_one_step_is_that_of_the_weights() -> None:
    world, config = LDATopics(topics=3, words=2, lengths=(9, 9)), OneLayerTopicsConfig(vocab=7)
    how = Training(steps=1, batch_size=4, lr=5.0, optimizer="sgd", evals=1, eval_examples=4)
    runs = LAB.train(Experiment(world, config, how, 1, probes=(ValueRotation(1),)), weights=True)
    with seeded(0):
        first = OneLayerTopics(vocab=7).value.detach()
    assert runs.weights is not None
    expected = float(rotation(runs.weights["value"][0].flatten(), first.flatten()))
    assert runs.metrics["rotation"][0, 1, 0] == pytest.approx(expected, rel=1e-5) and expected > 0


@pytest.mark.parametrize("objective", [None, MaskedSquares()])
def test_gradients_of_keys_vanish_with_the_weights_and_those_of_values_do_not(objective: MaskedSquares | None) -> None:
    batch = LDATopics(topics=4, words=3).sample(16, rng=rng(2))

    def norms(std: float, *, without: str = "") -> dict[str, float]:
        with seeded(0):
            given = OneLayerTopics(vocab=13, std=std).double()
        if without:
            given.get_parameter(without).data.zero_()
        return stage_gradient_norms(given, batch, objective)

    for still, other in (("query", "key"), ("key", "query")):
        found = norms(0.1, without=still)
        assert found[other] == 0.0 < found[still]
    sizes = [norms(std) for std in (1e-1, 1e-2, 1e-3)]
    for part in ("key", "query"):
        assert sizes[1][part] / sizes[2][part] == pytest.approx(100, rel=0.2)  # ε · ‖V‖, and ‖V‖ is ε too
    assert sizes[1]["value"] / sizes[2]["value"] == pytest.approx(1, rel=0.05)
    assert sizes[2]["value"] / sizes[2]["key"] > 1e4
