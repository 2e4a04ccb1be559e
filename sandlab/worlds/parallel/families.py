"""Worlds of masked tokens whose distribution is written out: any small exponential family, the Ising model."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from scipy.special import logsumexp
from torch import Tensor

from sandlab.errors import BadInput, choice, integer, number, require
from sandlab.registry import register
from sandlab.worlds.base import Batch, World
from sandlab.worlds.parallel.finite import FiniteLaw, enumerate_states

__all__ = ["DiscreteFamily", "Ising", "MaskedWorld", "draw_masks", "pair_agreement"]

Statistic: TypeAlias = Callable[[np.ndarray], np.ndarray]


def draw_masks(n: int, sites: int, size: int, *, rng: torch.Generator) -> Bool[Tensor, "n site"]:
    """n uniform sets of `size` of the sites."""
    return torch.rand(n, sites, generator=rng, device=rng.device).argsort(-1).argsort(-1) < size


@dataclass(frozen=True)
class MaskedWorld(World):
    """Tokens x ∈ Ω^N of which `hidden` uniformly chosen ones are shown as [MASK], the symbol after the last.

    The prediction is the hidden token; the oracle is p(x_i | visible sites). A subclass gives `sites`, `symbols`,
    `draw` and `marginals`.
    """

    @property
    def symbols(self) -> int:
        raise NotImplementedError

    @property
    def mask_token(self) -> int:
        return self.symbols

    @property
    def vocab(self) -> int:
        return self.symbols + 1

    @property
    def outputs(self) -> int:
        return self.symbols

    def draw(self, n: int, *, rng: torch.Generator) -> Int[Tensor, "n site"]:
        """n independent states."""
        raise NotImplementedError

    def marginals(
        self, tokens: Int[Tensor, "n site"], hidden: Bool[Tensor, "n site"]
    ) -> Float[Tensor, "n site symbol"]:
        """p(x_i = a | tokens at the visible sites)."""
        raise NotImplementedError

    def show(self, tokens: Int[Tensor, "n site"], hidden: Bool[Tensor, "n site"]) -> Batch:
        """A batch in which the given sites of the given states are hidden."""
        return Batch(torch.where(hidden, self.mask_token, tokens), tokens, hidden, {"states": tokens})

    def hidden_sites(self, n: int, sites: int, size: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        return self.show(self.draw(n, rng=rng), draw_masks(n, sites, size, rng=rng))

    def oracle(self, batch: Batch) -> Float[Tensor, "n site symbol"]:
        return self.marginals(batch.targets, batch.inputs == self.mask_token).clamp(min=1e-300).log()


@dataclass(frozen=True)
class SmallWorld(MaskedWorld):
    """A masked world whose law is written out: p(x) ∝ exp(θ · F(x))."""

    @cached_property
    def statistics(self) -> Float[np.ndarray, "state parameter"]:
        """F(x) of every state, in lexicographic order."""
        raise NotImplementedError

    @cached_property
    def parameter(self) -> Float[np.ndarray, "parameter"]:
        """θ"""
        raise NotImplementedError

    @cached_property
    def law(self) -> FiniteLaw:
        """The distribution itself: exact, every state listed."""
        scores = self.statistics @ self.parameter
        return FiniteLaw(self.symbols, np.exp(scores - logsumexp(scores)))

    def draw(self, n: int, *, rng: torch.Generator) -> Int[Tensor, "n site"]:
        probs = torch.as_tensor(self.law.probs, device=rng.device)
        index = torch.multinomial(probs, n, replacement=True, generator=rng)
        return torch.as_tensor(self.law.states, device=rng.device)[index]

    def marginals(self, tokens: Tensor, hidden: Tensor) -> Tensor:
        states = torch.as_tensor(self.law.states, device=tokens.device)
        agrees = ((tokens.unsqueeze(1) == states) | hidden.unsqueeze(1)).all(-1)
        weights = agrees * torch.as_tensor(self.law.probs, device=tokens.device)
        onehot = torch.nn.functional.one_hot(states, self.symbols).double()
        return torch.einsum("ns,sia->nia", weights / weights.sum(1, keepdim=True), onehot)


def pair_agreement(states: Int[np.ndarray, "state site"]) -> Float[np.ndarray, "state parameter"]:
    """1[x_i = x_j] of every pair i < j: the statistics of a Potts model without fields."""
    pairs = itertools.combinations(range(states.shape[1]), 2)
    return np.stack([(states[:, i] == states[:, j]).astype(float) for i, j in pairs], 1)


@register("worlds")
@dataclass(frozen=True)
class DiscreteFamily(SmallWorld):
    """p(x) ∝ exp(θ · F(x)) on Ω^N for any statistics F, with some tokens hidden.

    sites, alphabet   N and |Ω|, with N log₂|Ω| ≤ 14
    statistic         a function from all states (state, site) to F (state, parameter)
    theta             θ, one number or one per parameter
    hidden            how many tokens of each example are [MASK]
    """

    sites: int = 4
    alphabet: int = 3
    statistic: Statistic = pair_agreement
    theta: float | tuple[float, ...] = 0.5
    hidden: int = 1

    def __post_init__(self) -> None:
        integer("sites", self.sites, low=1)
        integer("alphabet", self.alphabet, low=2)
        integer("hidden", self.hidden, low=1, high=self.sites)
        given = np.atleast_1d(np.asarray(self.theta, dtype=float))
        if len(given) not in (1, self.statistics.shape[1]):
            raise BadInput(f"theta must be one number or {self.statistics.shape[1]} of them, got {len(given)}")

    @property
    def symbols(self) -> int:
        return self.alphabet

    @cached_property
    def statistics(self) -> Float[np.ndarray, "state parameter"]:
        found = np.asarray(self.statistic(enumerate_states(self.sites, self.alphabet)), dtype=float)
        require(found.ndim == 2, "statistic", found.shape, "a function to an array (state, parameter)")
        return found

    @cached_property
    def parameter(self) -> Float[np.ndarray, "parameter"]:
        return np.broadcast_to(np.asarray(self.theta, dtype=float), self.statistics.shape[1:]).copy()

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        return self.hidden_sites(n, self.sites, self.hidden, rng=rng)


@register("worlds")
@dataclass(frozen=True)
class Ising(SmallWorld):
    """p(x) ∝ exp(Σ_i h_i x_i + Σ_{edges} J_ij x_i x_j) for spins x ∈ {±1}^N, with some spins hidden.

    Tokens 0 and 1 are the spins −1 and +1. Parameters are ordered as couplings (i < j), then fields. Li 2024,
    Definition 4.1.12.

    sites, hidden     N ≤ 14 spins, of which `hidden` are [MASK] in each example
    coupling, field   J and h: one number, or one per edge and one per spin
    edges             "complete", "cycle", "path", or pairs (i, j)
    pair_convention   "unordered": each edge counts once; "ordered": twice, that is 2J
    fields_known      the fields are not among the parameters to be estimated
    """

    sites: int = 4
    coupling: float | tuple[float, ...] = 0.3
    field: float | tuple[float, ...] = 0.0
    edges: str | tuple[tuple[int, int], ...] = "complete"
    pair_convention: str = "unordered"
    hidden: int = 1
    fields_known: bool = False

    def __post_init__(self) -> None:
        integer("sites", self.sites, low=1, high=14)
        integer("hidden", self.hidden, low=1, high=self.sites)
        choice("pair_convention", self.pair_convention, ("unordered", "ordered"))
        if isinstance(self.edges, str):
            choice("edges", self.edges, ("complete", "cycle", "path"))
        inside = all(0 <= i < j < self.sites for i, j in self.pairs)
        require(inside, "edges", self.edges, f"pairs i < j below {self.sites}")
        for name, count in (("coupling", len(self.pairs)), ("field", self.sites)):
            given = getattr(self, name)
            for value in given if isinstance(given, tuple) else (given,):
                number(name, value)
            single = not isinstance(given, tuple) or len(given) == count
            require(single, name, given, f"one number or {count} of them")
        if self.fields_known and np.any(self._fields):
            raise BadInput("fields_known needs field = 0: known fields that are not 0 are not supported")

    @property
    def symbols(self) -> int:
        return 2

    @property
    def letters(self) -> list[str]:
        return ["-", "+", "?"]

    @property
    def pairs(self) -> list[tuple[int, int]]:
        if not isinstance(self.edges, str):
            return list(self.edges)
        if self.edges == "complete":
            return list(itertools.combinations(range(self.sites), 2))
        closing = [(0, self.sites - 1)] if self.edges == "cycle" and self.sites > 2 else []
        return sorted([(i, i + 1) for i in range(self.sites - 1)] + closing)

    @property
    def _fields(self) -> Float[np.ndarray, "site"]:
        return np.broadcast_to(np.asarray(self.field, dtype=float), (self.sites,))

    @property
    def couplings(self) -> Float[np.ndarray, "edge"]:
        """J_ij of each unordered pair."""
        factor = 2.0 if self.pair_convention == "ordered" else 1.0
        return factor * np.broadcast_to(np.asarray(self.coupling, dtype=float), (len(self.pairs),))

    @property
    def spins(self) -> Float[np.ndarray, "state site"]:
        """All states as ±1."""
        return 2.0 * enumerate_states(self.sites) - 1

    @cached_property
    def statistics(self) -> Float[np.ndarray, "state parameter"]:
        spins = self.spins
        products = [spins[:, i] * spins[:, j] for i, j in self.pairs]
        return np.stack(products if self.fields_known else [*products, *spins.T], 1)

    @cached_property
    def parameter(self) -> Float[np.ndarray, "parameter"]:
        return self.couplings.copy() if self.fields_known else np.concatenate([self.couplings, self._fields])

    @property
    def matrix(self) -> Float[np.ndarray, "site site"]:
        """The couplings as a symmetric matrix."""
        found = np.zeros((self.sites, self.sites))
        for (i, j), value in zip(self.pairs, self.couplings):
            found[i, j] = found[j, i] = value
        return found

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        return self.hidden_sites(n, self.sites, self.hidden, rng=rng)
