"""The training loop: updates, evaluations, stopping, checkpoints, progress, and members that take turns (streaming)."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from sandlab.errors import BadInput
from sandlab.learning._engine.checkpoints import Checkpoint, restore, save
from sandlab.learning._engine.evaluation import Evaluation, Metrics
from sandlab.learning._engine.identity import run_identity
from sandlab.learning._engine.interruptions import Interruptions
from sandlab.learning._engine.precision import computing
from sandlab.learning._engine.scratch import OutOfTime, out_of_time
from sandlab.learning._engine.sources import Source
from sandlab.learning._engine.step import Step
from sandlab.learning.history import History
from sandlab.learning.objectives import MemberBatch
from sandlab.learning.population import Population
from sandlab.learning.schedules import ReduceLROnPlateau
from sandlab.learning.stopping import EarlyStop, Tracker
from sandlab.progress import ProgressBar

if TYPE_CHECKING:
    from sandlab.learning.streaming import Queue

__all__ = ["Callback", "Diverged", "Loop", "StopRule"]

# For a population: the population and arrays over members; for one model: the module and numbers.
Callback: TypeAlias = Callable[[int, Any, dict[str, Any]], object]
StopRule: TypeAlias = EarlyStop | Callable[[int, Metrics], object]

# Seconds of remaining work from which on half a minute of compiling pays.
COMPILE_PAYS = 120.0
# Recorded updates between two readings of the clock.
STRIDE = 64


class Diverged(FloatingPointError):
    """A loss became infinite or undefined."""


@dataclass(frozen=True)
class Measured:
    """One evaluation: the updates done before it, the member measured in each slot (−1: none), its metrics."""

    step: int
    members: np.ndarray
    metrics: Metrics


@dataclass
class Loop:
    """One training run. Each slot of the step holds a member; with a queue, the next one when it is done.

    done         updates done so far
    members      the member in each slot, −1 for none
    begun        updates done before the member of each slot started; limit: how many it does
    stopped_at   after how many updates the member of each slot was stopped, −1 when it was not
    """

    step: Step
    source: Source
    steps: int
    every: int
    evaluation: Evaluation | None = None
    callbacks: tuple[Callback, ...] = ()
    stop: StopRule | None = None
    plateau: ReduceLROnPlateau | None = None
    keep: str | None = None
    checkpoint: Checkpoint | None = None
    settings: str = ""
    nan: str = "raise"
    precision: str = "float32"
    compile: bool | None = None
    graph: bool | None = None
    queue: Queue | None = None
    done: int = 0
    evaluations: list[Measured] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.model, self.device, slots = self.step.model, self.step.device, len(self.step)
        self.members = np.arange(slots) if self.queue is None else np.full(slots, -1)
        self.begun, self.limit = np.zeros(slots, dtype=np.int64), np.full(slots, self.steps)
        self.stopped_at, self.evaluated_at = np.full(slots, -1), np.full(slots, -1)
        self.lr, self.factor = self.step.lr.cpu().numpy().copy(), np.ones(slots)
        self.kept = [row.clone() for row in self.step.rows] if self.keep is not None else []
        self.trackers = self._trackers(slots)
        self._source_begun, self._source_start = 0, self.source.rng.get_state()
        self._checked, self._read, self._text, self.saved = 0, 0.0, "", time.monotonic()
        self.identity: dict[str, str] = {}
        self.interruptions = Interruptions(self.checkpoint is not None)

    def _trackers(self, slots: int) -> dict[str, Tracker]:
        found: dict[str, Tracker] = {}
        if isinstance(self.stop, EarlyStop):
            found["stop"] = self.stop.tracker(slots)
        if self.plateau is not None:
            found["plateau"] = self.plateau.tracker(slots)
        if self.keep is not None:
            found["keep"] = Tracker(self.keep, slots)
        if found and self.evaluation is None:
            raise BadInput("early stopping, plateaus and best weights depend on a metric: give evaluate=held_out_batch")
        return found

    def run(self, show: bool | None = None) -> None:
        """Train to the end."""
        devices = [self.device] if self.device.type == "cuda" else []
        with self._bar(show) as bar, torch.random.fork_rng(devices=devices), computing(self.precision, self.device):
            # Dropout draws from torch's own generator: the run's seed decides it, and nothing outside is disturbed.
            torch.manual_seed(self.source.rng.initial_seed() & 0x7FFFFFFFFFFFFFFF)
            self.step.choose_strategy(self.source)
            if self.checkpoint is not None:
                self.identity = run_identity(self)
                restore(self, self.checkpoint)
            self._checked = self.done
            if self.queue is not None:
                self._fill(self.queue)
            self._prepare()
            with self.interruptions:
                self._updates(bar)
            if self.checkpoint is not None:
                save(self, Path(self.checkpoint.path))

    def _updates(self, bar: ProgressBar) -> None:
        while True:
            self._evaluate_if_due()
            if self.queue is not None and self._exchange(self.queue, bar):
                continue
            if not self.moving.any():
                return
            self._advance(bar)

    def _bar(self, show: bool | None) -> ProgressBar:
        many, queue = f"training {len(self.step)} members", self.queue
        if queue is not None:
            return ProgressBar(f"{many} at a time", len(queue.members), unit="members", show=show)
        return ProgressBar(many if len(self.step) > 1 else "training", self.steps, show=show)

    @property
    def moving(self) -> np.ndarray:
        """Which slots hold a member that is not done."""
        return (self.members >= 0) & (self.stopped_at < 0) & (self.done - self.begun < self.limit)

    def _prepare(self) -> None:
        """Compile updates and record them."""
        if not self.moving.any():
            return
        if self.step.on_gpu and not self.step.objective.reads_activations:
            self.step.fuse_attention()
        if self.compile:
            self.step.compile()
        if self.graph is not False:
            self.step.record(self.source)
        seconds = 0.0 if self.step.recording is None else self.step.recording.seconds
        if self.compile is None and seconds * (self.steps - self.done) > COMPILE_PAYS:
            self.step.compile()  # drops the recording, which holds the memory of a whole step
            self.step.record(self.source)

    def _advance(self, bar: ProgressBar) -> None:
        """Updates until the next evaluation."""
        stride = 1 if self.step.recording is None else STRIDE
        end = self.done + self.every - self.done % self.every
        end = end if self.queue is not None else min(end, self.steps)
        while self.done < end:
            count = min(stride, end - self.done, self._until_checkpoint())
            self.step.advance(self.source, self.done - self._source_begun, count)
            self.done += count
            if self.device.type == "cpu":  # elsewhere reading a loss would wait for the update
                self._check()
            if self.queue is None:
                bar.update(self.done, self._newest_loss())
            if self.checkpoint is not None:
                self._save_if_due(self.checkpoint)

    def _save_if_due(self, checkpoint: Checkpoint) -> None:
        over, ended = out_of_time(), self.interruptions.pending is not None
        if over or ended or checkpoint.due(self.done, self.saved):
            save(self, Path(checkpoint.path))
        if ended:
            self.interruptions.deliver()
        if over:
            raise OutOfTime(f"after {self.done} of {self.steps} updates, which are kept")

    def _until_checkpoint(self) -> int:
        every = None if self.checkpoint is None else self.checkpoint.every
        return STRIDE if every is None else every - self.done % every

    def _check(self) -> None:
        """Refuse to go on with a loss that is not a number."""
        since, self._checked = self._checked, self.done
        if self.nan == "continue" or self.done <= since:
            return
        fresh = self.step.losses[since : self.done]
        bad = ~torch.isfinite(fresh) & self.step.live
        if not bad.any():
            return
        step, member = bad.nonzero()[0].tolist()
        who = f" of member {member}" if isinstance(self.model, Population) else ""
        raise Diverged(
            f"the loss{who} became {float(fresh[step, member])} at step {since + step} (learning rate "
            f"{float(self.step.lr[member]):g}): lower it, clip the gradient, or pass nan='continue'"
        )

    def _newest_loss(self) -> str:
        """As text; read at most every two seconds, since on a GPU reading it waits for the update."""
        now = time.monotonic()
        if now - self._read > 2.0:
            self._read, self._text = now, f"loss {float(self.step.losses[self.done - 1].nanmean()):.4f}"
        return self._text

    def _evaluate_if_due(self) -> None:
        """Every `every` updates and at the end, for the members that have not been evaluated since."""
        if self.done % self.every == 0 or not self.moving.any():
            due = (self.members >= 0) & (self.evaluated_at != self.done)
            if due.any():
                self._evaluate(due)

    def _evaluate(self, slots: np.ndarray) -> None:
        """Measure, tell the callbacks, and act on what was measured."""
        self._check()
        metrics = self._measure()
        self.note(self.done, metrics, slots)
        better = {name: tracker.update(metrics, slots) for name, tracker in self.trackers.items()}
        if "keep" in better:
            self._keep_weights(better["keep"])
        if self.plateau is not None:
            self._reduce_rates(self.plateau, self.trackers["plateau"])
        self._tell(metrics)
        if self.stop is not None and self.moving.any():
            self._stop_members(self.stop, metrics)

    def note(self, done: int, metrics: Metrics, slots: np.ndarray | None = None) -> None:
        """Add an evaluation after `done` updates to the histories of the members in these slots (None: in all)."""
        slots = self.members >= 0 if slots is None else slots
        self.evaluations.append(Measured(done, np.where(slots, self.members, -1), metrics))
        self.evaluated_at[slots] = done

    def _measure(self) -> Metrics:
        if self.evaluation is None:
            return {}
        metrics = self.evaluation(self.model)
        if self.step.averages:
            self.step.swap_averages()
            metrics |= {f"ema/{name}": value for name, value in self.evaluation(self.model).items()}
            self.step.swap_averages()
        return metrics

    def _keep_weights(self, better: np.ndarray) -> None:
        chosen = torch.from_numpy(better).to(self.device)
        averaged = self.keep is not None and self.keep.startswith("ema/")
        for kept, row in zip(self.kept, self.step.averages if averaged else self.step.rows):
            kept[chosen] = row[chosen]

    def _reduce_rates(self, plateau: ReduceLROnPlateau, tracker: Tracker) -> None:
        late = tracker.waited > plateau.patience
        self.factor[late] *= plateau.factor
        tracker.waited[late] = 0
        self.step.lr.copy_(torch.from_numpy(self.lr * self.factor))

    def _tell(self, metrics: Metrics) -> None:
        if not self.callbacks:
            return
        # Before the first update this is the last row of the table, which is still empty.
        shown = {"train_loss": self.step.losses[self.done - 1].cpu().double().numpy(), **metrics}
        many = isinstance(self.model, Population)
        for callback in self.callbacks:
            callback(self.done, self.model, {name: v if many else float(v[0]) for name, v in shown.items()})

    def _stop_members(self, stop: StopRule, metrics: Metrics) -> None:
        if isinstance(stop, EarlyStop):
            ended = stop.stops(self.trackers["stop"], metrics)
        else:
            ended = np.broadcast_to(np.asarray(stop(self.done, metrics), dtype=bool), self.members.shape)
        ended = ended & self.moving
        self.stopped_at[ended] = (self.done - self.begun)[ended]
        self.step.live.copy_(torch.from_numpy((self.members >= 0) & (self.stopped_at < 0)))

    def _exchange(self, queue: Queue, bar: ProgressBar) -> bool:
        """Take members that are done out of their slots and fill these from the queue; whether there were any."""
        ended = np.flatnonzero((self.members >= 0) & ~self.moving).tolist()
        for slot in ended:
            queue.leave(slot, int(self.members[slot]), self.history(slot))
            self.members[slot] = -1
        if not ended:
            return False
        bar.update(len(queue.results))
        if queue.waves and (self.members >= 0).any():
            return True
        if queue.waves:  # the next wave sees the batches of the first
            self.source.rng.set_state(self._source_start)
            self._source_begun = self.done
        self._fill(queue)
        return True

    def _fill(self, queue: Queue) -> None:
        """Give free slots to the next members of the queue."""
        for slot in np.flatnonzero(self.members < 0).tolist():
            index = queue.enter(slot)
            if index is None:
                continue
            self.members[slot], self.begun[slot], self.limit[slot] = index, self.done, queue.limit(index)
            self.stopped_at[slot] = self.evaluated_at[slot] = -1
            self.lr[slot], self.factor[slot] = queue.members[index].lr, 1.0
            for tracker in self.trackers.values():
                tracker.reset(slot)

    def history(self, slot: int, deviation: float | None = None) -> History:
        """The record of the member in a slot."""
        begun, limit, stopped = int(self.begun[slot]), int(self.limit[slot]), int(self.stopped_at[slot])
        end = stopped if stopped >= 0 else min(self.done - begun, limit)
        measured = [each for each in self.evaluations if each.members[slot] == self.members[slot]]
        names = list(measured[0].metrics) if measured else []
        return History(
            steps=np.arange(end),
            loss=self.step.losses[:end, slot].double().cpu().numpy().copy(),
            eval_steps=np.array([min(each.step - begun, limit) for each in measured], dtype=int),
            metrics={name: np.array([each.metrics[name][slot] for each in measured]) for name in names},
            stopped_at=stopped if stopped >= 0 else None,
            deviation=deviation,
            averaged=self._member(self.step.averages, slot),
            best=self._member(self.kept, slot),
        )

    def _member(self, rows: list[Tensor], slot: int) -> dict[str, Tensor] | None:
        """One member's named weights out of rows."""
        if not rows:
            return None
        return {name: view[slot].clone() for name, view in self.step.layout.views(rows).items()}

    def histories(self) -> list[History]:
        """The record of each member."""
        deviations = self._deviations()
        return [self.history(slot, deviations[slot]) for slot in range(len(self.step))]

    def _deviations(self) -> list[float] | list[None]:
        """|loss − loss in float32| of each member's final weights on one batch, when another format was used."""
        if self.precision == "float32":
            return [None] * len(self.step)
        batch = self.source.peek(max(0, self.steps - 1))
        found = []
        for precision in (self.precision, "float32"):
            with torch.no_grad(), computing(precision, self.device):
                options = {"per_member": True} if isinstance(batch, MemberBatch) else {}
                logits = self.model(batch.inputs, **options)
                found.append(self.step.objective(logits, batch).double().reshape(-1).cpu())
        return (found[0] - found[1]).abs().tolist()
