"""How well a model follows the state of an automaton: by position, by whole word, by how many letters were drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from sandlab.decoding.decoders.scratchpad import scratchpad_decode
from sandlab.errors import integer, require
from sandlab.lenses.predictions import evaluating
from sandlab.registry import register
from sandlab.worlds.automata.machine import Automaton

__all__ = ["count_accuracy", "majority_accuracy", "minimal_depth", "right_states", "state_accuracy"]

AT_ONCE = 1 << 18


@torch.no_grad()
def right_states(
    model: nn.Module, worlds: Sequence[Automaton], *, examples: int, rng: torch.Generator
) -> Bool[Tensor, "member example time"]:
    """Whether each label of fresh words is predicted, member by member (one model: a member axis of 1).

    worlds  one for all members, or one per member. Members with the same world get the same words. A scratchpad is
            filled in by the model itself.
    """
    integer("examples", examples, low=1)
    population = hasattr(model, "template")
    members = len(model) if population else 1  # type: ignore[arg-type]
    chosen = list(worlds) * members if len(worlds) == 1 else list(worlds)
    require(len(chosen) == members, "worlds", len(chosen), f"one, or one for each of the {members} members")
    distinct = {id(world): world for world in chosen}
    drawn = {key: world.sample(examples, rng=rng) for key, world in distinct.items()}
    letters = torch.stack([drawn[id(world)].truth["letters"] for world in chosen])
    if chosen[0].scratchpad:
        states = torch.stack([drawn[id(world)].truth["states"] for world in chosen])
        return _in_parts(lambda part: _written(model, chosen, part), letters) == states
    targets = torch.stack([drawn[id(world)].targets for world in chosen])
    with evaluating(model):
        call: Any = (
            (lambda part: model(part, per_member=True)) if population else (lambda part: model(part[0]).unsqueeze(0))
        )
        return _in_parts(lambda part: call(part).argmax(-1), letters) == targets


def _written(model: nn.Module, worlds: list[Automaton], letters: Tensor) -> Tensor:
    """States written down; members with other alphabets than the first would write other tokens."""
    sizes = {(world.alphabet, world.states) for world in worlds}
    require(len(sizes) == 1, "worlds", sorted(sizes), "of one size (letters, states) for a scratchpad")
    found = scratchpad_decode(model, worlds[0], letters if hasattr(model, "template") else letters[0])
    return found if found.ndim == 3 else found.unsqueeze(0)


def _in_parts(compute: Any, letters: Tensor) -> Tensor:
    rows = max(1, AT_ONCE // (letters.shape[0] * letters.shape[2]))
    return torch.cat([compute(part) for part in letters.split(rows, 1)], 1)


@register("lenses")
def state_accuracy(
    model: nn.Module, worlds: Sequence[Automaton], *, examples: int = 1024, rng: torch.Generator
) -> dict[str, Float[np.ndarray, "member"]]:
    """Share of positions ("token") and of whole words ("sequence") that are right, per member.

    token = mean over words and positions of 1[q̂_t = q_t]; sequence = mean over words of Π_t 1[q̂_t = q_t].
    """
    right = right_states(model, worlds, examples=examples, rng=rng)
    return {
        "token": right.double().mean((1, 2)).cpu().numpy(),
        "sequence": right.all(2).double().mean(1).cpu().numpy(),
    }


def count_accuracy(
    model: nn.Module, machine: Automaton, counts: Sequence[int], *, examples: int = 512, rng: torch.Generator
) -> Float[np.ndarray, "member count"]:
    """Token accuracy on words with exactly so many letters 1, at uniformly random places (all positions count)."""
    tasks = [machine.task(count=count) for count in counts]
    found = [state_accuracy(model, [task], examples=examples, rng=rng)["token"] for task in tasks]
    return np.stack(found, 1)


def majority_accuracy(machine: Automaton, *, examples: int = 4096, rng: torch.Generator) -> float:
    """Accuracy of always saying the most frequent label: what a model that learnt nothing reaches."""
    targets = machine.sample(examples, rng=rng).targets
    return float(torch.bincount(targets.flatten()).max() / targets.numel())


def minimal_depth(accuracies: Mapping[int, float], level: float = 0.99) -> int | None:
    """Smallest number of layers whose (best) accuracy reaches the level; None when none does."""
    return next((depth for depth in sorted(accuracies) if accuracies[depth] >= level), None)
