"""How far a network with two diagonals reaches: dilution of attention, and the length at which answers fail."""

from __future__ import annotations

import math

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor

from sandlab.learning.reasoning.reduced import Chains, ReducedLego, attention_left_over, sample_chains
from sandlab.models.reasoning.smooth_relu import smooth_relu
from sandlab.random import rng as make_rng
from sandlab.registry import register
from sandlab.worlds.reasoning.actions import GroupAction, as_action

__all__ = ["chain_logits", "dilution_bounds", "length_horizon", "measured_horizon", "solved_chains"]


@register("lenses")
def length_horizon(action: str | GroupAction, beta3: float, beta4: float | None = None) -> float:
    """L* ≈ 1 + (e^β₃ + e^β₄)/(2(1 − 2/n)): the length at which the right neuron turns off on average.

    The right neuron is positive when e^β₃ + e^β₄ + 2c_g + 2c_y > L + ℓ − 1, where c_g and c_y count other clauses with
    the same action and value; on average c_g = L/n and c_y = ℓ/n. For simply transitive actions.
    """
    n = as_action(action).values
    total = math.exp(beta3) + math.exp(beta3 if beta4 is None else beta4)
    return 1 + total / (2 * (1 - 2 / n)) if n > 2 else math.inf


def chain_logits(model: ReducedLego, chains: Chains, beta3: float, beta4: float) -> Tensor:
    """F_j at every step of the chains (n, step, class), all earlier answers given."""
    neurons, length = model.neurons, chains.length
    by_action, by_value = neurons.actions.movedim(-1, 0), neurons.values.movedim(-1, 0)
    shown = by_value[chains.values[:, :-1]]
    base = by_action[chains.actions].sum(1, keepdim=True) + shown.cumsum(1)
    steps = torch.arange(1, length + 1, dtype=torch.float64).view(1, -1, 1, 1)
    first, second = math.exp(beta3), math.exp(beta4)
    total = first + second + length + steps - 2
    inner = (base + (first - 1) * by_action[chains.actions] + (second - 1) * shown) / total + model.bias
    return smooth_relu(inner, model.power, model.threshold, model.variant).sum(-1).clamp(max=model.clip)


def solved_chains(model: ReducedLego, chains: Chains, beta3: float, beta4: float) -> Bool[Tensor, "n"]:
    """Whether the right value beats every other class at every step; ties, also at logit 0, are errors."""
    logits = chain_logits(model, chains, beta3, beta4)
    target = chains.values[:, 1:].unsqueeze(-1)
    right = logits.gather(-1, target).squeeze(-1)
    others = logits.scatter(-1, target, 0.0).amax(-1)  # the classes that are no values have logit 0
    return (right > others).all(1)


def measured_horizon(
    model: ReducedLego,
    beta3: float,
    beta4: float | None = None,
    *,
    level: float = 0.9,
    chains: int = 100,
    most: int = 4000,
    seed: int = 0,
) -> int:
    """Largest length at which at least `level` of random chains are solved, by bisection."""
    second = beta3 if beta4 is None else beta4

    def share(length: int) -> float:
        drawn = sample_chains(model.action, length, chains, rng=make_rng(seed, "horizon", length))
        return float(solved_chains(model, drawn, beta3, second).double().mean())

    low, high = 1, most
    while high - low > max(1, low // 100):
        middle = (low + high) // 2
        low, high = (middle, high) if share(middle) >= level else (low, middle)
    return low


@register("lenses")
def dilution_bounds(length: int, beta3: float, beta4: float) -> dict[str, float]:
    """ε^{2,2}, ε^{L,2}, ε^{2L,2} and the largest ε^{2L,ℓ}, with the factors that the theory bounds by 2 and 4.

    ε^{2L,2} ≤ 2ε^{L,2} (Remark F.1); ε^{2L,ℓ} ≤ 4ε^{L,2} for all ℓ ≤ 2L; ε^{L,ℓ} ≤ 2L/(2L + 2(1/ε^{2,2} − 1)).
    """
    at, twice = attention_left_over(length, 2, beta3, beta4), attention_left_over(2 * length, 2, beta3, beta4)
    worst = max(attention_left_over(2 * length, step, beta3, beta4) for step in range(1, 2 * length + 1))
    two = attention_left_over(2, 2, beta3, beta4)
    longest = max(attention_left_over(length, step, beta3, beta4) for step in range(1, length + 1))
    law = 2 * length / (2 * length + 2 * (1 / two - 1))
    found = {"two": two, "at": at, "twice": twice, "doubling": twice / at, "any step": worst / at}
    return {**found, "longest": longest, "law": law} | {"slack": float(np.subtract(law, longest))}
