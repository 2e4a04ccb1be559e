"""Bounded bracket languages as automata: the state is the stack."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from sandlab.errors import BadInput, integer
from sandlab.registry import register
from sandlab.worlds.automata._running.machines import Runner
from sandlab.worlds.automata._running.words import bounds
from sandlab.worlds.automata.family import Family, Observations, Table

__all__ = ["DyckStack"]

BRACKETS = ("()", "[]", "{}", "<>")
MOST_STACKS = 100_000


@register("worlds")
@dataclass(frozen=True, kw_only=True)
class DyckStack(Family):
    """Brackets of k types nested at most n deep; the state is the stack, Σ_{i≤n} kⁱ of them (Dyck_{n,k}).

    Letters 0…k−1 open, k…2k−1 close. Words are legal: uniform over the openings (when the stack is not full) and the
    one closing bracket that matches (when it is not empty). An illegal letter leads into a sink that data never reach.

    label  "slots": one of (k+1)ⁿ classes, the content of each of the n slots; "state": the stack's number; "top":
           the type on top, 0 when the stack is empty
    """

    depth: int = 4
    types: int = 2
    label: str = "slots"
    observations: ClassVar[Observations] = {
        "slots": lambda self: self._slot_codes(),
        "top": lambda self: [stack[-1] if stack else 0 for stack in self.stacks()] + [0],
    }

    def stacks(self) -> list[tuple[int, ...]]:
        """Every stack, bottom first, types numbered from 1; shorter ones first."""
        heights = range(self.depth + 1)
        return [stack for height in heights for stack in itertools.product(range(1, self.types + 1), repeat=height)]

    def build(self) -> Table:
        integer("depth", self.depth, 1)
        integer("types", self.types, 1)
        count = sum(self.types**height for height in range(self.depth + 1))
        if count > MOST_STACKS:
            raise BadInput(
                f"depth {self.depth} with {self.types} types has {count} stacks, at most {MOST_STACKS} can be states: "
                "take sl.worlds.Dyck, whose stacks need no table"
            )
        stacks = self.stacks()
        number = {stack: state for state, stack in enumerate(stacks)}
        sink = len(stacks)
        rows = []
        for stack in stacks:
            opened = [number.get((*stack, kind), sink) for kind in range(1, self.types + 1)]
            closed = [number[stack[:-1]] if stack[-1:] == (kind,) else sink for kind in range(1, self.types + 1)]
            rows.append(opened + closed)
        return [*rows, [sink] * (2 * self.types)]

    def _slot_codes(self) -> list[int]:
        base = self.types + 1
        codes = [sum(kind * base**slot for slot, kind in enumerate(stack)) for stack in self.stacks()]
        unused = next(code for code in itertools.count() if code not in set(codes))
        return [*codes, unused]

    @property
    def outputs(self) -> int:
        if self.label == "slots" and self.observation is None:
            return max((self.types + 1) ** self.depth, int(self.labels.max()) + 1)
        return super().outputs

    def default_letters(self) -> list[str]:
        if self.types <= len(BRACKETS):
            return [pair[side] for side in (0, 1) for pair in BRACKETS[: self.types]]
        return [f"{bracket}{kind}" for bracket in "()" for kind in range(1, self.types + 1)]

    def default_states(self) -> list[str]:
        return ["".join(map(str, stack)) or "ε" for stack in self.stacks()] + ["✗"]

    @cached_property
    def _state_of_code(self) -> Int[Tensor, "code"]:
        table = torch.full(((self.types + 1) ** self.depth,), self.states - 1)
        codes = torch.tensor(self._slot_codes()[:-1])
        table[codes] = torch.arange(len(codes))
        return table

    @cached_property
    def _walk(self) -> Runner:
        """The depth alone: letter 1 goes up unless the stack is full, letter 0 down unless it is empty."""
        levels = range(self.depth + 1)
        return Runner(np.array([[max(d - 1, 0) if d else 1, d + 1 if d < self.depth else d - 1] for d in levels]))

    def letter_probs(self) -> Float[np.ndarray, "state letter"]:
        legal = self.table != self.states - 1
        # No letter is legal in the sink, which data never reach: any distribution will do.
        legal[-1] = True
        return legal / legal.sum(1, keepdims=True)

    def draw(self, n: int, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        """Depths first, as a random walk between walls; then the types of the openings; the closings follow.

        The stack at t holds in slot j the type of the latest opening that reached depth j, for j up to the depth.
        """
        if chosen := self._draws():
            raise BadInput(f"brackets are drawn uniformly among the legal ones: leave out {', '.join(chosen)}")
        time = bounds(self.length)[1]
        if self.start != 0:
            raise BadInput(f"start must be 0, the empty stack, to draw legal words, got {self.start}")
        upwards = torch.rand(n, time, generator=rng, device=rng.device) < self.types / (self.types + 1)
        depths = self._walk.run(upwards.long(), 0)
        before = torch.cat([torch.zeros_like(depths[:, :1]), depths[:, :-1]], 1)
        opens = depths > before
        kinds = torch.randint(self.types, (n, time), generator=rng, device=rng.device)
        slots = self._slots(opens, depths, kinds)
        closing = slots.gather(-1, depths.clamp(max=self.depth - 1).unsqueeze(-1)).squeeze(-1)
        words = torch.where(opens, kinds, closing + self.types)
        filled = (slots + 1) * (torch.arange(self.depth, device=rng.device) < depths.unsqueeze(-1))
        base = (self.types + 1) ** torch.arange(self.depth, device=rng.device)
        return words, self._state_of_code.to(rng.device)[(filled * base).sum(-1)]

    def _slots(self, opens: Tensor, depths: Tensor, kinds: Tensor) -> Int[Tensor, "example time slot"]:
        """The type that last entered each slot (arbitrary before the first)."""
        positions = torch.arange(opens.shape[1], device=opens.device).unsqueeze(-1)
        slots = torch.arange(1, self.depth + 1, device=opens.device)
        entered = opens.unsqueeze(-1) & (depths.unsqueeze(-1) == slots)
        latest = torch.where(entered, positions, 0).cummax(1).values
        return kinds.unsqueeze(-1).expand_as(latest).gather(1, latest)
