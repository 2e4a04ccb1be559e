"""Topics inside an encoder of text: similarity of embeddings and attention, within topics and between them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sandlab.errors import require
from sandlab.lenses.topics.lda import topic_sets, topic_words
from sandlab.registry import register

__all__ = [
    "PairKinds",
    "TextEncoder",
    "TopicReport",
    "cosines",
    "listed_pairs",
    "pair_attention",
    "pair_reports",
    "topic_pairs",
    "topic_report",
]

REFERENCE = 100.0  # attention is multiplied by N/100, N the length of the text


class TextEncoder(Protocol):
    """What a report needs: `MaskedEncoder` and `PretrainedEncoder` have both."""

    def table(self) -> Float[Tensor, "vocab width"]: ...

    def mean_attention(self, tokens: Int[Tensor, "batch time"]) -> Float[Tensor, "batch query key"]: ...


@dataclass(frozen=True)
class PairKinds:
    """Some words of a vocabulary, and kinds of pairs of them; a word with itself is never a pair."""

    words: Int[np.ndarray, " words"]
    kinds: Mapping[str, Bool[np.ndarray, "words words"]]

    def means(self, values: Float[np.ndarray, "words words"]) -> dict[str, float]:
        """Mean of a matrix over each kind of pairs; NaN for a kind without pairs."""
        return {name: float(values[kind].mean()) if kind.any() else float("nan") for name, kind in self.kinds.items()}


def topic_pairs(member: Bool[np.ndarray, "vocab topics"]) -> PairKinds:
    """ "same" and "different": pairs of different words with and without a common topic; words of no topic left out."""
    words = np.flatnonzero(member.any(1))
    common = member[words].astype(np.float32) @ member[words].T.astype(np.float32) > 0
    other = ~np.eye(len(words), dtype=bool)
    return PairKinds(words, {"same": common & other, "different": ~common})


def listed_pairs(name: str, pairs: Int[np.ndarray, "pairs 2"]) -> PairKinds:
    """Pairs from a list, in both orders."""
    words, places = np.unique(pairs, return_inverse=True)
    kind = np.zeros((len(words), len(words)), dtype=bool)
    first, second = places.reshape(pairs.shape).T
    kind[first, second] = kind[second, first] = True
    return PairKinds(words, {name: kind})


def cosines(vectors: Float[np.ndarray, "words width"]) -> Float[np.ndarray, "words words"]:
    """Cosines between all rows."""
    unit = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    return unit @ unit.T


def pair_attention(
    encoder: TextEncoder,
    documents: Iterable[Int[np.ndarray, "_time"]],
    pairs: Sequence[PairKinds],
    vocab: int,
    *,
    reference: float | None = REFERENCE,
) -> list[dict[str, float]]:
    """Mean attention over ordered pairs of positions whose words are of each kind, pooled over documents.

    reference   multiply by N/reference, N the length of the document; None: attention as it is
    """
    tallies = [_Tally(each, vocab) for each in pairs]
    for document in documents:
        attention = encoder.mean_attention(torch.from_numpy(np.asarray(document))[None])[0].double().cpu().numpy()
        scaled = attention * (1.0 if reference is None else len(document) / reference)
        for tally in tallies:
            tally.add(np.asarray(document), scaled)
    return [tally.means() for tally in tallies]


class _Tally:
    """Sums of attention over kinds of pairs."""

    def __init__(self, pairs: PairKinds, vocab: int) -> None:
        self.kinds, self.place = pairs.kinds, np.full(vocab, -1)
        self.place[pairs.words] = np.arange(len(pairs.words))
        self.sums, self.counts = dict.fromkeys(pairs.kinds, 0.0), dict.fromkeys(pairs.kinds, 0)

    def add(self, document: Int[np.ndarray, " time"], attention: Float[np.ndarray, "time time"]) -> None:
        at = np.flatnonzero(self.place[document] >= 0)
        word, inner = self.place[document[at]], attention[np.ix_(at, at)]
        for name, kind in self.kinds.items():
            chosen = kind[np.ix_(word, word)]
            self.sums[name] += float(inner[chosen].sum())
            self.counts[name] += int(chosen.sum())

    def means(self) -> dict[str, float]:
        return {name: self.sums[name] / self.counts[name] if self.counts[name] else float("nan") for name in self.sums}


@dataclass(frozen=True)
class TopicReport:
    """Means over kinds of pairs of different words: with ("same") and without ("different") a common topic.

    words       how many words the pairs have
    cosine, dot, attention   name of the kind → mean; attention is multiplied by N/100
    """

    words: int
    cosine: dict[str, float]
    dot: dict[str, float]
    attention: dict[str, float]

    def ratio(self, measure: str) -> float:
        """same / different"""
        means: dict[str, float] = getattr(self, measure)
        return means["same"] / means["different"]


@register("lenses")
def topic_report(
    encoder: TextEncoder,
    documents: Sequence[Int[np.ndarray, "_time"]],
    law: Float[np.ndarray, "topics vocab"],
    share: float,
    *,
    stop: Bool[np.ndarray, " vocab"] | None = None,
    one_topic: bool = True,
) -> TopicReport:
    """Embeddings and attention of an encoder by topic (Tables 2.3 and 2.4 of Li 2024).

    documents   token numbers of unmasked texts
    law         p(token | topic), of `fit_lda`; share: see `topic_words`
    stop        tokens that may have no topic: stop words, and tokens that are not whole words
    """
    pairs = topic_pairs(topic_sets(topic_words(law, share, stop=stop, one_topic=one_topic), law.shape[1]))
    return pair_reports(encoder, documents, [pairs], law.shape[1])[0]


def pair_reports(
    encoder: TextEncoder, documents: Sequence[Int[np.ndarray, "_time"]], pairs: Sequence[PairKinds], vocab: int
) -> list[TopicReport]:
    """Embeddings and attention over several choices of pairs; the documents are read once."""
    table = encoder.table().double().cpu().numpy()
    require(len(table) >= vocab, "vocab", vocab, f"at most {len(table)}, the tokens of the encoder")
    found = []
    for each, attention in zip(pairs, pair_attention(encoder, documents, pairs, vocab)):
        vectors = table[each.words]
        cosine, dot = each.means(cosines(vectors)), each.means(vectors @ vectors.T)
        found.append(TopicReport(len(vectors), cosine, dot, attention))
    return found
