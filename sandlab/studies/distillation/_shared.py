"""What the studies of this chapter share: the source, methods of teaching perceptrons, small summaries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from sandlab.learning.distillation.checkpoint_store import CheckpointStore
from sandlab.learning.distillation.lesson_plans import LessonPlan
from sandlab.learning.distillation.perceptrons import Drill, DrillRuns, drill
from sandlab.studies.study import Lab

SOURCE = "Panigrahi et al. 2024, Progressive distillation induces an implicit curriculum (thesis, section 4.2)"
APART = 1000
"""Students' seeds are the teachers' plus this number: other weights and other data."""


@dataclass(frozen=True)
class Curves:
    """Accuracies (seed, evaluation) of one method."""

    eval_steps: np.ndarray
    accuracy: np.ndarray

    @property
    def best(self) -> np.ndarray:
        """Best accuracy of each seed."""
        return self.accuracy.max(1)

    @property
    def last(self) -> np.ndarray:
        return self.accuracy[:, -1]

    def first_above(self, level: float = 0.95) -> np.ndarray:
        """First evaluated step above the level; infinite where there is none."""
        above = self.accuracy > level
        return np.where(above.any(1), self.eval_steps[above.argmax(1)], np.inf)


def teach_perceptrons(
    lab: Lab,
    student: Drill,
    teacher: Drill,
    store: CheckpointStore,
    methods: Mapping[str, Sequence[LessonPlan | None]],
    taus: Mapping[str, float] | None = None,
    label: str = "",
) -> dict[str, Curves]:
    """Students of all methods as one population; a method has one plan per teacher, None for the true labels."""
    count, names = len(store.seeds), list(methods)
    plans = tuple(plan for name in names for plan in methods[name])
    tau = tuple((taus or {}).get(name, 1e-4) for name in names for _ in range(count))
    seeds = tuple(APART + seed for _ in names for seed in store.seeds)
    config = replace(student, plan=plans, tau=tau, seeds=seeds, teachers=teacher, device=lab.device)
    runs: DrillRuns = lab.map(drill, [config], given=[store], label=label or "students")[0]
    parts = np.split(runs.accuracy, len(names))
    return {name: Curves(runs.eval_steps, part) for name, part in zip(names, parts)}


def train_teachers(lab: Lab, teacher: Drill, label: str = "teachers") -> tuple[Drill, DrillRuns]:
    """The teachers with their checkpoints."""
    config = replace(teacher, device=lab.device)
    return config, lab.map(drill, [config], label=label)[0]


def final_of(store: CheckpointStore, spacing: int) -> int:
    """The last checkpoint at a multiple of the spacing."""
    return max(step for step in store.saved_steps if step % spacing == 0)
