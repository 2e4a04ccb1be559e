"""Exact weights of one-layer transformers on a binary chain: the marginal, the true kernel, the rank-one family."""

from __future__ import annotations

import math

import numpy as np
import torch

from sandlab.circuits.builder import CircuitBuilder, Head
from sandlab.circuits.gadgets import Network
from sandlab.circuits.targets import Frame, to_transformer
from sandlab.errors import integer, number, require
from sandlab.models.markov.one_layer import OneLayerMarkov
from sandlab.models.transformer import Transformer
from sandlab.registry import register

__all__ = ["kernel_predictor", "marginal_predictor", "three_parameter_transformer"]


@register("circuits")
def marginal_predictor(
    p: float,
    q: float,
    *,
    length: int = 64,
    width: int = 8,
    tied: bool = True,
    attention: str = "softmax",
    mlp: str = "relu",
    positions: bool = True,
    init_std: float = 0.02,
) -> OneLayerMarkov:
    """θ_π: a stationary point of the loss at which the transformer predicts the chain's marginal whatever it sees.

    Readout a = 0 and embedding e = 0 (one and the same when tied), bias b = log(π₁/π₀) = log(p/q); every other weight
    may be anything (it is drawn, with `init_std`). The loss there is H(π) and its gradient vanishes. For p + q > 1 and
    small value and feed-forward maps it is a local minimum of the tied and a saddle of the untied transformer.

    Source: Makkuva et al. 2024, "Attention with Markov", Theorems 2 and 3.
    """
    _check(p, q)
    model = OneLayerMarkov(
        length=length, width=width, tied=tied, attention=attention, mlp=mlp, positions=positions, init_std=init_std
    ).double()
    with torch.no_grad():
        model.token.zero_()
        if not tied:
            model.readout.zero_()
        model.bias.fill_(math.log(p / q))
    return model


@register("circuits")
def kernel_predictor(p: float, q: float, *, length: int = 64, width: int = 8) -> Transformer:
    """θ*: a tied one-layer transformer that predicts the true kernel of the binary chain, a global minimum.

    The log-odds must be g·x + b with g = log[(1 − p)(1 − q)/(pq)] and b = log(p/(1 − p)). In the rank-one family
    g = e²(1 + 2w|w|): w = 0, e = √g when g ≥ 0 (p + q ≤ 1), and w = −1, e = √(−g) when the chain switches (p + q > 1).

    Source: Makkuva et al. 2024, "Attention with Markov", Theorem 1.
    """
    _check(p, q)
    gain = math.log((1 - p) * (1 - q) / (p * q))
    e, w = math.sqrt(abs(gain)), 0.0 if gain >= 0 else -1.0
    # The family's log-odds after a 0 are −e²/2 + b.
    bias = math.log(p / (1 - p)) + e**2 / 2
    return three_parameter_transformer(e, w, 0.0, bias, length=length, width=width)


@register("circuits")
def three_parameter_transformer(
    embedding: float, feedforward: float, attention: float = 0.0, bias: float = 0.0, *, length: int = 64, width: int = 8
) -> Transformer:
    """The three-parameter model (e, w, a; b) written out as the weights of a tied one-layer transformer.

    α = (±1, …)/√d; token vectors ±½e·α; zero queries and keys, W_V = a·ααᵀ; W₁ = (|w|/√d)·1αᵀ and W₂ = (w/√d)·α1ᵀ
    with 4d hidden ReLU units; the readout is the token table, its bias (0, b). The difference of the two logits is
    e·αᵀz + b = e·(y + 4w|w|·ReLU(y)) + b with y = e[(x − ½) + a(mean x − ½)].

    Source: derived from the reduction of Makkuva et al. 2024, "Local to Global".
    """
    integer("width", width, low=1)
    for name, value in (("embedding", embedding), ("feedforward", feedforward), ("attention", attention)):
        number(name, value)
    circuit = CircuitBuilder(2, length)
    y = circuit.channel("y", letters=[-embedding / 2, embedding / 2])
    layer, hidden = circuit.layer(0), 4 * width
    layer.heads = [Head.copying([y], [y], add=True, factor=attention)]
    up, down = abs(feedforward) / math.sqrt(width), feedforward / math.sqrt(width)
    layer.feed(Network([np.full((hidden, 1), up), np.full((1, hidden), down)]), [y], [y], add=True)
    circuit.readout_bias = np.array([0.0, bias])
    direction = (-1.0) ** np.arange(width)[None] / math.sqrt(width)
    return to_transformer(circuit, frame=Frame(direction, direction), tied=True)


def _check(p: float, q: float) -> None:
    for name, value in (("p", p), ("q", q)):
        number(name, value)
        require(0 < value < 1, name, value, "strictly between 0 and 1")
