"""Distillation of any model that an experiment can train: the teacher's predictions take the labels' place.

teachers = lab.train(replace(experiment, probes=(keep_weights,)))
store = CheckpointStore.of(teachers, experiment.model)
(runs,) = distil(lab, [Lesson(experiment, student, NT(8, 1000, 8000), tau=1e-4)], [store])
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from sandlab.errors import number, require
from sandlab.learning.distillation.checkpoint_store import CheckpointStore, Teachers, soften
from sandlab.learning.distillation.lesson_plans import LessonPlan
from sandlab.learning.experiment import Experiment, Members, Runs, join, member_groups, train_members
from sandlab.learning.objectives import Objective, member_loss
from sandlab.worlds.base import Batch, World

__all__ = [
    "HingeMix",
    "LabelCache",
    "Lesson",
    "TaughtWorld",
    "Together",
    "distil",
    "distillation_loss",
    "learn",
    "learn_together",
]


@dataclass
class LabelCache:
    """Teachers' hard labels of batches already seen, for runs that share data and teachers (the same seed).

    limit   bytes, at most; later labels are computed each time
    """

    limit: int = 1 << 30
    used: int = 0
    labels: dict[tuple[int, int, int], Tensor] = field(default_factory=dict)

    def get(self, key: tuple[int, int, int], compute: Callable[[], Tensor]) -> Tensor:
        """The labels of (generator's seed, student's step, checkpoint)."""
        if key not in self.labels:
            found = compute().to(torch.int16)
            if self.used + 2 * found.numel() > self.limit:
                return found.long()
            self.labels[key], self.used = found, self.used + 2 * found.numel()
        return self.labels[key].long()


@dataclass(frozen=True)
class _Stage(World):
    """The world of one step: the examples of the world, labelled by one checkpoint of the teachers."""

    world: World
    teachers: Teachers
    checkpoint: int
    tau: float
    step: int
    cache: LabelCache | None

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        batch = self.world.sample(n, rng=rng)
        if self.cache is None or self.tau >= 1e-6:
            return replace(batch, targets=soften(self._logits(batch), self.tau))
        key = (rng.initial_seed(), self.step, self.checkpoint)
        return replace(batch, targets=self.cache.get(key, lambda: self._logits(batch).argmax(-1)))

    def _logits(self, batch: Batch) -> Tensor:
        members = len(self.teachers.store.seeds)
        logits = self.teachers.logits(self.checkpoint, batch.inputs.unflatten(0, (members, -1))).flatten(0, 1)
        return logits[..., -batch.mask.shape[-1] :, :].float()


@dataclass(frozen=True)
class TaughtWorld(World):
    """A world whose training batches are labelled by teachers, as a plan says; held-out examples keep their labels.

    Every student of a population is taught by the teacher of its own place in the store.
    """

    world: World
    teachers: Teachers
    plan: LessonPlan
    tau: float = 1e-4
    cache: LabelCache | None = None

    def __post_init__(self) -> None:
        number("tau", self.tau, low=0.0)

    def at(self, step: int) -> World:
        chosen = self.plan.checkpoint(step)
        return _Stage(self.world.at(step), self.teachers, chosen, self.tau, step, self.cache)

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        return self.world.sample(n, rng=rng)

    def oracle(self, batch: Batch) -> Tensor:
        return self.world.oracle(batch)


class _Staff:
    """The teachers of a store at the checkpoints that are in use; the others are let go."""

    def __init__(self, store: CheckpointStore, device: torch.device) -> None:
        self.store, self.device = store, device
        self.present: dict[int, Teachers] = {}

    def logits(self, checkpoints: set[int], batch: Batch) -> dict[int, Tensor]:
        """Of every checkpoint, what the teachers say at the positions that have targets; each is asked once."""
        fresh = {c: Teachers(self.store.only((c,)), self.device) for c in checkpoints - set(self.present)}
        self.present = {c: each for c, each in (self.present | fresh).items() if c in checkpoints}
        inputs = batch.inputs.unflatten(0, (len(self.store.seeds), -1))
        asked = {c: each.logits(c, inputs).flatten(0, 1) for c, each in self.present.items()}
        return {c: logits[..., -batch.mask.shape[-1] :, :].float() for c, logits in asked.items()}


@dataclass(frozen=True)
class _SharedStage(World):
    """The world of one step of a `_SharedWorld`: of each plan, the checkpoint of every seed (None: the true labels)."""

    world: World
    staff: _Staff
    checkpoints: tuple[tuple[int | None, ...], ...]
    taus: tuple[float, ...]

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        copies = len(self.checkpoints)
        batch = self.world.sample(n // copies, rng=rng)

        def copied(value: Tensor) -> Tensor:
            return value.repeat(copies, *[1] * (value.ndim - 1))

        truth = {name: copied(value) for name, value in batch.truth.items()}
        return Batch(copied(batch.inputs), self._targets(batch), copied(batch.mask), truth)

    def _targets(self, batch: Batch) -> Tensor:
        """Labels of all copies of the batch: distributions, or classes when nobody is taught."""
        found = self.staff.logits({each for row in self.checkpoints for each in row if each is not None}, batch)
        if not found:
            return torch.cat([batch.targets] * len(self.checkpoints))
        classes = next(iter(found.values())).shape[-1]

        def labels(checkpoint: int | None, tau: float) -> Tensor:
            if checkpoint is None:
                return F.one_hot(batch.targets, classes).float()
            return soften(found[checkpoint], tau)

        parts = []
        for row, tau in zip(self.checkpoints, self.taus):
            known = {checkpoint: labels(checkpoint, tau).chunk(len(row)) for checkpoint in set(row)}
            parts += [known[checkpoint][seed] for seed, checkpoint in enumerate(row)]
        return torch.cat(parts)


@dataclass(frozen=True)
class _SharedWorld(World):
    """The same examples for the students of several plans, labelled for each as its plan says."""

    world: World
    staff: _Staff
    plans: tuple[tuple[LessonPlan | None, ...], ...]
    taus: tuple[float, ...]

    def at(self, step: int) -> World:
        chosen = tuple(tuple(None if plan is None else plan.checkpoint(step) for plan in row) for row in self.plans)
        return _SharedStage(self.world.at(step), self.staff, chosen, self.taus)

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        return self.world.sample(n, rng=rng)


@dataclass(frozen=True)
class Lesson:
    """One student's distillation: a config that says everything, so that its result can be kept.

    teacher    the experiment whose checkpoints teach (it names them; they are given to the job)
    student    the student's experiment: model, training, seeds as many as the teacher's
    plan, tau  which checkpoint when (None: the true labels), one plan for all or one for each seed, and the
               temperature of its predictions
    seeds      which of the students this job trains; device
    """

    teacher: Experiment
    student: Experiment
    plan: LessonPlan | tuple[LessonPlan, ...] | None
    tau: float = 1e-4
    seeds: tuple[int, ...] = ()
    device: str = "cpu"
    weights: bool = False

    def __post_init__(self) -> None:
        number("tau", self.tau, low=0.0)
        if isinstance(self.plan, tuple):
            count = len(self.student.seed_list)
            require(len(self.plan) == count, "plan", f"{len(self.plan)} plans", f"one for each of {count} seeds")

    def plan_of(self, seed: int) -> LessonPlan | None:
        """The plan of one student."""
        return self.plan[self.student.seed_list.index(seed)] if isinstance(self.plan, tuple) else self.plan


@dataclass(frozen=True)
class Together:
    """Lessons that differ in plan and temperature alone: one population, whose members see the same examples."""

    lessons: tuple[Lesson, ...]


def learn(lesson: Lesson, store: CheckpointStore) -> Runs:
    """Train the students of a lesson on the predictions of their teachers, seed by seed."""
    return learn_together(Together((lesson,)), store)


def learn_together(what: Together, store: CheckpointStore) -> Runs:
    """The job: all students of the first lesson, then those of the second, … as one population.

    What teachers say about an example is computed once for all students who are taught by the same checkpoint.
    """
    first = what.lessons[0]
    places = [store.seeds.index(seed) for seed in first.seeds]
    own = replace(store, seeds=first.seeds, weights={name: value[places] for name, value in store.weights.items()})
    plans = tuple(tuple(each.plan_of(seed) for seed in first.seeds) for each in what.lessons)
    taus = tuple(each.tau for each in what.lessons)
    world = _SharedWorld(first.student.world, _Staff(own, torch.device(first.device)), plans, taus)
    student = replace(first.student, world=world)
    return train_members(Members(student, first.seeds * len(plans), first.device, first.weights))


def distil(lab: Any, lessons: Sequence[Lesson], stores: Sequence[CheckpointStore], *, label: str = "") -> list[Runs]:
    """Train the students of several lessons in a laboratory: a job per seed on a CPU, all seeds at once on a GPU.

    Lessons that differ in plan and temperature alone share a job.
    """
    groups = _alike(lessons, stores)
    configs, given = [], []
    for group in groups:
        lesson, store = lessons[group[0]], stores[group[0]]
        require(lesson.student.seed_list == store.seeds, "seeds", lesson.student.seeds, f"the teachers', {store.seeds}")
        for seeds in member_groups(lesson.student, lab.device):
            members = [replace(lessons[index], seeds=seeds, device=lab.device) for index in group]
            configs.append(Together(tuple(members)))
            given.append(store)
    parts = iter(lab.map(learn_together, configs, given=given, label=label or "students"))
    found: dict[int, Runs] = {}
    for group in groups:
        jobs = [next(parts) for _ in member_groups(lessons[group[0]].student, lab.device)]
        for place, index in enumerate(group):
            found[index] = join([_members(job, place, len(group)) for job in jobs])
    return [found[index] for index in range(len(lessons))]


def _alike(lessons: Sequence[Lesson], stores: Sequence[CheckpointStore]) -> list[list[int]]:
    """Places of the lessons that differ in plan and temperature alone, group by group."""
    bare = [replace(lesson, plan=None, tau=0.0) for lesson in lessons]
    groups: list[list[int]] = []
    for index in range(len(lessons)):
        for group in groups:
            if stores[group[0]] is stores[index] and bare[group[0]] == bare[index]:
                group.append(index)
                break
        else:
            groups.append([index])
    return groups


def _members(runs: Runs, place: int, parts: int) -> Runs:
    """One of several equal parts of the members."""
    size = len(runs.seeds) // parts
    rows = slice(place * size, (place + 1) * size)

    def chosen(value: Any) -> Any:
        return {name: chosen(each) for name, each in value.items()} if isinstance(value, Mapping) else value[rows]

    weights = None if runs.weights is None else chosen(runs.weights)
    return replace(
        runs, seeds=runs.seeds[rows], loss=runs.loss[rows], metrics=chosen(runs.metrics), final=chosen(runs.final),
        weights=weights,
    )  # fmt: skip


@dataclass(frozen=True)
class HingeMix(Objective):
    """α (1 − f y)₊ + (1 − α)(1 − f f_T)₊ for a scalar output f, labels y = ±1 and a teacher's output f_T.

    The batch's targets are the labels as classes (0 is +1), its truth "teacher" the teacher's outputs (none: α = 1).
    """

    alpha: float = 1.0

    def __post_init__(self) -> None:
        number("alpha", self.alpha, low=0.0, high=1.0)

    def __call__(self, logits: Tensor, batch: Batch) -> Tensor:
        f, y = logits.squeeze(-1), 1.0 - 2.0 * batch.targets.to(logits.dtype)
        loss = self.alpha * F.relu(1 - f * y)
        if self.alpha < 1:
            loss = loss + (1 - self.alpha) * F.relu(1 - f * batch.truth["teacher"].to(f.dtype))
        members = logits.ndim - batch.mask.ndim - 1
        return loss.flatten(1).mean(1) if members else loss.mean()


def distillation_loss(logits: Tensor, teacher: Tensor, batch: Batch, tau: float = 1e-4) -> Tensor:
    """KL(p_T(·; τ) ‖ p_S) where the batch counts, in nats (eq. 4.91; 4.99 on a batch whose mask is C^(ℓ))."""
    target = soften(teacher, tau)
    entropy = torch.special.entr(target).sum(-1)
    mean = torch.where(batch.mask, entropy, 0.0).sum() / batch.mask.sum().clamp(min=1)
    return member_loss(logits, replace(batch, targets=target)) - mean
