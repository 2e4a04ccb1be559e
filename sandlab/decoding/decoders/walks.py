"""Value-guided sampling, with and without backtracking: random walks on the tree of prefixes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from sandlab.decoding._session.session import Session, Status
from sandlab.decoding.decoders.base import Decoder, draw
from sandlab.errors import choice, integer
from sandlab.registry import register

__all__ = ["VGB", "SinclairJerrum", "ValueGuided"]


@register("decoders")
@dataclass(frozen=True)
class ValueGuided(Decoder):
    """Each token from π(a|s)·V(s∘a)/Z, never going back: errors of V multiply along the string.

    Output distribution: ∏ π(s_i|s_<i) V(s_≤i)/Z(s_<i), which is the target π(s)·τ(s)/Z exactly if V(s) = E[tilt | s].
    With the 0/1 verdicts of a grammar it is the usual masking of tokens, which has the distribution of tokenwise
    rejection, not that of the model given the grammar. One query a token and the verifier's number for every next
    token; a string that no token can continue fails. What errors of V do as strings grow longer: the study
    verifier/error-amplification.
    """

    needs_verifier: ClassVar[bool] = True

    def run(self, session: Session) -> None:
        session.counters["strings_generated"] += 1
        while len(rows := session.running()):
            logprobs = session.next_log_probs(rows)
            weights = self.sharpen(logprobs).exp() * session.child_values(rows)
            stuck = weights.sum(1) <= 0
            session.finish(rows[stuck], Status.FAILED)
            rows, weights, logprobs = rows[~stuck], weights[~stuck], logprobs[~stuck]
            letters = draw(weights, session.uniform(rows))
            session.append(rows, letters, logprobs.gather(1, letters.unsqueeze(1)).squeeze(1))
            session.finish(rows[session.complete(rows)])


@register("decoders")
@dataclass(frozen=True)
class VGB(Decoder):
    """Value-guided sampling with backtracking: a lazy random walk on the tree of prefixes.

    From a prefix y the walk stays with probability ½, otherwise it moves to

        its parent        with weight V(y)
        its child y∘a     with weight π(a|y)·V(y∘a)

    The walk is reversible; whatever V is inside the tree, the stationary distribution on complete strings is exactly
    proportional to π(y)·τ(y) once V equals the tilt τ there; with a uniform generator and a 0/1 tilt it is the walk of
    Sinclair & Jerrum 1989. Rohatgi, Shetty, Saless, Li, Moitra, Risteski & Foster 2025.

    returns       "first-leaf": the first complete string that is reached (fast, and the distribution is exact when V
                  is); "uniform-time": the node after a uniformly drawn number of steps in 1..T, again from the root
                  until it is a leaf, at most `restarts` times (the version with guarantees);
                  "final": the node after T steps, complete or not
    base          π is the generator's distribution ("model"), or that distribution restricted to children of positive
                  value and renormalised ("constrained"). A 0/1 verifier is far from E[tilt | y] when the model gives
                  little probability to what is allowed, and the walk then drifts back to the root; on the constrained
                  model the same verifier is balanced, and the leaves follow the constrained model instead
    values        "node": the verifier's number is V(y) itself. "path": it is evidence about the last token, and V(y) is
                  the product of the numbers along y. A verifier that errs then sends the walk back out of a branch in
                  which it says "no" again and again, where a bare V(y) would compare one bad node with the next
    max_steps     T; None means 100·H² for strings of at most H new tokens
    restarts      see "uniform-time"; None means 4·H

    A node where every weight is 0 goes back to its parent and is counted in `backtracks`; at the root the string fails.
    The counter `steps` includes the lazy ones; `backtracks` counts moves to a parent.
    """

    returns: str = "first-leaf"
    base: str = "model"
    values: str = "node"
    max_steps: int | None = None
    restarts: int | None = None
    needs_verifier: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        choice("returns", self.returns, ("first-leaf", "uniform-time", "final"))
        choice("base", self.base, ("model", "constrained"))
        choice("values", self.values, ("node", "path"))
        for name in ("max_steps", "restarts"):
            if getattr(self, name) is not None:
                integer(name, getattr(self, name), low=1)

    def run(self, session: Session) -> None:
        horizon = session.limits - session.prompt_lengths
        most = 100 * horizon**2 if self.max_steps is None else torch.full_like(horizon, self.max_steps)
        session.counters["strings_generated"] += 1
        node_value = torch.ones_like(session.logprobs)
        clock, alarm = torch.zeros_like(most), self._alarms(session, most)
        while len(rows := session.running()):
            # The number of lazy steps before the next move is geometric: P(k) = 2^−(k+1).
            holds = torch.log2(1 / (1 - session.uniform(rows))).floor().long()
            session.counters["steps"][rows] += torch.minimum(holds + 1, alarm[rows] - clock[rows])
            clock[rows] += holds + 1
            over = clock[rows] > alarm[rows]
            self._stop(session, rows[over], clock, alarm, most)
            rows = rows[~over]
            if len(rows):
                self._move(session, rows, node_value)
            if self.returns == "first-leaf":
                session.finish(rows[session.complete(rows) & (session.status[rows] == Status.RUNNING)])

    def base_probs(self, logprobs: Tensor, values: Tensor) -> Tensor:
        """π(a|y): the generator's distribution, sharpened; if constrained, among children of positive value only."""
        probs = self.proposal(logprobs)
        if self.base == "model":
            return probs
        probs = probs * (values > 0)
        return probs / probs.sum(1, keepdim=True).clamp(min=torch.finfo(probs.dtype).tiny)

    def proposal(self, logprobs: Tensor) -> Tensor:
        """The distribution that moves to children come from, before the verifier has its say."""
        return self.sharpen(logprobs).exp()

    def _alarms(self, session: Session, most: Tensor) -> Tensor:
        """The number of steps after which each row is looked at."""
        if self.returns != "uniform-time":
            return most.clone()
        rows = torch.arange(len(most), device=most.device)
        return (session.uniform(rows) * most).long() + 1

    def _stop(self, session: Session, rows: Tensor, clock: Tensor, alarm: Tensor, most: Tensor) -> None:
        """The walk's time is up: return the node, start again from the root, or give up."""
        if not len(rows):
            return
        leaf = session.complete(rows)
        if self.returns == "final":
            session.finish(rows)
            return
        session.finish(rows[leaf])
        inner = rows[~leaf]
        tries = 4 * (session.limits - session.prompt_lengths) if self.restarts is None else self.restarts
        allowed = torch.as_tensor(tries, device=rows.device).expand_as(session.lengths)
        again = (session.counters["strings_generated"][inner] < allowed[inner]) & (self.returns == "uniform-time")
        session.finish(inner[~again], Status.FAILED)
        inner = inner[again]
        session.erase(inner, session.prompt_lengths[inner])
        session.counters["strings_generated"][inner] += 1
        clock[inner], alarm[inner] = 0, (session.uniform(inner) * most[inner]).long() + 1

    def _move(self, session: Session, rows: Tensor, node_value: Tensor) -> None:
        """One move of each row to its parent or to a child."""
        at_leaf = session.complete(rows)
        self._climb(session, rows[at_leaf])
        rows = rows[~at_leaf]
        if not len(rows):
            return
        at_root = session.lengths[rows] == session.prompt_lengths[rows]
        logprobs = session.next_log_probs(rows)
        values = session.child_values(rows)
        # Along a path, V(y) is a common factor of all weights at y and cancels.
        own = 1.0 if self.values == "path" else node_value[rows, (session.lengths[rows] - 1).clamp(min=0)]
        up = torch.where(at_root, torch.zeros_like(values[:, 0]), own)
        weights = torch.cat([self.base_probs(logprobs, values) * values, up.unsqueeze(1)], 1)
        dead = weights.sum(1) <= 0
        weights[dead & ~at_root, -1] = 1.0
        session.finish(rows[dead & at_root], Status.FAILED)
        choices = draw(weights, session.uniform(rows))
        climbs = choices == session.generator.vocab
        self._climb(session, rows[climbs & ~at_root])
        down, letters = rows[~climbs & ~dead], choices[~climbs & ~dead]
        picked = letters.unsqueeze(1)
        node_value[down, session.lengths[down]] = values[~climbs & ~dead].gather(1, picked).squeeze(1)
        session.append(down, letters, logprobs[~climbs & ~dead].gather(1, picked).squeeze(1))

    def _climb(self, session: Session, rows: Tensor) -> None:
        session.erase(rows, session.lengths[rows] - 1)
        session.counters["backtracks"][rows] += 1


@register("decoders")
@dataclass(frozen=True)
class SinclairJerrum(VGB):
    """VGB with a uniform generator: V(y)·|Σ|^(H−h) is then an (approximate) number of accepted completions of y.

    The generator's distribution is not used, only its log-probabilities are reported. With exact counts the first leaf
    is uniform on the accepted strings; base="constrained" moves uniformly among the children of positive value instead,
    which is what 0/1 verdicts can do. Sinclair & Jerrum 1989: approximate counting gives almost uniform generation.
    """

    def proposal(self, logprobs: Tensor) -> Tensor:
        return torch.full_like(logprobs, 1 / logprobs.shape[1], dtype=torch.float64)
