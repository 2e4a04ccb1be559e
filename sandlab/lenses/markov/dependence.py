"""How much one position of a random sequence tells about another: χ² information."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from sandlab.errors import integer, require
from sandlab.registry import register
from sandlab.worlds.markov.lifted import stationary_distribution

__all__ = ["chain_chi_square", "chi_square", "points_at_parent", "tree_chi_square"]


@register("lenses")
def chi_square(joint: Float[Tensor, "*lead a b"]) -> Float[Tensor, "*lead"]:
    """I_χ²(A; B) = Σ_{a,b} P(a, b)²/(P(a)P(b)) − 1, from joint probabilities.

    Zero exactly when A and B are independent, at most min(|A|, |B|) − 1; like mutual information it never
    increases when B is replaced by a function of B (data processing). Values of probability zero contribute nothing.

    Source: Nichani, Damian & Lee 2024, "How transformers learn causal structure with gradient descent", Definition 3.
    """
    joint = joint.double()
    product = joint.sum(-1, keepdim=True) * joint.sum(-2, keepdim=True)
    return torch.where(product > 0, joint.square() / product.clamp(min=1e-300), 0.0).sum((-1, -2)) - 1


def chain_chi_square(kernel: Float[Tensor, "*lead states states"], lag: int) -> Float[Tensor, "*lead"]:
    """I_χ² between two tokens of a stationary chain, `lag` apart: ‖D^{1/2} Pˡᵃᵍ D^{−1/2}‖²_F − 1, D = diag(π).

    Two states: λ^{2·lag} with λ = 1 − p − q. Never increases with the lag.
    """
    integer("lag", lag, low=1)
    kernel = kernel.double()
    marginal = stationary_distribution(kernel)
    return chi_square(marginal.unsqueeze(-1) * torch.linalg.matrix_power(kernel, lag))


def tree_chi_square(kernels: Float[Tensor, "*lead states states"], parents: Sequence[int]) -> Tensor:
    """I_χ²(s_i; s_j) for every pair of positions of a causal tree whose roots are stationary (*lead, time, time).

    Tokens follow x_i ~ P(·|x_{parent(i)}), −1 marks a root. Two positions a and b steps below their last common
    ancestor have the joint distribution Σ_r π(r) Pᵃ(r, ·) Pᵇ(r, ·); positions of different trees are independent.
    """
    kernels = kernels.double()
    marginal = stationary_distribution(kernels)
    depths = _steps_to_common_ancestor(parents)
    powers = [torch.eye(kernels.shape[-1], dtype=torch.float64, device=kernels.device).expand_as(kernels)]
    for _ in range(max(max(pair) for pair in depths.values())):
        powers.append(powers[-1] @ kernels)
    found = kernels.new_zeros(*kernels.shape[:-2], len(parents), len(parents))
    for (i, j), (up, down) in depths.items():
        found[..., i, j] = chi_square(powers[up].mT @ (marginal.unsqueeze(-1) * powers[down]))
    return found


def points_at_parent(table: Float[Tensor, "time time"], parents: Sequence[int]) -> list[bool]:
    """For every position with a parent and a choice: whether the largest entry of its row, earlier, is the parent's."""
    return [
        int(table[child, :child].argmax()) == parent
        for child, parent in enumerate(parents[:-1])
        if parent >= 0 and child >= 2
    ]


def _steps_to_common_ancestor(parents: Sequence[int]) -> dict[tuple[int, int], tuple[int, int]]:
    """(i, j) → steps up from i and from j to their last common ancestor; pairs without one are left out."""
    paths: list[list[int]] = []
    for position, parent in enumerate(parents):
        require(-1 <= parent < position, f"parents[{position}]", parent, f"between −1 (a root) and {position - 1}")
        paths.append([position, *(paths[parent] if parent >= 0 else [])])
    pairs = {}
    for i, j in itertools.product(range(len(parents)), repeat=2):
        for up, ancestor in enumerate(paths[i]):
            if ancestor in paths[j]:
                pairs[i, j] = (up, paths[j].index(ancestor))
                break
    return pairs
