"""Markov chains of any order: one fixed chain, or a fresh random chain in every sequence."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from sandlab.errors import BadInput, choice, integer, number, require
from sandlab.random import rng as seeded_rng
from sandlab.registry import register
from sandlab.worlds._row_sampler import RowSampler
from sandlab.worlds.base import Batch, World
from sandlab.worlds.markov._walk import binary_walk, dirichlet_rows, draw, shared_walk, walk
from sandlab.worlds.markov.lifted import (
    conditional_distribution,
    lifted_chain,
    order_of,
    stationary_distribution,
    token_distribution,
)
from sandlab.worlds.ngrams.estimators import CountingEstimator, UniformEstimator, naming, ngram_estimators, ngram_name

__all__ = ["InContextMarkov", "MarkovChain", "context_indices", "next_token_batch", "window_tokens"]

STARTS = ("stationary", "uniform")
BINARY = ((0.8, 0.2), (0.3, 0.7))
MANY = 256  # examples from which a loop over time with a prepared sampler is the fastest on a CPU


def context_indices(
    tokens: Int[Tensor, "example time"], states: int, lags: tuple[int, ...], first: int
) -> Int[Tensor, "example later"]:
    """Index of the kernel row of token t, for t = first … time: Σ_i x_{t−h_i} · states^i, smallest lag at i = 0."""
    time = torch.arange(first, tokens.shape[-1] + 1, device=tokens.device)
    code = torch.zeros(*tokens.shape[:-1], len(time), dtype=torch.int64, device=tokens.device)
    for power, lag in enumerate(sorted(lags)):
        code = code + tokens[..., time - lag] * states**power
    return code


def window_tokens(index: Int[Tensor, "example"], states: int, order: int) -> Int[Tensor, "example order"]:
    """The tokens of the context with a given index, oldest first."""
    powers = states ** torch.arange(order - 1, -1, -1, device=index.device)
    return index.unsqueeze(-1) // powers % states


def next_token_batch(tokens: Int[Tensor, "example time"], truth: dict[str, Tensor] | None = None) -> Batch:
    """Inputs are all tokens but the last, targets all but the first, every position counts."""
    inputs, targets = (part.to(torch.int64).contiguous() for part in (tokens[:, :-1], tokens[:, 1:]))
    return Batch(inputs, targets, torch.ones_like(inputs, dtype=torch.bool), truth or {})


@register("worlds")
@dataclass(frozen=True)
class MarkovChain(World):
    """One fixed Markov chain of any order, the same in every sequence.

    kernel   nested rows: kernel[x_{t−k}]…[x_{t−1}][x_t] is P(x_t | x_{t−k} … x_{t−1}); its depth gives the order k
             (an n-gram with n = k + 1 tokens per window; some authors count the k previous tokens only)
    length   number of input tokens; the target at each is the token after it
    start    "stationary": the first k tokens follow the stationary distribution, as does the whole sequence;
             "uniform": they are independent and uniform

    The oracle is the exact next-token distribution at every position, the first ones included. A two-state chain is
    `MarkovChain.binary(p, q)` with P(1|0) = p and P(0|1) = q: stationary distribution π = (q, p)/(p + q), second
    eigenvalue λ = 1 − p − q, best loss without context H(π), best loss of all π₀h(p) + π₁h(q) (Makkuva et al. 2024,
    "Attention with Markov").
    """

    kernel: Any = BINARY
    length: int = 64
    start: str = "stationary"

    def __post_init__(self) -> None:
        table = _checked_kernel(self.kernel)
        object.__setattr__(self, "kernel", _as_tuples(table))
        integer("length", self.length, low=max(self.order, 1))
        choice("start", self.start, STARTS)
        if self.start == "stationary":
            self.stationary()

    @classmethod
    def binary(cls, p: float, q: float, length: int = 64, start: str = "stationary") -> MarkovChain:
        """Two states, P(1|0) = p, P(0|1) = q; p + q > 1 is the switching regime."""
        p, q = number("p", p, 0.0, 1.0), number("q", q, 0.0, 1.0)
        require(p + q > 0, "p + q", p + q, "above 0", "a chain that never moves has no unique stationary distribution")
        return cls(kernel=((1 - p, p), (q, 1 - q)), length=length, start=start)

    @classmethod
    def random(
        cls, states: int, order: int = 1, length: int = 64, concentration: float = 1.0, seed: int = 0
    ) -> MarkovChain:
        """A chain whose rows are Dirichlet draws with the given seed."""
        integer("states", states, low=2)
        integer("order", order, low=1)
        number("concentration", concentration, low=1e-3)
        rows = dirichlet_rows((states**order, states), concentration, rng=seeded_rng(seed, "markov-chain"))
        return cls(kernel=rows.reshape([states] * (order + 1)).tolist(), length=length)

    @cached_property
    def table(self) -> Float[Tensor, "context states"]:
        """The kernel with one row per context, float64."""
        table = torch.tensor(self.kernel, dtype=torch.float64)
        return table.reshape(-1, table.shape[-1])

    @property
    def states(self) -> int:
        return len(_first_row(self.kernel))

    @property
    def order(self) -> int:
        """Number of previous tokens that matter."""
        return order_of(self.table)

    @property
    def vocab(self) -> int:
        return self.states

    def describe(self) -> str:
        return f"fixed chain on {self.states} states, {naming(self.order)}"

    def stationary(self) -> Float[Tensor, "context"]:
        """Stationary distribution π of `order` tokens in a row (of one token for a first-order chain)."""
        return self._stationary

    @cached_property
    def _stationary(self) -> Tensor:
        return stationary_distribution(self.table)

    @cached_property
    def _sampler(self) -> RowSampler:
        return RowSampler(self.table)

    def marginal(self) -> Float[Tensor, "states"]:
        """Stationary distribution of one token."""
        return token_distribution(self.table)

    def marginal_entropy(self) -> float:
        """H(marginal): the loss of the best prediction that ignores the past, in nats."""
        return float(torch.special.entr(self.marginal()).sum())

    def entropy_rate(self) -> float:
        """Σ_c π(c) H(P(·|c)): the loss that no predictor beats, in nats per token."""
        return float((self.stationary() * torch.special.entr(self.table).sum(-1)).sum())

    def spectrum(self) -> np.ndarray:
        """Eigenvalues of the chain on contexts, largest modulus first; 1 − p − q is the second of a binary chain."""
        values = np.linalg.eigvals(lifted_chain(self.table).numpy())
        return values[np.argsort(-np.abs(values), kind="stable")]

    def conditional(self, lags: tuple[int, ...]) -> Float[Tensor, "subcontext states"]:
        """Exact distribution of the next token given only the tokens at the given lags."""
        return conditional_distribution(self.table, lags)

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        table = self.table.to(rng.device)
        probs = self.stationary().to(rng.device) if self.start == "stationary" else _uniform(len(table), rng.device)
        context = draw(probs.expand(n, -1), rng=rng)
        steps = self.length + 1 - self.order
        if self.states == 2 and self.order == 1:
            tokens = binary_walk(float(table[1, 1]), float(table[0, 1]), context, steps, rng=rng)
        else:
            first = window_tokens(context, self.states, self.order)
            lags = tuple(range(1, self.order + 1))
            if n >= MANY and rng.device.type == "cpu":
                tokens = shared_walk(self._sampler, first, steps, lags, rng=rng)
            else:
                tokens = walk(table.unsqueeze(0), first, steps, lags, rng=rng)
        return next_token_batch(tokens)

    def oracle(self, batch: Batch) -> Float[Tensor, "example time states"]:
        """log P(x_{t+1} | x_0 … x_t), exact at every position for the chosen start."""
        return self._predict(batch.inputs, self.order, self.start == "stationary")

    def baselines(self) -> dict[str, Callable[[Batch], Tensor]]:
        """Best predictions from fewer tokens: uniform, then the exact one given 0, 1, … previous tokens."""
        named: dict[str, Callable[[Batch], Tensor]] = {"uniform": UniformEstimator(self.states)}
        for order in range(self.order + 1):
            named[ngram_name(order)] = lambda batch, order=order: self._predict(batch.inputs, order, True)
        return named

    def _predict(self, tokens: Tensor, order: int, stationary: bool) -> Tensor:
        """log P(next token | last `order` tokens, or all tokens where there are fewer)."""
        probs = torch.full((*tokens.shape, self.states), 1 / self.states, dtype=torch.float64, device=tokens.device)
        for known in range(min(order, tokens.shape[-1] + 1) + 1):
            if known < order and not stationary:
                continue
            lags = tuple(range(1, known + 1))
            whole = known == self.order
            rows = (self.table if whole else self.conditional(lags)).to(tokens.device)
            if known == order:
                # From token number `order` on (or 1, for the first prediction) the whole context is known.
                probs[..., max(order, 1) - 1 :, :] = rows[context_indices(tokens, self.states, lags, max(order, 1))]
            elif known >= 1:
                probs[..., known - 1, :] = rows[context_indices(tokens[..., :known], self.states, lags, known)[..., 0]]
        return probs.log()


@register("worlds")
@dataclass(frozen=True)
class InContextMarkov(World):
    """A fresh random Markov chain in every sequence: the next token can only be predicted by counting in context.

    states         alphabet size S
    order          number k of previous tokens that matter (an n-gram with n = k + 1)
    length         number of input tokens; the target at each is the token after it
    concentration  α: every row P(·|c), c one of the S^k contexts, is an independent Dirichlet(α, …, α) draw
    start          "uniform": the first k tokens are independent and uniform; "stationary": they follow the stationary
                   distribution of the sequence's chain

    truth["kernels"] holds each sequence's rows (example, context, state); context index Σ_i x_{t−1−i} S^i.

    The oracle is (N(c, a) + α)/(N(c) + Sα) with the counts of the transitions seen so far from the current context c,
    and uniform before the first whole context. With the uniform start this is exactly the Bayes predictor: the first
    tokens say nothing about the kernel, so its posterior is Dirichlet(α + counts) row by row. With the stationary start
    the first k tokens carry a little information, and the posterior is tilted by π_P(x_0 … x_{k−1}). `oracle`
    integrates the tilt exactly for two states and order 1. For larger chains no closed form is known: `oracle` refuses,
    `stationary_bayes` samples the Bayes prediction and gives its error bar, and the counts are the baseline of the true
    order (three states, α = 0.3: 0.06, 0.05 and 0.02 nats above the Bayes predictor after 1, 2 and 4 tokens).

    Sources: Edelman et al. 2024; Nichani, Damian & Lee 2024; Varre, Yüce & Flammarion 2025.
    """

    states: int = 3
    order: int = 1
    length: int = 64
    concentration: float = 1.0
    start: str = "uniform"

    def __post_init__(self) -> None:
        integer("states", self.states, low=2)
        integer("order", self.order, low=1, hint="an order-0 chain is a categorical without memory")
        contexts = self.states**self.order
        require(contexts <= 2**20, "order", self.order, f"small enough for at most 2^20 contexts, not {contexts}")
        integer("length", self.length, low=self.order)
        number("concentration", self.concentration, low=1e-3)
        choice("start", self.start, STARTS)

    @property
    def vocab(self) -> int:
        return self.states

    @property
    def lags(self) -> tuple[int, ...]:
        return tuple(range(1, self.order + 1))

    def describe(self) -> str:
        return f"in-context chain on {self.states} states, {naming(self.order)}"

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        contexts = self.states**self.order
        kernels = dirichlet_rows((n, contexts, self.states), self.concentration, rng=rng)
        uniform = _uniform(contexts, rng.device).expand(n, -1)
        probs = stationary_distribution(kernels) if self.start == "stationary" else uniform
        first = window_tokens(draw(probs, rng=rng), self.states, self.order)
        tokens = walk(kernels, first, self.length + 1 - self.order, self.lags, rng=rng)
        return next_token_batch(tokens, {"kernels": kernels})

    def oracle(self, batch: Batch) -> Float[Tensor, "example time states"]:
        """Log-probabilities of the Bayes predictor from Dirichlet counts (see the class for where it is known)."""
        if self.start == "uniform":
            return CountingEstimator.of_order(self.states, self.order, self.concentration)(batch)
        if self.states == 2 and self.order == 1:
            from sandlab.worlds.markov.stationary_start import binary_bayes

            return binary_bayes(batch.inputs, self.concentration).log()
        raise NotImplementedError(
            f"no closed form is known for the Bayes predictor of {self.states} states and order {self.order} with the "
            f'stationary start: take start="uniform", or the baseline "{ngram_name(self.order)}", which counts'
        )

    def baselines(self) -> dict[str, Callable[[Batch], Tensor]]:
        """uniform, unigram, bigram, …: add-α counting estimators of every order up to the true one."""
        return dict(ngram_estimators(self.states, self.order, self.concentration))

    def next_probs(self, batch: Batch) -> Float[Tensor, "example time states"]:
        """The kernel's probabilities of the next token at every position (uniform before the first whole context)."""
        kernels = batch.truth["kernels"]
        probs = kernels.new_full((*batch.inputs.shape, self.states), 1 / self.states)
        rows = context_indices(batch.inputs, self.states, self.lags, self.order)
        probs[:, self.order - 1 :] = kernels.gather(1, rows.unsqueeze(-1).expand(-1, -1, self.states))
        return probs

    def expected_row_entropy(self) -> float:
        """E H(P(·|c)) = ψ(Sα + 1) − ψ(α + 1) for one Dirichlet row; visited rows are size-biased."""
        from scipy.special import digamma

        alpha = self.concentration
        return float(digamma(self.states * alpha + 1) - digamma(alpha + 1))


