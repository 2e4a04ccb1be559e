"""The study of images: claims on made-up losses, and small networks."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from claim_cases import check
from stand_in import LAB

from sandlab.models.nce.density_ratio import DensityRatioConfig
from sandlab.studies.nce.images import Results, Settings, Sweep, experiment, study
from sandlab.worlds.nce.image_contrast import ImageContrast


def results(descent: float, normalised: float) -> Results:
    """Both losses end at these values; plain descent diverges at a larger rate, and is best beyond the cap."""
    noise = np.random.default_rng(0).normal(scale=1e-3, size=(3, 3, 100))
    ends = {"gd": [descent, np.inf, 0.0], "ngd": [normalised, normalised + 1, np.inf]}
    caps = {"gd": 0.1, "ngd": np.inf}
    return Results([
        Sweep(kind, method, (0.01, 0.1, 0.3), np.array(ends[method])[:, None, None] + noise, caps[method])
        for kind in ("nce", "ence")
        for method in ("gd", "ngd")
    ])  # fmt: skip


def test_every_claim_can_hold_and_can_fail() -> None:
    check(study, results(0.69, 0.3), results(0.3, 0.69))


def test_a_run_that_overflows_is_never_chosen_and_has_no_final_loss() -> None:
    rows = study.judge(results(0.69, 0.3)).tables["step sizes"]
    assert [row["final loss"] is None for row in rows[:3]] == [False, True, False]
    assert [row["chosen"] for row in rows[:3]] == ["yes", "", ""]


def test_networks_learn_faster_when_normalised() -> None:
    made = experiment(ImageContrast("digits"), DensityRatioConfig(size=8, body="mlp", features=16, width=64), steps=220)
    made = replace(made, seeds=1, training=replace(made.training, batch_size=64))
    outcome = study.run(Settings(made, descent_rates=(0.1,), normalised_rates=(0.3,)), LAB)
    exponential = {each.method: each.final[0, 0] for each in outcome.results.sweeps if each.kind == "ence"}
    assert exponential["ngd"] < 0.95 < exponential["gd"]
    assert set(outcome.figures) == {"loss"}


@pytest.mark.slow
def test_a_residual_network_trains_on_images() -> None:
    network = DensityRatioConfig(size=8, body="resnet18", features=16, width=8)
    made = replace(experiment(ImageContrast("digits"), network, steps=60), seeds=1)
    runs = LAB.train(replace(made, training=replace(made.training, lr=0.1, optimizer="normalised", batch_size=64)))
    assert np.isfinite(runs.loss).all() and np.median(runs.loss[0, -10:]) < math.log(2)
