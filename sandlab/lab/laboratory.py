"""The laboratory a study runs in: it maps jobs, takes finished results from the cache, and runs the others."""

from __future__ import annotations

import time
import typing
import warnings
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar, overload

from sandlab.errors import BadInput
from sandlab.lab._exec.executors import Executor, Local
from sandlab.lab._exec.jobs import Done, Failed, Task, task, tasks_of
from sandlab.lab._exec.sources import lives_here_only
from sandlab.lab._store.cache import Damaged
from sandlab.lab._store.codec import Payload, decode
from sandlab.lab._store.files import FileLock
from sandlab.lab._store.store import Store
from sandlab.learning._engine.scratch import OutOfTime
from sandlab.studies.study import Lab

if TYPE_CHECKING:
    from sandlab.lab._exec.shards import Shard
    from sandlab.learning.experiment import Experiment, Runs

__all__ = ["Laboratory"]

Result = TypeVar("Result")
_TRIES = 8
_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 30.0
_GLANCE = 0.2
_ASK = 3.0  # seconds from one look at who holds what to the next
_GRACE = 30.0  # seconds after the end of the budget for trainings to save themselves


@dataclass
class Progress:
    """How far one `map` is: jobs in all, done here or found, running, tried again, and the executor's own numbers.

    elsewhere   who computes jobs that this run waits for: holder of their locks → how many
    """

    label: str
    total: int
    done: int = 0
    cached: int = 0
    running: int = 0
    failed: int = 0
    status: dict[str, int] = field(default_factory=dict)
    elsewhere: dict[str, int] = field(default_factory=dict)

    @property
    def details(self) -> str:
        """What there is to say besides how many are done."""
        extra = [f"{count} {name}" for name, count in self.status.items()]
        extra += [f"{self.cached} from the store"] if self.cached else []
        extra += [f"{self.running} running"] if self.running else []
        extra += [f"{self.failed} failed and tried again"] if self.failed else []
        extra += [f"{count} being computed by {holder}" for holder, count in self.elsewhere.items()]
        return ", ".join(extra)

    def __str__(self) -> str:
        return f"{self.label}: {self.done}/{self.total} jobs" + (f" ({self.details})" if self.details else "")


