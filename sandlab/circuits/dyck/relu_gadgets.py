"""Small ReLU networks that compute a table, an index or a choice exactly (Wen et al. 2023, appendix on gadgets)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from sandlab.errors import BadInput, integer, number, require
from sandlab.registry import register

__all__ = [
    "ReluNetwork",
    "hot_index",
    "indexing",
    "linear_as_relu",
    "look_up",
    "projection_basis",
    "select_network",
]


@dataclass(frozen=True)
class ReluNetwork:
    """x ↦ W_L ReLU(… ReLU(W₁ x + b₁) …) + b_L, on the last axis."""

    weights: tuple[Float[Tensor, "outputs inputs"], ...]
    biases: tuple[Float[Tensor, "outputs"], ...]

    def __call__(self, x: Float[Tensor, "*lead inputs"]) -> Float[Tensor, "*lead outputs"]:
        for place, (weight, bias) in enumerate(zip(self.weights, self.biases)):
            x = x @ weight.mT + bias
            if place + 1 < len(self.weights):
                x = x.relu()
        return x

    @property
    def widths(self) -> list[int]:
        """Hidden widths."""
        return [weight.shape[0] for weight in self.weights[:-1]]


@register("circuits")
def look_up(
    points: Float[Tensor, "n inputs"],
    values: Float[Tensor, "n outputs"],
    *,
    rng: torch.Generator | None = None,
    tries: int = 2000,
) -> ReluNetwork:
    """A table as one hidden layer of width 2n: f(x_i) = y_i for n distinct points.

    Along a unit direction w on which neighbours are at least 2γ apart, in rising order,
    f(x) = Σ z_i [ReLU(⟨w, x−x_i⟩ + γ) − ReLU(⟨w, x−x_i⟩ − γ)] with z_i = y_i/γ − 2 Σ_{j<i} z_j.
    The best of `tries` random directions is taken.
    """
    points, values = points.double(), values.double()
    require(len(points) == len(values), "values", len(values), f"one for each of the {len(points)} points")
    generator = rng or torch.Generator().manual_seed(0)
    directions = torch.randn(tries, points.shape[1], generator=generator, dtype=torch.float64)
    directions = directions / directions.norm(dim=1, keepdim=True)
    placed = (points @ directions.mT).sort(0).values
    gaps = placed.diff(dim=0).amin(0) if len(points) > 1 else torch.ones(tries)
    best = int(gaps.argmax())
    if float(gaps[best]) <= 1e-12:
        raise BadInput("look_up needs distinct points: two of them coincide")
    direction, reach = directions[best], float(gaps[best]) / 2
    order = (points @ direction).argsort()
    heights, so_far = [], torch.zeros(values.shape[1], dtype=torch.float64)
    for row in order.tolist():
        height = values[row] / reach - 2 * so_far
        heights.append(height)
        so_far = so_far + height
    slopes = torch.stack(heights)
    offset = -(points[order] @ direction)
    first = direction.expand(2 * len(points), -1)
    return ReluNetwork(
        (first, torch.cat([slopes, -slopes]).mT.contiguous()),
        (torch.cat([offset + reach, offset - reach]), torch.zeros(values.shape[1], dtype=torch.float64)),
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
def indexing(size: int, largest: float) -> ReluNetwork:
    """(x₁…x_n, y) ↦ x_y for x in [0, M]ⁿ and y in {1…n}, width 2n.

    Σ_i ReLU(x_i + M(y−i)) − Σ_i ReLU(x_i + M(y−i−1)) − M(y−1); the linear last term goes through ReLU(y) since y > 0.
    """
    integer("size", size, low=1)
    number("largest", largest, low=0.0)
    place = torch.arange(1, size + 1, dtype=torch.float64)
    eye = torch.eye(size, dtype=torch.float64)
    shift = torch.full((size, 1), largest, dtype=torch.float64)
    first = torch.cat([torch.cat([eye, shift], 1), torch.cat([eye, shift], 1), torch.eye(size + 1).double()[-1:]])
    offsets = torch.cat([-largest * place, -largest * (place + 1), torch.zeros(1, dtype=torch.float64)])
    ones = torch.ones(size, dtype=torch.float64)
    last = torch.cat([ones, -ones, torch.tensor([-largest], dtype=torch.float64)]).unsqueeze(0)
    return ReluNetwork((first, last), (offsets, torch.tensor([largest], dtype=torch.float64)))


@register("circuits")
def hot_index(size: int, threshold: float) -> ReluNetwork:
    """x with one entry above M and all others 0 ↦ the entry's place i (from 1): Σ i (ReLU(x_i) − ReLU(x_i − M))/M."""
    integer("size", size, low=1)
    require(threshold > 0, "threshold", threshold, "above 0")
    eye = torch.eye(size, dtype=torch.float64)
    place = torch.arange(1, size + 1, dtype=torch.float64) / threshold
    offsets = torch.cat([torch.zeros(size), torch.full((size,), -threshold)]).double()
    return ReluNetwork(
        (torch.cat([eye, eye]), torch.cat([place, -place]).unsqueeze(0)), (offsets, torch.zeros(1).double())
    )


