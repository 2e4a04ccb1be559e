"""The two things one attention layer does: average over everything seen, or pick out one of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import torch

from sandlab.errors import integer, number, require
from sandlab.models.transformer import Transformer
from sandlab.registry import register

__all__ = ["running_average", "select_largest"]


@register("circuits")
def running_average(vocab: int, length: int) -> Transformer:
    """Uniform attention: zero scores give weights 1/(i + 1), so the output is the share of each token so far.

    Times i + 1 it is the running count of each token. Output: the shares themselves (not logarithms).
    """
    return _one_layer(vocab, length)


@register("circuits")
def select_largest(scores: Sequence[float], length: int, *, temperature: float = 200.0) -> Transformer:
    """Sparse attention: scores β·s(x_j) pick the token with the largest s seen so far, ties averaged as β → ∞.

    scores[token] is s. With a gap g between the largest and the next, at most T·e^{−βg} of the weight goes elsewhere.
    Output: the one-hot token (the average of those that tie).
    """
    require(len(scores) >= 1, "scores", list(scores), "one number per token")
    values = torch.tensor([number("score", score) for score in scores], dtype=torch.float64)
    model = _one_layer(len(scores), length)
    attention = cast(Any, model.layers[0]).attention
    with torch.no_grad():
        # Every token asks the same question; the key's answer is its score.
        attention.query.weight[0, : len(scores)] = number("temperature", temperature, low=0.0)
        attention.key.weight[0, : len(scores)] = values
    return model


def _one_layer(vocab: int, length: int) -> Transformer:
    """One head without positions, norm or residual whose value is the token."""
    integer("vocab", vocab, low=1)
    model = Transformer(
        vocab=vocab, length=length, layers=1, heads=1, width=vocab, head_width=vocab, mlp="none", norm="none",
        positions="none", embedding="one-hot", scale=1.0, bias=False, residual=False, output_map=False,
    ).double()  # fmt: skip
    identity = torch.eye(vocab, dtype=torch.float64)
    attention = cast(Any, model.layers[0]).attention
    with torch.no_grad():
        attention.query.weight.zero_()
        attention.key.weight.zero_()
        attention.value.weight.copy_(identity)
        model.unembed.weight.copy_(identity)
    return model
