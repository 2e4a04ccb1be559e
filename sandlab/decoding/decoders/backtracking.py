"""Tokenwise rejection sampling with backtracking."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from sandlab.decoding._session.session import Generations, Session
from sandlab.decoding._session.streams import hashed_prefix
from sandlab.decoding.decoders.base import Decoder, draw
from sandlab.errors import choice, integer, number
from sandlab.registry import register

__all__ = ["Backtracking", "rejected_prefixes"]


@register("decoders")
@dataclass(frozen=True)
class Backtracking(Decoder):
    """Sample; when the verifier rejects, erase the last B tokens and write B most probable ones instead.

        while |s| < D and s does not end:
            s ← s∘O(x∘s)
            if Q > 0 and V(x∘s) < τ:
                s ← s[1 : |s| − B];  Q ← Q − 1
                repeat B times: s ← s∘argmax O(x∘s)

    The erased block contains the token just sampled. The verifier is not asked while the B tokens are rewritten; an
    end token among them ends the string. Queries: one per sampled and one per rewritten token. With quota 0 the
    random numbers and hence the strings are those of plain sampling.
    Botta, Li, Mehta, Ash, Zhang & Risteski 2025, Algorithm 1.

    quota           Q, how often a string may backtrack
    stride          B, how many tokens are erased
    threshold       τ: a value below it is a rejection
    redo            "argmax" as above; "none": sampling resumes from the shortened string; "released": the authors'
                    released sampler, which is greedy at the first positions of the generation, as many as were erased
                    so far, wherever the erasure took place
    check           ask the verifier "after" each sampled token, or "before" each token is sampled (then rewritten
                    tokens are checked too, and a finished string is not)
    keep_prompt     None: only generated tokens are erased. A number: erasure may cut into the prompt, down to so many
                    tokens, which are then generated anew up to the same total length
    verify_prompt   ask once about the prompt itself before anything is sampled
    forbid_repeat   never backtrack twice from the same string
    """

    quota: int = 4
    stride: int = 4
    threshold: float = 0.5
    redo: str = "argmax"
    check: str = "after"
    keep_prompt: int | None = None
    verify_prompt: bool = False
    forbid_repeat: bool = False
    needs_verifier: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        integer("quota", self.quota, low=0)
        integer("stride", self.stride, low=1)
        number("threshold", self.threshold)
        choice("redo", self.redo, ("argmax", "none", "released"))
        choice("check", self.check, ("after", "before"))
        if self.keep_prompt is not None:
            integer("keep_prompt", self.keep_prompt, low=0)

    def run(self, session: Session) -> None:
        session.counters["strings_generated"] += 1
        session.counters["quota_left"] += self.quota
        redo = torch.zeros_like(session.lengths)
        past: list[Tensor] = []
        if self.verify_prompt and self.check == "after":
            self._verify(session, session.running(), redo, past)
        while len(rows := session.running()):
            if self.check == "before":
                self._verify(session, rows, redo, past)
            greedy = self._greedy(session, rows, redo)
            self._step(session, rows, greedy)
            redo[rows] = (redo[rows] - 1).clamp(min=0)
            accepted = torch.ones_like(greedy)
            if self.check == "after":
                accepted[~greedy] = ~self._verify(session, rows[~greedy], redo, past)
            session.finish(rows[accepted & session.complete(rows)])

    def _greedy(self, session: Session, rows: Tensor, redo: Tensor) -> Tensor:
        """Which rows take the most probable token now."""
        if self.redo == "released":
            written = session.lengths[rows] - session.prompt_lengths[rows]
            return written < session.counters["tokens_erased"][rows]
        return redo[rows] > 0

    def _step(self, session: Session, rows: Tensor, greedy: Tensor) -> None:
        logprobs = session.next_log_probs(rows)
        letters = logprobs.argmax(1)
        drawn = rows[~greedy]
        if len(drawn):
            letters[~greedy] = draw(self.sharpened(session, drawn, logprobs[~greedy]).exp(), session.uniform(drawn))
        chosen = logprobs.gather(1, letters.unsqueeze(1)).squeeze(1)
        for kind, some in (("argmax", greedy), ("sampled", ~greedy)):
            session.append(rows[some], letters[some], chosen[some], kind)

    def _verify(self, session: Session, rows: Tensor, redo: Tensor, past: list[Tensor]) -> Tensor:
        """Ask about each row that has quota left, and backtrack where it is rejected; which rows were."""
        rejected = torch.zeros(len(rows), dtype=torch.bool, device=rows.device)
        asked = (session.counters["quota_left"][rows] > 0).nonzero().squeeze(1)
        if len(asked):
            values = session.value(rows[asked])
            refused = values < self.threshold
            if self.forbid_repeat:
                refused &= self._new(session, rows[asked], refused, past)
            rejected[asked[refused]] = True
            self._backtrack(session, rows[asked[refused]], values[refused], redo)
        return rejected

    def _backtrack(self, session: Session, rows: Tensor, values: Tensor, redo: Tensor) -> None:
        lengths = session.lengths[rows]
        last = session.tokens[rows, (lengths - 1).clamp(min=0)]
        session.note("rejected", rows, lengths - 1, last, values)
        prompts = session.prompt_lengths[rows]
        floor = prompts if self.keep_prompt is None else prompts.clamp(max=self.keep_prompt)
        # A prompt cut earlier and not yet written again may be shorter than what is kept: nothing is erased then.
        session.erase(rows, torch.minimum(lengths, torch.maximum(lengths - self.stride, floor)))
        session.counters["quota_left"][rows] -= 1
        session.counters["backtracks"][rows] += 1
        if self.redo == "argmax":
            redo[rows] = self.stride

    def _new(self, session: Session, rows: Tensor, refused: Tensor, past: list[Tensor]) -> Tensor:
        """Rows that have not backtracked from this very string before; the k-th such string goes into past[k]."""
        prints = hashed_prefix(session.tokens[rows], session.lengths[rows], 0)
        fresh = torch.ones_like(refused)
        for earlier in past:
            fresh &= earlier[rows] != prints
        taken = rows[refused & fresh]
        counts = session.counters["backtracks"][taken]
        while len(taken) and len(past) <= int(counts.max()):
            past.append(torch.zeros_like(session.lengths))
        for count, column in enumerate(past):
            column[taken[counts == count]] = prints[refused & fresh][counts == count]
        return fresh


def rejected_prefixes(generations: Generations, prompts: list[list[int]]) -> list[list[int]]:
    """Every string at which the verifier rejected, in order, replayed from the trace of a `Backtracking` run."""
    strings = []
    for prompt, events in zip(prompts, generations.events or []):
        tokens = list(prompt)
        for event in events:
            if event.kind in ("sampled", "argmax"):
                tokens.append(event.token)
            elif event.kind == "erased":
                tokens.pop()
            else:
                strings.append(list(tokens))
    return strings
