"""The theory of the first step on parity: population gradients, weights and correlations in closed form, and bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from sandlab.errors import integer, number
from sandlab.learning.distillation.two_stages import TheoryWeights, majority_coefficient

__all__ = [
    "characters",
    "first_step_weights",
    "majority_gap",
    "network_correlation",
    "oneshot_samples",
    "pair_correlation",
    "parity_gradient",
    "progressive_samples",
    "query_lower_bound",
    "teacher_samples",
]


def characters(x: Float[Tensor, "example feature"], sets: Sequence[Sequence[int]]) -> Float[Tensor, "example set"]:
    """χ_A(x) = ∏_{i∈A} x_i."""
    return torch.stack([x[:, list(chosen)].prod(1) for chosen in sets], 1)


def _others(w: Float[Tensor, "neuron feature"], k: int) -> Float[Tensor, "neuron feature"]:
    """χ_{[k]∖j}(w) for j < k, χ_{[k]∪j}(w) beyond: for signs both are χ_{[k]}(w) · w_j."""
    return w[:, :k].prod(1, keepdim=True) * w


def parity_gradient(start: TheoryWeights) -> Float[Tensor, "neuron feature"]:
    """E ∂ℓ/∂w_ij at the start: −½ a_i ζ_{k−1} χ_{[k]∖j}(w_i) in the support, −½ a_i ζ_{k+1} χ_{[k]∪j}(w_i) off it.

    Claim 7, without its spurious minus. Holds for biases |b| < 1: the sign of ⟨w, x⟩ + b is that of ⟨w, x⟩.
    """
    d, k = start.w.shape[1], start.order
    zeta = torch.full((d,), majority_coefficient(d, k + 1), dtype=torch.float64)
    zeta[:k] = majority_coefficient(d, k - 1)
    return -0.5 * start.a.unsqueeze(1) * zeta * _others(start.w, k)


def first_step_weights(start: TheoryWeights) -> Float[Tensor, "neuron feature"]:
    """Lemma 63: sign(a_i ζ_{k−1}) χ_{[k]∖j}(w_i)/(2k) in the support, (k − 1)/((d − k)2k) in size off it."""
    d, k = start.w.shape[1], start.order
    zeta = torch.full((d,), majority_coefficient(d, k + 1), dtype=torch.float64)
    zeta[:k] = majority_coefficient(d, k - 1)
    size = zeta / (2 * k * abs(majority_coefficient(d, k - 1)))
    return start.a.sign().unsqueeze(1) * size * _others(start.w, k)


def pair_correlation(w: Float[Tensor, "feature"], b: float, x: Float[Tensor, "example feature"]) -> Tensor:
    """E[(σ(⟨w, x⟩ + b) − σ(−⟨w, x⟩ + b)) x_u] of a pair of neurons, for every coordinate u (Lemma 64)."""
    drive = x @ w
    return ((drive + b).relu() - (b - drive).relu()) @ x / len(x)


def network_correlation(weights: TheoryWeights, x: Float[Tensor, "example feature"]) -> Float[Tensor, "feature"]:
    """E[f(x) x_u] for every coordinate u."""
    return weights(x) @ x / len(x)


def majority_gap(d: int, k: int) -> float:
    """|ζ_{k−1}| − |ζ_{k+1}|, at least 0.03 (d − 1)^(−(k−1)/2)."""
    return abs(majority_coefficient(d, k - 1)) - abs(majority_coefficient(d, k + 1))


def teacher_samples(d: int, k: int, epsilon: float = 0.1, delta: float = 0.1) -> float:
    """d^(k−1) k² log(dk/ε) + 2^k d² k⁴ ε⁻² log(k/δ): orders of growth for the teacher (Lemma 65, |ζ|⁻² for |ζ|²)."""
    _check(d, k, epsilon, delta)
    return d ** (k - 1) * k**2 * math.log(d * k / epsilon) + _second(d, k, epsilon, delta)


def progressive_samples(d: int, k: int, width: int, epsilon: float = 0.1, delta: float = 0.1) -> float:
    """k² log(dm̃/δ) + 2^k d² k⁴ ε⁻² log(k/δ): with an intermediate teacher (Theorem 23)."""
    _check(d, k, epsilon, delta)
    return k**2 * math.log(d * width / delta) + _second(d, k, epsilon, delta)


def oneshot_samples(d: int, k: int, width: int, power: float = 2.0) -> float:
    """d^min(2c, k−1)/m̃ at least, for a final teacher that is d^(−c) near to the truth (Theorem 23)."""
    _check(d, k, 0.1, 0.1)
    return float(d ** min(2 * power, k - 1) / width)


def query_lower_bound(d: int, k: int, width: int, accuracy: float, delta: float = 0.1) -> float:
    """½ C(d, k) δ τ²/m: with so few steps of gradients of accuracy τ the loss stays at least 1 − τ (Lemma 66)."""
    _check(d, k, 0.1, delta)
    return 0.5 * math.comb(d, k) * delta * number("accuracy", accuracy, low=0.0) ** 2 / integer("width", width, low=1)


def _second(d: int, k: int, epsilon: float, delta: float) -> float:
    return float(2**k * d**2 * k**4 / epsilon**2 * math.log(k / delta))


def _check(d: int, k: int, epsilon: float, delta: float) -> None:
    integer("k", k, low=1, high=integer("d", d, low=1))
    number("epsilon", epsilon, low=0.0)
    number("delta", delta, low=0.0, high=1.0)
