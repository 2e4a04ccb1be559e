"""From masked losses to the distance of joint distributions: the losses and the bound of Theorem 4.1.4."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from sandlab.errors import integer, number
from sandlab.learning.parallel.pseudolikelihood import MaskedCounts
from sandlab.worlds.parallel.finite import FiniteLaw, MaskLaw

__all__ = ["TotalVariationBound", "empirical_law", "masked_divergence", "sampled_divergence"]


def empirical_law(symbols: int, total: int, states: Int[np.ndarray, "n"]) -> FiniteLaw:
    """p̃: the uniform distribution over a sample."""
    return FiniteLaw(symbols, np.bincount(states, minlength=total) / len(states))


def masked_divergence(truth: FiniteLaw, model: FiniteLaw, mask_law: MaskLaw) -> float:
    """L_PL = E_{X,K} KL(p(· | X_−K, K) ‖ p_θ(· | X_−K, K)); with the empirical law as the truth it is L̃_PL.

    The form the theory needs: cross-entropy minus conditional entropy (Li 2024, §4.1.3).
    """
    terms = [_divergences(truth, model, mask_law, place) for place in range(len(mask_law.masks))]
    weights = [truth.weights(mask_law, place) for place in range(len(mask_law.masks))]
    return float(sum(weight @ term for weight, term in zip(weights, terms)))


def sampled_divergence(truth: FiniteLaw, model: FiniteLaw, data: MaskedCounts) -> float:
    """L̂_PL: the same with the masks that were drawn for each sample, instead of their expectation."""
    terms = np.stack([_divergences(truth, model, data.mask_law, place) for place in range(len(data.mask_law.masks))])
    return float((data.counts * terms).sum() / data.counts.sum())


def _divergences(truth: FiniteLaw, model: FiniteLaw, mask_law: MaskLaw, place: int) -> Float[np.ndarray, "state"]:
    """KL(truth(· | x_−K, K) ‖ model(· | x_−K, K)) of every state's visible part."""
    mask = mask_law.masks[place]
    first = truth.conditional(mask, truth.weights(mask_law, place))
    second = model.conditional(mask, model.weights(mask_law, place))
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(first > 0, first * np.log(first / second), 0.0).sum(1)
    found = np.empty(len(truth))
    found[truth.groups(mask)] = terms[:, None]
    return found


@dataclass(frozen=True)
class TotalVariationBound:
    """D_TV(p_θ̂, p) < √(½ C_AT (L̂ + B ln(1/β) + ε)) + C with probability 1 − δ (Li 2024, Theorem 4.1.4).

    B = √(2^{3N} |Ω|^N C_ε(Θ)/(mδ)) + √(ln(8 C_ε(Θ)/δ)/(2n)),  C = √(|Ω|^{3N}/(8δn))

    sites, symbols    N and |Ω|
    samples, masks    n, and m masks for each
    delta, epsilon    probability of failure; resolution of the covering
    floor             β, a lower bound of all conditionals
    covering          C_ε(Θ), the covering number of the parameters
    """

    sites: int
    symbols: int
    samples: int
    masks: int
    delta: float = 0.1
    epsilon: float = 0.1
    floor: float = 0.01
    covering: float = 1.0

    def __post_init__(self) -> None:
        for name in ("sites", "symbols", "samples", "masks"):
            integer(name, getattr(self, name), low=1)
        for name in ("delta", "floor"):
            number(name, getattr(self, name), low=0.0, high=1.0)

    @property
    def mask_term(self) -> float:
        """√(2^{3N} |Ω|^N C_ε/(mδ))"""
        states = 2.0 ** (3 * self.sites) * float(self.symbols) ** self.sites
        return math.sqrt(states * self.covering / (self.masks * self.delta))

    @property
    def sample_term(self) -> float:
        """√(ln(8 C_ε/δ)/(2n))"""
        return math.sqrt(math.log(8 * self.covering / self.delta) / (2 * self.samples))

    @property
    def empirical_term(self) -> float:
        """C: the distance between the sample and its law, √(|Ω|^{3N}/(8δn))"""
        return math.sqrt(float(self.symbols) ** (3 * self.sites) / (8 * self.delta * self.samples))

    @property
    def concentration(self) -> float:
        """Bound of |L̂ − L̃| at one θ: (√(2^{3N−1}|Ω|^N/(mδ)) + √(ln(4/δ)/(2n))) ln(1/β)."""
        states = 2.0 ** (3 * self.sites - 1) * float(self.symbols) ** self.sites
        mask = math.sqrt(states / (self.masks * self.delta))
        return (mask + math.sqrt(math.log(4 / self.delta) / (2 * self.samples))) * math.log(1 / self.floor)

    @property
    def empirical_distance(self) -> float:
        """Bound of D_TV(p̃, p) at probability 1 − δ: √(|Ω|^{3N}/(16δn))."""
        return math.sqrt(float(self.symbols) ** (3 * self.sites) / (16 * self.delta * self.samples))

    def __call__(self, loss: float, tensorisation: float) -> float:
        """The bound for a fitted loss L̂ (in its KL form) and the constant C_AT of the fitted model."""
        spread = (self.mask_term + self.sample_term) * math.log(1 / self.floor)
        return math.sqrt(0.5 * tensorisation * (loss + spread + self.epsilon)) + self.empirical_term
