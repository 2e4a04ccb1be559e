"""A long queue of members through a population of fixed size: `stream`.

Each slot of the population holds one member; when it is done, the next of the queue takes the slot, with fresh
weights, a fresh optimiser and its clock at zero. The other members are not affected, and a recorded step (see
recording.py) stays valid, since everything that changes is a tensor.

The batch of a member's step t is the t-th batch that the given generator draws, whenever the member began: results do
not depend on the number of slots, nor on the order of the queue. All batches are therefore drawn once and kept on the
device; where they do not fit, members start together in waves and share each step's batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from sandlab.errors import BadInput, integer, number
from sandlab.learning._engine.evaluation import Evaluate, make_evaluation
from sandlab.learning._engine.loop import Loop
from sandlab.learning._engine.population_step import PopulationStep
from sandlab.learning._engine.sources import Pool, Source, tensors_of
from sandlab.learning._engine.step import UpdateRule
from sandlab.learning.history import History
from sandlab.learning.objectives import LossFunction, Objective, as_objective
from sandlab.learning.optim import SGD, OptimizerConfig, make_optimizer
from sandlab.learning.population import Population, build_member
from sandlab.learning.schedules import ReduceLROnPlateau, Schedule, factors
from sandlab.learning.stopping import EarlyStop
from sandlab.worlds.base import Batch, World

__all__ = ["Finished", "Member", "stream"]

# Weights, gradients, two moments, an average: rows of the same size. A backward pass holds about as much as was saved.
_ROWS, _BACKWARD = 5, 2.0


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
        """Give a slot to the next member; its index in the queue, None when none is left."""
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


def stream(
    factory: Callable[[int], nn.Module],
    queue: Iterable[Member | Mapping[str, Any]],
    world: World,
    *,
    steps: int,
    rng: torch.Generator,
    slots: int | str = 64,
    batch_size: int = 64,
    objective: str | Objective | LossFunction | None = None,
    optimizer: str = "adamw",
    betas: tuple[float, float] = (0.9, 0.999),
    momentum: float = 0.0,
    schedule: Schedule = "constant",
    warmup: int = 0,
    clip: float | None = None,
    evaluate: Evaluate | None = None,
    every: int | None = None,
    stop: EarlyStop | None = None,
    finished: Callable[[Finished], object] | None = None,
    keep: bool = False,
    device: str | torch.device = "cpu",
    precision: str = "float32",
    compile: bool = False,
    progress: bool | None = None,
) -> list[Finished]:
    """Train every member of a queue, `slots` at a time; the results come in the order of the queue.

    Each member's history equals that of `train(model, world, steps=…, rng=…)` with the generator in the state given
    here and the same learning rate, decay and scale: the number of slots changes nothing but the time it takes. The
    schedule runs over `steps`, of which a member may do fewer (`Member.steps`, or early stopping at an evaluation).

    queue      `Member`s, or dictionaries of their fields
    slots      how many train at once; "auto": as many as fit into the device's memory
    evaluate   as for `train`: every `every` updates of each member and at its end
    stop       applied to each member separately
    finished   called with each `Finished`, its model included, as soon as it is done
    keep       leave the trained models in the results
    """
    members = [entry if isinstance(entry, Member) else Member(**entry) for entry in queue]
    integer("steps", steps, low=1)
    if not members:
        return []
    device, goal = torch.device(device), as_objective(objective)
    chosen = make_optimizer(optimizer, OptimizerConfig((betas[0], betas[1]), momentum))
    if not chosen.on_device:
        raise BadInput(f"optimizer must be 'adamw', 'adam', 'sgd' or 'momentum' to stream members, got {optimizer!r}")
    source = Source(world, batch_size, rng, goal, device)
    if slots == "auto":
        slots = fitting_members(factory, source.peek(0), goal)
    slots = min(integer("slots", slots, low=1), len(members))
    population = Population(factory, seeds=[member.seed for member in members[:slots]]).to(device)
    rates = torch.zeros(slots, dtype=torch.float64)
    table = factors(schedule, max(steps, *(member.steps or steps for member in members)), warmup)
    step = PopulationStep(population, goal, UpdateRule(chosen, rates, rates.clone(), table, clip))
    together = stop is None and len({member.steps for member in members}) == 1
    size = sum(value.nbytes for value in tensors_of(source.peek(0))) * len(table)
    pooled = not together and not source.varies and size <= 0.25 * available_bytes(device)
    line = Queue(step, factory, members, steps, waves=not pooled, finished=finished, keep=keep)
    loop = Loop(
        step=step,
        source=Pool(source, len(table), step.clock) if pooled else source,
        steps=steps,
        every=max(1, steps // 20) if every is None else integer("every", every, low=1),
        evaluation=make_evaluation(evaluate, goal, device, slots),
        stop=stop,
        plateau=schedule if isinstance(schedule, ReduceLROnPlateau) else None,
        nan="continue",
        precision=precision,
        compile=compile,
        queue=line,
    )
    loop.run(progress)
    return [line.results[index] for index in range(len(members))]


def bytes_per_member(factory: Callable[[int], nn.Module], batch: Batch, objective: Objective) -> int:
    """Memory that one more member needs for a training step: its rows of weights, and what the backward pass keeps.

    Counted, not guessed: the tensors that autograd saves during one forward pass of two members, each storage once.
    """
    population = Population(factory, seeds=[0, 1]).to(batch.inputs.device)
    still = torch.zeros(2, dtype=torch.float64)
    step = PopulationStep(population, objective, UpdateRule(SGD(), still, still, torch.ones(1)))
    step.strategy = "native" if population.carries_members else "vmap"
    saved: dict[int, int] = {}

    def keep(value: Tensor) -> Tensor:
        storage = value.untyped_storage()
        saved[storage.data_ptr()] = storage.nbytes()
        return value

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda value: value):
        step.compute(batch)
    rows = sum(row.nbytes for row in step.rows) // 2
    return int(_ROWS * rows + _BACKWARD * sum(saved.values()) / 2)


def available_bytes(device: torch.device) -> int:
    """Memory that is free on the device."""
    if device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(device)
        reserved = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return free + reserved
    with open("/proc/meminfo") as file:
        facts = dict(line.split(":") for line in file)
    return int(facts["MemAvailable"].split()[0]) * 1024


def fitting_members(
    factory: Callable[[int], nn.Module], batch: Batch, objective: Objective, *, share: float = 0.7, most: int = 1024
) -> int:
    """As many members as fit into `share` of the free memory, at least one and at most `most`."""
    each = max(1, bytes_per_member(factory, batch, objective))
    return max(1, min(most, int(share * available_bytes(batch.inputs.device) / each)))
