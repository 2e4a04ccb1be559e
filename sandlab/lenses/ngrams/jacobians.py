"""Derivatives of self-attention written out: one head, and the whole simplified transformer."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor
from torch.func import jacrev

from sandlab.errors import require
from sandlab.models.ngrams.simplified import SimplifiedTransformer
from sandlab.registry import register

__all__ = ["attention_jacobian_error", "attention_jacobians", "simplified_jacobian_error", "simplified_jacobians"]


@register("lenses")
def attention_jacobians(
    stream: Float[Tensor, "time width"],
    query: Float[Tensor, "inner width"],
    key: Float[Tensor, "inner width"],
    value: Float[Tensor, "out width"],
) -> dict[str, Tensor]:
    """Derivatives of q_t⁺ = Σ_i p_i V q_i, p = softmax_i(⟨K q_i, Q q_t⟩), at the last position t, without autograd.

    With q̄ = Σ_i p_i q_i:
    value   ∂q⁺/∂V = I ⊗ q̄
    key     ∂q⁺/∂K = Σ_j p_j (V q_j) ⊗ (Q q_t)(q_j − q̄)ᵀ
    query   ∂q⁺/∂Q = Σ_j p_j (V q_j) ⊗ K(q_j − q̄) q_tᵀ
    stream  ∂q⁺/∂q_i = p_i V + p_i V(q_i − q̄)(KᵀQ q_t)ᵀ, and for i = t also Σ_j p_j V q_j (QᵀK(q_j − q̄))ᵀ

    The output axis is first, then the axes of the variable.
    Source: Varre, Yüce and Flammarion 2025, Appendix G.
    """
    last = stream[-1]
    weights = (stream @ key.T @ (query @ last)).softmax(-1)
    mean = weights @ stream
    centred = stream - mean
    values = stream @ value.T
    heavy = weights.unsqueeze(-1) * values
    by_key = torch.einsum("ja,b,jc->abc", heavy, query @ last, centred)
    by_query = torch.einsum("ja,jb,c->abc", heavy, centred @ key.T, last)
    pull = key.T @ (query @ last)
    by_stream = torch.einsum("i,ac->aic", weights, value)
    by_stream = by_stream + torch.einsum("i,ia,c->aic", weights, centred @ value.T, pull)
    by_stream[:, -1] += torch.einsum("ja,jc->ac", heavy, centred @ key.T @ query)
    by_value = torch.einsum("ab,c->abc", torch.eye(len(value), dtype=mean.dtype, device=mean.device), mean)
    return {"value": by_value, "key": by_key, "query": by_query, "stream": by_stream}


def attention_jacobian_error(stream: Tensor, query: Tensor, key: Tensor, value: Tensor) -> float:
    """Largest difference of `attention_jacobians` from automatic differentiation."""

    def head(stream: Tensor, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        return value @ ((stream @ key.T @ (query @ stream[-1])).softmax(-1) @ stream)

    found = attention_jacobians(stream, query, key, value)
    truth = jacrev(head, argnums=(0, 1, 2, 3))(stream, query, key, value)
    return max(
        float((found[name] - part).abs().max()) for name, part in zip(("stream", "query", "key", "value"), truth)
    )


@register("lenses")
def simplified_jacobians(model: SimplifiedTransformer, tokens: Int[Tensor, "time"]) -> dict[str, Tensor]:
    """∂p/∂θ of the simplified transformer's output probabilities for one sequence, by parameter, without autograd.

    a = the last position's weights in layer 2, e_{x_i} its values, ē = Σ a_i e_{x_i}, r̄ = Σ a_i r₁[i], t = the last
    position, r̄_i^(h) = Σ_j σ(A^(h))_{ij} r₀[j], W_h = the inclusion of block h:

    K₂        Σ_i a_i e_{x_i} ⊗ (Q r₁[t])(r₁[i] − r̄)ᵀ
    Q₂        Σ_i a_i e_{x_i} ⊗ K(r₁[i] − r̄) r₁[t]ᵀ
    V₁^(h)    Σ_i a_i (e_{x_i} − ē) ⊗ {W_hᵀKᵀQ r₁[t] r̄_i^(h)ᵀ + W_hᵀQᵀK(r₁[i] − r̄) r̄_t^(h)ᵀ}
    A₁^(h)ij  with δ = σ(A^(h))_{ij} W_h V (r₀[j] − r̄_i^(h)):  a_i (e_{x_i} − ē) ⟨δ, KᵀQ r₁[t]⟩, and for i = t also
              Σ_l a_l (e_{x_l} − ē) ⟨r₁[l] − r̄, KᵀQ δ⟩

    Keys are the model's parameter names; the output axis is first.
    Source: Varre, Yüce and Flammarion 2025, Appendices D and G; equations (27)–(29) are misprinted there (r₁[t] for
    r₁[i], r̄_i for r̄_t, and the query term for every i).
    """
    config = model.config
    plain = config.value and not config.merged and config.query_skip and not config.mask_self
    require(plain and config.boundary == "clamp", "model", config, "a plain simplified transformer (Q, K, V, clamp)")
    weights = dict(model.named_parameters())
    scores, value = weights["layers.0.attention.weight"], weights["layers.0.attention.value"]
    query, key = weights["layers.1.attention.query.weight"], weights["layers.1.attention.key.weight"]
    with torch.no_grad():
        return _simplified(tokens, config.vocab, scores, value, query, key)


def simplified_jacobian_error(model: SimplifiedTransformer, tokens: Int[Tensor, "time"]) -> float:
    """Largest difference of `simplified_jacobians` from automatic differentiation."""
    closed = simplified_jacobians(model, tokens)
    probs = model(tokens.unsqueeze(0))[0, -1].exp()
    names, weights = zip(*model.named_parameters())
    rows = [torch.autograd.grad(each, weights, retain_graph=True) for each in probs]
    return max(float((torch.stack(found) - closed[name]).abs().max()) for name, found in zip(names, zip(*rows)))


def _simplified(
    tokens: Tensor, states: int, scores: Tensor, value: Tensor, query: Tensor, key: Tensor
) -> dict[str, Tensor]:
    time, heads = len(tokens), len(scores)
    r0 = F.one_hot(tokens, states).to(scores.dtype)
    hidden = torch.ones(time, time, dtype=torch.bool, device=tokens.device).triu(1)
    pattern = scores[:, :time, :time].masked_fill(hidden, -torch.inf).softmax(-1)
    mixed = torch.einsum("hij,jd->hid", pattern, r0)
    copied = torch.einsum("hid,hed->hie", mixed, value)
    r1 = torch.cat([r0, *copied], -1)
    weights = (r1 @ key.T @ (query @ r1[-1])).softmax(-1)
    centred = r1 - weights @ r1
    contrast = weights.unsqueeze(-1) * (r0 - weights @ r0)
    heavy = weights.unsqueeze(-1) * r0
    pull = (key.T @ (query @ r1[-1])).unflatten(0, (heads + 1, states))[1:]
    push = (centred @ key.T @ query).unflatten(1, (heads + 1, states))[:, 1:]
    by_value = torch.einsum("ia,hb,hic->ahbc", contrast, pull, mixed)
    by_value = by_value + torch.einsum("ia,ihb,hc->ahbc", contrast, push, mixed[:, -1])
    # V (r₀[j] − r̄_i) for every pair, in the copied coordinates.
    moved = torch.einsum("jd,hed->hje", r0, value).unsqueeze(1) - copied.unsqueeze(2)
    delta = pattern.unsqueeze(-1) * moved
    inner = torch.zeros(states, heads, *scores.shape[1:], dtype=scores.dtype, device=scores.device)
    inner[:, :, :time, :time] = torch.einsum("ia,hije,he->ahij", contrast, delta, pull)
    inner[:, :, time - 1, :time] += torch.einsum("la,lhe,hje->ahj", contrast, push, delta[:, -1])
    return {
        "layers.0.attention.weight": inner,
        "layers.0.attention.value": by_value,
        "layers.1.attention.query.weight": torch.einsum("ia,ib,c->abc", heavy, centred @ key.T, r1[-1]),
        "layers.1.attention.key.weight": torch.einsum("ia,b,ic->abc", heavy, query @ r1[-1], centred),
    }
