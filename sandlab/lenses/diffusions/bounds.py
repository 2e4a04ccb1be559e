"""From the risk of a classifier to the distance of its kernel: the bounds of Theorems 2 and 3, and their parts."""

from __future__ import annotations

import math

import numpy as np
from jaxtyping import Float

from sandlab.lenses.diffusions.kernels import excess_risk
from sandlab.registry import register
from sandlab.worlds.diffusions.contrast import ContrastLaw, NearbyContrast
from sandlab.worlds.diffusions.processes import OrnsteinUhlenbeck

__all__ = [
    "curvature_bound",
    "delta_closeness",
    "global_l1_bound",
    "gobet_violations",
    "local_kl_bound",
    "loss_curvature",
    "loss_profile",
    "mean_true_density",
    "random_perturbation",
    "second_factor_finite",
]


def loss_profile(delta: np.ndarray | float, u: np.ndarray | float) -> np.ndarray | float:
    """r(δ) = (h − h*)² = u²δ²/((1 + δ + u)²(1 + u)²) with p = p*(1 + δ) and u = q/p*."""
    return u**2 * delta**2 / ((1 + delta + u) ** 2 * (1 + u) ** 2)


@register("lenses")
def loss_curvature(delta: float, u: float) -> float:
    """r″(δ) = 2u²(1 + u − 2δ)/((1 + u)(1 + u + δ)⁴), exactly (eq. 2.23–2.26 bound it from below)."""
    return 2 * u**2 * (1 + u - 2 * delta) / ((1 + u) * (1 + u + delta) ** 4)


def curvature_bound(c_q: float) -> float:
    """2/(1 + c_q)⁵, the source's lower bound on r″ for u ∈ [1/c_q, c_q] and δ ≤ 1/6."""
    return 2 / (1 + c_q) ** 5


@register("lenses")
def delta_closeness(p: np.ndarray, truth: np.ndarray) -> tuple[float, float]:
    """(Δ_min, Δ_max): the range of p/p* (eq. 2.13)."""
    ratio = p / truth
    return float(ratio.min()), float(ratio.max())


@register("lenses")
def local_kl_bound(
    p: Float[np.ndarray, "cell cell"],
    truth: Float[np.ndarray, "cell cell"],
    q: Float[np.ndarray, "#cell cell"],
    stationary: Float[np.ndarray, " cell"],
) -> dict[str, float]:
    """KL and its two bounds from the excess risk 2ε_tr, for a kernel p with normalised rows.

    theorem   2(1 + c_q)⁵ ε_tr/Δ_min² (Theorem 2; needs Δ_max ≤ 7/6)
    direct    excess · max_u (1 + u)(u + Δ_max)²/u² / Δ_min², for any Δ_max: c_q² instead of c_q⁵
    """
    low, high = delta_closeness(p, truth)
    u = q / truth
    c_q = float(max(u.max(), (1 / u).max()))
    excess = excess_risk(p / (p + q), truth, q, stationary)
    factor = float(((1 + u) * (u + max(high, 1.0)) ** 2 / u**2).max())
    return {
        "kl": float(stationary @ (truth * np.log(truth / p)).sum(1)),
        "excess": excess,
        "c_q": c_q,
        "theorem": (1 + c_q) ** 5 * excess / low**2,
        "direct": factor * excess / low**2,
    }


def random_perturbation(truth: np.ndarray, size: float, rng: np.random.Generator) -> np.ndarray:
    """p*(1 + δ) with random |δ| ≤ size and Σ p*δ = 0 in each row."""
    delta = rng.uniform(-1, 1, size=truth.shape)
    delta -= (truth * delta).sum(1, keepdims=True)
    return truth * (1 + size * delta / np.abs(delta).max())


