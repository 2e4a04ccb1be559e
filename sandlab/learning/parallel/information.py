"""Exact information of estimators that predict hidden sites from visible ones, for small exponential families.

For p_θ(x) ∝ exp(θ · F(x)) the conditional score of a mask is S_K(x) = F(x) − E[F(X) | X_−K = x_−K, K], and the
information of a law of masks is E[S_K S_Kᵀ]. Hiding everything gives the Fisher information.
"""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Float

from sandlab.errors import choice
from sandlab.worlds.parallel.finite import FiniteLaw, MaskLaw, size_masks

__all__ = [
    "asymptotic_variance",
    "conditional_score",
    "fisher_information",
    "mask_information",
    "masked_curvature",
    "sandwich_variance",
]

Statistics = Float[np.ndarray, "state parameter"]
Matrix = Float[np.ndarray, "parameter parameter"]


def conditional_score(
    law: FiniteLaw,
    statistics: Statistics,
    mask: Bool[np.ndarray, "site"],
    weights: Float[np.ndarray, "state"] | None = None,
) -> Statistics:
    """S_K(x) = F(x) − E[F | x_−K] of every state; with weights p(x) p_K(K | x) the mean is also given K."""
    groups, given = law.groups(mask), law.conditional(mask, weights)
    means = np.einsum("vh,vhd->vd", given, statistics[groups])
    score = np.empty_like(statistics)
    score[groups] = statistics[groups] - means[:, None]
    return score


def fisher_information(law: FiniteLaw, statistics: Statistics) -> Matrix:
    """I = Cov(∇_θ log p_θ(X)) = Cov(F(X)). (The source prints Cov(∇ p_θ), without the logarithm.)"""
    return mask_information(law, statistics, size_masks(law.sites, law.sites))


def mask_information(law: FiniteLaw, statistics: Statistics, mask_law: MaskLaw) -> Matrix:
    """E_{X,K}[S_K S_Kᵀ], of one mask per sample: H = V of the masked loss (Li 2024, Lemmas 4.1.2 and 4.3.3)."""
    total = np.zeros((statistics.shape[1],) * 2)
    for place, mask in enumerate(mask_law.masks):
        weights = law.weights(mask_law, place)
        score = conditional_score(law, statistics, mask, weights)
        total += (score * weights[:, None]).T @ score
    return total


def asymptotic_variance(law: FiniteLaw, statistics: Statistics, mask_law: MaskLaw) -> Matrix:
    """Γ = lim n E[(θ̂ − θ)(θ̂ − θ)ᵀ] of the estimator with one mask per sample: the inverse information.

    ‖θ̂ − θ‖² ≈ Tr Γ / n. Li 2024, Lemma 4.1.1.
    """
    return np.linalg.inv(mask_information(law, statistics, mask_law))


def masked_curvature(truth: FiniteLaw, model: FiniteLaw, statistics: Statistics, mask_law: MaskLaw) -> Matrix:
    """H = E_truth[Cov_model(F | X_−K, K)], the Hessian of the masked loss at any model of the family."""
    total = np.zeros((statistics.shape[1],) * 2)
    for place, mask in enumerate(mask_law.masks):
        groups, given = model.groups(mask), model.conditional(mask, model.weights(mask_law, place))
        score = conditional_score(model, statistics, mask, model.weights(mask_law, place))[groups]
        visible = truth.weights(mask_law, place)[groups].sum(1)
        total += np.einsum("v,vh,vhd,vhe->de", visible, given, score, score)
    return total


def sandwich_variance(
    truth: FiniteLaw, model: FiniteLaw, statistics: Statistics, mask_law: MaskLaw, *, masks: str = "one"
) -> Matrix:
    """Godambe's H⁻¹ V H⁻¹, also where the model is wrong; `masks`: "one" drawn per sample, or "all" averaged.

    With all masks of every sample the gain from hiding more nearly disappears: the source's estimator draws one.
    """
    choice("masks", masks, ("one", "all"))
    scores = np.stack([
        conditional_score(model, statistics, mask, model.weights(mask_law, place))
        for place, mask in enumerate(mask_law.masks)
    ])  # fmt: skip
    chosen = mask_law.given(len(truth)).T
    if masks == "one":
        second = np.einsum("ks,s,ksd,kse->de", chosen, truth.probs, scores, scores)
    else:
        average = np.einsum("ks,ksd->sd", chosen, scores)
        second = np.einsum("s,sd,se->de", truth.probs, average, average)
    mean = np.einsum("ks,s,ksd->d", chosen, truth.probs, scores)
    inverse = np.linalg.inv(masked_curvature(truth, model, statistics, mask_law))
    return inverse @ (second - np.outer(mean, mean)) @ inverse
