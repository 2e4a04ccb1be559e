"""Stationary diffusions: exact Ornstein–Uhlenbeck, Langevin by small Euler steps, general Itô processes."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float
from scipy.interpolate import RegularGridInterpolator
from scipy.linalg import expm
from scipy.signal import lfilter
from torch import Tensor

from sandlab.errors import integer, number, require
from sandlab.worlds.diffusions.grid import GridChain
from sandlab.worlds.diffusions.potentials import LogCosh, Potential, Quadratic

__all__ = ["Diffusion", "ItoDiffusion", "Langevin", "OrnsteinUhlenbeck", "euler_kernel"]


@dataclass(frozen=True)
class Diffusion:
    """A stationary process observed every η: `path` gives one long path, `chains` many independent ones."""

    @property
    def dimensions(self) -> int:
        raise NotImplementedError

    def start(self, n: int, rng: np.random.Generator) -> Float[np.ndarray, "n d"]:
        """n draws of the stationary law."""
        raise NotImplementedError

    def step(self, x: Float[np.ndarray, "n d"], eta: float, rng: np.random.Generator) -> Float[np.ndarray, "n d"]:
        """The state η later, from each row of x."""
        raise NotImplementedError

    def path(self, count: int, eta: float, rng: np.random.Generator) -> Float[np.ndarray, "count d"]:
        """x₀, x_η, x_2η, … of one stationary path."""
        states = [self.start(1, rng)]
        for _ in range(integer("count", count, low=1) - 1):
            states.append(self.step(states[-1], eta, rng))
        return np.concatenate(states)


@dataclass(frozen=True)
class OrnsteinUhlenbeck(Diffusion):
    """dx = −Ax dt + √2 dW: p^η(z, ·) = N(e^{−ηA}z, A⁻¹(I − e^{−2ηA})), π = N(0, A⁻¹); sampled exactly."""

    potential: Quadratic = field(default_factory=Quadratic)

    @property
    def dimensions(self) -> int:
        return self.potential.dimensions

    @property
    def rho(self) -> float:
        return self.potential.rho

    def decay(self, eta: float) -> Float[np.ndarray, "d d"]:
        return np.asarray(expm(-number("eta", eta, low=0.0) * self.potential.A))

    def covariance(self, eta: float) -> Float[np.ndarray, "d d"]:
        decay = self.decay(eta)
        return np.linalg.inv(self.potential.A) @ (np.eye(self.dimensions) - decay @ decay)

    def start(self, n: int, rng: np.random.Generator) -> Float[np.ndarray, "n d"]:
        root = np.linalg.cholesky(np.linalg.inv(self.potential.A))
        return rng.normal(size=(n, self.dimensions)) @ root.T

    def step(self, x: np.ndarray, eta: float, rng: np.random.Generator) -> Float[np.ndarray, "n d"]:
        root = np.linalg.cholesky(self.covariance(eta))
        return x @ self.decay(eta).T + rng.normal(size=x.shape) @ root.T

    def path(self, count: int, eta: float, rng: np.random.Generator) -> Float[np.ndarray, "count d"]:
        """One linear filter per eigen-direction of A: no loop over time."""
        values, vectors = np.linalg.eigh(self.potential.A)
        noise = rng.normal(size=(count, self.dimensions)) / np.sqrt(values)
        noise[1:] *= np.sqrt(1 - np.exp(-2 * eta * values))
        modes = [lfilter([1.0], [1.0, -math.exp(-eta * value)], noise[:, index]) for index, value in enumerate(values)]
        return np.stack(modes, 1) @ vectors.T

    def start_tensor(self, n: int, rng: torch.Generator) -> Float[Tensor, "n d"]:
        """Draws of π on the generator's device, in single precision: what networks are trained on."""
        root = torch.from_numpy(np.linalg.cholesky(np.linalg.inv(self.potential.A))).float().to(rng.device)
        return torch.randn(n, self.dimensions, generator=rng, device=rng.device) @ root.T

    def step_tensor(self, x: Float[Tensor, "n d"], eta: float, rng: torch.Generator) -> Float[Tensor, "n d"]:
        """The state η later, on the generator's device."""
        decay, root = (torch.from_numpy(each).to(x) for each in self._maps(eta))
        return x @ decay.T + torch.randn(x.shape, generator=rng, device=x.device, dtype=x.dtype) @ root.T

    def _maps(self, eta: float) -> tuple[np.ndarray, np.ndarray]:
        return self.decay(eta), np.linalg.cholesky(self.covariance(eta))

    def log_kernel(self, z: np.ndarray, later: np.ndarray, eta: float) -> Float[np.ndarray, "*lead"]:
        """log p^η(z, z′)."""
        return log_gaussian(later - z @ self.decay(eta).T, self.covariance(eta))

    def log_stationary(self, x: np.ndarray) -> Float[np.ndarray, "*lead"]:
        return log_gaussian(x, np.linalg.inv(self.potential.A))


