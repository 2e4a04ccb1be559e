"""Stage 1 of the theory: gradient descent of the neurons on the task of length 1, by exact enumeration."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from sandlab.circuits.reasoning.ideal import ValueFeatures
from sandlab.errors import integer, number
from sandlab.models.reasoning.smooth_relu import modified_smooth_relu, smooth_relu, smooth_relu_slope
from sandlab.random import rng
from sandlab.worlds.reasoning.actions import as_action

__all__ = [
    "FeatureDescent",
    "FeatureTraining",
    "RetrievalDescent",
    "RetrievalTraining",
    "train_features",
    "train_retrieval",
]


@dataclass(frozen=True)
class FeatureTraining:
    """Population gradient descent of the value neurons on T¹.

    action       of the task; vocab: d; clip_factor: B = C_B log d; power, threshold: q and ϱ
    neurons      m per class
    init_std     σ_0; bias: μ. The asymptotic choices are not small at laptop d, so both are given
    slope        ϖ of the modified smooth ReLU (Assumption B.2), which ends at −B; 0: the plain one
    phases       pairs (learning rate, steps), one after another
    snapshots    how often the weights are kept
    """

    action: str = "C6"
    vocab: int = 200
    clip_factor: float = 2.0
    power: int = 4
    threshold: float = 1.0
    neurons: int = 12
    init_std: float = 0.02
    bias: float = 0.05
    slope: float = 0.0
    phases: tuple[tuple[float, int], ...] = ((5.0, 10_000),)
    snapshots: int = 50
    seed: int = 0

    def __post_init__(self) -> None:
        integer("neurons", self.neurons, low=1)
        number("init_std", self.init_std, low=0.0)
        number("slope", self.slope, low=0.0)

    @property
    def clip(self) -> float:
        return self.clip_factor * math.log(self.vocab)

    @property
    def steps(self) -> int:
        return sum(count for _, count in self.phases)


@dataclass(frozen=True)
class FeatureDescent:
    """What the descent left behind.

    initial, final   weights of the neurons
    kept_steps, kept_actions, kept_values   snapshots of V(g) and V(y)
    reached          (class, neuron, action, value): first step at which V(φ) ≥ ½ log d (−1: never)
    taken_off        the same for V(φ) ≥ d^0.1 μ
    converged        (class, action, value): first step with E[1 − logit] ≤ d^{−1/2} on the pair (−1: never)
    loss             at the snapshots; drift: largest change of Σ_g V(g) − Σ_y V(y) of a neuron
    accuracy         share of pairs whose most likely class is right at the end
    """

    initial: ValueFeatures
    final: ValueFeatures
    kept_steps: np.ndarray
    kept_actions: np.ndarray
    kept_values: np.ndarray
    reached: np.ndarray
    taken_off: np.ndarray
    converged: np.ndarray
    loss: np.ndarray
    drift: float
    accuracy: float


def train_features(plan: FeatureTraining) -> FeatureDescent:
    """Gradient descent on Loss_5^1 with uniform attention: Λ = ½(V(g) + V(y)) + μ, F_j = min(Σ_r sReLU(Λ), B).

    −∂/∂V_{jr}(g) = ½ E[ξ_j sReLU′(Λ_{jr}) 1{g}] with ξ_j = 1{g·y = j} − p_j, and the same for y: every sample moves one
    action and one value by the same amount, so Σ_g V(g) − Σ_y V(y) of a neuron never changes (Lemmas B.7 and C.7).
    """
    action, draws = as_action(plan.action), rng(plan.seed, "features")
    shape = (action.values, plan.neurons)
    on_action, on_value = (
        plan.init_std * torch.randn(*shape, size, generator=draws, dtype=torch.float64)
        for size in (action.elements, action.values)
    )
    initial = ValueFeatures(on_action.clone(), on_value.clone())
    right = torch.as_tensor(action.array)[None] == torch.arange(action.values)[:, None, None]
    before = on_action.sum(-1) - on_value.sum(-1)
    log = _FeatureLog(plan, action.elements, action.values)
    step = 0
    for rate, count in plan.phases:
        for _ in range(count):
            pair, probs, push = _feature_push(plan, on_action, on_value, right)
            log.take(step, pair, probs, right, on_action, on_value)
            on_action = on_action + rate * push.sum(-1) / 2
            on_value = on_value + rate * push.sum(-2) / 2
            step += 1
    pair, probs, _ = _feature_push(plan, on_action, on_value, right)
    log.take(step, pair, probs, right, on_action, on_value, last=True)
    drift = float((on_action.sum(-1) - on_value.sum(-1) - before).abs().max())
    accuracy = float((probs.argmax(0) == torch.as_tensor(action.array)).double().mean())
    return FeatureDescent(
        initial,
        ValueFeatures(on_action, on_value),
        np.array(log.steps),
        np.stack(log.actions),
        np.stack(log.values),
        log.reached.numpy(),
        log.taken_off.numpy(),
        log.converged.numpy(),
        np.array(log.loss),
        drift,
        accuracy,
    )


def _feature_push(
    plan: FeatureTraining, on_action: Tensor, on_value: Tensor, right: Tensor
) -> tuple[Tensor, Float[Tensor, "class action value"], Float[Tensor, "class neuron action value"]]:
    """V(φ), the predicted probabilities, and ξ·sReLU′ averaged over all pairs (g, y)."""
    pair = (on_action.unsqueeze(-1) + on_value.unsqueeze(-2)) / 2
    active, gain = _activation(plan, pair + plan.bias)
    whole = active.sum(1)
    logits = whole.clamp(max=plan.clip)
    rest = logits.new_full((1, *logits.shape[1:]), math.log(plan.vocab - len(logits)))
    probs = (logits - torch.cat([logits, rest]).logsumexp(0)).exp()
    # No gradient passes where a logit is cut.
    error = torch.where(whole < plan.clip, right.double() - probs, 0.0) / right[0].numel()
    return pair, probs, error.unsqueeze(1) * gain


def _activation(plan: FeatureTraining, x: Tensor) -> tuple[Tensor, Tensor]:
    """The (modified) smooth ReLU of the plan, and its derivative."""
    plain, gain = smooth_relu(x, plan.power, plan.threshold), smooth_relu_slope(x, plan.power, plan.threshold)
    if not plan.slope:
        return plain, gain
    below = torch.where(x > -plan.clip, x.clamp(-plan.slope, 0.0), 0.0)
    return modified_smooth_relu(x, plan.power, plan.threshold, plan.slope, plan.clip), gain + below


class _FeatureLog:
    """Snapshots and hitting times of a descent."""

    def __init__(self, plan: FeatureTraining, elements: int, values: int) -> None:
        shape = (values, plan.neurons, elements, values)
        self.every = max(1, plan.steps // plan.snapshots)
        self.high, self.low = 0.5 * math.log(plan.vocab), plan.vocab**0.1 * plan.bias
        self.sure = plan.vocab**-0.5
        self.reached, self.taken_off = torch.full(shape, -1), torch.full(shape, -1)
        self.converged = torch.full((values, elements, values), -1)
        self.steps: list[int] = []
        self.actions: list[np.ndarray] = []
        self.values: list[np.ndarray] = []
        self.loss: list[float] = []

    def take(
        self,
        step: int,
        pair: Tensor,
        probs: Tensor,
        right: Tensor,
        on_action: Tensor,
        on_value: Tensor,
        last: bool = False,
    ) -> None:
        # Thresholds are crossed once and slowly: looking at every fourth step is enough.
        if step % 4 == 0 or last:
            self.reached[(pair >= self.high) & (self.reached < 0)] = step
            self.taken_off[(pair >= self.low) & (self.taken_off < 0)] = step
            self.converged[right & (1 - probs <= self.sure) & (self.converged < 0)] = step
        if step % self.every == 0 or last:
            self.steps.append(step)
            self.actions.append(on_action.numpy().copy())
            self.values.append(on_value.numpy().copy())
            self.loss.append(float(-probs[right].log().mean()))


@dataclass(frozen=True)
class RetrievalTraining:
    """Population gradient descent of the slot-4 neurons on T¹: which variable does the attended predicate produce?

    variables, neurons   |X| and m; actions, values: |G| and |Y| of the task
    clip_factor, power, threshold, init_std, bias   as in `FeatureTraining`; vocab: d
    """

    variables: int = 50
    actions: int = 6
    values: int = 6
    neurons: int = 8
    clip_factor: float = 2.0
    power: int = 4
    threshold: float = 1.0
    init_std: float = 0.02
    bias: float = 0.05
    lr: float = 20.0
    iterations: int = 4000
    batch: int = 0
    snapshots: int = 40
    seed: int = 0

    @property
    def vocab(self) -> int:
        return self.variables + self.actions + self.values + 1

    @property
    def clip(self) -> float:
        return self.clip_factor * math.log(self.vocab)


@dataclass(frozen=True)
class RetrievalDescent:
    """Snapshots of the slot-4 neurons (snapshot, class, neuron, block 1 token), and what the end is worth.

    weights    block 1 of every variable's neurons at the snapshots
    final      (class, neuron, slot, token) at the end; initial: at the start
    """

    eval_steps: np.ndarray
    weights: np.ndarray
    initial: np.ndarray
    final: np.ndarray
    loss: np.ndarray
    accuracy: float


def train_retrieval(plan: RetrievalTraining) -> RetrievalDescent:
    """Gradient descent on Loss_4^1 with uniform attention: h = ½Z_pred + ½Z_ans; all five blocks of W_4 learn.

    The inputs (x_1, g, x_0, x_0, y) are drawn afresh in every step (8·d of them, or `batch`); the gradient is Fact A.1.
    """
    d, draws = plan.vocab, rng(plan.seed, "retrieval")
    classes = plan.variables
    weight = plan.init_std * torch.randn(classes, plan.neurons, 5, d, generator=draws, dtype=torch.float64)
    initial, kept, losses, marks = weight.clone(), [], [], []
    every, size = max(1, plan.iterations // plan.snapshots), plan.batch or 8 * d
    for step in range(plan.iterations + 1):
        tokens = _retrieval_inputs(plan, size, draws)
        inner, probs, error = _retrieval_error(plan, weight, tokens)
        if step % every == 0 or step == plan.iterations:
            marks.append(step)
            kept.append(weight[:, :, 0, :classes].numpy().copy())
            losses.append(float(-probs.gather(1, tokens[:, :1]).log().mean()))
        if step == plan.iterations:
            break
        push = error.unsqueeze(-1) * smooth_relu_slope(inner, plan.power, plan.threshold)  # (n, class, neuron)
        for slot in range(5):
            moved = torch.zeros(d, classes, plan.neurons, dtype=torch.float64).index_add_(0, tokens[:, slot], push)
            weight[:, :, slot] += plan.lr * 0.5 * moved.permute(1, 2, 0) / size
    accuracy = float((probs.argmax(1) == tokens[:, 0]).double().mean())
    return RetrievalDescent(
        np.array(marks), np.stack(kept), initial.numpy(), weight.numpy(), np.array(losses), accuracy
    )


def _retrieval_inputs(plan: RetrievalTraining, size: int, draws: torch.Generator) -> Tensor:
    """Tokens of the five slots: produced, action, consumed, answered (= consumed), value."""
    first = torch.randint(plan.variables, (size,), generator=draws)
    second = torch.randint(plan.variables - 1, (size,), generator=draws)
    second = second + (second >= first)
    action = plan.variables + torch.randint(plan.actions, (size,), generator=draws)
    value = plan.variables + plan.actions + torch.randint(plan.values, (size,), generator=draws)
    return torch.stack([first, action, second, second, value], 1)


def _retrieval_error(plan: RetrievalTraining, weight: Tensor, tokens: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Λ of every neuron, the probabilities of the variables, and ξ where the logit is not cut."""
    inner = sum(weight[:, :, slot].permute(2, 0, 1)[tokens[:, slot]] for slot in range(5)) / 2 + plan.bias
    assert isinstance(inner, Tensor)
    whole = smooth_relu(inner, plan.power, plan.threshold).sum(-1)
    logits = whole.clamp(max=plan.clip)
    rest = logits.new_full((len(logits), 1), math.log(plan.vocab - plan.variables))
    probs = (logits - torch.cat([logits, rest], 1).logsumexp(1, keepdim=True)).exp()
    error = torch.zeros_like(probs).scatter_(1, tokens[:, :1], 1.0) - probs
    return inner, probs, torch.where(whole < plan.clip, error, 0.0)
