"""Schedules: which checkpoint at which step, and the identities between them."""

from __future__ import annotations

import pytest

from sandlab.errors import BadInput
from sandlab.learning.distillation.lesson_plans import NT, Custom, EqualSplit, KappaSplit, LessonPlan, OneShot, TwoShot
from sandlab.learning.distillation.phases import (
    accuracy_phases,
    equally_spaced,
    loss_phases,
    mid_transition,
    multiples_of,
    peak,
)


def same(one: LessonPlan, other: LessonPlan, steps: int) -> bool:
    return all(one.checkpoint(step) == other.checkpoint(step) for step in range(steps))


def test_the_checkpoint_of_a_step_is_that_of_its_interval_and_never_the_untrained_one() -> None:
    plan = NT(8, 1000, 8000)
    assert [plan.checkpoint(step) for step in (0, 999, 1000, 6999, 7000, 20_000)] == [
        1000,
        1000,
        2000,
        7000,
        8000,
        8000,
    ]


def test_identities_between_schedules() -> None:
    among = equally_spaced(8000, 8)
    assert same(NT(1, 500, 8000), OneShot(8000), 3000)
    assert same(KappaSplit(among, 0.0, 8000), OneShot(8000), 3000)
    assert same(KappaSplit(among, 0.5, 8000), EqualSplit(among, 4000), 4000)
    assert same(KappaSplit(among, 1.0, 8000), NT(8, 1000, 8000), 9000)
    assert same(TwoShot((1000,), 300, 8000), Custom(((1000, 300), (8000, 1))), 900)
    assert same(TwoShot((1000, 2000), 300, 8000), Custom(((1000, 300), (2000, 300), (8000, 1))), 900)


def test_checkpoints_that_do_not_fit_are_dropped() -> None:
    plan = KappaSplit(equally_spaced(8000, 8), 1.0, 8000)
    assert plan.checkpoints(2500) == (1000, 2000, 3000)


def test_the_printed_longest_stretch_of_two_shot_would_never_end() -> None:
    """Figure 4.7 trains 4000 steps with T up to 2000; the text's 15 000 for 1500 would leave the final teacher out."""
    assert TwoShot((1000,), 1500, 8000).checkpoints(4000) == (1000, 8000)
    assert TwoShot((1000,), 15_000, 8000).checkpoints(4000) == (1000,)


@pytest.mark.parametrize("plan", [NT(7, 13, 700), EqualSplit((10, 20, 30), 100), TwoShot((5,), 31, 9), OneShot(4)])
def test_segments_cover_the_run_with_one_teacher_each(plan: LessonPlan) -> None:
    found = list(plan.segments(150))
    assert [stop for _, stop, _ in found][:-1] == [start for start, _, _ in found][1:]
    assert (found[0][0], found[-1][1]) == (0, 150)
    for start, stop, teacher in found:
        assert {plan.checkpoint(step) for step in range(start, stop)} == {teacher}


def test_long_runs_are_cut_without_trying_every_step() -> None:
    assert len(list(NT(200, 100_000, 20_000_000).segments(20_000_000))) == 200


def test_phases_of_an_accuracy_and_of_a_loss() -> None:
    import numpy as np

    steps = np.arange(0, 1100, 100)
    accuracy = np.array([0.5, 0.56, 0.5, 0.5, 0.6, 0.7, 0.8, 0.95, 1.0, 1.0, 1.0])
    phases = accuracy_phases(steps, accuracy)
    assert (phases.start, phases.middle, phases.end) == (400, 600, 800)
    assert mid_transition(tuple(range(0, 1100, 250)), phases) == 500
    loss = np.array([1.0, 1.0, 1.0, 0.9, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.0])
    drop = loss_phases(steps, loss)
    assert (drop.start, drop.middle, drop.end) == (300, 400, 600)
    assert not accuracy_phases(steps, np.full(11, 0.5)).found
    with pytest.raises(BadInput):
        mid_transition((100,), accuracy_phases(steps, np.full(11, 0.5)))


def test_policies_choose_peaks_and_multiples() -> None:
    assert peak((100, 200, 300), [0.1, 0.5, 0.2]) == 200
    assert multiples_of((0, 100, 200, 250, 300, 350), 100) == (100, 200, 300, 350)
    assert equally_spaced(20_000, 4) == (5000, 10_000, 15_000, 20_000)
