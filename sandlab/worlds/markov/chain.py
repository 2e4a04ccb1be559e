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
from sandlab.worlds.markov.lifted import conditional_law, lifted_chain, order_of, stationary_law, token_law
from sandlab.worlds.ngrams.estimators import CountingEstimator, UniformEstimator, naming, ngram_estimators, ngram_name

__all__ = ["InContextMarkov", "MarkovChain", "context_numbers", "next_token_batch", "window_tokens"]

STARTS = ("stationary", "uniform")
BINARY = ((0.8, 0.2), (0.3, 0.7))
MANY = 256  # examples from which a loop over time with a ready sampler is the fastest on a CPU


def context_numbers(
    tokens: Int[Tensor, "example time"], states: int, lags: tuple[int, ...], first: int
) -> Int[Tensor, "example later"]:
    """Row of the kernel that draws token t, for t = first … time: Σ_i x_{t−h_i} · states^i, smallest lag at i = 0."""
    place = torch.arange(first, tokens.shape[-1] + 1, device=tokens.device)
    code = torch.zeros(*tokens.shape[:-1], len(place), dtype=torch.int64, device=tokens.device)
    for power, lag in enumerate(sorted(lags)):
        code = code + tokens[..., place - lag] * states**power
    return code


def window_tokens(number: Int[Tensor, "example"], states: int, order: int) -> Int[Tensor, "example order"]:
    """The tokens of a context number, oldest first."""
    powers = states ** torch.arange(order - 1, -1, -1, device=number.device)
    return number.unsqueeze(-1) // powers % states


def next_token_batch(tokens: Int[Tensor, "example time"], truth: dict[str, Tensor] | None = None) -> Batch:
    """Inputs are all tokens but the last, targets all but the first, every position counts."""
    inputs, targets = (part.to(torch.int64).contiguous() for part in (tokens[:, :-1], tokens[:, 1:]))
    return Batch(inputs, targets, torch.ones_like(inputs, dtype=torch.bool), truth or {})


