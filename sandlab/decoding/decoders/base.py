"""What every decoding algorithm shares: how it is called, and how a distribution is sharpened and drawn from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sandlab.decoding._session.session import Generations, Session
from sandlab.decoding.generators.base import Generator
from sandlab.decoding.verifiers.base import Verifier
from sandlab.errors import BadInput, number

__all__ = ["Decoder", "draw", "warp_logits"]


def warp_logits(logprobs: Float[Tensor, "row vocab"], temperature: float, top_p: float) -> Float[Tensor, "row vocab"]:
    """Temperature, then nucleus: log-probabilities (float64) of the distribution that is sampled from.

    p_T ∝ p^(1/T); then the smallest set of most probable tokens whose probability exceeds top_p is kept and
    renormalised (the token that crosses the threshold stays). T = 0 or top_p = 0 is the most probable token.
    Holtzman et al. 2020.
    """
    logprobs = logprobs.to(torch.float64)
    if temperature == 0 or top_p == 0:
        best = torch.full_like(logprobs, -torch.inf)
        return best.scatter(-1, logprobs.argmax(-1, keepdim=True), 0.0)
    if temperature != 1:
        logprobs = logprobs / temperature
    logprobs = logprobs.log_softmax(-1)
    if top_p >= 1:
        return logprobs
    ordered, order = logprobs.sort(dim=-1, descending=True, stable=True)
    before = ordered.exp().cumsum(-1) - ordered.exp()
    kept = ordered.masked_fill(before > top_p, -torch.inf)
    return torch.empty_like(logprobs).scatter(-1, order, kept).log_softmax(-1)


def draw(weights: Float[Tensor, "row option"], uniform: Float[Tensor, "row"]) -> Int[Tensor, "row"]:
    """An option of each row with probability proportional to its weight, by inverting the cumulative sum."""
    sums = weights.to(torch.float64).cumsum(-1)
    target = (uniform * sums[:, -1]).unsqueeze(1)
    # Strictly above the target, so that an option of weight 0 is never drawn.
    return torch.searchsorted(sums, target, right=True).squeeze(1).clamp(max=weights.shape[1] - 1)


@dataclass(frozen=True)
class Decoder:
    """An inference algorithm: a frozen set of parameters with `generate`.

    temperature, top_p   how the generator's distribution is sharpened before it is drawn from
    """

    temperature: float = 1.0
    top_p: float = 1.0

    needs_verifier: ClassVar[bool] = False

    def __post_init__(self) -> None:
        number("temperature", self.temperature, low=0.0)
        number("top_p", self.top_p, low=0.0, high=1.0)

    def generate(
        self,
        generator: Generator,
        prompts: Tensor | Sequence[Sequence[int]],
        *,
        max_new: int | Sequence[int] | Tensor,
        verifier: Verifier | None = None,
        eos: int | None = None,
        rng: torch.Generator | None = None,
        keys: Int[Tensor, "row"] | None = None,
        budget: int | None = None,
        trace: bool = False,
        progress: Callable[[int, str], None] | None = None,
    ) -> Generations:
        """Continue every prompt; all prompts advance together.

        max_new   tokens to add at most, one number or one per prompt; `eos` ends a string earlier
        rng       source of the strings' random streams; or `keys`, one per prompt, to repeat a run row by row
        budget    largest number of queries to the generator per prompt; a string over it ends with status BUDGET
        trace     keep every event (sampled, argmax, rejected, erased)
        progress  called again and again with the number of strings that have ended and a note
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
        letters = draw(self.sharpen(logprobs).exp(), session.uniform(rows))
        return letters, logprobs.gather(1, letters.unsqueeze(1)).squeeze(1)

    def sharpen(self, logprobs: Float[Tensor, "row vocab"]) -> Float[Tensor, "row vocab"]:
        return warp_logits(logprobs, self.temperature, self.top_p)

    def extend(self, session: Session, rows: Tensor) -> None:
        """Sample one token for each row, and mark those that are complete."""
        letters, logprob = self.sample_token(session, rows)
        session.append(rows, letters, logprob)
