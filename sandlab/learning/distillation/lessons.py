"""Distillation of any model that an experiment can train: the teacher's predictions take the labels' place.

teachers = lab.train(replace(experiment, probes=(keep_weights,)))
store = CheckpointStore.of(teachers, experiment.model)
runs = distil(lab.map, Lesson(experiment, student, NT(8, 1000, 8000), tau=1e-4), store)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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

__all__ = ["HingeMix", "LabelCache", "Lesson", "TaughtWorld", "distil", "distillation_loss", "learn"]


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


@dataclass(frozen=True)
class Lesson:
    """One student's distillation: a config that says everything, so that its result can be kept.

    teacher    the experiment whose checkpoints teach (it names them; they are given to the job)
    student    the student's experiment: model, training, seeds as many as the teacher's
    plan, tau  which checkpoint when, and the temperature of its predictions
    seeds      which of the students this job trains; device
    """

    teacher: Experiment
    student: Experiment
    plan: LessonPlan
    tau: float = 1e-4
    seeds: tuple[int, ...] = ()
    device: str = "cpu"
    weights: bool = False


def learn(lesson: Lesson, store: CheckpointStore) -> Runs:
    """The job: train the students of a lesson on the predictions of their teachers, seed by seed."""
    places = [store.seeds.index(seed) for seed in lesson.seeds]
    own = replace(store, seeds=lesson.seeds, weights={name: value[places] for name, value in store.weights.items()})
    used = [step for step in store.saved_steps if step in lesson.plan.checkpoints(lesson.student.training.steps)]
    teachers = Teachers(own.only(used), torch.device(lesson.device))
    world = TaughtWorld(lesson.student.world, teachers, lesson.plan, lesson.tau)
    student = replace(lesson.student, world=world)
    return train_members(Members(student, lesson.seeds, lesson.device, lesson.weights))


def distil(lab: Any, lessons: Sequence[Lesson], stores: Sequence[CheckpointStore], *, label: str = "") -> list[Runs]:
    """Train the students of several lessons in a laboratory: a job per seed on a CPU, all seeds at once on a GPU."""
    configs, given, sizes = [], [], []
    for lesson, store in zip(lessons, stores):
        require(lesson.student.seed_list == store.seeds, "seeds", lesson.student.seeds, f"the teachers', {store.seeds}")
        groups = member_groups(lesson.student, lab.device)
        configs += [replace(lesson, seeds=seeds, device=lab.device) for seeds in groups]
        given += [store] * len(groups)
        sizes.append(len(groups))
    parts = iter(lab.map(learn, configs, given=given, label=label or "students"))
    return [join([next(parts) for _ in range(size)]) for size in sizes]


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
