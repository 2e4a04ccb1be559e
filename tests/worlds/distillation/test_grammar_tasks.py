"""Tasks on sentences: corruption statistics, oracles against enumeration, windows, boundaries."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch

from sandlab.random import rng
from sandlab.worlds.base import cross_entropy
from sandlab.worlds.distillation.grammar_tasks import BoundaryGrammar, MaskedGrammar, WindowOracle


def test_corruption_has_the_stated_shares_and_only_selected_tokens_count() -> None:
    world = MaskedGrammar("cfg3b", root="13|14|15")
    batch = world.sample(4000, rng=rng(0))
    shown, true = batch.inputs % world.vocab, batch.targets
    exists = (true < 3).double()
    count = float(exists.sum())
    assert abs(float(batch.mask.sum()) / count - 0.3) < 3 * math.sqrt(0.3 * 0.7 / count)
    selected = float(batch.mask.sum())
    masked = float((batch.mask & (shown == world.mask_token)).sum()) / selected
    same = float((batch.mask & (shown == true)).sum()) / selected
    assert abs(masked - 0.8) < 3 * math.sqrt(0.16 / selected)
    assert abs(same - (0.1 + 0.1 / 3)) < 3 * math.sqrt(0.13 * 0.87 / selected)
    assert not (batch.mask & (true >= 3)).any() and not batch.mask[:, 0].any()
    assert ((shown == true) | batch.mask).all()


def test_padding_is_hidden_and_selected_tokens_only_on_request() -> None:
    plain, hiding = (
        MaskedGrammar("cfg3b", root="13", hide_selected=hide).sample(64, rng=rng(1)) for hide in (False, True)
    )
    pads = plain.targets == 5
    assert torch.equal(plain.inputs >= 8, pads)
    assert torch.equal(hiding.inputs >= 8, pads | hiding.mask)
    assert torch.equal(plain.inputs % 8, hiding.inputs % 8)


def test_the_plateau_before_any_context_is_learnt() -> None:
    loss, accuracy = MaskedGrammar("cfg3b").plateau
    assert loss == pytest.approx(1.0524, abs=5e-5)
    assert accuracy == pytest.approx(0.4, abs=1e-9)
    world = MaskedGrammar("cfg3b", root="13|14|15")
    batch = world.sample(3000, rng=rng(2))
    measured = float(cross_entropy(WindowOracle(world, 0).predict(batch), batch))
    assert measured == pytest.approx(world.plateau[0], abs=0.02)


def test_more_context_lowers_the_loss_and_the_oracle_is_best() -> None:
    world = MaskedGrammar("cfg3b", root="13|14|15")
    batch = world.sample(400, rng=rng(3))
    losses = [float(cross_entropy(WindowOracle(world, r).predict(batch), batch)) for r in (0, 1, 2)]
    losses.append(world.optimal_loss(batch))
    assert losses == sorted(losses, reverse=True) and losses[0] - losses[-1] > 0.3


def test_the_masked_oracle_is_the_conditional_distribution_over_all_sentences_and_corruptions() -> None:
    """P(x | what is shown, i selected) by enumeration: 70 % are not selected, of the others 80/10/10."""
    world = MaskedGrammar("cfg3b", root="10")
    every = {
        sum(parts, ()): 1 / 16
        for children in ((7, 9, 8), (9, 8, 7))
        for parts in itertools.product(*(WORDS[child] for child in children))
    }
    batch = world.sample(60, rng=rng(8))
    found, shown, compared = world.oracle(batch).exp(), batch.inputs % world.vocab, 0
    for row, place in batch.mask.nonzero().tolist():
        length = int((shown[row] != world.pad).sum()) - 1
        joint = np.zeros(3)
        for words, prob in every.items():
            if len(words) == length:
                given = [
                    channel(int(shown[row, i + 1]), word, world.mask_token, selected=0.3 if i + 1 != place else 1.0)
                    for i, word in enumerate(words)
                ]
                joint[words[place - 1]] += prob * math.prod(given)
        assert found[row, place, :3].numpy() == pytest.approx(joint / joint.sum(), abs=1e-10)
        compared += int(joint.max() < joint.sum())
    assert compared > 20


WORDS = {7: ((2, 0), (0, 1, 2)), 8: ((2, 1), (2, 0, 1)), 9: ((2, 1, 0), (1, 0))}
"""What 7, 8 and 9 of cfg3b become, terminals from 0."""


def channel(shown: int, true: int, mask: int, *, selected: float) -> float:
    """P(a token is shown | the true one), when it is selected with this probability."""
    if shown == mask:
        return 0.8 * selected
    return (1 - selected) * (shown == true) + selected * (0.1 * (shown == true) + 0.1 / 3)


def test_window_predictions_are_those_of_the_conditional_distribution() -> None:
    """r = 1 on visible neighbours: N(a w b)/Σ N(a · b) with the n-grams of the language."""
    world = MaskedGrammar("cfg3b", root="10", rate=0.0)
    grams = world.rules.ngrams(3, padding=1)
    inputs = torch.tensor([[3, 0, 6, 2, 1, 0, 1]])
    found = WindowOracle(world, 1).probs(inputs)[0, 1].numpy()
    assert found == pytest.approx(grams[0, :3, 2] / grams[0, :3, 2].sum(), abs=1e-12)
    inside = WindowOracle(world, 1).probs(torch.tensor([[3, 6, 0, 1, 2, 1, 0]]))[0, 0].numpy()
    assert inside == pytest.approx(grams[3, :3, 0] / grams[3, :3, 0].sum(), abs=1e-12)


def test_boundary_targets_are_the_last_tokens_of_spans() -> None:
    world = BoundaryGrammar("cfg3f", root="13|14|15", height=2)
    batch = world.sample(32, rng=rng(4))
    assert batch.inputs.shape == batch.targets.shape == batch.mask.shape
    assert torch.equal(batch.inputs[:, 1:], batch.targets[:, :-1])
    every = BoundaryGrammar("cfg3f", root="13|14|15", height=1).sample(32, rng=rng(4))
    assert torch.equal(every.mask, every.targets < 3)
    assert not (batch.mask & ~every.mask).any() and batch.mask.sum() < every.mask.sum()


def test_the_next_token_oracle_beats_the_unigram_and_sums_to_one() -> None:
    world = BoundaryGrammar("cfg3f", root="13|14|15", height=2)
    batch = world.sample(64, rng=rng(5))
    oracle = world.oracle(batch)
    assert torch.allclose(oracle.exp().sum(-1), torch.ones(1, dtype=torch.float64))
    unigram = -float(np.log(world.rules.unigram) @ world.rules.unigram)
    assert world.optimal_loss(batch) < unigram - 0.1


def test_long_sentences_can_be_cut() -> None:
    world = BoundaryGrammar("cfg3f", longest=40)
    assert world.sample(4, rng=rng(6)).inputs.shape == (4, 40)
