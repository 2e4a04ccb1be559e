"""Distributions over Ω^N that are small enough to be written out, and laws of masks."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int

from sandlab.errors import BadInput, integer, require

__all__ = ["FiniteLaw", "MaskLaw", "enumerate_states", "size_masks"]

LARGEST = 14
"""Bits that a state may have when all states are listed: N · log₂|Ω|."""


def enumerate_states(sites: int, symbols: int = 2) -> Int[np.ndarray, "state site"]:
    """All of Ω^N in lexicographic order, the first coordinate slowest; symbols are 0 … |Ω| − 1."""
    integer("sites", sites, low=1)
    integer("symbols", symbols, low=2)
    bits = sites * math.log2(symbols)
    require(bits <= LARGEST + 1e-9, "sites", sites, f"such that sites · log₂(symbols) ≤ {LARGEST}, here {bits:.1f}")
    return np.indices((symbols,) * sites).reshape(sites, -1).T


@dataclass(frozen=True, eq=False)
class MaskLaw:
    """A distribution over sets K ⊂ [N] of hidden sites: p_K(K), or p_K(K | X) when it depends on the state.

    masks     (mask, site): the listed sets
    weights   (mask,): their probabilities; (state, mask): one distribution for each state, an adaptive law
    """

    masks: Bool[np.ndarray, "mask site"]
    weights: np.ndarray

    def __post_init__(self) -> None:
        weights = np.asarray(self.weights, dtype=float)
        if weights.shape[-1] != len(self.masks) or weights.ndim not in (1, 2):
            raise BadInput(f"weights must have one number for each of the {len(self.masks)} masks, got {weights.shape}")
        normal = bool((weights >= 0).all()) and np.allclose(weights.sum(-1), 1)
        require(normal, "weights", "numbers that are no distribution", "at least 0 and of sum 1")
        require(bool(self.masks.any(0).all()), "masks", "a site that is never hidden", "sets that cover all sites")
        object.__setattr__(self, "weights", weights)

    @property
    def adaptive(self) -> bool:
        return self.weights.ndim == 2

    @property
    def sites(self) -> int:
        return self.masks.shape[1]

    def given(self, states: int) -> Float[np.ndarray, "state mask"]:
        """p_K(K | x) for each of so many states."""
        fits = not self.adaptive or len(self.weights) == states
        require(fits, "weights", f"{len(self.weights)} states", f"{states} of them")
        return np.array(np.broadcast_to(self.weights, (states, len(self.masks))))


def size_masks(sites: int, size: int) -> MaskLaw:
    """All sets of `size` sites, equally likely (k-pseudolikelihood, k-Gibbs)."""
    integer("size", size, low=1, high=integer("sites", sites, low=1))
    chosen = list(itertools.combinations(range(sites), size))
    masks = np.zeros((len(chosen), sites), dtype=bool)
    masks[np.arange(len(chosen))[:, None], np.array(chosen)] = True
    return MaskLaw(masks, np.full(len(chosen), 1 / len(chosen)))


@dataclass(frozen=True, eq=False)
class FiniteLaw:
    """A distribution over Ω^N, one probability per state, with its conditionals.

    >>> law = FiniteLaw(2, np.array([1/2, 1/3, 1/6, 0]))     # of 00, 01, 10, 11
    """

    symbols: int
    probs: Float[np.ndarray, "state"]

    def __post_init__(self) -> None:
        probs = np.asarray(self.probs, dtype=float)
        sites = round(math.log(len(probs), self.symbols))
        if self.symbols**sites != len(probs):
            raise BadInput(f"probs must have |Ω|^N entries for |Ω| = {self.symbols}, got {len(probs)}")
        require(bool((probs >= 0).all()) and np.isclose(probs.sum(), 1), "probs", probs.sum(), "a distribution")
        object.__setattr__(self, "probs", probs)

    @property
    def sites(self) -> int:
        return round(math.log(len(self.probs), self.symbols))

    @cached_property
    def states(self) -> Int[np.ndarray, "state site"]:
        return enumerate_states(self.sites, self.symbols)

    def __len__(self) -> int:
        return len(self.probs)

    def groups(self, mask: Bool[np.ndarray, "site"] | Sequence[bool]) -> Int[np.ndarray, "visible hidden"]:
        """Indices of the states, one row for each assignment of the visible sites."""
        hidden = np.asarray(mask, dtype=bool)
        axes = [*np.flatnonzero(~hidden), *np.flatnonzero(hidden)]
        index = np.arange(len(self)).reshape((self.symbols,) * self.sites).transpose(axes)
        return index.reshape(-1, self.symbols ** int(hidden.sum()))

    def weights(self, mask_law: MaskLaw, place: int) -> Float[np.ndarray, "state"]:
        """p(x) p_K(K | x) of the mask at `place` in the list."""
        return self.probs * mask_law.given(len(self))[:, place]

    def conditional(
        self, mask: Bool[np.ndarray, "site"] | Sequence[bool], weights: Float[np.ndarray, "state"] | None = None
    ) -> Float[np.ndarray, "visible hidden"]:
        """p(x_K | x_−K), rows as in `groups`; with weights p(x) p_K(K | x) it is p(x_K | x_−K, K).

        Rows of probability 0 are uniform.
        """
        blocks = (self.probs if weights is None else weights)[self.groups(mask)]
        total = blocks.sum(1, keepdims=True)
        uniform = np.full_like(blocks, 1 / blocks.shape[1])
        return np.where(total > 0, blocks / np.where(total > 0, total, 1), uniform)

    def marginal(self, sites: Sequence[int]) -> Float[np.ndarray, "assignment"]:
        """The law of some sites, in lexicographic order."""
        table = self.probs.reshape((self.symbols,) * self.sites)
        others = tuple(site for site in range(self.sites) if site not in sites)
        return table.sum(others).transpose(np.argsort(np.argsort(sites))).reshape(-1)

    def site_conditionals(self) -> Float[np.ndarray, "state site symbol"]:
        """p(x_i = a | x_−i) for every state and site."""
        found = np.empty((len(self), self.sites, self.symbols))
        for site, mask in enumerate(np.eye(self.sites, dtype=bool)):
            found[self.groups(mask), site] = self.conditional(mask)[:, None, :]
        return found