@register("circuits")
def select_network(networks: Sequence[ReluNetwork], largest: float, *, spacing: float = 2.0) -> ReluNetwork:
    """(y, x) ↦ f_y(x) for K one-hidden-layer scalar networks whose hidden inputs z stay within [−M, M].

    Σ_k Σ_i a_{k,i} [ReLU(z_{k,i} + 2M(y−k)) − ReLU(z_{k,i} + 2M(y−k) − M)] − Σ_k (Σ_i c_{k,i}) ReLU(y+1−k), where
    Σ_{k≤k'} c_{k,i} (k'+1−k) = M Σ_{k<k'} a_{k,i}. Each network's output bias enters as a neuron with z = 1. The
    spacing 2M is needed: with M, as printed, a negative z of network y−1 leaks.
    """
    count = len(networks)
    require(
        count >= 1 and all(len(net.weights) == 2 for net in networks), "networks", count, "of one hidden layer each"
    )
    require(largest >= 1, "largest", largest, "at least 1, the input of the bias neurons")
    inputs = networks[0].weights[0].shape[1]
    rows, offsets, outputs, sums = [], [], [], []
    for number_, net in enumerate(networks, start=1):
        weight = torch.cat([net.weights[0].double(), torch.zeros(1, inputs, dtype=torch.float64)])
        bias = torch.cat([net.biases[0].double(), torch.ones(1, dtype=torch.float64)])
        slope = torch.cat([net.weights[1][0].double(), net.biases[1].double()])
        choose = torch.full((len(weight), 1), spacing * largest, dtype=torch.float64)
        for extra, sign in ((0.0, 1.0), (largest, -1.0)):
            rows.append(torch.cat([choose, weight], 1))
            offsets.append(bias - spacing * largest * number_ - extra)
            outputs.append(sign * slope)
        sums.append(float(slope.sum()))
    steps = _hinges([largest * total for total in sums])
    for number_, step in enumerate(steps, start=1):
        rows.append(torch.eye(inputs + 1, dtype=torch.float64)[:1])
        offsets.append(torch.tensor([1.0 - number_], dtype=torch.float64))
        outputs.append(torch.tensor([-step], dtype=torch.float64))
    return ReluNetwork(
        (torch.cat(rows), torch.cat(outputs).unsqueeze(0)), (torch.cat(offsets), torch.zeros(1, dtype=torch.float64))
    )


def linear_as_relu(weight: Float[Tensor, "outputs inputs"]) -> ReluNetwork:
    """W x = [I, −I] ReLU([W; −W] x)."""
    weight = weight.double()
    eye = torch.eye(weight.shape[0], dtype=torch.float64)
    zeros = torch.zeros(weight.shape[0], dtype=torch.float64)
    return ReluNetwork(
        (torch.cat([weight, -weight]), torch.cat([eye, -eye], 1)), (torch.cat([zeros, zeros]), zeros.clone())
    )


def _hinges(totals: list[float]) -> list[float]:
    """c with Σ_{k≤k'} c_k (k'+1−k) = Σ_{k<k'} totals_k for every k'."""
    steps: list[float] = []
    for last in range(1, len(totals) + 1):
        wanted = sum(totals[: last - 1])
        steps.append(wanted - sum(step * (last + 1 - place) for place, step in enumerate(steps, start=1)))
    return steps
