"""Claims of the studies of courses on made-up results, and small runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from claim_cases import check
from course_cases import small, taught
from stand_in import LAB

from sandlab.studies.distillation import grammar_variants, masked_grammar, next_token, text
from sandlab.studies.distillation._courses import for_steps, teach
from sandlab.worlds.distillation.text import MaskedText


def test_claims_of_masked_grammar() -> None:
    early, late = (
        np.array(curve) + 1e-3 * np.arange(3)[:, None] for curve in ((0.3, 0.9, 1, 1, 1), (0.3, 0.3, 0.4, 0.8, 1))
    )
    good, bad = (
        masked_grammar.Results(taught("cfg3b", better, robust=robust), (2, 3, 4, 5), {8: few})
        for better, robust, few in (
            (0.05, (0.01, 0.5, 0.3, 0.1, 0.01), late),
            (-0.05, (0.5, 0.2, 0.1, 0.05, 0.01), early),
        )
    )
    for results, curve in ((good, early), (bad, late)):
        results.taught.teacher.metrics["accuracy"] = curve if results is good else 0.5 * curve
    check(masked_grammar.study, good, bad)


def test_a_share_of_the_last_value_is_reached_between_two_evaluations() -> None:
    steps, curves = np.array([0, 10, 20]), np.array([[0.0, 0.4, 1.0], [0.9, 0.9, 1.0], [0.2, 1.0, 1.0]])
    assert masked_grammar.reaches(steps, curves).tolist() == pytest.approx([10 + 10 * 0.4 / 0.6, 1.0, 7.5])


def test_the_table_stands_beside_the_published_one() -> None:
    results = masked_grammar.Results(replace(taught("cfg3b", 0.05), bigger=np.full((4, 3), 0.9)), (2, 3, 4, 5), {})
    first, *_, last = masked_grammar.table(results)["here and published"]
    assert (first["steps published"], first["labels, published"], first["labels, here"]) == (
        2000,
        0.745,
        pytest.approx(0.5001),
    )
    assert (last["teacher's size, published"], last["teacher's size, here"]) == (0.98, pytest.approx(0.9))


def test_claims_of_variants() -> None:
    names = ("cfg3b, 30%, 8 heads", "cfg3b, 15%, 8 heads", "cfg3i, 30%, 16 heads")
    good, bad = ([taught(name, better) for name in names] for better in (0.05, -0.05))
    high = replace(bad[2], accuracy={**bad[2].accuracy, "progressive": np.full((4, 3), 0.95)})
    check(
        grammar_variants.study,
        grammar_variants.Results(good),
        grammar_variants.Results(bad),
        grammar_variants.Results([*bad[:2], high]),
    )


def test_claims_of_next_token() -> None:
    names = ("cfg3f, ℓ = 2, 8 heads", "cfg3f, ℓ = 3, 8 heads", "cfg3f, ℓ = 4, 8 heads")
    good = [taught(name, better) for name, better in zip(names, (0.05, 0.22, 0.3))]
    bad = [taught(name, better) for name, better in zip(names, (-0.05, -0.1, -0.2))]
    good[1] = replace(good[1], accuracy={**good[1].accuracy, "progressive": good[1].accuracy["progressive"] + 0.2})
    check(next_token.study, next_token.Results(good), next_token.Results(bad))


def test_claims_of_text() -> None:
    worse = taught("text", -0.05, robust=(0.5, 0.2, 0.1, 0.05, 0.01))
    check(text.study, text.Results(taught("text", 0.05), "x"), text.Results(worse, "x"))


def test_every_horizon_has_a_schedule_of_its_own() -> None:
    student = masked_grammar.QUICK.course.student
    short, long = (for_steps(student, steps).training for steps in (100, 1000))
    assert (short.steps, short.warmup, long.steps, long.warmup) == (100, 6, 1000, 60)


def test_a_small_run_of_masked_grammar() -> None:
    settings = replace(masked_grammar.QUICK, course=small(masked_grammar.QUICK.course))
    outcome = masked_grammar.study.run(settings, LAB, "quick")
    assert {finding.claim.rpartition(".")[2] for finding in outcome.findings} == {
        "teacher-above-student", "distillation-above-labels", "ngrams-come-and-go"
    }  # fmt: skip
    assert not any(name.startswith("kept.") for name in outcome.results.taught.teacher.metrics)


def test_at_the_teachers_own_budget_the_teachers_are_the_large_models() -> None:
    course = replace(small(text.course(text.study.presets["quick"])), budgets=(2,), teacher_budgets=(3, 4))
    found = teach(course, LAB)
    bare = replace(course.teacher, probes=())
    again = [LAB.train(for_steps(bare, steps)).metrics["accuracy"][:, -1] for steps in (3, 4)]
    assert found.bigger is not None and np.allclose(found.bigger, again)
    assert np.array_equal(found.bigger[1], found.teacher.metrics["accuracy"][:, -1])


@pytest.mark.slow
@pytest.mark.parametrize("study", [grammar_variants, next_token])
def test_small_runs_of_the_other_courses(study: object) -> None:
    settings = study.Settings(tuple(small(each) for each in study.QUICK.courses[:2]))  # type: ignore[attr-defined]
    assert study.study.run(settings, LAB, "quick").findings  # type: ignore[attr-defined]


@pytest.mark.slow
def test_a_small_run_on_a_text_of_ones_own(tmp_path: Path) -> None:
    file = tmp_path / "text.txt"
    file.write_text("the quick brown fox jumps over the lazy dog while nobody looks at it\n" * 40, encoding="utf-8")
    quick = replace(text.study.presets["quick"], path=str(file), words=12, window=8)
    brief = replace(quick.training, steps=5, evals=5, batch_size=4, warmup=0)
    outcome = text.study.run(replace(quick, training=brief, budgets=(3,), seeds=2), LAB, "quick")
    assert len(outcome.findings) == 1 and outcome.results.digest == MaskedText(str(file), 12, 8).digest
