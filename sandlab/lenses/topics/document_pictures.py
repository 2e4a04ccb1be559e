"""Pictures of documents: who attends to whom, words sorted by topic, and how many topics a document has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from sandlab import figures
from sandlab.errors import number, require
from sandlab.lenses.topics.attention import word_counts
from sandlab.models.topics.one_layer import OneLayerTopics
from sandlab.registry import register
from sandlab.worlds.topics.masking import topic_of_word

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["document_attention", "draw_document_attention", "topics_per_document"]


@register("lenses")
@torch.no_grad()
def document_attention(
    model: OneLayerTopics, document: Int[Tensor, " time"]
) -> tuple[Int[np.ndarray, " read"], Float[np.ndarray, "query key"]]:
    """Words of one document in the order of their numbers, and therefore topics, and the attention between them.

    Positions that show the same word share what a query gives to that word: a(l | q)/n_l. The filler is left out.
    """
    words = document[document < model.vocab].sort().values
    require(len(words) > 0, "document", document.tolist(), "at least one word of the model")
    counts = word_counts(words[None], model.vocab).to(model.dtype)
    given = model.word_attention(counts, words[None])[0] / counts.clamp(min=1)
    return words.cpu().numpy(), given[:, words].double().cpu().numpy()


def draw_document_attention(
    axis: Axes, model: OneLayerTopics, document: Int[Tensor, " time"], words: int, *, title: str = ""
) -> None:
    """Attention inside one document, its words sorted by topic; lines divide the topics of `words` words each."""
    shown, attention = document_attention(model, document)
    figures.heatmap(axis, attention, title=title, x="word attended to, by topic", y="word that attends")
    topic = topic_of_word(shown, words)
    for border in np.flatnonzero(np.diff(topic)) + 0.5:
        for line in (axis.axhline, axis.axvline):
            line(border, color="white", linewidth=0.6, alpha=0.8)


@register("lenses")
def topics_per_document(
    documents: Int[Tensor, "documents time"], words: int, topics: int, *, share: float = 0.05
) -> Int[np.ndarray, " documents"]:
    """How many topics each document has: those with at least `share` of its words.

    words, topics   v words of each of T topics; other tokens ([MASK], the filler) belong to none
    """
    number("share", share, low=0.0, high=1.0)
    counts = word_counts(documents, topics * words + 1)[:, 1:].reshape(len(documents), topics, words).sum(2)
    total = counts.sum(1, keepdim=True)
    return ((counts > 0) & (counts >= share * total)).sum(1).cpu().numpy()
