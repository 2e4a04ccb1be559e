"""How far an estimated transition kernel is from the true one, on a grid; and the risk of contrastive classifiers."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from sandlab.registry import register
from sandlab.worlds.diffusions.contrast import ContrastLaw
from sandlab.worlds.diffusions.pairs import ContrastivePairs
from sandlab.worlds.diffusions.processes import OrnsteinUhlenbeck

__all__ = [
    "contrast_constant",
    "euler_kl",
    "excess_risk",
    "kernel_metrics",
    "optimal_risk",
    "ou_kl",
    "ou_optimal_risk",
    "sampled_kl",
]


@register("lenses")
def kernel_metrics(
    truth: Float[np.ndarray, "cell cell"],
    estimate: Float[np.ndarray, "cell cell"],
    stationary: Float[np.ndarray, " cell"],
    x: Float[np.ndarray, " cell"],
    eta: float,
    powers: tuple[int, ...] = (2, 4),
) -> dict[str, float]:
    """Distances of a kernel from the truth; rows of `estimate` may have any positive mass.

    avg_kl   E_π[Σ p* log(p*/p)] + E_π[mass] − 1, the generalised KL; tv; mass and its defect; l1_star: E|p − p*| of
    densities; spectral gap −log λ₂/η, distance of the stationary law, Chapman–Kolmogorov errors, error of E[x′ | x]
    """
    width = x[1] - x[0]
    mass, rows = estimate.sum(1), estimate / estimate.sum(1, keepdims=True)
    logs = truth * (np.log(np.maximum(truth, 1e-300)) - np.log(np.maximum(estimate, 1e-300)))
    values, vectors = np.linalg.eig(rows.T)
    order = np.argsort(-np.abs(values))
    limit = np.abs(vectors[:, order[0]].real)
    return {
        "avg_kl": float(stationary @ logs.sum(1) + stationary @ mass - 1),
        "l1_star": float(stationary @ (truth * np.abs(estimate - truth) / width).sum(1)),
        "tv": float(0.5 * stationary @ np.abs(rows - truth).sum(1)),
        "mass_mean": float(stationary @ mass),
        "mass_rms": float(np.sqrt(stationary @ (mass - 1) ** 2)),
        "spectral_gap": float(-np.log(np.abs(values[order[1]])) / eta),
        "stationary_tv": float(0.5 * np.abs(limit / limit.sum() - stationary).sum()),
        "cond_mean_rmse": float(np.sqrt(stationary @ ((rows - truth) @ x) ** 2)),
        **{
            f"ck_error_{n}": float(0.5 * stationary @ np.abs(_power(rows, n) - _power(truth, n)).sum(1)) for n in powers
        },
    }


def _power(matrix: np.ndarray, n: int) -> np.ndarray:
    return np.linalg.matrix_power(matrix, n)


@register("lenses")
def optimal_risk(
    truth: Float[np.ndarray, "cell cell"], q: Float[np.ndarray, "#cell cell"], stationary: Float[np.ndarray, " cell"]
) -> float:
    """ε* = ½E_π Σ p*q/(p* + q): no classifier has a smaller squared loss."""
    total = truth + q
    return float(0.5 * stationary @ np.where(total > 0, truth * q / np.maximum(total, 1e-300), 0.0).sum(1))


@register("lenses")
def excess_risk(
    h: Float[np.ndarray, "cell cell"],
    truth: Float[np.ndarray, "cell cell"],
    q: Float[np.ndarray, "#cell cell"],
    stationary: Float[np.ndarray, " cell"],
) -> float:
    """R(h) − ε* = E(h − h*)² under x ~ π, x′ ~ (p* + q)/2."""
    best = truth / (truth + q)
    return float(stationary @ ((truth + q) / 2 * (h - best) ** 2).sum(1))


@register("lenses")
def ou_optimal_risk(q: ContrastLaw, eta: float, rho: float = 1.0, points: int = 1201) -> float:
    """ε* of the one-dimensional OU process by quadrature on dense grids around x and x′."""
    process = _ou(rho)
    z = np.linspace(-8, 8, 401) / math.sqrt(rho)
    spread = math.sqrt(float(process.covariance(eta)[0, 0]))
    offsets = np.linspace(-9, 9, points) * spread
    later = z[:, None] * math.exp(-rho * eta) + offsets  # p*q/(p* + q) ≤ p*: mass lies where p* has it
    pair = np.broadcast_to(z[:, None, None], (*later.shape, 1)), later[..., None]
    log_p, log_q = process.log_kernel(*pair, eta), q.log_pdf(pair[1], pair[0])
    inner = np.exp(log_p + log_q - np.logaddexp(log_p, log_q)).sum(1) * (offsets[1] - offsets[0])
    return float(0.5 * np.exp(process.log_stationary(z[:, None])) @ inner * (z[1] - z[0]))


def _ou(rho: float) -> OrnsteinUhlenbeck:
    from sandlab.worlds.diffusions.potentials import Quadratic

    return OrnsteinUhlenbeck(Quadratic(rho))


@register("lenses")
def contrast_constant(q: ContrastLaw, eta: float, rho: float = 1.0, reach: float = 2.0, points: int = 401) -> float:
    """log c_q(R): the largest |log p*/q| over ‖z‖ ≤ R sd(π) and ‖z′ − E[z′ | z]‖ ≤ R sd(p*).

    On the whole line c_q is infinite for every q that does not depend on z (eq. 2.4 cannot hold there).
    """
    process = _ou(rho)
    z = np.linspace(-reach, reach, points) / math.sqrt(rho)
    spread = math.sqrt(float(process.covariance(eta)[0, 0]))
    later = z[:, None] * math.exp(-rho * eta) + np.linspace(-reach, reach, points) * spread
    pair = np.broadcast_to(z[:, None, None], (*later.shape, 1)), later[..., None]
    return float(np.abs(process.log_kernel(*pair, eta) - q.log_pdf(pair[1], pair[0])).max())


def ou_kl(a: float, v: float, eta: float, rho: float = 1.0) -> float:
    """E_π KL(N(a*z, v*) ‖ N(az, v)) in closed form."""
    true_a = math.exp(-rho * eta)
    true_v = (1 - true_a**2) / rho
    return 0.5 * (math.log(v / true_v) + true_v / v - 1 + (true_a - a) ** 2 / (rho * v))


def euler_kl(eta: float, rho: float = 1.0) -> float:
    """The same for one Euler step, N((1 − ρη)z, 2η)."""
    return ou_kl(1 - rho * eta, 2 * eta, eta, rho)


@register("lenses")
def sampled_kl(
    pairs: ContrastivePairs, logit: Callable[[np.ndarray, np.ndarray], np.ndarray], rng: np.random.Generator, n: int
) -> float:
    """E KL(p* ‖ q e^u) from n draws, in any dimension: E_{π,p*}[log p*/q − u] + E_{π,q}[e^u] − 1.

    Differences of logits are averaged, not logarithms of densities, so that a good estimate has a small variance.
    """
    process = pairs.process
    x = process.start(n, rng)
    later, other = process.step(x, pairs.eta, rng), pairs.q.draw(x, rng)
    ratio = pairs.log_ratio(x, later) - logit(x, later)
    mass = np.exp(logit(x, other)) - np.exp(pairs.log_ratio(x, other))  # the second has mean 1: a control variate
    return float(ratio.mean() + mass.mean())
