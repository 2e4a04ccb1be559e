"""The studies that need no training: their claims on made-up numbers, and small runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from claim_cases import check
from stand_in import LAB

from sandlab.studies.parallel import generalization_bound as bound
from sandlab.studies.parallel import inconsistent_conditionals as inconsistent
from sandlab.studies.parallel import mask_design as design
from sandlab.studies.parallel import mixing_and_variance as mixing
from sandlab.studies.parallel import product_transitions as product


def test_claims_about_products_can_hold_and_can_fail() -> None:
    good = product.study.run(product.Settings(couplings=(0.0, 0.5)), LAB, "quick").results
    # The claim that a random site is a product is false, and expected to fail: it holds only where nothing depends.
    odd = replace(good, random_site=0.0)
    bad = product.Results(1.0, 1.0, 1.0, 1.0, 1.0, np.ones(4), (0.0, 0.5), good.gaps, np.ones(8))
    check(product.study, odd, bad)
    assert good.random_site > 1e-3


def test_claims_about_mixing_can_hold_and_can_fail() -> None:
    good = mixing.study.run(mixing.Settings(starts=3, grid=(-0.6, 0.8)), LAB, "quick").results
    bad = mixing.Results(
        good.constants[:, ::-1],
        good.traces,
        -good.tensorisation,
        good.poincare_of_three,
        -good.slack,
        good.bound,
        good.decay,
    )
    check(mixing.study, good, bad)


def test_claims_about_conditionals_can_hold_and_can_fail() -> None:
    couplings, noise = (0.0, 0.5), 1e-4 * np.arange(6)
    good = inconsistent.Results(couplings, np.full((2, 6), 0.1) + noise, np.stack([1 + noise, 3 + noise]))
    bad = inconsistent.Results(couplings, np.zeros((2, 6)) + noise, np.stack([1 + noise, 1 + noise]))
    check(inconsistent.study, good, bad)
    outcome = inconsistent.study.run(inconsistent.Settings((0.0, 0.6), seeds=3), LAB, "quick")
    assert len(outcome.findings) == 2 and set(outcome.figures) == {"amplified"}


def test_claims_about_the_bound_can_hold_and_can_fail() -> None:
    n, noise = (100, 1000, 10000), 1e-5 * np.arange(6)
    falling = np.array([0.1, 0.0316, 0.01])[:, None, None] + np.zeros((3, 2, 1)) + noise
    good = bound.Results(n, (1, 8), falling, np.full((3, 2, 6), 5.0))
    bad = bound.Results(n, (1, 8), falling[::-1] + 0.1 + noise, np.full((3, 2, 6), 0.1))
    check(bound.study, good, bad)
    outcome = bound.study.run(bound.Settings((100, 1000), (1,), seeds=2), LAB, "full")
    assert len(outcome.findings) == 3 and bool((outcome.results.distance < outcome.results.bound).all())


def test_claims_about_mask_laws_can_hold_and_can_fail() -> None:
    coupled = np.array([True, False, False, False, False, True])
    weights = np.stack([np.full(6, 1 / 6), np.array([0.45, 0.02, 0.03, 0.03, 0.02, 0.45])])
    good = design.Results(np.array([[30.0, 28.0, 25.0], [9.0, 5.0, 4.0]]), weights, np.array([28.0, 5.0]), coupled)
    bad = design.Results(np.array([[30.0, 31.0, 35.0], [9.0, 9.5, 9.9]]), weights[:1].repeat(2, 0), np.ones(2), coupled)
    check(design.study, good, bad)
    outcome = design.study.run(design.Settings(iterations=5), LAB, "quick")
    assert len(outcome.findings) == len(design.study.claims) and set(outcome.figures) == {"best-blocks"}
