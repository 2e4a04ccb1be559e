"""Iterative refinement: all positions of an answer are written in one pass, a few times over (PaDIR)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sandlab.errors import choice, integer, number
from sandlab.learning.parallel.refinement import stutters
from sandlab.models.parallel.encoder_decoder import DecoderCache, EncoderDecoder
from sandlab.worlds.parallel.translation import END, MASK, PAD, RESERVED

__all__ = ["IterativeRefinement", "Refined", "drop_repeats"]


@dataclass(frozen=True, eq=False)
class Refined:
    """What came out, for each source the best of its length hypotheses.

    tokens    (source, target): the answers; `kept` the same before repeats were dropped
    history   (step, source, target): what was fed to each step, and the last prediction
    remasked  (step, source, target): which tokens of each prediction were put back
    passes    decoder passes until the answer stopped changing
    scores    summed log-probability of the last pass; lengths: (source, hypothesis) candidates, best first
    """

    tokens: Int[Tensor, "source target"]
    kept: Int[Tensor, "source target"]
    history: Int[Tensor, "step source target"]
    remasked: Bool[Tensor, "pass source target"]
    passes: Int[Tensor, "source"]
    scores: Float[Tensor, "source"]
    lengths: Int[Tensor, "source hypothesis"]


def drop_repeats(tokens: Int[Tensor, "row time"]) -> Int[Tensor, "row time"]:
    """Without tokens that equal their left neighbour; what follows moves up."""
    gone = stutters(tokens) | (tokens == PAD)
    order = gone.long().argsort(dim=1, stable=True)
    return torch.where(gone, PAD, tokens).gather(1, order)


@dataclass(frozen=True)
class IterativeRefinement:
    """X^(t+1) = argmax f(X^(t), source) at all positions, from noise of a predicted length, T times (Li 2024, §4.2.2).

    max_steps T; a row whose prediction equals what was fed in stops early
    lengths   B_l, how many of the likeliest lengths are tried; the answer is the one with the largest summed
              log-probability, plus length_weight · log p(length), divided by ((5 + length)/6)^brevity. With weight 0,
              as published, short answers are preferred
    noise     the first tokens are "random" words or "mask"
    reject    between steps, "stutter": a repeat of the left neighbour is put back; "none"; "linear": the least likely
              tokens, fewer in each step; "bottom": a constant share of them (`share`)
    replace   what a rejected token becomes: the "fed" one, the "initial" one, or the argmax of all logits "summed"
    protect   repeats that are predicted with more than this probability stay (1: none does)
    stop      "prediction": compare the prediction itself with what was fed in; "remasked": compare after rejection,
              which can return noise where a repeat was legitimate (kept for comparison)
    drop      drop repeats from the answer
    """

    max_steps: int = 4
    lengths: int = 1
    noise: str = "random"
    reject: str = "stutter"
    replace: str = "fed"
    share: float = 0.2
    protect: float = 1.0
    brevity: float = 0.0
    length_weight: float = 0.0
    stop: str = "prediction"
    drop: bool = True

    def __post_init__(self) -> None:
        integer("max_steps", self.max_steps, low=1)
        integer("lengths", self.lengths, low=1)
        choice("noise", self.noise, ("random", "mask"))
        choice("reject", self.reject, ("stutter", "none", "linear", "bottom"))
        choice("replace", self.replace, ("fed", "initial", "summed"))
        choice("stop", self.stop, ("prediction", "remasked"))
        number("share", self.share, low=0.0, high=1.0)
        number("protect", self.protect, low=0.0, high=1.0)
        number("length_weight", self.length_weight, low=0.0)

    @torch.no_grad()
    def translate(
        self, model: EncoderDecoder, source: Int[Tensor, "source time"], *, rng: torch.Generator,
        true_lengths: Int[Tensor, "source"] | None = None,
    ) -> Refined:  # fmt: skip
        """Translate sources; with `true_lengths` (END counted) nothing is predicted about the length."""
        cache = model.encode(source)
        if true_lengths is None:
            lengths = 1 + cache.length_logits.topk(min(self.lengths, model.config.target_length), -1).indices
        else:
            lengths = true_lengths.unsqueeze(1)
        rows = torch.arange(len(source), device=source.device).repeat_interleave(lengths.shape[1])
        run = _Run(self, model, cache.select(rows), lengths.flatten(), rng)
        run.go()
        return run.best(lengths, cache.length_logits.log_softmax(-1).gather(1, lengths - 1))

    def rejected(
        self, found: Tensor, sure: Float[Tensor, "row time"], step: int, inside: Bool[Tensor, "row time"]
    ) -> Bool[Tensor, "row time"]:
        """The predicted tokens that are put back before the next step."""
        if self.reject == "none":
            return torch.zeros_like(inside)
        if self.reject == "stutter":
            return stutters(found) & (sure <= self.protect)
        share = self.share if self.reject == "bottom" else 1 - (step + 1) / self.max_steps
        count = (inside.sum(1, keepdim=True) * share).floor()
        order = sure.masked_fill(~inside, 2.0).argsort(1).argsort(1)
        return inside & (order < count)


class _Run:
    """One batch of hypotheses on its way."""

    def __init__(
        self,
        how: IterativeRefinement,
        model: EncoderDecoder,
        cache: DecoderCache,
        lengths: Tensor,
        rng: torch.Generator,
    ) -> None:
        self.how, self.model, self.cache, self.lengths = how, model, cache, lengths.unsqueeze(1)
        width = model.config.target_length
        place = torch.arange(width, device=lengths.device)
        self.inside, self.last = place < self.lengths - 1, place == self.lengths - 1
        words = torch.randint(RESERVED, model.config.vocab, (len(lengths), width), generator=rng, device=rng.device)
        words = words if how.noise == "random" else torch.full_like(words, MASK)
        self.first = self.tokens = torch.where(self.inside, words, torch.where(self.last, END, PAD))
        self.score = torch.zeros(len(lengths), device=lengths.device)
        self.passes = torch.zeros_like(lengths)
        self.history: list[Tensor] = [self.tokens]
        self.remasked: list[Tensor] = []
        self.summed: Tensor | None = None

    def go(self) -> None:
        running = torch.ones_like(self.passes, dtype=torch.bool)
        for step in range(self.how.max_steps):
            self.passes = self.passes + running
            running = self.step(step, running)
            if not bool(running.any()):
                break

    def step(self, step: int, running: Bool[Tensor, "row"]) -> Bool[Tensor, "row"]:
        """One pass for all rows; those that stopped keep their answer. Returns which rows go on."""
        logits = self.model.decode(self.cache, self.tokens)
        self.summed = logits if self.summed is None else self.summed + logits
        logs = logits.log_softmax(-1)
        found = torch.where(self.inside | self.last, logits.argmax(-1), PAD)
        sure = logs.gather(-1, found.unsqueeze(-1)).squeeze(-1)
        back = self.how.rejected(found, sure.exp(), step, self.inside)
        next_ = torch.where(back, self._replacement(), found)
        compared = found if self.how.stop == "prediction" else next_
        stops = (compared == self.tokens).all(1)
        final = stops | (step == self.how.max_steps - 1)
        # The code that stops on the remasked sequence also returns it.
        answer = found if self.how.stop == "prediction" else torch.where(stops.unsqueeze(1), next_, found)
        moved = torch.where(final.unsqueeze(1), answer, next_)
        self.tokens = torch.where(running.unsqueeze(1), moved, self.tokens)
        total = (sure * (self.inside | self.last)).sum(1)
        self.score = torch.where(running, total, self.score)
        self.history.append(self.tokens)
        self.remasked.append(back & ~final.unsqueeze(1) & running.unsqueeze(1))
        return running & ~stops

    def _replacement(self) -> Tensor:
        if self.how.replace == "summed" and self.summed is not None:
            return self.summed.argmax(-1)
        return self.tokens if self.how.replace == "fed" else self.first

    def best(self, lengths: Int[Tensor, "source hypothesis"], likely: Float[Tensor, "source hypothesis"]) -> Refined:
        """The best hypothesis of each source; `likely` are the log-probabilities of the lengths."""
        count = lengths.shape[1]
        score = (self.score + self.how.length_weight * likely.flatten()) / (
            (5.0 + self.lengths.squeeze(1)) / 6.0
        ) ** self.how.brevity
        order = score.view(-1, count).argsort(1, descending=True)
        rows = order[:, 0] + count * torch.arange(len(lengths), device=lengths.device)
        kept = self.tokens[rows]
        return Refined(
            tokens=drop_repeats(kept) if self.how.drop else kept,
            kept=kept,
            history=torch.stack(self.history)[:, rows],
            remasked=torch.stack(self.remasked)[:, rows],
            passes=self.passes[rows],
            scores=self.score[rows],
            lengths=lengths.gather(1, order),
        )
