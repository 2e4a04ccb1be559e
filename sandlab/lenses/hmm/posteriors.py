"""The posterior of a Gaussian HMM: how it saturates, and its derivative."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float

from sandlab.registry import register
from sandlab.worlds.hmm.models import GaussianHMM

__all__ = ["posterior_jacobian", "posterior_saturation"]


@register("lenses")
def posterior_saturation(ghmm: GaussianHMM, state: int, scale: float) -> Float[np.ndarray, " k"]:
    """log φ_j(cμ_i) − log φ_i(cμ_i) = −c(1 − μ_iᵀμ_j): far along a centre the posterior is e_i (eq. 2.66).

    Computed from scores, so that it stays exact where the posterior itself underflows. Unit centres.
    """
    scores = scale * ghmm.M[:, state] @ ghmm.M - (ghmm.M**2).sum(0) / 2
    return scores - scores[state]


@register("lenses")
def posterior_jacobian(ghmm: GaussianHMM, x: Float[np.ndarray, " d"]) -> Float[np.ndarray, "k d"]:
    """∇φ(x) = (diag φ − φφᵀ)(M − x1ᵀ)ᵀ (eq. 2.64); the shift by x drops out."""
    phi = ghmm.posterior(x)
    return (np.diag(phi) - np.outer(phi, phi)) @ (ghmm.M - x[:, None]).T
