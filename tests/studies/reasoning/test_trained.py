"""Studies of trained transformers on LEGO: claims on made-up runs, and small runs of each."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from claim_cases import check
from stand_in import remembering

from sandlab.learning.experiment import Experiment, Runs, Training
from sandlab.learning.reasoning.self_training import SelfTrainingStage
from sandlab.lenses.reasoning.answers import LengthAccuracy
from sandlab.lenses.reasoning.concentration import ContextRot, Diagonals, PermutationCheck, PlainMaps
from sandlab.lenses.reasoning.routing import routing_blocks
from sandlab.models.reasoning.lego import LegoConfig
from sandlab.studies.reasoning import (
    attention_maps,
    attention_out_of_length,
    equal_loss,
    label_noise,
    length_generalisation,
    matched_pairs,
    permuted_predicates,
    position_encodings,
    self_training,
    self_training_variants,
    variants,
)
from sandlab.studies.reasoning._chains import ChainRuns
from sandlab.studies.reasoning._shared import FULL_LENGTHS, Pair, PairRuns
from sandlab.worlds.reasoning.lego import Lego

SEEDS = 6
SMALL = Training(steps=2, batch_size=8, lr=1e-3, optimizer="adam", evals=1, eval_examples=16)


def maps(mass: float) -> np.ndarray:
    """Maps with the given mass on both diagonals, one fifth of it on the answers."""
    found = np.full((SEEDS, 5, 10), (1 - mass) / 8)
    found[:, np.arange(5), np.arange(5)] = 0.6 * mass
    found[:, np.arange(5), 5 + np.arange(5)] = 0.4 * mass
    return found


def runs(accuracy: list[float], *, mass: float = 0.98, fall: float = 0.1, loss: float = 1e-6, **final: Any) -> Runs:
    """Made-up runs: accuracy at the full lengths, attention mass on the targets, its fall with length."""
    noise = 1e-4 * np.arange(SEEDS)[:, None]
    blocks = np.zeros((SEEDS, 5, 5))
    blocks[:, 3, 2:4] = 6.0 * mass - 0.5
    diagonals = {
        f"{kind} {n}": np.full((SEEDS, n), share * mass) - fall * np.linspace(0, 0.1, n) - fall * np.log2(n / 10) * 0.2
        for kind, share in (("predicate", 0.6), ("answer", 0.4))
        for n in (10, 20, 40)
    }
    made = {
        "all steps": np.array(accuracy) + noise * 0,
        "per step": np.tile(accuracy, (SEEDS, 1)),
        "map": maps(mass),
        "left over": np.full((SEEDS, 5), 1 - mass),
        "top predicate": np.full(SEEDS, min(1.0, mass + 0.02)),
        "top answer": np.full(SEEDS, min(1.0, mass + 0.02)),
        "blocks": blocks,
        "logit change": np.full(SEEDS, 1e-6 if mass > 0.5 else 0.1),
        "followed": np.full(SEEDS, min(1.0, mass + 0.02)),
        "permuted map": maps(mass),
        "permutation": np.tile([2, 0, 1, 4, 3], (SEEDS, 1)),
        "rot accuracy": np.full((SEEDS, 3), 0.9),
        "rot left over": np.tile([0.02, 0.02 + fall, 0.02 + 2 * fall], (SEEDS, 1)),
        **{f"block {n}": np.zeros((SEEDS, n, 2 * n)) for n in (10, 20, 40)},
        **diagonals,
        **final,
    }
    made["all steps"] = np.tile(accuracy, (SEEDS, 1)) + noise
    curve = np.full((SEEDS, 3), loss)
    return Runs(tuple(range(SEEDS)), np.arange(3), np.full((SEEDS, 5), loss), {"loss": curve}, made)


PERFECT, CONSTANT, NOTHING = [0.999] * 5 + [0.98], [1.0, 0.99, 0.9, 0.3, 0.0, 0.0], [0.0] * 6
RISING = [0.6, 0.6, 0.7, 0.8, 0.8, 0.8]


def pair(first: Runs, second: Runs) -> PairRuns:
    return PairRuns(first, second, FULL_LENGTHS, ("C6", "S5"))


def test_claims_of_figure_1a() -> None:
    good = pair(runs(PERFECT), runs(CONSTANT))
    check(length_generalisation.study, good, pair(runs(NOTHING), runs(NOTHING)), pair(runs(RISING), runs(RISING)))


def test_claims_of_figures_2_and_5() -> None:
    good, bad = pair(runs(PERFECT), runs(CONSTANT)), pair(runs(NOTHING, mass=0.1), runs(NOTHING, mass=0.1))
    check(attention_maps.study, good, bad)
    check(permuted_predicates.study, good, bad)


def test_claims_of_figures_6_and_7() -> None:
    good = pair(runs(PERFECT), runs(CONSTANT))
    bad = pair(runs(PERFECT, fall=-0.5), runs(CONSTANT, fall=-0.5))
    check(attention_out_of_length.study, good, bad)


def test_claims_at_equal_loss() -> None:
    check(
        equal_loss.study, pair(runs(PERFECT), runs(CONSTANT)), pair(runs(CONSTANT, loss=0.1), runs(CONSTANT, loss=0.1))
    )


def chain(*stages: list[float], labels: float = 0.99) -> ChainRuns:
    accuracy = np.tile(np.array(stages), (SEEDS, 1, 1)) + 1e-5 * np.arange(SEEDS)[:, None, None]
    ones = np.full((SEEDS, len(stages) - 1), labels)
    trained = (5, 10, 20, 40)[: len(stages)]
    return ChainRuns(tuple(range(SEEDS)), FULL_LENGTHS, trained, accuracy, ones, ones, ones, ones)


def test_claims_of_figure_1b() -> None:
    good = self_training.Results({"published": chain(CONSTANT, CONSTANT, PERFECT, PERFECT)}, runs(PERFECT))
    worse = self_training.Results({"published": chain(CONSTANT, NOTHING, NOTHING, NOTHING, labels=0.3)}, runs(PERFECT))
    check(self_training.study, good, worse)


def test_claims_about_variants_of_self_training() -> None:
    names = ("published", "more data", "certain labels")
    good = self_training.Results({name: chain(CONSTANT, PERFECT) for name in names}, runs(PERFECT))
    bad = self_training.Results({name: chain(CONSTANT, NOTHING) for name in names}, runs(PERFECT))
    check(self_training_variants.study, good, bad)


def test_claims_about_noise() -> None:
    good = label_noise.Results({"0": chain(CONSTANT, PERFECT), "0.5": chain(CONSTANT, NOTHING)}, (0.0, 0.5))
    bad = label_noise.Results({"0": chain(CONSTANT, NOTHING), "0.5": chain(CONSTANT, NOTHING)}, (0.0, 0.5))
    check(label_noise.study, good, bad)


def test_claims_about_matched_pairs() -> None:
    tasks = {"C5": PERFECT, "S5": CONSTANT, "C6": PERFECT, "S3 regular": PERFECT, "S3": CONSTANT}
    good = matched_pairs.Results({name: runs(values) for name, values in tasks.items()}, FULL_LENGTHS)
    bad = matched_pairs.Results({name: runs(NOTHING) for name in tasks}, FULL_LENGTHS)
    check(matched_pairs.study, good, bad)


def test_claims_about_variants() -> None:
    def results(plain: tuple, stream: tuple, identity: tuple) -> variants.Results:  # type: ignore[type-arg]
        names = ("no residual", "residual", "identity values")
        both = [dict(zip(names, each)) for each in zip(plain, stream, identity)]
        return variants.Results(both[0], both[1], FULL_LENGTHS)

    good = results(
        (runs(PERFECT), runs(CONSTANT)), (runs(CONSTANT, map=maps(0.3)), runs(PERFECT)), (runs(PERFECT), runs(PERFECT))
    )
    bad = results((runs(NOTHING), runs(PERFECT)), (runs(PERFECT), runs(NOTHING)), (runs(PERFECT), runs(NOTHING)))
    check(variants.study, good, bad)


def test_claims_about_positions() -> None:
    def results(none: Runs, other: Runs) -> position_encodings.Results:
        kinds = {kind: none if kind == "none" else other for kind in position_encodings.KINDS}
        return position_encodings.Results(kinds, FULL_LENGTHS, (0, 5, 10))

    worse = runs([1.0, 0.5, 0.2, 0.1, 0.0, 0.0], fall=-0.01)
    check(position_encodings.study, results(runs(PERFECT), runs(CONSTANT)), results(worse, runs(PERFECT)))


def tiny(action: str, *, lengths: tuple[int, ...] = (5, 10, 20), **model: Any) -> Experiment:
    world = Lego(action, variables=46, length=5)
    final = (LengthAccuracy(lengths, 4), PlainMaps(4), PermutationCheck(4), Diagonals((10, 20, 40), 2), routing_blocks)
    config = LegoConfig(world.vocab, token_width=8, head_width=4, hidden=8, **model)
    return Experiment(world, config, SMALL, seeds=2, final=final)


@pytest.mark.parametrize(
    "study",
    [length_generalisation.study, attention_maps.study, permuted_predicates.study, attention_out_of_length.study],
    ids=lambda study: study.name,
)
def test_small_runs_of_the_paired_studies_measure_and_draw(study: Any) -> None:
    outcome = study.run(Pair(tiny("C6"), tiny("S3")), remembering(), "quick")
    due = {claim.id for claim in study.due("quick")}
    assert {finding.claim for finding in outcome.findings} | set(outcome.unmeasured) == due and outcome.figures


def test_small_runs_of_the_other_studies_measure_and_draw() -> None:
    lab = remembering()
    stage = SelfTrainingStage(10, 6, SMALL)
    chains = (self_training.Chain("published", (stage, replace(stage, length=20))),)
    rot = tuple(
        replace(tiny("C6", positions=kind), final=(LengthAccuracy((5, 10, 20), 4), ContextRot((0, 5), 5, 4)))
        for kind in position_encodings.KINDS
    )
    variant = [
        variants.Variant("no residual", tiny("C6"), tiny("S3")),
        variants.Variant("residual", tiny("C6", residual=True), tiny("S3", residual=True)),
        variants.Variant("identity values", tiny("C6", values="identity"), tiny("S3", values="identity")),
    ]
    cases: list[tuple[Any, Any]] = [
        (self_training.study, self_training.Settings(tiny("S3"), chains, tiny("C6"))),
        (label_noise.study, label_noise.Settings(tiny("S3"), replace(stage, truth=True), (0.0, 0.5))),
        (matched_pairs.study, matched_pairs.Settings((tiny("C6"), tiny("S3 regular"), tiny("S3")))),
        (position_encodings.study, position_encodings.Settings(rot)),
        (variants.study, variants.Settings(tuple(variant))),
        (equal_loss.study, Pair(*(equal_loss.stopped(tiny(name), 1e-3, 1) for name in ("C6", "S3")))),
    ]
    for study, settings in cases:
        outcome = study.run(settings, lab, "quick")
        due = {claim.id for claim in study.due("quick")}
        assert {finding.claim for finding in outcome.findings} | set(outcome.unmeasured) == due and outcome.figures
