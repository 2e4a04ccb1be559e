"""The two things one attention layer does: average over everything seen, or pick out one item."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sandlab.circuits.builder import CircuitBuilder, Head
from sandlab.circuits.targets import to_transformer
from sandlab.errors import integer, number, require
from sandlab.models.transformer import Transformer
from sandlab.registry import register

__all__ = ["running_average", "select_largest"]


@register("circuits")
def running_average(vocab: int, length: int) -> Transformer:
    """Uniform attention: zero scores give weights 1/(i + 1), so the output is the share of each token so far.

    Times i + 1 it is the running count of each token. Output: the shares themselves (not logarithms).
    """
    return _one_layer(np.zeros(integer("vocab", vocab, low=1)), length, 0.0)


@register("circuits")
def select_largest(scores: Sequence[float], length: int, *, temperature: float = 200.0) -> Transformer:
    """Sparse attention: scores β·s(x_j) pick the token with the largest s seen so far, ties averaged as β → ∞.

    scores[token] is s. With a gap g between the largest and the next, at most T·e^{−βg} of the weight goes elsewhere.
    Output: the one-hot token (the average of those that tie).
    """
    require(len(scores) >= 1, "scores", list(scores), "one number per token")
    values = np.array([number("score", score) for score in scores])
    return _one_layer(values, length, number("temperature", temperature, low=0.0))


def _one_layer(scores: np.ndarray, length: int, temperature: float) -> Transformer:
    """One head, no residual: every token has the same query, the key is the token's score, the value the token."""
    circuit = CircuitBuilder(len(scores), length)
    token = circuit.channels("token", len(scores), letters=np.eye(len(scores)))
    query, key = [(token, 0, temperature)], [(token, 0, scores[:, None])]
    circuit.layer(0).heads.append(Head.copying(token, token, query=query, key=key))
    circuit.read_out(token, np.eye(len(scores)))
    return to_transformer(circuit, residual=False)
