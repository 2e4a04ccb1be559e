"""Grid chains: reversible finite chains that stand in for Langevin diffusions, with every expectation a finite sum."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from jaxtyping import Float
from scipy import sparse
from scipy.linalg import eigh_tridiagonal
from scipy.sparse.linalg import expm_multiply

from sandlab.errors import integer, number, require
from sandlab.worlds.diffusions.potentials import Potential, Quadratic

__all__ = ["GridChain", "PlaneGrid"]


@dataclass(frozen=True)
class GridChain:
    """A chain on N cells of [−reach, reach] (or of the circle) with the rates of a Langevin diffusion.

    Q_{i,i±1} = h⁻² exp(−(f_{i±1} − f_i)/2), reflecting ends; π_i ∝ e^{−f_i} satisfies detailed balance exactly.
    P(t) = D^{−1/2} V e^{tΛ} Vᵀ D^{1/2} of the symmetrised generator; the error against the diffusion is O(h²).
    """

    potential: Potential = field(default_factory=Quadratic)
    reach: float = 6.0
    cells: int = 400

    def __post_init__(self) -> None:
        number("reach", self.reach, low=1e-9)
        integer("cells", self.cells, low=3)
        require(self.potential.dimensions == 1, "potential", self.potential, "one-dimensional", "see PlaneGrid")

    @property
    def width(self) -> float:
        """Width h of a cell."""
        return (self.potential.period or 2 * self.reach) / self.cells

    @cached_property
    def x(self) -> Float[np.ndarray, " cell"]:
        """Centres of the cells."""
        return (np.arange(self.cells) + 0.5) * self.width - (self.potential.period or 2 * self.reach) / 2

    @cached_property
    def stationary(self) -> Float[np.ndarray, " cell"]:
        """π, a distribution over cells."""
        f = self.potential.f(self.x[:, None])
        weights = np.exp(f.min() - f)
        return weights / weights.sum()

    @cached_property
    def spectrum(self) -> tuple[Float[np.ndarray, " cell"], Float[np.ndarray, "cell cell"]]:
        """Eigenvalues (falling from 0) and orthonormal eigenvectors of the symmetrised generator."""
        f = self.potential.f(self.x[:, None])
        up, down = np.exp(-(np.roll(f, -1) - f) / 2), np.exp(-(np.roll(f, 1) - f) / 2)
        if self.potential.period is None:
            up[-1] = down[0] = 0.0
            values, vectors = eigh_tridiagonal(-(up + down) / self.width**2, np.full(self.cells - 1, self.width**-2))
        else:
            shift = np.roll(np.eye(self.cells), 1, axis=0)
            values, vectors = np.linalg.eigh((np.diag(-(up + down)) + shift + shift.T) / self.width**2)
        return values[::-1], vectors[:, ::-1]

    def kernel(self, time: float) -> Float[np.ndarray, "cell cell"]:
        """P(t): row i is the law after time t from cell i."""
        values, vectors = self.spectrum
        root = np.sqrt(self.stationary)
        found = (vectors * np.exp(time * values)) @ vectors.T * root[None, :] / root[:, None]
        found = np.maximum(found, 0.0)  # rounding leaves entries of about −1e−16
        return found / found.sum(1, keepdims=True)

    @property
    def spectral_gap(self) -> float:
        """Rate at which the slowest mode decays: minus the second eigenvalue of the generator."""
        return float(-self.spectrum[0][1])

    @property
    def sd(self) -> float:
        mean = self.stationary @ self.x
        return float(np.sqrt(self.stationary @ (self.x - mean) ** 2))

    def sample(self, n: int, rng: np.random.Generator) -> Float[np.ndarray, " n"]:
        """Draws of π, uniform inside their cell."""
        cells = rng.choice(self.cells, size=n, p=self.stationary)
        return self.x[cells] + self.width * (rng.random(n) - 0.5)


@dataclass(frozen=True)
class PlaneGrid:
    """The same in the plane: the product stencil on `cells` × `cells` squares, powers by sparse exponentials."""

    potential: Potential = field(default_factory=lambda: Quadratic(((1.0, 0.0), (0.0, 1.0))))
    reach: float = 4.0
    cells: int = 40

    def __post_init__(self) -> None:
        require(self.potential.dimensions == 2, "potential", self.potential, "two-dimensional")
        integer("cells", self.cells, low=3)

    @property
    def width(self) -> float:
        return 2 * self.reach / self.cells

    @cached_property
    def x(self) -> Float[np.ndarray, "cell 2"]:
        line = (np.arange(self.cells) + 0.5) * self.width - self.reach
        return np.stack([each.ravel() for each in np.meshgrid(line, line, indexing="ij")], 1)

    @cached_property
    def stationary(self) -> Float[np.ndarray, " cell"]:
        f = self.potential.f(self.x)
        weights = np.exp(f.min() - f)
        return weights / weights.sum()

    @cached_property
    def generator(self) -> sparse.csr_array:
        """Q, rows sum to 0."""
        n, index = self.cells, np.arange(self.cells**2).reshape(self.cells, self.cells)
        pairs = [(index[:-1].ravel(), index[1:].ravel()), (index[:, :-1].ravel(), index[:, 1:].ravel())]
        f = self.potential.f(self.x)
        rows = np.concatenate([each for a, b in pairs for each in (a, b)])
        columns = np.concatenate([each for a, b in pairs for each in (b, a)])
        rates = np.exp(-(f[columns] - f[rows]) / 2) / self.width**2
        off = sparse.coo_array((rates, (rows, columns)), shape=(n * n, n * n)).tocsr()
        return (off - sparse.diags_array(np.asarray(off.sum(1)).ravel())).tocsr()

    def kernel(self, time: float) -> Float[np.ndarray, "cell cell"]:
        """P(t) as a dense matrix, from the spectrum of the symmetrised generator: for a few thousand cells at most."""
        root = np.sqrt(self.stationary)
        values, vectors = self.spectrum
        found = np.maximum((vectors * np.exp(time * values)) @ vectors.T * root[None, :] / root[:, None], 0.0)
        return found / found.sum(1, keepdims=True)

    @cached_property
    def spectrum(self) -> tuple[Float[np.ndarray, " cell"], Float[np.ndarray, "cell cell"]]:
        """Eigenvalues and orthonormal eigenvectors of the symmetrised generator."""
        root = np.sqrt(self.stationary)
        found = np.linalg.eigh(root[:, None] * self.generator.toarray() / root[None, :])
        return found.eigenvalues, found.eigenvectors

    def after(self, start: Float[np.ndarray, " cell"], time: float) -> Float[np.ndarray, " cell"]:
        """The law after time t from the law `start`."""
        return np.asarray(expm_multiply(self.generator.T * time, start))
