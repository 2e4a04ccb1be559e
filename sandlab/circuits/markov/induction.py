"""The induction head in two layers of one head each, with a width that does not grow with the length."""

from __future__ import annotations

import math

import numpy as np

from sandlab.circuits.builder import CircuitBuilder, Head
from sandlab.circuits.targets import to_transformer
from sandlab.errors import integer, number
from sandlab.models.transformer import Transformer
from sandlab.registry import register

__all__ = ["induction_head"]


@register("circuits")
def induction_head(
    states: int, length: int, *, temperature: float = 40.0, smoothing: float = 1e-300, read: str = "all"
) -> Transformer:
    """What followed earlier occurrences of the present token: layer 1 looks one back, layer 2 finds it again.

    Positions are points (cos θi, sin θi) of a quarter circle, θ = π/(2T): a key turned forward by θ meets the query of
    the next position, β₁ cos(θ(i − 1 − j)) with β₁ = c/(1 − cos θ) = O(cT²). Layer 1 writes e_{x_{i−1}} into a second
    block; in layer 2 the query reads block 0 and the key block 1, score c · 1[x_{j−1} = x_i], value = the token of j.
    Width 3S + 2, one head per layer, weights of O(log T) bits. The output is the logarithm of the averaged followers
    (c → ∞: the clamped order-1 estimator; position 0 attends to itself), with ε = `smoothing` inside the logarithm.

    Source: Bietti et al. 2023; Sanford, Hsu and Telgarsky 2024; the k = 1 case of Varre, Yüce and Flammarion 2025.
    """
    integer("states", states, low=1)
    integer("length", length, low=1)
    number("temperature", temperature, low=0.0)
    circuit = CircuitBuilder(states, length)
    token = circuit.channels("token", states, letters=np.eye(states))
    copied, followers = circuit.channels("previous token", states), circuit.channels("follower", states)
    step = math.pi / (2 * length)
    circuit.circle_channels(step)
    circuit.layer(0).heads = [circuit.look_back(1, temperature / (1 - math.cos(step)), token, copied, add=True)]
    query, key = [(token, range(states), temperature)], [(copied, range(states), 1.0)]
    circuit.layer(1).heads = [Head.copying(token, followers, query=query, key=key, add=True)]
    circuit.read_out(followers, np.eye(states))
    return to_transformer(circuit, log_output=smoothing, read=read)
