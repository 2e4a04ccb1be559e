"""Attention inside a document against the model's own pattern, and numbers of topics against the known shares."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sandlab import figures
from sandlab.circuits.topics.prescribed import value_topics
from sandlab.errors import BadInput
from sandlab.lenses.topics.document_pictures import (
    document_attention,
    draw_document_attention,
    topics_per_document,
)
from sandlab.models.base import seeded
from sandlab.models.hooks import record
from sandlab.models.topics.one_layer import OneLayerTopics
from sandlab.random import rng
from sandlab.worlds.topics.documents import DisjointTopics, LDATopics
from sandlab.worlds.topics.masking import MaskedStatistics

DOCUMENT = torch.tensor([7, 2, 12, 2, 5, 7, 1, 13, 13])


def test_attention_inside_a_document_is_the_pattern_of_all_positions() -> None:
    with seeded(0):
        model = OneLayerTopics(vocab=13, std=1.0, path="full").double()
    words, found = document_attention(model, DOCUMENT)
    assert words.tolist() == [1, 2, 2, 5, 7, 7, 12]
    with record(model, "pattern") as cache:
        model(torch.from_numpy(words)[None])
    np.testing.assert_allclose(found, cache["pattern"][0].detach().numpy(), rtol=1e-10)
    np.testing.assert_allclose(found.sum(1), 1.0)
    with pytest.raises(BadInput, match="document"):
        document_attention(model, torch.tensor([13, 13]))


def test_lines_stand_between_the_topics_of_the_document() -> None:
    model = value_topics(MaskedStatistics(3, 4, 2), alpha=3.0, beta=5.0)
    _, (axis,) = figures.new()
    draw_document_attention(axis, model, DOCUMENT, 4)
    assert axis.images[0].get_array().shape == (7, 7)
    # Sorted, the document is 1 2 2 | 5 7 7 | 12.
    assert sorted({float(line.get_ydata()[0]) for line in axis.lines if len(set(line.get_ydata())) == 1}) == [2.5, 5.5]


def test_published_documents_have_mostly_two_to_four_topics() -> None:
    """12, 34, 33, 16 and 4 of 100 documents have 1 to 5 topics with a twentieth of their words; 4.2 topics occur."""
    documents = LDATopics().sample(20_000, rng=rng(0)).truth["words"]
    found = topics_per_document(documents, 10, 10)
    shares = np.bincount(found, minlength=11)[1:6] / len(found)
    np.testing.assert_allclose(shares, [0.12, 0.34, 0.33, 0.16, 0.04], atol=0.015)
    assert topics_per_document(documents, 10, 10, share=0.0).mean() == pytest.approx(4.2, abs=0.05)


def test_documents_of_a_fixed_number_of_topics_have_it() -> None:
    world = DisjointTopics(topics=5, words=4, present=3, lengths=(200, 240))
    assert set(topics_per_document(world.sample(50, rng=rng(1)).truth["words"], 4, 5)) == {3}
