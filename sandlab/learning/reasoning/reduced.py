"""Training of attention with fixed neurons, reduced to two numbers: β₃ (to predicates) and β₄ (to answers)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from sandlab.circuits.reasoning.ideal import ValueFeatures, ideal_features
from sandlab.errors import integer, require
from sandlab.models.reasoning.smooth_relu import smooth_relu
from sandlab.random import rng as make_rng
from sandlab.worlds.reasoning.actions import GroupAction, as_action
from sandlab.worlds.reasoning.lego import track_values

__all__ = [
    "Chains",
    "Descent",
    "ReducedLego",
    "attention_left_over",
    "attention_masses",
    "enumerate_chains",
    "sample_chains",
]


@dataclass(frozen=True)
class Chains:
    """Actions g_1 … g_L and values y_0 … y_L of chains."""

    actions: Int[Tensor, "n length"]
    values: Int[Tensor, "n step"]

    def __len__(self) -> int:
        return len(self.actions)

    @property
    def length(self) -> int:
        return self.actions.shape[1]


def sample_chains(action: str | GroupAction, length: int, n: int, *, rng: torch.Generator) -> Chains:
    """Random chains: y_0 and all actions uniform."""
    given = as_action(action)
    actions = torch.randint(given.elements, (n, length), generator=rng)
    start = torch.randint(given.values, (n,), generator=rng)
    return _followed(given, actions, start)


def enumerate_chains(action: str | GroupAction, length: int) -> Chains:
    """All |G|^L · |Y| chains of a length."""
    given = as_action(action)
    require(given.elements**length * given.values <= 10**6, "length", length, "short enough to enumerate")
    sizes = [range(given.elements)] * length + [range(given.values)]
    grid = torch.cartesian_prod(*(torch.tensor(list(each)) for each in sizes))
    return _followed(given, grid[:, :-1], grid[:, -1])


def _followed(action: GroupAction, actions: Tensor, start: Tensor) -> Chains:
    tables = (torch.as_tensor(action.array), torch.as_tensor(action.group.products))
    return Chains(actions, track_values(actions, start, *tables))


def attention_masses(length: int, step: int, beta3: float, beta4: float) -> tuple[float, float, float]:
    """Attention on predicate ℓ, on answer ℓ − 1, and on each of the L + ℓ − 2 other clauses.

    e^β₃/N, e^β₄/N, 1/N with N = e^β₃ + e^β₄ + L + ℓ − 2.
    """
    total = math.exp(beta3) + math.exp(beta4) + length + step - 2
    return math.exp(beta3) / total, math.exp(beta4) / total, 1 / total


def attention_left_over(length: int, step: int, beta3: float, beta4: float) -> float:
    """ε^{L,ℓ} = (L + ℓ − 2)/(e^β₃ + e^β₄ + L + ℓ − 2)."""
    predicate, answer, _ = attention_masses(length, step, beta3, beta4)
    return 1 - predicate - answer


@dataclass(frozen=True)
class Descent:
    """Gradient descent on (β₃, β₄): what was logged at which step.

    eval_steps, loss, beta3, beta4   one entry per logged step, the first and the last included
    reached                     whether the loss fell to the threshold (True without one)
    """

    eval_steps: np.ndarray
    loss: np.ndarray
    beta3: np.ndarray
    beta4: np.ndarray
    reached: bool = True

    @property
    def end(self) -> tuple[float, float]:
        return float(self.beta3[-1]), float(self.beta4[-1])

    def left_over(self, length: int = 2, step: int = 2) -> np.ndarray:
        """ε^{L,ℓ} at every logged step."""
        return np.array([attention_left_over(length, step, *betas) for betas in zip(self.beta3, self.beta4)])

    def gap(self, length: int = 2, step: int = 2) -> np.ndarray:
        """Δ^{L,ℓ}, signed: attention on the predicate minus that on the answer."""
        masses = [attention_masses(length, step, *betas) for betas in zip(self.beta3, self.beta4)]
        return np.array([predicate - answer for predicate, answer, _ in masses])


@dataclass(frozen=True)
class ReducedLego:
    """The theory's transformer with β₃ and β₄ on the diagonals of Q and given value neurons.

    action       of the chains
    vocab        d: the d − |Y| other classes have logit 0 and create the log d thresholds
    clip_factor  C_B, with B = C_B log d
    power, threshold, variant   of the smooth ReLU
    bias         b of every neuron
    features     value neurons; None: the ideal ones

    By symmetry over the variables the training of Q reduces to these two numbers; in the full model each diagonal entry
    gets 1/|X| of their gradient. Derived from Huang et al. 2025, section 6.2.
    """

    action: str | GroupAction = "C6"
    vocab: int = 200
    clip_factor: float = 4.0
    power: int = 4
    threshold: float = 0.1
    variant: str = "zero-neg"
    bias: float = 0.0
    features: ValueFeatures | None = field(default=None, repr=False, compare=False)

    @property
    def clip(self) -> float:
        return self.clip_factor * math.log(self.vocab)

    @property
    def neurons(self) -> ValueFeatures:
        return ideal_features(self.action, self.clip) if self.features is None else self.features

    def with_features(self, features: ValueFeatures) -> ReducedLego:
        return replace(self, features=features)

    def logits(
        self, chains: Chains, step: int, beta3: Tensor | float, beta4: Tensor | float
    ) -> Float[Tensor, "n class"]:
        """F_j at step ℓ of the chains, given answers 0 … ℓ − 1, cut at B."""
        base, routed = self._parts(chains, step)
        return self._logits(base, routed, chains.length + step - 2, beta3, beta4)

    def loss(self, chains: Chains, step: int, beta3: Tensor | float, beta4: Tensor | float) -> Tensor:
        """Loss_5^{L,ℓ} = E[log(Σ_j e^{F_j} + d − |Y|) − F_{y_ℓ}]."""
        base, routed = self._parts(chains, step)
        return self._loss(base, routed, chains.values[:, step], chains.length + step - 2, beta3, beta4)

    def descend(
        self,
        terms: tuple[tuple[int, int], ...],
        *,
        lr: float,
        steps: int,
        start: tuple[float, float] = (0.0, 0.0),
        below: float | None = None,
        samples: int = 1500,
        seed: int = 0,
        log: int = 200,
        labels: Int[Tensor, "n"] | None = None,
    ) -> Descent:
        """Gradient descent on the sum of Loss_5^{L,ℓ} over `terms` (L, ℓ), until it is at most `below`.

        L = 2 is enumerated where that is small, other lengths use `samples` fixed chains. `labels` replaces the true
        answers of a single term (a teacher's).
        """
        integer("steps", steps, low=1)
        prepared = [self._prepare(length, step, samples, seed, labels) for length, step in terms]
        betas = torch.tensor(start, dtype=torch.float64, requires_grad=True)
        kept: list[tuple[int, float, float, float]] = []
        at = {round(value) for value in np.geomspace(1, steps, log)} | {0, steps}
        reached = below is None
        for index in range(steps + 1):
            loss = torch.stack([self._loss(*each, betas[0], betas[1]) for each in prepared]).sum()
            done = below is not None and float(loss.detach()) <= below
            if index in at or done:
                first, second = betas.detach().tolist()
                kept.append((index, float(loss.detach()), first, second))
            if done or index == steps:
                reached = reached or done
                break
            (gradient,) = torch.autograd.grad(loss, betas)
            betas = (betas - lr * gradient).detach().requires_grad_(True)
        columns = np.array(kept).T
        return Descent(columns[0].astype(int), columns[1], columns[2], columns[3], reached)

    def _prepare(
        self, length: int, step: int, samples: int, seed: int, labels: Tensor | None
    ) -> tuple[Tensor, Tensor, Tensor, int]:
        action = as_action(self.action)
        small = action.elements**length * action.values <= 10**5
        if small and length <= 2:
            chains = enumerate_chains(action, length)
        else:
            chains = sample_chains(action, length, samples, rng=make_rng(seed, "chains", length))
        base, routed = self._parts(chains, step)
        return base, routed, chains.values[:, step] if labels is None else labels, length + step - 2

    def _parts(self, chains: Chains, step: int) -> tuple[Tensor, Tensor]:
        """Σ over all clauses of ⟨W, Z_k⟩, and its parts of predicate ℓ and answer ℓ − 1: (n, class, neuron), (2, …)."""
        neurons = self.neurons
        by_action, by_value = neurons.actions.movedim(-1, 0), neurons.values.movedim(-1, 0)
        base = by_action[chains.actions].sum(1) + by_value[chains.values[:, :step]].sum(1)
        return base, torch.stack([by_action[chains.actions[:, step - 1]], by_value[chains.values[:, step - 1]]])

    def _logits(
        self, base: Tensor, routed: Tensor, others: int, beta3: Tensor | float, beta4: Tensor | float
    ) -> Tensor:
        first, second = (torch.as_tensor(beta, dtype=torch.float64).exp() for beta in (beta3, beta4))
        total = first + second + others
        inner = (base + (first - 1) * routed[0] + (second - 1) * routed[1]) / total + self.bias
        active = smooth_relu(inner, self.power, self.threshold, self.variant)
        return active.sum(-1).clamp(max=self.clip)

    def _loss(
        self, base: Tensor, routed: Tensor, targets: Tensor, others: int, beta3: Tensor | float, beta4: Tensor | float
    ) -> Tensor:
        logits = self._logits(base, routed, others, beta3, beta4)
        rest = logits.new_full((len(logits), 1), math.log(self.vocab - logits.shape[1]))
        whole = torch.cat([logits, rest], 1).logsumexp(1)
        return (whole - logits.gather(1, targets.unsqueeze(1)).squeeze(1)).mean()
