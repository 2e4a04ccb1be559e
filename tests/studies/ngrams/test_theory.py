"""The study of the lemmas: claims on made-up numbers, and every lemma at toy size."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from claim_cases import check
from stand_in import LAB

from sandlab.studies.ngrams.theory import Results, lemma, study


def results(error: float, gap: float, sign: float) -> Results:
    """Exact parts off by `error`, predictors `gap` away from the oracle, and a sign for what is sampled."""
    noise = np.random.default_rng(0).normal(scale=1e-3, size=(6, 1))
    losses = np.array([1.0, 1.0 - 0.1 * sign, 1.0 - 0.2 * sign]) + noise
    spectra = np.array([-0.1 * sign, 0.0, 1.0]) + noise
    exact = dict.fromkeys(lemma.computed, error) | {"not-optimal": gap}
    return Results(study.presets["quick"], np.full((6, 4, 4), error + 0.001), losses[:, :, None], spectra, {}, exact)


def test_every_claim_can_hold_and_can_fail() -> None:
    check(study, results(error=0.0, gap=0.2, sign=1.0), results(error=0.5, gap=0.0, sign=-1.0))


def test_every_lemma_holds_at_toy_size() -> None:
    settings = replace(
        study.presets["quick"],
        seeds=2,
        lengths=(100, 1000),
        temperatures=(3.0, 5.0),
        sequences=256,
        hessian_sequences=32,
    )
    outcome = study.run(settings, LAB)
    exact = {claim.id for claim in study.claims if claim.relation.kind == "exact"}
    assert {finding.verdict for finding in outcome.findings if finding.claim in exact} == {"holds"}
    assert set(outcome.figures) == {"theory"}
