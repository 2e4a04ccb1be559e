"""Tasks whose difficulty is how much two halves of a word must tell each other: majority, disjointness, index."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from sandlab.errors import choice, flag, integer, number, require
from sandlab.registry import register
from sandlab.worlds.base import Batch, World

__all__ = ["IndexProblem", "Majority", "SetDisjointness"]


def _certain(answers: Int[Tensor, "example time"], classes: int) -> Float[Tensor, "example time classes"]:
    return F.one_hot(answers, classes).double().log()


@register("worlds")
@dataclass(frozen=True)
class Majority(World):
    """1[#ones > #zeros] of a word of bits.

    length    number of bits, or (shortest, longest): each example has a uniform length of its own, the rest is token 2
    ones      probability of a one
    running   an answer at every position, for the word so far; else one answer, at the end

    Two halves need to exchange a count, log₂ T bits. In TC⁰ and not in AC⁰, like parity, but expressible in C-RASP.

    Source: Hahn 2020; Zhou et al. 2023; Yang and Chiang 2024.
    """

    length: int | tuple[int, int] = 32
    ones: float = 0.5
    running: bool = True

    def __post_init__(self) -> None:
        if isinstance(self.length, list):
            object.__setattr__(self, "length", tuple(self.length))
        low, high = self.lengths
        integer("length", low, low=1)
        integer("length", high, low=low)
        number("ones", self.ones, low=0.0, high=1.0)
        flag("running", self.running)
        require(self.running or low == high, "running", self.running, "True with words of several lengths")

    @property
    def lengths(self) -> tuple[int, int]:
        return (self.length, self.length) if isinstance(self.length, int) else (self.length[0], self.length[1])

    @property
    def vocab(self) -> int:
        return 2 + (self.lengths[0] < self.lengths[1])

    @property
    def outputs(self) -> int:
        return 2

    @property
    def letters(self) -> list[str]:
        return ["0", "1", "·"][: self.vocab]

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        low, high = self.lengths
        bits = (torch.rand(n, high, generator=rng, device=rng.device) < self.ones).long()
        size = torch.randint(low, high + 1, (n, 1), generator=rng, device=rng.device)
        inside = torch.arange(high, device=rng.device) < size
        tokens = torch.where(inside, bits, 2)
        answers, mask = self._answers(tokens), inside
        if not self.running:
            answers, mask = answers[:, -1:], mask[:, -1:]
        return Batch(tokens, answers, mask, {"size": size.squeeze(-1), "ones": (bits * inside).sum(-1)})

    def oracle(self, batch: Batch) -> Float[Tensor, "example time 2"]:
        return _certain(self._answers(batch.inputs)[:, -batch.mask.shape[1] :], 2)

    def accepts(self, tokens: Tensor) -> bool | Tensor:
        """Whether more than half of the bits are ones."""
        found = self._answers(torch.atleast_2d(tokens))[:, -1] == 1
        return bool(found[0]) if tokens.ndim == 1 else found

    def _answers(self, tokens: Tensor) -> Tensor:
        return ((tokens == 1).cumsum(-1) > (tokens == 0).cumsum(-1)).long()


@register("worlds")
@dataclass(frozen=True)
class SetDisjointness(World):
    """DISJ^n: n bits of S, n bits of T, and the question whether no i has S_i = T_i = 1.

    size        n
    separator   a token 2 between the sets
    law         "planted": pairs (S_i, T_i) uniform over 00, 01, 10, and in half of the words one random pair made 11;
                "uniform": each bit is a one with probability `ones`
    ones        of the uniform law; √(1 − 2^(−1/n)) would make both answers equally likely

    One answer, at the end: 1 for disjoint sets. Any protocol needs n bits, so a recurrent state, or what one attention
    layer passes on, must grow with n.

    Source: Yao 1979; Kalyanasundaram and Schnitger 1992; Razborov 1992; Sanford, Hsu and Telgarsky 2023.
    """

    size: int = 8
    separator: bool = False
    law: str = "planted"
    ones: float = 0.5

    def __post_init__(self) -> None:
        integer("size", self.size, low=1)
        flag("separator", self.separator)
        choice("law", self.law, ("planted", "uniform"))
        number("ones", self.ones, low=0.0, high=1.0)

    @property
    def length(self) -> int:
        return 2 * self.size + self.separator

    @property
    def vocab(self) -> int:
        return 2 + self.separator

    @property
    def outputs(self) -> int:
        return 2

    @property
    def letters(self) -> list[str]:
        return ["0", "1", "|"][: self.vocab]

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        sets = self._planted(n, rng) if self.law == "planted" else self._uniform(n, rng)
        middle = torch.full((n, int(self.separator)), 2, device=rng.device)
        tokens = torch.cat([sets[:, 0], middle, sets[:, 1]], 1)
        answer = self._answer(tokens)
        return Batch(tokens, answer, torch.ones_like(answer, dtype=torch.bool), {"sets": sets})

    def _uniform(self, n: int, rng: torch.Generator) -> Int[Tensor, "example 2 size"]:
        return (torch.rand(n, 2, self.size, generator=rng, device=rng.device) < self.ones).long()

    def _planted(self, n: int, rng: torch.Generator) -> Int[Tensor, "example 2 size"]:
        kind = torch.randint(0, 3, (n, self.size), generator=rng, device=rng.device)
        place = torch.randint(0, self.size, (n, 1), generator=rng, device=rng.device)
        meet = torch.rand(n, 1, generator=rng, device=rng.device) < 0.5
        planted = meet & (torch.arange(self.size, device=rng.device) == place)
        return torch.stack([(kind == 1) | planted, (kind == 2) | planted], 1).long()

    def oracle(self, batch: Batch) -> Float[Tensor, "example 1 2"]:
        return _certain(self._answer(batch.inputs), 2)

    def _answer(self, tokens: Tensor) -> Tensor:
        first, second = tokens[:, : self.size], tokens[:, -self.size :]
        return ((first & second) == 0).all(-1, keepdim=True).long()


@register("worlds")
@dataclass(frozen=True)
class IndexProblem(World):
    """INDEX: Alice holds w ∈ {0, 1}ⁿ, Bob an index i; the answer is w_i.

    size   n
    form   "induction": a_1 w_1 a_2 w_2 … a_n w_n a_i, so that an induction head answers; "plain": w_1 … w_n i
    order  of the markers: "fixed" (a_1, a_2, …) or "shuffled" in each word

    Tokens: the two bits, then n markers. One answer, at the end. truth["index"]: i from 0. One message from Alice
    needs n bits; with the induction form this is why one attention layer needs H·m·p = Ω(n).

    Source: Kremer, Nisan and Ron 1999; Sanford, Hsu and Telgarsky 2024, "One-layer transformers fail to solve the
    induction heads task".
    """

    size: int = 8
    form: str = "induction"
    order: str = "fixed"

    def __post_init__(self) -> None:
        integer("size", self.size, low=1)
        choice("form", self.form, ("induction", "plain"))
        choice("order", self.order, ("fixed", "shuffled"))
        both = self.form == "induction" or self.order == "fixed"
        require(both, "order", self.order, "'fixed' in the plain form", "markers stand in the induction form only")

    @property
    def length(self) -> int:
        return (2 if self.form == "induction" else 1) * self.size + 1

    @property
    def vocab(self) -> int:
        return 2 + self.size

    @property
    def outputs(self) -> int:
        return 2

    @property
    def letters(self) -> list[str]:
        return ["0", "1", *(f"a{index}" for index in range(self.size))]

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        bits = torch.randint(0, 2, (n, self.size), generator=rng, device=rng.device)
        index = torch.randint(0, self.size, (n, 1), generator=rng, device=rng.device)
        answer, asked = bits.gather(1, index), 2 + index
        word = bits
        if self.form == "induction":
            markers = 2 + torch.arange(self.size, device=rng.device).expand(n, -1)
            if self.order == "shuffled":
                markers = markers.gather(1, torch.rand(n, self.size, generator=rng, device=rng.device).argsort(-1))
            asked, word = markers.gather(1, index), torch.stack([markers, bits], -1).flatten(1)
        truth = {"index": index.squeeze(-1), "bits": bits}
        return Batch(torch.cat([word, asked], 1), answer, torch.ones_like(answer, dtype=torch.bool), truth)

    def oracle(self, batch: Batch) -> Float[Tensor, "example 1 2"]:
        word, asked = batch.inputs[:, :-1], batch.inputs[:, -1:]
        place = asked - 2 if self.form == "plain" else (word == asked).int().argmax(-1, keepdim=True) + 1
        return _certain(word.gather(1, place), 2)
