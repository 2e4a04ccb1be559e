"""Contrastive pairs: does x′ come η after x on a stationary path, or from the contrast law?"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from sandlab.errors import choice, integer, number, require
from sandlab.registry import register
from sandlab.worlds.base import Batch, World
from sandlab.worlds.diffusions.contrast import ContrastLaw, NearbyContrast, StationaryContrast
from sandlab.worlds.diffusions.processes import Diffusion, Langevin, OrnsteinUhlenbeck

__all__ = ["ContrastivePairs", "Pairs", "StoredPairs", "labelled_batch", "make_pairs"]


@dataclass(frozen=True)
class Pairs:
    """m labelled pairs: x, x′, and y = 1 where x′ is the true successor."""

    x: Float[np.ndarray, "m d"]
    later: Float[np.ndarray, "m d"]
    y: Bool[np.ndarray, " m"]

    def __len__(self) -> int:
        return len(self.y)


def make_pairs(path: Float[np.ndarray, "count d"], q: ContrastLaw, rng: np.random.Generator) -> Pairs:
    """⌊count/2⌋ pairs from disjoint blocks of two observations; a fair coin replaces the successor by a draw of q.

    Pairs never overlap in time, and a replaced successor is thrown away.
    """
    even = len(path) // 2 * 2
    require(even >= 2, "path", len(path), "at least two observations")
    x, successor = path[0:even:2], path[1:even:2]
    y = rng.random(len(x)) < 0.5
    return Pairs(x, np.where(y[:, None], successor, q.draw(x, rng)), y)


@register("worlds")
@dataclass(frozen=True)
class ContrastivePairs(World):
    """Pairs (x, x′) with x ~ π and x′ ~ ½p*(x, ·) + ½q; the class says which. Bayes: h* = p*/(p* + q) (Lemma 1).

    process   a stationary diffusion; the oracle needs its kernel: Ornstein–Uhlenbeck exactly, Langevin by a grid chain
    q         the contrast law; eta: the time between x and x′
    paths     "parallel": every pair has a chain of its own; "single": all pairs come from one long path

    Source: Liu 2024 (thesis, CMU-ML-24-110), section 2.1.
    """

    process: Diffusion = field(default_factory=OrnsteinUhlenbeck)
    q: ContrastLaw = field(default_factory=StationaryContrast)
    eta: float = 0.5
    paths: str = "parallel"

    def __post_init__(self) -> None:
        number("eta", self.eta, low=1e-9)
        choice("paths", self.paths, ("parallel", "single"))

    @property
    def outputs(self) -> int:
        return 2

    @classmethod
    def nearby(cls, eta: float) -> ContrastivePairs:
        """Negatives N(x, 2η)."""
        return cls(q=NearbyContrast.natural(eta), eta=eta)

    def pairs(self, m: int, rng: np.random.Generator) -> Pairs:
        """m labelled pairs."""
        if self.paths == "single":
            return make_pairs(self.process.path(2 * m, self.eta, rng), self.q, rng)
        x = self.process.start(m, rng)
        y = rng.random(m) < 0.5
        return Pairs(x, np.where(y[:, None], self.process.step(x, self.eta, rng), self.q.draw(x, rng)), y)

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        if self.paths == "parallel" and isinstance(self.process, OrnsteinUhlenbeck):
            x = self.process.start_tensor(n, rng)
            return labelled_batch(x, self.process.step_tensor(x, self.eta, rng), self.q, rng)
        seed = int(torch.randint(2**62, (1,), generator=rng, device=rng.device))
        found = self.pairs(n, np.random.default_rng(seed))
        both = torch.from_numpy(np.concatenate([found.x, found.later], 1)).to(rng.device)
        return _batch(both, torch.from_numpy(found.y).to(rng.device))

    def log_ratio(self, x: np.ndarray, later: np.ndarray) -> Float[np.ndarray, "*lead"]:
        """log p*(x, x′) − log q(x′ | x), the logit of the optimal classifier."""
        known = isinstance(self.process, (OrnsteinUhlenbeck, Langevin))
        require(known, "process", self.process, "a process whose kernel is known: Ornstein–Uhlenbeck or Langevin")
        assert isinstance(self.process, (OrnsteinUhlenbeck, Langevin))
        return self.process.log_kernel(x, later, self.eta) - self.q.log_pdf(later, x)

    def oracle(self, batch: Batch) -> Float[Tensor, "example 1 class"]:
        pairs = batch.inputs.to(torch.float64).cpu().numpy()
        d = pairs.shape[1] // 2
        ratio = torch.from_numpy(self.log_ratio(pairs[:, :d], pairs[:, d:])).to(batch.inputs.device)
        return torch.nn.functional.logsigmoid(torch.stack([-ratio, ratio], dim=-1)).unsqueeze(1)


def labelled_batch(x: Float[Tensor, "n d"], later: Float[Tensor, "n d"], q: ContrastLaw, rng: torch.Generator) -> Batch:
    """Positives (x, x′) of which a fair coin replaces half by fresh negatives of q."""
    y = torch.rand(len(x), generator=rng, device=x.device) < 0.5
    return _batch(torch.cat([x, torch.where(y[:, None], later, q.draw_tensor(x, rng))], 1), y)


def _batch(pairs: Float[Tensor, "n both"], y: Bool[Tensor, " n"]) -> Batch:
    """One answer per example: targets and mask have a time axis of length 1."""
    label = y.long().unsqueeze(1)
    return Batch(pairs.float(), label, torch.ones_like(label, dtype=torch.bool), {"pairs": pairs})


@register("worlds")
@dataclass(frozen=True)
class StoredPairs(World):
    """Pairs of simulated paths that are stored once: batches draw positives among them, and negatives afresh.

    pairs            process, contrast law and interval
    chains, blocks   independent stationary paths, and disjoint pairs of observations in each: the size of the data
    seed             of the simulation

    For processes that are dear to simulate; the optimal classifier is that of `pairs`.
    """

    pairs: ContrastivePairs = field(default_factory=ContrastivePairs)
    chains: int = 4000
    blocks: int = 25
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("chains", "blocks"):
            integer(name, getattr(self, name), low=1)

    @property
    def outputs(self) -> int:
        return 2

    @cached_property
    def positives(self) -> Float[np.ndarray, "m 2 d"]:
        """All stored pairs (x, x′): blocks of two observations of every path."""
        rng, process = np.random.default_rng(self.seed), self.pairs.process
        states = [process.start(self.chains, rng)]
        for _ in range(2 * self.blocks - 1):
            states.append(process.step(states[-1], self.pairs.eta, rng))
        path = np.stack(states, 1)
        return path.reshape(self.chains * self.blocks, 2, process.dimensions)

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        stored = torch.from_numpy(self.positives).to(rng.device)
        chosen = stored[torch.randint(len(stored), (n,), generator=rng, device=rng.device)]
        return labelled_batch(chosen[:, 0], chosen[:, 1], self.pairs.q, rng)

    def oracle(self, batch: Batch) -> Float[Tensor, "example 1 class"]:
        return self.pairs.oracle(batch)
