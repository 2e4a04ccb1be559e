"""Topics of a corpus: the fit on known topics, lists of words and pairs against loops."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from sandlab.errors import BadInput
from sandlab.lenses.topics.lda import cooccurrence_pairs, fit_lda, topic_purity, topic_sets, topic_words
from sandlab.random import rng
from sandlab.worlds.topics.pseudo_wiki import PseudoWiki

LAW = np.array([[0.5, 0.2, 0.2, 0.1, 0.0], [0.0, 0.3, 0.1, 0.4, 0.2]])


@pytest.mark.parametrize("weighting", ["counts", "tf-idf"])
def test_lda_finds_the_topics_of_made_up_documents(weighting: str) -> None:
    world = PseudoWiki(size=300, stops=20, topics=5, lengths=(100, 100), concentration=0.05)
    words = world.sample(600, rng=rng(0)).truth["words"].numpy()
    counts = np.stack([np.bincount(row, minlength=world.outputs) for row in words]).astype(float)
    counts[:, world.is_stop] = 0
    law = fit_lda(counts, 5, passes=3, weighting=weighting)
    np.testing.assert_allclose(law.sum(1), 1.0)
    lists = topic_words(law, 0.03, stop=world.is_stop)
    assert topic_purity(lists, world.topic_law.argmax(0)) > 0.7
    with pytest.raises(BadInput, match="weighting"):
        fit_lda(counts, 5, weighting="none")


def test_lists_have_one_word_more_than_the_share_rounded_down() -> None:
    """Pair counts 105, 435 and 1711 of Table 2.5 are those of 15, 30 and 59 words: ⌊θn⌋ + 1 for n near 29 200."""
    law = np.random.default_rng(0).random((2, 29_200))
    sizes = [len(topic_words(law, share, one_topic=False)[0]) for share in (0.0005, 0.001, 0.002)]
    assert sizes == [15, 30, 59] and [size * (size - 1) // 2 for size in sizes] == [105, 435, 1711]


def test_a_word_of_several_lists_stays_where_it_is_likeliest() -> None:
    several = [words.tolist() for words in topic_words(LAW, 0.5, one_topic=False)]
    assert several == [[0, 1, 2], [3, 1, 4]]
    assert [words.tolist() for words in topic_words(LAW, 0.5)] == [[0, 2], [3, 1, 4]]
    tie = np.array([[0.6, 0.4], [0.6, 0.4]])
    assert [words.tolist() for words in topic_words(tie, 0.0)] == [[0], []]


def test_stop_words_are_in_no_list() -> None:
    stop = np.array([True, False, False, False, False])
    assert [words.tolist() for words in topic_words(LAW, 0.2, stop=stop, one_topic=False)] == [[1, 2], [3, 1]]
    assert topic_sets(topic_words(LAW, 0.2, stop=stop), 5).sum(0).tolist() == [1, 2]


def test_the_most_frequent_pairs_are_those_of_a_loop() -> None:
    counts = (np.random.default_rng(1).random((40, 90)) < np.linspace(0.05, 0.6, 90)).astype(float)
    stop = np.arange(90) % 7 == 0
    found = cooccurrence_pairs(counts, 12, stop=stop)
    words = [word for word in range(90) if not stop[word]]
    every = {(a, b): int((counts[:, a] * counts[:, b]).sum()) for a, b in itertools.combinations(words, 2)}
    best = sorted(every.values(), reverse=True)[:12]
    assert [every[(int(a), int(b))] for a, b in found] == best
