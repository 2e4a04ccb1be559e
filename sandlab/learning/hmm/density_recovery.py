"""Parameters of a Gaussian HMM from the density p(x₂ | x₁): Hermite moments and Prony's method (Theorem 9)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy.polynomial import hermite_e

from sandlab.worlds.hmm.models import GaussianHMM

__all__ = [
    "HermiteMoments",
    "exact_moments",
    "hankel_condition",
    "mixture_from_moments",
    "sampled_moments",
    "transitions_from_density",
]


@dataclass(frozen=True)
class HermiteMoments:
    """Moments of a mixture of N(μ_j, I) along a unit direction u, with ξ_j = uᵀμ_j.

    direct   s_r = E He_r(uᵀx) = Σ_j w_j ξ_j^r, r = 0 … 2k − 1
    mixed    E[x_l He_r(uᵀx)] − r u_l s_{r−1} = Σ_j w_j μ_jl ξ_j^r, r = 0 … k − 1
    """

    direct: np.ndarray
    mixed: np.ndarray


def exact_moments(
    weights: Float[np.ndarray, " k"], centres: Float[np.ndarray, "d k"], direction: Float[np.ndarray, " d"]
) -> HermiteMoments:
    """The moments of a known mixture."""
    k = len(weights)
    powers = (direction @ centres)[None, :] ** np.arange(2 * k)[:, None]
    return HermiteMoments(powers @ weights, np.einsum("rk,k,dk->rd", powers[:k], weights, centres))


def sampled_moments(x: Float[np.ndarray, "n d"], direction: Float[np.ndarray, " d"], states: int) -> HermiteMoments:
    """Averages over draws of x₂ given one x₁."""
    values = hermite_e.hermevander(x @ direction, 2 * states - 1)
    direct = values.mean(0)
    mixed = values[:, :states].T @ x / len(x)
    mixed[1:] -= np.arange(1, states)[:, None] * direct[: states - 1, None] * direction
    return HermiteMoments(direct, mixed)


def _hankel(moments: HermiteMoments) -> Float[np.ndarray, "k k"]:
    s, k = moments.direct, len(moments.mixed)
    return np.array([[s[row + column] for column in range(k)] for row in range(k)])


def hankel_condition(moments: HermiteMoments) -> float:
    """Condition number of the system that Prony's method solves: it says which direction to look along."""
    return float(np.linalg.cond(_hankel(moments)))


def mixture_from_moments(moments: HermiteMoments) -> tuple[Float[np.ndarray, " k"], Float[np.ndarray, "d k"]]:
    """Weights and centres: a Hankel system gives the polynomial whose roots are ξ_j, Vandermonde systems the rest."""
    s, k = moments.direct, len(moments.mixed)
    tail = np.linalg.solve(_hankel(moments), -s[k : 2 * k])
    roots = np.roots(np.concatenate([[1.0], tail[::-1]])).real
    powers = roots[None, :] ** np.arange(k)[:, None]
    weights = np.linalg.solve(powers, s[:k])
    return weights, np.linalg.solve(powers, moments.mixed).T / weights


def transitions_from_density(
    truth: GaussianHMM, centres: Float[np.ndarray, "d k"], rng: np.random.Generator, tries: int = 50
) -> Float[np.ndarray, "k k"]:
    """T = Ψ⁻ᵀ [(2π)^{d/2} p(x_a | x_b)] Φ⁻¹ at k points a, b where both matrices are best conditioned.

    Only values of the density p(x₂ | x₁) of `truth` are read; ψ(x)_i = exp(−‖x − μ_i‖²/2).
    """
    d, k = centres.shape
    draws = [centres + rng.normal(scale=0.5, size=(d, k)) for _ in range(tries)]
    points = min(draws, key=lambda x: np.linalg.cond(_psi(x.T, centres))).T
    psi = _psi(points, centres)
    phi = psi / psi.sum(1, keepdims=True)
    values = (2 * np.pi) ** (d / 2) * truth.density(points, points)
    return np.linalg.solve(psi, values) @ np.linalg.inv(phi.T)


def _psi(x: np.ndarray, centres: np.ndarray) -> Float[np.ndarray, "n k"]:
    return np.exp(-((x[:, :, None] - centres) ** 2).sum(1) / 2)
