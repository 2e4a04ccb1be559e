"""Langevin diffusions on the circle: a compact space, on which c_q is finite."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from sandlab.errors import integer, require
from sandlab.worlds.diffusions.contrast import ContrastLaw
from sandlab.worlds.diffusions.grid import GridChain
from sandlab.worlds.diffusions.potentials import CirclePotential, Potential
from sandlab.worlds.diffusions.processes import Langevin

__all__ = ["CircleLangevin", "UniformContrast", "circle_contrast_constant"]


@dataclass(frozen=True)
class CircleLangevin(Langevin):
    """dx = −f′(x) dt + √2 dW on R/2πZ, with angles in [−π, π): π ∝ e^{−f}, for f = −κ cos x a von Mises law.

    Paths by Euler–Maruyama, wrapped after each inner step; the kernel from the grid chain on the circle.
    """

    potential: Potential = field(default_factory=CirclePotential)
    inner: float | None = None
    reach: float = math.pi

    def __post_init__(self) -> None:
        require(self.potential.period is not None, "potential", self.potential, "a potential on the circle")
        require(self.dimensions == 1, "potential", self.potential, "one-dimensional")

    def start(self, n: int, rng: np.random.Generator) -> Float[np.ndarray, "n 1"]:
        return wrapped(super().start(n, rng))

    def step(self, x: np.ndarray, eta: float, rng: np.random.Generator) -> Float[np.ndarray, "n 1"]:
        return wrapped(super().step(x, eta, rng))  # the slope is periodic: wrapping at the end is enough

    def log_kernel(self, z: np.ndarray, later: np.ndarray, eta: float) -> Float[np.ndarray, "*lead"]:
        """log p^η(z, z′) of the grid chain (600 cells), interpolated between cells around the circle."""
        chain = GridChain(self.line, self.reach, 600)
        logs = np.log(np.maximum(chain.kernel(eta) / chain.width, 1e-300))
        z, later = np.broadcast_arrays(z[..., 0], later[..., 0])
        (i, u), (j, v) = _cell(z, chain), _cell(later, chain)
        following, beyond = (i + 1) % chain.cells, (j + 1) % chain.cells
        before = (1 - v) * logs[i, j] + v * logs[i, beyond]
        after = (1 - v) * logs[following, j] + v * logs[following, beyond]
        return np.asarray((1 - u) * before + u * after)


def wrapped(x: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    """The same angles in [−π, π)."""
    return (x + math.pi) % (2 * math.pi) - math.pi


def _cell(x: np.ndarray, chain: GridChain) -> tuple[np.ndarray, np.ndarray]:
    """The cell whose centre is the last before an angle, and how far the angle is towards the next centre."""
    place = (wrapped(x) - chain.x[0]) / chain.width
    below = np.floor(place)
    return below.astype(int) % chain.cells, place - below


@dataclass(frozen=True)
class UniformContrast(ContrastLaw):
    """q = 1/2π on the circle, whatever x is."""

    def draw(self, x: np.ndarray, rng: np.random.Generator) -> Float[np.ndarray, "n d"]:
        return rng.uniform(-math.pi, math.pi, size=x.shape)

    def log_pdf(self, later: np.ndarray, x: np.ndarray) -> Float[np.ndarray, "*lead"]:
        shape = np.broadcast_shapes(later.shape, x.shape)
        return np.full(shape[:-1], -shape[-1] * math.log(2 * math.pi))


def circle_contrast_constant(process: CircleLangevin, q: ContrastLaw, eta: float, cells: int = 400) -> float:
    """log c_q = sup |log p*/q| over all pairs of cells (eq. 2.4): finite on the circle, unlike on the line."""
    chain = GridChain(process.line, process.reach, integer("cells", cells, low=3))
    logs = np.log(np.maximum(chain.kernel(eta) / chain.width, 1e-300))
    z, later = (np.broadcast_to(each[..., None], (cells, cells, 1)) for each in (chain.x[:, None], chain.x[None]))
    return float(np.abs(logs - q.log_pdf(later, z)).max())
