"""Counting estimators: predict the next token by what followed earlier occurrences of the present context.

The order is the number of previous tokens that are compared. Two naming conventions exist: "n-gram" with n = order + 1
(the window of n tokens) and "n-gram" with n = order (n tokens of context). SandLab follows the first: order 0 is the
unigram, order 1 the bigram, order 2 the trigram; `naming` prints both.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from sandlab.errors import choice, integer, number, require
from sandlab.worlds.base import Batch

__all__ = ["CountingEstimator", "UniformEstimator", "naming", "ngram_estimators", "ngram_name"]


def ngram_name(order: int) -> str:
    """ "unigram", "bigram", "trigram", "4-gram", … for 0, 1, 2, 3, … previous tokens."""
    integer("order", order, low=0)
    return ("unigram", "bigram", "trigram")[order] if order < 3 else f"{order + 1}-gram"


def naming(order: int) -> str:
    """Both conventions in one phrase: "order 2: trigram (n = 3, windows of 3 tokens), or 2-gram by previous tokens"."""
    windows = order + 1
    previous = f"{order}-gram by previous tokens" if order else "no previous token"
    return f"order {order}: {ngram_name(order)} (n = {windows}, windows of {windows}), or {previous}"


@dataclass(frozen=True)
class UniformEstimator:
    """Every state equally likely, whatever was seen."""

    states: int

    def __call__(self, data: Batch | Int[Tensor, "example time"]) -> Float[Tensor, "example time states"]:
        tokens = data.inputs if isinstance(data, Batch) else data
        probs = torch.full((self.states,), 1 / self.states, dtype=torch.float64, device=tokens.device)
        return probs.log().expand(*tokens.shape, self.states)


@dataclass(frozen=True)
class CountingEstimator:
    """Predicts the next token from the counts of what followed earlier occurrences of the current context, plus β.

    p̂(a | x_0 … x_t) = (N_a + β) / (Σ_b N_b + β · states),  N_a = #{l ≤ t : x_l = a, x_{l−h} = x_{t+1−h} ∀ h in lags}

    states     alphabet size
    lags       which previous tokens are compared: (1, …, k) for the order-k estimator, () for the unigram, or any set
    smoothing  β; 0 is maximum likelihood (uniform without a match). With β = α of a Dirichlet prior and the true lags
               it is the Bayes predictor from the observed transitions
    boundary   "strict": only positions l with a complete history count, l ≥ max(lags);
               "clamped": a history that would start before the sequence repeats its first token, x_{max(l−h, 0)}: what
               a transformer computes whose early positions attend to position 0
    count_self position t itself always counts as a match (a construction whose query and key use the same block)

    Calling it gives log-probabilities (example, time, states): at time t the prediction of token t + 1. It costs
    O(time · log time) per example: positions are sorted by context, counts are cumulative sums within a context.

    Sources: Varre, Yüce & Flammarion 2025, definition 2.1 and appendix F.2; Nichani, Damian & Lee 2024.
    """

    states: int
    lags: tuple[int, ...] = (1,)
    smoothing: float = 0.0
    boundary: str = "strict"
    count_self: bool = False

    def __post_init__(self) -> None:
        integer("states", self.states, low=1)
        object.__setattr__(self, "lags", tuple(sorted(set(self.lags))))
        for lag in self.lags:
            integer("lag", lag, low=1)
        number("smoothing", self.smoothing, low=0.0)
        choice("boundary", self.boundary, ("strict", "clamped"))
        largest = (2**62) ** (1 / max(len(self.lags), 1))
        require(self.states <= largest, "states", self.states, f"at most {largest:.0f} with {len(self.lags)} lags")

    @classmethod
    def of_order(cls, states: int, order: int, smoothing: float = 0.0, boundary: str = "strict") -> CountingEstimator:
        """The estimator that compares the last `order` tokens."""
        integer("order", order, low=0)
        return cls(states, tuple(range(1, order + 1)), smoothing, boundary)

    @property
    def name(self) -> str:
        """ "trigram" for lags (1, 2); "lags {1,3}" for a set with gaps."""
        if self.lags == tuple(range(1, len(self.lags) + 1)):
            return ngram_name(len(self.lags))
        return "lags {" + ",".join(map(str, self.lags)) + "}"

    def __call__(self, data: Batch | Int[Tensor, "example time"]) -> Float[Tensor, "example time states"]:
        return self.probabilities(data.inputs if isinstance(data, Batch) else data).log()

    def probabilities(self, tokens: Int[Tensor, "example time"]) -> Float[Tensor, "example time states"]:
        """p̂ of the next token at every position, float64; uniform where nothing matches and nothing is smoothed."""
        return self._smoothed(self.counts(tokens))

    def last_probabilities(self, tokens: Int[Tensor, "example time"]) -> Float[Tensor, "example states"]:
        """p̂ of the token after the last one only: the last row of `probabilities`, without sorting."""
        return self._smoothed(self.last_counts(tokens))

    def _smoothed(self, counts: Float[Tensor, "*lead states"]) -> Float[Tensor, "*lead states"]:
        total = counts.sum(-1, keepdim=True) + self.smoothing * self.states
        return torch.where(total > 0, (counts + self.smoothing) / total.clamp(min=1e-300), 1.0 / self.states)

    def last_counts(self, tokens: Int[Tensor, "example time"]) -> Float[Tensor, "example states"]:
        """N_a for the token after the last one: the last row of `counts`."""
        contexts = self.contexts(tokens)
        match = contexts[..., :-1] == contexts[..., -1:]
        if self.count_self:
            match[..., -1] = True
        found = [(match & (tokens == state)).sum(-1) for state in range(self.states)]
        return torch.stack(found, -1).to(torch.float64)

    def counts(self, tokens: Int[Tensor, "example time"]) -> Float[Tensor, "example time states"]:
        """N_a at every position: how often a followed an earlier occurrence of the context found there."""
        contexts = self.contexts(tokens)
        # Stable sorting keeps time order within a context, so an exclusive running sum there counts earlier followers.
        ranked, index = contexts.sort(dim=-1, stable=True)
        follower = F.pad(F.one_hot(tokens, self.states), (0, 0, 0, 1)).to(torch.float64)
        sorted_followers = follower.gather(-2, index.unsqueeze(-1).expand_as(follower))
        before = sorted_followers.cumsum(-2) - sorted_followers
        rank = torch.arange(ranked.shape[-1], device=tokens.device)
        opens = torch.ones_like(ranked, dtype=torch.bool)
        opens[..., 1:] = ranked[..., 1:] != ranked[..., :-1]
        opened = torch.where(opens, rank, 0).cummax(-1).values
        within = before - before.gather(-2, opened.unsqueeze(-1).expand_as(before))
        counts = torch.empty_like(within).scatter_(-2, index.unsqueeze(-1).expand_as(within), within)[..., 1:, :]
        if self.count_self:
            own = contexts[..., :-1] != contexts[..., 1:]
            counts = counts + F.one_hot(tokens, self.states) * own.unsqueeze(-1)
        return counts

    def contexts(self, tokens: Int[Tensor, "*example time"]) -> Int[Tensor, "*example time_and_one"]:
        """A number for the history of each position 0 … time (the last: the token to be predicted); equal iff equal."""
        time = tokens.shape[-1]
        position = torch.arange(time + 1, device=tokens.device)
        code = torch.zeros(*tokens.shape[:-1], time + 1, dtype=torch.int64, device=tokens.device)
        for lag in self.lags:
            code = code * self.states + tokens[..., (position - lag).clamp(min=0)]
        if self.boundary == "strict" and self.lags:
            # An incomplete history equals no other: it gets a negative number that nothing else has.
            code = torch.where(position < self.lags[-1], -1 - position, code)
        return code


def ngram_estimators(
    states: int, order: int, smoothing: float, boundary: str = "strict"
) -> dict[str, UniformEstimator | CountingEstimator]:
    """The uniform distribution and the counting estimators of every order up to `order`, by name."""
    counting = {ngram_name(k): CountingEstimator.of_order(states, k, smoothing, boundary) for k in range(order + 1)}
    return {"uniform": UniformEstimator(states), **counting}