class Laboratory(Lab):
    """Runs the jobs of a study. Each result is kept under the hash of job, config and code, and never made twice.

    device    "cpu" or "cuda": a study puts it into its jobs' configs
    resume    take results that are in the store already; otherwise only those made since this laboratory opened
    budget    seconds after which no job begins and trainings save themselves; what is left raises `OutOfTime`
    progress  called with a `Progress` whenever something happens
    """

    def __init__(
        self,
        store: Store,
        executor: Executor,
        *,
        device: str = "cpu",
        resume: bool = True,
        budget: float | None = None,
        progress: Callable[[Progress], None] | None = None,
    ) -> None:
        self.store = store
        self.executor = executor
        self.device = device
        self.progress = progress or (lambda _progress: None)
        self.counts = {"jobs": 0, "cached": 0, "computed": 0, "retried": 0}
        self.resume = resume
        self.own: set[str] = set()
        self._deadline = None if budget is None else time.monotonic() + budget

    def map(
        self,
        job: Callable[..., Result],
        configs: Iterable[object],
        *,
        given: Iterable[object] | None = None,
        label: str = "",
    ) -> list[Result]:
        """Results of `job` for each config, in order; finished ones come from the cache."""
        tasks = tasks_of(job, configs, given, self.store.checkpoints)
        unique = {each.key: each for each in tasks}
        hint = typing.get_type_hints(job).get("return", object)
        found = _Round(self, unique, label or job.__name__, hint).finish()
        return [found[each.key] for each in tasks]

    @overload
    def train(self, experiments: Experiment, *, label: str = "", weights: bool = False) -> Runs: ...
    @overload
    def train(self, experiments: Sequence[Experiment], *, label: str = "", weights: bool = False) -> list[Runs]: ...
    def train(
        self, experiments: Experiment | Sequence[Experiment], *, label: str = "", weights: bool = False
    ) -> Runs | list[Runs]:
        """Train experiments: a job per seed on a CPU, all seeds at once on a GPU.

        Where jobs get GPUs of their own, and there are more of these than groups of seeds, the groups are split.
        """
        from sandlab.learning.experiment import Experiment

        several = [experiments] if isinstance(experiments, Experiment) else list(experiments)
        parts = self._shards(several, weights) if self.device != "cpu" and self.executor.gpus > 1 else []
        if any(parts):
            found = self._train_in_parts(several, parts, label or "training", weights)
        else:
            found = super().train(several, label=label, weights=weights)
        return found[0] if isinstance(experiments, Experiment) else found

    def _shards(self, experiments: list[Experiment], weights: bool) -> list[list[Shard]]:
        """For each experiment its shards, none when it is trained as a whole or was so before.

        What is in the store counts, too, when GPUs are divided: a run that goes on divides them as it did before.
        """
        from sandlab.lab._exec.shards import split
        from sandlab.learning.experiment import Members, member_groups, train_members

        groups = [
            [Members(each, seeds, self.device, weights) for seeds in member_groups(each, self.device)]
            for each in experiments
        ]
        pieces = self.executor.gpus // max(1, sum(map(len, groups)))
        done = [all(self.known(task(train_members, job).key) for job in group) for group in groups]
        return [[] if ready else split(each, self.device, pieces, weights) for each, ready in zip(experiments, done)]

    def _train_in_parts(
        self, experiments: list[Experiment], parts: list[list[Shard]], label: str, weights: bool
    ) -> list[Runs]:
        from sandlab.lab._exec.shards import train_shard
        from sandlab.learning.experiment import join

        whole = [each for each, shards in zip(experiments, parts) if not shards]
        trained = iter(super().train(whole, label=label, weights=weights) if whole else [])
        pieces = iter(self.map(train_shard, [shard for shards in parts for shard in shards], label=label))
        return [join([next(pieces) for _ in shards]) if shards else next(trained) for shards in parts]

    @property
    def seconds_left(self) -> float | None:
        """What remains of the budget, negative when it is spent; None when there is none."""
        return None if self._deadline is None else self._deadline - time.monotonic()

    def known(self, key: str) -> Payload | None:
        """The encoded result of a key when the store has one that may be used."""
        entry = self.store.cache.read(key) if self.resume or key in self.own else None
        return None if entry is None else entry.payload


