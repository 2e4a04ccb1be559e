"""Theorems 5, 7 and 8 over the sizes and seeds of the specification; ranks of the factors of every task."""

from __future__ import annotations

import numpy as np
import pytest

from sandlab.learning.hmm.gaussian_recovery import read_ghmm_pairwise, read_ghmm_two_tokens, recover
from sandlab.learning.hmm.recovery import TWO_TOKEN_TASKS, parameter_error, recover_hmm
from sandlab.learning.hmm.tensors import kruskal_condition, kruskal_rank
from sandlab.worlds.hmm.doubly_stochastic import circulant
from sandlab.worlds.hmm.instances import make_ghmm, named_hmm, random_ghmm, random_hmm
from sandlab.worlds.hmm.models import HMM, GaussianHMM


def factors(hmm: HMM, task: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A, B, C of the table of a two-token task, in closed form."""
    O, T = hmm.O, hmm.T  # noqa: E741
    phi = O / O.sum(1, keepdims=True)
    return {
        "2x3|1": (phi @ T.T, O, O @ T),
        "1x3|2": (phi, O @ T.T, O @ T),
        "1x2|3": (phi @ T, O @ T.T, O),
    }[task]


@pytest.mark.parametrize("task", TWO_TOKEN_TASKS)
@pytest.mark.parametrize(("d", "k"), [(3, 2), (4, 3), (6, 4), (10, 5)])
def test_factors_have_full_kruskal_rank_and_rows_that_sum_to_one(task: str, d: int, k: int) -> None:
    hmm = random_hmm(d, k, np.random.default_rng(k))
    parts = factors(hmm, task)
    assert [kruskal_rank(each) for each in parts] == [k] * 3
    assert kruskal_condition(*parts)  # 3k ≥ 2k + 2 from two states on
    np.testing.assert_allclose(parts[0].sum(1), 1, atol=1e-12)
    np.testing.assert_allclose(np.einsum("ni,bi,ci->nbc", *parts), hmm.predictor(task), atol=1e-14)


@pytest.mark.slow
def test_theorem_7_over_twenty_seeds() -> None:
    errors = []
    for d, k in ((3, 3), (4, 3), (6, 4), (10, 5)):
        for seed in range(20):
            hmm = random_hmm(d, k, np.random.default_rng(seed), 0.5)
            found = [recover_hmm(hmm.predictor(task), task, k, seed=seed) for task in TWO_TOKEN_TASKS]
            errors.append(max(parameter_error(hmm, *each).largest for each in found))
    assert np.median(errors) < 1e-12 and max(errors) < 1e-6


def test_the_other_parameters_of_the_printed_pair_are_far_away() -> None:
    hmm, twin = named_hmm("hmm-thm6"), named_hmm("hmm-thm6-twin")
    assert parameter_error(hmm, twin.means, twin.T).largest == pytest.approx(0.0536, abs=1e-4)


@pytest.mark.parametrize(("d", "k"), [(2, 2), (3, 3), (5, 3), (6, 4), (8, 5)])
def test_theorem_5_over_ten_seeds(d: int, k: int) -> None:
    for seed in range(10):
        ghmm = random_ghmm(d, k, np.random.default_rng(seed))
        found = read_ghmm_pairwise(lambda x, model=ghmm: model.predictor("2|1", x), d, k, seed=seed)
        (good,) = [each for each in found if each.accepted]
        assert parameter_error(ghmm, good.means, good.transitions).largest < 1e-6


@pytest.mark.parametrize(("d", "k", "models"), [(2, 2, 2), (4, 2, 2), (3, 3, 1), (5, 4, 1)])
def test_candidates_of_the_middle_token_over_ten_seeds(d: int, k: int, models: int) -> None:
    for seed in range(10):
        ghmm = random_ghmm(d, k, np.random.default_rng(seed))
        found = recover(lambda x, model=ghmm: model.predictor("1x3|2", x), "1x3|2", d, k, seed=seed)
        assert len(found) == models
        assert min(parameter_error(ghmm, each.means, each.transitions).largest for each in found) < 1e-6


@pytest.mark.parametrize("d", [3, 5])
@pytest.mark.parametrize(("weights", "models"), [((0.6, 0.1, 0.3), 2), ((0.8, 0.15, 0.05), 1)])
def test_equal_angles_leave_a_second_model_unless_a_transition_is_large(
    d: int, weights: tuple[float, ...], models: int
) -> None:
    root = np.linalg.cholesky(0.7 * np.eye(3) + 0.3).T
    ghmm = make_ghmm(np.concatenate([root, np.zeros((d - 3, 3))]), circulant(weights))
    found = read_ghmm_two_tokens(lambda x: ghmm.predictor("1x3|2", x), "1x3|2", d, 3)
    assert sum(each.accepted for each in found) == models


def test_every_accepted_model_makes_the_same_predictions() -> None:
    ghmm = random_ghmm(3, 2, np.random.default_rng(1))
    x = np.random.default_rng(2).normal(size=(50, 3))
    found = recover(lambda z: ghmm.predictor("1x3|2", z), "1x3|2", 3, 2)
    assert len(found) == 2
    for each in found:
        model = each.model()
        assert isinstance(model, GaussianHMM)
        np.testing.assert_allclose(model.predictor("1x3|2", x), ghmm.predictor("1x3|2", x), atol=1e-8)
