"""Prefix products by associative scan: all states of a word in a logarithmic number of steps, on any device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

__all__ = ["ProductTable", "compose_maps", "prefix_products"]


def prefix_products(
    elements: Int[Tensor, "time *element"], compose: Callable[[Tensor, Tensor], Tensor]
) -> Int[Tensor, "time *element"]:
    """x₁, x₁x₂, …, x₁⋯x_T for an associative product; `compose(earlier, later)` works on whole tensors.

    Neighbours are multiplied in pairs, the row of products, half as long, is scanned, and the gaps are filled: 2T
    products in 2 log₂ T steps (Blelloch 1990). Time is the first axis, so that every step works on whole rows.
    """
    time = len(elements)
    if time <= 1:
        return elements
    pairs = prefix_products(compose(elements[0 : time - time % 2 : 2], elements[1::2]), compose)
    result = torch.empty_like(elements)
    result[1::2] = pairs
    result[:1] = elements[:1]
    if time > 2:
        result[2::2] = compose(pairs[: (time - 1) // 2], elements[2::2])
    return result


def compose_maps(earlier: Int[Tensor, "*lead state"], later: Int[Tensor, "*lead state"]) -> Int[Tensor, "*lead state"]:
    """First `earlier`, then `later`: maps of states given as rows of images."""
    return later.gather(-1, earlier)


@dataclass(frozen=True, eq=False)
class ProductTable:
    """A table look-up `flat[row · columns + column]` for whole tensors at once.

    `index_select` on a flat int32 table is the fastest gather torch has on a CPU.
    """

    flat: Int[Tensor, "entries"]
    columns: int

    def __call__(self, rows: Int[Tensor, "*lead"], columns: Int[Tensor, "*lead"]) -> Int[Tensor, "*lead"]:
        index = torch.add(columns, rows, alpha=self.columns)
        return self.flat.index_select(0, index.reshape(-1)).view(index.shape)

    def row(self, number: int, columns: Int[Tensor, "*lead"]) -> Int[Tensor, "*lead"]:
        """The same for one fixed row."""
        begin = number * self.columns
        return self.flat[begin : begin + self.columns].index_select(0, columns.reshape(-1)).view(columns.shape)
