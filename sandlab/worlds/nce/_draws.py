"""Random draws that the worlds of this chapter share."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor


def standard_normal(n: int, width: int, rng: torch.Generator) -> Float[Tensor, "n width"]:
    """Independent N(0, 1) draws, float64, on the generator's device."""
    return torch.randn(n, width, generator=rng, device=rng.device, dtype=torch.float64)
