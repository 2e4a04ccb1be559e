"""Probes of flip-flop experiments: what the members of a population get wrong, and what their heads attend to.

A probe takes a `Snapshot` and returns named arrays, member axis first (see `Experiment`).
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn

from sandlab.learning.experiment import Runs, Snapshot
from sandlab.lenses.attention_patterns import attention_maps
from sandlab.lenses.flip_flop.attention_limits import LinearPositionHead
from sandlab.lenses.flip_flop.glitches import Glitch, draw_glitch_maps, find_glitch
from sandlab.lenses.flip_flop.light_switch import Reader, WordReader, light_switch_accuracy
from sandlab.lenses.flip_flop.memory_heads import (
    attention_entropy,
    head_differences,
    ideal_memory_score,
    misleading_rows,
)
from sandlab.lenses.flip_flop.tail_errors import error_curve, tail_error
from sandlab.lenses.predictions import evaluating, mean_loss
from sandlab.models.flip_flop.linear_memory import LinearPositionMemory
from sandlab.models.hooks import record
from sandlab.random import rng
from sandlab.worlds.flip_flop.language import FlipFlop, FlipFlopTransduction
from sandlab.worlds.flip_flop.light_switch import VOCABULARY

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    "AttentionDrift",
    "DistanceErrors",
    "Failure",
    "HeadDistances",
    "HeadReport",
    "LabelErrors",
    "ReadErrors",
    "ShortestFailures",
    "StoryAccuracy",
    "distance_edges",
    "excess_loss",
    "misleading_maxima",
    "read_sets",
    "story_accuracy",
    "weight_norm",
]

LETTERS = "wri01"
SPARSE, DENSE = 0.98, 0.1
NEVER = 10**6  # failure length of a head that does not fail
COMPARED = 200  # longest input on which predicted and measured failure lengths are compared
SECOND = 33  # index of the second write of the published input


def read_sets(world: FlipFlop) -> dict[str, FlipFlop]:
    """A training language ("in") and its tails FFL(0.98) ("sparse") and FFL(0.1) ("dense"); only reads count."""
    sparse, dense = (FlipFlop.ignoring(share, length=world.length) for share in (SPARSE, DENSE))
    return {"in": replace(world, mode="clean"), "sparse": sparse, "dense": dense}


@dataclass(frozen=True)
class ReadErrors:
    """Read error on each of the `read_sets`, over at least `reads` reads in chunks of 256 strings.

    With `bits`, only the two symbols are compared instead of all five tokens ("in bits", …).
    """

    world: FlipFlop
    reads: int = 1
    bits: bool = False

    def __call__(self, now: Snapshot) -> dict[str, np.ndarray]:
        among, suffix = (slice(3, 5), " bits") if self.bits else (None, "")
        found = {}
        for name, world in read_sets(self.world).items():
            generator = now.rng(11, name)
            rates = tail_error(now.model, world, targets=self.reads, rng=generator, chunk=256, among=among)
            found[name + suffix] = np.array([rate.rate for rate in rates])
        return found


def distance_edges(length: int) -> np.ndarray:
    """Edges of bins of distances that double, up to half the length."""
    edges = np.unique([0, *(2**power for power in range(12)), length])
    return edges[edges <= length // 2]


@dataclass(frozen=True)
class DistanceErrors:
    """Errors and reads in bins of the distance to the latest write: "sparse distances", "dense distances".

    Arrays are (member, 2, bin); the bins are those of `distance_edges`.
    """

    world: FlipFlop
    reads: int

    def __call__(self, now: Snapshot) -> dict[str, np.ndarray]:
        found, edges = {}, distance_edges(self.world.length)
        for name in ("sparse", "dense"):
            world, generator = read_sets(self.world)[name], now.rng(13, name)
            curve = error_curve(
                now.model, world, world.since_write, edges, targets=self.reads, rng=generator, chunk=256
            )
            counts = np.broadcast_to(curve.counts, curve.errors.shape)
            found[f"{name} distances"] = np.stack([curve.errors, counts], 1)
        return found


@dataclass(frozen=True)
class ShortestFailures:
    """The shortest failing input found for each member, with its attention maps: "failures" (empty if none is found).

    Short strings of both tails are searched first, then longer ones up to `length`.
    """

    length: int

    def __call__(self, now: Snapshot) -> dict[str, list[dict[str, object]]]:
        return {"failures": [self._search(member.to(now.device), now) for member in now.model.members()]}

    def _search(self, model: nn.Module, now: Snapshot) -> dict[str, Any]:
        shorter = [length for length in (8, 12, 16, 24, 32, 48, 64, 128, 256, 512) if length < self.length]
        lengths = [*shorter, self.length]
        worlds = [FlipFlop.ignoring(share, length=length) for length in lengths for share in (DENSE, SPARSE)]
        found = find_glitch(model, worlds, examples=1024, rng=now.rng(17), label=worlds[0].label, group=2)
        if found is None:
            return {}
        maps = attention_maps(model, found.tokens.unsqueeze(0))
        return {
            "tokens": found.tokens.cpu().numpy(),
            "position": found.position,
            "answer": found.answer,
            "truth": found.truth,
            "tried": found.tried,
            "maps": {name: pattern.cpu().numpy() for name, pattern in maps.items()},
        }


@dataclass(frozen=True)
class Failure:
    """A failing flip-flop string of one seed, and its attention: activation → (head, query, key)."""

    glitch: Glitch
    maps: dict[str, np.ndarray]

    @classmethod
    def of(cls, runs: Runs) -> dict[int, Failure]:
        """Those that `ShortestFailures` found: seed → failure."""
        names = ("position", "answer", "truth", "tried")
        return {
            seed: cls(Glitch(torch.from_numpy(found["tokens"]), *(found[name] for name in names)), found["maps"])
            for seed, found in zip(runs.seeds, runs.final["failures"])
            if found
        }

    def describe(self) -> dict[str, int | str]:
        """The string and both answers, as a row of a table."""
        text, glitch = "".join(LETTERS[token] for token in self.glitch.tokens.tolist()), self.glitch
        return {"tokens": len(text), "says": LETTERS[glitch.answer], "true": LETTERS[glitch.truth], "input": text}

    def draw(self) -> Figure:
        """All heads, with the written symbols marked (see `draw_glitch_maps`)."""
        tokens = self.glitch.tokens.tolist()
        writes = {index: tokens[index] - 3 for index in range(1, len(tokens)) if tokens[index - 1] == 0}
        return draw_glitch_maps(self.maps, self.glitch, LETTERS, writes)


def excess_loss(now: Snapshot) -> dict[str, Tensor]:
    """Loss on 2000 fresh examples minus that of the oracle on the same ones, in nats per token: "excess"."""
    fresh = now.world.sample(2000, rng=now.rng(19))
    with evaluating(now.model), torch.no_grad():
        losses = [mean_loss(now.model, fresh[start : start + 250]).double() for start in range(0, len(fresh), 250)]
    return {"excess": torch.stack(losses).mean(0) - now.world.optimal_loss(fresh)}


@dataclass(frozen=True)
class LabelErrors:
    """Errors over 20 000 labels of `FlipFlopTransduction` at each p(⊥) in `idles`: "errors" (member, p(⊥))."""

    idles: tuple[float, ...]

    def __call__(self, now: Snapshot) -> dict[str, np.ndarray]:
        assert isinstance(now.world, FlipFlopTransduction)
        errors = []
        for idle in self.idles:
            world = replace(now.world, idle=idle)
            rates = tail_error(now.model, world, targets=20_000, rng=now.rng(9, str(idle)))
            errors.append([rate.rate for rate in rates])
        return {"errors": np.array(errors).T}


@dataclass(frozen=True)
class HeadReport:
    """Attention of models of `FlipFlopTransduction` on the held-out examples and on one input.

    "entropy"   mean row entropy (member, layer)
    "scores"    of the first layer's heads, see `ideal_memory_score`: name → (member, head)
    "maps"      on the given operations (member, layer, head, query, key)
    """

    operations: tuple[int, ...]

    def __call__(self, now: Snapshot) -> dict[str, object]:
        inputs, latest = now.batch.inputs, now.batch.truth["latest_write"]
        patterns = list(attention_maps(now.model, inputs, average=False).values())
        scores = [ideal_memory_score(member, inputs, latest) for member in patterns[0]]
        return {
            "entropy": torch.stack([attention_entropy(pattern).flatten(1).mean(1) for pattern in patterns], 1),
            "scores": {name: torch.stack([score[name] for score in scores]) for name in scores[0]},
            "maps": _maps(now, self.operations),
        }


@dataclass(frozen=True)
class HeadDistances:
    """Distances between the heads of each layer on the given operations: "distances" (member, layer, pair)."""

    operations: tuple[int, ...]

    def __call__(self, now: Snapshot) -> dict[str, Tensor]:
        return {"distances": head_differences(_maps(now, self.operations))}


def _maps(now: Snapshot, operations: tuple[int, ...]) -> Tensor:
    maps = attention_maps(now.model, torch.tensor([operations], device=now.device))
    return torch.stack(list(maps.values()), 1)


def misleading_maxima(now: Snapshot) -> dict[str, np.ndarray]:
    """`misleading_rows` of the first and of the last layer: "misleading first", "misleading last" (member, 3)."""
    members = [member.to(now.device) for member in now.model.members()]
    layers = {"first": 0, "last": len(members[0].layers) - 1}
    return {
        f"misleading {name}": np.array([misleading_rows(member, now.batch, layer) for member in members])
        for name, layer in layers.items()
    }


def weight_norm(now: Snapshot) -> dict[str, Tensor]:
    """Norm of all weights together: "norm"."""
    squares = [weight.detach().flatten(1).square().sum(1) for weight in now.model.stacked.values()]
    return {"norm": torch.stack(squares).sum(0).sqrt()}


@dataclass(frozen=True)
class AttentionDrift:
    """Attention of a `LinearPositionMemory` on inputs of up to `longest` operations.

    "one write", "two writes"   attention on the latest write: of every query after a write at 0, and after a second one
                                at `SECOND` (member, query)
    "curvature"                 κ of the trained weights
    "predicted"                 failure lengths of the two inputs of `LinearPositionHead` by its formulas (member, 2)
    "measured"                  the same from the attention of the model itself, up to `COMPARED`; or `NEVER`
    """

    longest: int

    def __call__(self, now: Snapshot) -> dict[str, np.ndarray]:
        members = [member.cpu() for member in now.model.members()]
        heads = [LinearPositionHead.of(member) for member in members]
        once = torch.zeros(self.longest, dtype=torch.long)
        once[0] = 2
        twice = once.clone()
        twice[0], twice[SECOND] = 1, 2
        predicted = [head.failure_lengths(100_000) for head in heads]
        measured = [_overtaken(member, min(self.longest, COMPARED)) for member in members]
        return {
            "one write": np.stack([_attention_on(member, once, 0) for member in members]),
            "two writes": np.stack([_attention_on(member, twice, SECOND) for member in members]),
            "curvature": np.array([head.curvature for head in heads]),
            "predicted": np.array([[length or NEVER for length in pair] for pair in predicted]),
            "measured": np.array([[length or NEVER for length in pair] for pair in measured]),
        }


def _overtaken(model: LinearPositionMemory, longest: int) -> tuple[int | None, int | None]:
    """Lengths from 3 on at which the last query first prefers the wrong key, on the inputs of `LinearPositionHead`."""
    lengths = np.arange(3, longest + 1)
    rows, last = torch.arange(len(lengths)), torch.from_numpy(lengths) - 1
    once = torch.zeros(len(lengths), longest, dtype=torch.long)
    once[:, 0] = 1
    twice = once.clone()
    twice[rows, last - 1] = 2
    exact = copy.deepcopy(model).double()
    wrong = []
    for operations, right, rival in ((once, torch.zeros_like(last), last), (twice, last - 1, torch.zeros_like(last))):
        with torch.no_grad(), record(exact, "pattern") as cache:
            exact(operations)
        attention = cache["pattern"][rows, last]
        wrong.append(attention[rows, right] <= attention[rows, rival].clamp(min=1e-300))
    first, second = (int(lengths[int(each.int().argmax())]) if each.any() else None for each in wrong)
    return first, second


def _attention_on(model: LinearPositionMemory, operations: Tensor, key: int) -> np.ndarray:
    """Attention of every query from `key` on to that key."""
    with torch.no_grad(), record(model, "pattern") as cache:
        model(operations.unsqueeze(0))
    return cache["pattern"][0, key:, key].numpy()


@dataclass(frozen=True)
class StoryAccuracy:
    """Accuracy on light-switch stories of each length, for models of words: "accuracy" (member, length)."""

    lengths: tuple[int, ...]
    prompts: int

    def __call__(self, now: Snapshot) -> dict[str, np.ndarray]:
        readers = [WordReader(member.to(now.device), VOCABULARY) for member in now.model.members()]
        return {"accuracy": np.array([story_accuracy(each, self.lengths, self.prompts) for each in readers])}


def story_accuracy(reader: Reader, lengths: Sequence[int], prompts: int, demonstration: int = 0) -> list[float]:
    """Accuracy of a reader on the same random stories of each length."""
    rates = [
        light_switch_accuracy(
            reader, length=length, prompts=prompts, demonstration=demonstration, rng=rng(0, "stories", length)
        )
        for length in lengths
    ]
    return [1 - rate.rate for rate in rates]
