"""The queue of a stream: members that wait for a slot of the population, and those that are done."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from torch import nn

from sandlab.errors import integer, number
from sandlab.learning._engine.population_step import PopulationStep
from sandlab.learning.history import History
from sandlab.learning.population import build_member

__all__ = ["Finished", "Member", "Queue"]


@dataclass(frozen=True)
class Member:
    """One entry of the queue: a seed and what may differ from the other members."""

    seed: int
    lr: float = 1e-3
    weight_decay: float = 0.0
    init_scale: float = 1.0
    steps: int | None = None

    def __post_init__(self) -> None:
        integer("seed", self.seed, low=0)
        for name in ("lr", "weight_decay"):
            number(name, getattr(self, name), low=0.0)


@dataclass(frozen=True)
class Finished:
    """A trained member: its entry, its history and, when it is to be kept, its model."""

    member: Member
    history: History
    model: nn.Module | None = None


@dataclass
class Queue:
    """Members in the order in which they get a slot of the population.

    steps      updates of the members that do not say how many they do
    waves      slots are filled again only when all are free: members that share each step's batch must start together
    finished   called with each `Finished`; keep: leave the models in `results`
    """

    step: PopulationStep
    factory: Callable[[int], nn.Module]
    members: Sequence[Member]
    steps: int
    waves: bool
    finished: Callable[[Finished], object] | None = None
    keep: bool = False
    entered: int = 0
    results: dict[int, Finished] = field(default_factory=dict)

    def enter(self, slot: int) -> int | None:
        """Give a slot to the next member; its index in the queue, None when nobody is left."""
        index = self.entered
        if index == len(self.members):
            return None
        member = self.members[index]
        model = build_member(self.factory, member.seed, member.init_scale)
        self.step.replace_member(slot, model, member.lr, member.weight_decay, self.limit(index))
        self.entered += 1
        return index

    def limit(self, index: int) -> int:
        """How many updates a member does."""
        return self.members[index].steps or self.steps

    def leave(self, slot: int, index: int, history: History) -> None:
        """Take a trained member out of its slot."""
        kept = self.keep or self.finished is not None
        done = Finished(self.members[index], history, self.step.population.member(slot).cpu() if kept else None)
        if self.finished is not None:
            self.finished(done)
        self.results[index] = done if self.keep else replace(done, model=None)
        self.step.rest(slot)
