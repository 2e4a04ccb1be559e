"""The claims of knowledge/fact-capacity on made-up accuracies."""

from __future__ import annotations

import numpy as np
import pytest
from claim_cases import check
from stand_in import LAB

from sandlab.learning.experiment import Runs, Training
from sandlab.studies.knowledge.fact_capacity import Results, _crossing, last_accuracy, settings, study
from sandlab.worlds.knowledge.facts import FactRecall

TRAINING = Training(steps=6, batch_size=8, evals=2, eval_examples=16)
WEIGHTS = [400, 800, 1600]
FACTS = np.array([[0.1, 0.2, 0.4]]) * np.array(WEIGHTS)[:, None]


def results(grid: list[list[float]], held: list[int]) -> Results:
    jitter = 1e-3 * np.arange(3)
    family = np.array([[0.995] * count + [0.4] * (3 - count) for count in held])[..., None] + 0 * jitter
    return Results(16, [4, 16], [0, 64], np.array(grid)[..., None] - jitter, WEIGHTS, FACTS, family)


def test_every_claim_can_hold_and_can_fail() -> None:
    good = results([[0.3, 0.8], [0.99, 1.0]], [2, 2, 2])
    bad = results([[0.9, 0.5], [0.5, 0.5]], [3, 1, 0])
    check(study, good, bad)


def test_capacity_lies_where_accuracy_crosses_the_level() -> None:
    found = results([[0.0, 0.0], [0.0, 0.0]], [0, 2, 3]).capacity[:, 0]
    assert found[0] == 1 and found[2] == FACTS[2, 2]
    assert FACTS[1, 1] < found[1] < 1.02 * FACTS[1, 1]  # 0.995 is held, 0.4 is far below 0.99


def test_a_law_of_accuracy_is_found_again_between_the_tries() -> None:
    tries = np.array([50.0, 100.0, 200.0, 400.0])
    assert _crossing(tries, 1 - 0.01 * np.log(tries) / np.log(137)) == pytest.approx(137)
    assert _crossing(tries, np.array([1.0, 0.98, 1.0, 1.0])) == pytest.approx(50 * 2**0.5)  # the first fall counts


def test_a_seed_that_stopped_early_has_its_last_accuracy() -> None:
    found = np.array([[0.2, 0.99, np.nan], [0.1, 0.5, 0.7]])
    runs = Runs((0, 1), np.arange(3), np.zeros((2, 3)), {"accuracy": found})
    assert last_accuracy(runs).tolist() == [0.99, 0.7]


def test_a_small_run_measures_and_draws() -> None:
    world = FactRecall(4, 4, 2, 4, 5)
    small = settings(
        world, TRAINING, 2, width=8, head_width=4, heads=(1, 4), hidden=(0, 8), stored=world, longer=TRAINING,
        members=3, widths=(6, 8), shares=(0.02, 0.05),
    )  # fmt: skip
    outcome = study.run(small, LAB)
    assert {finding.claim for finding in outcome.findings} == {claim.id for claim in study.claims}
    assert set(outcome.figures) == {"accuracy"}
