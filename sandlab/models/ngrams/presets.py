"""Named settings of the zoo's models: what a paper calls by a name of its own."""

from __future__ import annotations

from typing import Any

from sandlab.models.markov.disentangled import DisentangledTransformer
from sandlab.models.transformer import Transformer

__all__ = ["cat_tf", "tf_additive", "tf_additive_mlp"]


def tf_additive(vocab: int, length: int, order: int, *, embedding: str = "one-hot", **options: Any) -> Transformer:
    """Attention-only transformer with addition: x ← x + Σ_h σ(x Q_hᵀ K_h xᵀ) x V_hᵀ, heads (order, 1), last position.

    Width d = S + T. `embedding` "one-hot": [token | position] side by side; "learned": a token and a position table,
    N(0, 1/d). Q, K, V are d × d, N(0, 1/d); no scaling of the scores, no norm, no biases; the readout starts at zero.
    `residual=False` takes the skip connections out, `log_output=1e-8` gives log(|z| + 1e-8).

    Source: Varre, Yüce and Flammarion 2025, Appendices F.1 and I.1.
    """
    width = vocab + length
    settings = {
        "layers": 2,
        "heads": (order, 1),
        "width": width,
        "head_width": width,
        "embedding": embedding,
        "positions": "one-hot" if embedding == "one-hot" else "learned",
        "mlp": "none",
        "norm": "none",
        "scale": 1.0,
        "bias": False,
        "output_map": False,
        "init_std": None,
        "zero_readout": True,
        "read": "last",
    }
    return Transformer(vocab=vocab, length=length, **(settings | options))


def tf_additive_mlp(vocab: int, length: int, order: int, **options: Any) -> Transformer:
    """`tf_additive` with a feed-forward block d → d → d (ReLU) in every layer whose last map starts at zero.

    Source: Varre, Yüce and Flammarion 2025, Figure 7.
    """
    settings: dict[str, Any] = {"mlp": "relu", "mlp_width": vocab + length, "zero_mlp": True}
    return tf_additive(vocab, length, order, **(settings | options))


def cat_tf(vocab: int, length: int, order: int, **options: Any) -> DisentangledTransformer:
    """Disentangled transformer with one-hot tokens and positions, heads (order, 1) and a trained readout from zero.

    Source: Varre, Yüce and Flammarion 2025; Nichani, Damian and Lee 2024.
    """
    settings = {"heads": (order, 1), "positions": "one-hot", "output": "logits", "readout_std": 0.0, "read": "last"}
    return DisentangledTransformer(vocab=vocab, length=length, **(settings | options))
