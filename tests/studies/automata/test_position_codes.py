"""Position codes: claims on made-up accuracies, and a run in miniature."""

from __future__ import annotations

from automata_cases import runs, stored, tiny
from claim_cases import check
from stand_in import LAB

from sandlab.models.transformer import TransformerConfig
from sandlab.studies.automata.position_codes import GRID, LINE, MIXED, PURE, QUICK, SINE, Results, linear, study


def results(language: tuple[float, float], walk: tuple[float, float]) -> Results:
    """Accuracies with sinusoids at the training length and at twice that; a linear code has 0.8 everywhere."""
    flat = runs(variants=[[0.8, 0.8]] * 3)
    pair = {SINE: runs(variants=[language] * 3), LINE: flat}
    return Results({GRID: {SINE: runs(variants=[walk] * 3), LINE: flat}, PURE: pair, MIXED: pair})


def test_every_claim_can_hold_and_can_fail() -> None:
    check(study, stored(study, results((1.0, 0.85), (0.99, 0.7))), results((0.8, 0.9), (0.9, 0.95)))


def test_the_linear_code_reaches_the_norm_of_a_token_vector_at_the_training_length() -> None:
    model = linear(QUICK.grid).model
    assert isinstance(model, TransformerConfig) and model.positions == "linear"
    assert model.position_slope == 64**0.5 / 24


def test_a_small_run_measures_every_claim_and_draws() -> None:
    outcome = study.run(tiny(QUICK), LAB)
    assert len(outcome.findings) == 4 and set(outcome.figures) == {"codes"} and len(outcome.tables["codes"]) == 6
