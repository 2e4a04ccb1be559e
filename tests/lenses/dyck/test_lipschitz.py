"""The constants of the lemmas: no random draw goes beyond a bound, and the bounds are not empty."""

import pytest
import torch

import sandlab as sl
from sandlab.lenses.dyck import _lemma_trials as trials
from sandlab.lenses.dyck import lipschitz


@pytest.mark.parametrize(
    ("trial", "least"),
    [
        (trials.softmax, 0.3),
        (trials.floor_norm, 0.2),
        (trials.mixing, 0.2),
        (trials.attention, 1e-4),
        (trials.overwhelming, 0.2),
        (trials.composition, 0.5),
    ],
)
def test_random_draws_stay_within_the_bound_and_use_some_of_it(trial, least) -> None:
    assert least < trial(200) <= 1.0 + 1e-9


def test_the_composition_bound_fails_with_the_constants_swapped() -> None:
    assert trials.composition_printed(100) > 1


def test_the_norm_of_a_padded_centred_vector_is_the_padded_norm() -> None:
    assert trials.padding(1) < 1e-12


def test_the_floored_norm_has_length_one_unless_its_input_is_short() -> None:
    x = torch.randn(5, 3, generator=sl.rng(0), dtype=torch.float64)
    assert lipschitz.floor_norm(x, 1e-9).norm(dim=0).tolist() == pytest.approx([1.0] * 3)
    assert lipschitz.floor_norm(1e-3 * x, 1.0).norm(dim=0).max() < 0.01
    assert lipschitz.floor_norm(x, 1e-9).sum(0).tolist() == pytest.approx([0.0] * 3)
