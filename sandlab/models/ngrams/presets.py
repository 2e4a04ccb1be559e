"""Models that a paper calls by name, as settings of the general ones."""

from __future__ import annotations

from sandlab.models.markov.disentangled import DisentangledTransformer
from sandlab.models.transformer import Transformer

__all__ = ["cat_tf", "tf_additive", "tf_additive_mlp"]


def tf_additive(
    vocab: int,
    length: int,
    order: int,
    *,
    embedding: str = "one-hot",
    residual: bool | tuple[bool, ...] = True,
    mlp: str = "none",
    zero_readout: bool = True,
    log_output: float | None = None,
) -> Transformer:
    """Attention-only transformer with addition: x ← x + Σ_h σ(x Q_hᵀ K_h xᵀ) x V_hᵀ, heads (order, 1), last position.

    Width d = S + T. `embedding` "one-hot": [token | position] side by side; "learned": a token and a position table,
    N(0, 1/d). Q, K, V are d × d, N(0, 1/d); no scaling of the scores, no norm, no biases; the readout starts at zero.
    `residual=False` removes the skip connections, `log_output=1e-8` gives log(|z| + 1e-8); with `mlp` each layer has a
    feed-forward block d → d → d whose last map starts at zero.

    Source: Varre, Yüce and Flammarion 2025, Appendices F.1 and I.1.
    """
    width = vocab + length
    return Transformer(
        vocab=vocab, length=length, layers=2, heads=(order, 1), width=width, head_width=width, embedding=embedding,
        positions="one-hot" if embedding == "one-hot" else "learned", mlp=mlp, mlp_width=width, zero_mlp=True,
        norm="none", scale=1.0, bias=False, output_map=False, residual=residual, init_std=None,
        zero_readout=zero_readout, log_output=log_output, read="last",
    )  # fmt: skip


def tf_additive_mlp(vocab: int, length: int, order: int, *, embedding: str = "one-hot") -> Transformer:
    """`tf_additive` with a feed-forward block d → d → d (ReLU) in every layer whose last map starts at zero.

    Source: Varre, Yüce and Flammarion 2025, Figure 7.
    """
    return tf_additive(vocab, length, order, embedding=embedding, mlp="relu")


def cat_tf(vocab: int, length: int, order: int) -> DisentangledTransformer:
    """Disentangled transformer with one-hot tokens and positions, heads (order, 1), and a readout trained from zero.

    Source: Varre, Yüce and Flammarion 2025; Nichani, Damian and Lee 2024.
    """
    return DisentangledTransformer(vocab=vocab, length=length, heads=(order, 1))
