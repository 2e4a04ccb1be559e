"""Singular values of weights: which matrices become low rank, and when."""

from __future__ import annotations

import fnmatch
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from sandlab.errors import BadInput, nearest
from sandlab.lenses.predictions import named_weights
from sandlab.registry import register

__all__ = ["SpectraOverTraining", "effective_rank", "singular_values", "stable_rank", "top_share"]


@register("lenses")
def singular_values(model: nn.Module, *names: str) -> dict[str, Float[Tensor, "*member _values"]]:
    """Singular values, largest first, of every weight matrix whose name matches one of the glob patterns (default all).

    For a population the member axis is first.
    """
    patterns = names or ("*",)
    named, members = named_weights(model)
    weights = {name: value for name, value in named.items() if value.ndim == 2 + members}
    for glob in patterns:
        if not any(fnmatch.fnmatchcase(name, glob) for name in weights):
            raise BadInput(
                f"no weight matrix matches {glob!r}: {nearest(glob, weights) or f'there are {list(weights)}'}"
            )
    chosen = {
        name: value for name, value in weights.items() if any(fnmatch.fnmatchcase(name, glob) for glob in patterns)
    }
    return {name: torch.linalg.svdvals(value.detach().double()) for name, value in chosen.items()}


def top_share(values: Float[Tensor, "*lead values"], power: int = 2) -> Float[Tensor, "*lead"]:
    """σ₁² / Σ σᵢ², the share of the matrix's energy in its leading direction; `power=1` gives σ₁ / Σ σᵢ."""
    raised = values**power
    return raised.amax(-1) / raised.sum(-1)


def effective_rank(values: Float[Tensor, "*lead values"]) -> Float[Tensor, "*lead"]:
    """exp of the entropy of σᵢ / Σ σ: r for a matrix with r equal singular values (Roy & Vetterli 2007)."""
    probs = values / values.sum(-1, keepdim=True)
    return torch.special.entr(probs).sum(-1).exp()


def stable_rank(values: Float[Tensor, "*lead values"]) -> Float[Tensor, "*lead"]:
    """‖W‖²_F / ‖W‖²₂ = Σ σᵢ² / σ₁²: never above the rank, and insensitive to tiny singular values."""
    return 1 / top_share(values)


class SpectraOverTraining:
    """A training callback that keeps the singular values of chosen weights at each step it is called.

    >>> snapshots = SpectraOverTraining("layers.0.mlp.up_proj.weight", every=50)
    >>> train(model, world, steps=400, rng=rng(0), callbacks=[snapshots])
    >>> snapshots.spectra["layers.0.mlp.up_proj.weight"]     # (call, *member, values)
    """

    def __init__(self, *names: str, every: int = 1) -> None:
        self.names, self.every = names, every
        self.steps: list[int] = []
        self._frames: dict[str, list[np.ndarray]] = defaultdict(list)

    def __call__(self, step: int, model: nn.Module, metrics: Mapping[str, Any] | None = None) -> None:
        if step % self.every:
            return
        self.steps.append(step)
        for name, values in singular_values(model, *self.names).items():
            self._frames[name].append(values.cpu().numpy())

    @property
    def spectra(self) -> dict[str, np.ndarray]:
        return {name: np.stack(frames) for name, frames in self._frames.items()}
