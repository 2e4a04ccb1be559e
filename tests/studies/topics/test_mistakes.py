"""Mistakes that a careless builder of this chapter would make: each test shows that the laboratory does not."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from sandlab.circuits.topics.optima import block_value, ridge_value
from sandlab.circuits.topics.prescribed import value_topics
from sandlab.learning.experiment import Experiment, Members, train_members
from sandlab.learning.topics.losses import MaskedSquares, frobenius
from sandlab.learning.training import train
from sandlab.lenses.topics.attention import attention_by_topic
from sandlab.lenses.topics.dynamics import stage_times
from sandlab.lenses.topics.lda import topic_words
from sandlab.lenses.topics.matrices import block_contrast
from sandlab.lenses.topics.report import topic_pairs
from sandlab.lenses.topics.stage_two import StageTwoBounds, normalisers
from sandlab.models.base import build, seeded
from sandlab.models.topics.one_layer import OneLayerTopics
from sandlab.random import rng
from sandlab.studies.topics import attention_averages, diagonal_attention, embedding_blocks, value_blocks
from sandlab.studies.topics.two_stages import PARTS, QUICK
from sandlab.worlds.topics.documents import LDATopics
from sandlab.worlds.topics.growing import GrowingTopics
from sandlab.worlds.topics.masking import InfiniteDocuments, MaskedStatistics

SMALL = LDATopics(topics=3, words=4, lengths=(20, 30))


def random_model(**options: object) -> OneLayerTopics:
    with seeded(0):
        return OneLayerTopics(vocab=13, std=1.0, **options).double()  # type: ignore[arg-type]


def test_squares_are_added_over_the_vocabulary_not_averaged() -> None:
    batch, model = SMALL.sample(10, rng=rng(0)), random_model()
    logits = model(batch.inputs).detach()
    true = torch.nn.functional.one_hot(batch.targets, 13).double()
    expected = (logits - true).square().sum(-1)[batch.mask].mean()
    assert float(MaskedSquares()(logits, batch)) == pytest.approx(float(expected))
    assert float(MaskedSquares("mean")(logits, batch)) == pytest.approx(float(expected) / 13)


def test_kept_and_swapped_positions_are_predicted() -> None:
    batch = LDATopics().sample(200, rng=rng(1))
    shown = batch.inputs[batch.mask]
    assert 0.15 < float((shown > 0).double().mean()) < 0.25


def test_the_weights_of_one_query_sum_to_one_and_those_of_one_key_do_not() -> None:
    model = random_model()
    words = SMALL.sample(1, rng=rng(2)).truth["words"]
    counts = model.counts(words, words < 13)
    attention = model.word_attention(counts)[0]
    torch.testing.assert_close(attention.sum(-1), torch.ones(13, dtype=torch.float64))
    assert (attention.sum(0) - 1).abs().max() > 0.1


@pytest.mark.parametrize("reference", [None, 100.0])
def test_average_attention_keeps_its_mean(reference: float | None) -> None:
    words = SMALL.sample(50, rng=rng(3)).truth["words"]
    found = attention_by_topic(random_model(), words, 4, reference=reference)
    assert found.mean == pytest.approx(found.expected, rel=1e-9)
    weighted = np.dot(found.shares, (found.same_word, found.same_topic, found.different))
    assert weighted == pytest.approx(found.expected, rel=1e-9)


def test_topic_labels_stand_where_the_blocks_are() -> None:
    statistics = MaskedStatistics()
    value = block_value(statistics)
    good = block_contrast(value, 10)
    shifted = np.pad(np.roll(value[1:, 1:], (4, 4), (0, 1)), ((1, 0), (1, 0)))
    assert good.auc == 1.0 and good.same_std == pytest.approx(0) and block_contrast(shifted, 10).auc < 0.9
    words = LDATopics().sample(100, rng=rng(4)).truth["words"]
    model = value_topics(statistics, alpha=5.0, beta=5.0)
    true, wrong = (attention_by_topic(model, words, 10, label_shift=shift) for shift in (0, 4))
    assert true.levels[0] > 1.5 * wrong.levels[0]


def test_exact_entries_need_frozen_biases() -> None:
    """A value bias may take over the constants of the matrix: with one, other matrices are as good."""
    s = MaskedStatistics(topics=5, words=4)
    frequencies = InfiniteDocuments(s).every()
    shifted = block_value(s)
    shifted[1:] += 0.1  # the rows' outputs all change by 0.1, which a bias takes back
    np.testing.assert_allclose(s.masked(frequencies) @ shifted[1:].T - 0.1, frequencies[:, 1:], atol=1e-12)
    assert np.abs(shifted - ridge_value(s, frequencies, 1e-9)).max() > 0.09


def test_studies_that_compare_with_the_theorems_train_no_bias() -> None:
    def trained(experiment: Experiment) -> set[str]:
        model = build(experiment.model)
        if experiment.prepare is not None:
            experiment.prepare(model)
        assert not any(weight.any() for name, weight in model.named_parameters() if name in ("value_bias", "key_bias"))
        return {name for name, weight in model.named_parameters() if weight.requires_grad}

    assert all(trained(each) == {"value"} for each in value_blocks.QUICK.panels)
    assert all(trained(each) == {"embedding"} for each in embedding_blocks.QUICK.alone)
    stage_two = (attention_averages.QUICK.stage_two, diagonal_attention.QUICK.diagonal, diagonal_attention.QUICK.blocks)
    assert all(trained(each) == {"key", "query", "key_bias", "query_bias"} for each in stage_two)


def test_the_penalty_has_a_gradient_and_is_that_of_the_squared_norm() -> None:
    values = []
    for strength in (0.0, 0.3):
        model = random_model(attention="uniform", trained=("value",))
        before = model.value.detach().clone()
        train(model, SMALL, steps=1, batch_size=8, rng=rng(6), lr=0.1, optimizer="sgd",
              weight_decay=frobenius(strength), progress=False)  # fmt: skip
        values.append(model.value.detach())
    torch.testing.assert_close(values[1] - values[0], -0.1 * 2 * 0.3 * before)


def test_two_stages_are_shown_with_sgd_and_denied_with_adam() -> None:
    optimizers = {name: each.training.optimizer for name, each in zip(QUICK.names, QUICK.runs)}
    assert all(used == name.split(",")[0].lower() for name, used in optimizers.items())
    assert all(each.training.lr >= 5 for each in QUICK.runs if each.training.optimizer == "sgd")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "stages"), [("SGD, 20", True), ("Adam, 0.01", False)])
def test_the_detector_says_yes_to_sgd_and_no_to_adam(name: str, stages: bool) -> None:
    (experiment,) = (run for each, run in zip(QUICK.names, QUICK.runs) if each == name)
    runs = train_members(Members(experiment, (0,)))
    found = stage_times(runs.eval_steps, {part: runs.metrics[f"{part} norm"][0, :, 0] for part in PARTS})
    assert found.two_stages == stages


def test_a_small_rate_of_sgd_has_structure_that_is_only_small() -> None:
    world = LDATopics(last=48)
    model = OneLayerTopics(vocab=101, read=48, attention="uniform", trained=("value",), std=0.0)
    train(model, world, steps=150, batch_size=40, rng=rng(7), lr=0.01, optimizer="sgd", progress=False)
    found = block_contrast(model.value.detach().double().numpy(), 10)
    assert found.same < 0.01 and found.auc > 0.99


@pytest.mark.slow
def test_sgd_at_that_rate_learns_no_topical_attention() -> None:
    """What the source calls failed runs: after 3000 steps all three averages are still the same."""
    world = LDATopics(last=48)
    with seeded(0):
        model = OneLayerTopics(vocab=101, read=48, std=0.01)
    train(model, world, steps=3000, batch_size=40, rng=rng(10), lr=0.01, optimizer="sgd", progress=False)
    words = world.sample(300, rng=rng(11)).truth["words"]
    found = attention_by_topic(model.double(), words, 10, reference=100.0)
    assert (found.same_word, found.same_topic, found.different) == pytest.approx([0.01] * 3, rel=0.01)


def test_keys_that_show_the_mask_belong_to_the_normalisers() -> None:
    s = MaskedStatistics()
    with_mask, without = (normalisers(s, np.ones(1), np.ones(1), mask=mask)[0] for mask in (True, False))
    assert with_mask == pytest.approx(1.0) and without == pytest.approx(1 - s.mask_mass)


def test_the_proved_bound_is_smaller_than_the_stated_one() -> None:
    bounds = StageTwoBounds(MaskedStatistics())
    assert bounds.lambda1_proof == pytest.approx(0.3713295, abs=1e-7)
    assert bounds.lambda1_stated == pytest.approx(0.5773410, abs=1e-7)


def test_a_position_counts_as_the_same_word_as_itself_and_fillers_do_not_count() -> None:
    model = OneLayerTopics(vocab=13, std=0.0).double()
    words = torch.tensor([[1, 2, 5, 13, 13]])
    found = attention_by_topic(model, words, 4)
    assert found.shares == pytest.approx((3 / 9, 2 / 9, 4 / 9))
    assert (found.same_word, found.different) == pytest.approx((1 / 3, 1 / 3))


def test_positions_that_show_the_mask_get_attention_but_count_in_no_average() -> None:
    model = OneLayerTopics(vocab=13, std=0.0).double()
    plain, masked = (attention_by_topic(model, torch.tensor([row]), 4) for row in ([1, 2, 5], [1, 2, 5, 0, 0]))
    assert masked.shares == plain.shares
    assert (plain.same_word, masked.same_word) == pytest.approx((1 / 3, 1 / 5))
    assert (masked.same_topic, masked.different) == pytest.approx((1 / 5, 1 / 5))


def test_a_word_and_itself_is_no_same_topic_pair_of_a_text() -> None:
    pairs = topic_pairs(np.array([[True], [True], [False]]))
    assert pairs.kinds["same"].tolist() == [[False, True], [True, False]]


def test_lengths_are_corrected_for() -> None:
    model = OneLayerTopics(vocab=101, std=0.0).double()
    words = GrowingTopics().sample(200, rng=rng(8)).truth["words"]
    raw, corrected = (attention_by_topic(model, words, 10, reference=each) for each in (None, 100.0))
    assert raw.levels[0] > 1.1 and corrected.levels[0] == pytest.approx(1.0, rel=1e-9)


def test_a_topic_has_one_word_more_than_the_rounded_share() -> None:
    law = np.random.default_rng(0).random((1, 1000))
    assert [len(topic_words(law, share)[0]) for share in (0.0005, 0.001, 0.0025)] == [1, 2, 3]
    assert math.floor(0.0005 * 1000) == 0  # the rounded share itself would leave topics without words


def test_attention_is_read_on_documents_without_masks() -> None:
    batch = LDATopics().sample(50, rng=rng(9))
    model = value_topics(MaskedStatistics(), alpha=8.0, beta=8.0)
    clean = attention_by_topic(model, batch.truth["words"], 10)
    masked = attention_by_topic(model, batch.inputs, 10)
    assert not (batch.truth["words"] == 0).any()
    assert clean.mean == pytest.approx(clean.expected) and masked.mean != pytest.approx(masked.expected, rel=1e-3)
