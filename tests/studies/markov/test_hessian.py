"""The study of curvature: claims on made-up spectra, and what the closed forms say at small size."""

from __future__ import annotations

import numpy as np
import pytest
from claim_cases import check
from markov_cases import measured
from stand_in import LAB

from sandlab.lenses.markov.marginal_hessian import MarginalCurvature, MarginalPoint
from sandlab.studies.claims import NotMeasured
from sandlab.studies.markov.hessian import Results, Settings, study, tied_minimum


def curvature(chain: tuple[float, float], tied: bool, seed: int | None, shift: float, gradient: float) -> object:
    """The closed form, shifted, at one point."""
    at = MarginalPoint(*chain, tied, length=3, width=2, seed=seed)
    values = np.array(at.theory.marginal_curvatures(2, tied)) + shift
    return MarginalCurvature(at, values, gradient, at.theory.marginal_loss)


def results(whole: float, bare: float, gradient: float) -> Results:
    cases = [(chain, tied) for chain in ((0.2, 0.3), (0.5, 0.8)) for tied in (True, False)]
    return Results(
        whole=[curvature(*case, seed, whole, gradient) for case in cases for seed in (0, 1)],
        bare=[curvature(*case, None, bare, gradient) for case in cases],
        curve=[curvature((0.4, 0.4), tied, None, bare, gradient) for tied in (True, False)],
    )


def test_every_claim_can_hold_and_can_fail() -> None:
    check(study, results(0.0, 0.0, 0.0), results(1.0, 0.1, 0.1), results(-1.0, 0.1, 0.1))


def test_the_study_finds_what_the_closed_forms_say() -> None:
    found, outcome = measured(study, Settings(seeds=1, length=3, width=2, curve=(0.4, 1.6)), LAB)
    assert set(found.values()) == {"holds"}
    assert len(outcome.tables["smallest eigenvalues"]) == 4


def test_claims_about_chains_that_were_not_measured_say_so() -> None:
    slow = Results(*(([each for each in part if each.at.p < 0.4]) for part in vars(results(0.0, 0.0, 0.0)).values()))
    with pytest.raises(NotMeasured, match="p \\+ q > 1"):
        tied_minimum(slow)
