"""The predictor that a short memory allows: what attention to the last few tokens cannot explain."""

from __future__ import annotations

import torch
from jaxtyping import Int
from torch import Tensor
from torch.nn.functional import one_hot

from sandlab.errors import integer, require
from sandlab.registry import register
from sandlab.worlds.base import Batch, Predictor
from sandlab.worlds.flip_flop.language import IGNORE, READ, FlipFlop

__all__ = ["ngram_predictor"]


@register("lenses")
def ngram_predictor(world: FlipFlop, window: int) -> Predictor:
    """The best predictor that sees the last `window` tokens (the r of a read among them) and their positions.

    A read is certain once a write or a read is seen. Else the oldest symbol, whose instruction may lie outside of the
    window, is the answer with probability 1 − p_i + p_i/n, and where no such symbol is seen all n are equally likely.
    Its read error is `FlipFlop.ngram_error`. Source: Liu et al. 2023, section 3 (n-grams do not explain glitches).
    """
    integer("window", window, low=1)
    require(world.tokens == "fine", "tokens", world.tokens, "'fine'", "coarse strings have no symbols to look back at")
    require(len(world.probs) == 1, "probs", world.probs, "a single pair (p_w, p_r)")
    ignored = 1 - sum(world.probs[0])

    def predict(batch: Batch) -> Tensor:
        probs = world.oracle(batch).exp()
        instructions, symbols = batch.inputs[:, 0::2], batch.inputs[:, 1::2] - 3
        if symbols.shape[1] == 0:
            return probs.log()
        pair = torch.arange(instructions.shape[1], device=symbols.device)
        oldest = (pair - window // 2).clamp(min=0)
        told = _told_before(instructions)
        # The instruction of the oldest symbol is seen in windows of odd length; the first one is always a write.
        sure = (told >= oldest + (window % 2 == 0)) | (oldest == 0)
        shown = symbols.gather(1, torch.where(sure, told, oldest).clamp(max=symbols.shape[1] - 1))
        belief = torch.where(sure, 1.0, 1 - ignored if window % 2 == 0 else 0.0).unsqueeze(-1).double()
        answer = belief * one_hot(shown, world.symbols) + (1 - belief) / world.symbols
        probs[:, 0::2, 3:] = torch.where((instructions == READ).unsqueeze(-1), answer, probs[:, 0::2, 3:])
        return probs.log()

    return predict


def _told_before(instructions: Int[Tensor, "n pair"]) -> Int[Tensor, "n pair"]:
    """The latest pair before each one that showed the stored symbol: a write or a read (0 where there is none)."""
    pair = torch.arange(instructions.shape[1], device=instructions.device)
    shown = torch.where(instructions != IGNORE, pair, 0).cummax(1).values
    return torch.cat([torch.zeros_like(shown[:, :1]), shown[:, :-1]], 1)
