"""Small networks with exact weights: tables, thresholds, composition, selection.

From the appendices of Liu et al. 2023 (`interpolate` to `compose_functions`) and of Wen et al. 2023 (`look_up` to
`linear_as_relu`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import ArrayLike
from torch import Tensor

from sandlab.errors import BadInput, integer, number, require
from sandlab.models.automata.theory import activate
from sandlab.registry import register

__all__ = [
    "Network",
    "chain",
    "compose_functions",
    "hot_index",
    "indexing",
    "interpolate",
    "linear_as_relu",
    "look_up",
    "projection_basis",
    "select_network",
    "softmax_error_bound",
    "step_up",
    "tabulate",
]


class Network:
    """x ↦ W_L φ_{L−1}(… φ_1(W₁ x + b₁) …) + b_L on the last axis, in float64.

    Biases that are left out are 0, and every φ is ReLU unless `activations` names them.
    """

    def __init__(
        self, weights: Sequence[ArrayLike], biases: Sequence[ArrayLike] = (), activations: Sequence[str] | None = None
    ) -> None:
        self.weights = tuple(np.asarray(weight, dtype=np.float64) for weight in weights)
        missing = [np.zeros(len(weight)) for weight in self.weights[len(biases) :]]
        self.biases = (*(np.asarray(bias, dtype=np.float64) for bias in biases), *missing)
        self.activations = ("relu",) * (len(weights) - 1) if activations is None else tuple(activations)

    def __call__(self, x: Float[Tensor, "*lead inputs"]) -> Float[Tensor, "*lead outputs"]:
        for weight, bias, kind in zip(self.weights, self.biases, (*self.activations, "identity")):
            x = activate(kind, x @ torch.as_tensor(weight).mT + torch.as_tensor(bias))
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
        weights, biases = self.weights[-1][list(chosen)], self.biases[-1][list(chosen)]
        return Network((*self.weights[:-1], weights), (*self.biases[:-1], biases), self.activations)


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
def interpolate(points: ArrayLike, values: ArrayLike, *, gap: float | None = None) -> Network:
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
    return Network([weight, np.kron(values.T, [[1.0, -1.0, -1.0, 1.0]])], [bias])


@register("circuits")
def tabulate(points: Int[np.ndarray, "row input"], values: ArrayLike) -> Network:
    """A function on finitely many vectors of whole numbers, 0 at all others (Lemma 11, corrected).

    Layer 1 has the trapezoids of `interpolate` for every value of every coordinate; layer 2 one unit per listed x,
    (Σ_i ψ_{x_i} − (d − 1))₊, which is 1 at x and 0 at other whole vectors; layer 3 adds up f(x). Exact when every
    coordinate is off by at most 1/4. The bias is −(d − 1): with −d, as printed, no unit ever fires.
    """
    values = np.asarray(values, dtype=np.float64).reshape(len(points), -1)
    inputs = points.shape[1]
    firsts, biases, marks = [], [], []
    for coordinate in range(inputs):
        levels, index = np.unique(points[:, coordinate], return_inverse=True)
        bump = interpolate(levels, np.eye(len(levels)), gap=1.0)
        spread = np.zeros((4 * len(levels), inputs))
        spread[:, coordinate] = bump.weights[0][:, 0]
        firsts.append(spread)
        biases.append(bump.biases[0])
        marks.append(bump.weights[1][index])
    return Network(
        [np.concatenate(firsts), np.concatenate(marks, 1), values.T.copy()],
        [np.concatenate(biases), np.full(len(points), -(inputs - 1.0))],
    )


@register("circuits")
def step_up(gap: float = 1.0) -> Network:
    """0 for x ≤ −Δ/2, 1 for x ≥ Δ/2: numbers with |x| ≥ Δ keep their sign even when off by Δ/2 (Lemma 12, corrected).

    ψ(x) = ((x + Δ/2)/Δ)₊ − ((x − Δ/2)/Δ)₊, weights 1/Δ, biases 1/2. The printed ((x + Δ)/2Δ)₊ − ((x − Δ)/2Δ)₊ is
    0.875 at x = 3Δ/4.
    """
    require(gap > 0, "gap", gap, "above 0")
    return Network([np.full((2, 1), 1 / gap), [[1.0, -1.0]]], [[0.5, -0.5]])


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
    return Network([first, second, np.kron(np.eye(size), np.ones((1, size)))], [bias, np.full(size**2, -float(size))])


def softmax_error_bound(count: int, margin: float) -> float:
    """‖softmax(z) − e_best‖₁ ≤ 2T e^{−γ} when the largest of T scores leads all others by γ (Lemma 13)."""
    return 2 * count * math.exp(-margin)


@register("circuits")
def look_up(points: ArrayLike, values: ArrayLike, *, rng: torch.Generator | None = None, tries: int = 2000) -> Network:
    """A table as one hidden layer of width 2n: f(x_i) = y_i for n distinct points.

    Along a unit direction w on which neighbours are at least 2γ apart, in increasing order,
    f(x) = Σ z_i [ReLU(⟨w, x−x_i⟩ + γ) − ReLU(⟨w, x−x_i⟩ − γ)] with z_i = y_i/γ − 2 Σ_{j<i} z_j.
    The best of `tries` random directions is taken.
    """
    points, values = np.asarray(points, dtype=np.float64), np.asarray(values, dtype=np.float64)
    require(len(points) == len(values), "values", len(values), f"one for each of the {len(points)} points")
    generator = rng or torch.Generator().manual_seed(0)
    directions = torch.randn(tries, points.shape[1], generator=generator, dtype=torch.float64).numpy()
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    gaps = np.diff(np.sort(points @ directions.T, 0), axis=0).min(0) if len(points) > 1 else np.ones(tries)
    best = int(gaps.argmax())
    if gaps[best] <= 1e-12:
        raise BadInput("look_up needs distinct points: two of them coincide")
    along, reach = points @ directions[best], gaps[best] / 2
    order = along.argsort()
    slopes: list[Float[np.ndarray, "output"]] = []
    for value in values[order]:
        slopes.append(value / reach - 2 * np.sum(slopes, 0))
    last = np.array(slopes).T
    first = np.tile(directions[best], (2 * len(points), 1))
    return Network(
        [first, np.concatenate([last, -last], 1)], [np.concatenate([reach - along[order], -reach - along[order]])]
    )


def projection_basis(
    vectors: Float[Tensor, "n dim"], *, rng: torch.Generator
) -> tuple[Float[Tensor, "dim"], Float[Tensor, "rest dim"]]:
    """A direction v with ⟨v, x_i⟩ ≠ 0 for all i, and an orthonormal basis of the space orthogonal to v and to 1."""
    dim = vectors.shape[1]
    while True:
        direction = torch.randn(dim, generator=rng, dtype=torch.float64)
        if float((vectors.double() @ direction).abs().min()) > 1e-9:
            break
    spanned = torch.stack([direction, torch.ones(dim, dtype=torch.float64)])
    _, _, right = torch.linalg.svd(spanned, full_matrices=True)
    return direction, right[2:]


@register("circuits")
def indexing(size: int, largest: float) -> Network:
    """(x₁…x_n, y) ↦ x_y for x in [0, M]ⁿ and y in {1…n}, width 2n + 1.

    Σ_i ReLU(x_i + M(y−i)) − Σ_i ReLU(x_i + M(y−i−1)) − M(y−1); the linear last term goes through ReLU(y) since y > 0.
    """
    integer("size", size, low=1)
    number("largest", largest, low=0.0)
    index, ones = np.arange(1, size + 1), np.ones(size)
    shifted = np.column_stack([np.eye(size), np.full(size, largest)])
    first = np.concatenate([shifted, shifted, np.eye(size + 1)[-1:]])
    offsets = np.concatenate([-largest * index, -largest * (index + 1), [0.0]])
    return Network([first, np.concatenate([ones, -ones, [-largest]])[None]], [offsets, [largest]])


@register("circuits")
def hot_index(size: int, threshold: float) -> Network:
    """x with one entry above M and all others 0 ↦ the entry's index i (from 1): Σ i (ReLU(x_i) − ReLU(x_i − M))/M."""
    integer("size", size, low=1)
    require(threshold > 0, "threshold", threshold, "above 0")
    index = np.arange(1, size + 1) / threshold
    offsets = np.repeat([0.0, -threshold], size)
    return Network([np.tile(np.eye(size), (2, 1)), np.concatenate([index, -index])[None]], [offsets])


