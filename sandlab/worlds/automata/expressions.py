"""Regular expressions read into their positions: which can come first, last, and after each other (Glushkov 1961)."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field

from sandlab.errors import BadInput

__all__ = ["Expression", "parse"]

SPECIAL = "()|*+?{}[].\\"
MOST_REPEATS = 200
# What follows what is a table of positions by positions, made anew for each part: these sizes take less than a second.
MOST_CHARACTERS, MOST_POSITIONS, MOST_LETTERS, DEEPEST = 2000, 500, 256, 100


@dataclass
class Expression:
    """symbols[p] is the letter at position p; `follow[p]` the positions that may come right after it."""

    symbols: list[str] = field(default_factory=list)
    first: set[int] = field(default_factory=set)
    last: set[int] = field(default_factory=set)
    follow: list[set[int]] = field(default_factory=list)
    nullable: bool = True

    def shifted(self, by: int) -> Expression:
        def move(positions: set[int]) -> set[int]:
            return {position + by for position in positions}

        return Expression(
            self.symbols, move(self.first), move(self.last), [move(f) for f in self.follow], self.nullable
        )


def letter(symbols: list[str]) -> Expression:
    """One letter out of several: one position each, any of them first and last."""
    positions = set(range(len(symbols)))
    return Expression(symbols, positions, set(positions), [set() for _ in symbols], False)


def sequence(left: Expression, right: Expression) -> Expression:
    if len(left.symbols) + len(right.symbols) > MOST_POSITIONS:
        raise BadInput(f"the regular expression has more than {MOST_POSITIONS} letters, its repetitions written out")
    right = right.shifted(len(left.symbols))
    follow = list(left.follow)
    for position in left.last:
        follow[position] = follow[position] | right.first
    return Expression(
        left.symbols + right.symbols,
        left.first | (right.first if left.nullable else set()),
        right.last | (left.last if right.nullable else set()),
        follow + right.follow,
        left.nullable and right.nullable,
    )


def either(left: Expression, right: Expression) -> Expression:
    right = right.shifted(len(left.symbols))
    return Expression(
        left.symbols + right.symbols,
        left.first | right.first,
        left.last | right.last,
        left.follow + right.follow,
        left.nullable or right.nullable,
    )


def repeated(inner: Expression, *, nullable: bool) -> Expression:
    """Once or more; with `nullable` also not at all."""
    follow = [after | (inner.first if position in inner.last else set()) for position, after in enumerate(inner.follow)]
    return Expression(inner.symbols, inner.first, inner.last, follow, inner.nullable or nullable)


def optional(inner: Expression) -> Expression:
    made = copy.copy(inner)
    made.nullable = True
    return made


def parse(text: str, alphabet: str | None = None) -> Expression:
    """Read a regular expression; what cannot be read is refused with its position."""
    if len(text) > MOST_CHARACTERS:
        raise BadInput(f"a regular expression has at most {MOST_CHARACTERS} characters, got {len(text)}")
    if len(set(alphabet or "")) > MOST_LETTERS:
        raise BadInput(f"an alphabet has at most {MOST_LETTERS} letters, got {len(set(alphabet or ''))}")
    reader = _Reader(text, alphabet)
    result = reader.alternatives()
    if reader.position < len(text):
        reader.refuse("unmatched ')'" if reader.peek() == ")" else f"unexpected {reader.peek()!r}")
    return result


class _Reader:
    def __init__(self, text: str, alphabet: str | None) -> None:
        self.text, self.position, self.depth = text, 0, 0
        mentioned = [symbol for symbol in text if symbol not in SPECIAL and symbol not in ",0123456789-"]
        self.alphabet = sorted(set(alphabet)) if alphabet else sorted(set(mentioned))

    def refuse(self, what: str) -> None:
        text = repr(self.text if len(self.text) <= 80 else f"{self.text[:80]}…")
        raise BadInput(f"the regular expression {text} does not parse: {what} at position {self.position}")

    def peek(self) -> str:
        return self.text[self.position] if self.position < len(self.text) else ""

    def take(self) -> str:
        self.position += 1
        return self.text[self.position - 1]

    def alternatives(self) -> Expression:
        result = self.factors()
        while self.peek() == "|":
            self.take()
            result = either(result, self.factors())
        return result

    def factors(self) -> Expression:
        result = Expression()
        while self.peek() and self.peek() not in "|)":
            result = sequence(result, self.factor())
        return result

    def factor(self) -> Expression:
        result = self.atom()
        while self.peek() and self.peek() in "*+?{":
            sign = self.take()
            if sign == "{":
                result = self.times(result)
            elif sign == "?":
                result = optional(result)
            else:
                result = repeated(result, nullable=sign == "*")
        return result

    def times(self, inner: Expression) -> Expression:
        low = self.number()
        high: int | None = low
        if self.peek() == ",":
            self.take()
            high = None if self.peek() == "}" else self.number()
        if self.peek() != "}":
            self.refuse("a missing '}'")
        self.take()
        if high is not None and high < low:
            self.refuse(f"a repetition {{{low},{high}}} that ends before it begins")
        result = Expression()
        for _ in range(low):
            result = sequence(result, inner)
        if high is None:
            return sequence(result, repeated(inner, nullable=True))
        for _ in range(high - low):
            result = sequence(result, optional(inner))
        return result

    def number(self) -> int:
        digits = ""
        while self.peek().isascii() and self.peek().isdigit():
            digits += self.take()
        if not digits:
            self.refuse("a missing number")
        if len(digits) > 9 or int(digits) > MOST_REPEATS:
            self.refuse(f"a repetition of {digits[:20]} (at most {MOST_REPEATS})")
        return int(digits)

    def atom(self) -> Expression:
        symbol = self.peek()
        if symbol == "(":
            begin = self.position
            self.take()
            self.depth += 1
            if self.depth > DEEPEST:
                self.refuse(f"more than {DEEPEST} brackets inside each other")
            inner = self.alternatives()
            self.depth -= 1
            if self.peek() != ")":
                self.position = begin
                self.refuse("a '(' that is never closed")
            self.take()
            return inner
        if symbol == "[":
            return self.letter_class()
        if symbol == ".":
            self.take()
            return letter(list(self.alphabet))
        if symbol in "*+?{":
            self.refuse(f"{symbol!r} with nothing to repeat")
        if symbol in "]}":
            self.refuse(f"unmatched {symbol!r}")
        return letter([self.literal()])

    def literal(self) -> str:
        symbol = self.take()
        if symbol == "\\":
            if not self.peek():
                self.refuse("a '\\' with nothing after it")
            symbol = self.take()
        return symbol

    def letter_class(self) -> Expression:
        begin = self.position
        self.take()
        symbols: list[str] = []
        while self.peek() != "]":
            if not self.peek():
                self.position = begin
                self.refuse("a '[' that is never closed")
            low = high = self.literal()
            if self.peek() == "-" and self.text[self.position + 1 : self.position + 2] not in ("]", ""):
                self.take()
                high = self.literal()
            if high < low:
                self.refuse(f"a range {low}-{high} that runs backwards")
            if ord(high) - ord(low) >= MOST_LETTERS:
                self.refuse(f"a range of more than {MOST_LETTERS} letters")
            symbols += [chr(code) for code in range(ord(low), ord(high) + 1)]
        self.take()
        if not symbols:
            self.refuse("an empty []")
        return letter(sorted(set(symbols)))
