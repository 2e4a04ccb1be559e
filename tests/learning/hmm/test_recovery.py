"""Parameters from predictors: exact tables give exact parameters, samples give consistent ones."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import sandlab as sl
from sandlab.learning.hmm.density_recovery import (
    exact_moments,
    mixture_from_moments,
    sampled_moments,
    transitions_from_density,
)
from sandlab.learning.hmm.gaussian_recovery import read_ghmm_pairwise, read_ghmm_two_tokens, recover
from sandlab.learning.hmm.parametric import fit_parametric, fit_parametric_adam, task_tensor
from sandlab.learning.hmm.recovery import TWO_TOKEN_TASKS, align, parameter_error, recover_hmm
from sandlab.learning.hmm.samples import (
    conditional_table,
    expectation_maximisation,
    joint_moment_hmm,
    sampled_predictor,
)
from sandlab.learning.hmm.tensors import jennrich, kruskal_condition, kruskal_rank
from sandlab.worlds.hmm.doubly_stochastic import circulant
from sandlab.worlds.hmm.instances import make_ghmm, named_hmm, random_ghmm, random_hmm
from sandlab.worlds.hmm.models import HMM


@pytest.mark.parametrize("task", TWO_TOKEN_TASKS)
@pytest.mark.parametrize(("d", "k"), [(3, 3), (4, 3), (6, 4), (10, 5), (20, 6)])
def test_two_tokens_determine_the_model(task: str, d: int, k: int) -> None:
    for seed in range(5):
        hmm = random_hmm(d, k, np.random.default_rng(seed))
        assert parameter_error(hmm, *recover_hmm(hmm.predictor(task), task, k)).largest < 1e-6


def test_the_printed_pair_is_told_apart_by_two_tokens() -> None:
    hmm, twin = named_hmm("hmm-thm6"), named_hmm("hmm-thm6-twin")
    for task in TWO_TOKEN_TASKS:
        found = recover_hmm(hmm.predictor(task), task, 3)
        assert parameter_error(hmm, *found).largest < 1e-7
        assert parameter_error(twin, *found).largest == pytest.approx(0.0536, abs=1e-3)


def test_kruskal_ranks_are_full_and_the_condition_needs_two_states() -> None:
    hmm = HMM()
    assert kruskal_rank(hmm.O) == 3
    assert kruskal_rank(np.array([[1.0, 2, 0], [0, 0, 1]])) == 1
    assert kruskal_condition(hmm.O, hmm.O @ hmm.T, hmm.O @ hmm.T.T)
    assert not kruskal_condition(np.ones((2, 2)), np.eye(2), np.eye(2))


def test_polished_jennrich_is_no_worse_on_noisy_tensors() -> None:
    rng = np.random.default_rng(0)
    noisy = HMM().predictor("2x3|1") + rng.normal(scale=1e-3, size=(4, 4, 4))
    assert jennrich(noisy, 3, sweeps=50).error <= jennrich(noisy, 3).error


def test_alignment_of_many_states_uses_the_assignment_problem() -> None:
    columns = np.random.default_rng(0).normal(size=(10, 9))
    order = np.random.default_rng(1).permutation(9)
    np.testing.assert_array_equal(columns[:, order][:, list(align(columns, columns[:, order]))], columns)


@pytest.mark.parametrize(("d", "k"), [(2, 2), (3, 3), (5, 3), (6, 4), (8, 5)])
def test_gaussian_models_are_read_off_neighbours(d: int, k: int) -> None:
    for seed in range(4):
        ghmm = random_ghmm(d, k, np.random.default_rng(seed))
        found = read_ghmm_pairwise(lambda x, ghmm=ghmm: ghmm.predictor("2|1", x), d, k, seed=seed)
        assert sorted(np.sign(each.transitions.sum(0)[0]) for each in found) == [-1, 1]
        (good,) = [each for each in found if each.accepted]
        assert parameter_error(ghmm, good.means, good.transitions).largest < 1e-6


@pytest.mark.parametrize(("d", "k"), [(2, 2), (3, 3), (6, 4)])
def test_gaussian_models_are_read_off_two_tokens(d: int, k: int) -> None:
    for seed in range(4):
        ghmm = random_ghmm(d, k, np.random.default_rng(seed))
        for task in TWO_TOKEN_TASKS:
            found = recover(lambda x, ghmm=ghmm, task=task: ghmm.predictor(task, x), task, d, k, seed=seed)
            assert len(found) == (2 if k == 2 and task == "1x3|2" else 1)
            errors = [parameter_error(ghmm, each.means, each.transitions).largest for each in found]
            assert min(errors) < 1e-6


def test_the_middle_token_accepts_two_models_when_centres_are_equicorrelated() -> None:
    root = np.linalg.cholesky(0.7 * np.eye(3) + 0.3).T
    for weights, accepted in (((0.6, 0.1, 0.3), 2), ((0.8, 0.15, 0.05), 1)):
        ghmm = make_ghmm(root, circulant(weights))
        found = read_ghmm_two_tokens(lambda x, ghmm=ghmm: ghmm.predictor("1x3|2", x), "1x3|2", 3, 3)
        assert sum(each.accepted for each in found) == accepted
        if accepted == 1:
            assert min(each.transitions.min() for each in found) == pytest.approx(-0.1333, abs=1e-4)


@pytest.mark.parametrize(("k", "d"), [(2, 2), (3, 3), (4, 5)])
def test_the_density_determines_centres_and_transitions(k: int, d: int) -> None:
    rng = np.random.default_rng(k)
    ghmm, first = random_ghmm(d, k, rng), rng.normal(size=(1, d))
    direction = rng.normal(size=d)
    direction /= np.linalg.norm(direction)
    weights = (ghmm.T @ ghmm.posterior(first).T)[:, 0]
    found = mixture_from_moments(exact_moments(weights, ghmm.M, direction))[1]
    assert parameter_error(ghmm, found, transitions_from_density(ghmm, found, rng)).largest < 1e-6


def test_sampled_hermite_moments_approach_the_exact_ones() -> None:
    rng = np.random.default_rng(0)
    centres, weights, direction = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([0.3, 0.7]), np.array([0.6, -0.8])
    x = centres[:, rng.choice(2, size=400_000, p=weights)].T + rng.normal(size=(400_000, 2))
    exact, found = exact_moments(weights, centres, direction), sampled_moments(x, direction, 2)
    np.testing.assert_allclose(found.direct, exact.direct, atol=0.02)
    np.testing.assert_allclose(found.mixed, exact.mixed, atol=0.02)


@pytest.mark.parametrize("task", ["2|1", "1|3", "2x3|1", "1x3|2", "1x2|3", "1x2x5|4"])
def test_differentiable_predictions_equal_the_world_s(task: str) -> None:
    hmm = random_hmm(4, 3, np.random.default_rng(0))
    means, steps = torch.from_numpy(hmm.O.copy()), torch.from_numpy(hmm.T.copy())
    found = task_tensor(task, means, steps, means / means.sum(1, keepdim=True))
    np.testing.assert_allclose(found.numpy(), hmm.predictor(task), atol=1e-14)


def test_least_squares_from_near_the_truth_finds_it() -> None:
    hmm = HMM()
    start = np.concatenate([np.log(hmm.O).ravel(), np.log(hmm.T).ravel()])
    starts = start + np.random.default_rng(0).normal(scale=0.2, size=(2, len(start)))
    fits = fit_parametric(["2x3|1"], hmm.predictor("2x3|1").ravel(), 4, 3, starts=starts, evaluations=80)
    assert all(parameter_error(hmm, each.model.means, each.model.T).largest < 1e-6 for each in fits)


def test_adam_lowers_the_loss_towards_the_truth() -> None:
    hmm = HMM()
    start = np.concatenate([np.log(hmm.O).ravel(), np.log(hmm.T).ravel()])
    starts = start + np.random.default_rng(0).normal(scale=0.1, size=(2, len(start)))
    fits = fit_parametric_adam(["2x3|1"], hmm.predictor("2x3|1").ravel(), 4, 3, starts=starts, steps=300)
    before = fit_parametric_adam(["2x3|1"], hmm.predictor("2x3|1").ravel(), 4, 3, starts=starts, steps=0)
    assert all(after.loss < first.loss / 20 for after, first in zip(fits, before))


@pytest.mark.parametrize("task", ["2|1", "1|3", "2x3|1", "1x3|2"])
def test_the_table_of_samples_approaches_the_predictor(task: str) -> None:
    counts = HMM().string_counts(1_000_000, rng=sl.rng(0))
    np.testing.assert_allclose(sampled_predictor(counts, task), HMM().predictor(task), atol=0.005)


def test_samples_tables_moments_and_maximum_likelihood_agree() -> None:
    hmm = HMM()
    counts = hmm.string_counts(1_000_000, rng=sl.rng(0))
    for task in TWO_TOKEN_TASKS:
        found = recover_hmm(conditional_table(counts, task), task, 3, clean=True)
        assert parameter_error(hmm, *found).largest < 0.03
    assert parameter_error(hmm, *(lambda m: (m.O, m.T))(joint_moment_hmm(counts, 3))).largest < 0.03
    runs = [expectation_maximisation(counts, 3, np.random.default_rng(seed), 300) for seed in range(4)]
    assert all((np.diff(each.log_likelihood) > -1e-12).all() for each in runs)
    em = max(runs, key=lambda each: each.log_likelihood[-1])
    truth = float((hmm.joint() * np.log(hmm.joint())).sum())
    assert em.log_likelihood[-1] == pytest.approx(truth, abs=5e-3)


def test_maximum_likelihood_matches_hmmlearn() -> None:
    hmmlearn = pytest.importorskip("hmmlearn.hmm")
    hmm = HMM()
    counts = hmm.string_counts(2_000, rng=sl.rng(0))
    strings = np.repeat(np.argwhere(counts >= 0), counts.ravel(), axis=0)
    other = hmmlearn.CategoricalHMM(3, init_params="", params="")
    other.startprob_, other.transmat_, other.emissionprob_ = np.full(3, 1 / 3), hmm.T.T, hmm.O.T
    score = other.score(strings.reshape(-1, 1), [3] * len(strings))
    assert score == pytest.approx(float((counts * np.log(hmm.joint())).sum()), rel=1e-8)


def test_jennrich_matches_tensorly() -> None:
    tensorly = pytest.importorskip("tensorly.decomposition")
    table = HMM().predictor("2x3|1")
    rebuilt = tensorly.parafac(table, 3, init="svd", n_iter_max=5000, tol=1e-14)
    emissions = rebuilt.factors[1] / rebuilt.factors[1].sum(0)
    assert np.abs(emissions[:, list(align(HMM().O, emissions))] - HMM().O).max() < 1e-2