@register("circuits")
def select_network(networks: Sequence[Network], largest: float, *, spacing: float = 2.0) -> Network:
    """(y, x) ↦ f_y(x) for K one-hidden-layer scalar networks whose hidden inputs z stay within [−M, M].

    Σ_k Σ_i a_{k,i} [ReLU(z_{k,i} + 2M(y−k)) − ReLU(z_{k,i} + 2M(y−k) − M)] − Σ_k (Σ_i c_{k,i}) ReLU(y+1−k), where
    Σ_{k≤k'} c_{k,i} (k'+1−k) = M Σ_{k<k'} a_{k,i}. Each network's output bias enters as a neuron with z = 1. The
    spacing 2M is needed: with M, as printed, a negative z of network y−1 leaks.
    """
    count = len(networks)
    fits = count >= 1 and all(len(net.weights) == 2 for net in networks)
    require(fits, "networks", count, "of one hidden layer each")
    require(largest >= 1, "largest", largest, "at least 1, the input of the bias neurons")
    inputs = networks[0].inputs
    rows, offsets, outputs, sums = [], [], [], []
    for k, net in enumerate(networks, start=1):
        weight = np.concatenate([net.weights[0], np.zeros((1, inputs))])
        bias, slope = np.append(net.biases[0], 1.0), np.append(net.weights[1][0], net.biases[1])
        for extra, sign in ((0.0, 1.0), (largest, -1.0)):
            rows.append(np.column_stack([np.full(len(weight), spacing * largest), weight]))
            offsets.append(bias - spacing * largest * k - extra)
            outputs.append(sign * slope)
        sums.append(float(slope.sum()))
    rows.append(np.tile(np.eye(inputs + 1)[0], (count, 1)))
    offsets.append(-np.arange(count, dtype=np.float64))
    outputs.append(-np.array(_hinges([largest * total for total in sums])))
    return Network([np.concatenate(rows), np.concatenate(outputs)[None]], [np.concatenate(offsets)])


def linear_as_relu(weight: ArrayLike) -> Network:
    """W x = [I, −I] ReLU([W; −W] x)."""
    weight = np.asarray(weight, dtype=np.float64)
    eye = np.eye(len(weight))
    return Network([np.concatenate([weight, -weight]), np.concatenate([eye, -eye], 1)])


def _hinges(totals: list[float]) -> list[float]:
    """c with Σ_{k≤k'} c_k (k'+1−k) = Σ_{k<k'} totals_k for every k'."""
    steps: list[float] = []
    for last in range(1, len(totals) + 1):
        total = sum(totals[: last - 1])
        steps.append(total - sum(step * (last + 1 - k) for k, step in enumerate(steps, start=1)))
    return steps


def _smallest_gap(points: Float[np.ndarray, "point"]) -> float:
    if len(points) < 2:
        return 1.0
    gap = float(np.diff(np.sort(points)).min())
    if gap <= 0:
        raise BadInput("a table needs distinct points: two of them coincide")
    return gap
