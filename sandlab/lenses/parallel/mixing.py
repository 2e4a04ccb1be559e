"""How fast block dynamics mix: Dirichlet forms, Poincaré and tensorisation constants, spectra."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from jaxtyping import Float
from scipy.optimize import minimize

from sandlab.errors import integer, require
from sandlab.random import rng
from sandlab.registry import register
from sandlab.worlds.parallel.finite import FiniteLaw, MaskLaw
from sandlab.worlds.parallel.heat_bath import block_matrix

__all__ = [
    "chain_spectrum",
    "dirichlet_form",
    "log_sobolev_constant",
    "poincare_constant",
    "tensorisation_constant",
    "variance_gap",
]

Vector = Float[np.ndarray, "state"]


def chain_spectrum(matrix: Float[np.ndarray, "state state"], probs: Vector) -> Float[np.ndarray, "state"]:
    """Eigenvalues of a chain that is reversible with respect to `probs`, largest first: of D^½ P D^(−½)."""
    root = np.sqrt(np.maximum(probs, 1e-300))
    scaled = root[:, None] * matrix / root
    return np.linalg.eigvalsh((scaled + scaled.T) / 2)[::-1]


def dirichlet_form(law: FiniteLaw, mask_law: MaskLaw, f: Vector, g: Vector | None = None) -> float:
    """E(f, g) = E_K E_{X_−K} Cov(f, g | X_−K, K) = ⟨f, (I − P) g⟩_p (Li 2024, Definition 4.1.4, Prop. 4.1.1)."""
    g = f if g is None else g
    return float(law.probs * f @ (g - block_matrix(law, mask_law) @ g))


@register("lenses")
def poincare_constant(law: FiniteLaw, mask_law: MaskLaw) -> float:
    """The smallest C with Var(f) ≤ C · E(f, f) for all f: 1/(1 − λ₂) of the block dynamics."""
    return float(1 / (1 - chain_spectrum(block_matrix(law, mask_law), law.probs)[1]))


def variance_gap(information: np.ndarray, masked: np.ndarray, constant: float) -> float:
    """Smallest eigenvalue of C · I⁻¹ − Γ: Theorems 4.1.2 and 4.1.3 say that it is not negative."""
    gap = constant * np.linalg.inv(information) - np.linalg.inv(masked)
    return float(np.linalg.eigvalsh(gap)[0])


@register("lenses")
def tensorisation_constant(law: FiniteLaw, mask_law: MaskLaw, *, starts: int = 30, seed: int = 0) -> float:
    """C_AT: sup over r of KL(r ‖ q)/E_r E_K KL(r(· | X_−K, K) ‖ q(· | X_−K, K)) (Li 2024, Definition 4.1.9).

    By maximisation over r = softmax(z) from many starts: a lower estimate. Near r = q the ratio is the Poincaré ratio,
    so the constant is at least Poincaré's, which is taken as a candidate. For at most 4 sites.
    """
    require(law.sites <= 4, "sites", law.sites, "at most 4")
    integer("starts", starts, low=1)

    def ratio(z: torch.Tensor) -> torch.Tensor:
        r = z.log_softmax(0)
        return _divergence(r, log_q) / _block_divergence(r, law, mask_law)

    log_q = torch.as_tensor(np.log(np.maximum(law.probs, 1e-300)))
    return max(poincare_constant(law, mask_law), _largest(ratio, log_q, starts, seed))


@register("lenses")
def log_sobolev_constant(law: FiniteLaw, mask_law: MaskLaw, *, starts: int = 30, seed: int = 0) -> float:
    """sup over f > 0 of Ent(f²)/(2 E(f, f)) of the block dynamics, Ent(g) = E[g log g] − E[g] log E[g].

    By maximisation over f² p = softmax(z) from many starts: a lower estimate. For at most 4 sites.
    """
    require(law.sites <= 4, "sites", law.sites, "at most 4")
    matrix = torch.as_tensor(block_matrix(law, mask_law))
    probs = torch.as_tensor(law.probs).clamp(min=1e-300)

    def ratio(z: torch.Tensor) -> torch.Tensor:
        r = z.log_softmax(0)
        f = (0.5 * (r - probs.log())).exp()
        return _divergence(r, probs.log()) / (2 * (probs * f @ (f - matrix @ f)))

    return _largest(ratio, probs.log(), starts, seed)


def _divergence(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    """KL of two log-distributions."""
    return (first.exp() * (first - second)).sum()


def _block_divergence(r: torch.Tensor, law: FiniteLaw, mask_law: MaskLaw) -> torch.Tensor:
    """E_r E_K KL(r(· | X_−K, K) ‖ q(· | X_−K, K)); weights p_K(K | x) enter both conditionals."""
    log_q = torch.as_tensor(np.log(np.maximum(law.probs, 1e-300)))
    total = r.new_zeros(())
    for place, mask in enumerate(mask_law.masks):
        groups = torch.as_tensor(np.ascontiguousarray(law.groups(mask)))
        chosen = torch.as_tensor(np.log(np.maximum(mask_law.given(len(law))[:, place], 1e-300)))
        first, second = (r + chosen)[groups], (log_q + chosen)[groups]
        total = total + (first.exp() * (first.log_softmax(1) - second.log_softmax(1))).sum()
    return total


def _largest(ratio: Callable[[torch.Tensor], torch.Tensor], centre: torch.Tensor, starts: int, seed: int) -> float:
    """The largest value found by BFGS from starts around `centre`, near and far."""
    generator, best = rng(seed, "starts"), 0.0

    def negative(values: np.ndarray) -> tuple[float, np.ndarray]:
        z = torch.as_tensor(values).requires_grad_()
        value = -ratio(z)
        (slope,) = torch.autograd.grad(value, z)
        return float(value.detach()), slope.numpy()

    for start in range(starts):
        size = (0.05, 0.5, 2.0)[start % 3]
        z = centre + size * torch.randn(centre.shape, generator=generator, dtype=torch.float64)
        found = minimize(negative, z.numpy(), jac=True, method="BFGS", options={"gtol": 1e-9})
        # Next to the centre the ratio is 0/0 and only noise is maximised.
        r = torch.as_tensor(found.x).log_softmax(0)
        if float(_divergence(r, centre.log_softmax(0))) > 1e-9:
            best = max(best, -float(found.fun))
    return best