@register("worlds")
@dataclass(frozen=True)
class MarkovChain(World):
    """One fixed Markov chain of any order, the same in every sequence.

    kernel   nested rows: kernel[x_{t−k}]…[x_{t−1}][x_t] is P(x_t | x_{t−k} … x_{t−1}); its depth gives the order k
             (an n-gram with n = k + 1 tokens per window; "k-gram" for those who count previous tokens)
    length   number of input tokens; the target at each is the token after it
    start    "stationary": the first k tokens follow the stationary law, so the whole sequence is stationary;
             "uniform": they are independent and uniform

    The oracle is the exact next-token law at every position, the first ones included. A two-state chain is
    `MarkovChain.binary(p, q)` with P(1|0) = p and P(0|1) = q: stationary law π = (q, p)/(p + q), second eigenvalue
    λ = 1 − p − q, best loss of a predictor that ignores the context H(π), best loss of all π₀h(p) + π₁h(q)
    (Makkuva et al. 2024, "Attention with Markov").
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
        require(p + q > 0, "p + q", p + q, "above 0", "a chain that never moves has no single stationary law")
        return cls(kernel=((1 - p, p), (q, 1 - q)), length=length, start=start)

    @classmethod
    def random(
        cls, states: int, order: int = 1, length: int = 64, concentration: float = 1.0, seed: int = 0
    ) -> MarkovChain:
        """A chain whose rows are Dirichlet draws of the given seed."""
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
        """Stationary law π of `order` tokens in a row (of one token for a first-order chain)."""
        return self._stationary

    @cached_property
    def _stationary(self) -> Tensor:
        return stationary_law(self.table)

    @cached_property
    def _sampler(self) -> RowSampler:
        return RowSampler(self.table)

    def marginal(self) -> Float[Tensor, "states"]:
        """Stationary law of one token."""
        return token_law(self.table)

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
        """Exact law of the next token given only the tokens at the given lags."""
        return conditional_law(self.table, lags)

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        table = self.table.to(rng.device)
        law = self.stationary().to(rng.device) if self.start == "stationary" else _uniform(len(table), rng.device)
        context = draw(law.expand(n, -1), rng=rng)
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
        """log P(x_{t+1} | x_0 … x_t), exact at every position for the start that is used."""
        return self._predict(batch.inputs, self.order, self.start == "stationary")

    def baselines(self) -> dict[str, Callable[[Batch], Tensor]]:
        """Best predictions from fewer tokens: uniform, then the exact stationary law given 0, 1, … previous tokens."""
        named: dict[str, Callable[[Batch], Tensor]] = {"uniform": UniformEstimator(self.states)}
        for order in range(self.order + 1):
            named[ngram_name(order)] = lambda batch, order=order: self._predict(batch.inputs, order, True)
        return named

    def _predict(self, tokens: Tensor, order: int, stationary: bool) -> Tensor:
        """Law of the next token given the last `order` tokens, or all tokens where there are fewer."""
        laws = torch.full((*tokens.shape, self.states), 1 / self.states, dtype=torch.float64, device=tokens.device)
        for known in range(min(order, tokens.shape[-1] + 1) + 1):
            if known < order and not stationary:
                continue
            lags = tuple(range(1, known + 1))
            whole = known == self.order
            rows = (self.table if whole else self.conditional(lags)).to(tokens.device)
            if known == order:
                # From token number `order` on (or 1, for what is predicted first) the whole context is there.
                laws[..., max(order, 1) - 1 :, :] = rows[context_numbers(tokens, self.states, lags, max(order, 1))]
            elif known >= 1:
                laws[..., known - 1, :] = rows[context_numbers(tokens[..., :known], self.states, lags, known)[..., 0]]
        return laws.log()


@register("worlds")
@dataclass(frozen=True)
class InContextMarkov(World):
    """A fresh random Markov chain in every sequence: the next token can only be predicted by counting in context.

    states         alphabet size S
    order          number k of previous tokens that matter (n-gram with n = k + 1; "k-gram" by previous tokens)
    length         number of input tokens; the target at each is the token after it
    concentration  α: every row P(·|c), c one of the S^k contexts, is an independent Dirichlet(α, …, α) draw
    start          "uniform": the first k tokens are independent and uniform; "stationary": they follow the stationary
                   law of the sequence's own chain

    truth["kernels"] holds each sequence's rows (example, context, state); context number Σ_i x_{t−1−i} S^i.

    The oracle is (N(c, a) + α)/(N(c) + Sα) with the counts of transitions seen so far out of the present context c, and
    uniform before the first whole context. With the uniform start this is exactly the Bayes predictor: the first tokens
    say nothing about the kernel, so its posterior is Dirichlet(α + counts) row by row. With the stationary start the
    first k tokens carry a little information through the stationary law; the posterior is then tilted by π_P(x_0 …
    x_{k−1}). `oracle` integrates the tilt exactly for two states and order 1; for larger chains, where no closed form
    is known, it remains the count predictor (exact given the first k tokens as if they were fixed in advance).

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
        require(contexts <= 2**20, "order", self.order, f"small enough for at most 2^20 contexts, {contexts} asked")
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
        law = stationary_law(kernels) if self.start == "stationary" else _uniform(contexts, rng.device).expand(n, -1)
        first = window_tokens(draw(law, rng=rng), self.states, self.order)
        tokens = walk(kernels, first, self.length + 1 - self.order, self.lags, rng=rng)
        return next_token_batch(tokens, {"kernels": kernels})

    def oracle(self, batch: Batch) -> Float[Tensor, "example time states"]:
        """log-probabilities of the Bayes predictor from Dirichlet counts (see the class for what is exact)."""
        if self.start == "stationary" and self.states == 2 and self.order == 1:
            from sandlab.worlds.markov.stationary_start import binary_bayes

            return binary_bayes(batch.inputs, self.concentration).log()
        return CountingEstimator.of_order(self.states, self.order, self.concentration)(batch)

    def baselines(self) -> dict[str, Any]:
        """uniform, unigram, bigram, …: add-α counting estimators of every order up to the true one."""
        return dict(ngram_estimators(self.states, self.order, self.concentration))

    def next_laws(self, batch: Batch) -> Float[Tensor, "example time states"]:
        """The kernel's own law of the next token at every position (uniform before the first whole context)."""
        kernels = batch.truth["kernels"]
        laws = kernels.new_full((*batch.inputs.shape, self.states), 1 / self.states)
        rows = context_numbers(batch.inputs, self.states, self.lags, self.order)
        laws[:, self.order - 1 :] = kernels.gather(1, rows.unsqueeze(-1).expand(-1, -1, self.states))
        return laws

    def expected_row_entropy(self) -> float:
        """E H(P(·|c)) = ψ(Sα + 1) − ψ(α + 1) for one Dirichlet row; the rows that are visited are size-biased."""
        from scipy.special import digamma

        alpha = self.concentration
        return float(digamma(self.states * alpha + 1) - digamma(alpha + 1))


def _uniform(entries: int, device: torch.device) -> Float[Tensor, "entries"]:
    return torch.full((entries,), 1 / entries, dtype=torch.float64, device=device)


def _first_row(kernel: Any) -> Any:
    return kernel if not isinstance(kernel[0], tuple) else _first_row(kernel[0])


def _checked_kernel(kernel: Any) -> np.ndarray:
    try:
        table = np.asarray(kernel.tolist() if hasattr(kernel, "tolist") else kernel, dtype=np.float64)
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
    for place in itertools.product(*(range(states) for _ in range(table.ndim - 1))):
        row = table[place]
        is_law = bool(np.isfinite(row).all() and (row >= 0).all()) and math.isclose(
            float(sums[place]), 1.0, abs_tol=1e-6
        )
        require(is_law, f"kernel row {list(place)}", row.tolist(), "probabilities that sum to 1")
    return table / sums[..., None]


def _as_tuples(table: Any) -> Any:
    values = table.tolist() if isinstance(table, np.ndarray) else table
    return tuple(_as_tuples(value) for value in values) if isinstance(values, list) else float(values)
