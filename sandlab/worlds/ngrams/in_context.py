"""In-context n-grams with soft targets: a new kernel in every sequence, its next-token distribution as the target."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sandlab.errors import choice, integer, number, require
from sandlab.registry import register
from sandlab.worlds.base import Batch, World
from sandlab.worlds.markov._walk import dirichlet_rows, draw, walk
from sandlab.worlds.markov.chain import STARTS, context_indices, window_tokens
from sandlab.worlds.markov.lifted import conditional_distribution, stationary_distribution
from sandlab.worlds.ngrams.estimators import CountingEstimator, UniformEstimator, naming, ngram_estimators

__all__ = ["InContextNgrams", "spread_kernel"]


@register("worlds")
@dataclass(frozen=True)
class InContextNgrams(World):
    """A new random chain in every sequence; the target is that chain's distribution of the next token.

    states         alphabet size S
    order          number of previous tokens that matter. Varre, Yüce and Flammarion call this an n-gram task with
                   n = order + 1; others count previous tokens and say n = order
    length         number T of tokens seen
    concentration  α: the row P(·|c) of each of the S^order contexts is an independent Dirichlet(α, …, α) draw
    start          "uniform": the tokens before the first complete context are independent and uniform;
                   "stationary": they follow the stationary distribution of the sequence's chain
    lags           which previous tokens matter, `order` of them: (1, …, order) by default; (2, 4) leaves gaps
    read           "last": one target, the distribution of token T; "all": a target at every position whose context is
                   complete
    read_from      with read = "all": the shortest prefix (in tokens) whose prediction counts
    targets        "probs": P(·|context) itself, so that the loss is −Σ_s P(s|c) log p(s); "token": a draw from it

    truth["kernels"]: (example, context, state), contexts numbered Σ_i x_{t−h_i} S^i, smallest lag at i = 0.

    The oracle is the Bayes predictor (N + α)/(ΣN + Sα) from the transitions seen so far, with the uniform start. Its
    loss against soft targets is the best any predictor can reach. With the stationary start the first tokens carry a
    little more information: `stationary_bayes` samples the Bayes prediction with its error bar (see `InContextMarkov`).
    `baselines` are the add-α counting estimators of every order; `subsets` those of every set of lags.

    Source: Varre, Yüce and Flammarion 2025, "Learning in-context n-grams with transformers", §2.1–2.2 and §5.
    """

    states: int = 5
    order: int = 2
    length: int = 32
    concentration: float = 0.5
    start: str = "uniform"
    lags: tuple[int, ...] | None = None
    read: str = "last"
    targets: str = "probs"
    read_from: int = 1

    def __post_init__(self) -> None:
        integer("states", self.states, low=2)
        integer("order", self.order, low=1, hint="order 0 has no context to look up")
        contexts = self.states**self.order
        require(contexts <= 2**20, "order", self.order, f"small enough for at most 2^20 contexts, not {contexts}")
        if self.lags is not None:
            lags = tuple(sorted(integer("lag", lag, low=1) for lag in self.lags))
            object.__setattr__(self, "lags", lags)
            require(len(set(lags)) == self.order, "lags", lags, f"{self.order} different ones, as many as the order")
        integer("length", self.length, low=self.memory)
        number("concentration", self.concentration, low=1e-3)
        choice("start", self.start, STARTS)
        choice("read", self.read, ("last", "all"))
        choice("targets", self.targets, ("probs", "token"))
        integer("read_from", self.read_from, low=1, high=self.length)

    @property
    def vocab(self) -> int:
        return self.states

    @property
    def parents(self) -> tuple[int, ...]:
        """The lags of the tokens that matter, smallest first."""
        return self.lags or tuple(range(1, self.order + 1))

    @property
    def memory(self) -> int:
        """The largest lag: tokens before the first complete context."""
        return max(self.parents)

    def describe(self) -> str:
        gaps = "" if self.parents == tuple(range(1, self.order + 1)) else f", parents at lags {self.parents}"
        return f"in-context chain on {self.states} states, {naming(self.order)}{gaps}"

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        kernels = dirichlet_rows((n, self.states**self.order, self.states), self.concentration, rng=rng)
        first = self._first_tokens(kernels, rng)
        steps = self.length - self.memory + (self.targets == "token")
        tokens = walk(kernels, first, steps, self.parents, rng=rng) if steps else first
        return self._batch(tokens, kernels)

    def oracle(self, batch: Batch) -> Float[Tensor, "example read states"]:
        """Log-probabilities of the Bayes predictor from Dirichlet counts, at the positions that have a target."""
        if self.start == "stationary":
            raise NotImplementedError(
                'no closed form is known for the Bayes predictor with the stationary start: take start="uniform", or '
                "the counting estimators in baselines()"
            )
        return _Read(self, CountingEstimator(self.states, self.parents, self.concentration))(batch)

    def baselines(self) -> dict[str, Callable[[Batch], Tensor]]:
        """Uniform, unigram, bigram, … with add-α smoothing, and the estimator of the true lags when they have gaps."""
        named = dict(ngram_estimators(self.states, self.order, self.concentration))
        exact = CountingEstimator(self.states, self.parents, self.concentration)
        return {name: _Read(self, estimate) for name, estimate in {**named, exact.name: exact}.items()}

    def subsets(self, smoothing: float | None = None, boundary: str = "strict") -> dict[str, CountingEstimator]:
        """Counting estimators of every set of lags up to the memory: what a network may compute while it learns."""
        beta = self.concentration if smoothing is None else smoothing
        every = itertools.chain.from_iterable(
            itertools.combinations(range(1, self.memory + 1), size) for size in range(self.memory + 1)
        )
        made = [CountingEstimator(self.states, lags, beta, boundary) for lags in every]
        return {estimate.name: estimate for estimate in made}

    def next_probs(self, batch: Batch) -> Float[Tensor, "example later states"]:
        """P(·|context) at every position whose context is complete: predictions of tokens memory … T."""
        rows = context_indices(batch.inputs, self.states, self.parents, self.memory)
        return batch.truth["kernels"].gather(1, rows.unsqueeze(-1).expand(-1, -1, self.states))

    def lower_order_probs(self, batch: Batch, lags: tuple[int, ...]) -> Float[Tensor, "example states"]:
        """p(x_T | x_{T−h}, h in lags) of each sequence's stationary chain: the limit of the counts as T grows."""
        kernels = spread_kernel(batch.truth["kernels"], self.states, self.parents)
        rows = conditional_distribution(kernels, lags)
        number = context_indices(batch.inputs, self.states, tuple(lags), self.length)[:, -1]
        return rows[torch.arange(len(rows), device=rows.device), number]

    def _first_tokens(self, kernels: Tensor, rng: torch.Generator) -> Int[Tensor, "example memory"]:
        if self.start == "uniform":
            shape = (len(kernels), self.memory)
            return torch.randint(0, self.states, shape, generator=rng, device=rng.device)
        windows = stationary_distribution(spread_kernel(kernels, self.states, self.parents))
        return window_tokens(draw(windows, rng=rng), self.states, self.memory)

    def _batch(self, tokens: Tensor, kernels: Tensor) -> Batch:
        inputs = tokens[:, : self.length].contiguous()
        known = torch.arange(1, self.length + 1, device=inputs.device) >= max(self.memory, self.read_from)
        mask = self._read(known.expand(len(inputs), -1).unsqueeze(-1)).squeeze(-1)
        truth = {"kernels": kernels}
        if self.targets == "token":
            return Batch(inputs, self._read(tokens[:, 1:].unsqueeze(-1)).squeeze(-1), mask, truth)
        if self.read == "last":
            number = context_indices(inputs, self.states, self.parents, self.length)
            return Batch(inputs, kernels.gather(1, number.unsqueeze(-1).expand(-1, -1, self.states)), mask, truth)
        probs = kernels.new_full((*inputs.shape, self.states), 1 / self.states)
        probs[:, self.memory - 1 :] = self.next_probs(Batch(inputs, inputs, mask, truth))
        return Batch(inputs, probs, mask, truth)

    def _read(self, values: Tensor) -> Tensor:
        """The values at the positions that have a target."""
        return values[:, -1:].contiguous() if self.read == "last" else values.contiguous()


@dataclass(frozen=True)
class _Read:
    """An estimator whose predictions are cut to the positions that have a target."""

    world: InContextNgrams
    estimate: UniformEstimator | CountingEstimator

    def __call__(self, batch: Batch) -> Tensor:
        if self.world.read == "last" and isinstance(self.estimate, CountingEstimator):
            return self.estimate.last_probabilities(batch.inputs).log().unsqueeze(1)
        return self.world._read(self.estimate(batch))


def spread_kernel(
    kernels: Float[Tensor, "*lead context states"], states: int, lags: tuple[int, ...]
) -> Float[Tensor, "*lead window states"]:
    """The kernel as a function of all max(lags) previous tokens, of which those at other lags have no effect."""
    memory = max(lags)
    window = torch.arange(states**memory, device=kernels.device)
    number = torch.zeros_like(window)
    for power, lag in enumerate(sorted(lags)):
        number += window // states ** (lag - 1) % states * states**power
    return kernels[..., number, :]
