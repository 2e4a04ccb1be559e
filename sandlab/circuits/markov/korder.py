"""Induction heads of any order with constant depth and one head per layer: a context packed into one vector.

The k tokens before a position become one vector with geometric weights, c_n = Σ_{i=1}^{k} B^{−(i−1)} e_{x_{n−i}}; two
contexts agree exactly when the cosine of their vectors is 1. Relative positions give the weights, layer norm the unit
length, and a large factor of the cosine picks the keys whose context agrees.
"""

from __future__ import annotations

import math

import numpy as np
import torch.nn.functional as F
from jaxtyping import Int
from torch import Tensor

from sandlab.circuits.builder import CircuitBuilder, Head
from sandlab.circuits.gadgets import Network
from sandlab.circuits.targets import Frame, to_transformer
from sandlab.errors import integer, number, require
from sandlab.models.transformer import Transformer
from sandlab.registry import register

__all__ = ["context_gap", "korder_three_layers", "korder_two_layers", "with_start_token"]

LARGE = 1e4  # how far the vector that is to be normalised outweighs the rest of the stream


def with_start_token(tokens: Int[Tensor, "example time"], states: int) -> Int[Tensor, "example time_and_one"]:
    """The sequence after a start token, which has the number `states`."""
    return F.pad(tokens, (1, 0), value=states)


def context_gap(order: int, base: float) -> float:
    """1 − the largest cosine of two different contexts: aa…a against aa…ab, tan θ = B^{−(k−1)} / Σ_{i<k−1} B^{−i}."""
    integer("order", order, low=1)
    require(number("base", base) > 1, "base", base, "above 1")
    rest = sum(base**-i for i in range(order - 1))
    return 1.0 if order == 1 else 1 - math.cos(math.atan(base ** -(order - 1) / rest))


@register("circuits")
def korder_three_layers(
    states: int, order: int, length: int, *, base: float = 3.0, sharpness: float | None = None
) -> Transformer:
    """The order-k counting estimator with three layers of one head: relative positions and layer norm do the rest.

    Layer 1   weights ∝ B^{−i}, i = 0 … k−1:        u_n = Σ_i B^{−i} e_{x_{n−i}}
    Layer 2   weights ∝ B^{−(i−1)}, i = 1 … k:      v_n = Σ_i B^{−(i−1)} e_{x_{n−i}}
    Layer 3   scores κ ⟨u_T, v_n⟩/(‖u_T‖ ‖v_n‖) (the length of u_T only adds to κ), value = the token of n

    Sequences begin with a start token (`with_start_token`), whose presence in a history tells the first positions from
    whole contexts: the limit κ → ∞ is the strict estimator. Default κ = (log T + 16)/gap (see `context_gap`).
    Layer norm acts on the whole stream; written with scales 1 : 10⁴ : 10⁸ for u, tokens and v, and with every
    coordinate mirrored so that the mean is zero, it normalises the tokens in layer 2 and v in layer 3, to 1e-8.

    Source: Rajaraman et al. 2024, "Transformers on Markov data: constant depth suffices".
    """
    circuit, block = _start(states, order, length)
    kappa = _sharpness(order, length, base, sharpness)
    token, unit = block["token"], _unit(circuit)
    recent = {i: -i * math.log(base) for i in range(order)}
    before = {i + 1: bias for i, bias in recent.items()}
    circuit.layer(0).heads = [Head.copying(token, block["copied"], lags=recent, add=True, factor=1 / unit)]
    circuit.layer(1).heads = [Head.copying(token, block["context"], lags=before, add=True, factor=LARGE**2 / unit)]
    return _match(circuit, 2, block, kappa * math.sqrt(2))


