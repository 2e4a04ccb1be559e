"""Subset sum as constrained generation: hard in general, solved by tables and, for special weights, greedily."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from sandlab.errors import integer, require
from sandlab.registry import register
from sandlab.worlds.verifier.constrained import BitTask

__all__ = ["Knapsack", "knapsack_density", "knapsack_table", "solve_knapsack", "solve_superincreasing"]


@register("worlds")
@dataclass(frozen=True)
class Knapsack(BitTask):
    """Uniform bits s_1..s_D; the target set is Σ s_i X_i = c.

    Generating one with any oracle of full support solves subset sum, hence is NP-hard; a table over remainders makes
    an exact process verifier in pseudo-polynomial time O(D·c). Botta, Li et al. 2025, theorem on NP-hardness.

    weights   X_1..X_D, positive integers; length is their number
    capacity  c
    """

    weights: tuple[int, ...] = (3, 5, 8, 13, 21, 34)
    capacity: int = 26
    length: int = 0

    def __post_init__(self) -> None:
        require(len(self.weights) >= 1, "weights", self.weights, "at least one number")
        for weight in self.weights:
            integer("weights", weight, low=1)
        integer("capacity", self.capacity, low=0)
        object.__setattr__(self, "weights", tuple(self.weights))
        require(self.length in (0, len(self.weights)), "length", self.length, "the number of weights", "leave it out")
        object.__setattr__(self, "length", len(self.weights))

    @cached_property
    def reach(self) -> Bool[np.ndarray, "decided remainder"]:
        """Whether the weights not yet decided can sum to a remainder, by the number of decided ones."""
        return knapsack_table(self.weights, self.capacity)

    def completable(self, tokens: Int[Tensor, "row time"], lengths: Int[Tensor, "row"]) -> Bool[Tensor, "row"]:
        """V(s) = can the weights not yet decided sum to what is missing: one look-up."""
        time = min(tokens.shape[1], self.length)
        weights = torch.tensor(self.weights[:time], device=tokens.device, dtype=torch.long)
        taken = tokens[:, :time] * (torch.arange(time, device=tokens.device) < lengths.unsqueeze(1))
        missing = self.capacity - (taken * weights).sum(1)
        table = torch.from_numpy(self.reach).to(tokens.device)
        fits = (missing >= 0) & (lengths <= self.length)
        return fits & table[lengths.clamp(max=self.length), missing.clamp(min=0)]


def knapsack_table(weights: Sequence[int], capacity: int) -> Bool[np.ndarray, "decided remainder"]:
    """reach[i][r]: can some of X_{i+1}, ..., X_D sum to r? Backwards over i, time O(D·c)."""
    reach = np.zeros((len(weights) + 1, capacity + 1), dtype=bool)
    reach[-1, 0] = True
    for index in range(len(weights) - 1, -1, -1):
        reach[index] = reach[index + 1]
        weight = weights[index]
        if weight <= capacity:
            reach[index, weight:] |= reach[index + 1, : capacity + 1 - weight]
    return reach


def solve_knapsack(weights: Sequence[int], capacity: int) -> list[int] | None:
    """A solution of Σ s_i X_i = c by the table (leaving a weight out where possible), or None."""
    reach = knapsack_table(weights, capacity)
    if not reach[0, capacity]:
        return None
    bits, missing = [], capacity
    for index, weight in enumerate(weights):
        take = not reach[index + 1, missing]
        bits.append(int(take))
        missing -= weight * take
    return bits


def solve_superincreasing(weights: Sequence[int], capacity: int) -> list[int] | None:
    """The greedy solver: from the largest index down, take X_i whenever it fits.

    It finds a solution where there is one, provided that each weight is at least the sum of all before it; for other
    weights it may miss one.
    """
    bits = [0] * len(weights)
    for index in range(len(weights) - 1, -1, -1):
        if weights[index] <= capacity:
            bits[index] = 1
            capacity -= weights[index]
    return bits if capacity == 0 else None


def knapsack_density(weights: Sequence[int]) -> float:
    """D/log₂(max X_i): low-density instances (below about 0.94) fall to lattice reduction."""
    largest = max(weights)
    require(largest > 1, "weights", list(weights), "not all 1", "their density is not defined")
    return len(weights) / math.log2(largest)
