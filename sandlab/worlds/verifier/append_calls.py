"""Calls of small functions, many at once: their arguments, their results, and results that are wrong."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

# name → (parameters, body). The name is used with its own body only, unless a test asks for the contrary.
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
class Cases:
    """Arguments of many calls, of one function each."""

    kinds: Int[Tensor, "call"]
    elements: Int[Tensor, "call entry"]
    sizes: Int[Tensor, "call"]
    item: Int[Tensor, "call"]

    @classmethod
    def drawn(cls, kinds: Tensor, longest: int, rng: torch.Generator, favour: float = 0.0) -> Cases:
        """Lists of 0 to `longest` digits (at least one where the function needs it), numbers 0–9."""
        device, m = kinds.device, len(kinds)
        weights = torch.arange(1, 11, device=device, dtype=torch.float64) ** -favour
        bounds = (weights.cumsum(0) / weights.sum())[:-1]
        elements, item = (
            torch.bucketize(torch.rand(shape, generator=rng, device=device, dtype=torch.float64), bounds, right=True)
            for shape in ((m, longest + 1), (m,))
        )
        sizes = torch.randint(longest + 1, (m,), generator=rng, device=device)
        may_be_empty = among(kinds, ("append", "prepend"))
        sizes = torch.where(may_be_empty, sizes, sizes.clamp(min=1))
        # Differences stay positive.
        high, low = torch.maximum(elements[:, 0], item), torch.minimum(elements[:, 0], item)
        minus = among(kinds, ("sub",))
        elements[:, 0], item = torch.where(minus, high, elements[:, 0]), torch.where(minus, low, item)
        return cls(kinds, elements, sizes, item)

    @property
    def takes_list(self) -> Tensor:
        return among(self.kinds, LISTS)

    @property
    def takes_two(self) -> Tensor:
        return among(self.kinds, ("append", "prepend", "add", "sub", "mul"))

    @property
    def gives_list(self) -> Tensor:
        return among(self.kinds, ("append", "prepend", "pop"))

    def result(self, *, swapped: bool = False) -> tuple[Int[Tensor, "call entry"], Int[Tensor, "call"]]:
        """What the call returns, a number in the first entry; swapped: append and prepend exchanged."""
        place = torch.arange(self.elements.shape[1], device=self.kinds.device)
        inside = place < self.sizes.unsqueeze(1)
        end = self.elements.clone()
        end.scatter_(1, self.sizes.unsqueeze(1), self.item.unsqueeze(1))
        begin = torch.cat([self.item.unsqueeze(1), self.elements[:, :-1]], 1)
        grows = among(self.kinds, ("append", "prepend"))
        at_end = among(self.kinds, ("prepend",) if swapped else ("append",)).unsqueeze(1)
        lists = torch.where(grows.unsqueeze(1), torch.where(at_end, end, begin), self.elements)
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
            first = torch.where(among(self.kinds, (name,)), value, first)
        return torch.cat([first.unsqueeze(1), lists[:, 1:]], 1), sizes

    def damaged(self, wrong: Tensor, how: Tensor, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        """Results, some of them wrong: a changed entry (how = 0), or the wrong order (1, a change where it is none)."""
        right, sizes = self.result()
        other, _ = self.result(swapped=True)
        shift = torch.randint(1, 10, (len(wrong),), generator=rng, device=wrong.device)
        place = torch.rand(len(wrong), generator=rng, device=wrong.device)
        spot = torch.where(self.gives_list, (place * sizes.clamp(min=1)).long(), 0).unsqueeze(1)
        value = right.gather(1, spot).squeeze(1)
        changed = right.scatter(1, spot, (value // 10 * 10 + (value + shift) % 10).unsqueeze(1))
        reorder = (how == 1) & (other != right).any(1) & among(self.kinds, ("append", "prepend"))
        result = torch.where((wrong & reorder).unsqueeze(1), other, right)
        return torch.where((wrong & ~reorder).unsqueeze(1), changed, result), sizes


def among(kinds: Tensor, names: tuple[str, ...]) -> Tensor:
    chosen = torch.tensor([FUNCTIONS.index(name) for name in names], device=kinds.device)
    return (kinds.unsqueeze(-1) == chosen).any(-1)
