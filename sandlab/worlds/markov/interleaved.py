"""Interleaved Markov chains: one kernel, at a lag that is drawn for every sequence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sandlab.errors import choice, integer, require
from sandlab.registry import register
from sandlab.worlds._row_sampler import RowSampler
from sandlab.worlds.base import Batch, World
from sandlab.worlds.markov._walk import draw
from sandlab.worlds.markov.chain import STARTS, MarkovChain, next_token_batch
from sandlab.worlds.ngrams.estimators import UniformEstimator

__all__ = ["InterleavedChains"]


@register("worlds")
@dataclass(frozen=True)
class InterleavedChains(World):
    """x_t ~ P(·|x_{t−κ}) with a fixed kernel P and a lag κ drawn uniformly from a set for every sequence.

    kernel   rows of P, the same in every sequence (see `MarkovChain`); `InterleavedChains.random(states, seed=…)`
    lags     the set of lags
    length   number of input tokens; the target at each is the token after it
    start    distribution of the first κ tokens, which start κ independent chains: "stationary" or "uniform"

    Tokens at a distance κ form κ interleaved chains. The oracle weighs the lags by their likelihood,
    ∏_{t<κ} μ(x_t) ∏_{t≥κ} P(x_t|x_{t−κ}), and mixes their predictions: exact at every position.
    truth["lag"]: (example,).

    Source: D'Angelo, Croce and Flammarion 2025, "Selective induction heads".
    """

    kernel: Any = ((0.6, 0.2, 0.2), (0.1, 0.8, 0.1), (0.3, 0.3, 0.4))
    lags: tuple[int, ...] = (1, 2, 3)
    length: int = 32
    start: str = "stationary"

    def __post_init__(self) -> None:
        chain = MarkovChain(self.kernel, length=1)
        require(chain.order == 1, "kernel", f"of order {chain.order}", "of order 1")
        object.__setattr__(self, "kernel", chain.kernel)
        object.__setattr__(self, "lags", tuple(sorted({integer("lag", lag, low=1) for lag in self.lags})))
        require(len(self.lags) >= 1, "lags", self.lags, "at least one lag")
        integer("length", self.length, low=self.lags[-1])
        choice("start", self.start, STARTS)

    @classmethod
    def random(
        cls,
        states: int,
        *,
        seed: int = 0,
        concentration: float = 1.0,
        lags: tuple[int, ...] = (1, 2, 3),
        length: int = 32,
    ) -> InterleavedChains:
        """With a kernel of Dirichlet rows drawn with the given seed."""
        chain = MarkovChain.random(states, 1, length=1, concentration=concentration, seed=seed)
        return cls(kernel=chain.kernel, lags=lags, length=length)

    @cached_property
    def chain(self) -> MarkovChain:
        return MarkovChain(self.kernel, length=1)

    @cached_property
    def _sampler(self) -> RowSampler:
        return RowSampler(self.chain.table)

    @property
    def vocab(self) -> int:
        return self.chain.states

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        memory = self.lags[-1]
        pick = torch.randint(0, len(self.lags), (n,), generator=rng, device=rng.device)
        lag = torch.tensor(self.lags, device=rng.device)[pick]
        buffer = torch.empty(self.length + 1, n, dtype=torch.int64, device=rng.device)
        buffer[:memory] = draw(self._start_distribution().to(rng.device).expand(memory, n, -1), rng=rng)
        sampler = self._sampler if rng.device.type == "cpu" else RowSampler(self.chain.table, rng.device)
        tokens, lags = sampler.array(buffer), sampler.array(lag)
        # The token κ steps back, seen from row t of the flattened (time, example) array.
        flat, back = tokens.reshape(-1), sampler.array(torch.arange(n, device=rng.device)) - lags * n
        for time, numbers in enumerate(sampler.numbers(self.length, n, rng), start=1):
            source = back + time * n
            if time >= memory:
                tokens[time] = sampler.draw(flat.take(source), *numbers)
            else:
                drawn = sampler.draw(flat.take(abs(source)), *numbers)
                tokens[time] = sampler.where(lags <= time, drawn, tokens[time])
        return next_token_batch(buffer.T, {"lag": lag})

    def oracle(self, batch: Batch) -> Float[Tensor, "example time states"]:
        weights = self.lag_posterior(batch.inputs)
        return (weights.unsqueeze(-1) * self.lag_predictions(batch.inputs)).sum(-2).log()

    def baselines(self) -> dict[str, Callable[[Batch], Tensor]]:
        """uniform; unigram: the start distribution; "lag κ" for each lag; "any lag": the lags mixed equally."""
        start = self._start_distribution().log()
        named: dict[str, Callable[[Batch], Tensor]] = {
            "uniform": UniformEstimator(self.vocab),
            "unigram": lambda batch: start.to(batch.inputs.device).expand(*batch.inputs.shape, -1),
            "any lag": lambda batch: self.lag_predictions(batch.inputs).mean(-2).log(),
        }
        for number, lag in enumerate(self.lags):
            named[f"lag {lag}"] = lambda batch, number=number: self.lag_predictions(batch.inputs)[..., number, :].log()
        return named

    def lag_predictions(self, tokens: Int[Tensor, "example time"]) -> Float[Tensor, "example time lag states"]:
        """What each lag predicts for the next token: P(·|x_{t+1−κ}), or the start distribution."""
        table, start = self.chain.table.to(tokens.device), self._start_distribution().to(tokens.device)
        time = torch.arange(1, tokens.shape[1] + 1, device=tokens.device)
        each = []
        for lag in self.lags:
            rows = table[tokens[:, (time - lag).clamp(min=0)]]
            each.append(torch.where((time >= lag).view(-1, 1), rows, start))
        return torch.stack(each, -2)

    def lag_posterior(self, tokens: Int[Tensor, "example time"]) -> Float[Tensor, "example time lag"]:
        """P(κ | x_0 … x_t) at every position."""
        predicted = self.lag_predictions(tokens)[:, :-1]
        picked = tokens[:, 1:, None, None].expand(-1, -1, len(self.lags), 1)
        log_likelihood = predicted.gather(-1, picked).squeeze(-1).log()
        # The first token says nothing: every lag draws it from the same distribution.
        return torch.nn.functional.pad(log_likelihood.cumsum(1), (0, 0, 1, 0)).softmax(-1)

    def _start_distribution(self) -> Float[Tensor, "states"]:
        chain = self.chain
        return chain.stationary() if self.start == "stationary" else torch.full_like(chain.table[0], 1 / chain.states)
