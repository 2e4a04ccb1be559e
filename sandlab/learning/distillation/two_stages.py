"""The theory's algorithm: one step on the hidden weights with a large batch, then SGD on the output weights."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from sandlab.errors import integer, require
from sandlab.models.base import seeded
from sandlab.models.distillation.theory_perceptron import TheoryPerceptron

__all__ = ["TheoryWeights", "every_sign", "first_stage", "majority_coefficient", "recovers_support", "second_stage"]


def majority_coefficient(d: int, j: int) -> float:
    """ζ_j: the Fourier coefficient of the majority of d signs (d odd) at any set of j of them; 0 for even j.

    (−1)^((j−1)/2) · C((d−1)/2, (j−1)/2)/C(d−1, j−1) · 2^(1−d) · C(d−1, (d−1)/2)
    """
    integer("d", d, low=1)
    require(d % 2 == 1, "d", d, "odd")
    integer("j", j, low=0, high=d)
    if j % 2 == 0:
        return 0.0
    half, below = (d - 1) // 2, (j - 1) // 2
    share = math.comb(half, below) / math.comb(d - 1, j - 1)
    return (-1) ** below * share * (math.comb(d - 1, half) / 2 ** (d - 1))


@dataclass(frozen=True)
class TheoryWeights:
    """w, b, a of f(x) = Σ a_i σ(⟨w_i, x⟩ + b_i), in float64."""

    w: Float[Tensor, "neuron feature"]
    b: Float[Tensor, "neuron"]
    a: Float[Tensor, "neuron"]
    order: int

    @classmethod
    def drawn(cls, d: int, width: int, order: int, *, seed: int, aligned: bool = False) -> TheoryWeights:
        """The symmetric start; `aligned`: in-support weights of all neurons have the sign of ζ_{k−1}."""
        sign = int(math.copysign(1, majority_coefficient(d, order - 1))) if aligned else 0
        with seeded(seed):
            model = TheoryPerceptron(features=d, width=width, order=order, aligned=sign)
        return cls.of(model)

    @classmethod
    def of(cls, model: TheoryPerceptron) -> TheoryWeights:
        w, b, a = (value.detach().double() for value in (model.weight, model.bias, model.output[0]))
        return cls(w, b, a, model.config.order)

    def __call__(self, x: Float[Tensor, "example feature"]) -> Float[Tensor, "example"]:
        return (x @ self.w.mT + self.b).relu() @ self.a

    @property
    def rate(self) -> float:
        """η₁ = m/(k |ζ_{k−1}|)."""
        return len(self.a) / (self.order * abs(majority_coefficient(self.w.shape[1], self.order - 1)))

    def hinge_slope(self, x: Tensor, target: Float[Tensor, "example"]) -> Float[Tensor, "neuron feature"]:
        """Mean of ∂/∂w of (1 − f(x) · target)₊."""
        active = (1 - self(x) * target > 0).to(x.dtype) * target
        on = (x @ self.w.mT + self.b > 0).to(x.dtype)
        return -self.a.unsqueeze(1) * (on * active.unsqueeze(1)).mT @ x / len(x)


def every_sign(d: int) -> Float[Tensor, "corner d"]:
    """All of {±1}^d, for exact expectations."""
    integer("d", d, low=1, high=20)
    return torch.tensor(list(itertools.product([1.0, -1.0], repeat=d)), dtype=torch.float64)


def first_stage(start: TheoryWeights, x: Tensor, target: Tensor) -> TheoryWeights:
    """W ← W − η₁(∇ + 2λ₁W) with 2η₁λ₁ = 1: the initial weights cancel and W is −η₁ times the gradient."""
    return TheoryWeights(-start.rate * start.hinge_slope(x, target), start.b, start.a, start.order)


def second_stage(
    weights: TheoryWeights,
    draw: Callable[[int], Tensor],
    target: Callable[[Tensor], Tensor],
    *,
    steps: int,
    held_out: Tensor,
    labels: Tensor,
    every: int = 100,
) -> tuple[TheoryWeights, list[float]]:
    """SGD on the output weights with batch 1 and η₂ = 4k^1.5/(d √(m(T₂ − 1))); the held-out hinge losses on the way."""
    d, m, k = weights.w.shape[1], len(weights.a), weights.order
    rate = 4 * k**1.5 / (d * math.sqrt(m * max(1, steps - 1)))
    examples = draw(steps)
    features, targets = (examples @ weights.w.mT + weights.b).relu(), target(examples)
    tested, a, losses = (held_out @ weights.w.mT + weights.b).relu(), weights.a.clone(), []
    for step in range(steps):
        if step % every == 0:
            losses.append(float((1 - (tested @ a) * labels).relu().mean()))
        if float(features[step] @ a) * float(targets[step]) < 1:
            a += rate * targets[step] * features[step]
    losses.append(float((1 - (tested @ a) * labels).relu().mean()))
    return TheoryWeights(weights.w, weights.b, a, k), losses


def recovers_support(weights: TheoryWeights, x: Tensor, target: Tensor) -> bool:
    """Whether the k coordinates with the largest mean |gradient| of the first step are the first k."""
    slope = weights.hinge_slope(x, target).abs().mean(0)
    return set(slope.topk(weights.order).indices.tolist()) == set(range(weights.order))
