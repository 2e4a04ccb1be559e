"""The ideal network for LEGO: weights that solve every length up to about e^β."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from sandlab.errors import number, require
from sandlab.models.reasoning.theory import LegoTheoryTransformer
from sandlab.registry import register
from sandlab.worlds.reasoning.actions import GroupAction, as_action
from sandlab.worlds.reasoning.lego import Lego

__all__ = ["ValueFeatures", "ideal_features", "ideal_lego_transformer"]


@dataclass(frozen=True)
class ValueFeatures:
    """Weights of the value neurons: V_{j,r}(g) and V_{j,r}(y) for every class j and neuron r."""

    actions: Float[Tensor, "class neuron action"]
    values: Float[Tensor, "class neuron value"]

    def pairs(self) -> Float[Tensor, "class neuron action value"]:
        """V(φ) = ½(V(g) + V(y)) for every combination φ = (g, y)."""
        return (self.actions.unsqueeze(-1) + self.values.unsqueeze(-2)) / 2


def ideal_features(action: str | GroupAction, clip: float, *, imbalance: float | None = None) -> ValueFeatures:
    """One neuron per class j and value y: +v_G on the fibre of (j, y), −v_Y off it; +v_Y on y, −v_G on the others.

    v_G + v_Y = 2B makes pairs that share one part cancel; v_G/v_Y = C_α is the ratio that gradient descent selects
    (1 for simply transitive actions, where v_G = v_Y = B). `imbalance` takes another ratio.

    Source: Huang et al. 2025, eq. (17), (18), Theorems B.1 and C.1 ((18a) prints ∉ for ∈).
    """
    number("clip", clip, low=0.0)
    given = as_action(action)
    ratio = given.imbalance if imbalance is None else imbalance
    require(ratio > 0, "imbalance", ratio, "above 0")
    on_value = 2 * clip / (1 + ratio)
    on_action = 2 * clip - on_value
    classes = np.arange(given.values)
    inside = given.array.T[None] == classes[:, None, None]  # [j, y, g]: g·y = j
    same = np.broadcast_to(np.eye(given.values, dtype=bool), (given.values, given.values, given.values))
    actions, values = np.where(inside, on_action, -on_value), np.where(same, on_value, -on_action)
    return ValueFeatures(torch.as_tensor(actions), torch.as_tensor(values))


@register("circuits")
def ideal_lego_transformer(
    world: Lego,
    predicate: float,
    answer: float | None = None,
    *,
    clip: float | None = None,
    power: int = 4,
    threshold: float = 0.1,
    variant: str = "zero-neg",
) -> LegoTheoryTransformer:
    """The theory's transformer with Q_43 = β₃ I, Q_44 = β₄ I on the variables and ideal neurons (float64).

    Slots 1–3 always say blank, slot 4 copies the produced variable of the attended predicate, slot 5 applies the
    action (`ideal_features`). Slot 4 is right for every β₃ > 0; slot 5 fails beyond the length horizon
    L* ≈ 1 + (e^β₃ + e^β₄)/(2(1 − 2/n)). The clip B is 4 log d unless given; β₄ = β₃ unless given.

    Source: derived from Huang et al. 2025, eq. (17), (18), (21).
    """
    d, x, g, y = world.vocab, world.variables, world.first_action, world.first_value
    high = 4 * math.log(d) if clip is None else clip
    action = world.group_action
    model = LegoTheoryTransformer(
        vocab=d, neurons=action.values, clip=high, power=power, threshold=threshold, variant=variant, init_std=0.0
    ).double()
    features = ideal_features(action, high)
    with torch.no_grad():
        weight = model.weight.unflatten(-1, (5, d))  # [slot, class, neuron, block, token]
        weight[:3, world.blank, 0, 1, g:y] = high
        weight[:3, world.blank, 0, 4, y : world.blank] = high
        tokens = torch.arange(x)
        weight[3, tokens, 0, 0, tokens] = high
        weight[4, y : world.blank, :, 1, g:y] = features.actions
        weight[4, y : world.blank, :, 4, y : world.blank] = features.values
        model.q43[tokens, tokens] = predicate
        model.q44[tokens, tokens] = predicate if answer is None else answer
    return model
