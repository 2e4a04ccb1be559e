"""Topics of a corpus: LDA by scikit-learn, and the words that stand for each topic."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy import sparse

from sandlab.errors import integer, number, require
from sandlab.registry import register

__all__ = ["cooccurrence_pairs", "fit_lda", "topic_purity", "topic_sets", "topic_words"]


@register("lenses")
def fit_lda(
    counts: Float[np.ndarray, "documents vocab"],
    topics: int = 100,
    *,
    seed: int = 0,
    passes: int = 1,
    weighting: str = "counts",
) -> Float[np.ndarray, "topics vocab"]:
    """p(word | topic) of an LDA model, fitted by online variational Bayes (Hoffman et al. 2010).

    passes      over the corpus; 1 in the published evaluation
    weighting   "counts", or "tf-idf" as in the published evaluation
    """
    from sklearn.decomposition import LatentDirichletAllocation
    from sklearn.feature_extraction.text import TfidfTransformer

    integer("topics", topics, low=1)
    integer("passes", passes, low=1)
    require(weighting in ("counts", "tf-idf"), "weighting", weighting, "'counts' or 'tf-idf'")
    table = sparse.csr_matrix(counts)
    table = TfidfTransformer().fit_transform(table) if weighting == "tf-idf" else table
    model = LatentDirichletAllocation(
        topics, learning_method="online", max_iter=passes, batch_size=128, random_state=seed, evaluate_every=-1
    ).fit(table)
    return model.components_ / model.components_.sum(1, keepdims=True)


@register("lenses")
def topic_words(
    law: Float[np.ndarray, "topics vocab"],
    share: float,
    *,
    stop: Bool[np.ndarray, " vocab"] | None = None,
    one_topic: bool = True,
) -> list[Int[np.ndarray, "_words"]]:
    """The likeliest words of each topic: ⌊share · n⌋ + 1 of them, n the size of the vocabulary, stop words left out.

    one_topic   a word in several lists stays only where it is likeliest (of equals, in the first)
    """
    number("share", share, low=0.0, high=1.0)
    count = int(share * law.shape[1]) + 1
    shown = law if stop is None else np.where(stop, 0.0, law)
    order = np.argsort(-shown, axis=1, kind="stable")[:, :count]
    lists = [words[shown[topic, words] > 0] for topic, words in enumerate(order)]
    if not one_topic:
        return lists
    member = topic_sets(lists, law.shape[1])
    best = np.where(member, shown.T, -1.0).argmax(1)
    return [words[best[words] == topic] for topic, words in enumerate(lists)]


def topic_sets(lists: list[Int[np.ndarray, "_words"]], vocab: int) -> Bool[np.ndarray, "vocab topics"]:
    """Which topics each word belongs to."""
    member = np.zeros((vocab, len(lists)), dtype=bool)
    for topic, words in enumerate(lists):
        member[words, topic] = True
    return member


def topic_purity(lists: list[Int[np.ndarray, "_words"]], truth: Int[np.ndarray, " vocab"]) -> float:
    """Mean over lists of the share of words that have the commonest true topic of their list."""
    shares = [np.bincount(truth[words]).max() / len(words) for words in lists if len(words)]
    return float(np.mean(shares))


@register("lenses")
def cooccurrence_pairs(
    counts: Float[np.ndarray, "documents vocab"], pairs: int, *, stop: Bool[np.ndarray, " vocab"] | None = None
) -> Int[np.ndarray, "pairs 2"]:
    """The pairs of different words that occur together in most documents, most frequent first; no stop words."""
    integer("pairs", pairs, low=1)
    present = (np.asarray(counts) > 0) & (True if stop is None else ~stop)
    often = present.sum(0)
    order = np.argsort(-often, kind="stable")
    size = min(len(order), max(64, pairs))
    while True:
        words = np.sort(order[:size])
        together = np.triu(present[:, words].T.astype(np.float32) @ present[:, words].astype(np.float32), 1)
        best = np.argsort(-together, axis=None, kind="stable")[:pairs]
        # No pair with a word that was left out can be more frequent than that word.
        if size == len(order) or together.flat[best[-1]] > often[order[size]]:
            rows, columns = np.unravel_index(best, together.shape)
            return np.stack([words[rows], words[columns]], 1)
        size = min(2 * size, len(order))
