"""Searching a secret prefix: as well as one can do when the verifier says nothing."""

from __future__ import annotations

import torch
from jaxtyping import Int
from torch import Tensor

from sandlab.errors import integer
from sandlab.worlds.verifier.constrained import HiddenParity

__all__ = ["search_prefixes"]


def search_prefixes(
    worlds: list[HiddenParity], *, rng: torch.Generator, repeat: bool = False
) -> tuple[Int[Tensor, "world"], Int[Tensor, "world bit"]]:
    """Ask each oracle about prefixes of length D−1 in random order until its answer makes an even string.

    Returns the number of queries and the strings found. Without repetition the number is uniform on 1..2^(D−1), mean
    (2^(D−1) + 1)/2, and no algorithm does better for a uniform secret; with repetition it is geometric, mean 2^(D−1).
    """
    queries, found = [], []
    for world in worlds:
        size = 2 ** (integer("length", world.length, low=2, high=20) - 1)
        asked = 0
        while True:
            order = torch.randint(size, (size,), generator=rng) if repeat else torch.randperm(size, generator=rng)
            prefixes = (order.unsqueeze(1) >> torch.arange(world.length - 2, -1, -1)) & 1
            probs = world.next_logprobs(prefixes, torch.full((size,), world.length - 1))
            strings = torch.cat([prefixes, probs.argmax(1, keepdim=True)], 1)
            hits = torch.as_tensor(world.accepts(strings)).nonzero()
            if len(hits):
                break
            asked += size
        first = int(hits[0])
        queries.append(asked + first + 1)
        found.append(strings[first])
    return torch.tensor(queries), torch.stack(found)
