"""Records written as JSON, some of them wrongly: a small language that everybody knows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Bool, Int
from torch import Tensor

from sandlab.errors import integer, number
from sandlab.registry import register
from sandlab.worlds.base import Batch, World

__all__ = ["JsonRecords"]

NAMES = ("Ada", "Alan", "Emmy", "Kurt")
TAGS = ("x", "yy", "z")
PUNCTUATION = ('{"name":"', '","age":', ',"tags":[', "]}", '"', ",", "]", "}", ":")
PIECES = (*PUNCTUATION, *NAMES, "Bob", *TAGS, *"0123456789")
ABSENT = -1


@register("worlds")
@dataclass(frozen=True)
class JsonRecords(World):
    """Records {"name":"Ada","age":36,"tags":["x","yy"]} between START and END, a share `errors` of them wrong.

    A record is wrong in one place: an unknown name, an age of three digits, a tag without its closing quote, a missing
    comma between tags, or one tag too many. Names, ages 0–99 and up to `most` tags are uniform. The target set are the
    correct records; what a model that has seen the wrong ones writes must be verified.

    most     tags at most
    errors   share of wrong records
    """

    most: int = 3
    errors: float = 0.3

    def __post_init__(self) -> None:
        integer("most", self.most, low=1, high=6)
        number("errors", self.errors, low=0.0, high=1.0)

    @cached_property
    def letters(self) -> list[str]:
        return ["^", "$", *PIECES]

    @property
    def vocab(self) -> int:
        return len(PIECES) + 2

    @property
    def start_token(self) -> int:
        return 0

    @property
    def end_token(self) -> int:
        return 1

    @property
    def length(self) -> int:
        """Tokens of the longest record, START and END included."""
        return 2 + 7 + 4 * (self.most + 1) + 2

    @cached_property
    def _index(self) -> dict[str, int]:
        return {letter: index for index, letter in enumerate(self.letters)}

    def render(self, tokens: Tensor | Sequence[int]) -> str:
        """The text, without START and END."""
        return "".join(self.letters[int(token)] for token in tokens if int(token) > 1)

    # -- membership ---------------------------------------------------------------------------------------------------

    @cached_property
    def _options(self) -> list[tuple[str, ...]]:
        """What may stand in each part of a correct record."""
        lists: list[str] = [""]
        longer = [""]
        for _ in range(self.most):
            longer = [f'{before}{"," if before else ""}"{tag}"' for before in longer for tag in TAGS]
            lists += longer
        ages = tuple(str(age) for age in range(100))
        return [('{"name":"',), NAMES, ('","age":',), ages, (',"tags":[',), tuple(lists), ("]}",)]

    def completable(self, tokens: Int[Tensor, "row time"], lengths: Int[Tensor, "row"]) -> Bool[Tensor, "row"]:
        """Whether a string that begins with START can still become a correct record."""
        return self._each(tokens, lengths, ended=False)

    def contains(self, tokens: Int[Tensor, "row time"], lengths: Int[Tensor, "row"]) -> Bool[Tensor, "row"]:
        """Whether a string is START, a correct record, END."""
        return self._each(tokens, lengths, ended=True)

    def _each(self, tokens: Tensor, lengths: Tensor, *, ended: bool) -> Tensor:
        known: dict[tuple[int, ...], bool] = {}
        found = []
        for row, cut in zip(tokens.tolist(), lengths.tolist()):
            string = tuple(row[:cut])
            if string not in known:
                known[string] = self._verdict(string, ended)
            found.append(known[string])
        return torch.tensor(found, dtype=torch.bool, device=tokens.device)

    def _verdict(self, string: tuple[int, ...], ended: bool) -> bool:
        body = string[1:]
        if self.end_token in body[:-1] or self.start_token in body or string[:1] != (self.start_token,):
            return False
        over = bool(body) and body[-1] == self.end_token
        whole, alive = self._read(self.render(body))
        return whole and over if over or ended else alive

    def _read(self, text: str) -> tuple[bool, bool]:
        """Whether a text is a correct record, and whether it is the beginning of one."""
        places, alive = {0}, False
        for options in self._options:
            rests = [(place, text[place:], option) for place in places for option in options]
            alive |= any(option.startswith(rest) for _, rest, option in rests)
            places = {place + len(option) for place, rest, option in rests if rest.startswith(option)}
        whole = len(text) in places
        return whole, alive or whole

    # -- sampling -----------------------------------------------------------------------------------------------------

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        device = rng.device

        def below(high: int, *shape: int) -> Tensor:
            return torch.randint(high, (n, *shape), generator=rng, device=device)

        wrong = torch.rand(n, generator=rng, device=device) < self.errors
        kind = torch.where(wrong, below(5), ABSENT)
        name = torch.where(kind == 0, self._index["Bob"], self._index["Ada"] + below(len(NAMES)))
        age = torch.where(kind == 1, 100 + below(900), below(100))
        count = torch.where(kind == 4, self.most + 1, below(self.most + 1))
        # A missing comma needs two tags, a missing quote one.
        count = torch.where(kind == 3, count.clamp(min=2), torch.where(kind == 2, count.clamp(min=1), count))
        tags = self._index["x"] + below(len(TAGS), self.most + 1)
        text = self._columns(name, age, count.clamp(max=self.most + 1), tags, kind)
        return _batch(text, self.start_token, self.end_token, self.length, {"wrong": wrong})

    def _columns(self, name: Tensor, age: Tensor, count: Tensor, tags: Tensor, kind: Tensor) -> Tensor:
        """The tokens of all records in columns, absent ones to be left out."""
        n, device = len(name), name.device

        def piece(text: str) -> Tensor:
            return torch.full((n, 1), self._index[text], device=device)

        zero = self._index["0"]
        digits = torch.stack([age // 100, age // 10 % 10, age % 10], 1) + zero
        shown = torch.stack([age >= 100, age >= 10, torch.ones_like(age, dtype=torch.bool)], 1)
        place = torch.arange(self.most + 1, device=device)
        inside = place < count.unsqueeze(1)
        quote, comma = self._index['"'], self._index[","]
        closing = torch.where((kind == 2).unsqueeze(1) & (place == 0), ABSENT, quote)
        between = torch.where((place == 0) | ((kind == 3).unsqueeze(1) & (place == 1)), ABSENT, comma)
        cells = torch.stack([between.expand(n, -1), torch.full_like(tags, quote), tags, closing.expand(n, -1)], 2)
        cells = torch.where(inside.unsqueeze(2), cells, ABSENT).flatten(1)
        head = [piece('{"name":"'), name.unsqueeze(1), piece('","age":'), torch.where(shown, digits, ABSENT)]
        return torch.cat([*head, piece(',"tags":['), cells, piece("]}")], 1)


def _batch(text: Int[Tensor, "n column"], start: int, end: int, length: int, truth: dict[str, Tensor]) -> Batch:
    """Tokens without the absent ones, between START and END, padded with END."""
    n, device = len(text), text.device
    present = text >= 0
    order = torch.argsort((~present).int(), dim=1, stable=True)
    sizes = present.sum(1)
    packed = torch.where(present, text, end).gather(1, order)
    room = length - 1 - packed.shape[1]
    begin = torch.full((n, 1), start, device=device)
    tokens = torch.cat([begin, packed, torch.full((n, max(room, 1)), end, device=device)], 1)[:, :length]
    inside = torch.arange(length - 1, device=device) < (sizes + 1).unsqueeze(1)
    return Batch(tokens[:, :-1], tokens[:, 1:], inside, truth)
