"""Programs with test cases: what a small language model needs to have read before it can write tests for `append`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Int
from torch import Tensor

from sandlab.errors import BadInput, choice, integer, number, require
from sandlab.registry import register
from sandlab.worlds.base import Batch, World

__all__ = ["MEANINGFUL", "OOD_NAMES", "AppendCases"]

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
OOD_NAMES = ("pop", "add", "sub", "mul", "div", "max", "min", "std", "avg", "exp")
LISTS = ("append", "prepend", "pop", "sum", "max", "min")
PIECES = [
    "def ",
    "assert ",
    ", ",
    " == ",
    " test cases of the above function ",
    ", one in each line:\n",
    "\nList ",
    *dict.fromkeys(part for body in BODIES.values() for part in body),
]
CHARACTERS = "abcdefghijklmnopqrstuvwxyz0123456789[]()\n"
ABSENT = -1


@register("worlds", "append-cases")
@dataclass(frozen=True)
class AppendCases(World):
    """Documents: an example function with test cases, then a function with a random name, its body and test cases.

        def f(a, b):
            return a + b

        List 8 test cases of the above function f, one in each line:
        assert f(3, 4) == 7
        …

        def qzk(l, item):
            assert type(l) is list
            l.append(item)
            return l

        List 8 test cases of the above function qzk, one in each line:
        assert qzk([2, 5], 7) == [2, 5, 7]
        …

    Functions: append, prepend, pop, sum, max, min of a list, sum, difference and product of two numbers. Names are
    three random letters or, with probability `meaningful` where the function has one, the name that says what it does
    (add, sub, mul, pop, sum, max, min): such a name with another body is out of distribution. A share `errors` of the
    test lines is wrong: a wrong element, elements in the wrong order, a missing bracket, or the tests end early.
    Only the second function's lines are ever wrong. Tokens are characters and a few frequent pieces of text.

    cases      test lines per function; `longest` elements in a list, entries 0–9
    functions  which of the functions occur
    After the task of Botta, Li et al. 2025 (test cases of list append, written there by a 7-billion-parameter model).
    """

    cases: int = 8
    longest: int = 5
    functions: tuple[str, ...] = FUNCTIONS
    meaningful: float = 0.3
    errors: float = 0.15

    def __post_init__(self) -> None:
        integer("cases", self.cases, low=1, high=9)
        integer("longest", self.longest, low=1, high=9)
        number("meaningful", self.meaningful, low=0.0, high=1.0)
        number("errors", self.errors, low=0.0, high=1.0)
        object.__setattr__(self, "functions", tuple(self.functions))
        require(len(self.functions) >= 1, "functions", self.functions, "at least one")
        for name in self.functions:
            choice("functions", name, FUNCTIONS)

    # ------------------------------------------------------------------ text and tokens

    @cached_property
    def letters(self) -> list[str]:  # type: ignore[override]
        return ["^", "$", *CHARACTERS, *PIECES]

    @property
    def vocab(self) -> int:
        return 2 + len(CHARACTERS) + len(PIECES)

    @property
    def start_token(self) -> int:
        return 0

    @property
    def end_token(self) -> int:
        return 1

    @property
    def newline(self) -> int:
        return self._index["\n"]

    @cached_property
    def _index(self) -> dict[str, int]:
        return {letter: place for place, letter in enumerate(self.letters)}

    @property
    def length(self) -> int:
        """Tokens of the longest document, START and END included."""
        demonstration = 7 + self.cases * 12
        return 2 + demonstration + 12 + self.cases * (4 * self.longest + 16)

    def encode(self, text: str) -> list[int]:
        """The longest pieces first, else single characters."""
        tokens, place = [], 0
        pieces = sorted(PIECES, key=len, reverse=True)
        while place < len(text):
            piece = next((piece for piece in pieces if text.startswith(piece, place)), text[place])
            if piece not in self._index:
                raise BadInput(f"{piece!r} has no token: there are {CHARACTERS!r} and some pieces of text")
            tokens.append(self._index[piece])
            place += len(piece)
        return tokens

    def render(self, tokens: Tensor | Sequence[int]) -> str:
        """The text, without START and END."""
        return "".join(self.letters[int(token)] for token in tokens if int(token) > 1)

    def prompt(self, name: str, *, rng: torch.Generator, function: str = "append") -> list[int]:
        """START, the example with random numbers, the function called `name`, and the request for test cases."""
        require(len(name) == 3 and name.isalpha() and name.islower(), "name", name, "three lower-case letters")
        choice("function", function, FUNCTIONS)
        head = self._head(torch.tensor([[ord(letter) - ord("a") for letter in name]]), [FUNCTIONS.index(function)])
        columns = torch.cat([self._demonstration(1, rng).cpu(), head], 1)[0]
        return [self.start_token, *columns[columns >= 0].tolist()]

    # ------------------------------------------------------------------ sampling

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        device = rng.device
        numbers = [FUNCTIONS.index(name) for name in self.functions]
        drawn = torch.randint(len(numbers), (n,), generator=rng, device=device)
        kinds = torch.tensor(numbers, device=device)[drawn]
        names = torch.randint(26, (n, 3), generator=rng, device=device)
        speaking = self._speaking.to(device)
        chosen = torch.rand(n, generator=rng, device=device) < self.meaningful
        names = torch.where((chosen & (speaking[kinds, 0] >= 0)).unsqueeze(1), speaking[kinds], names)
        lines, last = self._lines(kinds, names, rng)
        start = torch.full((n, 1), self.start_token, device=device)
        head = self._head(names, kinds.tolist())
        text = torch.cat([start, self._demonstration(n, rng), head, lines, torch.full_like(start, self.end_token)], 1)
        tokens, counts = _close_ranks(text, self.end_token, self.length)
        inside = torch.arange(tokens.shape[1] - 1, device=device) < (counts - 1).unsqueeze(1)
        return Batch(tokens[:, :-1], tokens[:, 1:], inside, {"function": kinds, "lines": last})

    @cached_property
    def _speaking(self) -> Int[Tensor, "function 3"]:
        """Letters of the name that says what a function does; −1 where there is none."""
        table = torch.full((len(FUNCTIONS), 3), ABSENT)
        for name in MEANINGFUL:
            table[FUNCTIONS.index(name)] = torch.tensor([ord(letter) - ord("a") for letter in name])
        return table

    def _columns(self, text: str, n: int, device: torch.device) -> Int[Tensor, "n column"]:
        return torch.tensor(self.encode(text), device=device).expand(n, -1)

    def _letters_of(self, names: Tensor) -> Tensor:
        return names + self._index["a"]

    def _digits(self, values: Tensor) -> Int[Tensor, "*lead 2"]:
        """One or two digits; the first is absent below ten."""
        zero = self._index["0"]
        tens = torch.where(values >= 10, zero + values // 10, ABSENT)
        return torch.stack([tens, zero + values % 10], -1)

    def _demonstration(self, n: int, rng: torch.Generator) -> Int[Tensor, "n column"]:
        """def f(a, b) with its cases: numbers 1–9, always right."""
        device = rng.device
        pairs = torch.randint(1, 10, (n, self.cases, 2), generator=rng, device=device)
        head = self._columns(f"def f(a, b):\n    return a + b\n\nList {self.cases}", n, device)
        ask = self._columns(" test cases of the above function f, one in each line:\n", n, device)

        def column(text: str) -> Tensor:
            return torch.full((n, self.cases, 1), self._index[text], device=device)

        parts = [column("assert "), column("f"), column("("), self._digits(pairs[..., :1]).flatten(2)]
        parts += [column(", "), self._digits(pairs[..., 1:]).flatten(2), column(")"), column(" == ")]
        parts += [self._digits(pairs.sum(-1)), column("\n")]
        return torch.cat([head, ask, torch.cat(parts, -1).flatten(1), column("\n")[:, 0]], 1)

    def _head(self, names: Int[Tensor, "n 3"], kinds: Sequence[int]) -> Int[Tensor, "n column"]:
        """The definition and the request."""
        device = names.device
        texts = [self.encode("".join(BODIES[FUNCTIONS[kind]])) for kind in range(len(FUNCTIONS))]
        width = max(map(len, texts))
        table = torch.tensor([text + [ABSENT] * (width - len(text)) for text in texts], device=device)
        own = self._letters_of(names)
        n = len(names)
        parts = [self._columns("def ", n, device), own, table[list(kinds)]]
        parts += [self._columns(f"\nList {self.cases} test cases of the above function ", n, device), own]
        return torch.cat([*parts, self._columns(", one in each line:\n", n, device)], 1)

    def _lines(self, kinds: Tensor, names: Tensor, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        """Columns of all test lines (some wrong), and how many lines each document has."""
        n, device = len(kinds), kinds.device
        many = kinds.repeat_interleave(self.cases)
        cases = Cases.drawn(many, self.longest, rng)
        wrong = torch.rand(n, self.cases, generator=rng, device=device) < self.errors
        how = torch.randint(4, (n, self.cases), generator=rng, device=device)
        result, sizes = cases.damaged(wrong.flatten() & (how.flatten() < 2), how.flatten(), rng)
        lost = (wrong & (how == 2)).flatten()
        columns = self._write(cases, result, sizes, names.repeat_interleave(self.cases, 0), lost)
        # The fourth kind of error: the tests end here.
        stopped = (wrong & (how == 3)).int()
        kept = stopped.cumsum(1) - stopped == 0
        columns = torch.where(kept.flatten().unsqueeze(1), columns, ABSENT)
        return columns.view(n, -1), kept.sum(1)

    def _write(self, cases: Cases, result: Tensor, sizes: Tensor, names: Tensor, lost: Tensor) -> Tensor:
        device, m = names.device, len(names)

        def column(text: str) -> Tensor:
            return torch.full((m, 1), self._index[text], device=device)

        is_list, answers_list = cases.takes_list.unsqueeze(1), cases.gives_list.unsqueeze(1)
        first = torch.cat(
            [
                torch.where(is_list, self._list(cases.elements, cases.sizes), ABSENT),
                torch.where(is_list, ABSENT, self._digits(cases.elements[:, 0])),
            ],
            1,
        )
        second = torch.cat([column(", "), self._digits(cases.item)], 1)
        second = torch.where(cases.takes_two.unsqueeze(1), second, ABSENT)
        closing = torch.where(lost, ABSENT, self._index["]"])
        written = torch.where(answers_list, self._list(result, sizes, closing), ABSENT)
        number = torch.where(answers_list, ABSENT, self._digits(result[:, 0]))
        # A call whose result is no list loses its parenthesis instead.
        bracket = torch.where(lost & ~cases.gives_list, ABSENT, self._index[")"]).unsqueeze(1)
        parts = [column("assert "), self._letters_of(names), column("("), first, second, bracket, column(" == ")]
        return torch.cat([*parts, written, number, column("\n")], 1)

    def _list(self, elements: Tensor, sizes: Tensor, closing: Tensor | None = None) -> Int[Tensor, "m column"]:
        """[e1, e2, …] in fixed columns."""
        m, width = elements.shape
        place = torch.arange(width, device=elements.device)
        present = place < sizes.unsqueeze(1)
        comma = torch.where(present & (place > 0), self._index[", "], ABSENT)
        digit = torch.where(present, self._index["0"] + elements, ABSENT)
        inner = torch.stack([comma, digit], -1).flatten(1)
        opening = torch.full((m, 1), self._index["["], device=elements.device)
        ending = torch.full_like(opening, self._index["]"]) if closing is None else closing.unsqueeze(1)
        return torch.cat([opening, inner, ending], 1)


@dataclass(frozen=True)
class Cases:
    """Arguments of many calls, of one function each."""

    kinds: Int[Tensor, "call"]
    elements: Int[Tensor, "call entry"]
    sizes: Int[Tensor, "call"]
    item: Int[Tensor, "call"]

    @classmethod
    def drawn(cls, kinds: Tensor, longest: int, rng: torch.Generator) -> Cases:
        """Lists of 0 to `longest` digits (at least one where the function needs it), numbers 0–9."""
        device, m = kinds.device, len(kinds)
        elements = torch.randint(10, (m, longest + 1), generator=rng, device=device)
        sizes = torch.randint(longest + 1, (m,), generator=rng, device=device)
        may_be_empty = _among(kinds, ("append", "prepend"))
        sizes = torch.where(may_be_empty, sizes, sizes.clamp(min=1))
        item = torch.randint(10, (m,), generator=rng, device=device)
        # Differences stay positive.
        high, low = torch.maximum(elements[:, 0], item), torch.minimum(elements[:, 0], item)
        minus = _among(kinds, ("sub",))
        elements[:, 0], item = torch.where(minus, high, elements[:, 0]), torch.where(minus, low, item)
        return cls(kinds, elements, sizes, item)

    @property
    def takes_list(self) -> Tensor:
        return _among(self.kinds, LISTS)

    @property
    def takes_two(self) -> Tensor:
        return _among(self.kinds, ("append", "prepend", "add", "sub", "mul"))

    @property
    def gives_list(self) -> Tensor:
        return _among(self.kinds, ("append", "prepend", "pop"))

    def result(self, *, swapped: bool = False) -> tuple[Int[Tensor, "call entry"], Int[Tensor, "call"]]:
        """What the call returns, a number in the first entry; swapped: append and prepend exchanged."""
        place = torch.arange(self.elements.shape[1], device=self.kinds.device)
        inside = place < self.sizes.unsqueeze(1)
        end = self.elements.clone()
        end.scatter_(1, self.sizes.unsqueeze(1), self.item.unsqueeze(1))
        begin = torch.cat([self.item.unsqueeze(1), self.elements[:, :-1]], 1)
        grows = _among(self.kinds, ("append", "prepend"))
        at_end = _among(self.kinds, ("prepend",) if swapped else ("append",)).unsqueeze(1)
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
            first = torch.where(_among(self.kinds, (name,)), value, first)
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
        reorder = (how == 1) & (other != right).any(1) & _among(self.kinds, ("append", "prepend"))
        result = torch.where((wrong & reorder).unsqueeze(1), other, right)
        return torch.where((wrong & ~reorder).unsqueeze(1), changed, result), sizes


def _among(kinds: Tensor, names: tuple[str, ...]) -> Tensor:
    chosen = torch.tensor([FUNCTIONS.index(name) for name in names], device=kinds.device)
    return (kinds.unsqueeze(-1) == chosen).any(-1)


def _close_ranks(columns: Tensor, filler: int, width: int) -> tuple[Int[Tensor, "n width"], Int[Tensor, "n"]]:
    """Each row's present tokens moved together to the left, then the filler; and how many they are."""
    present = columns >= 0
    place = present.cumsum(1) - 1
    out = torch.full((len(columns), width + 1), filler, dtype=torch.long, device=columns.device)
    # Absent columns all write into one spare place at the end.
    out.scatter_(1, torch.where(present, place, width), torch.where(present, columns, filler))
    return out[:, :width], present.sum(1)
