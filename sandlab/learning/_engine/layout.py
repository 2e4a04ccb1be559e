"""All weights of a model concatenated into one row, one row per member.

An optimiser step over a population is then a handful of operations on one tensor (member, weight), and what differs
between members (learning rate, decay, clipping) is a column that broadcasts. The named weights are views of the rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from sandlab.errors import BadInput, require

__all__ = ["Layout"]

# Each weight starts at a multiple of 64 bytes (in float32), so that the kernels' wide loads stay aligned.
_ALIGNMENT = 16


@dataclass(frozen=True)
class _Slice:
    row: int  # which of the rows: one per number type
    start: int
    size: int
    shape: torch.Size


class Layout:
    """Where each named weight of one member lies in the rows; there is one row for each number type."""

    def __init__(self, weights: Mapping[str, Tensor]) -> None:
        require(len(weights) > 0, "model", "no trainable weights", "a module with at least one")
        self.dtypes = list(dict.fromkeys(weight.dtype for weight in weights.values()))
        self.widths = [0] * len(self.dtypes)
        self.slices: dict[str, _Slice] = {}
        for name, weight in weights.items():
            row = self.dtypes.index(weight.dtype)
            start, size = self.widths[row], weight.numel()
            self.slices[name] = _Slice(row, start, size, weight.shape)
            self.widths[row] = start + -(-size // _ALIGNMENT) * _ALIGNMENT

    def empty(self, members: int, device: torch.device) -> list[Tensor]:
        """Rows of zeros for `members` members."""
        kinds = zip(self.widths, self.dtypes)
        return [torch.zeros(members, width, dtype=dtype, device=device) for width, dtype in kinds]

    def views(self, rows: Sequence[Tensor]) -> dict[str, Tensor]:
        """The named weights, member axis first, as views of the rows."""
        return {
            name: rows[part.row].narrow(1, part.start, part.size).unflatten(1, part.shape)
            if part.shape
            else rows[part.row].select(1, part.start)
            for name, part in self.slices.items()
        }

    def fill(self, rows: Sequence[Tensor], member: int, weights: Mapping[str, Tensor]) -> None:
        """Copy one member's weights into its rows."""
        if set(weights) != set(self.slices):
            raise BadInput(f"member {member} has weights {sorted(weights)}, expected {sorted(self.slices)}")
        with torch.no_grad():
            for name, view in self.views(rows).items():
                if weights[name].shape != view.shape[1:]:
                    raise BadInput(
                        f"weight {name} of member {member} has shape {tuple(weights[name].shape)}, expected "
                        f"{tuple(view.shape[1:])}: all members of a population share one architecture"
                    )
                view[member].copy_(weights[name])
