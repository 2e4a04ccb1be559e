"""The distance of trained embeddings from the optima of Theorem 2.1.1."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from sandlab.lenses.topics.matrices import optimality_residuals
from sandlab.registry import register
from sandlab.worlds.topics.masking import MaskedStatistics

__all__ = ["embedding_residuals"]


@register("lenses")
def embedding_residuals(gram: Float[np.ndarray, "vocab vocab"], statistics: MaskedStatistics) -> dict[str, float]:
    """Largest violations of the constraints that make E = W_EᵀW_E optimal beside its output bias (Theorem 2.1.1).

        E_i0 = −c₂u_i,   Σ_{l∈t} E_il = u_i v + c₃·1[t = topic(i)];   the shift u_i is read off other topics' sums

    Under uniform attention the bias −p_m p_r/(kTv) of words is what −c₁ in the column of [MASK] gives, since that
    column is weighted by m: E is optimal with it where E − c₁ in that column is an optimal value matrix.
    """
    value = np.array(gram, dtype=float)
    value[1:, 0] -= statistics.c1
    return optimality_residuals(value, statistics)
