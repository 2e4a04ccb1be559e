"""Average attention between words: the same word, another word of its topic, a word of another topic."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from sandlab.models.topics.one_layer import OneLayerTopics
from sandlab.registry import register

__all__ = ["TopicAttention", "attention_by_topic", "word_counts"]


@dataclass(frozen=True)
class TopicAttention:
    """Mean attention over ordered pairs of positions of unmasked documents, pooled over documents.

    same_word, same_topic, different   means of the three kinds of pairs; same_topic is without the same word
    mean, expected                     mean over all pairs, and what it must be: ΣN/ΣN² (1/reference when debiased)
    shares                             share of each kind among the pairs
    """

    same_word: float
    same_topic: float
    different: float
    mean: float
    expected: float
    shares: tuple[float, float, float]

    @property
    def levels(self) -> tuple[float, float]:
        """α̂ and β̂: attention inside the topic and to the same word, relative to other topics"""
        return self.same_topic / self.different, self.same_word / self.different

    def mean_level(self, words: int) -> float:
        """γ̂ = ((v − 1)α̂ + β̂)/v for topics of v words: all that a block value matrix sees of the two"""
        alpha, beta = self.levels
        return ((words - 1) * alpha + beta) / words


def word_counts(words: Int[Tensor, "documents time"], vocab: int) -> Float[Tensor, "documents vocab"]:
    """How often each word occurs in each document; tokens from `vocab` on fill up short ones."""
    counts = torch.zeros(len(words), vocab + 1, dtype=torch.float64, device=words.device)
    return counts.scatter_add(1, words.clamp(max=vocab), torch.ones_like(words, dtype=torch.float64))[:, :-1]


@register("lenses")
@torch.no_grad()
def attention_by_topic(
    model: OneLayerTopics,
    documents: Int[Tensor, "documents time"],
    words: int,
    *,
    reference: float | None = None,
    label_shift: int = 0,
) -> TopicAttention:
    """Attention of a one-layer model on unmasked documents whose topics own `words` words each.

    reference     multiply attention by N/reference, N the length of the document: without this, long documents,
                  which have more topics, lower the average over different topics
    label_shift   look topics up this many words too far on, as an evaluation that confuses words and tokens does
    """
    counts = word_counts(documents, model.vocab).to(model.dtype)
    mass = counts[..., None] * model.word_attention(counts)  # from all occurrences of q to all of l
    lengths = counts.sum(1)
    mass = mass * ((lengths / reference)[:, None, None] if reference is not None else 1.0)
    pairs = (counts.mT @ counts).double().cpu().numpy()
    totals = mass.sum(0).double().cpu().numpy()
    expected = 1 / reference if reference is not None else float(lengths.sum() / lengths.square().sum())
    return _averages(totals[1:, 1:], pairs[1:, 1:], words, label_shift, expected)


def _averages(
    totals: Float[np.ndarray, "words words"],
    pairs: Float[np.ndarray, "words words"],
    words: int,
    shift: int,
    expected: float,
) -> TopicAttention:
    topic, word = (np.arange(len(pairs)) + shift) // words, np.eye(len(pairs), dtype=bool)
    same = topic[:, None] == topic
    kinds = (word, same & ~word, ~same)
    word_mean, topic_mean, other_mean = (float(totals[kind].sum() / pairs[kind].sum()) for kind in kinds)
    shares = [float(pairs[kind].sum() / pairs.sum()) for kind in kinds]
    mean = float(totals.sum() / pairs.sum())
    return TopicAttention(word_mean, topic_mean, other_mean, mean, expected, (shares[0], shares[1], shares[2]))