class _Round:
    """One `map`: what waits, what runs, what is done."""

    def __init__(self, lab: Laboratory, tasks: dict[str, Task], label: str, hint: object) -> None:
        self.lab, self.hint = lab, hint
        self.results: dict[str, Any] = {}
        self.running: dict[str, FileLock] = {}
        self.tries: dict[str, int] = {}
        self.not_before: dict[str, float] = {}
        self.unfinished = 0
        self._asked = time.monotonic()
        self.progress = Progress(label, len(tasks))
        for key in tasks:
            self._look(key)
        self.waiting = deque(each for key, each in tasks.items() if key not in self.results)
        alone = lab.executor.here_when_alone and len(self.waiting) == 1
        self.executor: Executor = Local() if alone else lab.executor
        if self.executor.name != Local.name and any(lives_here_only(t.job, t.config) for t in self.waiting):
            raise BadInput("what a notebook defines exists in its process alone: use on='local', or put it into a file")
        lab.counts["jobs"] += len(tasks)

    def finish(self) -> dict[str, Any]:
        """Run until every task has a result; the first failure that another try cannot mend is raised."""
        self._show()
        try:
            while self.running or (self.waiting and not self._time_is_over()):
                started = self._start()
                if not self.running:
                    time.sleep(_GLANCE)  # everything left is being computed by another run, or pauses before a retry
                ready = self.executor.collect(_GLANCE) if self.running else []
                # Results before failures: what is finished is kept even when another job ends the study.
                for each, outcome in sorted(ready, key=lambda pair: isinstance(pair[1], Failed)):
                    self._take(each, outcome)
                if self.running and self._time_is_over(_GRACE):
                    self._give_up()
                if started or self.progress.status != self.executor.status() or self._waits_for_others():
                    self._show()
        except BaseException:
            self.executor.abandon()
            raise
        finally:
            for lock in self.running.values():
                lock.release()
        left = len(self.waiting) + self.unfinished
        if left:
            raise OutOfTime(f"{left} of {self.progress.total} jobs of {self.progress.label} are left")
        return self.results

    def _waits_for_others(self) -> bool:
        """Whether there is something new to say of runs that hold what this one waits for; looked at now and then."""
        if self.running or time.monotonic() - self._asked < _ASK:
            return False
        self._asked = time.monotonic()
        holders = [self.lab.store.cache.lock(each.key).holder() for each in self.waiting]
        self.progress.elsewhere = dict(Counter(holder for holder in holders if holder))
        return True

    def _time_is_over(self, grace: float = 0.0) -> bool:
        left = self.lab.seconds_left
        return left is not None and left <= -grace

    def _give_up(self) -> None:
        """End jobs that know no checkpoint and have outlived the budget: they begin anew another time."""
        self.executor.abandon()
        self.unfinished += len(self.running)
        for lock in self.running.values():
            lock.release()
        self.running.clear()

    def _start(self) -> bool:
        """Send waiting tasks away while there is room, leaving those that another run has locked."""
        started = False
        for _ in range(len(self.waiting)):
            if len(self.running) >= self.executor.slots or self._time_is_over():
                break
            each = self.waiting.popleft()
            if self._begin(each):
                started = True
            elif each.key not in self.results:
                self.waiting.append(each)
        return started

    def _begin(self, each: Task) -> bool:
        if time.monotonic() < self.not_before.get(each.key, 0.0):
            return False
        lock = self.lab.store.cache.lock(each.key)
        if not lock.acquire():
            return False
        # Another run may have finished it between our look and our lock.
        if self._look(each.key):
            lock.release()
            self._show()
            return False
        self.running[each.key] = lock
        self.executor.submit(replace(each, seconds=self.lab.seconds_left))
        return True

    def _look(self, key: str) -> bool:
        payload = self.lab.known(key)
        if payload is None:
            return False
        try:
            self.results[key] = decode(payload, self.hint)
        except Exception as problem:  # whole by its checksum and yet no result: written by other hands
            path = self.lab.store.cache.path(key)
            warnings.warn(f"{path} is damaged ({problem}): it is computed again", Damaged, stacklevel=2)
            return False
        self.progress.done += 1
        self.progress.cached += 1
        self.lab.counts["cached"] += 1
        return True

    def _take(self, each: Task, outcome: Done | Failed) -> None:
        lock = self.running.pop(each.key)
        try:
            if isinstance(outcome, Done):
                self.lab.store.keep(each, outcome)
                self.lab.own.add(each.key)
                self.results[each.key] = decode(outcome.payload, self.hint)
                self.progress.done += 1
                self.lab.counts["computed"] += 1
            else:
                self._retry(each, outcome)
        finally:
            lock.release()
        self._show()

    def _retry(self, each: Task, failed: Failed) -> None:
        """Queue the task again after a pause that doubles each time, or raise its error."""
        if failed.unfinished:
            self.unfinished += 1
            return
        tries = self.tries[each.key] = self.tries.get(each.key, 0) + 1
        if not failed.transient or tries >= _TRIES:
            raise failed.error(each)
        self.progress.failed += 1
        self.lab.counts["retried"] += 1
        self.not_before[each.key] = time.monotonic() + min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** (tries - 1))
        self.waiting.append(each)

    def _show(self) -> None:
        self.progress.running = len(self.running)
        if self.running:
            self.progress.elsewhere = {}
        self.progress.status = self.executor.status()
        self.lab.progress(self.progress)
