"""Made-up encyclopaedia and fixed corpora."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sandlab.errors import BadInput
from sandlab.random import rng
from sandlab.worlds.topics.corpus import TopicCorpus
from sandlab.worlds.topics.documents import DisjointTopics, LDATopics
from sandlab.worlds.topics.growing import GrowingTopics
from sandlab.worlds.topics.pseudo_wiki import PseudoWiki


def test_words_have_the_law_of_their_document() -> None:
    world = PseudoWiki(size=60, stops=10, topics=3, lengths=(400, 400))
    batch = world.sample(2000, rng=rng(0))
    found = torch.zeros(2000, world.outputs).scatter_add(1, batch.truth["words"], torch.ones(2000, 400)) / 400
    weights = batch.truth["weights"].numpy()
    expected = 0.6 * weights @ world.topic_law + 0.4 * world.stop_law
    np.testing.assert_allclose(found.mean(0), expected.mean(0), atol=2e-3)
    common = [word for word in expected.mean(0).argsort()[-8:] if word > world.stops]
    slopes = [np.polyfit(expected[:, word], found[:, word].numpy(), 1)[0] for word in common]
    np.testing.assert_allclose(slopes, 1.0, atol=0.1)


def test_the_tables_are_laws_and_stop_words_belong_to_no_topic() -> None:
    world = PseudoWiki()
    np.testing.assert_allclose(world.topic_law.sum(1), 1.0)
    assert world.stop_law.sum() == pytest.approx(1.0) and world.topic_law[:, world.is_stop].sum() == 0.0
    assert world.stop_law[1] / world.stop_law[10] == pytest.approx(10.0)
    assert len(world.letters) == world.vocab == 3002


def test_documents_have_lengths_between_the_given_and_are_never_predicted_beyond() -> None:
    world = PseudoWiki(lengths=(30, 40), marked=20)
    batch = world.sample(300, rng=rng(1))
    shown = batch.inputs % world.outputs
    lengths = (shown != world.filler).sum(1)
    assert int(lengths.min()) == 30 and int(lengths.max()) == 40
    assert not ((batch.inputs >= world.outputs) & (shown == world.filler)).any()
    assert batch.targets.shape == (300, 20) and (batch.targets[batch.mask] > 0).all()


def test_the_prediction_with_known_weights_beats_the_common_law() -> None:
    world = PseudoWiki(marked=40)
    batch = world.sample(200, rng=rng(2))
    law = world.baselines()["known weights"](batch)
    loss = -law.gather(-1, batch.targets[..., None])[..., 0][batch.mask].mean()
    mean = torch.from_numpy(0.6 * world.topic_law.mean(0) + 0.4 * world.stop_law).log()
    assert float(loss) < float(-mean[batch.targets[batch.mask]].mean()) - 0.5


@pytest.mark.parametrize("static", [True, False])
def test_a_corpus_repeats_its_documents_and_with_static_masks_their_masks(static: bool) -> None:
    corpus = TopicCorpus(LDATopics(lengths=(30, 40), last=20), documents=5, seed=3, static_mask=static)
    batch = corpus.sample(200, rng=rng(0))
    texts = {tuple(sorted(row)) for row in batch.truth["words"].tolist()}
    masked = {tuple(row) for row in batch.inputs.tolist()}
    assert len(texts) == 5 and (len(masked) == 5) == static
    assert corpus.vocab == corpus.world.vocab and len(corpus.letters) == corpus.vocab


def test_the_oracle_of_a_corpus_is_that_of_its_world() -> None:
    world = DisjointTopics(topics=4, words=2, lengths=(6, 6))
    corpus = TopicCorpus(world, documents=10)
    batch = corpus.sample(4, rng=rng(0))
    torch.testing.assert_close(corpus.oracle(batch), world.oracle(batch))
    with pytest.raises(NotImplementedError):
        TopicCorpus().oracle(batch)
    with pytest.raises(BadInput, match="size"):
        PseudoWiki(size=50)


def test_longer_documents_have_more_topics() -> None:
    world = GrowingTopics(topics=5, words=4, lengths=(20, 60))
    batch = world.sample(400, rng=rng(4))
    lengths = (batch.inputs != world.filler).sum(1)
    found = (batch.truth["weights"] > 0).sum(1)
    assert torch.equal(found, 1 + 4 * (lengths - 20) // 40) and set(found.tolist()) >= {1, 2, 3, 4}
    for words, weights in zip(batch.truth["words"].tolist(), batch.truth["weights"]):
        topics = {(word - 1) // 4 for word in words if word != world.filler}
        assert topics <= set(weights.nonzero().flatten().tolist())
    fixed = GrowingTopics(lengths=(30, 30)).sample(5, rng=rng(0))
    assert ((fixed.truth["weights"] > 0).sum(1) == 1).all()
