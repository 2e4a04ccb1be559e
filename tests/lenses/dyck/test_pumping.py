"""Pumped words: balanced models remember, disturbed ones forget."""

import pytest
import torch

import sandlab as sl
from sandlab.circuits.dyck.balanced import balanced_dyck, random_balanced_scores
from sandlab.lenses.dyck.pumping import least_confusion, pumped_attention, pumped_memory
from sandlab.models.dyck.codes import BalanceTransformer


def model(noise: float) -> BalanceTransformer:
    found = balanced_dyck(scores=random_balanced_scores(2, 4, rng=sl.rng(0)))
    with torch.no_grad():
        found.layers[0].score[:17, :17] += noise * torch.randn(17, 17, generator=sl.rng(1)).double()
    return found


def test_a_balanced_model_remembers_the_open_bracket_and_a_disturbed_one_forgets_it() -> None:
    assert pumped_memory(model(0.0), 300) == pytest.approx(pumped_memory(model(0.0), 0), rel=1e-6)
    assert pumped_memory(model(0.3), 1000) < 0.2 * pumped_memory(model(0.3), 100)


def test_matched_pairs_that_cancel_dilute_the_attention_output() -> None:
    assert pumped_attention(model(0.0), 1000) == pytest.approx(0.1 * pumped_attention(model(0.0), 100), rel=0.05)


def test_every_violation_confuses_two_long_words() -> None:
    assert least_confusion(model(0.0), 10**6) == 0.0
    assert least_confusion(model(0.3), 10**6) > 0.5
