"""How keys, queries and values grow while a model is trained: norms, rotation, stages, sizes of gradients."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from sandlab.errors import require
from sandlab.learning.experiment import Snapshot
from sandlab.learning.objectives import Objective, as_objective
from sandlab.models.topics.one_layer import OneLayerTopics
from sandlab.registry import register
from sandlab.worlds.base import Batch

__all__ = ["StageTimes", "ValueRotation", "attention_norms", "rotation", "stage_gradient_norms", "stage_times"]

PARTS = ("key", "query", "value")
_earlier: WeakKeyDictionary[Any, deque[Tensor]] = WeakKeyDictionary()


def attention_weights(snapshot: Snapshot, part: str) -> Float[Tensor, "member layer size"]:
    """The key, query or value matrices of every layer, all heads together, as vectors."""
    named = snapshot.model.stacked
    found = [weight for name, weight in named.items() if name == part or name.endswith(f"attention.{part}.weight")]
    require(bool(found), "model", type(snapshot.model.template).__name__, f"a model that trains {part} matrices")
    return torch.stack([weight.detach().flatten(1) for weight in found], 1)


def attention_norms(snapshot: Snapshot) -> dict[str, Float[np.ndarray, "member layer"]]:
    """A probe: Frobenius norms of keys, queries and values in each layer ("key norm", "query norm", "value norm")."""
    return {f"{part} norm": attention_weights(snapshot, part).norm(dim=2).cpu().numpy() for part in PARTS}


def rotation(now: Float[Tensor, "*lead size"], before: Float[Tensor, "*lead size"]) -> Float[Tensor, "*lead"]:
    """(1 − cos)/2 between two vectors: 0 for the same direction, ½ at a right angle, 1 for opposite ones."""
    return (1 - torch.cosine_similarity(now.double(), before.double(), dim=-1)) / 2


@dataclass(frozen=True)
class ValueRotation:
    """A probe: rotation of the value matrices since `lag` evaluations ago ("rotation"); NaN for the first `lag`.

    With an evaluation at every step this is the published measure for lag 10. Earlier matrices are kept beside the
    population that is being trained, and go with it.
    """

    lag: int = 10

    def __call__(self, snapshot: Snapshot) -> Mapping[str, Float[np.ndarray, "member layer"]]:
        now = attention_weights(snapshot, "value").clone()
        seen = _earlier.setdefault(snapshot.model, deque(maxlen=self.lag))
        turned = rotation(now, seen[0]) if len(seen) == self.lag else torch.full(now.shape[:2], torch.nan)
        seen.append(now)
        return {"rotation": turned.cpu().numpy()}


@dataclass(frozen=True)
class StageTimes:
    """When keys, queries and values begin to grow, in steps.

    tenth    first step at which the norm has gained a tenth of what it gains in all
    double   first step at which the norm is twice its first value; infinite when it never is
    """

    tenth: dict[str, float]
    double: dict[str, float]

    @property
    def two_stages(self) -> bool:
        """Values first: keys and queries take at least twice as long to gain a tenth of their growth.

        Not met when something never grows at all.
        """
        slow = min(self.tenth["key"], self.tenth["query"])
        return bool(np.isfinite(slow) and slow >= 2 * max(self.tenth["value"], 1))


@register("lenses")
def stage_times(steps: np.ndarray, norms: Mapping[str, Float[np.ndarray, " time"]]) -> StageTimes:
    """Read the stages off the norms of "key", "query" and "value" along training.

    t₁₀(X) = first step with ‖X‖ ≥ ‖X‖₀ + 0.1(max‖X‖ − ‖X‖₀); two stages when min(t₁₀(K), t₁₀(Q)) ≥ 2 t₁₀(V).
    """
    curves = {part: np.asarray(norms[part], float) for part in PARTS}
    tenth = {part: _first(steps, each >= each[0] + 0.1 * (each.max() - each[0])) for part, each in curves.items()}
    grown = {part: each.max() > each[0] * (1 + 1e-9) for part, each in curves.items()}
    tenth = {part: when if grown[part] else float("inf") for part, when in tenth.items()}
    return StageTimes(tenth, {part: _first(steps, each >= 2 * each[0]) for part, each in curves.items()})


def _first(steps: np.ndarray, reached: np.ndarray) -> float:
    return float(steps[reached.argmax()]) if reached.any() else float("inf")


@register("lenses")
def stage_gradient_norms(
    model: OneLayerTopics, batch: Batch, objective: str | Objective | None = None
) -> dict[str, float]:
    """Norms of the loss's gradients in keys, queries and values.

    With weights of size ε, ‖∇V‖ tends to a constant, ‖∇K‖ and ‖∇Q‖ to zero as ε²; with Q = 0, ∇K = 0 exactly.
    """
    parts = {name: weight for name, weight in model.named_parameters() if name in PARTS}
    flags = {name: weight.requires_grad for name, weight in parts.items()}
    for weight in parts.values():
        weight.requires_grad_(True)
    loss = as_objective(objective)(model(batch.inputs), batch)
    found = torch.autograd.grad(loss, list(parts.values()), allow_unused=True)
    for name, weight in parts.items():
        weight.requires_grad_(flags[name])
    return {name: 0.0 if each is None else float(each.norm()) for name, each in zip(parts, found)}
