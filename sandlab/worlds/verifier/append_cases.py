"""Small programs with test cases: documents from which a language model learns to write tests of `append`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from sandlab.errors import BadInput, choice, integer, number, require
from sandlab.registry import register
from sandlab.worlds.base import Batch, World
from sandlab.worlds.verifier.append_calls import BODIES, FUNCTIONS, MEANINGFUL, Calls
from sandlab.worlds.verifier.append_checking import CaseError, can_be_completed, find_error, is_plain

__all__ = ["MEANINGFUL", "OOD_NAMES", "AppendCases"]

OOD_NAMES = ("pop", "add", "sub", "mul", "div", "max", "min", "std", "avg", "exp")
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


@register("worlds")
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

    Functions: append, prepend, pop, sum, max, min of a list; sum, difference and product of two numbers. A name is
    three random letters or, with probability `meaningful` where the function has one, the name that says what it does
    (add, sub, mul, pop, sum, max, min): such a name with another body is out of distribution. A share `errors` of the
    test lines is wrong: a wrong entry, entries in the wrong order, a missing bracket, or the tests end early. The lines
    of the example are always right. Tokens are characters and a few frequent pieces of text.

    cases       test lines of the second function; examples: of the first (None: as many)
    longest     entries of a list at most; entries are digits
    functions   which of the functions occur
    favour      a digit e has probability ∝ (e + 1)^(−favour): 0 is uniform; people's tests favour small numbers
    After the task of Botta, Li et al. 2025 (test cases of list append, written there by a 7-billion-parameter model).
    """

    cases: int = 8
    longest: int = 5
    functions: tuple[str, ...] = FUNCTIONS
    meaningful: float = 0.3
    errors: float = 0.15
    favour: float = 0.0
    examples: int | None = None

    def __post_init__(self) -> None:
        integer("cases", self.cases, low=1, high=9)
        if self.examples is not None:
            integer("examples", self.examples, low=1, high=9)
        integer("longest", self.longest, low=1, high=9)
        number("meaningful", self.meaningful, low=0.0, high=1.0)
        number("errors", self.errors, low=0.0, high=1.0)
        number("favour", self.favour, low=0.0)
        object.__setattr__(self, "functions", tuple(self.functions))
        require(len(self.functions) >= 1, "functions", self.functions, "at least one")
        for name in self.functions:
            choice("functions", name, FUNCTIONS)

    # ------------------------------------------------------------------ text and tokens

    @cached_property
    def letters(self) -> list[str]:
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
        return {letter: index for index, letter in enumerate(self.letters)}

    @property
    def length(self) -> int:
        """Tokens of the longest document, START and END included."""
        demonstration = 10 + 11 * self.shown
        return 2 + demonstration + 13 + self.cases * (4 * self.longest + 14)

    @property
    def shown(self) -> int:
        """Test lines of the example."""
        return self.cases if self.examples is None else self.examples

    def encode(self, text: str) -> list[int]:
        """Tokens of a text: the longest piece that fits, else a character."""
        tokens, position = [], 0
        pieces = sorted(PIECES, key=len, reverse=True)
        while position < len(text):
            piece = next((piece for piece in pieces if text.startswith(piece, position)), text[position])
            if piece not in self._index:
                raise BadInput(f"{piece!r} has no token: there are {CHARACTERS!r} and some pieces of text")
            tokens.append(self._index[piece])
            position += len(piece)
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

    # ------------------------------------------------------------------ membership

    def completable(self, tokens: Int[Tensor, "row time"], lengths: Int[Tensor, "row"]) -> Bool[Tensor, "row"]:
        """Whether a prompt for append with a beginning of its test cases can still become `cases` correct lines."""
        ended = (tokens.gather(1, (lengths - 1).unsqueeze(1)).squeeze(1) == self.end_token).tolist()
        verdicts = [
            self._whole(text, name) if over else can_be_completed(text, name, self.cases)
            for (name, text, _), over in zip(self._answers(tokens, lengths), ended)
        ]
        return torch.tensor(verdicts, dtype=torch.bool, device=tokens.device)

    def contains(self, tokens: Int[Tensor, "row time"], lengths: Int[Tensor, "row"]) -> Bool[Tensor, "row"]:
        """Whether a prompt for append is followed by `cases` correct lines of whole numbers; the rest is not judged."""
        verdicts = [self._whole(text, name) for name, text, _ in self._answers(tokens, lengths)]
        return torch.tensor(verdicts, dtype=torch.bool, device=tokens.device)

    def _whole(self, text: str, name: str) -> bool:
        lines = text.split("\n")
        return len(lines) >= self.cases and all(is_plain(line, name) for line in lines[: self.cases])

    def first_error(self, tokens: Sequence[int]) -> tuple[int, CaseError] | None:
        """Index of the first wrong token of a finished string (its length, if it only ends too early), and the error.

        The wrong token is the one with the first wrong character; what follows the last line is not judged.
        """
        row = torch.tensor([list(tokens)])
        ((name, text, begin),) = self._answers(row, torch.tensor([len(tokens)]))
        error = find_error(text, name, self.cases)
        if error is None or error[1] is CaseError.EXTRA_CONTENT_AFTER_TASK_COMPLETION:
            return None
        written = 0
        for index in range(begin, len(tokens)):
            written += len(self.letters[tokens[index]]) if tokens[index] > 1 else 0
            if written > error[0] or tokens[index] == self.end_token:
                return index, error[1]
        return len(tokens), error[1]

    def _answers(self, tokens: Tensor, lengths: Tensor) -> list[tuple[str, str, int]]:
        """The name of each row's function, the text after the last request for test cases, and where it begins."""
        request, found = self._index[", one in each line:\n"], []
        for row, length in zip(tokens.tolist(), lengths.tolist()):
            begin = length - row[:length][::-1].index(request) if request in row[:length] else None
            if begin is None:
                raise BadInput("a string holds no request for test cases: begin it with AppendCases.prompt")
            name = self.render(row[begin - 4 : begin - 1])
            found.append((name, self.render(row[begin:length]), begin))
        return found

    # ------------------------------------------------------------------ sampling

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        device = rng.device
        numbers = torch.tensor([FUNCTIONS.index(name) for name in self.functions], device=device)
        functions = numbers[torch.randint(len(numbers), (n,), generator=rng, device=device)]
        names = torch.randint(26, (n, 3), generator=rng, device=device)
        meaningful = self._meaningful_names.to(device)[functions]
        chosen = torch.rand(n, generator=rng, device=device) < self.meaningful
        names = torch.where((chosen & (meaningful[:, 0] >= 0)).unsqueeze(1), meaningful, names)
        lines, count = self._lines(functions, names, rng)
        start = torch.full((n, 1), self.start_token, device=device)
        head = self._head(names, functions.tolist())
        text = torch.cat([start, self._demonstration(n, rng), head, lines, torch.full_like(start, self.end_token)], 1)
        tokens, lengths = _compact(text, self.end_token, self.length)
        inside = torch.arange(tokens.shape[1] - 1, device=device) < (lengths - 1).unsqueeze(1)
        return Batch(tokens[:, :-1], tokens[:, 1:], inside, {"function": functions, "lines": count})

    @cached_property
    def _meaningful_names(self) -> Int[Tensor, "function 3"]:
        """Letters of the name that says what a function does; absent where there is none."""
        table = torch.full((len(FUNCTIONS), 3), ABSENT)
        for name in MEANINGFUL:
            table[FUNCTIONS.index(name)] = torch.tensor([ord(letter) - ord("a") for letter in name])
        return table

    def _columns(self, text: str, n: int, device: torch.device) -> Int[Tensor, "n column"]:
        return torch.tensor(self.encode(text), device=device).expand(n, -1)

    def _letters_of(self, names: Int[Tensor, "n 3"]) -> Int[Tensor, "n 3"]:
        return names + self._index["a"]

    def _digits(self, values: Int[Tensor, "*lead"]) -> Int[Tensor, "*lead 2"]:
        """One or two digits; the first is absent below ten."""
        zero = self._index["0"]
        tens = torch.where(values >= 10, zero + values // 10, ABSENT)
        return torch.stack([tens, zero + values % 10], -1)

    def _demonstration(self, n: int, rng: torch.Generator) -> Int[Tensor, "n column"]:
        """The example def f(a, b) with its test lines: numbers 1–9, always right."""
        device = rng.device
        pairs = torch.randint(1, 10, (n, self.shown, 2), generator=rng, device=device)
        head = self._columns(f"def f(a, b):\n    return a + b\n\nList {self.shown}", n, device)
        ask = self._columns(" test cases of the above function f, one in each line:\n", n, device)

        def column(text: str) -> Tensor:
            return torch.full((n, self.shown, 1), self._index[text], device=device)

        parts = [column("assert "), column("f"), column("("), self._digits(pairs[..., :1]).flatten(2)]
        parts += [column(", "), self._digits(pairs[..., 1:]).flatten(2), column(")"), column(" == ")]
        parts += [self._digits(pairs.sum(-1)), column("\n")]
        return torch.cat([head, ask, torch.cat(parts, -1).flatten(1), column("\n")[:, 0]], 1)

    def _head(self, names: Int[Tensor, "n 3"], functions: Sequence[int]) -> Int[Tensor, "n column"]:
        """The definition and the request for test cases."""
        device, n = names.device, len(names)
        texts = [self.encode("".join(body)) for body in BODIES.values()]
        width = max(map(len, texts))
        table = torch.tensor([text + [ABSENT] * (width - len(text)) for text in texts], device=device)
        letters = self._letters_of(names)
        parts = [self._columns("def ", n, device), letters, table[list(functions)]]
        parts += [self._columns(f"\nList {self.cases} test cases of the above function ", n, device), letters]
        return torch.cat([*parts, self._columns(", one in each line:\n", n, device)], 1)

    def _lines(
        self, functions: Int[Tensor, "n"], names: Int[Tensor, "n 3"], rng: torch.Generator
    ) -> tuple[Int[Tensor, "n column"], Int[Tensor, "n"]]:
        """Columns of all test lines (some wrong), and how many lines each document has."""
        n, device = len(functions), functions.device
        calls = Calls.draw(functions.repeat_interleave(self.cases), self.longest, rng, self.favour)
        wrong = torch.rand(n, self.cases, generator=rng, device=device) < self.errors
        # Kinds of error: a wrong entry, the wrong order, a missing bracket, the tests end here.
        kind = torch.randint(4, (n, self.cases), generator=rng, device=device)
        result, sizes = calls.wrong_result((wrong & (kind < 2)).flatten(), (kind == 1).flatten(), rng)
        unclosed = (wrong & (kind == 2)).flatten()
        columns = self._write(calls, result, sizes, names.repeat_interleave(self.cases, 0), unclosed)
        stopped = (wrong & (kind == 3)).int()
        kept = stopped.cumsum(1) - stopped == 0
        columns = torch.where(kept.flatten().unsqueeze(1), columns, ABSENT)
        return columns.view(n, -1), kept.sum(1)

    def _write(
        self,
        calls: Calls,
        result: Int[Tensor, "line entry"],
        sizes: Int[Tensor, "line"],
        names: Int[Tensor, "line 3"],
        unclosed: Bool[Tensor, "line"],
    ) -> Int[Tensor, "line column"]:
        """Test lines in fixed columns; `unclosed` ones miss the bracket of the result, or else of the call."""

        def column(text: str) -> Int[Tensor, "line 1"]:
            return torch.full((len(names), 1), self._index[text], device=names.device)

        takes_list, returns_list = calls.takes_list.unsqueeze(1), calls.returns_list.unsqueeze(1)
        first = [
            torch.where(takes_list, self._list(calls.elements, calls.sizes), ABSENT),
            torch.where(takes_list, ABSENT, self._digits(calls.elements[:, 0])),
        ]
        second = torch.cat([column(", "), self._digits(calls.item)], 1)
        second = torch.where(calls.takes_two.unsqueeze(1), second, ABSENT)
        parenthesis = torch.where(unclosed & ~calls.returns_list, ABSENT, self._index[")"]).unsqueeze(1)
        call = [column("assert "), self._letters_of(names), column("("), *first, second, parenthesis]
        closing = torch.where(unclosed, ABSENT, self._index["]"])
        stated = torch.where(returns_list, self._list(result, sizes, closing), ABSENT)
        number = torch.where(returns_list, ABSENT, self._digits(result[:, 0]))
        return torch.cat([*call, column(" == "), stated, number, column("\n")], 1)

    def _list(
        self, elements: Int[Tensor, "line entry"], sizes: Int[Tensor, "line"], closing: Tensor | None = None
    ) -> Int[Tensor, "line column"]:
        """[e1, e2, …] in fixed columns."""
        count, width = elements.shape
        index = torch.arange(width, device=elements.device)
        present = index < sizes.unsqueeze(1)
        comma = torch.where(present & (index > 0), self._index[", "], ABSENT)
        digit = torch.where(present, self._index["0"] + elements, ABSENT)
        inner = torch.stack([comma, digit], -1).flatten(1)
        opening = torch.full((count, 1), self._index["["], device=elements.device)
        ending = torch.full_like(opening, self._index["]"]) if closing is None else closing.unsqueeze(1)
        return torch.cat([opening, inner, ending], 1)


def _compact(
    columns: Int[Tensor, "n column"], filler: int, width: int
) -> tuple[Int[Tensor, "n width"], Int[Tensor, "n"]]:
    """Each row's present tokens moved together to the left, then the filler; and their number."""
    present = columns >= 0
    index = present.cumsum(1) - 1
    out = torch.full((len(columns), width + 1), filler, dtype=torch.long, device=columns.device)
    # Absent columns all write into one spare column at the end.
    out.scatter_(1, torch.where(present, index, width), torch.where(present, columns, filler))
    return out[:, :width], present.sum(1)
