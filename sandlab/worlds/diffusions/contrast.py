"""Contrast laws q: where the negatives of contrastive pairs come from."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Float
from scipy.stats import gaussian_kde
from torch import Tensor

from sandlab.errors import number
from sandlab.worlds.diffusions.processes import Langevin, OrnsteinUhlenbeck, log_gaussian

__all__ = ["ContrastLaw", "EmpiricalContrast", "GaussianContrast", "NearbyContrast", "StationaryContrast"]


@dataclass(frozen=True)
class ContrastLaw:
    """q(x′ | x): `draw` negatives for given x, and their log density."""

    def draw(self, x: Float[np.ndarray, "n d"], rng: np.random.Generator) -> Float[np.ndarray, "n d"]:
        raise NotImplementedError

    def log_pdf(self, later: np.ndarray, x: np.ndarray) -> Float[np.ndarray, "*lead"]:
        raise NotImplementedError

    def draw_tensor(self, x: Float[Tensor, "n d"], rng: torch.Generator) -> Float[Tensor, "n d"]:
        """The same on the generator's device; laws without a formula of their own draw in NumPy."""
        seed = int(torch.randint(2**62, (1,), generator=rng, device=rng.device))
        return torch.from_numpy(self.draw(x.cpu().numpy(), np.random.default_rng(seed))).to(x)


def _normals(x: Tensor, rng: torch.Generator) -> Tensor:
    return torch.randn(x.shape, generator=rng, device=x.device, dtype=x.dtype)


@dataclass(frozen=True)
class StationaryContrast(ContrastLaw):
    """q = π of a process whose density is known: Ornstein–Uhlenbeck, or a Langevin diffusion on the line."""

    process: OrnsteinUhlenbeck | Langevin = field(default_factory=OrnsteinUhlenbeck)

    def draw_tensor(self, x: Float[Tensor, "n d"], rng: torch.Generator) -> Float[Tensor, "n d"]:
        if isinstance(self.process, OrnsteinUhlenbeck):
            return self.process.start_tensor(len(x), rng).to(x.dtype)
        return super().draw_tensor(x, rng)

    def draw(self, x: np.ndarray, rng: np.random.Generator) -> Float[np.ndarray, "n d"]:
        return self.process.start(len(x), rng)

    def log_pdf(self, later: np.ndarray, x: np.ndarray) -> Float[np.ndarray, "*lead"]:
        return self.process.log_stationary(later)


@dataclass(frozen=True)
class GaussianContrast(ContrastLaw):
    """q = N(mean, sd² I), whatever x is."""

    mean: float = 0.0
    sd: float = 1.0

    def __post_init__(self) -> None:
        number("sd", self.sd, low=1e-9)

    def draw(self, x: np.ndarray, rng: np.random.Generator) -> Float[np.ndarray, "n d"]:
        return self.mean + self.sd * rng.normal(size=x.shape)

    def draw_tensor(self, x: Float[Tensor, "n d"], rng: torch.Generator) -> Float[Tensor, "n d"]:
        return self.mean + self.sd * _normals(x, rng)

    def log_pdf(self, later: np.ndarray, x: np.ndarray) -> Float[np.ndarray, "*lead"]:
        return log_gaussian(later - self.mean, self.sd**2 * np.eye(later.shape[-1]))


@dataclass(frozen=True)
class NearbyContrast(ContrastLaw):
    """q(x′ | x) = N(x, sd² I); the natural choice is sd² = 2η."""

    sd: float = 1.0

    def __post_init__(self) -> None:
        number("sd", self.sd, low=1e-9)

    @classmethod
    def natural(cls, eta: float) -> NearbyContrast:
        return cls(math.sqrt(2 * eta))

    def draw(self, x: np.ndarray, rng: np.random.Generator) -> Float[np.ndarray, "n d"]:
        return x + self.sd * rng.normal(size=x.shape)

    def draw_tensor(self, x: Float[Tensor, "n d"], rng: torch.Generator) -> Float[Tensor, "n d"]:
        return x + self.sd * _normals(x, rng)

    def log_pdf(self, later: np.ndarray, x: np.ndarray) -> Float[np.ndarray, "*lead"]:
        return log_gaussian(later - x, self.sd**2 * np.eye(later.shape[-1]))


@dataclass(frozen=True, eq=False)
class EmpiricalContrast(ContrastLaw):
    """q = the empirical marginal: negatives are other points of the data, their density a kernel estimate."""

    points: np.ndarray = field(default_factory=lambda: np.zeros((2, 1)))

    def draw(self, x: np.ndarray, rng: np.random.Generator) -> Float[np.ndarray, "n d"]:
        return self.points[rng.integers(len(self.points), size=len(x))]

    def log_pdf(self, later: np.ndarray, x: np.ndarray) -> Float[np.ndarray, "*lead"]:
        shape = later.shape[:-1]
        return gaussian_kde(self.points.T).logpdf(later.reshape(-1, later.shape[-1]).T).reshape(shape)
