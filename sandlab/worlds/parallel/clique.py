"""Ising models with one clique: exact at any size through the magnetisation; modes and assumptions of the theory."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from scipy.special import gammaln, logsumexp
from torch import Tensor

from sandlab.errors import BadInput, choice, integer, number, require
from sandlab.registry import register
from sandlab.worlds.base import Batch
from sandlab.worlds.parallel.families import Ising, MaskedWorld

__all__ = ["IsingClique", "IsingConditions", "mode_of", "separating_clique"]

LARGEST = 5000


def log_binomial(n: int | np.ndarray, k: int | np.ndarray) -> np.ndarray:
    """log C(n, k)"""
    return np.asarray(gammaln(np.asarray(n) + 1.0) - gammaln(np.asarray(k) + 1.0) - gammaln(np.asarray(n) - k + 1.0))


@register("worlds")
@dataclass(frozen=True)
class IsingClique(MaskedWorld):
    """Spins with equal couplings J inside a clique, independent outside; some spins are hidden.

    log p(x) = h s + J(s² − c)/2 + Σ_{i outside} h_i x_i + constant, with s the sum of the c spins of the clique. With m
    plus spins, s = 2m − c, and a magnetisation has C(c, m) configurations. Li 2024, Eq. 4.6.

    sites, clique     N spins, the first c of which form the clique (c ≤ 5000)
    coupling, field   J and the field h of each spin of the clique
    outside           fields of the other spins: one number, or one each
    pair_convention   "unordered": each pair counts once; "ordered": twice, that is 2J
    hidden            how many spins of each example are [MASK]
    """

    sites: int = 10
    clique: int = 4
    coupling: float = 0.3
    field: float = 0.0
    outside: float | tuple[float, ...] = 0.0
    pair_convention: str = "unordered"
    hidden: int = 1

    def __post_init__(self) -> None:
        integer("sites", self.sites, low=1)
        integer("clique", self.clique, low=1, high=min(self.sites, LARGEST))
        integer("hidden", self.hidden, low=1, high=self.sites)
        number("coupling", self.coupling)
        number("field", self.field)
        choice("pair_convention", self.pair_convention, ("unordered", "ordered"))
        others = self.sites - self.clique
        single = not isinstance(self.outside, tuple) or len(self.outside) == others
        require(single, "outside", self.outside, f"one number or {others} of them")

    @property
    def symbols(self) -> int:
        return 2

    @property
    def letters(self) -> list[str]:
        return ["-", "+", "?"]

    @property
    def strength(self) -> float:
        """J of each unordered pair."""
        return self.coupling * (2.0 if self.pair_convention == "ordered" else 1.0)

    @property
    def fields(self) -> Float[np.ndarray, "site"]:
        """h_i of every spin."""
        others = np.broadcast_to(np.asarray(self.outside, dtype=float), (self.sites - self.clique,))
        return np.concatenate([np.full(self.clique, self.field), others])

    @property
    def total_field(self) -> float:
        """h_G, the sum of the clique's fields."""
        return self.clique * self.field

    @cached_property
    def log_weights(self) -> Float[np.ndarray, "plus"]:
        """h s + J(s² − c)/2 of one configuration with m = 0 … c plus spins in the clique."""
        s = 2.0 * np.arange(self.clique + 1) - self.clique
        return self.field * s + self.strength * (s * s - self.clique) / 2

    @cached_property
    def magnetisation(self) -> Float[np.ndarray, "plus"]:
        """Probability of m = 0 … c plus spins in the clique."""
        logs = self.log_weights + log_binomial(self.clique, np.arange(self.clique + 1))
        return np.exp(logs - logsumexp(logs))

    def as_ising(self) -> Ising:
        """The same distribution with every state listed (at most 14 spins)."""
        edges = tuple((i, j) for i in range(self.clique) for j in range(i + 1, self.clique))
        return Ising(self.sites, self.strength, tuple(self.fields.tolist()), edges, hidden=self.hidden)

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        return self.hidden_sites(n, self.sites, self.hidden, rng=rng)

    def draw(self, n: int, *, rng: torch.Generator) -> Int[Tensor, "n site"]:
        everything = torch.ones(n, self.sites, dtype=torch.bool, device=rng.device)
        return self.redraw(torch.zeros(n, self.sites, dtype=torch.long, device=rng.device), everything, rng=rng)

    def redraw(
        self, tokens: Int[Tensor, "n site"], hidden: Bool[Tensor, "n site"], *, rng: torch.Generator
    ) -> Int[Tensor, "n site"]:
        """The hidden spins drawn again from their exact joint law given the others."""
        inside = hidden[:, : self.clique]
        plus = torch.multinomial(self._plus_law(tokens, inside), 1, generator=rng)
        # Which of the hidden spins are plus: those that come first in a random order.
        order = torch.rand(inside.shape, generator=rng, device=rng.device) - inside.to(torch.float64)
        spins = torch.where(inside, (order.argsort(-1).argsort(-1) < plus).long(), tokens[:, : self.clique])
        fields = torch.as_tensor(self.fields[self.clique :], device=rng.device)
        coins = torch.rand(len(tokens), len(fields), generator=rng, device=rng.device, dtype=torch.float64)
        others = torch.where(
            hidden[:, self.clique :], (coins < torch.sigmoid(2 * fields)).long(), tokens[:, self.clique :]
        )
        return torch.cat([spins, others], 1)

    def _plus_law(self, tokens: Tensor, inside: Bool[Tensor, "n clique"]) -> Float[Tensor, "n plus"]:
        """Law of the number of plus spins among the hidden ones of the clique."""
        shown = (tokens[:, : self.clique] * ~inside).sum(1, keepdim=True)
        count = inside.sum(1, keepdim=True)
        plus = torch.arange(self.clique + 1, device=tokens.device)
        inner = torch.lgamma(count + 1.0) - torch.lgamma(plus + 1.0) - torch.lgamma((count - plus).clamp(min=0) + 1.0)
        weights = torch.as_tensor(self.log_weights, device=tokens.device)[(shown + plus).clamp(max=self.clique)]
        return (inner.double() + weights).masked_fill(plus > count, -torch.inf).softmax(-1)

    def marginals(self, tokens: Tensor, hidden: Tensor) -> Tensor:
        inside = hidden[:, : self.clique]
        law = self._plus_law(tokens, inside)
        mean = (law * torch.arange(self.clique + 1, device=tokens.device)).sum(1) / inside.sum(1).clamp(min=1)
        clique = torch.where(inside, mean.unsqueeze(1), tokens[:, : self.clique].double())
        outer = torch.sigmoid(2 * torch.as_tensor(self.fields[self.clique :], device=tokens.device))
        others = torch.where(hidden[:, self.clique :], outer, tokens[:, self.clique :].double())
        plus = torch.cat([clique, others], 1)
        return torch.stack([1 - plus, plus], -1)


