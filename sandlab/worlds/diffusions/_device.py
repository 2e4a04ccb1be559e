"""Contrastive pairs that never wait for the host: every constant, and every stored pair, stays on the device.

What is copied from the host in each draw keeps a training step from being recorded as a CUDA graph.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from sandlab.errors import integer, require
from sandlab.random import rng as generator
from sandlab.worlds.base import Batch, World
from sandlab.worlds.diffusions.contrast import ContrastLaw, GaussianContrast
from sandlab.worlds.diffusions.pairs import ContrastivePairs, labelled_batch
from sandlab.worlds.diffusions.potentials import DoubleWell, LogCosh, Potential
from sandlab.worlds.diffusions.processes import Langevin, OrnsteinUhlenbeck


@dataclass(frozen=True)
class SteadyOU(OrnsteinUhlenbeck):
    """The same process; the matrices of its draws are copied to a device once."""

    def start_tensor(self, n: int, rng: torch.Generator) -> Float[Tensor, "n d"]:
        return torch.randn(n, self.dimensions, generator=rng, device=rng.device) @ _start_map(self, rng.device)

    def step_tensor(self, x: Float[Tensor, "n d"], eta: float, rng: torch.Generator) -> Float[Tensor, "n d"]:
        decay, root = _step_maps(self, eta, x.device, x.dtype)
        return x @ decay + torch.randn(x.shape, generator=rng, device=x.device, dtype=x.dtype) @ root


@functools.lru_cache(maxsize=64)
def _start_map(process: SteadyOU, device: torch.device) -> Float[Tensor, "d d"]:
    root = np.linalg.cholesky(np.linalg.inv(process.potential.A))
    return torch.from_numpy(root.T.copy()).to(device, torch.float32)


@functools.lru_cache(maxsize=64)
def _step_maps(
    process: SteadyOU, eta: float, device: torch.device, dtype: torch.dtype
) -> tuple[Float[Tensor, "d d"], Float[Tensor, "d d"]]:
    decay, root = process.decay(eta), np.linalg.cholesky(process.covariance(eta))
    first, second = (torch.from_numpy(each.T.copy()).to(device, dtype) for each in (decay, root))
    return first, second


@dataclass(frozen=True)
class SideBySide(ContrastLaw):
    """Many Gaussian laws at once: rows are shared out evenly among them, in order.

    With one member of a population for each law, and examples of its own for each member, every member has its law.
    """

    laws: tuple[GaussianContrast, ...] = (GaussianContrast(),)

    def draw_tensor(self, x: Float[Tensor, "n d"], rng: torch.Generator) -> Float[Tensor, "n d"]:
        share, rest = divmod(len(x), len(self.laws))
        require(not rest, "examples", len(x), f"a multiple of the number of laws, {len(self.laws)}")
        mean, sd = _law_tensors(self.laws, x.device, x.dtype)
        noise = torch.randn(x.shape, generator=rng, device=x.device, dtype=x.dtype)
        return (noise.unflatten(0, (len(self.laws), share)) * sd + mean).flatten(0, 1)


@functools.lru_cache(maxsize=64)
def _law_tensors(
    laws: tuple[GaussianContrast, ...], device: torch.device, dtype: torch.dtype
) -> tuple[Float[Tensor, "law 1 1"], Float[Tensor, "law 1 1"]]:
    numbers = torch.tensor([[law.mean, law.sd] for law in laws], dtype=dtype, device=device)
    return numbers[:, 0].view(-1, 1, 1), numbers[:, 1].view(-1, 1, 1)


@dataclass(frozen=True)
class SimulatedPairs(World):
    """Pairs of simulated paths, made and kept on the device where they are used: batches draw positives among them.

    pairs            a Langevin diffusion over independent coordinates, contrast law and interval
    chains, blocks   independent stationary paths, and disjoint pairs of observations in each: the size of the data
    seed             of the simulation
    """

    pairs: ContrastivePairs = field(default_factory=lambda: ContrastivePairs(Langevin(), GaussianContrast(), 0.5))
    chains: int = 4000
    blocks: int = 25
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("chains", "blocks"):
            integer(name, getattr(self, name), low=1)
        require(isinstance(self.pairs.process, Langevin), "process", self.pairs.process, "a Langevin diffusion")

    @property
    def outputs(self) -> int:
        return 2

    def stored(self, device: torch.device | str = "cpu") -> Float[Tensor, "m 2 d"]:
        """All pairs (x, x′): blocks of two observations of every path."""
        return _simulated(self, str(device))

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        stored = self.stored(rng.device)
        chosen = stored[torch.randint(len(stored), (n,), generator=rng, device=rng.device)]
        return labelled_batch(chosen[:, 0], chosen[:, 1], self.pairs.q, rng)

    def oracle(self, batch: Batch) -> Float[Tensor, "example 1 class"]:
        return self.pairs.oracle(batch)


@functools.lru_cache(maxsize=4)
def _simulated(world: SimulatedPairs, device: str) -> Float[Tensor, "m 2 d"]:
    """Euler–Maruyama of all paths together, in double precision; what is kept is in single precision."""
    process, eta = world.pairs.process, world.pairs.eta
    assert isinstance(process, Langevin)
    rng, tau = generator(world.seed, "simulated pairs", device=device), process.inner_step(eta)
    x = torch.from_numpy(process.start(world.chains, np.random.default_rng(world.seed))).to(device)
    kept = torch.empty(world.chains, 2 * world.blocks, process.dimensions, device=device)
    kept[:, 0] = x
    for time in range(1, 2 * world.blocks):
        for _ in range(round(eta / tau)):
            noise = torch.randn(x.shape, generator=rng, device=device, dtype=x.dtype)
            x = x - tau * slope(process.potential, x) + math.sqrt(2 * tau) * noise
        kept[:, time] = x
    return kept.view(world.chains * world.blocks, 2, process.dimensions)


def slope(potential: Potential, x: Float[Tensor, "*lead d"]) -> Float[Tensor, "*lead d"]:
    """∇f of a tensor; potentials themselves are written for arrays."""
    if isinstance(potential, DoubleWell):
        return x * (x**2 - potential.a)
    require(isinstance(potential, LogCosh), "potential", potential, "log cosh or the double well")
    assert isinstance(potential, LogCosh)
    return potential.curvature * x + potential.alpha * torch.tanh(potential.beta * x)