@register("circuits")
def korder_two_layers(
    states: int, order: int, length: int, *, base: float = 3.0, sharpness: float | None = None
) -> Transformer:
    """The order-k counting estimator with two layers of one head: the feed-forward block shifts the context by one.

    Layer 1   weights ∝ B^{−(i−1)}, i = 1 … k: v_n; then, coordinate by coordinate, a piecewise linear function drops
              the last base-B digit of v_n (2^k possible values, 2^k − 1 ReLUs), u_n = e_{x_n} + (v_n − last digit)/B
    Layer 2   as layer 3 of `korder_three_layers`

    Start token, limit and default sharpness as there.

    Source: Ekbote et al. 2025 (two layers suffice); the digit extraction is ours.
    """
    circuit, block = _start(states, order, length)
    kappa = _sharpness(order, length, base, sharpness)
    unit, layer = _unit(circuit), circuit.layer(0)
    before = {lag: -(lag - 1) * math.log(base) for lag in range(1, order + 1)}
    # Softmax weights sum to 1; times Σ B^{−i} the digits are whole.
    total = sum(base**-i for i in range(order))
    layer.heads = [Head.copying(block["token"], block["context"], lags=before, add=True, factor=total / unit)]
    scale = LARGE / unit  # layer norm divided the stream by this; tokens have length LARGE, contexts about 1
    shift = _drop_last_digit(order, base, scale)
    for token, copied, context in zip(block["token"], block["copied"], block["context"]):
        layer.feed(shift, [context], [copied], add=True)
        layer.feed(Network([[[1 / unit]], [[1.0]]]), [token], [copied], add=True)
        # The next layer norm is to normalise the context alone.
        layer.feed(Network([[[scale]], [[LARGE**2 - 1]]]), [context], [context], add=True)
    return _match(circuit, 1, block, kappa * 1.5)


def _start(states: int, order: int, length: int) -> tuple[CircuitBuilder, dict[str, list[int]]]:
    """Blocks of states + 1 channels; tokens have length LARGE."""
    integer("states", states, low=1)
    integer("order", order, low=1)
    integer("length", length, low=order)
    symbols = states + 1
    circuit = CircuitBuilder(symbols, length + 1)
    block = {"token": circuit.channels("token", symbols, letters=LARGE * np.eye(symbols))}
    return circuit, block | {name: circuit.channels(name, symbols) for name in ("copied", "context", "found")}


def _unit(circuit: CircuitBuilder) -> float:
    """The length with which a dominant vector of length 1, mirrored, leaves layer norm."""
    return math.sqrt(circuit.width)


def _match(circuit: CircuitBuilder, depth: int, block: dict[str, list[int]], sharpness: float) -> Transformer:
    """Query u_T against key v_n/‖v_n‖, value the token; the readout takes what was found."""
    unit, symbols = _unit(circuit), range(circuit.vocab)
    query, key = [(block["copied"], symbols, sharpness * LARGE**2 / unit)], [(block["context"], symbols, 1 / unit)]
    head = Head.copying(block["token"], block["found"], query=query, key=key, add=True, factor=LARGE / unit)
    circuit.layer(depth).heads = [head]
    states = circuit.vocab - 1
    circuit.read_out(block["found"][:states], LARGE**2 / unit * np.eye(states))
    return to_transformer(circuit, frame=Frame.mirrored(circuit.width), norm="pre", log_output=1e-300)


def _sharpness(order: int, length: int, base: float, given: float | None) -> float:
    return (math.log(length) + 16) / context_gap(order, base) if given is None else number("sharpness", given, low=0.0)


def _drop_last_digit(order: int, base: float, scale: float) -> Network:
    """v/scale ↦ (v without its last digit)/B, piecewise linear, for v = Σ b_i B^{−i} with b ∈ {0, 1}^k."""
    digits = base ** -np.arange(order, dtype=np.float64)
    bits = (np.arange(2**order)[:, None] >> np.arange(order)) & 1
    values, dropped = bits @ digits, bits[:, :-1] @ digits[:-1]
    rank = values.argsort()
    values, dropped = values[rank], dropped[rank]
    turns = np.diff(np.diff(dropped) / np.diff(values), prepend=0.0)
    return Network([np.full((len(turns), 1), scale), turns[None] / base], [-values[:-1]])
