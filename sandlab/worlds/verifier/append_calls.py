"""Calls of small functions, many at once: their arguments, their results, and results that are wrong."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Int
from torch import Tensor

# name → (parameters, body). In documents a meaningful name is used with its own body only.
BODIES = {
    "append": ("(l, item):\n    assert type(l) is list\n", "    l.append(item)\n    return l\n"),
    "prepend": ("(l, item):\n    assert type(l) is list\n", "    return [item] + l\n"),
    "pop": ("(l):\n    assert type(l) is list\n", "    l.pop()\n    return l\n"),
    "sum": ("(l):\n    assert type(l) is list\n", "    return sum(l)\n"),
    "max": ("(l):\n    assert type(l) is list\n", "    return max(l)\n"),
    "min": ("(l):\n    assert type(l) is list\n", "    return min(l)\n"),
    "add": ("(a, b):\n", "    return a + b\n"),
    "sub": ("(a, b):\n", "    return a - b\n"),
    "mul": ("(a, b):\n", "    return a * b\n"),
}
FUNCTIONS = tuple(BODIES)
MEANINGFUL = ("pop", "sum", "max", "min", "add", "sub", "mul")
LISTS = ("append", "prepend", "pop", "sum", "max", "min")


@dataclass(frozen=True)
class Calls:
    """The functions that are called (as indices into FUNCTIONS) and their arguments."""

    functions: Int[Tensor, "call"]
    elements: Int[Tensor, "call entry"]
    sizes: Int[Tensor, "call"]
    item: Int[Tensor, "call"]

    @classmethod
    def draw(cls, functions: Int[Tensor, "call"], longest: int, rng: torch.Generator, favour: float = 0.0) -> Calls:
        """Lists of 0 to `longest` digits (at least one where the function needs it), numbers 0–9.

        A digit e has probability ∝ (e + 1)^(−favour).
        """
        device, count = functions.device, len(functions)
        weights = torch.arange(1, 11, device=device, dtype=torch.float64) ** -favour
        bounds = (weights.cumsum(0) / weights.sum())[:-1]
        elements, item = (
            torch.bucketize(torch.rand(shape, generator=rng, device=device, dtype=torch.float64), bounds, right=True)
            for shape in ((count, longest + 1), (count,))
        )
        sizes = torch.randint(longest + 1, (count,), generator=rng, device=device)
        may_be_empty = among(functions, ("append", "prepend"))
        sizes = torch.where(may_be_empty, sizes, sizes.clamp(min=1))
        # Differences are never negative.
        high, low = torch.maximum(elements[:, 0], item), torch.minimum(elements[:, 0], item)
        minus = among(functions, ("sub",))
        elements[:, 0], item = torch.where(minus, high, elements[:, 0]), torch.where(minus, low, item)
        return cls(functions, elements, sizes, item)

    @property
    def takes_list(self) -> Bool[Tensor, "call"]:
        return among(self.functions, LISTS)

    @property
    def takes_two(self) -> Bool[Tensor, "call"]:
        return among(self.functions, ("append", "prepend", "add", "sub", "mul"))

    @property
    def returns_list(self) -> Bool[Tensor, "call"]:
        return among(self.functions, ("append", "prepend", "pop"))

    def result(self, *, swapped: bool = False) -> tuple[Int[Tensor, "call entry"], Int[Tensor, "call"]]:
        """Entries and size of what each call returns (a number is the first entry); swapped: append is prepend."""
        inside = torch.arange(self.elements.shape[1], device=self.functions.device) < self.sizes.unsqueeze(1)
        appended = self.elements.clone()
        appended.scatter_(1, self.sizes.unsqueeze(1), self.item.unsqueeze(1))
        prepended = torch.cat([self.item.unsqueeze(1), self.elements[:, :-1]], 1)
        grows = among(self.functions, ("append", "prepend"))
        at_end = among(self.functions, ("prepend",) if swapped else ("append",)).unsqueeze(1)
        lists = torch.where(grows.unsqueeze(1), torch.where(at_end, appended, prepended), self.elements)
        sizes = torch.where(grows, self.sizes + 1, self.sizes - 1)
        a, b = self.elements[:, 0], self.item
        numbers = {
            "sum": (self.elements * inside).sum(1),
            "max": torch.where(inside, self.elements, -1).amax(1),
            "min": torch.where(inside, self.elements, 10).amin(1),
            "add": a + b,
            "sub": a - b,
            "mul": a * b,
        }
        first = lists[:, 0]
        for name, value in numbers.items():
            first = torch.where(among(self.functions, (name,)), value, first)
        return torch.cat([first.unsqueeze(1), lists[:, 1:]], 1), sizes

    def wrong_result(
        self, wrong: Bool[Tensor, "call"], reordered: Bool[Tensor, "call"], rng: torch.Generator
    ) -> tuple[Int[Tensor, "call entry"], Int[Tensor, "call"]]:
        """Results, of which some are `wrong`: one entry is changed or, where `reordered`, the order is wrong.

        Where the wrong order makes no difference an entry is changed.
        """
        right, sizes = self.result()
        other, _ = self.result(swapped=True)
        shift = torch.randint(1, 10, (len(wrong),), generator=rng, device=wrong.device)
        share = torch.rand(len(wrong), generator=rng, device=wrong.device)
        index = torch.where(self.returns_list, (share * sizes.clamp(min=1)).long(), 0).unsqueeze(1)
        value = right.gather(1, index).squeeze(1)
        changed = right.scatter(1, index, (value // 10 * 10 + (value + shift) % 10).unsqueeze(1))
        reorder = reordered & (other != right).any(1) & among(self.functions, ("append", "prepend"))
        result = torch.where((wrong & reorder).unsqueeze(1), other, right)
        return torch.where((wrong & ~reorder).unsqueeze(1), changed, result), sizes


def among(functions: Int[Tensor, "call"], names: tuple[str, ...]) -> Bool[Tensor, "call"]:
    """Which calls are of one of these functions."""
    chosen = torch.tensor([FUNCTIONS.index(name) for name in names], device=functions.device)
    return (functions.unsqueeze(-1) == chosen).any(-1)
