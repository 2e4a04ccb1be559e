"""Facts: a subject and a relation, hidden among other tokens, determine an attribute."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from sandlab.errors import choice, integer
from sandlab.random import rng as make_rng
from sandlab.registry import register
from sandlab.worlds.base import Batch, Predictor, World

__all__ = ["FactRecall"]


@register("worlds")
@dataclass(frozen=True)
class FactRecall(World):
    """noise … subject … relation … noise EOS → attribute a*(s, r), in either order.

    subjects, relations   S and R; tokens 0 … S − 1 and S … S + R − 1
    answers               D attributes of each relation; those of different relations are disjoint, so that the class
                          of attribute k of relation r is rD + k
    noise                 number of other tokens; the last token of all is EOS
    length                T; subject and relation stand at two uniform positions of the first T − 1, the last is EOS
    facts                 "random": each a*(s, r) uniform among the D; "balanced": each attribute of a relation belongs
                          to S/D subjects (± 1), at random; "structured": subject s has attribute ⌊sD/S⌋ everywhere
    fact_seed             which random facts

    One answer, at the end. truth: "subject", "relation", and "attribute" (from 0 to D − 1).

    Source: Nichani, Lee and Bietti 2024, "Understanding factual recall in transformers via associative memories".
    """

    subjects: int = 32
    relations: int = 32
    answers: int = 8
    noise: int = 64
    length: int = 32
    facts: str = "random"
    fact_seed: int = 0

    def __post_init__(self) -> None:
        for name in ("subjects", "relations", "answers"):
            integer(name, getattr(self, name), low=1)
        integer("length", self.length, low=3, hint="a subject, a relation and the end must fit")
        integer("noise", self.noise, low=0 if self.length == 3 else 1)
        choice("facts", self.facts, ("random", "balanced", "structured"))
        integer("fact_seed", self.fact_seed, low=0)

    @property
    def vocab(self) -> int:
        return self.subjects + self.relations + self.noise + 1

    @property
    def outputs(self) -> int:
        return self.relations * self.answers

    @property
    def letters(self) -> list[str]:
        named = [f"s{i}" for i in range(self.subjects)] + [f"r{i}" for i in range(self.relations)]
        return [*named, *(f"·{i}" for i in range(self.noise)), "."]

    @cached_property
    def attribute(self) -> Int[Tensor, "subject relation"]:
        """Which of its relation's attributes each fact has."""
        shape, draw = (self.subjects, self.relations), make_rng(self.fact_seed, "facts")
        if self.facts == "random":
            return torch.randint(0, self.answers, shape, generator=draw)
        even = torch.arange(self.subjects) * self.answers // self.subjects
        if self.facts == "structured":
            return even.unsqueeze(-1).expand(shape).contiguous()
        return even[torch.rand(shape, generator=draw).argsort(0)]

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        subject = torch.randint(0, self.subjects, (n, 1), generator=rng, device=rng.device)
        relation = torch.randint(0, self.relations, (n, 1), generator=rng, device=rng.device)
        first = self.subjects + self.relations
        tokens = torch.randint(first, first + max(self.noise, 1), (n, self.length), generator=rng, device=rng.device)
        at = torch.randint(0, self.length - 1, (n, 1), generator=rng, device=rng.device)
        other = torch.randint(0, self.length - 2, (n, 1), generator=rng, device=rng.device)
        tokens.scatter_(1, at, subject).scatter_(1, other + (other >= at), self.subjects + relation)
        tokens[:, -1] = self.vocab - 1
        attribute = self.attribute.to(rng.device)[subject, relation]
        targets = relation * self.answers + attribute
        truth = {"subject": subject, "relation": relation, "attribute": attribute}
        named = {name: value.squeeze(-1) for name, value in truth.items()}
        return Batch(tokens, targets, torch.ones_like(targets, dtype=torch.bool), named)

    def oracle(self, batch: Batch) -> Float[Tensor, "example 1 answers"]:
        subject, relation = self._read(batch.inputs)
        answer = relation * self.answers + self.attribute.to(subject.device)[subject, relation]
        return F.one_hot(answer, self.outputs).double().log().unsqueeze(1)

    def baselines(self) -> dict[str, Predictor]:
        """ "relation": p(a | r), which knows the relation and not the subject; "subject": p(a | s)."""
        one_hot = F.one_hot(self.attribute, self.answers).double()  # (subject, relation, attribute)

        def by_relation(batch: Batch) -> Tensor:
            _, relation = self._read(batch.inputs)
            table = torch.block_diag(*one_hot.mean(0).unsqueeze(1)).to(relation.device)
            return table[relation].log().unsqueeze(1)

        def by_subject(batch: Batch) -> Tensor:
            subject, _ = self._read(batch.inputs)
            table = one_hot.flatten(1).to(subject.device) / self.relations
            return table[subject].log().unsqueeze(1)

        return {"relation": by_relation, "subject": by_subject}

    def _read(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """The subject and the relation that occur in each sequence."""
        is_relation = (tokens >= self.subjects) & (tokens < self.subjects + self.relations)
        subject = torch.where(tokens < self.subjects, tokens, 0).sum(-1)
        return subject, torch.where(is_relation, tokens - self.subjects, 0).sum(-1)
