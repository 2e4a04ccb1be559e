"""The study of attention between seeds."""

from dataclasses import replace

import pytest
from claim_cases import check
from dyck_cases import maps, measures_everything, runs, small
from stand_in import LAB

from sandlab.studies.dyck.attention_variation import Results, study

GOOD = runs(accuracy=0.99, long_accuracy=0.8, maps=maps(0.0, 0.3), stack_like=0.5)
ALIKE = runs(accuracy=0.6, long_accuracy=0.5, maps=maps(0.8, 0.1), stack_like=0.95)
MINIMAL = runs(accuracy=0.99, long_accuracy=0.9, maps=maps(0.1), stack_like=0.5)


def test_every_claim_can_hold_and_can_fail() -> None:
    good = Results({"standard": GOOD, "linear": GOOD, "wide": GOOD, "minimal": MINIMAL}, 2.886)
    check(study, good, Results({"standard": ALIKE, "linear": ALIKE, "wide": ALIKE, "minimal": MINIMAL}, 3.3))


def test_settings_that_are_left_out_are_not_measured() -> None:
    outcome = study.judge(Results({"standard": GOOD, "minimal": MINIMAL}, 2.886), "full")
    assert list(outcome.unmeasured) == ["dyck/attention-variation.varies-linear"]
    names = [row["setting"] for row in outcome.tables["variation"]]
    assert names == ["standard, positions none", "minimal first layer", "random causal maps"]


@pytest.mark.slow
def test_a_small_run_of_the_full_settings_measures_every_claim() -> None:
    settings = study.config("full")
    outcome = study.run(small(replace(settings, wide=None)), LAB, "full")
    measures_everything(study, outcome, "full")
    assert set(outcome.figures) == {"maps", "variation"} and len(outcome.tables["variation"]) == 5
    assert outcome.results.runs["standard"].final["maps"].shape == (3, 2, 17, 17)
