"""Transition matrices of heat-bath updates of a distribution that is written out."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from sandlab.worlds.parallel.finite import FiniteLaw, MaskLaw

__all__ = ["block_matrix", "parallel_matrix"]


def block_matrix(law: FiniteLaw, mask_law: MaskLaw) -> Float[np.ndarray, "state state"]:
    """Weighted block dynamics: hide X_K with K ~ p_K(· | X), draw it again from p(· | X_−K, K).

    P(x, y) = Σ_K p_K(K | x) 1[x_−K = y_−K] p(y_K | x_−K, K), reversible with respect to p (Li 2024, Definitions 4.1.6
    and 4.1.8; the source keeps K fixed along the adaptive chain, which is then not ergodic).
    """
    matrix, chosen = np.zeros((len(law), len(law))), mask_law.given(len(law))
    for place, mask in enumerate(mask_law.masks):
        groups, given = law.groups(mask), law.conditional(mask, law.weights(mask_law, place))
        matrix[groups[:, :, None], groups[:, None, :]] += chosen[groups, place][:, :, None] * given[:, None, :]
    return matrix


def parallel_matrix(law: FiniteLaw) -> Float[np.ndarray, "state state"]:
    """Independent parallel: every site is drawn at once from p(· | X_−i) of the old state (Definition 4.1.11)."""
    given, matrix = law.site_conditionals(), np.ones((len(law), len(law)))
    for site in range(law.sites):
        matrix *= given[:, site][:, law.states[:, site]]
    return matrix
