"""How well a model tracks the state of an automaton: by position, by whole word, by the number of letters 1."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from sandlab.decoding.decoders.scratchpad import scratchpad_decode
from sandlab.errors import integer
from sandlab.learning.population import Population
from sandlab.lenses.predictions import evaluating
from sandlab.registry import register
from sandlab.worlds.automata.machine import Automaton

__all__ = ["correct_states", "count_accuracy", "majority_accuracy", "minimal_depth", "state_accuracy"]

AT_ONCE = 1 << 18
"""Positions × members that are computed at once."""


@torch.no_grad()
def correct_states(
    model: nn.Module, world: Automaton, *, examples: int, rng: torch.Generator
) -> Bool[Tensor, "member example time"]:
    """Whether each label of fresh words is predicted correctly, for every member (one model: a member axis of 1).

    All members get the same words. A scratchpad is filled in by the model itself.
    """
    integer("examples", examples, low=1)
    batch = world.sample(examples, rng=rng)
    letters, truth = batch.truth["letters"], batch.truth["states"] if world.scratchpad else batch.targets
    members = len(model) if isinstance(model, Population) else 1
    rows = max(1, AT_ONCE // (members * letters.shape[1]))
    with evaluating(model):
        predicted = torch.cat([_predict(model, world, part) for part in letters.split(rows)], -2)
    return (predicted == truth).view(members, *truth.shape)


def _predict(
    model: nn.Module, world: Automaton, letters: Int[Tensor, "example time"]
) -> Int[Tensor, "*member example time"]:
    if world.scratchpad:
        return scratchpad_decode(model, world, letters)
    logits: Tensor = model(letters)
    return logits.argmax(-1)


@register("lenses")
def state_accuracy(
    model: nn.Module, world: Automaton, *, examples: int = 1024, rng: torch.Generator
) -> dict[str, Float[np.ndarray, "member"]]:
    """Share of positions ("token") and of whole words ("sequence") that are predicted correctly, per member.

    token = mean over words and positions of 1[q̂_t = q_t]; sequence = mean over words of Π_t 1[q̂_t = q_t].
    """
    correct = correct_states(model, world, examples=examples, rng=rng)
    return {
        "token": correct.double().mean((1, 2)).cpu().numpy(),
        "sequence": correct.all(2).double().mean(1).cpu().numpy(),
    }


def count_accuracy(
    model: nn.Module, machine: Automaton, counts: Sequence[int], *, examples: int = 512, rng: torch.Generator
) -> Float[np.ndarray, "member count"]:
    """Token accuracy on words with a given number of letters 1, at uniformly random positions (all positions count)."""
    tasks = [machine.task(count=count) for count in counts]
    found = [state_accuracy(model, task, examples=examples, rng=rng)["token"] for task in tasks]
    return np.stack(found, 1)


def majority_accuracy(machine: Automaton, *, examples: int = 4096, rng: torch.Generator) -> float:
    """Accuracy of always predicting the most frequent label: what a model that has learnt nothing reaches."""
    targets = machine.sample(examples, rng=rng).targets
    return float(torch.bincount(targets.flatten()).max() / targets.numel())


def minimal_depth(accuracies: Mapping[int, float], level: float = 0.99) -> int | None:
    """Smallest number of layers whose (best) accuracy reaches the level; None when none does."""
    return next((depth for depth in sorted(accuracies) if accuracies[depth] >= level), None)
