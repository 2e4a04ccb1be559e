"""What the value neurons have learnt: magnitudes, cancellation, order of learning, phases."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from scipy import stats
from torch import Tensor

from sandlab.circuits.reasoning.ideal import ValueFeatures
from sandlab.learning.reasoning.features import FeatureDescent, FeatureTraining, RetrievalDescent, RetrievalTraining
from sandlab.registry import register
from sandlab.worlds.reasoning.actions import GroupAction, as_action

__all__ = [
    "FeatureReport",
    "PhaseTimes",
    "RetrievalReport",
    "curriculum_order",
    "feature_magnitudes",
    "feature_report",
    "feature_shape",
    "initial_statistics",
    "order_agreement",
    "phase_times",
    "retrieval_growth",
    "shape_tolerances",
]


@register("lenses")
def feature_magnitudes(features: ValueFeatures, action: str | GroupAction) -> Float[Tensor, "class neuron value"]:
    """V_{j,r} of the super-combination (j, y): the mean of V(φ) over the fibre of (j, y) with the value y.

    For simply transitive actions the fibre is one action and this is V(φ) of the right pair.

    Source: Huang et al. 2025, Definitions 6.2 and C.4.
    """
    inside = _fibers(action)
    mean = torch.einsum("jrg,jyg->jry", features.actions, inside) / inside.sum(-1).unsqueeze(1)
    return (mean + features.values) / 2


def _fibers(action: str | GroupAction) -> Float[Tensor, "class value action"]:
    """1 where g·y = j."""
    given = as_action(action)
    classes = np.arange(given.values)[:, None, None]
    return torch.as_tensor(given.array.T[None] == classes).double()


@dataclass(frozen=True)
class FeatureReport:
    """Learnt features of a descent; a feature (j, y) is learnt by a neuron with V > 0.3 B.

    learnt         share of the |Y|² features learnt by some neuron
    single         share learnt by exactly one
    ratio          V(g)/V(y) of learnt ones: mean, and all values
    cancellation   mean |V(g′) + V(y)|/2 of pairs that share one part, relative to V(φ)
    opposite       mean V of pairs that share nothing, relative to V(φ) (−1 in the ideal network)
    """

    learnt: float
    single: float
    ratio: float
    ratios: np.ndarray
    cancellation: float
    opposite: float


@register("lenses")
def feature_report(
    features: ValueFeatures, action: str | GroupAction, clip: float, level: float = 0.3
) -> FeatureReport:
    """How far learnt neurons are from the ideal ones: features learnt, neurons per feature, ratio, cancellation."""
    strength = feature_magnitudes(features, action)
    strong = strength > level * clip
    count, inside = strong.sum(1), _fibers(action)
    ratios, cancelled, opposite = [], [], []
    for j, r, y in strong.nonzero().tolist():
        fiber = inside[j, y].bool()
        on_action, on_value = float(features.actions[j, r][fiber].mean()), float(features.values[j, r, y])
        pairs = (features.actions[j, r].unsqueeze(1) + features.values[j, r]) / 2
        same_value = torch.arange(len(features.values[j, r])) == y
        one = fiber.unsqueeze(1) ^ same_value
        none = ~fiber.unsqueeze(1) & ~same_value
        whole = float(strength[j, r, y])
        ratios.append(on_action / on_value)
        cancelled.append(float(pairs[one].abs().mean()) / whole)
        opposite.append(float(pairs[none].mean()) / whole)
    mean = [float(np.mean(each)) if each else math.nan for each in (ratios, cancelled, opposite)]
    return FeatureReport(
        float((count > 0).double().mean()),
        float((count == 1).double().mean()),
        mean[0],
        np.array(ratios),
        mean[1],
        mean[2],
    )


@register("lenses")
def curriculum_order(features: ValueFeatures, action: str | GroupAction) -> list[tuple[int, int, int]]:
    """Σ*: the order (class, neuron, value) in which features should be learnt, greedily from the initial weights.

    Repeatedly the largest initial V among right combinations; its neuron, and its combination in other neurons of the
    class, drop out.

    Source: Huang et al. 2025, Definitions B.3 (which forgets the restriction to right combinations) and C.4.
    """
    strength = feature_magnitudes(features, action).clone()
    classes, _, values = strength.shape
    order = []
    for _ in range(classes * values):
        if bool(torch.isinf(strength).all()):
            break
        place = int(strength.argmax())
        j, rest = divmod(place, strength[0].numel())
        r, y = divmod(rest, values)
        order.append((j, r, y))
        strength[j, r], strength[j, :, y] = -torch.inf, -torch.inf
    return order


def hitting_times(times: Int[np.ndarray, "class neuron action value"], action: str | GroupAction) -> np.ndarray:
    """Mean hitting time of each feature (class, neuron, value) over its fibre; NaN where a pair never got there."""
    inside = _fibers(action).numpy().astype(bool)  # (class, value, action)
    seen = np.where(times >= 0, times.astype(float), np.nan)
    spread = seen.transpose(0, 1, 3, 2)  # (class, neuron, value, action)
    counted = np.where(inside[:, None], spread, 0.0)
    return np.asarray(counted.sum(-1) / inside.sum(-1)[:, None])


def order_agreement(descent: FeatureDescent, action: str | GroupAction) -> float:
    """Kendall's τ between the predicted order Σ* and the times at which features reach ½ log d.

    Features that were not learnt by the predicted neuron count by the first neuron of the class that learnt them.
    """
    times = hitting_times(descent.reached, action)
    order = curriculum_order(descent.initial, action)
    found = [float(np.nanmin(times[j, :, y])) if np.isfinite(times[j, :, y]).any() else np.nan for j, _, y in order]
    ranks = np.arange(len(order))
    known = np.isfinite(found)
    return float(stats.kendalltau(ranks[known], np.array(found)[known]).statistic) if known.sum() > 1 else math.nan


@dataclass(frozen=True)
class PhaseTimes:
    """Hitting times of every feature of Σ*, in its order; NaN: never.

    taken_off   T¹: V ≥ d^0.1 μ
    reached     T^{2,1}: V ≥ ½ log d
    converged   T^{2,2}: 1 − logit ≤ d^{−1/2} on the feature
    shaped      T^{2,3}: first kept step at which the feature has its shape (`feature_shape`); NaN without a plan
    """

    order: list[tuple[int, int, int]]
    taken_off: np.ndarray
    reached: np.ndarray
    converged: np.ndarray
    shaped: np.ndarray

    @property
    def done(self) -> float:
        """T_{1,1}: when the last feature of Σ* has its shape; NaN where one never has."""
        return float(np.max(self.shaped))


def shape_tolerances(plan: FeatureTraining) -> tuple[float, float]:
    """δ₁ = d^0.1 μ and δ₂ = (|Y|² d ϖ/λ)^{1/(q−1)} of T^{2,3}, with λ the least 1 − logit.

    The slope ϖ is the plan's, or where it has none the largest that the theory allows, λ/d^{q/3}.

    Source: Huang et al. 2025, section B.1.2, Assumption B.2.
    """
    d, n = plan.vocab, as_action(plan.action).values
    least = (d - 1) / (math.exp(plan.clip) + d - 1)
    slope = plan.slope or least / d ** (plan.power / 3)
    return d**0.1 * plan.bias, (n**2 * d * slope / least) ** (1 / (plan.power - 1))


@register("lenses")
def phase_times(
    descent: FeatureDescent,
    action: str | GroupAction,
    plan: FeatureTraining | None = None,
    tolerances: tuple[float, float] | None = None,
) -> PhaseTimes:
    """When each feature of the predicted order takes off, reaches ½ log d, is certain, and has its final shape.

    plan         the descent's, for the shape: its clip B, and the tolerances (δ₁, δ₂) unless they are given

    Source: Huang et al. 2025, section B.1.2, Definition C.9.
    """
    order = curriculum_order(descent.initial, action)
    off, high = (hitting_times(each, action) for each in (descent.taken_off, descent.reached))
    sure = np.where(descent.converged >= 0, descent.converged.astype(float), np.nan)
    inside = _fibers(action).numpy().astype(bool)
    certain = [float(np.max(sure[j, inside[j, y], y])) for j, _, y in order]
    shaped = np.full_like(off, np.nan) if plan is None else _shape_times(descent, plan, tolerances)
    picked = [np.array([times[j, r, y] for j, r, y in order]) for times in (off, high, shaped)]
    return PhaseTimes(order, picked[0], picked[1], np.array(certain), picked[2])


def _shape_times(
    descent: FeatureDescent, plan: FeatureTraining, tolerances: tuple[float, float] | None
) -> Float[np.ndarray, "class neuron value"]:
    """The first kept step at which each neuron has the shape of each feature; NaN: never."""
    first, second = shape_tolerances(plan) if tolerances is None else tolerances
    kept = [ValueFeatures(*map(torch.as_tensor, pair)) for pair in zip(descent.kept_actions, descent.kept_values)]
    shaped = np.stack([feature_shape(each, plan.action, plan.clip, first, second).numpy() for each in kept])
    return np.where(shaped.any(0), descent.kept_steps[shaped.argmax(0)].astype(float), np.nan)


@register("lenses")
def feature_shape(
    features: ValueFeatures, action: str | GroupAction, clip: float, first: float, second: float
) -> Bool[Tensor, "class neuron value"]:
    """F_ψ(δ₁, δ₂): V = B ± δ₁; |V| ≤ δ₂ sharing one part; V ≤ −B + δ₁ sharing none; |V(g) − C_α V(y)| ≤ 2δ₂.

    And no second neuron of the class has the feature: V ≤ δ₁ on the same combination (Σ^{†,3}).

    Source: Huang et al. 2025, Definitions B.4 and C.6.
    """
    given, inside = as_action(action), _fibers(action).bool()
    strength, pairs = feature_magnitudes(features, action), features.pairs()
    same = torch.eye(given.values, dtype=torch.bool)
    one = inside.unsqueeze(-1) ^ same.unsqueeze(0).unsqueeze(2)  # [j, y, g, y′]
    none = ~inside.unsqueeze(-1) & ~same.unsqueeze(0).unsqueeze(2)
    right = (strength - clip).abs() <= first
    spread = pairs.unsqueeze(2)  # [j, r, 1, g, y′]
    cancelled = torch.where(one.unsqueeze(1), spread.abs(), 0.0).amax((-1, -2)) <= second
    opposite = torch.where(none.unsqueeze(1), spread, -torch.inf).amax((-1, -2)) <= -clip + first
    fiber = inside.double()
    on_action = torch.einsum("jrg,jyg->jry", features.actions, fiber) / fiber.sum(-1).unsqueeze(1)
    balanced = (on_action - given.imbalance * features.values).abs() <= 2 * second
    return right & cancelled & opposite & balanced & (_rivals(strength) <= first)


def _rivals(strength: Float[Tensor, "class neuron value"]) -> Float[Tensor, "class neuron value"]:
    """The largest V of the same feature among the other neurons of its class; −∞ where there is none."""
    own = torch.eye(strength.shape[1], dtype=torch.bool)
    return torch.where(own.unsqueeze(-1), -torch.inf, strength.unsqueeze(1)).amax(2)


def initial_statistics(plan: FeatureTraining, descent: FeatureDescent) -> dict[str, float]:
    """Size of initial weights and neurons against σ_0 √log d, μ and μ^q (Facts B.3, B.4, Lemma C.1)."""
    weights = torch.cat([descent.initial.actions.flatten(), descent.initial.values.flatten()])
    inner = descent.initial.pairs() + plan.bias
    order = feature_magnitudes(descent.initial, plan.action).flatten().sort().values
    return {
        "largest weight": float(weights.abs().max()) / (plan.init_std * math.sqrt(math.log(plan.vocab))),
        "mean neuron": float(inner.mean()) / plan.bias,
        "smallest gap": float(order.diff().min()),
    }


@dataclass(frozen=True)
class RetrievalReport:
    """How the variables' neurons find the produced variable.

    growth      (snapshot, class) Γ_j = max_r ⟨W_{4,j,r,1}, e_j⟩ + σ_0 log d
    total       (snapshot, class) Φ_j = Σ_r ⟨W_{4,j,r,1}, e_j⟩ over active neurons
    active      (class) number of active neurons A_{4,j} at the end
    ratio       least diagonal (of the strongest neuron) over the largest off-diagonal entry of block 1
    others      largest entry of each other block, relative to the mean diagonal
    """

    growth: np.ndarray
    total: np.ndarray
    active: np.ndarray
    ratio: float
    others: dict[str, float]


@register("lenses")
def retrieval_growth(plan: RetrievalTraining, descent: RetrievalDescent) -> RetrievalReport:
    """Diagonal growth of W_4: Γ, Φ, active neurons, diagonal against the rest (Huang et al. 2025, appendix A)."""
    x = plan.variables
    diagonal = descent.weights[:, np.arange(x), :, np.arange(x)].transpose(1, 0, 2)  # (snapshot, class, neuron)
    high = plan.threshold * 0.1 * math.log(plan.vocab)
    active = diagonal > high
    block = descent.final[:, :, 0, :x]
    off = np.where(np.eye(x, dtype=bool)[:, None], -np.inf, block)
    slots = {"action": 1, "consumed": 2, "answered": 3, "value": 4}
    moved = descent.final - descent.initial
    mean = float(diagonal[-1].max(1).mean())
    return RetrievalReport(
        diagonal.max(-1) + plan.init_std * math.log(plan.vocab),
        (diagonal * active).sum(-1),
        active[-1].sum(-1),
        float(diagonal[-1].max(1).min() / off.max()),
        {name: float(np.abs(moved[:, :, slot]).max()) / mean for name, slot in slots.items()},
    )
