"""Adding numbers digit by digit: the carry is a flip-flop (Liu et al. 2023, section on integer addition)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

from sandlab.errors import integer
from sandlab.registry import register
from sandlab.worlds.base import Batch, World
from sandlab.worlds.flip_flop.language import IGNORE, WRITE, latest_write

__all__ = ["Addition", "adder_as_flip_flop", "addition_prompt", "carries"]


def carries(digit_sums: Int[Tensor, "*n place"], base: int = 10) -> Int[Tensor, "*n place"]:
    """Carry out of each place, lowest first: sum ≥ base writes 1, sum ≤ base − 2 writes 0, sum = base − 1 keeps it."""
    flat = torch.atleast_2d(digit_sums)
    # A place below the lowest holds carry 0, which is read before the first write.
    writes = torch.cat([torch.zeros_like(flat[:, :1]), (flat >= base).long()], 1)
    keeps = torch.cat([torch.zeros_like(flat[:, :1], dtype=torch.bool), flat == base - 1], 1)
    state = writes.gather(1, latest_write(torch.where(keeps, IGNORE, WRITE)))[:, 1:]
    return state.view(digit_sums.shape)


def adder_as_flip_flop(first: int, second: int, base: int = 10) -> tuple[int, list[str]]:
    """first + second through flip-flop states only, and the operation ("σ0", "σ1" or "⊥") of each digit place."""
    integer("first", first, low=0)
    integer("second", second, low=0)
    places = max(len(_digits(first, base)), len(_digits(second, base)))
    sums = torch.tensor(_digits(first, base, places)) + torch.tensor(_digits(second, base, places))
    out = carries(sums, base)
    into = torch.cat([torch.zeros(1, dtype=torch.long), out])
    digits = torch.cat([(sums + into[:-1]) % base, into[-1:]])
    total = sum(int(digit) * base**place for place, digit in enumerate(digits))
    names = ["σ1" if s >= base else "⊥" if s == base - 1 else "σ0" for s in sums.tolist()]
    return total, names


def addition_prompt(first: int, second: int) -> str:
    """The question as a prompt for a language model."""
    return f"Q: What is {first}+{second}? Answer with the number alone.\nA:"


@register("worlds")
@dataclass(frozen=True)
class Addition(World):
    """Two numbers, lowest digit first, as one token per place (their digit pair); the target is the digit of the sum.

    The one thing to remember between places is the carry, a flip-flop whose no-op is a digit sum of base − 1.
    """

    digits: int = 20
    base: int = 10

    def __post_init__(self) -> None:
        integer("digits", self.digits, low=1)
        integer("base", self.base, low=2)

    @property
    def vocab(self) -> int:
        return self.base**2

    @property
    def outputs(self) -> int:
        return self.base

    @property
    def letters(self) -> list[str]:
        return [f"{token // self.base}+{token % self.base}" for token in range(self.vocab)]

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        pairs = torch.randint(self.vocab, (n, self.digits), generator=rng, device=rng.device)
        digits, into = self._add(pairs)
        return Batch(pairs, digits, torch.ones_like(pairs, dtype=torch.bool), {"carry": into})

    def oracle(self, batch: Batch) -> Tensor:
        """The sum's digit is certain once its place is seen: digit pair and carry of the lower places give it."""
        return torch.nn.functional.one_hot(self._add(batch.inputs)[0], self.base).double().log()

    def _add(self, pairs: Int[Tensor, "n place"]) -> tuple[Int[Tensor, "n place"], Int[Tensor, "n place"]]:
        """Digit of the sum at each place, and the carry that comes into it from the places before."""
        sums = pairs // self.base + pairs % self.base
        out = carries(sums, self.base)
        into = torch.cat([torch.zeros_like(out[:, :1]), out[:, :-1]], 1)
        return (sums + into) % self.base, into


def _digits(value: int, base: int, places: int = 0) -> list[int]:
    digits: list[int] = []
    while value or not digits:
        value, digit = divmod(value, base)
        digits.append(digit)
    return digits + [0] * (places - len(digits))
