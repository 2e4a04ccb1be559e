"""The exact verifier of a regular language: any automaton."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from sandlab.decoding.verifiers.base import Verifier
from sandlab.errors import BadInput, integer
from sandlab.worlds.automata.machine import Automaton

__all__ = ["AutomatonVerifier"]


class AutomatonVerifier(Verifier):
    """V(s) = 1 if the automaton, after s, can still reach an accepting state.

    length   words have exactly so many letters (None: any number)
    eos      a token after the letters that ends a word; nothing may follow it
    skip     so many tokens at the beginning are no letters (a start token)
    A table reach[r][state] (can r more letters accept?) is computed once, backwards over r.
    """

    def __init__(self, machine: Automaton, *, length: int | None = None, eos: int | None = None, skip: int = 0) -> None:
        if machine.accepting is None:
            raise BadInput("the automaton has no accepting states: give accepting= to make it a language")
        table = np.asarray(machine.table)
        accepting = np.isin(np.arange(len(table)), machine.accepting)
        self.start_state, self.length, self.eos, self.skip = machine.start, length, eos, skip
        self.letters = table.shape[1]
        # One row and column more: a sink for what is not a letter.
        self.table = torch.from_numpy(np.pad(table, ((0, 1), (0, 1)), constant_values=len(table)))
        steps = len(table) if length is None else integer("length", length, low=0)
        rounds = [accepting]
        for _ in range(steps):
            rounds.append(rounds[-1][table].any(1) | (rounds[-1] if length is None else False))
        self.reach = torch.from_numpy(np.pad(np.array(rounds), ((0, 0), (0, 1))))

    def value(self, tokens: Tensor, lengths: Tensor, rows: Tensor) -> Tensor:
        states, ended, count = self._run(tokens, lengths)
        if self.length is None:
            left = torch.where(ended, 0, len(self.reach) - 1)
        else:
            left = self.length - count
            states = torch.where((left < 0) | (ended & (left > 0)), self.table.shape[0] - 1, states)
        return self.reach.to(tokens.device)[left.clamp(min=0), states].double()

    def outcome(self, tokens: Tensor, lengths: Tensor, rows: Tensor) -> Tensor:
        states, ended, count = self._run(tokens, lengths)
        whole = ended if self.eos is not None else torch.ones_like(ended)
        if self.length is not None:
            whole &= count == self.length
        return (self.reach.to(tokens.device)[0, states] & whole).double()

    def _run(self, tokens: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """State after each prefix, whether it has ended, and its number of letters."""
        table = self.table.to(tokens.device)
        state = torch.full_like(lengths, self.start_state)
        ended = torch.zeros_like(lengths, dtype=torch.bool)
        count = torch.zeros_like(lengths)
        sink = table.shape[0] - 1
        for place in range(self.skip, int(lengths.max()) if len(lengths) else 0):
            inside = place < lengths
            token = tokens[:, place]
            ends = inside & (token == self.eos if self.eos is not None else torch.zeros_like(ended)) & ~ended
            following = torch.where(ended, sink, table[state, token.clamp(max=self.letters)])
            state = torch.where(inside & ~ends, following, state)
            count = count + (inside & ~ends).long()
            ended |= ends
        return state, ended, count
