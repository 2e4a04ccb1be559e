"""The study of near-stationary points: claims on made-up gradients, and a small run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from claim_cases import verdicts
from stand_in import LAB

from sandlab.studies.ngrams.near_stationary import COLUMNS, Results, enumerated_norms, lemma, study


def results(rate: float, sampled: tuple[float, float], growth: float, error: float, seeds: int = 6) -> Results:
    """A block that falls like T^rate, norms at both ends, a growth of the norm with c, and errors of exact parts."""
    lengths, rng = (32, 64, 128, 256), np.random.default_rng(0)
    noise = np.exp(rng.normal(scale=0.01, size=(seeds, 4, 2, len(COLUMNS))))
    closed = np.array(lengths)[:, None, None] ** rate * noise
    norms = np.ones((seeds, 2, 2, 3, 3)) * np.exp(rng.normal(scale=0.01, size=(seeds, 1, 1, 1, 1)))
    norms[..., 2] = 10 * sampled[0]
    norms[:, :, :, :, 0] *= np.array(sampled)[:, None, None] * growth ** np.arange(3)
    norms[:, 1, ..., 2] *= 1 if sampled[1] < sampled[0] else 0.01
    enumerated = np.array([[[growth**c / length for length in (1, 2, 3, 4)] for c in range(3)]] * 2)
    return Results(
        lengths, (5.0, 10.0, 20.0), closed, norms, enumerated if growth > 1 else enumerated[..., ::-1],
        dict.fromkeys(lemma.computed, error),
    )  # fmt: skip


def test_every_claim_can_hold_and_can_fail() -> None:
    good = results(rate=-1.0, sampled=(1.0, 0.2), growth=1.5, error=0.0)
    found = verdicts(study, good)
    assert {name for name, verdict in found.items() if verdict != "holds"} == {"printed-rate"}
    bad = verdicts(study, results(rate=0.5, sampled=(0.2, 1.0), growth=0.5, error=1.0))
    assert {name for name, verdict in bad.items() if verdict != "fails"} <= {"printed-rate"}
    exponential = replace(good, closed=np.exp(-np.array(good.lengths))[:, None, None] * np.ones((6, 1, 2, 5)))
    assert verdicts(study, exponential)["printed-rate"] == "holds"


def test_exact_gradients_fall_with_the_length_and_grow_with_the_temperature() -> None:
    norms = enumerated_norms()
    assert (np.diff(norms, axis=-1) < 0).all() and (np.diff(norms, axis=1) > 0).all()


def test_the_surviving_block_has_its_closed_form_at_toy_size() -> None:
    settings = replace(study.presets["quick"], seeds=2, lengths=(16, 32), closed_sequences=512, sampled_sequences=64)
    outcome = study.run(settings, LAB)
    verdicts = {finding.claim.partition(".")[2]: finding.verdict for finding in outcome.findings}
    exact = {claim.id.partition(".")[2] for claim in study.claims if claim.relation.kind == "exact"}
    assert {verdicts[name] for name in exact} == {"holds"}
    assert set(outcome.figures) == {"gradient"} and set(outcome.tables) >= {"closed form", "enumerated"}
