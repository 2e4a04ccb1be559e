"""The study of the theorems on balance."""

import numpy as np
import pytest
from claim_cases import check
from dyck_cases import measures_everything
from stand_in import LAB

from sandlab.studies.dyck._exact_models import NOISES, PUMPS, Draw, DrawJob, examine
from sandlab.studies.dyck.theorems import Results, Settings, study
from sandlab.worlds.dyck.language import Dyck


def draw(seed: int, error: float, kept: float, correlated: bool, spread: float) -> Draw:
    """A made-up draw: `error` of exact models, memory `kept` under pumping, maps that differ by `spread`."""
    losses = np.arange(len(NOISES)) + 1e-3 * seed
    pairs = np.maximum(PUMPS, 1) * (1 + 0.01 * seed)
    pattern = np.eye(4)[(np.arange(4) * (1 + seed)) % 4] * spread + np.full((4, 4), 0.25) * (1 - spread)
    return Draw(
        errors=np.array([error, *losses[1:]]),
        violations=np.arange(len(NOISES)) * (1.0 if correlated else -1.0),
        losses=losses,
        ratios=losses,
        any_embedding=error,
        random_apart=error,
        cancelling=error,
        not_cancelling=0.2 if error < 1e-6 else 0.0,
        faded=0.1 if error < 1e-6 else 0.5,
        map=pattern,
        balanced_pump=np.array([1.0] * (len(PUMPS) - 1) + [kept]),
        disturbed_pump=1 / pairs if error < 1e-6 else np.ones(len(PUMPS)),
    )


def results(error: float, kept: float, correlated: bool, spread: float) -> Results:
    draws = [draw(seed, error, kept, correlated, spread) for seed in range(6)]
    return Results(draws, error, {"uniform": (np.eye(4), error)}, [error])


def test_every_claim_can_hold_and_can_fail() -> None:
    check(study, results(1e-12, 1.0, True, 1.0), results(0.1, 0.5, False, 0.0))


def test_exact_models_stay_exact_and_disturbed_ones_do_not() -> None:
    found = examine(DrawJob(Dyck(depth=3, length=60), 0))
    assert found.errors[0] < 1e-9 and found.errors[-1] > 0.1


@pytest.mark.slow
def test_a_small_run_measures_every_claim() -> None:
    outcome = study.run(Settings(seeds=2, world=Dyck(length=40)), LAB, "quick")
    measures_everything(study, outcome, "quick")
    exact = {finding.claim: finding.verdict for finding in outcome.findings if finding.kind == "exact"}
    assert set(exact.values()) == {"holds"}
