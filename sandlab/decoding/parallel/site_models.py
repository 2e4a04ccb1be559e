"""What a sampler asks of a discrete model: some sites drawn again given the others, and the law of each site alone."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from sandlab.errors import BadInput, require
from sandlab.worlds.parallel.clique import IsingClique
from sandlab.worlds.parallel.finite import FiniteLaw

__all__ = ["CliqueSites", "LawSites", "MaskedModelSites", "PairwiseSpins", "SiteModel"]


class SiteModel(Protocol):
    """A discrete model over `sites` tokens below `symbols`.

    `passes` counts evaluations of the model for each chain: the cost of a sampler.
    """

    sites: int
    symbols: int
    passes: int

    def redraw(
        self, states: Int[Tensor, "chain site"], hidden: Bool[Tensor, "chain site"], rng: torch.Generator
    ) -> Int[Tensor, "chain site"]:
        """The hidden sites drawn again given the visible ones."""
        ...

    def site_probs(self, states: Int[Tensor, "chain site"]) -> Float[Tensor, "chain site symbol"]:
        """p(x_i = a | x_−i) of every site."""
        ...


def draw_sites(probs: Float[Tensor, "chain site symbol"], rng: torch.Generator) -> Int[Tensor, "chain site"]:
    """Each site drawn on its own."""
    flat = probs.flatten(0, 1).clamp(min=0)
    return torch.multinomial(flat, 1, generator=rng).view(probs.shape[:2])


class LawSites:
    """A distribution that is written out: blocks are drawn from their exact joint law."""

    def __init__(self, law: FiniteLaw, device: str | torch.device = "cpu") -> None:
        self.law, self.sites, self.symbols, self.passes = law, law.sites, law.symbols, 0
        self.states = torch.as_tensor(law.states, device=device)
        self.probs = torch.as_tensor(law.probs, device=device)
        self.given = torch.as_tensor(law.site_conditionals(), device=device)
        self.place = torch.tensor([law.symbols**power for power in range(law.sites - 1, -1, -1)], device=device)

    def index(self, states: Int[Tensor, "chain site"]) -> Int[Tensor, "chain"]:
        """Number of each state in lexicographic order."""
        return (states * self.place).sum(-1)

    def redraw(
        self, states: Tensor, hidden: Tensor, rng: torch.Generator, tilt: Float[Tensor, "chain state"] | None = None
    ) -> Tensor:
        """With `tilt` the law is weighted by it first: p_K(K | x) of an adaptive law of masks."""
        self.passes += 1
        agrees = ((states.unsqueeze(1) == self.states) | hidden.unsqueeze(1)).all(-1)
        weights = agrees * self.probs if tilt is None else agrees * self.probs * tilt
        return self.states[torch.multinomial(weights, 1, generator=rng).squeeze(1)]

    def site_probs(self, states: Tensor) -> Tensor:
        self.passes += 1
        return self.given[self.index(states)]


class CliqueSites:
    """An Ising clique of any size, drawn exactly through its magnetisation."""

    def __init__(self, world: IsingClique) -> None:
        self.world, self.sites, self.symbols, self.passes = world, world.sites, 2, 0

    def redraw(self, states: Tensor, hidden: Tensor, rng: torch.Generator) -> Tensor:
        self.passes += 1
        return self.world.redraw(states, hidden, rng=rng)

    def site_probs(self, states: Tensor) -> Tensor:
        self.passes += 1
        spins = 2.0 * states.double() - 1
        fields = torch.as_tensor(self.world.fields, device=states.device).expand_as(spins).clone()
        clique = spins[:, : self.world.clique]
        fields[:, : self.world.clique] += self.world.strength * (clique.sum(1, keepdim=True) - clique)
        plus = torch.sigmoid(2 * fields)
        return torch.stack([1 - plus, plus], -1)


class PairwiseSpins:
    """An Ising model of any size, P(x_i = + | rest) = σ(2(h_i + Σ_j J_ij x_j)); for blocks without inner edges.

    >>> model = PairwiseSpins.lattice(32, coupling=0.44)
    """

    def __init__(self, couplings: Float[Tensor, "site site"], fields: Float[Tensor, "site"]) -> None:
        require(bool((couplings == couplings.mT).all()), "couplings", "an asymmetric matrix", "symmetric")
        self.couplings, self.fields = couplings.double(), fields.double()
        self.sites, self.symbols, self.passes = len(fields), 2, 0

    @classmethod
    def lattice(cls, side: int, coupling: float, field: float = 0.0) -> PairwiseSpins:
        """A square lattice with periodic boundary."""
        index = np.arange(side * side).reshape(side, side)
        matrix = np.zeros((side * side, side * side))
        for axis in (0, 1):
            other = np.roll(index, -1, axis).ravel()
            matrix[index.ravel(), other] = matrix[other, index.ravel()] = coupling
        return cls(torch.as_tensor(matrix), torch.full((side * side,), field))

    def site_probs(self, states: Tensor) -> Tensor:
        self.passes += 1
        plus = torch.sigmoid(2 * (self.fields + (2.0 * states.double() - 1) @ self.couplings))
        return torch.stack([1 - plus, plus], -1)

    def redraw(self, states: Tensor, hidden: Tensor, rng: torch.Generator) -> Tensor:
        inner = torch.einsum("ci,ij,cj->c", hidden.double(), (self.couplings != 0).double(), hidden.double())
        if bool((inner > 0).any()):
            raise BadInput("hidden spins must not be neighbours here: their joint law is not a product")
        return torch.where(hidden, draw_sites(self.site_probs(states), rng), states)


class MaskedModelSites:
    """A masked language model: hidden sites are shown as `mask_token` and predicted in one pass, each on its own.

    The prediction of a block is a product of the sites' marginals: the dependence inside the block is lost. With
    `one_by_one` the block is drawn in a random order, a pass for each site, which keeps it.

    temperature   p^(1/T); 0 is the likeliest token
    fixed         sites that are never hidden, such as a prompt
    """

    def __init__(
        self, model: nn.Module, sites: int, symbols: int, mask_token: int, *, temperature: float = 1.0,
        one_by_one: bool = False,
    ) -> None:  # fmt: skip
        self.model, self.sites, self.symbols, self.mask_token = model, sites, symbols, mask_token
        self.temperature, self.one_by_one, self.passes = temperature, one_by_one, 0

    @torch.no_grad()
    def predict(self, states: Int[Tensor, "row site"], hidden: Bool[Tensor, "row site"]) -> Tensor:
        """p(x_i | visible sites) of every site, in one pass."""
        logits = self.model(torch.where(hidden, self.mask_token, states))[..., : self.symbols].double()
        if self.temperature == 0:
            return torch.nn.functional.one_hot(logits.argmax(-1), self.symbols).double()
        return (logits / self.temperature).softmax(-1)

    def redraw(self, states: Tensor, hidden: Tensor, rng: torch.Generator) -> Tensor:
        if self.one_by_one:
            return self._in_turn(states, hidden, rng)
        self.passes += 1
        return torch.where(hidden, draw_sites(self.predict(states, hidden), rng), states)

    def _in_turn(self, states: Tensor, hidden: Tensor, rng: torch.Generator) -> Tensor:
        order = torch.rand(states.shape, generator=rng, device=rng.device).masked_fill(~hidden, math.inf).argsort(-1)
        left = hidden.clone()
        for place in range(int(hidden.sum(1).max())):
            site = order[:, place : place + 1]
            now = torch.zeros_like(hidden).scatter(1, site, True) & left
            self.passes += 1
            states = torch.where(now, draw_sites(self.predict(states, left), rng), states)
            left = left & ~now
        return states

    def site_probs(self, states: Tensor) -> Tensor:
        """p(x_i | x_−i), with each site hidden in turn: one pass over `sites` copies of the batch."""
        self.passes += self.sites
        alone = torch.eye(self.sites, dtype=torch.bool, device=states.device)
        copies = states.unsqueeze(1).expand(-1, self.sites, -1)
        probs = self.predict(copies.flatten(0, 1), alone.expand(len(states), -1, -1).flatten(0, 1))
        probs = probs.view(len(states), self.sites, self.sites, -1)
        return probs[:, torch.arange(self.sites), torch.arange(self.sites)]
