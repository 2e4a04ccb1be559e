"""The one-layer topic model with prescribed weights: optimal value matrix or embedding, attention of given levels."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float
from torch import nn

from sandlab.circuits.topics.optima import block_value, diagonal_value, embedding_optimum, level_attention
from sandlab.errors import choice
from sandlab.models.topics.one_layer import OneLayerTopics
from sandlab.registry import register
from sandlab.worlds.topics.masking import MaskedStatistics

__all__ = ["embedding_topics", "set_attention", "set_value", "value_topics"]


def set_value(model: OneLayerTopics, value: Float[np.ndarray, "width width"]) -> None:
    """Write a value matrix and freeze it; the value bias becomes zero and is frozen too."""
    _write(model.value, value)
    _write(model.value_bias, np.zeros(model.value_bias.shape))


def set_attention(model: OneLayerTopics, statistics: MaskedStatistics, alpha: float, beta: float) -> None:
    """Write keys and queries of one-hot embeddings whose attention has levels β, α and 1, and freeze them."""
    key, query = level_attention(statistics, alpha, beta)
    for weight, given in ((model.key, key), (model.query, query)):
        _write(weight, given)
    for bias in (model.key_bias, model.query_bias):
        _write(bias, np.zeros(bias.shape))


@register("circuits")
def value_topics(
    statistics: MaskedStatistics, value: str = "block", *, alpha: float = 1.0, beta: float = 1.0
) -> OneLayerTopics:
    """One-hot embeddings, an optimal value matrix ("block" or "diagonal") and attention of levels α and β."""
    choice("value", value, ("block", "diagonal"))
    model = OneLayerTopics(vocab=statistics.vocab, trained=()).double()
    set_value(model, block_value(statistics) if value == "block" else diagonal_value(statistics))
    set_attention(model, statistics, alpha, beta)
    return model


@register("circuits")
def embedding_topics(statistics: MaskedStatistics, kind: str = "diagonal") -> OneLayerTopics:
    """Optimal embeddings and output bias (Theorem 2.1.1), the identity as value matrix, uniform attention."""
    embedding, bias = embedding_optimum(statistics, kind)
    width = len(embedding)
    model = OneLayerTopics(vocab=statistics.vocab, width=width, attention="uniform", trained=()).double()
    _write(model.embedding, embedding)
    _write(model.output_bias, bias)
    set_value(model, np.eye(width))
    return model


def _write(weight: nn.Parameter, given: Float[np.ndarray, "*shape"]) -> None:
    with torch.no_grad():
        weight.copy_(torch.from_numpy(given))
    weight.requires_grad_(False)
