"""Claims of the studies beside the main courses on made-up results, and small runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from claim_cases import check, verdicts
from course_cases import brief, small, taught
from stand_in import LAB

from sandlab.learning.experiment import Runs
from sandlab.studies.distillation._courses import Taught
from sandlab.studies.distillation.transformers import next_token_sizes, next_token_variants, schedules, teacher_phases

STEPS = np.arange(5) * 100
SEEDS = 1e-3 * np.arange(3)[:, None]


def schedule(sign: float) -> Taught:
    """Half splits good for short runs and equal ones for long ones, both above one-shot; all of it turned by `sign`."""
    found = taught("8 heads", 0.05)
    half, equal = np.array([0.2, 0.15, 0.1, 0.06]), np.array([0.15, 0.12, 0.1, 0.08])
    gains = {"labels": -0.1, "one-shot": 0.0, "one-shot, τ = 1": 0.0, "progressive, τ = 1": -0.05}
    seeds = 1e-3 * np.arange(3)
    accuracy = {name: 0.6 + sign * gain + np.zeros((4, 1)) + seeds for name, gain in gains.items()}
    accuracy |= {
        name: 0.6 + sign * gain[:, None] + (1.1 + 0.1 * np.arange(4)[::-1, None]) * seeds
        for name, gain in (("progressive", half), ("equal split", equal))
    }
    return replace(found, accuracy=accuracy)


def test_claims_of_schedules() -> None:
    good, bad = ([schedule(sign), schedule(sign)] for sign in (1.0, -1.0))
    check(schedules.study, schedules.Results(good), schedules.Results(bad))


def test_claims_of_sizes_and_grammars_of_gpt2() -> None:
    def results(sign: float) -> next_token_variants.Results:
        sizes = [taught(name, sign * better) for name, better in (("ℓ = 3", 0.1), ("ℓ = 2", 0.05))]
        gains = {"cfg3f": np.array([0.6, 0.7, 0.8, 0.92]), "cfg3g": np.array([0.8, 0.81, 0.82, 0.84])}
        first, second = (
            replace(sizes[0], accuracy={"progressive": gains[name][:, None] + (1 + place) * SEEDS[:, 0]})
            for place, name in enumerate(gains)
        )
        return next_token_variants.Results(sizes, [first, second] if sign > 0 else [second, first])

    check(next_token_variants.study, results(1.0), results(-1.0))


def test_grammars_are_not_compared_by_students_that_have_learnt_nothing() -> None:
    low = replace(taught("cfg3f", 0.05), accuracy={"progressive": np.full((4, 3), 0.4) + SEEDS[:, 0]})
    lower = replace(low, accuracy={"progressive": np.full((4, 3), 0.3)})
    found = verdicts(next_token_variants.study, next_token_variants.Results([taught("ℓ", 0.1)], [low, lower]))
    assert found["cfg3g-is-harder"] == "fails"


def curves(accuracy: list[float], loss: list[float], robust: list[float], close: list[float]) -> Runs:
    metrics = {"accuracy": np.array(accuracy) - SEEDS, "loss": np.array(loss) + SEEDS}
    metrics |= {"robust": (np.array(robust) + SEEDS)[..., None], "close": (np.array(close) + SEEDS)[..., None]}
    return Runs((0, 1, 2), STEPS, np.zeros((3, 1)), metrics)


FALLING, FLAT = [1.0, 0.9, 0.5, 0.1, 0.05], [1.0] * 5
PEAK, LATE = [0.01, 0.2, 0.5, 0.2, 0.1], [0.01, 0.02, 0.03, 0.2, 0.5]


def test_claims_of_sizes_of_gpt2() -> None:
    early, late = [0.4, 0.6, 0.9, 0.9, 0.9], [0.4, 0.4, 0.5, 0.6, 0.9]
    good = next_token_sizes.Results(curves(early, FALLING, PEAK, PEAK), 8, {2: curves(late, FALLING, PEAK, PEAK)})
    bad = next_token_sizes.Results(curves(late, FALLING, LATE, LATE), 8, {2: curves(early, FALLING, LATE, LATE)})
    flat = next_token_sizes.Results(curves(early, FLAT, PEAK, PEAK), 8, {2: curves(late, FALLING, PEAK, PEAK)})
    bad.teacher.metrics["robust"][:] = np.array([0.9, 0.1, 0.1, 0.1, 0.1])[:, None]
    check(next_token_sizes.study, good, bad)
    assert set(verdicts(next_token_sizes.study, flat).values()) == {"fails"}


def watched(loss: list[float], close: list[float], probe: list[float]) -> teacher_phases.Results:
    runs = curves(loss, loss, close, close)
    runs.metrics["nonterminals"] = np.stack([np.ones((3, 5)), np.array(probe) - SEEDS, np.array(probe) - SEEDS], -1)
    return teacher_phases.Results(runs, (3,))


def test_claims_of_the_phases_of_a_teacher() -> None:
    good = watched(FALLING, PEAK, [0.5, 0.6, 0.88, 0.89, 0.9])
    bad = watched(FALLING, LATE, [0.5, 0.5, 0.6, 0.8, 0.9])
    untrained = watched(FLAT, [0.1] * 5, [0.5] * 5)
    check(teacher_phases.study, good, bad)
    assert "holds" not in verdicts(teacher_phases.study, untrained).values()


def test_a_small_run_of_the_phases_of_a_teacher() -> None:
    quick = teacher_phases.QUICK
    probes = {"ngrams": replace(quick.ngrams, examples=8), "nonterminals": replace(quick.nonterminals, train=64)}
    outcome = teacher_phases.study.run(replace(quick, teacher=brief(quick.teacher), **probes), LAB, "quick")
    assert len(outcome.findings) == 2 and teacher_phases.known(outcome.results).shape == (2, 3)


def test_a_small_run_of_schedules() -> None:
    outcome = schedules.study.run(schedules.Settings(tuple(map(small, schedules.QUICK.courses))), LAB, "quick")
    assert len(outcome.findings) == len(schedules.study.claims)


@pytest.mark.slow
def test_small_runs_of_gpt2() -> None:
    settings, quick = next_token_variants.QUICK, next_token_sizes.QUICK
    variants = next_token_variants.Settings(tuple(map(small, settings.sizes)), tuple(map(small, settings.grammars)))
    assert len(next_token_variants.study.run(variants, LAB, "quick").findings) == len(next_token_variants.study.claims)
    sizes = next_token_sizes.Settings(brief(quick.teacher), (1, 2))
    assert len(next_token_sizes.study.run(sizes, LAB, "quick").findings) == len(next_token_sizes.study.claims)
