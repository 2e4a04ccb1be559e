"""The study of the flow: claims on made-up portraits, the starts on samples, and a small run."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from claim_cases import check
from markov_cases import made_up, measured, tiny
from stand_in import LAB

from sandlab.learning.experiment import Runs
from sandlab.learning.markov.one_layer import SADDLE_ENERGY, Basin, OneLayerMarkovTheory, flow_energy
from sandlab.studies.markov.flow_portrait import FAST, SLOW, STARTS, Portrait, Results, Settings, sampled, study


def run(theory: OneLayerMarkovTheory, start: tuple[float, float], as_predicted: bool) -> Runs:
    """From the start to a global minimum or to the marginal."""
    escapes = bool(theory.escapes(*torch.tensor(start, dtype=torch.float64)))
    gain = theory.best_gain if escapes == as_predicted else 0.0
    end = (abs(gain) ** 0.5, 0.0 if gain >= 0 else -1.0)
    return made_up({"path": [start, end]})


def portrait(chain: tuple[float, float], small_init: int, agreement: float, as_predicted: bool) -> Portrait:
    basin = Basin(torch.ones(6, 6, dtype=torch.bool), agreement)
    samples = [run(OneLayerMarkovTheory(*chain), start, as_predicted) for start in STARTS]
    return Portrait(*chain, basin, np.full(2000, small_init), samples)


def test_every_claim_can_hold_and_can_fail() -> None:
    good = Results(portrait(SLOW, 1, 1.0, True), portrait(FAST, 0, 1.0, True), [(1e-5, 1e-6)] * 2)
    bad = Results(portrait(SLOW, 0, 0.9, False), portrait(FAST, 1, 1.0, False), [(0.1, 1e-6), (0.0, 0.1)])
    check(study, good, bad)


def test_starts_on_samples_keep_away_from_the_border() -> None:
    starts = torch.tensor(STARTS, dtype=torch.float64)
    left = starts[:, 1] < 0
    assert (flow_energy(starts[:, 0], starts[:, 1]) - SADDLE_ENERGY).abs()[left].min() > 0.1
    assert OneLayerMarkovTheory(0.9, 0.9).escapes(starts[:, 0], starts[:, 1]).double().mean() == pytest.approx(5 / 14)


def test_the_flow_claims_hold_on_a_small_grid_and_two_steps_on_samples_get_nowhere() -> None:
    samples = tiny(sampled(*SLOW, 2, 1) + sampled(*FAST, 2, 1), seeds=1)
    found, outcome = measured(study, Settings(SLOW, FAST, samples, seeds=1, grid=8, starts=400), LAB)
    assert {found[claim] for claim in ("energy", "ends", "basins", "small-init-slow", "small-init-fast")} == {"holds"}
    assert found["samples"] != "holds"
    paths = [runs.metrics["path"][0, 0] for runs in outcome.results.fast.samples]
    np.testing.assert_allclose(paths, STARTS, rtol=1e-6)
