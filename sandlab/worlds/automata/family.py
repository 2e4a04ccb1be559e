"""What the named automata share: a table that is computed from a few parameters."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Int

from sandlab.errors import choice
from sandlab.worlds.automata.machine import Automaton

__all__ = ["Family"]

Observations = dict[str, Callable[[Any], Sequence[int]]]
Table = Sequence[Sequence[int]] | np.ndarray


@dataclass(frozen=True, kw_only=True)
class Family(Automaton):
    """An automaton whose transitions follow from its parameters; `label` picks one of the family's observations.

    A subclass checks its parameters and returns the table in `build`, and lists its observations in `observations`.
    """

    transitions: tuple[tuple[int, ...], ...] = field(init=False, default=(), repr=False, compare=False)
    label: str = "state"
    observations: ClassVar[Observations] = {}

    def __post_init__(self) -> None:
        self._set("transitions", self.build())
        choice("label", self.label, ("state", *self.observations))
        super().__post_init__()

    def build(self) -> Table:
        """transitions[state][letter], after checking the parameters."""
        raise NotImplementedError

    def default_labels(self) -> Int[np.ndarray, "state"]:
        if self.label == "state":
            return super().default_labels()
        return np.array(self.observations[self.label](self), dtype=np.int64)
