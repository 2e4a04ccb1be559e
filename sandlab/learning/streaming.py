"""A long queue of members through a population of fixed size: `stream`.

Each place of the population holds one member; when it has finished, the next of the queue takes the place, with fresh
weights, a fresh optimiser and its clock at zero. The others do not notice, and a recorded step (see engines.py) stays
valid, since everything that changes is a tensor.

Every member sees what it would see alone. The batch of a member's step t is the t-th batch that the given generator
draws, whenever the member began: results do not depend on the number of places, nor on the order of the queue. All
batches are therefore drawn once, kept on the device, and each place reads the one its clock points to; where they do
not fit, members start together in waves and share each step's batch.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from sandlab.errors import BadInput, integer, number
from sandlab.learning._engine.backends import StackedModels
from sandlab.learning._engine.engines import make_engine
from sandlab.learning._engine.evaluation import make_evaluation
from sandlab.learning._engine.memory import available_bytes, fitting_members
from sandlab.learning._engine.precision import computing
from sandlab.learning._engine.sources import Source
from sandlab.learning._engine.steps import TrainState
from sandlab.learning.history import History
from sandlab.learning.objectives import MemberBatch, Objective, as_objective
from sandlab.learning.optim import Settings, TorchOptimizer, make_optimizer
from sandlab.learning.population import Population, build_member
from sandlab.learning.schedules import Schedule, factors
from sandlab.progress import Progress
from sandlab.worlds.base import Batch

__all__ = ["Finished", "Member", "stream"]


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
    """A member that has been trained: its entry, its history and, when asked for, its weights."""

    member: Member
    history: History
    model: Any = None


class Pool:
    """The batches of all steps, drawn once; `draw` gives each place the one its clock points to."""

    def __init__(self, source: Source, steps: int) -> None:
        self.world, self.rng = None, source.rng
        first = source.draw(0)
        self.tensors = [value.new_empty((steps, *value.shape)) for value in _parts(first)]
        self.names = tuple(first.truth)
        for step in range(steps):
            batch = first if step == 0 else source.draw(step)
            for kept, value in zip(self.tensors, _parts(batch)):
                if kept.shape[1:] != value.shape:
                    raise BadInput("the world's batches differ in length from step to step: use one length to stream")
                kept[step] = value
        self.clock: Tensor | None = None

    def draw(self, step: int) -> MemberBatch:
        assert self.clock is not None
        place = self.clock.clamp(max=len(self.tensors[0]) - 1)
        inputs, targets, mask, *truth = (kept[place] for kept in self.tensors)
        return MemberBatch(inputs, targets, mask, dict(zip(self.names, truth)))

    def peek(self, step: int) -> MemberBatch:
        return self.draw(step)


def stream(
    factory: Callable[[int], nn.Module],
    queue: Iterable[Member | dict[str, Any]],
    world: Any,
    *,
    steps: int,
    rng: torch.Generator,
    slots: int | str = 64,
    batch_size: int = 64,
    objective: str | Objective | None = None,
    optimizer: str = "adamw",
    betas: tuple[float, float] = (0.9, 0.999),
    momentum: float = 0.0,
    schedule: Schedule = "constant",
    warmup: int = 0,
    clip: float | None = None,
    evaluate: Any = None,
    every: int | None = None,
    stop: Any = None,
    finished: Callable[[Finished], Any] | None = None,
    keep: bool = False,
    device: str | torch.device = "cpu",
    precision: str = "float32",
    compile: bool = False,
    progress: bool | None = None,
) -> list[Finished]:
    """Train every member of a queue, `slots` at a time; the results come in the order of the queue.

    Each member's history equals that of `train(model, world, steps=…, rng=…)` with the generator in the state given
    here, the same learning rate, decay and scale: the number of slots changes nothing but the time it takes. The
    schedule runs over `steps`, of which a member may do fewer (`Member.steps`, or early stopping at an evaluation).

    queue      `Member`s, or dictionaries of their fields
    slots      how many train at once; "auto": as many as fit into the device's memory
    evaluate   as for `train`, every so many updates of each member and at its end
    stop       as for `train`; each member has a rule of its own
    finished   called with each `Finished`, its model included, as soon as it is done
    keep       leave the trained models in the results
    """
    entries = [entry if isinstance(entry, Member) else Member(**entry) for entry in queue]
    integer("steps", steps, low=1)
    longest = max([entry.steps or steps for entry in entries], default=0)
    if not entries:
        return []
    device, goal = torch.device(device), as_objective(objective)
    rule = make_optimizer(optimizer, Settings((betas[0], betas[1]), momentum))
    if isinstance(rule, TorchOptimizer):
        raise BadInput(f"optimizer must be 'adamw', 'adam', 'sgd' or 'momentum' to stream members, got {optimizer!r}")
    source = Source(world, batch_size, rng, goal, device)
    if slots == "auto":
        slots = fitting_members(factory, source.peek(0), goal)
    slots = min(integer("slots", slots, low=1), len(entries))
    population = Population(factory, seeds=[entry.seed for entry in entries[:slots]]).to(device)
    rates = torch.zeros(slots, dtype=torch.float64)
    table = factors(schedule, max(steps, longest), warmup)
    state = TrainState(StackedModels(population), goal, rule, rates, rates.clone(), table, clip)
    evaluation = make_evaluation(evaluate, goal, device, slots)
    every = max(1, steps // 20) if every is None else integer("every", every, low=1)
    flow = _Flow(factory, entries, state, source, steps, every, evaluation, stop, finished, keep)
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []), computing(precision, device):
        torch.manual_seed(rng.initial_seed() & 0x7FFFFFFFFFFFFFFF)  # dropout
        flow.go(progress, compile)
    return flow.results


class _Flow:
    """The state of one call of `stream`."""

    def __init__(
        self,
        factory: Callable[[int], nn.Module],
        entries: list[Member],
        state: TrainState,
        source: Source,
        steps: int,
        every: int,
        evaluation: Any,
        stop: Any,
        finished: Any,
        keep: bool,
    ) -> None:
        self.factory, self.entries, self.state, self.source = factory, entries, state, source
        self.steps, self.every, self.evaluation, self.stop = steps, every, evaluation, stop
        self.finished, self.keep = finished, keep
        self.crowd: Any = state.backend
        self.slots = len(self.crowd)
        self.next = 0
        self.held: list[int | None] = [None] * self.slots
        self.rules: list[Any] = [None] * self.slots
        self.seen: list[list[tuple[int, dict[str, float]]]] = [[] for _ in range(self.slots)]
        self.found: dict[int, Finished] = {}
        self.start = source.rng.get_state()

    @property
    def results(self) -> list[Finished]:
        return [self.found[place] for place in range(len(self.entries))]

    def go(self, show: bool | None, compile: bool) -> None:
        progress = Progress(len(self.entries), f"streaming through {self.slots} places", show=show, unit="members")
        pool = self._pool()
        self._refill(list(range(self.slots)))
        draws: Any = self.source if pool is None else pool
        self.crowd.choose(draws.peek(0), self.state.objective)
        if compile:
            self.state.compile()
        engine = make_engine(self.state, draws)
        step = 0
        while self._busy():
            self._look()
            if not self._harvest():
                engine.advance(step, self.every)
                step += self.every
                continue
            progress(len(self.found))
            if pool is not None or not self._busy():  # in waves, places are filled again when the last one is done
                self._refill([slot for slot in range(self.slots) if self.held[slot] is None])
                if pool is None:
                    self.source.rng.set_state(self.start)
                    step = 0
        progress.close()

    def _busy(self) -> bool:
        return any(entry is not None for entry in self.held)

    def _pool(self) -> Pool | None:
        """All batches on the device, or None when they do not fit or every member starts and ends with the others."""
        batch = self.source.peek(0)
        size = sum(value.nbytes for value in _parts(batch)) * len(self.state.table)
        same = self.stop is None and len({entry.steps for entry in self.entries}) == 1
        if same or hasattr(self.source.world, "at") or size > 0.25 * available_bytes(self.source.device):
            return None
        pool = Pool(self.source, len(self.state.table))
        pool.clock = self.state.clock
        return pool

    def _refill(self, slots: list[int]) -> None:
        """The next members of the queue take these places; what is left over rests."""
        state = self.state
        with torch.no_grad():
            for slot in slots:
                entry = self.entries[self.next] if self.next < len(self.entries) else None
                self.held[slot] = None if entry is None else self.next
                state.live[slot] = entry is not None
                state.clock[slot] = 0
                if entry is None:
                    continue
                self.next += 1
                model = build_member(self.factory, entry.seed, entry.init_scale)
                self.crowd.model.set_member(slot, model)
                for value in state.optimizer.state.values():
                    value[slot].zero_()
                state.lr[slot], state.decay[slot] = entry.lr, entry.weight_decay
                state.limit[slot] = entry.steps or self.steps
                state.losses[:, slot] = torch.nan
                self.rules[slot], self.seen[slot] = copy.deepcopy(self.stop), []

    def _look(self) -> None:
        """Evaluate all places; a member that a rule stops stands still from here on."""
        if self.evaluation is None:
            return
        metrics, clock = self.evaluation(self.crowd.model), self.state.clock.tolist()
        for slot, entry in enumerate(self.held):
            if entry is None or (self.seen[slot] and self.seen[slot][-1][0] == clock[slot]):
                continue
            own = {name: value[slot : slot + 1] for name, value in metrics.items()}
            self.seen[slot].append((clock[slot], {name: float(value[0]) for name, value in own.items()}))
            rule = self.rules[slot]
            if rule is not None and bool(np.all(rule(clock[slot], own))):
                self.state.live[slot] = False

    def _harvest(self) -> bool:
        """Take out the members that are done."""
        moving = self.state.moving().tolist()
        ending = [slot for slot, entry in enumerate(self.held) if entry is not None and not moving[slot]]
        if not ending:
            return False
        losses, clock = self.state.losses.double().cpu().numpy(), self.state.clock.tolist()
        for slot in ending:
            place = self.held[slot]
            assert place is not None
            entry, end, seen = self.entries[place], clock[slot], self.seen[slot]
            names = list(seen[0][1]) if seen else []
            history = History(
                steps=np.arange(end),
                loss=losses[:end, slot].copy(),
                eval_steps=np.array([step for step, _ in seen], dtype=int),
                metrics={name: np.array([values[name] for _, values in seen]) for name in names},
                stopped_at=end if end < (entry.steps or self.steps) else None,
            )
            wanted = self.keep or self.finished is not None
            done = Finished(entry, history, self.crowd.model.member(slot).cpu() if wanted else None)
            if self.finished is not None:
                self.finished(done)
            self.found[place] = done if self.keep else replace(done, model=None)
            self.held[slot] = None
            self.state.live[slot] = False
        return True


def _parts(batch: Batch) -> list[Tensor]:
    return [batch.inputs, batch.targets, batch.mask, *batch.truth.values()]
