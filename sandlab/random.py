"""Seeds. Every random draw of the laboratory takes a generator; nothing uses a global seed."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from sandlab.checking import checked_types
from sandlab.errors import BadInput, integer, require, shown

if TYPE_CHECKING:
    import torch

__all__ = ["rng"]


@checked_types
def rng(seed: int, *stream: str | int, device: str | torch.device = "cpu") -> torch.Generator:
    """A generator for `seed`; names in `stream` give independent generators of the same seed.

    `rng(3)` and `rng(3, "evaluation")` never share draws; the same call always gives the same draws.
    """
    import torch

    integer("seed", seed, low=0)
    require(seed < 2**63, "seed", seed, "below 2^63")
    if stream:
        text = "/".join(map(str, (seed, *stream)))
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little") >> 1
    try:
        generator = torch.Generator(device=device)
    except (TypeError, RuntimeError) as problem:
        raise BadInput(f"device must be like 'cpu' or 'cuda:0', got {shown(device)}: {problem}") from None
    generator.manual_seed(seed)
    return generator
