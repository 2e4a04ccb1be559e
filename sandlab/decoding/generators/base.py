"""What a decoder asks of a language model: the distribution of the next token after each of many prefixes."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sandlab.errors import BadInput
from sandlab.worlds.base import World

__all__ = ["Generator", "WorldGenerator"]


class Generator:
    """An autoregressive oracle: given prefixes, the log-probabilities of the next token.

    A subclass gives `vocab`, `_law` and, when it can, `features`. `rows` says which string of the running batch each
    prefix belongs to, so that a generator may keep one cache per string; `start` announces a new batch. Prefixes of
    one row need not grow: a cache must notice by itself when the end of a string was erased.

    `evaluations` counts the prefixes that were computed. It never exceeds the decoder's `oracle_calls`, and is lower
    where a decoder draws twice from the same probs.
    """

    vocab: int
    device: torch.device = torch.device("cpu")

    def __init__(self) -> None:
        self.evaluations = 0

    def start(self, strings: int, capacity: int) -> None:
        """A batch of `strings` strings of at most `capacity` tokens begins."""

    def next_logprobs(
        self, tokens: Int[Tensor, "row time"], lengths: Int[Tensor, "row"], rows: Int[Tensor, "row"]
    ) -> Float[Tensor, "row vocab"]:
        """log p(next | tokens[:length]) for each row, natural logarithm."""
        self.evaluations += len(lengths)
        return self._next_log_probs(tokens, lengths, rows)

    def _next_log_probs(self, tokens: Tensor, lengths: Tensor, rows: Tensor) -> Tensor:
        raise NotImplementedError

    @torch.no_grad()
    def token_logprobs(
        self,
        tokens: Int[Tensor, "row time"],
        begins: Int[Tensor, "row"],
        lengths: Int[Tensor, "row"],
        rows: Int[Tensor, "row"],
    ) -> Float[Tensor, "row time"]:
        """log p(token | what stands before it) of the tokens at begins, …, lengths − 1; 0 elsewhere."""
        found = torch.zeros(tokens.shape, dtype=torch.float64, device=tokens.device)
        for place in range(int(begins.min()), int(lengths.max())):
            some = (begins <= place) & (place < lengths)
            cut = torch.full_like(lengths[some], place)
            law = self.next_logprobs(tokens[some], cut, rows[some])
            found[some, place] = law.gather(1, tokens[some, place : place + 1]).squeeze(1).to(torch.float64)
        return found

    def normaliser(self, rows: Int[Tensor, "row"]) -> Float[Tensor, "row"]:
        """log Σ exp(logits) of the last answer for each row: what was taken off the logits; 0 where there are none."""
        return torch.zeros(len(rows), device=rows.device)

    def features(
        self, tokens: Int[Tensor, "row time"], lengths: Int[Tensor, "row"], rows: Int[Tensor, "row"], point: str
    ) -> Float[Tensor, "row width"]:
        """The activation called `point` at the last token of each prefix."""
        raise BadInput(f"{type(self).__name__} has no activations: a trained verifier needs a network to read from")


@runtime_checkable
class TokenWorld(Protocol):
    """A world that knows the distribution of the next token after any prefix."""

    @property
    def outputs(self) -> int: ...

    def next_logprobs(self, tokens: Tensor, lengths: Tensor) -> Tensor: ...


class WorldGenerator(Generator):
    """The distribution of a world as the generator: for worlds that know `next_logprobs(tokens, lengths)`."""

    def __init__(self, world: World | TokenWorld, device: str | torch.device = "cpu") -> None:
        super().__init__()
        if not isinstance(world, TokenWorld):
            raise BadInput(f"{type(world).__name__} has no next_logprobs: it cannot generate token by token")
        self.world, self.vocab, self.device = world, world.outputs, torch.device(device)

    def _next_log_probs(self, tokens: Tensor, lengths: Tensor, rows: Tensor) -> Tensor:
        return self.world.next_logprobs(tokens, lengths)
