"""Made-up results of courses (`taught`) and courses of a few steps (`small`)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sandlab.learning.experiment import Experiment, Runs
from sandlab.studies.distillation._courses import METHODS, Course, Taught

BUDGETS = (2000, 4000, 8000, 16_000)
STEPS = np.arange(5) * 2000
BRIEF = {"batch_size": 4, "eval_examples": 8, "warmup": 0}


def taught(name: str, better: float, *, robust: tuple[float, ...] = (0.01, 0.5, 0.3, 0.1, 0.01)) -> Taught:
    """Progressive above one-shot above labels by `better`, more so at small budgets."""
    seeds = 1e-4 * np.arange(3)
    ranks = {
        "labels": 0,
        "one-shot": 1,
        "one-shot, τ = 1": 1,
        "progressive, τ = 1": 1.5,
        "progressive": 2,
        "equal split": 2,
    }
    scale = np.array([1.0, 0.9, 0.8, 0.7])[:, None]
    accuracy = {method: 0.5 + ranks[method] * better * scale + seeds for method in METHODS}
    metrics = {
        "accuracy": np.full((3, 5), 0.95 if better > 0 else 0.4),
        "loss": np.linspace(1.0, 0.1 if better > 0 else 1.2, 5) + seeds[:, None],
        "robust": np.repeat(np.array(robust)[None, :, None], 3, 0) * np.ones((3, 5, 4)),
        "close": np.ones((3, 5, 4)),
    }
    runs = Runs((0, 1, 2), STEPS, np.zeros((3, 1)), metrics)
    value = {"progressive": better, "one-shot": 0.0}
    spread = np.zeros((3, 4)) + seeds[:, None]
    final = {m: {"robust": 0.1 - v + spread, "nonterminals": 0.5 + v + 2 * spread} for m, v in value.items()}
    top = 2000 if better > 0 else 8000
    two = [(step, 500, np.full(3, 0.9 if step == top else 0.5)) for step in (2000, 4000, 6000, 8000)]
    return Taught(name, BUDGETS, runs, accuracy, accuracy, {}, final, two)


def small(course: Course) -> Course:
    """A few steps of small batches."""
    student = replace(course.student, training=replace(course.student.training, evals=1, **BRIEF), seeds=2)
    budgets = tuple(3 + index for index in range(len(course.budgets)))
    return replace(course, teacher=brief(course.teacher), student=student, budgets=budgets, shots=2)


def brief(teacher: Experiment) -> Experiment:
    """Four steps of small batches, two seeds."""
    return replace(teacher, training=replace(teacher.training, steps=4, evals=2, **BRIEF), seeds=2)
