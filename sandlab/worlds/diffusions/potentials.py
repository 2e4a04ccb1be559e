"""Potentials f of Langevin diffusions dx = −∇f dt + √2 dW, with their constants and which assumptions they satisfy."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from sandlab.errors import number, require

__all__ = ["CirclePotential", "DoubleWell", "LogCosh", "Potential", "PseudoHuber", "Quadratic", "Quartic"]


@dataclass(frozen=True)
class Potential:
    """f, its derivatives, and the constants of the assumptions; coordinates are the last axis.

    rho   strong convexity (A1); L0, L1: smoothness of f and ∇f (A2); K: ‖∇f(z)‖ ≤ K(1 + ‖z‖) (A3)

    None stands for a constant that does not exist. Source: Liu 2024 (thesis, CMU-ML-24-110), section 2.1.1.1.
    """

    @property
    def dimensions(self) -> int:
        return 1

    @property
    def period(self) -> float | None:
        """Length of the circle on which the potential lives, or None for the whole space."""
        return None

    @property
    def minimizer(self) -> Float[np.ndarray, " d"]:
        return np.zeros(self.dimensions)

    rho = L0 = L1 = K = None

    @property
    def satisfies(self) -> tuple[bool, bool, bool]:
        """Whether (A1), (A2) and (A3) hold."""
        return self.rho is not None and self.rho > 0, self.L0 is not None and self.L1 is not None, self.K is not None

    def f(self, x: Float[np.ndarray, "*lead d"]) -> Float[np.ndarray, "*lead"]:
        raise NotImplementedError

    def grad(self, x: Float[np.ndarray, "*lead d"]) -> Float[np.ndarray, "*lead d"]:
        raise NotImplementedError

    def hess(self, x: Float[np.ndarray, "*lead d"]) -> Float[np.ndarray, "*lead d d"]:
        raise NotImplementedError


@dataclass(frozen=True)
class Quadratic(Potential):
    """f = ½ xᵀAx: the Ornstein–Uhlenbeck process. `precision` is a number (d = 1) or the rows of A."""

    precision: float | tuple[tuple[float, ...], ...] = 1.0

    def __post_init__(self) -> None:
        values = np.linalg.eigvalsh(self.A)
        require(bool(values.min() > 0), "precision", self.precision, "positive definite")

    @property
    def A(self) -> Float[np.ndarray, "d d"]:
        return np.atleast_2d(np.asarray(self.precision, dtype=np.float64))

    @property
    def dimensions(self) -> int:
        return len(self.A)

    @property
    def rho(self) -> float:  # type: ignore[override]
        return float(np.linalg.eigvalsh(self.A).min())

    @property
    def L0(self) -> float:  # type: ignore[override]
        return float(np.linalg.eigvalsh(self.A).max())

    L1 = 0.0  # type: ignore[assignment]

    @property
    def K(self) -> float:  # type: ignore[override]
        return self.L0

    def f(self, x: np.ndarray) -> np.ndarray:
        return 0.5 * np.einsum("...i,ij,...j->...", x, self.A, x)

    def grad(self, x: np.ndarray) -> np.ndarray:
        return x @ self.A

    def hess(self, x: np.ndarray) -> np.ndarray:
        return np.broadcast_to(self.A, (*x.shape[:-1], *self.A.shape))


@dataclass(frozen=True)
class _Separable(Potential):
    """A sum over coordinates of one function of a number: `value`, `slope`, `bend` are f, f′, f″."""

    coordinates: int = 1

    @property
    def dimensions(self) -> int:
        return self.coordinates

    def value(self, x: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def slope(self, x: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def bend(self, x: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def f(self, x: np.ndarray) -> np.ndarray:
        return self.value(x).sum(-1)

    def grad(self, x: np.ndarray) -> np.ndarray:
        return self.slope(x)

    def hess(self, x: np.ndarray) -> np.ndarray:
        return self.bend(x)[..., None] * np.eye(self.dimensions)


@dataclass(frozen=True)
class LogCosh(_Separable):
    """½ρx² + (α/β) log cosh(βx) per coordinate: convex, smooth, not Gaussian."""

    curvature: float = 0.5
    alpha: float = 2.0
    beta: float = 2.0

    def __post_init__(self) -> None:
        for name in ("curvature", "alpha", "beta"):
            number(name, getattr(self, name), low=1e-12)

    @property
    def rho(self) -> float:  # type: ignore[override]
        return self.curvature

    @property
    def L0(self) -> float:  # type: ignore[override]
        return self.curvature + self.alpha * self.beta

    @property
    def L1(self) -> float:  # type: ignore[override]
        return self.alpha * self.beta**2 * 4 / (3 * math.sqrt(3))

    @property
    def K(self) -> float:  # type: ignore[override]
        return self.curvature + self.alpha

    def value(self, x: np.ndarray) -> np.ndarray:
        y = np.abs(self.beta * x)  # log cosh y = |y| + log(1 + e^(−2|y|)) − log 2 does not overflow
        return self.curvature * x**2 / 2 + self.alpha / self.beta * (y + np.log1p(np.exp(-2 * y)) - math.log(2))

    def slope(self, x: np.ndarray) -> np.ndarray:
        return self.curvature * x + self.alpha * np.tanh(self.beta * x)

    def bend(self, x: np.ndarray) -> np.ndarray:
        return self.curvature + self.alpha * self.beta * (1 - np.tanh(self.beta * x) ** 2)


@dataclass(frozen=True)
class PseudoHuber(_Separable):
    """½ρx² + α√(1 + x²) per coordinate."""

    curvature: float = 1.0
    alpha: float = 1.0

    @property
    def rho(self) -> float:  # type: ignore[override]
        return self.curvature

    @property
    def L0(self) -> float:  # type: ignore[override]
        return self.curvature + self.alpha

    @property
    def L1(self) -> float:  # type: ignore[override]
        return self.alpha * 48 / (25 * math.sqrt(5))  # |f‴| = 3α|x|(1 + x²)^(−5/2) is largest at x = ½

    @property
    def K(self) -> float:  # type: ignore[override]
        return self.curvature + self.alpha

    def value(self, x: np.ndarray) -> np.ndarray:
        return self.curvature * x**2 / 2 + self.alpha * np.sqrt(1 + x**2)

    def slope(self, x: np.ndarray) -> np.ndarray:
        return self.curvature * x + self.alpha * x / np.sqrt(1 + x**2)

    def bend(self, x: np.ndarray) -> np.ndarray:
        return self.curvature + self.alpha * (1 + x**2) ** -1.5


@dataclass(frozen=True)
class Quartic(_Separable):
    """x⁴/4 + a x²/2: its gradient grows too fast for (A2) and (A3)."""

    a: float = 1.0

    @property
    def rho(self) -> float | None:  # type: ignore[override]
        return self.a if self.a > 0 else None

    def value(self, x: np.ndarray) -> np.ndarray:
        return x**4 / 4 + self.a * x**2 / 2

    def slope(self, x: np.ndarray) -> np.ndarray:
        return x**3 + self.a * x

    def bend(self, x: np.ndarray) -> np.ndarray:
        return 3 * x**2 + self.a


@dataclass(frozen=True)
class DoubleWell(_Separable):
    """(x² − a)²/4: two wells, no convexity, slow mixing."""

    a: float = 2.0

    @property
    def minimizer(self) -> np.ndarray:
        return np.full(self.dimensions, math.sqrt(max(self.a, 0.0)))

    def value(self, x: np.ndarray) -> np.ndarray:
        return (x**2 - self.a) ** 2 / 4

    def slope(self, x: np.ndarray) -> np.ndarray:
        return x * (x**2 - self.a)

    def bend(self, x: np.ndarray) -> np.ndarray:
        return 3 * x**2 - self.a


@dataclass(frozen=True)
class CirclePotential(_Separable):
    """−κ cos x on the circle R/2πZ: compact, so that c_q is finite; smooth but not convex."""

    kappa: float = 1.0

    @property
    def period(self) -> float:
        return 2 * math.pi

    @property
    def L0(self) -> float:  # type: ignore[override]
        return abs(self.kappa)

    @property
    def L1(self) -> float:  # type: ignore[override]
        return abs(self.kappa)

    @property
    def K(self) -> float:  # type: ignore[override]
        return abs(self.kappa)

    def value(self, x: np.ndarray) -> np.ndarray:
        return -self.kappa * np.cos(x)

    def slope(self, x: np.ndarray) -> np.ndarray:
        return self.kappa * np.sin(x)

    def bend(self, x: np.ndarray) -> np.ndarray:
        return self.kappa * np.cos(x)
