"""Closed forms of the theory: neurons as functions of attention masses, and gradients."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sandlab.circuits.reasoning.ideal import ideal_features
from sandlab.models.hooks import record
from sandlab.models.reasoning.smooth_relu import smooth_relu_slope
from sandlab.models.reasoning.theory import LegoTheoryTransformer, clause_vectors
from sandlab.registry import register
from sandlab.worlds.base import Batch
from sandlab.worlds.reasoning.actions import GroupAction, as_action

__all__ = ["attention_gradient", "ffn_gradient", "lambda_oracle", "logit_floor"]

SLOTS = 5


@register("lenses")
def lambda_oracle(
    action: str | GroupAction,
    clip: float,
    actions: Int[Tensor, "n predicate"],
    values: Int[Tensor, "n answer"],
    attention: Float[Tensor, "n clause"],
    bias: float = 0.0,
) -> Float[Tensor, "n class value"]:
    """Λ_{j,y} = 2B(A_p(fiber(j, y)) + A_a(y)) − v_Y P − v_G (1 − P) + b for the ideal neurons.

    A_p(S) is the attention on predicates with an action in S, A_a(y) that on answers with value y, P that on all
    predicates; attention has the predicates first.

    Source: derived; agrees with Huang et al. 2025, Lemmas D.6, D.36, E.13–E.18.
    """
    given = as_action(action)
    count = actions.shape[1]
    on_value = 2 * clip / (1 + given.imbalance)
    on_action = 2 * clip - on_value
    by_action = torch.zeros(len(actions), given.elements, dtype=attention.dtype).scatter_add_(
        1, actions, attention[:, :count]
    )
    by_value = torch.zeros(len(values), given.values, dtype=attention.dtype).scatter_add_(
        1, values, attention[:, count:]
    )
    inside = (ideal_features(given, clip).actions > 0).to(attention.dtype)  # [j, y, g]
    fiber = torch.einsum("ng,jyg->njy", by_action, inside)
    share = attention[:, :count].sum(1).view(-1, 1, 1)
    return 2 * clip * (fiber + by_value.unsqueeze(1)) - on_value * share - on_action * (1 - share) + bias


def logit_floor(vocab: int, clip: float) -> float:
    """λ = (d − 1)/(e^B + d − 1): the least 1 − logit, with one logit at B and all others 0 (Fact B.2)."""
    return (vocab - 1) / (math.exp(clip) + vocab - 1)


def _forward(model: LegoTheoryTransformer, batch: Batch, steps: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Clause vectors, attention rows, Λ and ξ (0 where a logit is cut) of the predicting clauses."""
    with torch.no_grad(), record(model, "pattern") as cache:
        logits = model(batch.inputs).unflatten(1, (-1, SLOTS))[:, -steps:]
    z = clause_vectors(batch.inputs, model.config.vocab, model.weight.dtype)
    rows = cache["pattern"][:, -steps:]
    inner = model.neurons(rows @ z).detach()
    targets = batch.targets.view(len(batch), steps, SLOTS, 1)
    error = torch.zeros_like(logits).scatter_(-1, targets, 1.0) - logits.softmax(-1)
    error = error * batch.mask.view(len(batch), steps, SLOTS, 1)
    return z, rows, inner, torch.where(logits < model.config.clip, error, 0.0)


def ffn_gradient(model: LegoTheoryTransformer, batch: Batch, steps: int) -> Float[Tensor, "slot class neuron d"]:
    """−∇_{W_ijr} Loss = E[Σ_ℓ ξ_ij sReLU′(Λ_ijr) Σ_k Attn_k Z_k] (Fact A.1; 0 where a logit is cut)."""
    config = model.config
    z, rows, inner, error = _forward(model, batch, steps)
    slope = smooth_relu_slope(inner, config.power, config.threshold, config.variant)
    return torch.einsum("nsij,nsijr,nsk->ijrk", error, slope, rows @ z) / len(batch)


def attention_gradient(model: LegoTheoryTransformer, batch: Batch, steps: int, slot: int = 5) -> tuple[Tensor, Tensor]:
    """−∇_{Q_43} and −∇_{Q_44} of one slot's loss: E[Σ_k Attn_k (Ξ_k − Σ_k′ Attn_k′ Ξ_k′) Z_query,4 Z_k,qᵀ] (Fact D.1).

    Ξ_k = Σ_j ξ_j Σ_r sReLU′(Λ_jr) ⟨W_jr, Z_k⟩.
    """
    config, d = model.config, model.config.vocab
    z, rows, inner, error = _forward(model, batch, steps)
    slope = smooth_relu_slope(inner[..., slot - 1, :, :], config.power, config.threshold, config.variant)
    pull = torch.einsum("nsj,nsjr,jrk->nsk", error[..., slot - 1, :], slope, model.weight[slot - 1].detach())
    gain = torch.einsum("nsk,nck->nsc", pull, z)
    moved = rows * (gain - (rows * gain).sum(-1, keepdim=True))
    query = z[:, -steps:].unflatten(-1, (SLOTS, d))[..., 3, :]
    keys = z.unflatten(-1, (SLOTS, d))
    third, fourth = (torch.einsum("nsc,nsa,ncb->ab", moved, query, keys[..., q, :]) / len(batch) for q in (2, 3))
    return third, fourth
