"""The Bayes predictor where first tokens follow the stationary distribution of the unknown kernel: by sampling.

The kernel's rows are Dirichlet(α) and the transitions seen add their counts; the first tokens tilt this posterior by
their stationary probability w(P) = ∏ π_P(start). Hence P(a | data) = E[P(a|c) w(P)] / E[w(P)] with P drawn from the
Dirichlet posterior of the counts (importance sampling whose proposal is the exact posterior of all other tokens).
The mean m = E[P(a|c)] is known exactly (it is the counting estimator), so that only the correction
Cov(P(a|c), w)/E[w] is sampled: its error vanishes with the correction.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from sandlab.checking import checked
from sandlab.errors import integer, number, require
from sandlab.worlds.base import Batch
from sandlab.worlds.markov.causal_graphs import InContextTree
from sandlab.worlds.markov.chain import InContextMarkov, context_indices
from sandlab.worlds.markov.lifted import positive_stationary_distribution
from sandlab.worlds.ngrams.in_context import InContextNgrams, spread_kernel

__all__ = ["SampledBayes", "stationary_bayes"]

ENTRIES = 2**22  # of the kernels that are held at once
SMALLEST = 1e-60  # of a probability, so that products of a few of them stay above zero


@dataclass(frozen=True)
class SampledBayes:
    """A Bayes prediction by sampling.

    log_probs   of every state, as an oracle gives them (example, read, states)
    error       standard error of each probability
    """

    log_probs: Float[Tensor, "example read states"]
    error: Float[Tensor, "example read states"]


@dataclass(frozen=True)
class _Cases:
    """Counts of transitions, counts of stationary starts (by window of tokens) and the row that is asked for."""

    counts: Int[Tensor, "case context states"]
    starts: Int[Tensor, "case window"]
    row: Int[Tensor, "case"]

    def unique(self) -> tuple[_Cases, Int[Tensor, "case"]]:
        """Each different case once, and where every case went."""
        facts = torch.cat([self.counts.flatten(1), self.starts, self.row.unsqueeze(1)], 1)
        kept, where = facts.unique(dim=0, return_inverse=True)
        shape = self.counts.shape[1:]
        counts, starts, row = kept.split([shape.numel(), self.starts.shape[1], 1], 1)
        return _Cases(counts.reshape(-1, *shape), starts, row.squeeze(1)), where

    def split(self, size: int) -> Iterator[_Cases]:
        for parts in zip(self.counts.split(size), self.starts.split(size), self.row.split(size)):
            yield _Cases(*parts)


@checked
def stationary_bayes(
    world: InContextMarkov | InContextNgrams | InContextTree,
    batch: Batch,
    *,
    particles: int = 4096,
    rng: torch.Generator,
) -> SampledBayes:
    """The Bayes prediction of a world with stationary starts (or roots), for any number of states, with its error bar.

    For InContextNgrams with read = "all", positions before the first complete context, which no loss counts, are
    uniform. Two states of order 1 have an exact oracle; this function agrees with it.

    particles   kernels drawn for each different set of counts; the error falls like 1/√particles
    """
    integer("particles", particles, low=100)
    number("concentration", world.concentration, low=0.05, hint="rows are too sparse to tell starts from counts")
    start = world.roots if isinstance(world, InContextTree) else world.start
    require(start == "stationary", "start", start, '"stationary": otherwise `oracle` is exact')
    if isinstance(world, InContextTree):
        probs, error = _sampled(world, _tree_cases(world, batch.inputs), (1,), particles, rng)
        return SampledBayes(probs.unsqueeze(1).log(), error.unsqueeze(1))
    lags = world.lags if isinstance(world, InContextMarkov) else world.parents
    known = [*range(max(lags), batch.inputs.shape[1] + 1)]
    if isinstance(world, InContextNgrams) and world.read == "last":
        known = known[-1:]
    found = [_sampled(world, _chain_cases(world, batch.inputs, lags, seen), lags, particles, rng) for seen in known]
    probs, error = (torch.stack(parts, 1) for parts in zip(*found))
    if len(known) == 1 and isinstance(world, InContextNgrams) and world.read == "last":
        return SampledBayes(probs.log(), error)
    early = [_early(world, batch.inputs[:, :seen], particles, rng) for seen in range(1, max(lags))]
    return SampledBayes(
        torch.cat([*(each[0].unsqueeze(1) for each in early), probs], 1).log(),
        torch.cat([*(each[1].unsqueeze(1) for each in early), error], 1),
    )


def _tree_cases(world: InContextTree, tokens: Int[Tensor, "example time"]) -> _Cases:
    states = world.states
    counts = torch.zeros(len(tokens), states * states, dtype=torch.int64, device=tokens.device)
    for child, parent in world.edges:
        counts += F.one_hot(states * tokens[:, parent] + tokens[:, child], states * states)
    roots = [position for position, parent in enumerate(world.parents[:-1]) if parent < 0]
    return _Cases(counts.view(-1, states, states), F.one_hot(tokens[:, roots], states).sum(1), tokens[:, -1])


def _chain_cases(
    world: InContextMarkov | InContextNgrams, tokens: Int[Tensor, "example time"], lags: tuple[int, ...], seen: int
) -> _Cases:
    """What the first `seen` tokens say about the kernel."""
    states, memory = world.states, max(lags)
    contexts = states ** len(lags)
    rows = context_indices(tokens[:, :seen], states, lags, memory)
    cells = rows[:, :-1] * states + tokens[:, memory:seen]
    counts = torch.zeros(len(tokens), contexts * states, dtype=torch.int64, device=tokens.device)
    counts.scatter_add_(1, cells, torch.ones_like(cells))
    window = context_indices(tokens[:, :memory], states, tuple(range(1, memory + 1)), memory)[:, 0]
    return _Cases(counts.view(-1, contexts, states), F.one_hot(window, states**memory), rows[:, -1])


def _sampled(
    world: InContextMarkov | InContextNgrams | InContextTree,
    cases: _Cases,
    lags: tuple[int, ...],
    particles: int,
    rng: torch.Generator,
) -> tuple[Float[Tensor, "case states"], Float[Tensor, "case states"]]:
    """Probabilities and standard errors; equal cases are sampled once."""
    kept, where = cases.unique()
    size = max(1, ENTRIES // (particles * world.states ** (2 * max(lags))))
    found = [_correct(part, world.concentration, lags, particles, rng) for part in kept.split(size)]
    probs, error = (torch.cat(parts) for parts in zip(*found))
    return probs[where], error[where]


def _correct(
    cases: _Cases, concentration: float, lags: tuple[int, ...], particles: int, rng: torch.Generator
) -> tuple[Tensor, Tensor]:
    """m + Cov(P(a|c), w)/E[w], and its standard error from the influence of each draw."""
    shape = concentration + cases.counts.double()
    kernels = _dirichlet(shape.unsqueeze(1).expand(-1, particles, -1, -1), rng)
    windows = positive_stationary_distribution(spread_kernel(kernels, shape.shape[-1], lags))
    logs = (cases.starts.unsqueeze(1) * windows.clamp(min=SMALLEST).log()).sum(-1)
    weight = (logs - logs.amax(1, keepdim=True)).exp()
    weight = (weight / weight.mean(1, keepdim=True)).unsqueeze(-1)
    everyone = torch.arange(len(shape), device=shape.device)
    row = shape[everyone, cases.row]
    mean = row / row.sum(-1, keepdim=True)
    off = kernels[everyone, :, cases.row] - mean.unsqueeze(1)
    off = off - off.mean(1, keepdim=True)
    shift = (off * (weight - 1)).mean(1, keepdim=True)
    influence = off * (weight - 1) - shift - shift * (weight - 1)
    # Rounding of the sampled correction may leave a tiny probability below zero.
    probs = (mean + shift.squeeze(1)).clamp(min=1e-12)
    return probs / probs.sum(-1, keepdim=True), influence.square().mean(1).sqrt() / particles**0.5


def _early(
    world: InContextMarkov | InContextNgrams, tokens: Int[Tensor, "example seen"], particles: int, rng: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Before the first complete context: the stationary probability of one token more, over that of those seen."""
    states, seen = world.states, tokens.shape[1]
    if isinstance(world, InContextNgrams):
        flat = torch.full((len(tokens), states), 1 / states, dtype=torch.float64, device=tokens.device)
        return flat, torch.zeros_like(flat)
    size = torch.full((particles, states**world.order, states), world.concentration, dtype=torch.float64)
    windows = positive_stationary_distribution(_dirichlet(size.to(tokens.device), rng))
    joint = windows.view(particles, states ** (seen + 1), -1).sum(-1).view(particles, -1, states)
    powers = states ** torch.arange(seen - 1, -1, -1, device=tokens.device)
    part = joint[:, (tokens * powers).sum(-1)].transpose(0, 1)
    total = part.sum(-1).mean(1, keepdim=True)
    probs = part.mean(1) / total
    influence = (part - probs.unsqueeze(1) * part.sum(-1, keepdim=True)) / total.unsqueeze(1)
    return probs, influence.square().mean(1).sqrt() / particles**0.5


def _dirichlet(shape: Float[Tensor, "*lead states"], rng: torch.Generator) -> Float[Tensor, "*lead states"]:
    """Dirichlet rows by Γ(a) = Γ(a + 1) · U^{1/a} in logarithms, so that a small a gives no row of zeros."""
    logs = torch._standard_gamma(shape + 1, generator=rng).log()
    logs = logs + torch.log1p(-torch.rand(shape.shape, dtype=shape.dtype, device=shape.device, generator=rng)) / shape
    rows = (logs - logs.amax(-1, keepdim=True)).exp().clamp(min=SMALLEST)
    return rows / rows.sum(-1, keepdim=True)
