"""Counting estimators as weights of an ordinary transformer with addition and a logarithm at the end."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float

from sandlab.circuits._matching import look_back_keys, matching_circuit
from sandlab.circuits.targets import Frame, to_transformer
from sandlab.errors import integer, number, require
from sandlab.models.transformer import Transformer
from sandlab.random import rng as seeded_rng
from sandlab.registry import register

__all__ = ["additive_ngram_estimator"]


@register("circuits")
def additive_ngram_estimator(
    states: int,
    order: int,
    length: int,
    *,
    temperature: float = 40.0,
    smoothing: float = 1e-3,
    rotation: int | None = None,
    read: str = "last",
) -> Transformer:
    """The order-k counting estimator in a two-layer transformer whose layers add to the residual stream.

    Mutually orthogonal token vectors s_j and position vectors p_i; x₀[i] = s⁰_{x_i} + p_i. Head h of layer 1 has
    QᵀK = c Σ_l p_l p_{max(l−h, 0)}ᵀ and V = Σ_j s_jʰ (s_j⁰)ᵀ: it adds the token h positions back in a separate block.
    Layer 2 has QᵀK = c Σ_h Σ_j s_j^{h−1} (s_jʰ)ᵀ, V = Σ_j e_j (s_j⁰)ᵀ and no residual; then log(|x| + ε) and softmax.

    Output (p̂ + ε)/(1 + Sε) with p̂ the clamped estimator of order k: the ε inside the logarithm is an additive smoothing
    constant. `rotation` is the seed of a random orthogonal matrix applied to the whole stream (None: the vectors are
    coordinate axes); the function computed is the same.

    Source: Varre, Yüce and Flammarion 2025, Appendix F.1, equations (32)–(35) (printed with the positions transposed).
    """
    integer("states", states, low=1)
    integer("order", order, low=0)
    integer("length", length, low=1)
    number("temperature", temperature, low=0.0)
    require(number("smoothing", smoothing) > 0, "smoothing", smoothing, "above 0", "its logarithm is taken")
    keys = [look_back_keys(length, lag) for lag in range(1, order + 1)]
    circuit = matching_circuit(states, length, keys, range(order), temperature)
    frame = None if rotation is None else Frame.of(_orthogonal(circuit.width, rotation))
    return to_transformer(circuit, frame=frame, residual=(True, False), log_output=smoothing, read=read)


def _orthogonal(width: int, seed: int) -> Float[np.ndarray, "width width"]:
    """A random orthonormal basis."""
    gaussian = torch.randn(width, width, dtype=torch.float64, generator=seeded_rng(seed, "basis"))
    return torch.linalg.qr(gaussian).Q.numpy()