@register("lenses")
def global_l1_bound(rho_hat: float, eta: float, q: ContrastLaw, rho: float = 1.0) -> dict[str, float]:
    """Both sides of Theorem 3's inequality for the OU kernel of ρ̂ as estimate, in log space on dense grids.

    E_{π,p*}|p − p*| ≤ √(E(h − h*)²) √(E(max{p, p*} + q)⁴/q²), expectations under π and p*.
    """
    from sandlab.worlds.diffusions.potentials import Quadratic

    process, other = OrnsteinUhlenbeck(Quadratic(rho)), OrnsteinUhlenbeck(Quadratic(rho_hat))
    z = np.linspace(-9, 9, 801) / math.sqrt(rho)
    spread = math.sqrt(float(process.covariance(eta)[0, 0]))
    offsets = np.linspace(-10, 10, 801) * spread
    later = (z[:, None] * math.exp(-rho * eta) + offsets)[..., None]
    start = np.broadcast_to(z[:, None, None], later.shape)
    log_p, log_hat = process.log_kernel(start, later, eta), other.log_kernel(start, later, eta)
    log_q = q.log_pdf(later, start)
    weight = process.log_stationary(z[:, None])[:, None] + log_p
    cell = (z[1] - z[0]) * (offsets[1] - offsets[0])
    h = 1 / (1 + np.exp(np.clip(log_q - log_hat, -700, 700))) - 1 / (1 + np.exp(np.clip(log_q - log_p, -700, 700)))
    second = 4 * np.logaddexp(np.maximum(log_p, log_hat), log_q) - 2 * log_q
    left = float(np.sum(np.exp(weight) * np.abs(np.exp(log_hat) - np.exp(log_p))) * cell)
    risk, factor = float(np.sum(np.exp(weight) * h**2) * cell), float(np.sum(np.exp(weight + second)) * cell)
    return {"left": left, "right": math.sqrt(risk * factor), "factor": factor}


@register("lenses")
def mean_true_density(eta: float, rho: float = 1.0, d: int = 1) -> float:
    """E_{π,p*} p* = (4πv)^{−d/2} of an isotropic OU process: it grows like η^{−d/2} as η falls."""
    v = (1 - math.exp(-2 * rho * eta)) / rho
    return (4 * math.pi * v) ** (-d / 2)


@register("lenses")
def second_factor_finite(q: ContrastLaw, eta: float, rho: float = 1.0) -> bool:
    """Whether E_{π,p*}(max{p, p*} + q)⁴/q² is finite for the OU process (d = 1): a quadratic form must be positive.

    For q = π it is infinite when η < log 2/(2ρ).
    """
    from sandlab.learning.diffusions.classifiers import _sd

    a = math.exp(-rho * eta)
    v, s2 = (1 - a**2) / rho, _sd(q) ** 2
    move = 1 - a if isinstance(q, NearbyContrast) else -a
    form = np.array([[rho / 2 - move**2 / s2, move / s2], [move / s2, 5 / (2 * v) - 1 / s2]])
    return bool(np.linalg.eigvalsh(form).min() > 0)


@register("lenses")
def gobet_violations(rho: float, eta: float) -> int:
    """How often the OU kernel leaves its two Gaussian bounds (Lemma 6, c = √(4π), C = max(8, ρ²)); η ≤ 1/(2ρ).

    c⁻¹ η^{−1/2} e^{−C‖z − z′‖²/η} e^{−Cη‖z‖²} ≤ p*(z, z′) ≤ c η^{−1/2} e^{−‖z − z′‖²/(Cη)} e^{Cη‖z‖²}
    """
    c, top = math.sqrt(4 * math.pi), max(8.0, rho**2)
    z, move = np.linspace(-6, 6, 201)[:, None] / math.sqrt(rho), np.linspace(-8, 8, 321) * math.sqrt(eta)
    a = math.exp(-rho * eta)
    v = (1 - a**2) / rho
    log_p = -((z + move - a * z) ** 2) / (2 * v) - 0.5 * math.log(2 * math.pi * v)
    upper = math.log(c) - 0.5 * math.log(eta) - move**2 / (top * eta) + top * eta * z**2
    lower = -math.log(c) - 0.5 * math.log(eta) - top * move**2 / eta - top * eta * z**2
    return int((log_p > upper).sum() + (log_p < lower).sum())
