"""Longer words: claims on made-up accuracies, and a run in miniature."""

from __future__ import annotations

from dataclasses import replace

import pytest
from automata_cases import runs, stored, tiny
from claim_cases import check
from stand_in import LAB

from sandlab.models.transformer import TransformerConfig
from sandlab.studies.automata._shared import with_tests
from sandlab.studies.automata.length_generalisation import NAMES, QUICK, Results, study


def results(*levels: float) -> Results:
    """Accuracies of the six models at the training length; at longer ones, the next model's."""
    table = {name: runs(variants=[[1.0, level]] * 2) for name, level in zip(NAMES, levels)}
    table[NAMES[0]] = runs(variants=[[levels[-1], levels[0]]] * 2)
    return Results(20, (20, 40), {"Dyck4_2": table, "C2": table})


def test_every_claim_can_hold_and_can_fail() -> None:
    check(
        study,
        stored(study, results(0.5, 0.6, 0.7, 1.0, 0.8, 1.0)),
        results(0.9, 0.6, 0.7, 0.8, 0.9, 0.9),
        results(0.9, 0.6, 0.7, 0.8, 0.9, 0.8),
    )


@pytest.mark.slow
def test_a_small_run_measures_every_claim_and_draws() -> None:
    outcome = study.run(replace(tiny(QUICK), lengths=(20, 40)), LAB)
    assert len(outcome.findings) == 8 and set(outcome.figures) == {"lengths"}
    assert [row["model"] for row in outcome.tables["lengths"]] == list(NAMES)


def test_claims_about_lengths_that_were_not_chosen_are_left_out() -> None:
    outcome = study.run(replace(tiny(QUICK, seeds=1), lengths=(20, 30)), LAB)
    absent = {claim.split(".")[1] for claim in outcome.unmeasured}
    assert absent == {"cliff", "lstm", "recency", "shifts", "no-positions"}


def test_the_models_reach_the_longest_words_with_a_token_for_each_state_of_a_scratchpad() -> None:
    made = [with_tests(experiment, lengths=(96,)).model for experiment in QUICK.dyck]
    lengths = [model.length for model in made if isinstance(model, TransformerConfig)]
    assert lengths == [96, 96, 96, 191, 191]
