"""Parallel decoding of a network: every position is drawn on its own from one forward pass."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from sandlab.decoding.decoders.base import warp_logits
from sandlab.decoding.parallel.site_models import draw_sites
from sandlab.errors import integer, number
from sandlab.worlds.parallel.finite import enumerate_states

__all__ = ["ParallelDecoding", "decoding_matrix"]


@dataclass(frozen=True)
class ParallelDecoding:
    """τ' ~ Π_j s(g(τ))_j: one forward pass, then each position from its own distribution (Li 2024, Eq. 4.64).

    temperature, top_p   the sampling function s: multinomial (1, 1), truncated (top_p < 1), or argmax (temperature 0,
                         the smallest index of equals)
    """

    temperature: float = 1.0
    top_p: float = 1.0

    def __post_init__(self) -> None:
        number("temperature", self.temperature, low=0.0)
        number("top_p", self.top_p, low=0.0, high=1.0)

    @torch.no_grad()
    def probs(self, model: nn.Module, states: Int[Tensor, "chain site"]) -> Float[Tensor, "chain site symbol"]:
        """What each position is drawn from."""
        logits = model(states)
        flat = warp_logits(logits.flatten(0, 1).double().log_softmax(-1), self.temperature, self.top_p)
        return flat.exp().view(logits.shape)

    def run(
        self, model: nn.Module, start: Int[Tensor, "chain site"], steps: int, *, rng: torch.Generator
    ) -> Int[Tensor, "time chain site"]:
        """The states after 0 … steps steps."""
        integer("steps", steps, low=0)
        states = [start]
        for _ in range(steps):
            states.append(draw_sites(self.probs(model, states[-1]), rng))
        return torch.stack(states)


def decoding_matrix(
    model: nn.Module, sites: int, symbols: int, decoder: ParallelDecoding | None = None
) -> Float[np.ndarray, "state state"]:
    """P(τ → τ') = Π_j g(τ)_{τ'_j, j} of a network as a matrix over all states."""
    states = enumerate_states(sites, symbols)
    probs = (decoder or ParallelDecoding()).probs(model, torch.as_tensor(states)).cpu().numpy()
    matrix = np.ones((len(states), len(states)))
    for site in range(sites):
        matrix *= probs[:, site][:, states[:, site]]
    return matrix
