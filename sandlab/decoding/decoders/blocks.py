"""Best of n, block by block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from sandlab.decoding._session.session import Session
from sandlab.decoding.decoders.base import Decoder
from sandlab.decoding.decoders.rejection import Best
from sandlab.errors import BadInput, integer
from sandlab.registry import register

__all__ = ["BlockBestOfN"]


@register("decoders")
@dataclass(frozen=True)
class BlockBestOfN(Decoder):
    """For each block (a line, or a fixed number of tokens), n candidates, of which the verifier's best is kept.

    All candidates' tokens count as queries. Stops at the end token or after `blocks` blocks.
    Botta, Li et al. 2025, block best-of-n baseline of the code-generation experiments.

    candidates   n per block
    separator    the token that ends a block (a newline); or `block` tokens when it is None
    shortest     a separator among the first tokens of a block does not end it: a block has at least so many tokens
    blocks       stop after so many blocks (None: only the end token and the length stop)
    """

    candidates: int = 2
    separator: int | None = None
    block: int | None = None
    shortest: int = 3
    blocks: int | None = None
    needs_verifier: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        integer("candidates", self.candidates, low=1)
        integer("shortest", self.shortest, low=1)
        for name, low in (("separator", 0), ("block", 1), ("blocks", 1)):
            if getattr(self, name) is not None:
                integer(name, getattr(self, name), low=low)
        if (self.separator is None) == (self.block is None):
            given = "neither" if self.block is None else "both"
            raise BadInput(
                f"block-best-of-n needs a separator token or a block length, got {given}: try block=8 (eight tokens)"
            )

    def run(self, session: Session) -> None:
        session.counters["strings_generated"] += 1
        best, begins = Best(session), session.lengths.clone()
        tried, closed = torch.zeros_like(begins), torch.zeros_like(begins)
        while len(rows := session.running()):
            self.extend(session, rows)
            ended = rows[self._ended(session, rows, begins)]
            if not len(ended):
                continue
            best.offer(ended, session.value(ended))
            tried[ended] += 1
            session.counters["steps"][ended] += 1
            last = tried[ended] >= self.candidates
            again, chosen = ended[~last], ended[last]
            session.erase(again, begins[again])
            best.restore(chosen, begins[chosen])
            tried[chosen], begins[chosen] = 0, session.lengths[chosen]
            closed[chosen] += 1
            over = session.complete(chosen)
            if self.blocks is not None:
                over |= closed[chosen] >= self.blocks
            session.finish(chosen[over])

    def _ended(self, session: Session, rows: Tensor, begins: Tensor) -> Tensor:
        """Whether the block that each row is writing has come to its end."""
        written = session.lengths[rows] - begins[rows]
        if self.block is not None:
            return session.complete(rows) | (written >= self.block)
        last = session.tokens[rows, session.lengths[rows] - 1]
        return session.complete(rows) | ((last == self.separator) & (written >= self.shortest))
