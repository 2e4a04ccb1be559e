"""The study of the embeddings of a minimal first layer."""

import numpy as np
from claim_cases import check
from dyck_cases import maps, measures_everything, runs, small
from stand_in import LAB

from sandlab.studies.dyck.embeddings import PANELS, Results, distance, study

OTHER = {"long_accuracy": 0.9, "violation": 0.2}


def test_every_claim_can_hold_and_can_fail() -> None:
    good = {panel: runs(accuracy=0.99, maps=maps(spread), **OTHER) for panel, spread in zip(PANELS, (0.9, 0.6, 0.3, 0))}
    alike = {panel: runs(accuracy=0.8, maps=maps(0.0), **OTHER) for panel in PANELS}
    check(study, Results(good), Results(alike))


def test_the_distance_of_two_groups_is_the_mean_over_pairs() -> None:
    assert distance(np.zeros((2, 3, 3)), np.ones((2, 3, 3))) == 9.0


def test_a_small_run_measures_every_claim_and_compares_the_panels_pair_by_pair() -> None:
    outcome = study.run(small(study.config("quick")), LAB, "quick")
    measures_everything(study, outcome, "quick")
    assert [row["panels"] for row in outcome.tables["distances"]] == ["ab", "ac", "ad", "bc", "bd", "cd"]
