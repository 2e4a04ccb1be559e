"""Text from one fixed bigram distribution, with a few trigger tokens that follow a rule of the sequence instead."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sandlab.errors import integer, number
from sandlab.random import rng as seeded_rng
from sandlab.registry import register
from sandlab.worlds._row_sampler import RowSampler
from sandlab.worlds.base import Batch, World
from sandlab.worlds.markov._walk import dirichlet_rows, draw
from sandlab.worlds.markov.chain import next_token_batch
from sandlab.worlds.markov.lifted import stationary_distribution

__all__ = ["BigramBackcopy", "BigramTrigger", "last_occurrence"]

MANY = 64  # examples from which a loop over time beats sorting each example


def last_occurrence(tokens: Int[Tensor, "example time"]) -> Int[Tensor, "example time"]:
    """For each position the last earlier one with the same token, −1 where there is none."""
    if tokens.device.type == "cpu" and len(tokens) >= MANY:
        return _last_occurrence_by_table(tokens)
    ranked, positions = tokens.sort(dim=-1, stable=True)
    same = F.pad(ranked[:, 1:] == ranked[:, :-1], (1, 0))
    before = torch.where(same, positions.roll(1, -1), -1)
    return torch.empty_like(before).scatter_(-1, positions, before)


def _last_occurrence_by_table(tokens: Int[Tensor, "example time"]) -> Int[Tensor, "example time"]:
    """The same without sorting: a table per example of where each token was last seen, all examples at once."""
    rows = np.ascontiguousarray(tokens.numpy().T)
    states = int(rows.max()) + 1
    seen = np.full(rows.shape[1] * states, -1)
    offset = np.arange(rows.shape[1]) * states
    before = np.empty_like(rows)
    for position, row in enumerate(rows):
        cell = offset + row
        before[position] = seen.take(cell)
        seen[cell] = position
    return torch.from_numpy(np.ascontiguousarray(before.T))


@dataclass(frozen=True)
class _BigramText(World):
    states: int
    triggers: int
    length: int
    concentration: float
    seed: int

    def __post_init__(self) -> None:
        integer("states", self.states, low=2)
        integer("triggers", self.triggers, low=1, high=self.states - 1)
        integer("length", self.length, low=2)
        number("concentration", self.concentration, low=1e-3)
        integer("seed", self.seed, low=0)

    @cached_property
    def _sampler(self) -> RowSampler:
        return RowSampler(self.table)

    def _walk(
        self, first: Int[Tensor, "example"], steps: int, rng: torch.Generator, forced: Tensor | None, copying: int
    ) -> Int[Tensor, "example time"]:
        """Bigram text that starts with `first`.

        A token with forced[example, token] ≥ 0 is followed by that; a token below `copying` is followed by the token
        before it; every other token by a draw from the table.
        """
        sampler = self._sampler if rng.device.type == "cpu" else RowSampler(self.table, rng.device)
        buffer = torch.empty(1 + steps, len(first), dtype=torch.int64, device=rng.device)
        buffer[0] = first
        tokens = sampler.array(buffer)
        offset = sampler.array(torch.arange(len(first), device=rng.device) * self.states)
        rule = None if forced is None else sampler.array(forced.flatten())
        for time, numbers in enumerate(sampler.numbers(steps, len(first), rng), start=1):
            last = tokens[time - 1]
            drawn = sampler.draw(last, *numbers)
            if rule is not None:
                named = rule.take(offset + last)
                drawn = sampler.where(named >= 0, named, drawn)
            if copying:
                drawn = sampler.where(last < copying, tokens[time - 2], drawn)
            tokens[time] = drawn
        return buffer.T

    @cached_property
    def table(self) -> Float[Tensor, "state state"]:
        """The fixed bigram distribution, the same in every sequence: Dirichlet rows drawn with `seed`."""
        return dirichlet_rows((self.states, self.states), self.concentration, rng=seeded_rng(self.seed, "bigrams"))


@register("worlds")
@dataclass(frozen=True)
class BigramTrigger(_BigramText):
    """Bigram text with trigger tokens: within a sequence a trigger q_k is always followed by the same o_k.

    states           alphabet size V
    triggers         number K of trigger tokens
    length           number of input tokens; the target at each is the token after it
    concentration    of the Dirichlet rows of the fixed bigram distribution π_b, drawn once with `seed`
    random_triggers  False: tokens 0 … K − 1 are the triggers of every sequence; True: each sequence has a random set

    The first token follows the stationary distribution of π_b; outputs o_k are uniform. Predicting what follows a
    trigger that was seen before needs an induction head; everything else can be memorised.

    The oracle is exact. With fixed triggers it repeats what followed the trigger before (uniform the first time). With
    random ones it weighs every set of K tokens by its likelihood, ∏_{v in set} r_v with r_v = (1/V or 1 or 0)/∏ π_b of
    v's followers (0 as soon as two differ), and sums over sets by elementary symmetric polynomials.

    truth: "triggers" and "outputs" (example, K), "is_trigger" (example, time).
    Source: Bietti et al. 2023, "Birth of a transformer: a memory viewpoint".
    """

    states: int = 16
    triggers: int = 3
    length: int = 64
    concentration: float = 1.0
    seed: int = 0
    random_triggers: bool = False

    @property
    def vocab(self) -> int:
        return self.states

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        if self.random_triggers:
            order = torch.rand(n, self.states, device=rng.device, generator=rng).argsort(-1)
            triggers = order[:, : self.triggers]
        else:
            triggers = torch.arange(self.triggers, device=rng.device).expand(n, -1)
        outputs = torch.randint(0, self.states, (n, self.triggers), generator=rng, device=rng.device)
        forced = torch.full((n, self.states), -1, device=rng.device).scatter_(1, triggers, outputs)
        first = draw(stationary_distribution(self.table).to(rng.device).expand(n, -1), rng=rng)
        tokens = self._walk(first, self.length, rng, forced, 0)
        is_trigger = forced.gather(1, tokens[:, :-1]) >= 0
        return next_token_batch(tokens, {"triggers": triggers, "outputs": outputs, "is_trigger": is_trigger})

    def oracle(self, batch: Batch) -> Float[Tensor, "example time states"]:
        tokens, table = batch.inputs, self.table.to(batch.inputs.device)
        before = last_occurrence(tokens)
        known = F.one_hot(tokens.gather(1, (before + 1).clamp(max=self.length - 1)), self.states).double()
        repeated = torch.where((before >= 0).unsqueeze(-1), known, 1 / self.states)
        trigger = self._trigger_probs(tokens).unsqueeze(-1)
        return (trigger * repeated + (1 - trigger) * table[tokens]).log()

    def baselines(self) -> dict[str, Callable[[Batch], Tensor]]:
        """uniform; bigram: the fixed rows, mixed with uniform by the prior probability that the token is a trigger."""
        trigger = torch.full((self.states, 1), self.triggers / self.states, dtype=torch.float64)
        if not self.random_triggers:
            trigger = (torch.arange(self.states) < self.triggers).double().unsqueeze(-1)
        rows = (1 - trigger) * self.table + trigger / self.states
        flat = torch.full_like(rows, 1 / self.states)
        return {
            "uniform": lambda batch: flat.to(batch.inputs.device)[batch.inputs].log(),
            "bigram": lambda batch: rows.to(batch.inputs.device)[batch.inputs].log(),
        }

    def _trigger_probs(self, tokens: Int[Tensor, "example time"]) -> Float[Tensor, "example time"]:
        """P(the current token is a trigger | all tokens so far)."""
        if not self.random_triggers:
            return (tokens < self.triggers).double()
        ratio = self._log_ratios(tokens)
        own = ratio.gather(-1, tokens.unsqueeze(-1)).squeeze(-1)
        others = ratio.scatter(-1, tokens.unsqueeze(-1), -math.inf)
        # log e_j of the other tokens' ratios, j = 0 … K, by adding one token at a time.
        sums = [torch.zeros_like(own)] + [torch.full_like(own, -math.inf) for _ in range(self.triggers)]
        for token in range(self.states):
            for degree in range(self.triggers, 0, -1):
                sums[degree] = torch.logaddexp(sums[degree], sums[degree - 1] + others[..., token])
        inside, outside = own + sums[-2], sums[-1]
        return torch.sigmoid(inside - outside)

    def _log_ratios(self, tokens: Int[Tensor, "example time"]) -> Float[Tensor, "example time states"]:
        """log r_v of every token from the transitions up to each position."""
        current, follower = tokens[:, :-1], tokens[:, 1:]
        before = last_occurrence(current)
        again = before >= 0
        differs = again & (follower.gather(1, before.clamp(min=0)) != follower)
        marks = F.one_hot(current, self.states).double()
        cost = self.table.to(tokens.device).log()[current, follower].unsqueeze(-1)
        plain = F.pad((marks * cost).cumsum(1), (0, 0, 1, 0))
        seen = F.pad(marks.cumsum(1), (0, 0, 1, 0)) > 0
        broken = F.pad((marks * differs.unsqueeze(-1)).cumsum(1), (0, 0, 1, 0)) > 0
        rule = torch.where(seen, -math.log(self.states), 0.0)
        return torch.where(broken, -math.inf, rule - plain)


@register("worlds")
@dataclass(frozen=True)
class BigramBackcopy(_BigramText):
    """Bigram text with trigger tokens that copy: a trigger is followed by the token that came before it.

    states         alphabet size; the start token, always first, has the index `states`
    triggers       tokens 0 … K − 1
    length         number of input tokens, the start token included; the target at each is the token after it
    concentration  of the Dirichlet rows of the fixed bigram distribution, drawn once with `seed`

    The token after the start is uniform among the non-triggers. The oracle is exact: the copied token after a
    trigger, the bigram row otherwise. On non-triggers a copying head has nothing to do; trained transformers put its
    attention on the start token (an attention sink). truth["is_trigger"] marks where the rule applies (example, time).

    Source: Guo et al. 2024, "Active-dormant attention heads".
    """

    states: int = 20
    triggers: int = 3
    length: int = 32
    concentration: float = 1.0
    seed: int = 0

    @property
    def vocab(self) -> int:
        return self.states + 1

    @property
    def letters(self) -> list[str]:
        return [*map(str, range(self.states)), "<s>"]

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        first = torch.randint(self.triggers, self.states, (n,), generator=rng, device=rng.device)
        text = self._walk(first, self.length - 1, rng, None, self.triggers)
        tokens = F.pad(text, (1, 0), value=self.states)
        return next_token_batch(tokens, {"is_trigger": tokens[:, :-1] < self.triggers})

    def oracle(self, batch: Batch) -> Float[Tensor, "example time vocab"]:
        tokens, rows = batch.inputs, self._rows().to(batch.inputs.device)
        copied = F.one_hot(F.pad(tokens[:, :-1], (1, 0), value=self.states), self.vocab).double()
        return torch.where(self.is_trigger(tokens).unsqueeze(-1), copied, rows[tokens]).log()

    def baselines(self) -> dict[str, Callable[[Batch], Tensor]]:
        """uniform; bigram: uniform over the states after a trigger, whose predecessor it ignores."""
        rows = self._rows()
        rows[: self.triggers] = F.pad(torch.full((self.states,), 1 / self.states, dtype=torch.float64), (0, 1))
        flat = torch.full_like(rows, 1 / self.vocab)
        return {
            "uniform": lambda batch: flat.to(batch.inputs.device)[batch.inputs].log(),
            "bigram": lambda batch: rows.to(batch.inputs.device)[batch.inputs].log(),
        }

    def is_trigger(self, tokens: Int[Tensor, "example time"]) -> Bool[Tensor, "example time"]:
        return tokens < self.triggers

    def _rows(self) -> Float[Tensor, "vocab vocab"]:
        """Probabilities of the next token by the current one, the start token's row last."""
        rows = torch.zeros(self.vocab, self.vocab, dtype=torch.float64)
        rows[:-1, :-1] = self.table
        rows[-1, self.triggers : self.states] = 1 / (self.states - self.triggers)
        return rows