def log_gaussian(x: Float[np.ndarray, "*lead d"], covariance: Float[np.ndarray, "d d"]) -> Float[np.ndarray, "*lead"]:
    """log N(x; 0, covariance)."""
    inverse = np.linalg.inv(covariance)
    log_det = np.linalg.slogdet(covariance)[1]
    return -0.5 * (np.einsum("...i,ij,...j->...", x, inverse, x) + log_det + x.shape[-1] * math.log(2 * math.pi))


@dataclass(frozen=True)
class Langevin(Diffusion):
    """dx = −∇f dt + √2 dW by Euler–Maruyama with an inner step τ ≤ η/50 and τL₀ ≤ 0.05, from the stationary law.

    One-dimensional, or a sum over coordinates: x₀ from π on a fine grid, and the kernel from the grid chain. Other
    potentials: a burn-in of 20/ρ from the minimiser.
    """

    potential: Potential = field(default_factory=LogCosh)
    inner: float | None = None
    reach: float = 8.0

    @property
    def dimensions(self) -> int:
        return self.potential.dimensions

    @property
    def line(self) -> Potential:
        """The potential of one coordinate."""
        separable = hasattr(self.potential, "coordinates")
        require(
            separable or self.dimensions == 1, "potential", self.potential, "one-dimensional or a sum over coordinates"
        )
        return replace(self.potential, coordinates=1) if separable else self.potential  # type: ignore[call-arg]

    @cached_property
    def grid(self) -> GridChain:
        return GridChain(self.line, self.reach, 2000)

    def log_stationary(self, x: Float[np.ndarray, "*lead d"]) -> Float[np.ndarray, "*lead"]:
        """log π(x) = −f(x) − d log Z, Z by the sum over the grid."""
        f = self.line.f(self.grid.x[:, None])
        log_mass = float(np.log(np.exp(f.min() - f).sum() * self.grid.width) - f.min())
        return -self.potential.f(x) - self.dimensions * log_mass

    def log_kernel(self, z: np.ndarray, later: np.ndarray, eta: float) -> Float[np.ndarray, "*lead"]:
        """log p^η(z, z′) of the grid chain (600 cells), interpolated between cells: coordinates are independent."""
        chain = GridChain(self.line, self.reach, 600)
        logs = np.log(np.maximum(chain.kernel(eta) / chain.width, 1e-300))
        table = RegularGridInterpolator((chain.x, chain.x), logs, bounds_error=False, fill_value=None)
        return table(np.stack(np.broadcast_arrays(z, later), -1)).sum(-1)

    def inner_step(self, eta: float) -> float:
        """τ: the largest that divides η and keeps both bounds."""
        largest = self.inner or min(eta / 50, 0.05 / (self.potential.L0 or 10.0))
        return eta / math.ceil(eta / largest - 1e-9)

    def start(self, n: int, rng: np.random.Generator) -> Float[np.ndarray, "n d"]:
        if self.dimensions == 1 or hasattr(self.potential, "coordinates"):
            return self.grid.sample(n * self.dimensions, rng).reshape(n, self.dimensions)
        x = np.tile(self.potential.minimizer, (n, 1))
        return self.step(x, 20 / (self.potential.rho or 0.5), rng)

    def step(self, x: np.ndarray, eta: float, rng: np.random.Generator) -> Float[np.ndarray, "n d"]:
        tau = self.inner_step(min(eta, 1.0)) if eta > 1 else self.inner_step(eta)
        for _ in range(round(eta / tau)):
            x = x - tau * self.potential.grad(x) + math.sqrt(2 * tau) * rng.normal(size=x.shape)
        return x


@dataclass(frozen=True)
class ItoDiffusion(Diffusion):
    """dx = g(x) dt + σ(x) dW with any drift and any diffusion coefficient per coordinate, by Euler–Maruyama.

    The start is a burn-in from 0, because the stationary law of a general process is not known.
    """

    drift: Callable[[np.ndarray], np.ndarray] = np.negative
    sigma: Callable[[np.ndarray], np.ndarray] = np.ones_like
    coordinates: int = 1
    inner: float = 0.002
    burn_in: float = 20.0

    @property
    def dimensions(self) -> int:
        return self.coordinates

    def start(self, n: int, rng: np.random.Generator) -> Float[np.ndarray, "n d"]:
        return self.step(np.zeros((n, self.coordinates)), self.burn_in, rng)

    def step(self, x: np.ndarray, eta: float, rng: np.random.Generator) -> Float[np.ndarray, "n d"]:
        steps = max(1, math.ceil(eta / self.inner - 1e-9))
        tau = eta / steps
        for _ in range(steps):
            x = x + tau * self.drift(x) + math.sqrt(tau) * self.sigma(x) * rng.normal(size=x.shape)
        return x


def euler_kernel(potential: Potential, z: np.ndarray, later: np.ndarray, eta: float) -> Float[np.ndarray, "*lead"]:
    """log of the one-step Euler kernel N(z − η∇f(z), 2ηI): the baseline that fails at intervals that are not small."""
    d = z.shape[-1]
    return log_gaussian(later - z + eta * potential.grad(z), 2 * eta * np.eye(d))
