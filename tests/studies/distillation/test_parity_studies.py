"""Claims of the parity studies on made-up results, and small runs of each."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from claim_cases import check
from stand_in import LAB

from sandlab.learning.distillation.phases import Phases
from sandlab.learning.experiment import Runs, Snapshot
from sandlab.learning.population import Population
from sandlab.models.base import build
from sandlab.models.distillation.published import gpt2_parity
from sandlab.random import rng
from sandlab.studies.distillation import (
    constructions,
    hierarchy,
    one_checkpoint,
    parity_mlp,
    parity_scaling,
    theory,
    two_stage,
)
from sandlab.studies.distillation._shared import Curves
from sandlab.studies.distillation.transformers import parity_heads, parity_transformer
from sandlab.worlds.distillation.parities import SparseParity

STEPS = np.arange(0, 11) * 1000


def rising(at: int, top: float = 1.0, seeds: int = 8) -> Curves:
    """Curves that jump from chance to `top` at an evaluation."""
    noise = 0.001 * np.arange(seeds)[:, None]
    return Curves(STEPS, np.where(np.arange(11) < at, 0.5, top) - noise * (np.arange(11) >= at))


FLAT = rising(11)


def test_claims_of_parity_mlp() -> None:
    names = ("labels", "one-shot", "one-shot, τ = 1")
    good = parity_mlp.Results(rising(4), {**dict.fromkeys(names, FLAT), "progressive": rising(5)}, 10_000)
    bad = parity_mlp.Results(FLAT, {**dict.fromkeys(names, rising(5)), "progressive": FLAT}, 10_000)
    check(parity_mlp.study, good, bad)


def test_a_small_run_of_parity_mlp() -> None:
    teacher = replace(parity_mlp.TEACHER, updates=300, save=50, every=50, width=20, settle=0, seeds=(0, 1))
    settings = parity_mlp.Settings(teacher, replace(parity_mlp.QUICK.student, updates=100, every=50, width=8), 100)
    outcome = parity_mlp.study.run(settings, LAB, "quick")
    assert len(outcome.findings) == len(parity_mlp.study.claims)
    assert outcome.results.students["progressive"].accuracy.shape == (2, 3)


def one_teacher(middle: float, others: float, ratio: float, last: float) -> one_checkpoint.Teacher:
    seeds = 8
    inside = np.array([[0.01, 0.01, 0.01], [0.01 * ratio] * 3, [0.01 * last] * 3])
    found = one_checkpoint.Correlations(np.array([1, 2, 3]), inside, np.full((3, 3), 0.01), np.zeros((3, 9)))
    students = {"middle": rising(3, middle), "largest correlation": rising(3, middle)}
    students |= {"before": rising(3, others), "final": rising(3, others)}
    steps = {name: [1000] * seeds for name in students}
    return one_checkpoint.Teacher(rising(4), [Phases(1, 2, 3)] * seeds, steps, [found] * seeds, {50: students})


def test_claims_of_one_checkpoint() -> None:
    good = one_checkpoint.Results([one_teacher(1.0, 0.5, 5.0, 1.0)])
    bad = one_checkpoint.Results([one_teacher(0.6, 0.9, 1.0, 1.6)])
    check(one_checkpoint.study, good, bad)


def test_a_small_run_of_one_checkpoint() -> None:
    teacher = replace(parity_mlp.TEACHER, updates=200, save=50, every=50, width=20, settle=0, seeds=(0, 1))
    settings = replace(
        one_checkpoint.QUICK,
        teachers=(teacher,),
        student=replace(one_checkpoint.QUICK.student, updates=60, every=30),
        widths=(8,),
        first=30,
        before=50,
        points=2,
        examples=200,
    )
    outcome = one_checkpoint.study.run(settings, LAB, "quick")
    assert len(outcome.findings) == len(one_checkpoint.study.claims) and set(outcome.figures) == {
        "teacher 1",
        "coordinates",
    }


def hierarchy_results(pair: float, other: float, apart: bool) -> hierarchy.Results:
    names = {
        "labels": other,
        "one-shot": other,
        "progressive": (pair + other) / 2,
        "a, b": pair,
        "c, d": other,
        "e": other,
    }
    groups = np.full((8, 5, 4), 0.01)
    for index in range(3):
        groups[:, index if apart else 2, index] = 0.2
    students = {name: rising(2, top) for name, top in names.items()}
    return hierarchy.Results(FLAT, {50: students}, ["a, b"], "c, d", ["e"], np.arange(5), groups)


def test_claims_of_hierarchy() -> None:
    check(hierarchy.study, hierarchy_results(0.95, 0.4, True), hierarchy_results(0.4, 0.9, False))


def test_a_small_run_of_hierarchy() -> None:
    settings = replace(
        hierarchy.QUICK,
        teacher=replace(hierarchy.QUICK.teacher, updates=200, save=20, every=50, width=20, seeds=(0, 1)),
        student=replace(hierarchy.QUICK.student, updates=60, every=30),
        widths=(8,),
        first=20,
        spacing=20,
        inside=((60, 80),),
        outside=(20, 160),
        single=(80,),
        watched=100,
        examples=200,
    )
    assert len(hierarchy.study.run(settings, LAB, "quick").findings) == len(hierarchy.study.claims)


def test_claims_of_scaling() -> None:
    fast, slow = ({50: rising(8), 200: rising(5), 1000: rising(2)}, {50: rising(2), 200: rising(5), 1000: rising(8)})
    check(parity_scaling.study, *(parity_scaling.Results(each, 20_000) for each in (fast, slow)))


def test_claims_of_heads() -> None:
    fast, slow = ({4: rising(8), 32: rising(2)}, {4: rising(2), 32: rising(8)})
    names = (parity_heads.NARROW, parity_heads.SHARED, parity_heads.AVERAGED)
    check(parity_heads.study, *(parity_heads.Results(dict.fromkeys(names, each), 20_000) for each in (fast, slow)))


def test_heads_are_narrow_or_share_the_stream_or_are_averaged() -> None:
    """Figure 4.13: head width 8; a stream of 256 for all; heads as wide as the stream, averaged."""
    names = (parity_heads.NARROW, parity_heads.SHARED, parity_heads.AVERAGED)
    found = [parity_heads.sized(name, 40, 4, 256) for name in names]
    assert [(each.width, each.head_width, each.average_heads) for each in found] == [
        (32, 8, False), (256, 64, False), (256, 256, True)
    ]  # fmt: skip
    full = parity_heads.study.presets["full"].sweeps
    assert [each.name for each in full] == list(names) and all(each.heads == (4, 8, 16, 32) for each in full)


def test_a_small_run_of_heads() -> None:
    brief = {"steps": 4, "evals": 2, "batch_size": 4, "eval_examples": 8, "warmup": 0}
    sweeps = [
        replace(each, experiments=tuple(replace(e, training=replace(e.training, **brief), seeds=2) for e in own))
        for each in parity_heads.QUICK.sweeps
        for own in (each.experiments,)
    ]
    outcome = parity_heads.study.run(parity_heads.Settings(tuple(sweeps)), LAB, "quick")
    assert len(outcome.findings) == 1 and outcome.results.never == 8


def transformer_results(good: bool) -> parity_transformer.Results:
    early, late = (rising(2, seeds=3), rising(9, seeds=3)) if good else (rising(9, seeds=3), rising(2, seeds=3))
    correlation = np.full((3, 11, 12), 0.01)
    correlation[:, 4, :3] = 0.2 if good else 0.01
    metrics = {
        "accuracy": (rising(3, seeds=3) if good else rising(10, seeds=3)).accuracy,
        "correlation": correlation,
        "path on": np.tile(np.linspace(0.1, 0.5 if good else 0.1, 11), (3, 1)),
        "path off": np.full((3, 11), 0.1) + 0.001 * np.arange(3)[:, None],
    }
    runs = Runs((0, 1, 2), STEPS, np.zeros((3, 1)), metrics)
    students = {"labels": late, "one-shot, τ = 1": late, "progressive": early, "two-shot, τ = 0": early}
    students |= {"two-shot, τ = 0.01": early if good else rising(1, seeds=3), "two-shot, τ = 1": late}
    return parity_transformer.Results(runs, students, 3, 20_000)


def test_claims_of_transformers() -> None:
    check(parity_transformer.study, transformer_results(True), transformer_results(False))


def start(on: float, wrong: float = 0.0) -> theory.Start:
    return theory.Start(wrong, wrong, on, 0.001, 0.125 + wrong, (0.125 + wrong) * 3 / 9 + wrong, wrong, wrong)


def test_claims_of_the_theory() -> None:
    """The misprint about random networks must hold here too: it is judged like the others."""
    good = theory.Results([0.0], 0.0, 2.0, [start(0.05), start(0.051)], [start(0.06), start(0.061)], 4, 13, 256)
    bad = theory.Results([1.0], 1.0, 0.5, [start(0.01, 0.1), start(0.011, 0.1)], [start(0.01, 0.1)] * 2, 4, 13, 256)
    check(theory.study, good, bad)


def test_a_small_run_of_the_theory_finds_the_closed_forms() -> None:
    outcome = theory.study.run(theory.Settings(dimension=9, width=64, seeds=2), LAB, "quick")
    verdicts = {finding.claim.rpartition(".")[2]: finding.verdict for finding in outcome.findings}
    exact = ("majority-coefficients", "ratio-of-coefficients", "gradient", "weights", "even-degrees", "corollary")
    assert {verdicts[name] for name in (*exact, "pair-on-support", "pair-off-support")} == {"holds"}


def test_claims_of_two_stage() -> None:
    good, bad = np.zeros((2, 3, 4, 20), dtype=bool), np.zeros((2, 3, 4, 20), dtype=bool)
    good[:, 1, 1:], bad[:, 0], bad[:, 2] = True, True, True
    batches = (32, 128, 2048, 8192)
    check(two_stage.study, *(two_stage.Results((15, 21), batches, each) for each in (good, bad)))


def test_a_small_run_of_two_stage() -> None:
    settings = two_stage.Settings(dimensions=(15,), batches=(32, 128, 8192), seeds=1, student=16, teacher=32)
    assert len(two_stage.study.run(settings, LAB, "quick").findings) == 3


def test_claims_of_constructions() -> None:
    offsets = (-3.0, 0.0)
    noise = 1e-4 * np.arange(5)
    good = constructions.Results(offsets, np.array([0.6 + noise, np.ones(5)]), np.ones(5), 5.9)
    bad = constructions.Results(offsets, np.array([0.9 + noise, 0.8 + 0 * noise]), 0.7 + noise, 5.9)
    check(constructions.study, good, bad)


@pytest.mark.slow
def test_a_small_run_of_constructions() -> None:
    settings = constructions.Settings(dimension=12, order=3, examples=50, seeds=2)
    assert len(constructions.study.run(settings, LAB, "quick").findings) == 3


def test_correlations_read_in_parts_are_those_read_at_once() -> None:
    world = SparseParity(6, 2, "tokens")
    model = Population(lambda _: build(gpt2_parity(6, 2)), seeds=range(2))
    seen = Snapshot(model, world, world.sample(4, rng=rng(0)))
    probe = parity_transformer.CoordinateCorrelations(50)
    whole, parts = (each(seen)["correlation"] for each in (probe, parity_transformer.InParts(probe, at_once=16)))
    assert whole.shape == (2, 6) and whole.max() > 0
    np.testing.assert_allclose(parts, whole, atol=1e-7)
