"""The claims of parallel/refinement-ablation on made-up scores, and a tiny run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from claim_cases import check
from parallel_cases import tiny
from stand_in import LAB

from sandlab.studies.parallel.refinement.refinement_ablation import DECODERS, QUICK, Results, study


def results(base: float, other: float, distilled: float, plain: float, many: float) -> Results:
    noise = 1e-4 * np.arange(3)[:, None]

    def block(value: float) -> np.ndarray:
        return np.stack([np.full((3, 3), value) + noise] + [np.zeros((3, 3))] * 4, -1)

    models = {name: block(base if name == "base" else other) for name in QUICK.names} | {"distilled": block(distilled)}
    decoders = {name: block(plain if name == "no remasking" else base)[:, 0] for name in DECODERS}
    return Results(models, decoders | {"5 lengths": block(many)[:, 0]})


def test_every_claim_can_hold_and_can_fail() -> None:
    check(study, results(0.7, 0.5, 0.9, 0.6, 0.7), results(0.5, 0.7, 0.3, 0.9, 0.2))


def test_a_tiny_run_measures_every_claim() -> None:
    small = replace(QUICK, experiments=tuple(tiny(each) for each in QUICK.experiments), sentences=8)
    outcome = study.run(small, LAB, "quick")
    assert len(outcome.findings) == len(study.claims) and set(outcome.figures) == {"valid-translations"}
