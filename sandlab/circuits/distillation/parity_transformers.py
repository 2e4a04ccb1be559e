"""Exact one-layer transformers for sparse parity: attention finds the support, or the feed-forward network does."""

from __future__ import annotations

import itertools
import math

import numpy as np

from sandlab.circuits.builder import CircuitBuilder, Head
from sandlab.circuits.gadgets import Network, interpolate, tabulate
from sandlab.circuits.targets import to_theory
from sandlab.errors import integer, number
from sandlab.models.automata.theory import TheoryTransformer
from sandlab.registry import register
from sandlab.worlds.distillation.parities import SparseParity

__all__ = ["parity_by_selection", "parity_by_uniform_attention", "selection_threshold"]


def selection_threshold(d: int, k: int) -> float:
    """c ≥ log((d − k)(4k − 1)/k): at most 1/(4k) of the attention, what the table allows, is off the support."""
    integer("k", k, low=1, high=integer("d", d, low=1))
    return math.log((d - k) * (4 * k - 1) / k) if d > k else 0.0


@register("circuits")
def parity_by_selection(
    dimension: int = 12, support: int | tuple[int, ...] = 4, *, sharpness: float | None = None
) -> TheoryTransformer:
    """Sparse parity with attention on the support (Proposition 9, corrected), tokens z = (1 − x)/2.

    Every query gives score c · 1[i ∈ S] to key i, so that the last position reads u = (number of ones in S)/k; a table
    on {0, 1/k, …, 1} of 4(k + 1) ReLUs turns j/k into (−1)^j. Exact for c ≥ `selection_threshold`. The printed query
    weights look for the support only from positions inside it.
    """
    world = SparseParity(dimension, support, "tokens")
    k = len(world.coordinates)
    inside = np.isin(np.arange(dimension), world.coordinates).astype(float)
    c = selection_threshold(dimension, k) if sharpness is None else number("sharpness", sharpness)
    circuit = CircuitBuilder(2, dimension)
    one = circuit.channel("one", letters=[0.0, 1.0])
    circuit.channel("zero", letters=[1.0, 0.0])
    chosen, other = circuit.channel("in support", positions=inside), circuit.channel("off", positions=1 - inside)
    share, sign = circuit.channel("share of ones"), circuit.channel("sign")
    query, key = [([chosen, other], [0, 0], c)], [(chosen, 0, 1.0)]
    circuit.layer(0).heads.append(Head(query, key, [(one, 0, 1.0)], [(share, 0, 1.0)]))
    points = np.arange(k + 1) / k
    circuit.layer(0).feed(interpolate(points, (-1.0) ** np.arange(k + 1)), [share], [sign])
    return to_theory(circuit.read_out([sign], [[1.0], [-1.0]]), "attention selects the support")


@register("circuits")
def parity_by_uniform_attention(dimension: int = 12, support: int | tuple[int, ...] = 4) -> TheoryTransformer:
    """Sparse parity with uniform attention, which copies every coordinate to the end (Proposition 10).

    Position i holds x_i e_i (letters and positions are added in our embedding, so a first layer without attention
    multiplies them); the mean over d positions, times d, is x at the last one. A table of three layers on the k
    coordinates of S (Lemma 11: 8k ReLUs, then 2^k of bias −(k − 1)) gives their product.
    """
    world = SparseParity(dimension, support, "tokens")
    k, d = len(world.coordinates), dimension
    circuit = CircuitBuilder(2, d)
    spot = circuit.channels("position", d, positions=np.eye(d))
    sign = circuit.channel("x", letters=[1.0, -1.0])
    copied, answer = circuit.channels("copied", d), circuit.channel("sign")
    circuit.layer(0).feed(_gate(d), [sign, *spot], copied)
    circuit.layer(1).heads.append(Head.copying(copied, copied, factor=float(d)))
    points = np.array(list(itertools.product([-1, 1], repeat=k)))
    table = tabulate(points, points.prod(1))
    circuit.layer(1).feed(table, [copied[i] for i in world.coordinates], [answer])
    return to_theory(circuit.read_out([answer], [[1.0], [-1.0]]), "uniform attention copies all coordinates")


def _gate(size: int) -> Network:
    """(x, e) ↦ x · e_i for x = ±1 and e_i in {0, 1}: ReLU(x + e_i − 1) − ReLU(−x + e_i − 1)."""
    eye, ones = np.eye(size), np.ones((size, 1))
    first = np.concatenate([np.concatenate([ones, eye], 1), np.concatenate([-ones, eye], 1)])
    return Network([first, np.concatenate([eye, -eye], 1)], [np.full(2 * size, -1.0)])
