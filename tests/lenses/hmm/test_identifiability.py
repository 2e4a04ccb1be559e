"""The integer table of identifiability, the search for second models, the posterior's derivative."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sandlab.lenses.hmm.identifiability import equivalent, identifiable, jacobian_nullity, same_predictor
from sandlab.lenses.hmm.posteriors import posterior_jacobian, posterior_saturation
from sandlab.worlds.hmm.instances import make_hmm, named_hmm, random_ghmm, random_hmm
from sandlab.worlds.hmm.models import HMM, GaussianHMM
from sandlab.worlds.hmm.twins import orbit


@pytest.mark.parametrize(("d", "k"), [(3, 2), (4, 3), (6, 4), (7, 5)])
def test_nullities_are_the_integers_of_the_table(d: int, k: int) -> None:
    hmm, ghmm = random_hmm(d, k, np.random.default_rng(1), 1.0), random_ghmm(d, k, np.random.default_rng(1))
    for tasks in (["2|1"], ["3|1"], ["2|1", "1|2"]):
        assert jacobian_nullity(hmm, tasks) == (k - 1) ** 2
    for tasks in (["2|1", "3|1"], ["2|1", "1|2", "3|1", "1|3"], ["2|1", "3|1", "4|1"]):
        assert jacobian_nullity(hmm, tasks) == (k - 1) * (k - 2) // 2
    for task in ("2x3|1", "1x3|2", "1x2|3"):
        assert jacobian_nullity(hmm, [task]) == 0
    for task in ("2|1", "3|1", "2x3|1", "1x3|2"):
        assert jacobian_nullity(ghmm, [task]) == 0


@pytest.mark.slow
def test_an_answer_comes_with_a_second_model_when_it_is_no() -> None:
    answer = identifiable(HMM(), ["2|1"], restarts=3)
    assert answer.nullity == 4
    assert answer.twin is not None
    assert same_predictor(HMM(), answer.twin, "2|1", 1e-7)
    assert not equivalent(HMM(), answer.twin)
    assert "not identifiable" in answer.verdict
    assert identifiable(HMM(), ["2x3|1"], restarts=3).twin is None


def test_a_discrete_ambiguity_is_found_although_no_direction_is_flat() -> None:
    answer = identifiable(named_hmm("ghmm-k2"), ["1x3|2"], restarts=0)
    assert answer.nullity == 0
    assert isinstance(answer.twin, GaussianHMM)
    assert "locally identifiable" in answer.verdict


def test_equivalence_is_up_to_one_permutation_of_the_states() -> None:
    hmm, order = HMM(), [2, 0, 1]
    assert equivalent(hmm, make_hmm(hmm.O[:, order], hmm.T[np.ix_(order, order)]))
    assert not equivalent(hmm, make_hmm(hmm.O[:, [1, 0, 2]], hmm.T))
    assert not equivalent(hmm, orbit(hmm, 0.1))


def test_the_posterior_saturates_at_the_exact_rate_and_has_the_printed_derivative() -> None:
    ghmm = GaussianHMM()
    rates = posterior_saturation(ghmm, 1, 50.0)
    assert rates == pytest.approx(-50 * (1 - ghmm.M[:, 1] @ ghmm.M), abs=1e-12)
    x = torch.tensor([0.3, -1.0, 0.4], dtype=torch.float64)
    scores = torch.func.jacrev(lambda y: torch.softmax(y @ torch.from_numpy(ghmm.M), 0))(x)
    assert posterior_jacobian(ghmm, x.numpy()) == pytest.approx(scores.numpy(), abs=1e-12)
