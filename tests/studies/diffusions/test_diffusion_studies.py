"""The studies of contrastive learning: claims on made-up results, and small runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from claim_cases import check
from stand_in import LAB

from sandlab.studies.diffusions import contrast_choice, lemma_audit, ou_kernel, path_length

NOISE = np.random.default_rng(0)


def test_claims_of_the_kernel_study() -> None:
    shape = 3, 7, 10
    rho = 1 + NOISE.normal(scale=0.02, size=shape)
    rho[:, -1] += 0.5
    risk = np.stack([np.linspace(0.13, 0.25, 7), np.linspace(0.1, 0.2, 7), np.linspace(0.249, 0.18, 7)])
    loss = risk[..., None] + NOISE.normal(scale=1e-4, size=shape)
    zeros = np.zeros((3, 7))
    good = ou_kernel.Results(np.full(shape, 1e-4), rho, loss, np.zeros((*shape, 4)), risk, zeros)
    bad = ou_kernel.Results(np.full(shape, 0.1), np.full(shape, 2.0), loss + 0.1, good.theta, -risk, zeros)
    check(ou_kernel.study, good, replace(bad, rho=2 + 0 * rho + NOISE.normal(scale=1e-3, size=shape)))


def test_claims_of_the_contrast_study() -> None:
    constant = np.arange(1.0, 13)
    kl = 10.0 ** (constant[:, None] - 8) * NOISE.uniform(0.9, 1.1, size=(12, 8))
    good = contrast_choice.Results(kl, constant, constant[::-1])
    check(contrast_choice.study, good, contrast_choice.Results(kl[::-1], constant, constant[::-1]))


def test_claims_of_the_length_study() -> None:
    settings = path_length.QUICK
    kl = np.array(settings.times)[:, None] ** -1.0 * NOISE.uniform(0.98, 1.02, size=(4, 12))
    steps = np.array([1, 1.1, 1.3, 1.8, 3, 5.0])
    gap = np.array(settings.gap_times)[:, None, None] ** -0.5 * steps[:, None] * NOISE.uniform(0.98, 1.02, (4, 6, 12))
    good = path_length.Results(settings.times, settings.gap_times, settings.etas, kl, gap, np.full(4, 9.0))
    level = np.array([1, 3, 3, 3, 3, 3.0])[:, None] * NOISE.uniform(0.98, 1.02, (4, 6, 12))
    flat = replace(good, kl=NOISE.uniform(0.98, 1.02, (4, 12)), gap=level, bound=np.zeros(4))
    check(path_length.study, good, flat)


def test_the_audit_holds_where_it_should_and_fails_as_printed() -> None:
    results = lemma_audit.audit(lemma_audit.Settings(cells=200, perturbations=10))
    verdicts = {
        each.claim.rpartition(".")[2]: (each.verdict, each.held) for each in lemma_audit.study.judge(results).findings
    }
    assert {name for name, (verdict, _) in verdicts.items() if verdict != "holds"} == {
        "mixing-bound-from-every-point",
        "mean-norm-as-printed",
        "pairs-mix-like-points",
    }
    assert all((verdict == "holds") == held for verdict, held in verdicts.values())


def test_a_short_path_runs_from_end_to_end() -> None:
    settings = path_length.Settings(times=(200.0, 400.0, 800.0), seeds=2, gap_times=(50.0, 100.0, 200.0), classifiers=5)
    found = path_length.study.run(settings, LAB, "quick").results
    assert found.gap.shape == (3, 6, 2)
