"""Documents: frequencies against closed forms, the oracle against an enumeration by Bayes' rule."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch

from sandlab.errors import BadInput
from sandlab.random import rng
from sandlab.worlds.base import Batch
from sandlab.worlds.topics.documents import DisjointTopics, LDATopics, TopicWorld


def test_shown_tokens_have_the_probabilities_of_the_closed_form() -> None:
    world = DisjointTopics(topics=6, words=3, present=2, lengths=(100, 100), rate=0.4, keep=0.2, swap=0.3)
    batch = world.sample(20_000, rng=rng(0))
    s, present = world.statistics, batch.truth["weights"] > 0
    topic = (batch.inputs + 2) // 3
    inside = torch.nn.functional.pad(present, (1, 0)).gather(1, topic) & (topic > 0)
    total = batch.inputs.numel()
    for found, expected in (
        ((batch.inputs == 0).sum() / total, s.mask_mass),
        (inside.sum() / total, s.p_present * 3 * 2),
        ((~inside & (topic > 0)).sum() / total, s.p_absent * 3 * 4),
    ):
        assert float(found) == pytest.approx(expected, abs=3 * math.sqrt(expected * (1 - expected) / total))


def test_documents_have_exactly_the_present_topics() -> None:
    world = DisjointTopics(topics=5, words=4, present=3, lengths=(200, 200))
    batch = world.sample(200, rng=rng(1))
    for words, weights in zip(batch.truth["words"], batch.truth["weights"]):
        assert set(((words - 1) // 4).tolist()) == set(weights.nonzero().flatten().tolist())
    assert torch.equal((batch.truth["weights"] > 0).sum(1), torch.full((200,), 3))


def test_dirichlet_documents_have_the_known_moments() -> None:
    batch = LDATopics().sample(20_000, rng=rng(2))
    weights, words = batch.truth["weights"], batch.truth["words"]
    assert float((weights**2).mean()) == pytest.approx(0.055, abs=2e-3)
    assert float((weights[:, 0] * weights[:, 1]).mean()) == pytest.approx(0.005, abs=1e-3)
    same = (words[:, 0] - 1) // 10 == (words[:, 1] - 1) // 10
    assert float(same.double().mean()) == pytest.approx(0.55, abs=0.012)
    shares = torch.nn.functional.one_hot((words[:, :100] - 1) // 10, 10).double().mean(1)
    found = (shares >= 0.05).sum(1)
    assert float(((found >= 2) & (found <= 4)).double().mean()) == pytest.approx(0.83, abs=0.03)


def test_short_documents_are_filled_up_and_never_predicted_beyond_their_end() -> None:
    world = LDATopics(lengths=(5, 9))
    batch = world.sample(500, rng=rng(3))
    filled = batch.inputs == world.filler
    assert set((~filled).sum(1).tolist()) == {5, 6, 7, 8, 9}
    assert not (filled & batch.mask).any() and batch.inputs.max() < world.vocab
    assert ((batch.targets >= 1) & (batch.targets <= 100))[batch.mask].all()


def test_kept_and_swapped_positions_are_predicted_too() -> None:
    world = LDATopics(lengths=(100, 100))
    batch = world.sample(4000, rng=rng(4))
    fate = {
        "mask": batch.inputs == 0,
        "kept": batch.inputs == batch.targets,
        "swapped": (batch.inputs > 0) & (batch.inputs != batch.targets),
    }
    shares = {name: float(each[batch.mask].double().mean()) for name, each in fate.items()}
    assert shares == pytest.approx({"mask": 0.8, "kept": 0.1 + 0.1 / 100, "swapped": 0.1 * 0.99}, abs=6e-3)
    assert torch.equal(batch.inputs[~batch.mask], batch.targets[~batch.mask])


def test_marked_positions_are_the_predicted_ones() -> None:
    world = LDATopics(attend_to_masked=False)
    plain = LDATopics()
    batch, same = world.sample(50, rng=rng(5)), plain.sample(50, rng=rng(5))
    assert torch.equal(batch.inputs > world.filler, batch.mask)
    assert torch.equal(world.shown(batch.inputs), same.inputs)
    assert len(world.letters) == world.vocab and len(plain.letters) == plain.vocab


def test_predicted_positions_can_stand_last_without_changing_the_documents_or_their_oracles() -> None:
    plain, sorted_world = (DisjointTopics(topics=4, words=3, lengths=(20, 30), last=last) for last in (0, 20))
    one, other = plain.sample(100, rng=rng(10)), sorted_world.sample(100, rng=rng(10))
    assert other.mask.shape == (100, 20) and torch.equal(one.mask.sum(1), other.mask.sum(1))
    assert torch.equal(one.inputs.sort(1).values, other.inputs.sort(1).values)
    assert torch.equal(one.truth["words"].sort(1).values, other.truth["words"].sort(1).values)
    assert torch.equal(other.truth["words"][:, -20:][other.mask], other.targets[other.mask])
    assert plain.optimal_loss(one) == pytest.approx(sorted_world.optimal_loss(other), rel=1e-9)
    lda, last = LDATopics(), LDATopics(last=48)
    first, second = (_mean_bags(world) for world in (lda, last))
    assert first == pytest.approx(second, rel=1e-9)


def _mean_bags(world: LDATopics) -> float:
    batch = world.sample(100, rng=rng(11))
    return _loss(world.baselines()["bag of words"](batch), batch)


def test_word_probabilities_are_those_given() -> None:
    world = DisjointTopics(topics=2, words=3, present=1, word_probs=(0.5, 0.3, 0.2))
    words = world.sample(2000, rng=rng(6)).truth["words"]
    shares = torch.bincount((words[words < world.filler] - 1) % 3).double()
    np.testing.assert_allclose(shares / shares.sum(), [0.5, 0.3, 0.2], atol=5e-3)
    with pytest.raises(BadInput, match="word_probs"):
        DisjointTopics(words=3, word_probs=(0.5, 0.5))


def fate(world: TopicWorld, true: int, shown: int) -> float:
    """P(shown | true) at a predicted position."""
    if shown == 0:
        return 1 - world.keep - world.swap
    return world.keep * (true == shown) + world.swap / (world.topics * world.words)


def enumerated(world: DisjointTopics, tokens: list[int], position: int) -> np.ndarray:
    """P(true word at the position | all shown tokens, the position is predicted), by summing over sets and words."""
    law = np.zeros(world.outputs)
    words = range(1, world.outputs)
    for chosen in itertools.combinations(range(world.topics), world.present):
        prior = [(1 / (world.present * world.words)) if (w - 1) // world.words in chosen else 0.0 for w in words]
        rest = 1.0
        for place, token in enumerate(tokens):
            seen = [
                p * (world.rate * fate(world, w, token) + (1 - world.rate) * (w == token)) for w, p in zip(words, prior)
            ]
            rest *= 1.0 if place == position else sum(seen)
        for w, p in zip(words, prior):
            law[w] += rest * p * fate(world, w, tokens[position])
    return law / law.sum()


def test_the_oracle_is_what_enumeration_by_bayes_rule_gives() -> None:
    world = DisjointTopics(topics=4, words=2, present=2, lengths=(3, 5), rate=0.5, keep=0.2, swap=0.3)
    batch = world.sample(6, rng=rng(7))
    found = world.oracle(batch).exp()
    for row, tokens in enumerate(batch.inputs.tolist()):
        real = [token for token in tokens if token != world.filler]
        for position in range(len(real)):
            np.testing.assert_allclose(found[row, position], enumerated(world, real, position), atol=1e-12)


def test_no_baseline_that_sees_the_tokens_beats_the_oracle() -> None:
    world = DisjointTopics(lengths=(8, 8))
    batch = world.sample(4000, rng=rng(8))
    losses = {name: _loss(predict(batch), batch) for name, predict in world.baselines().items()}
    assert losses["known topics"] < world.optimal_loss(batch) < losses["known topics, bag of words"] + 0.5
    assert losses["known topics"] < losses["known topics, bag of words"]


def test_posterior_means_have_the_known_losses() -> None:
    world = LDATopics(last=48)
    batch = world.sample(2000, rng=rng(9))
    predictors = world.baselines()
    cross = {name: _loss(predictors[name](batch), batch) for name in ("bag of words", "full")}
    assert cross == pytest.approx({"bag of words": 3.159, "full": 2.909}, abs=0.03)
    squares = {name: _squares(predictors[name](batch), batch) for name in ("bag of words", "full")}
    assert squares == pytest.approx({"bag of words": 0.9445, "full": 0.8716}, abs=0.004)


def _loss(law: torch.Tensor, batch: Batch) -> float:
    return float(-law.gather(-1, batch.targets[..., None])[..., 0][batch.mask].mean())


def _squares(law: torch.Tensor, batch: Batch) -> float:
    true = torch.nn.functional.one_hot(batch.targets, law.shape[-1])
    return float((law.exp() - true).square().sum(-1)[batch.mask].mean())
