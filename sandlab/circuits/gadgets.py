"""Small networks with exact weights: tables, thresholds, composition of functions (Liu et al. 2023, appendix)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from sandlab.errors import BadInput, require
from sandlab.models.automata.theory import activate
from sandlab.registry import register

__all__ = [
    "Network",
    "chain",
    "compose_functions",
    "interpolate",
    "softmax_error_bound",
    "step_up",
    "tabulate",
]

Array = Float[np.ndarray, "..."]


@dataclass(frozen=True, eq=False)
class Network:
    """x ↦ W_L φ_{L−1}(… φ_1(W₁ x + b₁) …) + b_L on the last axis, in float64."""

    weights: tuple[Array, ...]
    biases: tuple[Array, ...]
    activations: tuple[str, ...]

    def __call__(self, x: Tensor) -> Tensor:
        for place, (weight, bias) in enumerate(zip(self.weights, self.biases)):
            x = x @ torch.as_tensor(weight).mT + torch.as_tensor(bias)
            if place < len(self.activations):
                x = activate(self.activations[place], x)
        return x

    @property
    def widths(self) -> tuple[int, ...]:
        """Hidden widths."""
        return tuple(len(weight) for weight in self.weights[:-1])

    @property
    def inputs(self) -> int:
        return self.weights[0].shape[1]

    @property
    def outputs(self) -> int:
        return self.weights[-1].shape[0]

    def norms(self) -> list[tuple[float, float]]:
        """Largest weight and largest bias of each layer."""
        return [(float(abs(w).max(initial=0)), float(abs(b).max(initial=0))) for w, b in zip(self.weights, self.biases)]

    def rows(self, chosen: Sequence[int]) -> Network:
        """The same network with only some of its outputs."""
        last = (*self.weights[:-1], self.weights[-1][list(chosen)])
        return Network(last, (*self.biases[:-1], self.biases[-1][list(chosen)]), self.activations)


def relu_network(weights: Sequence[Array], biases: Sequence[Array]) -> Network:
    return Network(tuple(weights), tuple(biases), ("relu",) * (len(weights) - 1))


def chain(first: Network, second: Network) -> Network:
    """x ↦ second(first(x)): the two linear maps that meet become one."""
    require(first.outputs == second.inputs, "second", second.inputs, f"a network of {first.outputs} inputs")
    joint = second.weights[0] @ first.weights[-1]
    bias = second.weights[0] @ first.biases[-1] + second.biases[0]
    return Network(
        (*first.weights[:-1], joint, *second.weights[1:]),
        (*first.biases[:-1], bias, *second.biases[1:]),
        first.activations + second.activations,
    )


@register("circuits")
def interpolate(points: Sequence[float] | Array, values: Array, *, gap: float | None = None) -> Network:
    """A function on finitely many numbers, exact even when its argument is off by a quarter of the smallest gap Δ.

    Each point x₀ has a trapezoid that is 1 within Δ/4 and 0 beyond Δ/2: with Δ′ = Δ/4,
    ψ(x) = ((x−x₀+2Δ′)/Δ′)₊ − ((x−x₀+Δ′)/Δ′)₊ − ((x−x₀−Δ′)/Δ′)₊ + ((x−x₀−2Δ′)/Δ′)₊, and f = Σ f(x₀) ψ_{x₀}.
    Width 4|X|, weights at most 4/Δ, biases at most 4·max|x|/Δ + 2 (Lemma 10). A smaller `gap` makes it 0 at numbers
    between the points.
    """
    points = np.asarray(points, dtype=np.float64).reshape(-1)
    values = np.asarray(values, dtype=np.float64).reshape(len(points), -1)
    quarter = (_smallest_gap(points) if gap is None else gap) / 4
    weight = np.full((4 * len(points), 1), 1 / quarter)
    bias = (np.array([2.0, 1.0, -1.0, -2.0]) - points[:, None] / quarter).reshape(-1)
    signs = np.array([1.0, -1.0, -1.0, 1.0])
    return relu_network([weight, np.kron(values.T, signs[None])], [bias, np.zeros(values.shape[1])])


@register("circuits")
def tabulate(points: Int[np.ndarray, "row input"], values: Float[np.ndarray, "row output"]) -> Network:
    """A function on finitely many vectors of whole numbers, 0 at all others (Lemma 11, corrected).

    Layer 1 has the trapezoids of `interpolate` for every value of every coordinate; layer 2 one unit per listed x,
    (Σ_i ψ_{x_i} − (d − 1))₊, which is 1 at x and 0 at other whole vectors; layer 3 adds up f(x). Exact when every
    coordinate is off by at most 1/4. The bias is −(d − 1): with −d, as printed, no unit ever fires.
    """
    points = np.asarray(points, dtype=np.float64)
    values = np.asarray(values, dtype=np.float64).reshape(len(points), -1)
    inputs = points.shape[1]
    firsts, biases, marks = [], [], []
    for coordinate in range(inputs):
        levels, place = np.unique(points[:, coordinate], return_inverse=True)
        bump = interpolate(levels, np.eye(len(levels)), gap=1.0)
        spread = np.zeros((4 * len(levels), inputs))
        spread[:, coordinate] = bump.weights[0][:, 0]
        firsts.append(spread)
        biases.append(bump.biases[0])
        marks.append(bump.weights[1][place])
    second = np.concatenate(marks, 1)
    return relu_network(
        [np.concatenate(firsts), second, values.T.copy()],
        [np.concatenate(biases), np.full(len(points), -(inputs - 1.0)), np.zeros(values.shape[1])],
    )


@register("circuits")
def step_up(gap: float = 1.0) -> Network:
    """0 for x ≤ −Δ/2, 1 for x ≥ Δ/2: numbers with |x| ≥ Δ keep their sign even when off by Δ/2 (Lemma 12, corrected).

    ψ(x) = ((x + Δ/2)/Δ)₊ − ((x − Δ/2)/Δ)₊, weights 1/Δ, biases 1/2. The printed ((x + Δ)/2Δ)₊ − ((x − Δ)/2Δ)₊ is
    0.875 at x = 3Δ/4.
    """
    require(gap > 0, "gap", gap, "above 0")
    return relu_network([np.full((2, 1), 1 / gap), np.array([[1.0, -1.0]])], [np.array([0.5, -0.5]), np.zeros(1)])


@register("circuits")
def compose_functions(size: int) -> Network:
    """Two functions on {1…n} as tables, g (n numbers) then f (n numbers) ↦ f∘g (n numbers) (Lemma 14, corrected).

    Hidden 1: the trapezoids 1[g(q) = q′], four units each, and f(q) passed on; hidden 2: one unit per (q, q′),
    (n·1[g(q) = q′] + f(q′) − n)₊; output q: the sum over q′. Widths 4n² + n and n²; largest bias 4n + 2.
    """
    require(size >= 1, "size", size, "at least 1")
    indicator = interpolate(np.arange(1, size + 1), np.eye(size))
    first = np.zeros((4 * size**2 + size, 2 * size))
    bias = np.zeros(len(first))
    second = np.zeros((size**2, len(first)))
    for q in range(size):
        rows = slice(4 * size * q, 4 * size * (q + 1))
        first[rows, q] = indicator.weights[0][:, 0]
        bias[rows] = indicator.biases[0]
        second[size * q : size * (q + 1), rows] = size * indicator.weights[1]
        second[size * q : size * (q + 1), 4 * size**2 :] = np.eye(size)
    first[4 * size**2 :, size:] = np.eye(size)
    return relu_network(
        [first, second, np.kron(np.eye(size), np.ones((1, size)))],
        [bias, np.full(size**2, -float(size)), np.zeros(size)],
    )


def softmax_error_bound(count: int, margin: float) -> float:
    """‖softmax(z) − e_best‖₁ ≤ 2T e^{−γ} when the largest of T scores leads all others by γ (Lemma 13)."""
    return 2 * count * math.exp(-margin)


def _smallest_gap(points: Float[np.ndarray, "point"]) -> float:
    if len(points) < 2:
        return 1.0
    gap = float(np.diff(np.sort(points)).min())
    if gap <= 0:
        raise BadInput("a table needs distinct points: two of them coincide")
    return gap
