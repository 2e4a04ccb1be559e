"""Spectrum of the Hessian of the loss: exact for small models, Lanczos for larger ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from sandlab.errors import BadInput, choice, integer
from sandlab.lenses._flat import FlatLoss
from sandlab.lenses.predictions import Loss
from sandlab.registry import register

__all__ = ["Spectrum", "hessian_matrix", "hessian_product", "hessian_spectrum", "lanczos"]

_EXACT_UP_TO = 1500


@dataclass(frozen=True)
class Spectrum:
    """Eigenvalues in increasing order; weights of the spectral density (sum 1); whether these are all eigenvalues."""

    values: np.ndarray
    weights: np.ndarray
    exact: bool


@register("lenses")
def hessian_spectrum(
    model: nn.Module,
    loss: Loss,
    *,
    only: str = "*",
    method: str = "auto",
    steps: int = 64,
    rng: torch.Generator | None = None,
) -> Spectrum:
    """Eigenvalues of ∂²L/∂θ² for the parameters whose names match `only`.

    "exact"    every row by automatic differentiation, then a symmetric eigensolver (up to a few thousand parameters)
    "lanczos"  Hessian-vector products only: `steps` Ritz values, whose extremes converge to the extreme eigenvalues,
               with Gauss-quadrature weights of the spectral density (Golub & Meurant 1994; Ghorbani et al. 2019)
    "auto"     exact up to 1500 parameters

    Give the model and the batch in float64 when small eigenvalues or signs matter.
    """
    choice("method", method, ("auto", "exact", "lanczos"))
    flat = FlatLoss(model, loss, only)
    size = sum(flat.sizes)
    if method == "exact" or (method == "auto" and size <= _EXACT_UP_TO):
        values = np.linalg.eigvalsh(hessian_matrix(flat, flat.point).double().cpu().numpy())
        return Spectrum(values, np.full(size, 1 / size), exact=True)
    if rng is None:
        raise BadInput("the Lanczos method needs rng, a generator for its first vector: try rng=sandlab.rng(0)")
    product = hessian_product(flat, flat.point)
    start = torch.randn(size, generator=rng, device=rng.device).to(flat.point)
    return lanczos(product, start, min(steps, size), rng=rng)


def hessian_matrix(function: Callable[[Tensor], Tensor], point: Float[Tensor, "n"]) -> Float[Tensor, "n n"]:
    """∂²f/∂θ_i∂θ_j at `point`, symmetrised."""
    product = hessian_product(function, point)
    rows = torch.stack([product(direction) for direction in torch.eye(len(point)).to(point)])
    return (rows + rows.mT) / 2


def hessian_product(
    function: Callable[[Tensor], Tensor], point: Float[Tensor, "n"]
) -> Callable[[Float[Tensor, "n"]], Float[Tensor, "n"]]:
    """v ↦ ∂²f v: the gradient's graph is built once, each product is one backward pass through it."""
    point = point.detach().requires_grad_()
    (gradient,) = torch.autograd.grad(function(point), point, create_graph=True)

    def product(vector: Tensor) -> Tensor:
        if not gradient.requires_grad:
            return torch.zeros_like(point)
        (found,) = torch.autograd.grad(gradient, point, vector, retain_graph=True, materialize_grads=True)
        return found.detach()

    return product


def lanczos(
    product: Callable[[Tensor], Tensor], start: Float[Tensor, "n"], steps: int, *, rng: torch.Generator
) -> Spectrum:
    """Ritz values of a symmetric operator from `steps` products, with full re-orthogonalisation.

    T = Qᵀ H Q is tridiagonal in the orthonormal basis Q of span{v, Hv, H²v, ...}; its eigenvalues are the Ritz values,
    the squared first components of its eigenvectors the weights. When the space closes early (a repeated eigenvalue),
    the basis is continued from a fresh random direction, so that n steps always give the whole spectrum.
    """
    integer("steps", steps, low=1, high=len(start))
    basis = torch.zeros(steps, len(start), dtype=torch.float64, device=start.device)
    diagonal, off_diagonal = np.zeros(steps), np.zeros(max(steps - 1, 0))
    basis[0] = start.double() / start.double().norm()
    for step in range(steps):
        following = product(basis[step].to(start)).double()
        diagonal[step] = float(following @ basis[step])
        if step + 1 == steps:
            break
        scale = float(following.norm()) + abs(diagonal[step])
        following = _orthogonal(following, basis[: step + 1])
        length = float(following.norm())
        if length <= 1e-10 * max(scale, 1e-300):
            length = 0.0
            fresh = torch.randn(len(start), generator=rng, device=rng.device, dtype=torch.float64)
            following = _orthogonal(fresh.to(basis), basis[: step + 1])
        off_diagonal[step] = length
        basis[step + 1] = following / following.norm()
    tridiagonal = np.diag(diagonal) + np.diag(off_diagonal, 1) + np.diag(off_diagonal, -1)
    values, vectors = np.linalg.eigh(tridiagonal)
    return Spectrum(values, vectors[0] ** 2, exact=steps == len(start))


def _orthogonal(vector: Tensor, basis: Tensor) -> Tensor:
    """Remove the components along the basis; twice, because once leaves rounding errors of the size of the vector."""
    for _ in range(2):
        vector = vector - basis.mT @ (basis @ vector)
    return vector