def mode_of(tokens: Int[Tensor, "n site"] | np.ndarray, clique: int) -> np.ndarray:
    """1 in R₁ (all spins of the clique plus), −1 in R₋₁ (all minus), 0 elsewhere (Li 2024, Eqs. 4.7 and 4.8)."""
    inside = np.asarray(tokens)[..., :clique]
    return inside.all(-1).astype(int) - (inside == 0).all(-1).astype(int)


@dataclass(frozen=True)
class IsingConditions:
    """The assumptions under which k-Gibbs and independent parallel part ways (Li 2024, Assumptions 4.1.5 to 4.1.7).

    J₀ = J − ‖h‖₁; the properties say whether each assumption holds, and how large its sizes must be.
    """

    world: IsingClique
    delta: float = 0.1
    horizon: int = 1000

    def __post_init__(self) -> None:
        number("delta", self.delta, low=0.0, high=1.0)
        integer("horizon", self.horizon, low=1)

    @property
    def slack(self) -> float:
        """J₀ = J − ‖h‖₁"""
        return self.world.strength - float(np.abs(self.world.fields).sum())

    @property
    def strong(self) -> bool:
        """Assumption 4.1.5: h_G > Σ_{outside}|h_i| and J₀ > 0."""
        outer = float(np.abs(self.world.fields[self.world.clique :]).sum())
        return self.world.total_field > outer and self.slack > 0

    @property
    def clique_needed(self) -> int:
        """|C| ≥ 8(1 + ln(4M/δ))"""
        return math.ceil(8 * (1 + math.log(4 * self.horizon / self.delta)))

    @property
    def field_needed(self) -> float:
        """h_G ≥ ½ ln(2(4 − δ)/δ)"""
        return 0.5 * math.log(2 * (4 - self.delta) / self.delta)

    @property
    def slack_needed(self) -> float:
        """J₀ ≥ ½ |C| ln 2"""
        return 0.5 * self.world.clique * math.log(2)

    @property
    def large(self) -> bool:
        """Assumption 4.1.6"""
        world, tiny = self.world, 1e-9
        sizes = world.clique >= self.clique_needed and self.slack >= self.slack_needed - tiny
        return sizes and world.total_field >= self.field_needed - tiny

    @property
    def block_needed(self) -> int:
        """Assumption 4.1.7: k ≥ max(|C|, N − δ(N + 1)/((4 − δ)|C| + δ))"""
        sites, clique = self.world.sites, self.world.clique
        spared = self.delta * (sites + 1) / ((4 - self.delta) * clique + self.delta)
        return max(clique, math.ceil(sites - spared - 1e-12))

    @property
    def sites_needed(self) -> int:
        """The smallest N for which k < N is allowed: δ(N + 1) ≥ (4 − δ)|C| + δ."""
        clique = self.world.clique
        return math.ceil(((4 - self.delta) * clique + self.delta) / self.delta - 1 - 1e-9)


def separating_clique(delta: float = 0.1, horizon: int = 1000, *, sites: int | None = None) -> IsingClique:
    """The smallest clique of Corollary 4.1.1: all of Assumption 4.1.6 with equality, J = ‖h‖₁ + J₀."""
    probe = IsingConditions(IsingClique(1, 1), delta, horizon)
    clique = probe.clique_needed
    if sites is not None and sites < clique:
        raise BadInput(f"sites must be at least the clique's {clique}, got {sites}")
    total = probe.field_needed
    coupling = total + 0.5 * clique * math.log(2)
    return IsingClique(sites or clique, clique, coupling, total / clique)
