"""Attention along two layers: how much of each coordinate reaches the last position."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sandlab.learning.experiment import Snapshot
from sandlab.models.hooks import record
from sandlab.registry import register

__all__ = ["PathAttention", "attention_paths"]


@register("lenses")
def attention_paths(model: nn.Module, inputs: Int[Tensor, "example time"]) -> Float[Tensor, "time"]:
    """A_j = Σ_i a_T²[i] · a_i¹[j] at the last position, a^l summed over the heads of layer l; median over the inputs.

    Source: Panigrahi et al. 2024, Figure 4.14 of the thesis.
    """
    with torch.no_grad(), record(model, "layers.*.attention.pattern") as cache:
        model(inputs)
    first, second = (cache[f"layers.{layer}.attention.pattern"].sum(1) for layer in (0, 1))
    return (second[:, -1:] @ first)[:, 0].median(0).values


@dataclass(frozen=True)
class PathAttention:
    """A probe: the path attention on and off the support (mean per coordinate) over held-out inputs."""

    support: tuple[int, ...]
    examples: int = 1024

    def __call__(self, snapshot: Snapshot) -> dict[str, np.ndarray]:
        """on, off (member)."""
        found = []
        for index in range(len(snapshot.model)):
            model = snapshot.model.member(index).eval()
            paths = attention_paths(model, snapshot.batch.inputs[: self.examples])
            inside = torch.zeros(len(paths), dtype=torch.bool, device=paths.device)
            inside[list(self.support)] = True
            found.append([float(paths[inside].mean()), float(paths[~inside].mean())])
        values = np.array(found)
        return {"path on": values[:, 0], "path off": values[:, 1]}
