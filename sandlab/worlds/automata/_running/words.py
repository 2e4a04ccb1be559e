"""How the words of an automaton are drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from sandlab.worlds.automata._running.machines import MOST_MAPPED_STATES

if TYPE_CHECKING:
    from sandlab.worlds.automata.machine import Automaton

__all__ = ["bounds", "draw_words", "lasting_words"]

Words = Int[Tensor, "example time"]


def bounds(length: int | tuple[int, int]) -> tuple[int, int]:
    """Shortest and longest word."""
    return (length, length) if isinstance(length, int) else (length[0], length[-1])


def draw_words(machine: Automaton, n: int, rng: torch.Generator) -> tuple[Words, Words]:
    """Letters drawn as the machine's options say, and the states after each of them."""
    time = bounds(machine.length)[1]
    if machine.legal is not None:
        return _draw_legal(machine, torch.tensor(machine.legal, device=rng.device), n, time, rng)
    if machine.pattern is None and machine.count is None and machine.sampling_probs is None:
        return machine.runner.draw(n, time, machine.start, rng)
    if machine.count is not None:
        words = _draw_counted(machine.alphabet, n, time, machine.count, rng)
    else:
        words = _draw_independent(machine, n, time, rng)
        if machine.pattern is not None:
            repeats = -(-time // len(machine.pattern))
            pattern = torch.tensor(machine.pattern, device=rng.device).repeat(repeats)[:time]
            follows = torch.rand(n, 1, generator=rng, device=rng.device) < machine.pattern_share
            words = torch.where(follows, pattern, words)
    return words, machine.runner.run(words, machine.start)


def lasting_words(machine: Automaton, n: int, time: int, rng: torch.Generator) -> Words:
    """Words that keep as many states as possible within reach up to a random position; then letters are uniform.

    Uniform words lead a machine with a sink into it after a few letters, which hardly tests what simulates the machine.
    A letter is allowed when no other letter leads to a state from which more states can be reached; half of the words
    use only such letters to the end.
    """
    after = _reach(machine)[machine.table]
    allowed = torch.as_tensor(after == after.max(1, keepdims=True), device=rng.device)
    words, _ = _draw_legal(machine, allowed, n, time, rng)
    turn = torch.randint(2 * time, (n, 1), generator=rng, device=rng.device)
    uniform = torch.randint(machine.alphabet, (n, time), generator=rng, device=rng.device)
    return torch.where(torch.arange(time, device=rng.device) < turn, words, uniform)


def _reach(machine: Automaton) -> Int[np.ndarray, "state"]:
    """How many states can be reached from each state, itself included."""
    near = np.eye(machine.states, dtype=bool)
    near[np.arange(machine.states)[:, None], machine.table] = True
    while True:
        further = near @ near
        if (further == near).all():
            return near.sum(1)
        near = further


def _draw_independent(machine: Automaton, n: int, time: int, rng: torch.Generator) -> Words:
    if machine.sampling_probs is None:
        return torch.randint(machine.alphabet, (n, time), generator=rng, device=rng.device)
    probs = torch.tensor(machine.sampling_probs, device=rng.device, dtype=torch.float64)
    edges = (probs / probs.sum()).cumsum(0)[:-1]
    point = torch.rand(n, time, generator=rng, device=rng.device, dtype=torch.float64)
    return torch.bucketize(point, edges, right=True)


def _draw_counted(alphabet: int, n: int, time: int, count: int, rng: torch.Generator) -> Words:
    """Exactly `count` letters 1 at uniformly random positions; the other letters are uniform among the rest."""
    order = torch.rand(n, time, generator=rng, device=rng.device).argsort(1)
    ones = order.argsort(1) < count
    others = torch.randint(alphabet - 1, (n, time), generator=rng, device=rng.device)
    return torch.where(ones, 1, others + (others >= 1))


def _draw_legal(
    machine: Automaton, legal: Bool[Tensor, "state letter"], n: int, time: int, rng: torch.Generator
) -> tuple[Words, Words]:
    """Letters uniform among those that the current state allows.

    One uniform number per position determines the next state of every state: a random map. The maps are composed as
    letters are, and the number then tells which letter was drawn in the state before it.
    """
    table = torch.as_tensor(machine.table, device=rng.device)
    options = legal.sum(1)
    # letter_of[q, j]: the j-th letter that state q allows.
    letter_of = (~legal).to(torch.int8).argsort(dim=1, stable=True)
    next_of = table.gather(1, letter_of)
    point = torch.rand(n, time, generator=rng, device=rng.device, dtype=torch.float64)
    if machine.states <= MOST_MAPPED_STATES:
        rank = (point.unsqueeze(-1) * options).long()
        maps = next_of.T.gather(0, rank.view(-1, machine.states)).view(rank.shape)
        states = machine.runner.run_maps(maps, machine.start)
    else:
        states = torch.empty_like(point, dtype=torch.long)
        state = torch.full((n,), machine.start, device=rng.device)
        for position in range(time):
            state = next_of[state, (point[:, position] * options[state]).long()]
            states[:, position] = state
    before = torch.cat([torch.full_like(states[:, :1], machine.start), states[:, :-1]], 1)
    return letter_of[before, (point * options[before]).long()], states
