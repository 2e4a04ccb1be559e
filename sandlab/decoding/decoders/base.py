"""What every decoding algorithm shares: how it is called, and how a distribution is sharpened and drawn from."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sandlab.decoding._session.session import Generations, Session
from sandlab.decoding.generators.base import Generator
from sandlab.decoding.verifiers.base import Verifier
from sandlab.errors import BadInput, integer, number, require

__all__ = ["Decoder", "draw", "warp_logits"]


def warp_logits(
    logprobs: Float[Tensor, "row vocab"],
    temperature: float,
    top_p: float,
    top_k: int | None = None,
    min_p: float = 0.0,
) -> Float[Tensor, "row vocab"]:
    """Temperature, the k likeliest, nucleus, then min-p: log-probabilities (float64) of what is sampled from.

    p_T ∝ p^(1/T); the k most probable tokens stay (and those as probable as the last of them); then the smallest set of
    most probable tokens whose probability exceeds top_p (the token that crosses the threshold stays); then the tokens
    with at least min_p times the probability of the most probable one; each time renormalised. T = 0 or top_p = 0 is
    the most probable token. The order is that of transformers.
    Holtzman et al. 2020 (nucleus), Nguyen et al. 2024 (min-p).
    """
    logprobs = logprobs.to(torch.float64)
    if temperature == 0 or top_p == 0:
        best = torch.full_like(logprobs, -torch.inf)
        return best.scatter(-1, logprobs.argmax(-1, keepdim=True), 0.0)
    if temperature != 1:
        logprobs = logprobs / temperature
    if top_k is not None and top_k < logprobs.shape[-1]:
        last = logprobs.topk(top_k, -1).values[..., -1:]
        logprobs = logprobs.masked_fill(logprobs < last, -torch.inf)
    logprobs = logprobs.log_softmax(-1)
    if top_p < 1:
        logprobs = _nucleus(logprobs, top_p)
    if min_p > 0:
        least = logprobs.amax(-1, keepdim=True) + math.log(min_p)
        logprobs = logprobs.masked_fill(logprobs < least, -torch.inf).log_softmax(-1)
    return logprobs


def _nucleus(logprobs: Tensor, top_p: float) -> Tensor:
    ordered, order = logprobs.sort(dim=-1, descending=True, stable=True)
    before = ordered.exp().cumsum(-1) - ordered.exp()
    kept = ordered.masked_fill(before > top_p, -torch.inf)
    return torch.empty_like(logprobs).scatter(-1, order, kept).log_softmax(-1)


def penalise(
    logits: Float[Tensor, "row vocab"], tokens: Int[Tensor, "row time"], lengths: Int[Tensor, "row"], penalty: float
) -> Float[Tensor, "row vocab"]:
    """Logits of tokens that occurred already, prompt included: divided by the penalty if positive, else multiplied.

    Keskar et al. 2019.
    """
    inside = torch.arange(tokens.shape[1], device=tokens.device) < lengths.unsqueeze(1)
    seen = torch.zeros_like(logits).scatter_add_(1, tokens, inside.to(logits.dtype)) > 0
    return torch.where(seen, torch.where(logits > 0, logits / penalty, logits * penalty), logits)


def draw(weights: Float[Tensor, "row option"], uniform: Float[Tensor, "row"]) -> Int[Tensor, "row"]:
    """An option of each row with probability proportional to its weight, by inverting the cumulative sum."""
    sums = weights.to(torch.float64).cumsum(-1)
    target = (uniform * sums[:, -1]).unsqueeze(1)
    # Strictly above the target, so that an option of weight 0 is never drawn.
    return torch.searchsorted(sums, target, right=True).squeeze(1).clamp(max=weights.shape[1] - 1)


@dataclass(frozen=True)
class Decoder:
    """An inference algorithm: a frozen set of parameters with `generate`.

    temperature, top_p, top_k, min_p   how the generator's distribution is sharpened before it is drawn from
    repetition_penalty                 above 1: tokens that occurred already, prompt included, become less likely

    `law` says in words which distribution comes out; "the model" means the sharpened one.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int | None = field(default=None, kw_only=True)
    min_p: float = field(default=0.0, kw_only=True)
    repetition_penalty: float = field(default=1.0, kw_only=True)

    needs_verifier: ClassVar[bool] = False
    law: ClassVar[str] = "none is promised"

    def __post_init__(self) -> None:
        number("temperature", self.temperature, low=0.0)
        number("top_p", self.top_p, low=0.0, high=1.0)
        number("min_p", self.min_p, low=0.0, high=1.0)
        number("repetition_penalty", self.repetition_penalty)
        require(self.repetition_penalty > 0, "repetition_penalty", self.repetition_penalty, "above 0")
        if self.top_k is not None:
            integer("top_k", self.top_k, low=1)

    def generate(
        self,
        generator: Generator,
        prompts: Tensor | Sequence[Sequence[int]],
        *,
        max_new: int | Sequence[int] | Tensor,
        verifier: Verifier | None = None,
        eos: int | Sequence[int] | None = None,
        rng: torch.Generator | None = None,
        keys: Int[Tensor, "row"] | None = None,
        budget: int | None = None,
        trace: bool = False,
        progress: Callable[[int, str], None] | None = None,
        stopped: Callable[[Session, Tensor], Tensor] | None = None,
        listener: Callable[[Session, Tensor], None] | None = None,
    ) -> Generations:
        """Continue every prompt; all prompts advance together.

        max_new   tokens to add at most, one number or one per prompt; `eos` (one or several tokens) ends earlier
        rng       source of the strings' random streams; or `keys`, one per prompt, to repeat a run row by row
        budget    largest number of queries to the generator per prompt; a string over it ends with status BUDGET
        trace     keep every event (sampled, argmax, rejected, erased)
        progress  called again and again with the number of strings that have ended and a note
        stopped   (session, rows) → whether each string ends here, beside end tokens and length
        listener  called with (session, rows) whenever strings have changed
        """
        if self.needs_verifier and verifier is None:
            raise BadInput(f"{type(self).__name__} asks a verifier: give verifier=")
        session = Session(
            generator,
            prompts,
            verifier=verifier,
            max_new=max_new,
            eos=eos,
            rng=rng,
            keys=keys,
            budget=budget,
            trace=trace,
            progress=progress,
            stopped=stopped,
            listener=listener,
        )
        with torch.no_grad():
            self.run(session)
        return session.result()

    def run(self, session: Session) -> None:
        """Move the strings of a session until none is running."""
        raise NotImplementedError

    def sample_token(self, session: Session, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Ask the generator and draw: the next token of each row and its log-probability under the generator."""
        logprobs = session.next_log_probs(rows)
        letters = draw(self.sharpened(session, rows, logprobs).exp(), session.uniform(rows))
        return letters, logprobs.gather(1, letters.unsqueeze(1)).squeeze(1)

    def sharpened(
        self, session: Session, rows: Tensor, logprobs: Float[Tensor, "row vocab"]
    ) -> Float[Tensor, "row vocab"]:
        """Log-probabilities of the distribution that is drawn from after these strings."""
        if self.repetition_penalty != 1:
            # The penalty divides or multiplies by sign: it is about the network's own logits.
            logits = logprobs + session.generator.normaliser(rows).unsqueeze(1)
            logprobs = penalise(logits, session.tokens[rows], session.lengths[rows], self.repetition_penalty)
        return self.sharpen(logprobs)

    def sharpen(self, logprobs: Float[Tensor, "row vocab"]) -> Float[Tensor, "row vocab"]:
        return warp_logits(logprobs, self.temperature, self.top_p, self.top_k, self.min_p)

    def extend(self, session: Session, rows: Tensor) -> None:
        """Sample one token for each row, and mark those that are complete."""
        letters, logprob = self.sample_token(session, rows)
        session.append(rows, letters, logprob)
