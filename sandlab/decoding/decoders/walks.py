"""Value-guided sampling, with and without backtracking: random walks on the tree of prefixes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from sandlab.decoding._session.memory import Memory
from sandlab.decoding._session.session import Session, Status
from sandlab.decoding.decoders.base import Decoder, draw
from sandlab.errors import BadInput, choice, integer
from sandlab.registry import register

__all__ = ["VGB", "SinclairJerrum", "ValueGuided"]


LOCAL = "the model, renormalised among the allowed tokens at each step"


@register("decoders")
@dataclass(frozen=True)
class ValueGuided(Decoder):
    """Each token from π(a|s)·V(s∘a)/Z, never going back: errors of V multiply along the string.

    Output distribution: ∏ π(s_i|s_<i) V(s_≤i)/Z(s_<i), which is the target π(s)·τ(s)/Z exactly if V(s) = E[tilt | s].
    With the 0/1 verdicts of a grammar it is the usual masking of tokens, which has the distribution of tokenwise
    rejection, not that of the model given the grammar; π is then sharpened among the allowed tokens. One query a token;
    a token that is the only allowed one is written without a query. What errors of V do as strings grow longer: the
    study verifier/error-amplification.

    children    "all": the verifier's number for every next token. "sampled": tokens are drawn from π and accepted with
                probability V(s∘a) ≤ 1, which has the same distribution and asks the verifier about one string at a
                time: the choice for large vocabularies and verifiers that read the network
    max_tries   a string that no token can continue (with "sampled": that `max_draws` draws did not continue) is begun
                anew so many times, then it fails; what comes out is the distribution given success
    remember    megabytes for the distributions of prefixes, which a second draw then need not compute anew
    """

    children: str = "all"
    max_tries: int = 1
    max_draws: int = 1000
    remember: int = 0
    needs_verifier: ClassVar[bool] = True
    law: ClassVar[str] = LOCAL

    def __post_init__(self) -> None:
        super().__post_init__()
        choice("children", self.children, ("all", "sampled"))
        for name, low in (("max_tries", 1), ("max_draws", 1), ("remember", 0)):
            integer(name, getattr(self, name), low=low)

    def run(self, session: Session) -> None:
        session.counters["strings_generated"] += 1
        session.memory = Memory(self.remember << 20)
        draws = torch.zeros_like(session.lengths)
        while len(rows := session.running()):
            stuck = self._mask(session, rows) if self.children == "all" else self._draw(session, rows, draws)
            over = session.complete(rows)
            if bool(over.any()):
                session.finish(rows[over & (session.lengths[rows] > session.prompt_lengths[rows])])
            if len(stuck):
                self._start_again(session, stuck)

    def _mask(self, session: Session, rows: Tensor) -> Tensor:
        """One token for each row by the weights of all tokens; the rows that have none."""
        values = session.child_values(rows)
        only = (values > 0).sum(1) == 1
        if bool(only.any()):
            self._force(session, rows[only], values[only])
            rows, values = rows[~only], values[~only]
        if not len(rows):
            return rows
        logprobs = session.next_log_probs(rows)
        weights = self.weights(session, rows, logprobs, values)
        free, stuck = rows, rows[:0]
        if not bool((fits := weights.sum(1) > 0).all()):
            free, stuck, weights, logprobs = rows[fits], rows[~fits], weights[fits], logprobs[fits]
        letters = draw(weights, session.uniform(free))
        session.append(free, letters, logprobs.gather(1, letters.unsqueeze(1)).squeeze(1))
        return stuck

    def weights(self, session: Session, rows: Tensor, logprobs: Tensor, values: Tensor) -> Tensor:
        """π(a|s)·V(s∘a), π sharpened among the tokens of positive value."""
        if self._plain:
            return logprobs.exp() * values
        masked = self.sharpened(session, rows, logprobs.masked_fill(~(values > 0), -torch.inf))
        return masked.exp().nan_to_num() * values

    @property
    def _plain(self) -> bool:
        shape = (self.temperature, self.top_p, self.top_k, self.min_p, self.repetition_penalty)
        return shape == (1.0, 1.0, None, 0.0, 1.0)

    def _force(self, session: Session, rows: Tensor, values: Tensor) -> None:
        """Write the only allowed token: the model has no choice and is not asked."""
        if not len(rows):
            return
        unknown = torch.full((len(rows),), torch.nan, dtype=torch.float64, device=rows.device)
        session.append(rows, (values > 0).int().argmax(1), unknown, kind="forced")
        session.counters["forced"][rows] += 1

    def _draw(self, session: Session, rows: Tensor, draws: Tensor) -> Tensor:
        """One draw for each row, kept with the probability that the verifier says; rows that drew too often."""
        logprobs = session.remembered_log_probs(rows)
        kept = try_child(self, session, rows, logprobs)
        draws[rows] = torch.where(kept, 0, draws[rows] + 1)
        tired = rows[draws[rows] >= self.max_draws]
        draws[tired] = 0
        return tired

    def _start_again(self, session: Session, rows: Tensor) -> None:
        over = session.counters["strings_generated"][rows] >= self.max_tries
        session.finish(rows[over], Status.FAILED)
        rows = rows[~over]
        session.erase(rows, session.prompt_lengths[rows])
        session.counters["strings_generated"][rows] += 1


def try_child(decoder: Decoder, session: Session, rows: Tensor, logprobs: Tensor) -> Tensor:
    """Draw a child of each row from π and keep it with probability V; whether it was kept. The value must be ≤ 1."""
    letters = draw(decoder.sharpened(session, rows, logprobs).exp(), session.uniform(rows))
    session.append(rows, letters, logprobs.gather(1, letters.unsqueeze(1)).squeeze(1))
    values = session.remembered_value(rows)
    if len(rows) and float(values.max()) > 1 + 1e-9:
        raise BadInput(
            f"children='sampled' needs values of at most 1, got {float(values.max()):.3g}: divide them by a bound"
        )
    kept = session.uniform(rows) < values
    session.erase(rows[~kept], session.lengths[rows[~kept]] - 1)
    return kept


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

    returns       "first-leaf": the first complete string that is reached (fast); "uniform-time": the node after a
                  uniformly drawn number of steps in 1..T, again from the root until it is a leaf, at most `restarts`
                  times (the version with guarantees); "final": the node after T steps, complete or not
    leaves        where strings end at different lengths, the first leaf favours short ones even if V is exact: a leaf
                  near the root is nearer than one far away. "padded": every string is thought to go on, with nothing to
                  choose, up to the longest length H; the walk on such a tail of n more nodes comes to its end before it
                  leaves it with probability 1/(n + 1), so the leaf is returned with that probability and left
                  otherwise. The first leaf then has exactly the target's distribution whenever V is exact.
                  "as-printed": the first leaf, whatever its depth
    base          π is the generator's distribution ("model"), or that distribution restricted to children of positive
                  value and renormalised ("constrained"). A 0/1 verifier is far from E[tilt | y] when the model gives
                  little probability to what is allowed, and the walk then drifts back to the root; on the constrained
                  model the same verifier is balanced, and the leaves follow the constrained model instead
    values        "node": the verifier's number is V(y) itself. "path": it is evidence about the last token, and V(y) is
                  the product of the numbers along y; complete strings keep their outcome. A verifier that errs then
                  sends the walk back out of a branch in which it says "no" again and again, where a bare V(y) would
                  compare one bad node with the next
    children      "all": the verifier is asked about every child. "sampled": the walk proposes its parent with weight
                  V(y) or one child drawn from π with weight 1, and goes to that child with probability V(y∘a) ≤ 1: the
                  moves have the same distribution, and one string at a time is asked about (large vocabularies)
    remember      megabytes for what was computed about prefixes: the walk visits them again and again
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
    leaves: str = "padded"
    children: str = "all"
    remember: int = 0
    needs_verifier: ClassVar[bool] = True

    targets: ClassVar[dict[str, str]] = {"model": "the model given the language", "constrained": LOCAL}

    @property
    def law(self) -> str:  # type: ignore[override]
        return f"{self.targets[self.base]}, {self._provided}"

    @property
    def _provided(self) -> str:
        """What must be so for the walk to have its target's law."""
        exact = "if the values are exact" if self.base == "model" else "if the verdicts are exact"
        if self.returns == "first-leaf":
            return exact if self.leaves == "padded" else f"{exact} and all texts have one length"
        # Whatever the values inside the tree are, the stationary law on complete strings is the target.
        outcomes = "if the outcomes are exact" if self.base == "model" else exact
        which = "" if self.returns == "uniform-time" else ", of the texts that are complete"
        return f"{outcomes}, in the limit of many steps{which}"

    def __post_init__(self) -> None:
        super().__post_init__()
        choice("returns", self.returns, ("first-leaf", "uniform-time", "final"))
        choice("base", self.base, ("model", "constrained"))
        choice("values", self.values, ("node", "path"))
        choice("leaves", self.leaves, ("padded", "as-printed"))
        choice("children", self.children, ("all", "sampled"))
        integer("remember", self.remember, low=0)
        if self.children == "sampled" and (self.base, self.values) != ("model", "node"):
            raise BadInput("children='sampled' walks on base='model' with values='node': the others weigh all children")
        if self.repetition_penalty != 1:
            raise BadInput("a walk takes no repetition_penalty: use value-guided or backtracking")
        for name in ("max_steps", "restarts"):
            if getattr(self, name) is not None:
                integer(name, getattr(self, name), low=1)

    def run(self, session: Session) -> None:
        horizon = session.limits - session.prompt_lengths
        most = 100 * horizon**2 if self.max_steps is None else torch.full_like(horizon, self.max_steps)
        session.counters["strings_generated"] += 1
        session.memory = Memory(self.remember << 20)
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
                move = self._move if self.children == "all" else self._propose
                move(session, rows, node_value)
            if self.returns == "first-leaf":
                self._arrive(session, rows)

    def _arrive(self, session: Session, rows: Tensor) -> None:
        """Return the complete strings among these rows, or leave them again in proportion to the missing depth."""
        rows = rows[session.complete(rows) & (session.status[rows] == Status.RUNNING)]
        if self.leaves == "as-printed" or not len(rows):
            session.finish(rows)
            return
        missing = session.limits[rows] - session.lengths[rows]
        through = session.uniform(rows) * (missing + 1) < 1
        session.finish(rows[through])
        self._climb(session, rows[~through])

    def base_probs(self, logprobs: Tensor, values: Tensor) -> Tensor:
        """π(a|y): the generator's distribution, sharpened; if constrained, among children of positive value only."""
        probs = self.sharpen(logprobs).exp()
        if self.base == "model":
            return probs
        probs = probs * (values > 0)
        return probs / probs.sum(1, keepdim=True).clamp(min=torch.finfo(probs.dtype).tiny)

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
        """One move of each row to its parent or to a child, by the weights of all of them."""
        rows = self._leave_leaves(session, rows)
        if not len(rows):
            return
        at_root = session.lengths[rows] == session.prompt_lengths[rows]
        logprobs = session.remembered_log_probs(rows)
        values = session.remembered_child_values(rows)
        own = self._own_value(session, rows, node_value)
        down = self.base_probs(logprobs, values) * self._relative(session, rows, values, own)
        # Along a path, V(y) is a common factor of all weights at y: the parent's is 1.
        up = torch.where(at_root, 0.0, torch.ones_like(own) if self.values == "path" else own)
        weights = torch.cat([down, up.unsqueeze(1)], 1)
        dead = weights.sum(1) <= 0
        weights[dead & ~at_root, -1] = 1.0
        session.finish(rows[dead & at_root], Status.FAILED)
        choices = draw(weights, session.uniform(rows))
        climbs = choices == session.generator.vocab
        self._climb(session, rows[climbs & ~at_root])
        goes = ~climbs & ~dead
        picked = choices[goes].unsqueeze(1)
        below = values[goes].gather(1, picked).squeeze(1).to(torch.float64)
        places = session.lengths[rows[goes]]
        node_value[rows[goes], places] = below * own[goes] if self.values == "path" else below
        session.append(rows[goes], choices[goes], logprobs[goes].gather(1, picked).squeeze(1))

    def _propose(self, session: Session, rows: Tensor, node_value: Tensor) -> None:
        """The same moves by proposing the parent or one child, which is entered with the probability of its value."""
        rows = self._leave_leaves(session, rows)
        if not len(rows):
            return
        at_root = session.lengths[rows] == session.prompt_lengths[rows]
        up = torch.where(at_root, 0.0, self._own_value(session, rows, node_value))
        climbs = session.uniform(rows) * (1 + up) < up
        self._climb(session, rows[climbs])
        rows = rows[~climbs]
        if not len(rows):
            return
        places = session.lengths[rows]
        kept = try_child(self, session, rows, session.remembered_log_probs(rows))
        entered = rows[kept]
        if len(entered):
            node_value[entered, places[kept]] = session.remembered_value(entered)

    def _leave_leaves(self, session: Session, rows: Tensor) -> Tensor:
        """From a complete string the only way is up; the other rows."""
        at_leaf = session.complete(rows) & (session.lengths[rows] > session.prompt_lengths[rows])
        self._climb(session, rows[at_leaf])
        return rows[~at_leaf]

    def _own_value(self, session: Session, rows: Tensor, node_value: Tensor) -> Tensor:
        at_root = session.lengths[rows] == session.prompt_lengths[rows]
        own = node_value[rows, (session.lengths[rows] - 1).clamp(min=0)]
        return torch.where(at_root, 1.0, own)

    def _relative(self, session: Session, rows: Tensor, values: Tensor, own: Tensor) -> Tensor:
        """V(y∘a), over V(y) where it is a product along the path; complete strings keep their outcome."""
        if self.values == "node":
            return values
        whole = torch.zeros_like(values, dtype=torch.bool)
        whole[:, session.ends] = True
        whole |= (session.lengths[rows] + 1 >= session.limits[rows]).unsqueeze(1)
        return torch.where(whole, values / own.clamp(min=1e-300).unsqueeze(1), values)

    def _climb(self, session: Session, rows: Tensor) -> None:
        session.erase(rows, session.lengths[rows] - 1)
        session.counters["backtracks"][rows] += 1


@register("decoders")
@dataclass(frozen=True)
class SinclairJerrum(VGB):
    """VGB with a uniform generator: V(y)·|Σ|^(H−h) is then an (approximate) number of accepted completions of y.

    The generator's distribution is not used, only its log-probabilities are reported. With exact counts the first leaf
    is uniform on the accepted strings of one length (a string of n tokens has weight |Σ|^−n); base="constrained" moves
    uniformly among the children of positive value instead, which is what 0/1 verdicts can do.
    Sinclair & Jerrum 1989: approximate counting gives almost uniform generation.
    """

    targets: ClassVar[dict[str, str]] = {
        "model": "uniform tokens given the language",
        "constrained": "uniform among the allowed tokens at each step",
    }

    def sharpen(self, logprobs: Tensor) -> Tensor:
        return torch.full_like(logprobs, -math.log(logprobs.shape[1]), dtype=torch.float64)
