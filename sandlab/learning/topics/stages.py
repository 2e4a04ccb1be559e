"""Training of the one-layer topic model in stages: values first, then attention, perhaps again and again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import torch

from sandlab.errors import integer
from sandlab.learning.experiment import Training
from sandlab.learning.history import History
from sandlab.learning.training import train
from sandlab.models.topics.one_layer import OneLayerTopics
from sandlab.worlds.base import World

__all__ = ["TopicStage", "alternating_stages", "train_stages", "two_stages"]

VALUES = ("value", "value_bias")
ATTENTION = ("key", "query", "key_bias", "query_bias")


@dataclass(frozen=True)
class TopicStage:
    """One stage: which weights are trained, and how.

    uniform   attention is uniform meanwhile: keys and queries are zero, and come back as they were afterwards
    """

    trained: tuple[str, ...]
    training: Training
    uniform: bool = False


def two_stages(values: Training, attention: Training, *, bias: bool = True) -> tuple[TopicStage, ...]:
    """Stage 1 trains the value matrix under uniform attention; stage 2 trains keys and queries (§2.1.4.1 of Li 2024).

    bias   train the biases of each stage too
    """
    return (
        TopicStage(VALUES if bias else VALUES[:1], values, uniform=True),
        TopicStage(ATTENTION if bias else ATTENTION[:2], attention),
    )


def alternating_stages(
    values: Training, attention: Training, rounds: int, *, bias: bool = True
) -> tuple[TopicStage, ...]:
    """Both stages `rounds` times in turn; attention is uniform in the first stage only."""
    integer("rounds", rounds, low=1)
    first, second = two_stages(values, attention, bias=bias)
    return (first, second, *(TopicStage(first.trained, values), second) * (rounds - 1))


def train_stages(
    model: OneLayerTopics, world: World, stages: Sequence[TopicStage], *, rng: torch.Generator
) -> list[History]:
    """Train a model in stages, in place: one history each. Afterwards the weights of its config are trainable again."""
    before = {name: weight.requires_grad for name, weight in model.named_parameters()}
    held_out = world.sample(stages[0].training.eval_examples, rng=rng)
    histories = []
    for stage in stages:
        away = _attention(model) if stage.uniform else {}
        for name, weight in model.named_parameters():
            weight.requires_grad_(name in stage.trained)
            if name in away:
                weight.data.zero_()
        how = {each.name: getattr(stage.training, each.name) for each in fields(Training)}
        evals = how.pop("evals")
        del how["eval_examples"]
        every = max(1, stage.training.steps // evals)
        histories.append(train(model, world, **how, rng=rng, evaluate=held_out, every=every))
        for name, kept in away.items():
            model.get_parameter(name).data.copy_(kept)
    for name, weight in model.named_parameters():
        weight.requires_grad_(before[name])
    return histories


def _attention(model: OneLayerTopics) -> dict[str, torch.Tensor]:
    """A copy of keys, queries and their biases."""
    return {name: weight.detach().clone() for name, weight in model.named_parameters() if name in ATTENTION}
