"""Algorithmic tasks with a prompt and an answer of any length, for training on short words and testing on long ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from sandlab.errors import choice, integer, require
from sandlab.registry import register
from sandlab.worlds.base import Batch, World
from sandlab.worlds.recall import _distinct

__all__ = ["TASKS", "ProgramTask"]

TASKS = ("count", "copy-unique", "copy-repeat", "sort", "mode", "majority", "parity", "addition", "addition-hints")


@register("worlds")
@dataclass(frozen=True)
class ProgramTask(World):
    """prompt # answer $: the model reads the prompt and writes the answer, token by token.

    task        count           a b # a a+1 … b $
                copy-unique     x_1 … x_n # x_1 … x_n $, all x different; copy-repeat: with repetitions
                sort            x_1 … x_n # sorted $, all x different
                mode            x_1 … x_n # most frequent x (the smallest of several) $
                majority        bits # whether there are more ones than zeros $; parity: whether their number is odd
                addition        a_0 … a_{n−1} + b_0 … b_{n−1} # s_0 … s_n $, least digit first
                addition-hints  the same with a marker before each digit, h_k a_k …, from a random stretch of markers
    shortest, longest   the size n is uniform between them, for each example
    symbols_given   letters, or the base of the digits (None: 2 for bits, digits and copy-repeat, 5 for mode, else
                    `pool`)
    pool        letters of count, copy-unique and sort; markers of addition-hints (at least the longest size ever used)
    room        length of the sequences is that of size `room` (None: longest), so that short and long tasks fit one
                model

    Tokens: letters, then # and $, then + and the markers where they are used. The loss counts the answer and $. The
    input is padded with $.

    Source: Zhou et al. 2023, "What algorithms can transformers learn?"
    """

    task: str = "copy-unique"
    shortest: int = 1
    longest: int = 20
    symbols_given: int | None = None
    pool: int = 64
    room: int | None = None

    def __post_init__(self) -> None:
        choice("task", self.task, TASKS)
        integer("shortest", self.shortest, low=1)
        integer("longest", self.longest, low=self.shortest)
        if self.symbols_given is not None:
            integer("symbols_given", self.symbols_given, low=2)
        integer("pool", self.pool, low=1)
        if self.room is not None:
            integer("room", self.room, low=self.longest, hint="the longest word must fit")
        if self.task in ("count", "copy-unique", "sort", "addition-hints"):
            extra = self.task == "addition-hints"
            room = self.pool if extra else self.symbols
            require(room >= self.longest + extra, "pool", room, f"at least {self.longest + extra} for this size")

    @property
    def symbols(self) -> int:
        """Letters, or the base of the digits."""
        if self.symbols_given is not None:
            return self.symbols_given
        return {"count": self.pool, "copy-unique": self.pool, "sort": self.pool, "mode": 5}.get(self.task, 2)

    @property
    def separator(self) -> int:
        return self.symbols

    @property
    def end(self) -> int:
        return self.symbols + 1

    @property
    def plus(self) -> int:
        return self.symbols + 2

    @property
    def vocab(self) -> int:
        adds = self.task.startswith("addition")
        return self.symbols + 2 + adds + (self.pool if self.task == "addition-hints" else 0)

    @property
    def length(self) -> int:
        size = self.room or self.longest
        return {
            "count": size + 3, "mode": size + 2, "majority": size + 2, "parity": size + 2, "addition": 3 * size + 3,
            "addition-hints": 6 * size + 4,
        }.get(self.task, 2 * size + 1)  # fmt: skip

    @property
    def letters(self) -> list[str]:
        named = [str(letter) for letter in range(self.symbols)]
        return [*named, "#", "$", *(["+"] if self.vocab > self.plus else []), *self._markers()]

    def _markers(self) -> list[str]:
        return [f"h{marker}" for marker in range(max(0, self.vocab - self.plus - 1))]

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        size = torch.randint(self.shortest, self.longest + 1, (n,), generator=rng, device=rng.device)
        make: dict[str, Callable[[Tensor, torch.Generator], tuple[Tensor, Tensor, Tensor, Tensor]]] = {
            "count": self._count, "addition": self._addition, "addition-hints": self._hinted,
        }  # fmt: skip
        prompt, prompt_size, answer, answer_size = make.get(self.task, self._word)(size, rng)
        return self._assemble(prompt, prompt_size, answer, answer_size, size)

    def oracle(self, batch: Batch) -> Float[Tensor, "example time vocab"]:
        """After # comes the answer to the prompt, then $ for ever; only what stands before # is read.

        Inside the prompt, where nothing is counted, every token has the probability 1/vocab.
        """
        tokens = batch.inputs
        ends = tokens == self.separator
        begin = torch.where(ends.any(1), ends.long().argmax(1), tokens.shape[1])
        answer, size = self._solve(tokens, begin)
        since = torch.arange(tokens.shape[1], device=tokens.device) - begin.unsqueeze(-1)
        padded = F.pad(answer, (0, max(0, tokens.shape[1] - answer.shape[1])))
        written = padded.gather(1, since.clamp(min=0))
        sure = F.one_hot(torch.where(since < size.unsqueeze(-1), written, self.end), self.vocab).double()
        return torch.where((since >= 0).unsqueeze(-1), sure, 1 / self.vocab).log()

    def _solve(self, tokens: Tensor, begin: Tensor) -> tuple[Tensor, Tensor]:
        """Answers to the prompts before the place `begin`, and their sizes; what stands after it is not looked at."""
        place = torch.arange(tokens.shape[1], device=tokens.device)
        inside = place < begin.unsqueeze(-1)
        if self.task == "count":
            return tokens[:, :1] + place, tokens[:, min(1, tokens.shape[1] - 1)] - tokens[:, 0] + 1
        if self.task.startswith("addition"):
            return self._solve_addition(tokens, begin)
        if self.task.startswith("copy"):
            return torch.where(inside, tokens, self.end), begin
        if self.task == "sort":
            return torch.where(inside, tokens, self.vocab).sort(-1).values.clamp(max=self.end), begin
        counts = F.one_hot(torch.where(inside, tokens, self.vocab), self.vocab + 1).sum(1)[:, : self.symbols]
        verdict = {
            "mode": lambda: counts.argmax(-1),
            "majority": lambda: (counts[:, 1] > counts[:, 0]).long(),
            "parity": lambda: counts[:, 1] % 2,
        }[self.task]()
        return verdict.unsqueeze(-1), torch.ones_like(begin)

    def _solve_addition(self, tokens: Tensor, begin: Tensor) -> tuple[Tensor, Tensor]:
        """a_0 … + b_0 … or h_k a_0 … + h_k b_0 …: every digit, or every second token, is a digit."""
        hinted = self.task == "addition-hints"
        size = ((begin - 1) // (4 if hinted else 2)).clamp(min=0)
        place = torch.arange(int(size.max()), device=tokens.device)
        first = place * (1 + hinted) + hinted
        moved = first + (size * (1 + hinted) + 1).unsqueeze(-1)
        digits = torch.stack([tokens[:, first], tokens.gather(1, moved.clamp(max=tokens.shape[1] - 1))], 1)
        total = self._sum(digits * (place < size.view(-1, 1, 1)))
        if not hinted:
            return total, size + 1
        return _interleave(tokens[:, :1] + torch.arange(total.shape[1], device=tokens.device), total), 2 * size + 2

    # ------------------------------------------------------------------ prompts and answers, with their sizes

    def _count(self, size: Tensor, rng: torch.Generator) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        free = self.symbols - size + 1
        start = (torch.rand(len(size), generator=rng, device=rng.device) * free).long()
        answer = start.unsqueeze(-1) + torch.arange(self.longest, device=rng.device)
        return torch.stack([start, start + size - 1], -1), torch.full_like(size, 2), answer, size

    def _word(self, size: Tensor, rng: torch.Generator) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Tasks whose prompt is a word."""
        n, place = len(size), torch.arange(self.longest, device=rng.device)
        inside = place < size.unsqueeze(-1)
        if self.task in ("copy-unique", "sort"):
            word = _distinct(n, self.longest, self.symbols, rng)
        else:
            word = torch.randint(0, self.symbols, (n, self.longest), generator=rng, device=rng.device)
        if self.task.startswith("copy"):
            return word, size, word, size
        if self.task == "sort":
            return word, size, torch.where(inside, word, self.symbols).sort(-1).values, size
        counts = (F.one_hot(word, self.symbols) * inside.unsqueeze(-1)).sum(1)
        verdict = {
            "mode": lambda: counts.argmax(-1),
            "majority": lambda: (counts[:, 1] > counts[:, 0]).long(),
            "parity": lambda: counts[:, 1] % 2,
        }[self.task]()
        return word, size, verdict.unsqueeze(-1), torch.ones_like(size)

    def _digits(self, size: Tensor, rng: torch.Generator) -> tuple[Tensor, Tensor]:
        """(example, 2, longest) digits of both numbers, 0 beyond the size; (example, longest + 1) of their sum."""
        shape = (len(size), 2, self.longest)
        digits = torch.randint(0, self.symbols, shape, generator=rng, device=rng.device)
        digits = digits * (torch.arange(self.longest, device=rng.device) < size.view(-1, 1, 1))
        return digits, self._sum(digits)

    def _sum(self, digits: Tensor) -> Tensor:
        """Digits of the sum of two numbers (example, 2, place), least digit first: one place more."""
        raw = F.pad(digits.sum(1), (0, 1))
        total, carry = torch.zeros_like(raw), torch.zeros_like(raw[:, 0])
        for place in range(raw.shape[1]):  # carries pass from digit to digit
            here = raw[:, place] + carry
            total[:, place], carry = here % self.symbols, here // self.symbols
        return total

    def _addition(self, size: Tensor, rng: torch.Generator) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        digits, total = self._digits(size, rng)
        place, at = torch.arange(2 * self.longest + 1, device=rng.device), size.unsqueeze(-1)
        padded = F.pad(digits, (0, self.longest + 1))
        second = padded[:, 1].gather(1, (place - at - 1).clamp(min=0))
        prompt = torch.where(place < at, padded[:, 0], torch.where(place == at, self.plus, second))
        return prompt, 2 * size + 1, total, size + 1

    def _hinted(self, size: Tensor, rng: torch.Generator) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        digits, total = self._digits(size, rng)
        start = (torch.rand(len(size), generator=rng, device=rng.device) * (self.pool - size)).long()
        markers = self.plus + 1 + start.unsqueeze(-1) + torch.arange(self.longest + 1, device=rng.device)
        first, second = (_interleave(markers[:, :-1], digits[:, each]) for each in (0, 1))
        place, at = torch.arange(4 * self.longest + 1, device=rng.device), 2 * size.unsqueeze(-1)
        room = 2 * self.longest + 1
        moved = F.pad(second, (0, room)).gather(1, (place - at - 1).clamp(min=0))
        prompt = torch.where(place < at, F.pad(first, (0, room)), torch.where(place == at, self.plus, moved))
        return prompt, 4 * size + 1, _interleave(markers, total), 2 * size + 2

    def _assemble(
        self, prompt: Tensor, prompt_size: Tensor, answer: Tensor, answer_size: Tensor, size: Tensor
    ) -> Batch:
        """One sequence from both, each example with its own sizes."""
        place = torch.arange(self.length + 1, device=prompt.device)
        begin, stop = prompt_size.unsqueeze(-1), (prompt_size + answer_size).unsqueeze(-1)
        padded = [F.pad(part, (0, max(0, len(place) - part.shape[1])))[:, : len(place)] for part in (prompt, answer)]
        written = padded[1].gather(1, (place - begin - 1).clamp(min=0).expand(len(prompt), -1))
        tokens = torch.where(place < begin, padded[0], torch.where(place <= stop, written, self.end))
        tokens = torch.where(place == begin, self.separator, tokens)
        counted = (place[:-1] >= begin) & (place[:-1] <= stop)
        return Batch(tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous(), counted, {"size": size})


def _interleave(first: Tensor, second: Tensor) -> Tensor:
    return torch.stack([first, second], -1).flatten(1)
