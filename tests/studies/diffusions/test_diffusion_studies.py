"""The studies of contrastive learning: claims on made-up results, and small runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from claim_cases import check, verdicts
from stand_in import LAB

from sandlab.studies.diffusions import (
    contrast_choice,
    interval_sweep,
    lemma_audit,
    log_cosh,
    ou_dimensions,
    ou_kernel,
    path_length,
)

NOISE = np.random.default_rng(0)


def test_claims_of_the_kernel_study() -> None:
    shape = 3, 7, 10
    rho = 1 + NOISE.normal(scale=0.02, size=shape)
    risk = np.stack([np.linspace(0.13, 0.25, 7), np.linspace(0.1, 0.2, 7), np.linspace(0.249, 0.18, 7)])
    loss = risk[..., None] + NOISE.normal(scale=1e-4, size=shape)
    good = ou_kernel.Results(np.full(shape, 1e-4), rho, loss, np.zeros((*shape, 4)), risk)
    bad = ou_kernel.Results(np.full(shape, 0.1), rho + 1, loss + 0.1, good.theta, risk)
    check(ou_kernel.study, good, bad)


def test_claims_of_the_interval_study() -> None:
    settings = interval_sweep.QUICK
    noise = NOISE.normal(size=(1, 2, 1, 20)) + 0.05 * NOISE.normal(size=(1, 2, 7, 20))
    rho = 1 + 0.04 * noise * np.array([1, 1, 1, 1, 1, 2, 12.0])[:, None]
    risk = np.stack([np.linspace(0.13, 0.2499, 8), np.linspace(0.2499, 0.13, 8)])
    logs = np.ones((1, 3, 3))
    good = interval_sweep.Results(settings.times, settings.etas, settings.log_cosh_etas, rho, risk, risk, logs)
    uneven = 1 + 0.04 * noise * np.array([1, 9, 1, 9, 1, 1, 9.0])[:, None]
    check(interval_sweep.study, good, replace(good, rho=uneven, risk=-risk))
    none = replace(good, rho=np.full_like(rho, interval_sweep.LARGEST))
    assert verdicts(interval_sweep.study, none)["no-information-at-long-intervals"] == "not measured"


def test_claims_of_the_contrast_study() -> None:
    constant = np.arange(1.0, 13)
    kl = 10.0 ** (constant[:, None] - 8) * NOISE.uniform(0.9, 1.1, size=(12, 48))
    rest = (0.0,), (1.0,), (1,), np.ones((1, 1, 1))
    good = contrast_choice.Results(kl, constant, constant[::-1], *rest)
    check(contrast_choice.study, good, contrast_choice.Results(kl[::-1], constant, constant[::-1], *rest))


def test_claims_of_the_length_study() -> None:
    settings = path_length.QUICK
    kl = np.array(settings.times)[:, None] ** -1.0 * NOISE.uniform(0.98, 1.02, size=(2, 4, 12))
    steps = np.array([1, 1.1, 1.3, 1.8, 3, 5.0])
    gap = np.array(settings.gap_times)[:, None, None] ** -0.5 * steps[:, None] * NOISE.uniform(0.98, 1.02, (4, 6, 12))
    sizes = settings.times, settings.dimensions, settings.gap_times, settings.etas
    good = path_length.Results(*sizes, kl, gap, np.full(4, 9.0))
    level = np.array([1, 3, 3, 3, 3, 3.0])[:, None] * NOISE.uniform(0.98, 1.02, (4, 6, 12))
    check(path_length.study, good, replace(good, kl=NOISE.uniform(0.98, 1.02, (2, 4, 12)), gap=level))


def test_claims_of_the_networks() -> None:
    level = NOISE.uniform(0.9, 1.1, (3, 4))
    good = ou_dimensions.Results((1, 2, 4), level * np.array([[1], [4], [16]]) * 1e-3, np.ones(3), np.full(3, 0.05))
    check(ou_dimensions.study, good, replace(good, kl=2 * level[::-1] * np.array([[16], [4], [1]])))
    metrics = {"avg_kl": 1e-3 * level[:2], "mass_rms": 0.01 * level[:2]}
    metrics |= {f"ck_error_{n}": level[:2] for n in log_cosh.CHAPMAN}
    exact = {"linear Gaussian": 0.0137, "stationary law": 0.0495, "one Euler step": 0.2768}
    fine = log_cosh.Results(metrics, exact, 0.2254, np.ones((2, 75, 75)), 0.1 * level[0], {"stationary law": 1.0})
    poor = {name: 1000 * values for name, values in metrics.items()}
    upside = dict(zip(exact, reversed(exact.values())))
    check(log_cosh.study, fine, replace(fine, metrics=poor, baselines=upside, plane=20 * level[0]))


def test_the_baselines_of_log_cosh_have_the_known_digits() -> None:
    found = {name: log_cosh.measured(each)["avg_kl"] for name, each in log_cosh.baseline_kernels().items()}
    assert found["linear Gaussian"] == pytest.approx(0.0137, abs=2e-4)
    assert found["stationary law"] == pytest.approx(0.0495, abs=2e-4)
    assert found["one Euler step"] == pytest.approx(0.2768, abs=1e-3)


def test_small_trainings_run_from_end_to_end() -> None:
    how = replace(ou_dimensions.TRAINING, steps=2, batch_size=8)
    small = ou_dimensions.Settings((1, 2), (4,), how, seeds=1)
    assert ou_dimensions.study.run(small, LAB, "quick").results.kl.shape == (2, 1)
    tiny = replace(log_cosh.QUICK, seeds=1, chains=20, blocks=2, hidden=(4,), plane_steps=2)
    tiny = replace(tiny, training=replace(tiny.training, steps=2, batch_size=8))
    assert log_cosh.study.run(tiny, LAB, "quick").results.plane.shape == (1,)
    maps = replace(
        contrast_choice.QUICK, time=200.0, seeds=8, means=(0.0,), sds=(1.0,), map_seeds=1, hidden=(4,), training=how
    )
    assert contrast_choice.study.run(maps, LAB, "quick").results.map.shape == (1, 1, 1)
    short = interval_sweep.Settings((200.0,), (0.5, 1.0), 3, (50.0,), (0.5,), 1)
    assert interval_sweep.study.run(short, LAB, "quick").results.rho.shape == (1, 2, 2, 3)


def test_the_audit_holds_where_it_should_and_fails_as_printed() -> None:
    results = lemma_audit.audit(lemma_audit.Settings(cells=200, perturbations=10, plane=12))
    found = {
        each.claim.rpartition(".")[2]: (each.verdict, each.held) for each in lemma_audit.study.judge(results).findings
    }
    assert {name for name, (verdict, _) in found.items() if verdict != "holds"} == {
        "everything-as-printed",
        "mixing-bound-from-every-point",
        "mean-norm-as-printed",
        "pairs-mix-like-points",
    }
    assert all((verdict == "holds") == held for verdict, held in found.values())
    wrong = [each for each in results.statements if each.verdict == "fails as printed"]
    assert [(each.where, each.says) for each in wrong] == [("Theorem 8", "1⊗3|2 identifies every Gaussian HMM")]
    assert sum(each.verdict == "holds corrected" for each in results.statements) == 8


def test_a_short_path_runs_from_end_to_end() -> None:
    settings = path_length.Settings(
        times=(200.0, 400.0, 800.0), seeds=2, gap_times=(50.0, 100.0, 200.0), classifiers=5, gap_seeds=2
    )
    found = path_length.study.run(settings, LAB, "quick").results
    assert found.gap.shape == (3, 6, 2)
    assert (found.bound > found.gap.max((1, 2))).all()


@pytest.mark.parametrize(("time", "eta"), [(50.0, 0.01), (200.0, 3.0)])
def test_the_gap_is_that_of_squared_losses_written_out(time: float, eta: float) -> None:
    job = path_length.Path(path_length.Settings(classifiers=30), time, eta, seed=1)
    theta, population = path_length.classifiers(30, eta, "cpu")
    pairs = path_length.drawn_pairs(job)
    h = 1 / (1 + np.exp(-theta @ path_length.quadratic_features(pairs.x[:, 0], pairs.later[:, 0])))
    empirical = ((h - pairs.y) ** 2).mean(1)
    assert path_length.gap(job) == pytest.approx(np.abs(empirical - population).max(), rel=1e-5)
