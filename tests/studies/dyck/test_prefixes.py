"""The study of Dyck prefixes."""

import numpy as np
import pytest
from claim_cases import check
from dyck_cases import SEEDS, maps, measures_everything, runs, small
from stand_in import LAB

from sandlab.learning.experiment import Runs
from sandlab.studies.dyck.prefixes import Results, ends_mass, study

GROWING = np.linspace(0.0, 0.02, SEEDS)
OWN = np.broadcast_to(np.eye(17), (SEEDS, 1, 17, 17)).copy()


def minimal(violation: float, accuracy: float, sign: int, known: float, spread: float) -> Runs:
    return runs(
        violation=violation + GROWING, long_accuracy=accuracy + sign * GROWING, accuracy=known, maps=maps(0.0, spread),
        worst_violation=0.5, drift=0.1, long_threshold=0.7,
    )  # fmt: skip


def standard(known: float, own: float, spread: float) -> Runs:
    return runs(accuracy=known, maps=own * OWN + (1 - own) * maps(spread))


def test_every_claim_can_hold_and_can_fail() -> None:
    good = Results(minimal(0.24, 0.8, 1, 0.99, 0.1), minimal(0.1, 0.95, 1, 0.99, 0.1), standard(0.99, 0.6, 1.0),
                   standard(0.99, 0.6, 1.0))  # fmt: skip
    bad = Results(minimal(0.1, 0.9, -1, 0.8, 0.9), minimal(0.24, 0.8, 1, 0.8, 0.9), standard(0.8, 0.0, 0.1),
                  standard(0.8, 0.0, 0.1))  # fmt: skip
    check(study, good, bad)


def test_mass_on_the_own_and_on_the_first_position_is_counted() -> None:
    assert ends_mass(np.tile(np.eye(5), (2, 1, 1))) == pytest.approx([1.0, 1.0])
    first = np.zeros((1, 5, 5))
    first[:, :, 0] = 0.5
    assert ends_mass(first) == pytest.approx([0.5])


def test_a_small_run_of_the_full_settings_measures_every_claim() -> None:
    outcome = study.run(small(study.config("full")), LAB, "full")
    measures_everything(study, outcome, "full")
    assert set(outcome.figures) == {"balance", "maps"} and set(outcome.tables) == {"models", "variation"}
    assert [row["setting"] for row in outcome.tables["variation"]] == ["none", "linear", "minimal"]
