"""The study of sample sizes: claims on made-up errors, and a small run."""

from __future__ import annotations

import numpy as np
import pytest
from claim_cases import verdicts
from stand_in import LAB

from sandlab.studies.nce.likelihood import METHODS, Results, Settings, study


def results(power: float, prices: tuple[tuple[float, ...], ...], factor: float = 1.0) -> Results:
    """Errors n^power times the theory and a factor; prices of NCE and eNCE for each distance."""
    distances, sizes = np.array([1.0, 2.0, 3.0]), np.array([500, 2000, 8000, 32_000])
    theory = np.array([(1.0,) * 3, *prices]) * (1 + distances**2)
    noise = 1 + 0.01 * np.linspace(-1, 1, 8)
    errors = factor * theory[:, :, None, None] * sizes[:, None] ** power * noise
    return Results(distances, sizes, errors, theory)


TRUE = ((2.2, 3.5, 8.5), (2.3, 5.0, 21.7))


def test_every_claim_can_hold_and_can_fail() -> None:
    good, bad = verdicts(study, results(-1.0, TRUE)), verdicts(study, results(-0.5, ((1.0,) * 3,) * 2, factor=3.0))
    assert set(good.values()) == {"holds"} and set(bad.values()) == {"fails"} and len(good) == 5


@pytest.mark.parametrize(
    ("prices", "claim"),
    [
        (((2.2, 3.5, 3.0), TRUE[1]), "farther-is-dearer"),
        ((TRUE[0], (2.3, 5.0, 9.0)), "ence-is-dearer"),
        (((2.2, 1.2, 8.5), TRUE[1]), "likelihood-first"),
    ],
)
def test_each_price_has_its_claim(prices: tuple, claim: str) -> None:
    found = verdicts(study, results(-1.0, prices))
    assert [name for name, verdict in found.items() if verdict == "fails"] == [claim]


@pytest.mark.slow
def test_a_small_run_measures_every_claim_and_its_null_lacks_the_effect() -> None:
    small = Settings(distances=(1.0, 2.0), sizes=(500, 2000), repeats=10, seeds=3)
    outcome = study.run(small, LAB)
    assert len(outcome.findings) == len(study.claims)
    assert outcome.results.errors.shape == (len(METHODS), 2, 2, 3) and set(outcome.figures) == {"errors"}
    assert [row["R"] for row in outcome.tables["samples"]] == [1.0, 2.0]
    null = study.run(Settings(distances=(1.0, 2.0), sizes=(500, 2000), repeats=10, seeds=3, swapped=True), LAB)
    assert not {finding.verdict for finding in null.findings} & {"holds"}
