"""The parallel-decoding transformer of the theory, as settings of the general one."""

from __future__ import annotations

from sandlab.models.transformer import Transformer

__all__ = ["pd_transformer"]


def pd_transformer(
    symbols: int, sites: int, *, layers: int = 2, heads: int = 1, width: int = 64, head_width: int | None = None,
    mlp_width: int | None = None, init_std: float | None = 0.02,
) -> Transformer:  # fmt: skip
    """Maps τ ∈ Ω^N to one distribution per position, from which all positions are drawn at once.

    X = E + P; each block is X + Σ_i W_O^i W_V^i X σ[(W_K^i X)ᵀ W_Q^i X], then + W₂ ReLU(W₁ · + b₁) + b₂; no layer norm,
    no causal mask, scores not divided by √m, σ over the keys of each query; g = σ(W_pred X + b_pred).

    Source: Li 2024, Eqs. 4.55 to 4.64.
    """
    return Transformer(
        vocab=symbols, length=sites, layers=layers, heads=heads, width=width, head_width=head_width,
        mlp_width=mlp_width, causal=False, mlp="relu", norm="none", positions="learned", scale=1.0,
        readout_bias=True, init_std=init_std,
    )  # fmt: skip
