"""How many samples an estimate costs: the asymptotic error of NCE, eNCE and maximum likelihood."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor

from sandlab.errors import choice
from sandlab.learning.nce.losses import margin_loss
from sandlab.learning.nce.problem import NCEProblem
from sandlab.registry import register

__all__ = ["asymptotic_error"]


@register("lenses")
def asymptotic_error(problem: NCEProblem, kind: str = "nce") -> float:
    """lim n·E‖τ̂ − τ*‖² of the estimate from n draws of the data (and n of the noise).

    nce, ence    tr(H⁻¹VH⁻¹) with H = ∇²L(τ*) and V = ¼ Cov_P*[l′(r)T] + ¼ Cov_Q[l′(−r)T], by summation over x
    likelihood   tr(J I⁻¹ Jᵀ) with the Fisher information I = Cov[T̃] and J = ∂τ/∂θ, τ = [θ, log Z(θ)]

    Sources: the asymptotic normality of M-estimators; for NCE Gutmann & Hyvärinen 2012, theorem 3.
    """
    choice("kind", kind, ("nce", "ence", "likelihood"))
    if kind == "likelihood":
        theta = problem.theta_data
        jacobian = torch.cat([torch.eye(len(theta), dtype=torch.float64), problem.family.mean(theta).unsqueeze(0)])
        return float((jacobian @ torch.linalg.solve(problem.family.covariance(theta), jacobian.mT)).trace())
    inverse = torch.linalg.inv(problem.hess(problem.tau_star, kind))
    return float((inverse @ _gradient_covariance(problem, kind) @ inverse).trace())


def _gradient_covariance(problem: NCEProblem, kind: str) -> Float[Tensor, "c c"]:
    """V: covariance of the gradient at τ* that one draw of the data and one of the noise give."""
    family, loss = problem.family, margin_loss(kind)
    anchors = torch.stack([problem.theta_data, problem.theta_noise])
    x, log_weight = family.nodes(anchors, torch.stack([anchors.amin(0), anchors.amax(0)]), problem.points)
    statistics = family.statistics(x)
    ratio = statistics @ (problem.tau_star - problem.tau_q)
    total = torch.zeros(statistics.shape[-1], statistics.shape[-1], dtype=torch.float64)
    for theta, sign in ((problem.theta_data, 1.0), (problem.theta_noise, -1.0)):
        log_prob = family.log_density(x, theta) + log_weight
        log_slope = loss.log_slope(sign * ratio)
        mean = (log_prob + log_slope).exp() @ statistics
        second = statistics.mT @ ((log_prob + 2 * log_slope).exp().unsqueeze(-1) * statistics)
        total += (second - torch.outer(mean, mean)) / 4
    return total
