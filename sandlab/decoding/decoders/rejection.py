"""Rejection: whole strings, prefixes, single tokens; exhaustive search; best of n."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from sandlab.decoding._session.session import Session, Status
from sandlab.decoding.decoders.base import Decoder
from sandlab.errors import integer, number
from sandlab.registry import register

__all__ = ["BestOfN", "EarlyAbort", "ExhaustiveSearch", "Rejection", "TokenwiseRejection"]


@register("decoders")
@dataclass(frozen=True)
class Rejection(Decoder):
    """Whole strings until one is accepted by the outcome verifier.

    Output distribution: the generator's restricted to the accepted set, p(s) ∝ 1[s ∈ A] p(s). Costs D queries per try,
    hence D/p(A) in expectation. Botta, Li, Mehta, Ash, Zhang & Risteski 2025, Definition of rejection sampling.
    """

    max_tries: int = 10_000
    needs_verifier: ClassVar[bool] = True
    law: ClassVar[str] = "the model given the language"

    def __post_init__(self) -> None:
        super().__post_init__()
        integer("max_tries", self.max_tries, low=1)

    def run(self, session: Session) -> None:
        session.counters["strings_generated"] += 1
        while len(rows := session.running()):
            self.extend(session, rows)
            ended = rows[session.complete(rows)]
            if len(ended):
                accepted = session.value(ended, outcome=True) > 0
                session.finish(ended[accepted])
                self.start_again(session, ended[~accepted])

    def start_again(self, session: Session, rows: Tensor) -> None:
        """Throw these strings away and begin anew, or fail after the last try."""
        session.erase(rows, session.prompt_lengths[rows])
        over = session.counters["strings_generated"][rows] >= self.max_tries
        session.finish(rows[over], Status.FAILED)
        session.counters["strings_generated"][rows[~over]] += 1


@register("decoders")
@dataclass(frozen=True)
class EarlyAbort(Rejection):
    """Rejection that starts again at the first prefix that cannot be completed.

    Same output distribution as rejection; on "all zeros" of length D it needs 2^(D+1) − 2 queries instead of D·2^D.
    """

    def run(self, session: Session) -> None:
        session.counters["strings_generated"] += 1
        while len(rows := session.running()):
            self.extend(session, rows)
            ended = session.complete(rows)
            value = torch.ones(len(rows), dtype=torch.float64, device=rows.device)
            value[~ended] = session.value(rows[~ended])
            value[ended] = session.value(rows[ended], outcome=True)
            session.finish(rows[ended & (value > 0)])
            self.start_again(session, rows[value <= 0])


@register("decoders")
@dataclass(frozen=True)
class TokenwiseRejection(Decoder):
    """At each position, draw tokens until the process verifier accepts one: every draw is one query.

    Output distribution: ∏ p(t|s) V(st)/Σ_a p(a|s) V(sa), which is not the restricted one. A verifier that knows only
    the target set, not the generator's support, can leave no acceptable token at all: after `max_draws` draws at one
    position the string fails. Botta, Li et al. 2025, Definition of tokenwise rejection sampling.
    """

    threshold: float = 0.5
    max_draws: int = 1000
    needs_verifier: ClassVar[bool] = True
    law: ClassVar[str] = "the model, renormalised among the allowed tokens at each step"

    def __post_init__(self) -> None:
        super().__post_init__()
        number("threshold", self.threshold, low=0.0)
        integer("max_draws", self.max_draws, low=1)

    def run(self, session: Session) -> None:
        session.counters["strings_generated"] += 1
        draws = torch.zeros_like(session.lengths)
        while len(rows := session.running()):
            draws[rows] += 1
            self.extend(session, rows)
            ended = session.complete(rows)
            accepted = torch.ones_like(ended)
            accepted[~ended] = session.value(rows[~ended]) >= self.threshold
            accepted[ended] = session.value(rows[ended], outcome=True) >= self.threshold
            kept, refused = rows[accepted], rows[~accepted]
            draws[kept] = 0
            session.finish(rows[accepted & ended])
            session.erase(refused, session.lengths[refused] - 1)
            session.finish(refused[draws[refused] >= self.max_draws], Status.FAILED)


@register("decoders")
@dataclass(frozen=True)
class ExhaustiveSearch(Decoder):
    """At each position, the first token (in order) that the verifier accepts: no query to the generator.

    At most |Σ|·D verifier calls; a solution provided every string of the target set has positive probability.
    """

    threshold: float = 0.5
    needs_verifier: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        number("threshold", self.threshold, low=0.0)

    def run(self, session: Session) -> None:
        session.counters["strings_generated"] += 1
        letter = torch.zeros_like(session.lengths)
        unknown = torch.tensor(torch.nan, device=letter.device, dtype=torch.float64)
        while len(rows := session.running()):
            session.append(rows, letter[rows], unknown.expand(len(rows)), kind="tried")
            ended = session.complete(rows)
            accepted = torch.ones_like(ended)
            accepted[~ended] = session.value(rows[~ended]) >= self.threshold
            accepted[ended] = session.value(rows[ended], outcome=True) >= self.threshold
            session.finish(rows[accepted & ended])
            letter[rows] = torch.where(accepted, 0, letter[rows] + 1)
            refused = rows[~accepted]
            session.erase(refused, session.lengths[refused] - 1)
            session.finish(refused[letter[refused] >= session.generator.vocab], Status.FAILED)


@register("decoders")
@dataclass(frozen=True)
class BestOfN(Decoder):
    """n whole strings, of which the one with the highest verifier score is kept (the earliest among equals).

    With F(x) = P(score ≤ x) the best score is x with probability F(x)^n − F(x−)^n, and within one score the string has
    the generator's distribution: against a 0/1 verifier, the restricted distribution but for the probability (1 −
    p(A))^n that all n candidates are refused. Costs n strings of queries and n questions to the outcome verifier.

    candidates   n
    """

    candidates: int = 4
    needs_verifier: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        integer("candidates", self.candidates, low=1)

    def run(self, session: Session) -> None:
        best = Best(session)
        tried = session.counters["strings_generated"]
        while len(rows := session.running()):
            self.extend(session, rows)
            ended = rows[session.complete(rows)]
            if not len(ended):
                continue
            best.offer(ended, session.value(ended, outcome=True))
            tried[ended] += 1
            last = tried[ended] >= self.candidates
            best.restore(ended[last], session.prompt_lengths[ended[last]])
            session.finish(ended[last])
            session.erase(ended[~last], session.prompt_lengths[ended[~last]])


class Best:
    """The best candidate of each row so far."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.score = torch.full(session.lengths.shape, -torch.inf, dtype=torch.float64, device=session.lengths.device)
        self.tokens, self.lengths = session.tokens.clone(), session.lengths.clone()
        self.logprobs = session.logprobs.clone()
        self.latest = torch.zeros_like(session.lengths, dtype=torch.bool)

    def offer(self, rows: Tensor, scores: Tensor) -> None:
        """Keep these rows' strings where they beat what was kept before."""
        self.latest[rows] = scores > self.score[rows]
        better = rows[self.latest[rows]]
        self.score[rows] = torch.maximum(self.score[rows], scores)
        self.tokens[better], self.lengths[better] = self.session.tokens[better], self.session.lengths[better]
        self.logprobs[better] = self.session.logprobs[better]

    def restore(self, rows: Tensor, begins: Tensor) -> None:
        """Put the best strings back behind `begins`, where the candidates part, and forget them."""
        older = ~self.latest[rows]
        back = rows[older]
        self.session.erase(back, begins[older])
        self.session.put_back(back, self.tokens[back], self.lengths[back], self.logprobs[back])
        self.score[rows] = -torch.inf
