"""χ² information between positions."""

import itertools

import numpy as np
import pytest
import torch

from sandlab.errors import BadInput
from sandlab.lenses import chain_chi_square, chi_square, points_at_parent, tree_chi_square
from sandlab.random import rng
from sandlab.worlds.markov._walk import dirichlet_rows


@pytest.mark.parametrize(("p", "q"), [(0.2, 0.3), (0.5, 0.8), (0.9, 0.9), (0.35, 0.1)])
def test_two_states_have_information_lambda_to_twice_the_lag(p, q):
    kernel = torch.tensor([[1 - p, p], [q, 1 - q]], dtype=torch.float64)
    for lag in range(1, 6):
        assert float(chain_chi_square(kernel, lag)) == pytest.approx((1 - p - q) ** (2 * lag), abs=1e-12)


def test_information_is_the_frobenius_norm_of_the_symmetrised_power():
    kernel = dirichlet_rows((4, 4), 0.7, rng=rng(0))
    values, vectors = np.linalg.eig(kernel.T.numpy())
    probs = np.real(vectors[:, np.argmax(values.real)])
    probs = probs / probs.sum()
    for lag in (1, 2, 5):
        power = np.linalg.matrix_power(kernel.numpy(), lag)
        norm = np.linalg.norm(np.diag(probs**0.5) @ power @ np.diag(probs**-0.5)) ** 2 - 1
        assert float(chain_chi_square(kernel, lag)) == pytest.approx(norm, abs=1e-10)


def test_information_never_grows_with_the_lag_in_a_hundred_random_chains():
    kernels = dirichlet_rows((100, 3, 3), 0.5, rng=rng(1))
    by_lag = torch.stack([chain_chi_square(kernels, lag) for lag in range(1, 9)])
    assert (by_lag.diff(dim=0) <= 1e-12).all()


def test_independent_variables_have_none_and_copies_have_one_less_than_the_number_of_values():
    probs = torch.tensor([0.2, 0.5, 0.3], dtype=torch.float64)
    assert float(chi_square(torch.outer(probs, probs))) == pytest.approx(0, abs=1e-12)
    assert float(chi_square(torch.diag(probs))) == pytest.approx(2)
    assert float(chi_square(torch.diag(torch.tensor([0.5, 0.5, 0.0])))) == pytest.approx(1), (
        "an absent value is ignored"
    )


def test_the_matrix_of_a_tree_is_that_of_its_enumerated_joint_distribution():
    parents = [-1, 0, 0, 1, -1, 4, 2]
    kernel = dirichlet_rows((2, 2), 1.0, rng=rng(2))
    probs = torch.linalg.matrix_power(kernel, 300)[0]
    words = torch.tensor(list(itertools.product((0, 1), repeat=7)))
    probability = torch.ones(len(words), dtype=torch.float64)
    for position, parent in enumerate(parents):
        probability *= probs[words[:, position]] if parent < 0 else kernel[words[:, parent], words[:, position]]
    assert float(probability.sum()) == pytest.approx(1)
    found = tree_chi_square(kernel, parents)
    for i, j in itertools.product(range(7), repeat=2):
        joint = torch.zeros(2, 2, dtype=torch.float64)
        joint.index_put_((words[:, i], words[:, j]), probability, accumulate=True)
        assert float(found[i, j]) == pytest.approx(float(chi_square(joint)), abs=1e-10)


def test_a_parent_after_its_child_is_refused():
    with pytest.raises(BadInput, match="parents"):
        tree_chi_square(torch.full((2, 2), 0.5), [-1, 2, 0])


def test_the_largest_entry_of_each_row_is_compared_with_the_parent() -> None:
    parents = (-1, 0, 1, 1, 0, 2)
    table = torch.zeros(6, 6)
    table[2, 1] = table[3, 1] = table[4, 2] = 1.0
    assert points_at_parent(table, parents) == [True, True, False], "positions 2, 3 and 4: the last one is the query"
