"""The full presets: every checkpoint that a schedule names is kept, and evaluations fit in memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
import torch

from sandlab.learning.distillation.lesson_plans import TwoShot
from sandlab.learning.population import Population
from sandlab.models.attention import Attention
from sandlab.models.base import Model, build
from sandlab.models.distillation.published import bert
from sandlab.random import rng
from sandlab.studies.distillation import (
    grammar_variants,
    hierarchy,
    masked_grammar,
    next_token,
    one_checkpoint,
    parity_mlp,
    text,
)
from sandlab.studies.distillation._courses import Course
from sandlab.studies.distillation.transformers import (
    next_token_variants,
    parity_heads,
    parity_transformer,
    schedules,
    teacher_phases,
)
from sandlab.studies.distillation.transformers._fused import fuse_attention


@pytest.fixture
def a_text(tmp_path: Path) -> Path:
    file = tmp_path / "text.txt"
    file.write_text("one word after another of a text that somebody gives\n" * 40, encoding="utf-8")
    return file


def full_courses(file: Path) -> list[Course]:
    settings = replace(text.study.presets["full"], path=str(file))
    return [
        masked_grammar.FULL.course,
        *next_token.study.presets["full"].courses,
        *next_token_variants.FULL.sizes,
        *next_token_variants.FULL.grammars,
        *grammar_variants.study.presets["full"].courses,
        *schedules.FULL.courses,
        text.course(settings),
    ]


def test_teachers_of_courses_keep_every_checkpoint_that_teaches(a_text: Path) -> None:
    for course in full_courses(a_text):
        how = course.teacher.training
        every = max(1, how.steps // how.evals)
        kept = {step for step in range(0, how.steps + 1) if step % every == 0} | {how.steps}
        for budget in course.budgets:
            for method in [name for name in course.methods if name != "labels"]:
                plan, _ = course.plan(method, how.steps, budget)
                assert set(plan.checkpoints(budget)) <= kept, (course.name, method, budget)
        for step, each in course.two_shot:
            plan = TwoShot((step,), each, how.steps)
            assert set(plan.checkpoints(course.two_shot_budget)) <= kept, (course.name, step)


def test_one_shot_students_of_full_presets_have_both_temperatures(a_text: Path) -> None:
    """Results of one-shot are those of the better one of τ = 1 and 10⁻⁴; of words the source has τ → 0 alone."""
    for course in full_courses(a_text):
        if course.teacher.world.__class__.__name__ != "MaskedText":
            assert {"one-shot", "one-shot, τ = 1"} <= set(course.methods) and course.tau == 1e-4, course.name


def test_students_of_both_sizes_have_the_same_teachers() -> None:
    """Trained once: a job that has been computed is not computed again."""
    first, second = schedules.FULL.courses
    assert first.teacher == second.teacher and (first.student.model.heads, second.student.model.heads) == (8, 16)  # type: ignore[attr-defined]
    small, large = next_token.study.presets["full"].courses, next_token_variants.FULL.sizes
    assert [each.teacher for each in small] == [each.teacher for each in large]


def test_the_teacher_that_is_watched_is_the_one_that_teaches() -> None:
    watched, teaches = teacher_phases.FULL.teacher, masked_grammar.FULL.course.teacher
    assert watched == replace(teaches, probes=())


def test_drills_keep_every_checkpoint_that_teaches_and_blocks_are_whole() -> None:
    tree, parity = hierarchy.FULL, parity_mlp.FULL
    named = [step for pair in (*tree.inside, tree.outside, tree.single) for step in pair]
    assert all(step % tree.teacher.save == 0 and step <= tree.teacher.updates for step in named)
    assert tree.first * 2 < tree.student.updates and tree.watched % tree.teacher.save == 0
    assert parity.spacing == parity.teacher.save == parity.teacher.every
    # Blocks of 64 steps are replayed as one graph; what is left before an evaluation runs step by step.
    for drill in (tree.teacher, tree.student, parity.teacher, parity.student):
        assert drill.every % 64 == 0


def test_one_checkpoint_has_the_teachers_of_parity_mlp() -> None:
    assert one_checkpoint.study.presets["full"].teachers == (parity_mlp.FULL.teacher,)


def test_transformers_on_parity_keep_the_checkpoints_that_teach() -> None:
    full = parity_transformer.FULL
    how = full.teacher.training
    assert full.spacing % (how.steps // how.evals) == 0 and how.steps % full.spacing == 0


def test_full_presets_of_transformers_use_the_fused_kernel_also_when_they_are_evaluated(a_text: Path) -> None:
    long = [each for each in full_courses(a_text) if each.name != "text"]
    experiments = [each for course in long for each in (course.teacher, course.student)]
    experiments += [parity_transformer.FULL.teacher, parity_transformer.FULL.student, teacher_phases.FULL.teacher]
    experiments += [each for sweep in parity_heads.study.presets["full"].sweeps for each in sweep.experiments]
    assert all(each.prepare is fuse_attention for each in experiments)


def test_fused_attention_gives_the_same_predictions() -> None:
    model = build(bert(8, 12, 2, layers=2, dropout=0.0)).eval()
    tokens = torch.randint(3, (4, 12), generator=torch.Generator().manual_seed(0))
    plain = model(tokens)
    fuse_attention(model)
    assert all(part.fused for part in model.modules() if isinstance(part, Attention))
    assert torch.allclose(model(tokens), plain, atol=1e-5)


def test_members_of_a_population_hide_the_same_keys_with_the_fused_kernel() -> None:
    course = masked_grammar.FULL.course
    small = replace(course.student.model, heads=2, width=16)
    batch = course.student.world.sample(3, rng=rng(0))

    def fused(seed: int) -> Model:
        model = build(small)
        fuse_attention(model)
        return model

    plain, quick = (Population(build_one, seeds=(0, 1, 2)).eval() for build_one in (lambda seed: build(small), fused))
    with torch.no_grad():
        assert torch.allclose(plain(batch.inputs), quick(batch.inputs), atol=1e-5)