def _uniform(entries: int, device: torch.device) -> Float[Tensor, "entries"]:
    return torch.full((entries,), 1 / entries, dtype=torch.float64, device=device)


def _first_row(kernel: Any) -> Any:
    return kernel if not isinstance(kernel[0], tuple) else _first_row(kernel[0])


def _checked_kernel(kernel: object) -> np.ndarray:
    try:
        nested = kernel.tolist() if isinstance(kernel, (np.ndarray, Tensor)) else kernel
        table = np.asarray(nested, dtype=np.float64)
    except (TypeError, ValueError):
        table = np.empty(0)
    states = table.shape[-1] if table.ndim >= 2 else 0
    square = states >= 2 and all(side == states for side in table.shape)
    if not square:
        raise BadInput(
            f"kernel must be rows of probabilities nested as [x_(t-k)]…[x_(t-1)][x_t] with equal sides, got shape "
            f"{table.shape}: a two-state chain is MarkovChain.binary(p, q)"
        )
    sums = table.sum(-1)
    for context in itertools.product(*(range(states) for _ in range(table.ndim - 1))):
        row = table[context]
        valid = bool(np.isfinite(row).all() and (row >= 0).all())
        normalised = math.isclose(float(sums[context]), 1.0, abs_tol=1e-6)
        require(valid and normalised, f"kernel row {list(context)}", row.tolist(), "probabilities that sum to 1")
    return table / sums[..., None]


def _as_tuples(table: Any) -> float | tuple[object, ...]:
    values = table.tolist() if isinstance(table, np.ndarray) else table
    return tuple(_as_tuples(value) for value in values) if isinstance(values, list) else float(values)
