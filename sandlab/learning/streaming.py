"""A long queue of members through a population of fixed size: `stream`.

Each slot of the population holds one member; when it is done, the next of the queue takes the slot, with fresh
weights, a fresh optimiser and its clock at zero. The other members are not affected, and a recorded step (see
recording.py) stays valid, since everything that changes is a tensor.

Every member sees what it would see alone. The batch of a member's step t is the t-th batch that the given generator
draws, whenever the member began: results do not depend on the number of slots, nor on the order of the queue. All
batches are therefore drawn once and kept on the device; where they do not fit, members start together in waves and
share each step's batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import nn

from sandlab.errors import BadInput, integer
from sandlab.learning._engine.evaluation import Evaluate, make_evaluation
from sandlab.learning._engine.loop import Loop
from sandlab.learning._engine.memory import available_bytes, fitting_members
from sandlab.learning._engine.population_step import PopulationStep
from sandlab.learning._engine.queue import Finished, Member, Queue
from sandlab.learning._engine.sources import Pool, Source, tensors_of
from sandlab.learning._engine.step import UpdateRule
from sandlab.learning.objectives import LossFunction, Objective, as_objective
from sandlab.learning.optim import OptimizerConfig, make_optimizer
from sandlab.learning.population import Population
from sandlab.learning.schedules import ReduceLROnPlateau, Schedule, factors
from sandlab.learning.stopping import EarlyStop
from sandlab.worlds.base import World

__all__ = ["Finished", "Member", "stream"]


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
    longest = max(member.steps or steps for member in members)
    table = factors(schedule, max(steps, longest), warmup)
    step = PopulationStep(population, goal, UpdateRule(chosen, rates, rates.clone(), table, clip))
    together = stop is None and len({member.steps for member in members}) == 1
    pooled = not together and not source.varies and _fits(source, len(table))
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


def _fits(source: Source, steps: int) -> bool:
    """Whether the batches of all steps take at most a quarter of the free memory."""
    size = sum(value.nbytes for value in tensors_of(source.peek(0))) * steps
    return size <= 0.25 * available_bytes(source.device)
