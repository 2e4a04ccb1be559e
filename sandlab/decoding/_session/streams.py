"""Random numbers per string: what a string draws does not depend on who else is in the batch."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor

__all__ = ["Streams"]

_GOLDEN = -7046029254386353131  # 0x9E3779B97F4A7C15 as a signed 64-bit number
_FIRST = -4658895280553007687  # 0xBF58476D1CE4E5B9
_SECOND = -7723592293110705685  # 0x94D049BB133111EB
_ALL = 2**64 - 1
_FEW = 16


class Streams:
    """One stream of uniform numbers for each string of a batch.

    The k-th number of a stream with key s is the 53 highest bits of splitmix64(s + k·γ) (Steele, Lea & Flood 2014).
    A row thus draws the same numbers alone or in a batch, and two algorithms that start from the same keys are
    compared on common random numbers. A torch.Generator, shared by a batch, can do neither.
    """

    def __init__(self, keys: Int[Tensor, "row"]) -> None:
        self.keys = keys
        self.drawn = torch.zeros_like(keys)

    @classmethod
    def from_rng(cls, n: int, rng: torch.Generator) -> Streams:
        """n streams whose keys are drawn from a generator, on its device."""
        low, high = -(2**63), 2**63 - 1
        return cls(torch.randint(low, high, (n,), generator=rng, device=rng.device))

    def uniform(self, rows: Int[Tensor, "some"]) -> Float[Tensor, "some"]:
        """The next number in [0, 1) of each of these rows (float64)."""
        self.drawn[rows] += 1
        if len(rows) <= _FEW and rows.device.type == "cpu":
            pairs = zip(self.keys[rows].tolist(), self.drawn[rows].tolist())
            return torch.tensor([_unit(key + drawn * _GOLDEN) for key, drawn in pairs], dtype=torch.float64)
        return to_unit(mix(self.keys[rows] + self.drawn[rows] * _GOLDEN))


def _unit(z: int) -> float:
    """`to_unit(mix(z))` of one number: for a few of them tensors cost more than they save."""
    z &= _ALL
    z = ((z ^ (z >> 30)) * (_FIRST & _ALL)) & _ALL
    z = ((z ^ (z >> 27)) * (_SECOND & _ALL)) & _ALL
    return ((z ^ (z >> 31)) >> 11) * 2.0**-53


def mix(z: Int[Tensor, "*any"]) -> Int[Tensor, "*any"]:
    """The finaliser of splitmix64: a bijection of 64-bit numbers after which every bit depends on every other."""
    z = (z ^ _shift(z, 30)) * _FIRST
    z = (z ^ _shift(z, 27)) * _SECOND
    return z ^ _shift(z, 31)


def to_unit(z: Int[Tensor, "*any"]) -> Float[Tensor, "*any"]:
    """The 53 highest bits as a number in [0, 1)."""
    return _shift(z, 11).to(torch.float64) * 2.0**-53


def hashed_prefix(tokens: Int[Tensor, "row time"], lengths: Int[Tensor, "row"], key: int) -> Int[Tensor, "row"]:
    """A 64-bit fingerprint of each prefix tokens[:length]; equal prefixes have equal fingerprints."""
    place = torch.arange(1, tokens.shape[1] + 1, device=tokens.device)
    inside = place <= lengths.unsqueeze(1)
    mixed = mix((tokens + 1) * _GOLDEN + place * _SECOND + key)
    return mix(torch.where(inside, mixed, 0).sum(1) + lengths * _FIRST)


def _shift(z: Tensor, bits: int) -> Tensor:
    # Torch shifts signed numbers arithmetically: the copies of the sign bit are masked away.
    return (z >> bits) & ((1 << (64 - bits)) - 1)
