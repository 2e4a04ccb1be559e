"""Several automata drawn in one go, so that a population can hold members of each."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from sandlab.errors import require
from sandlab.worlds.automata.machine import Automaton
from sandlab.worlds.base import Batch

__all__ = ["SideBySide"]


@dataclass(frozen=True)
class SideBySide:
    """Equal parts of several automata, one after another: with separate data, each member of a population has its own.

    The machines are put into one table of all their states, so that every position is a few look-ups for all words of
    all machines, on the device. Letters follow each machine's law in its current state, or its pattern; words have one
    length. Numbers of letters and classes are each machine's own.
    """

    worlds: tuple[Automaton, ...]

    def __post_init__(self) -> None:
        lengths = {world.length for world in self.worlds}
        one_length = len(lengths) == 1 and isinstance(self.worlds[0].length, int)
        require(one_length, "worlds", sorted(lengths, key=str), "of one length")
        plain = not any(world.scratchpad or world.count is not None for world in self.worlds)
        require(plain, "worlds", "a scratchpad or a count", "without scratchpad and count")

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        """n / machines words of each machine; what is left over is not drawn."""
        device = rng.device
        each, time = n // len(self.worlds), int(self.worlds[0].length)  # type: ignore[arg-type]
        following, edges, labels, starts, reveal, patterns, shares = self._tables(device)
        machine = torch.arange(each * len(self.worlds), device=device) // each
        point = torch.rand(len(machine), time, generator=rng, device=device)
        follows = torch.rand(len(machine), 1, generator=rng, device=device) < shares[machine].unsqueeze(1)
        fixed = torch.where(follows, patterns[machine], -1)
        state, words, states = starts[machine], [], []
        for place in range(time):
            drawn = (point[:, place, None] >= edges[state]).sum(1)
            letter = torch.where(fixed[:, place] >= 0, fixed[:, place], drawn)
            state = following.view(-1)[state * following.shape[1] + letter]
            words.append(letter)
            states.append(state)
        mask = torch.rand(point.shape, generator=rng, device=device) < reveal[machine].unsqueeze(1)
        return Batch(torch.stack(words, 1), labels[torch.stack(states, 1)], mask)

    def _tables(self, device: torch.device) -> list[Tensor]:
        """Next states, edges of the letters' shares, labels (by state); starts, shares and patterns (by machine)."""
        if device not in self._kept:
            self._kept[device] = [torch.as_tensor(table, device=device) for table in self._arrays()]
        return self._kept[device]

    @cached_property
    def _kept(self) -> dict[torch.device, list[Tensor]]:
        return {}

    def _arrays(self) -> list[np.ndarray]:
        letters = max(world.alphabet for world in self.worlds)
        firsts = np.cumsum([0, *(world.states for world in self.worlds)])
        following = np.zeros((firsts[-1], letters), dtype=np.int64)
        edges = np.full((firsts[-1], letters), 2.0, dtype=np.float32)
        for world, first in zip(self.worlds, firsts):
            rows = slice(first, first + world.states)
            following[rows, : world.alphabet] = world.table + first
            # The last letter takes what is left: its edge stays above every number drawn.
            edges[rows, : world.alphabet - 1] = np.cumsum(world.letter_law(), 1)[:, :-1]
        return [
            following,
            edges,
            np.concatenate([world.labels for world in self.worlds]),
            np.array([world.start + first for world, first in zip(self.worlds, firsts)]),
            np.array([world.reveal for world in self.worlds], dtype=np.float32),
            np.stack([_pattern(world) for world in self.worlds]),
            np.array([world.pattern_share for world in self.worlds], dtype=np.float32),
        ]


def _pattern(world: Automaton) -> Int[np.ndarray, "time"]:
    """The letters of the machine's pattern, or −1 at every position when it has none."""
    return np.resize(np.array([-1] if world.pattern is None else world.pattern, dtype=np.int64), int(world.length))  # type: ignore[arg-type]
