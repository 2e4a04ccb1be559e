"""The studies of masked prediction: claims on made-up results, and small runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from claim_cases import check
from stand_in import LAB

from sandlab.studies.hmm import identifiability_map, pairwise_twins, restarts, two_token_samples


def test_claims_of_pairwise_twins_hold_on_the_truth_and_fail_elsewhere() -> None:
    good = pairwise_twins.compare(pairwise_twins.Settings(angles=5, powers=12))
    bad = replace(
        good,
        printed=dict.fromkeys(good.printed, 0.5),
        pairwise=good.pairwise + 1,
        power_equal=good.power_equal + 1,
        power_apart=0 * good.power_apart,
        gaussian_same=good.gaussian_same + 1,
        gaussian_apart=0 * good.gaussian_apart,
        neighbours=1.0,
        second_neighbours=0.0,
        kl=dict.fromkeys(good.kl, 1.951e-7),
        centres_recovered=good.centres_recovered + 1,
    )
    check(pairwise_twins.study, good, bad)
    assert set(pairwise_twins.study.judge(good).figures) == {"along-the-orbit", "eigenvalue-triangle", "parameters"}


def test_claims_of_two_token_samples() -> None:
    sizes = (10**4, 10**5, 10**6)
    noise = np.random.default_rng(0).uniform(0.95, 1.05, size=(3, 8, 5, 2))
    condition = np.array([[0.5, 0.4, 0.2, 0.1]] * 2)
    mixed = 0.01 / condition[:, :, None, None] * np.random.default_rng(1).uniform(0.95, 1.05, size=(2, 4, 8, 3))
    errors = noise * np.array([0.1, 0.0316, 0.01])[:, None, None, None]
    good = two_token_samples.Results(sizes, errors, condition, mixed)
    check(two_token_samples.study, good, two_token_samples.Results(sizes, noise, condition, 1 / mixed))


def test_claims_of_restarts() -> None:
    noise = np.random.default_rng(0).uniform(0.9, 1.1, size=(6, 6))
    best = noise * np.array([0.1] * 3 + [0.01] * 3)[:, None]
    loss, scale = np.full((6, 20), 1e-20), np.full(6, 0.05)
    good = restarts.Results(loss, np.array([[0.1] * 20] * 3 + [[1e-9] * 20] * 3), best, scale)
    bad = restarts.Results(loss, np.array([[1e-9] * 20] * 3 + [[0.1] * 20] * 3), best[::-1], scale)
    check(restarts.study, good, bad, restarts.Results(np.ones((6, 20)), good.error, best, scale))


def test_a_loss_is_small_compared_with_the_targets() -> None:
    found = restarts.Results(
        np.full((6, 1), 5e-11), np.zeros((6, 1)), np.ones((6, 2)), np.array([0.05] * 3 + [1e-6] * 3)
    )
    assert found.solved[:, 0].tolist() == [True] * 3 + [False] * 3


def test_a_few_restarts_run_from_end_to_end_with_both_optimisers() -> None:
    small = restarts.Settings(starts=2, evaluations=3, triples=1000, samples=2, sample_starts=2)
    for settings in (small, replace(small, adam=3, d=3, k=2)):
        found = restarts.study.run(settings, LAB, "quick").results
        assert found.loss.shape == (6, 2)
        assert found.best.shape == (6, 2)


def test_a_small_map_has_the_integer_table() -> None:
    settings = identifiability_map.Settings(seeds=2, sizes=((4, 3),), gaussian=((2, 2), (3, 3)))
    found = identifiability_map.recover_all(identifiability_map.Seed(settings, 0))
    assert found.hmm_error < 1e-6
    assert (found.candidates_two, found.candidates_generic) == (2, 1)
    wrong = identifiability_map.recover_all(identifiability_map.Seed(replace(settings, other=True), 0))
    assert wrong.hmm_error > 0.01


def test_a_small_sample_runs_from_end_to_end() -> None:
    settings = replace(two_token_samples.QUICK, sizes=(2000, 4000, 8000), seeds=2, em=3, mixed_size=4000)
    for each in (settings, replace(settings, shuffled=True)):
        found = two_token_samples.study.run(each, LAB, "quick").results
        assert found.errors.shape == (3, 2, 5, 2)
        assert found.mixed.shape == (2, 4, 2, 3)


def test_a_sample_too_small_for_a_decomposition_counts_as_a_model_without_structure() -> None:
    counts = np.random.default_rng(0).poisson(3.0, size=(12, 12, 12))  # noise alone
    settings = two_token_samples.Settings(d=12, k=8)
    for emissions, transitions in (
        two_token_samples.recovered(counts, "2x3|1", settings),
        two_token_samples.from_moments(counts, settings),
    ):
        assert np.allclose(emissions, counts.sum((1, 2), keepdims=True)[:, 0] / counts.sum())
        assert np.allclose(transitions, 1 / 8)
