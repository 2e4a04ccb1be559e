"""Two worlds that only the battery uses: regression and LEGO, written so that any model from tokens to logits can try.

(`InContextRegression` gives real vectors and `Lego` clauses of five slots, which ask for models of their own.)
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from functools import cached_property

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from sandlab.errors import integer
from sandlab.worlds.base import Batch, World

__all__ = ["SignChain", "TokenRegression"]


@dataclass(frozen=True)
class TokenRegression(World):
    """x_1 y_1 x_2 y_2 …: y_k = ⟨w, x_k⟩ with x_k uniform in {−1, 1}^d and, in every sequence, a new w in {−1, 0, 1}^d.

    Tokens 0 and 1 are the signs of x, token 2 + j stands for y = j − d. The answer y_k is asked for at the last sign of
    x_k. The oracle is the posterior over all 3^d weights given the pairs before.

    dimension   d
    pairs       pairs in a sequence
    """

    dimension: int = 3
    pairs: int = 8

    def __post_init__(self) -> None:
        integer("dimension", self.dimension, low=1, high=6)
        integer("pairs", self.pairs, low=1)

    @property
    def vocab(self) -> int:
        return 2 * self.dimension + 3

    @cached_property
    def weights(self) -> Int[Tensor, "weight dimension"]:
        return torch.tensor(list(itertools.product((-1, 0, 1), repeat=self.dimension)))

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        d, device = self.dimension, rng.device
        signs = torch.randint(2, (n, self.pairs, d), generator=rng, device=device)
        weight = torch.randint(-1, 2, (n, 1, d), generator=rng, device=device)
        answer = ((2 * signs - 1) * weight).sum(-1, keepdim=True) + d + 2
        tokens = torch.cat([signs, answer], -1).flatten(1)
        mask = torch.zeros_like(tokens, dtype=torch.bool)
        mask[:, d - 1 :: d + 1] = True
        targets = torch.cat([tokens[:, 1:], tokens[:, :1]], 1)
        return Batch(tokens[:, :-1], targets[:, :-1], mask[:, :-1], {"weight": weight[:, 0]})

    def oracle(self, batch: Batch) -> Float[Tensor, "example time token"]:
        """P(y_k | pairs before, x_k) where an answer is asked for, uniform elsewhere."""
        d = self.dimension
        rows = F.pad(batch.inputs, (0, 1)).unflatten(1, (-1, d + 1))  # the last y is not among the inputs
        foretold = (2 * rows[..., :d] - 1) @ self.weights.T.to(rows.device) + d + 2  # (example, pair, weight)
        fits = (foretold == rows[..., d:]).long().cumprod(1)
        before = torch.cat([torch.ones_like(fits[:, :1]), fits[:, :-1]], 1).double()
        counts = (F.one_hot(foretold, self.vocab) * before.unsqueeze(-1)).sum(-2)
        found = torch.full((*batch.inputs.shape, self.vocab), 1 / self.vocab, dtype=torch.float64, device=rows.device)
        found[:, d - 1 :: d + 1] = counts / counts.sum(-1, keepdim=True)
        return found.log()


@dataclass(frozen=True)
class SignChain(World):
    """LEGO with signs: a = +1, b = −a, c = +b, …, then every variable is asked for its value, in the chain's order.

    A clause is three tokens: variable, sign, variable before (of the first clause: ONE). After L clauses comes the
    variable of each clause, and its answer, class 0 (+1) or 1 (−1), is asked for there.

    length      L, clauses of a chain
    variables   names, L of which are drawn without replacement
    """

    length: int = 4
    variables: int = 24

    def __post_init__(self) -> None:
        integer("length", self.length, low=1)
        integer("variables", self.variables, low=self.length, hint="the variables of a chain are distinct")

    @property
    def vocab(self) -> int:
        return self.variables + 3

    @property
    def outputs(self) -> int:
        return 2

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        names = torch.rand(n, self.variables, generator=rng, device=rng.device).argsort(-1)[:, : self.length]
        signs = torch.randint(2, (n, self.length), generator=rng, device=rng.device)
        before = torch.cat([torch.full_like(names[:, :1], self.variables + 2), names[:, :-1]], 1)
        clauses = torch.stack([names, signs + self.variables, before], -1).flatten(1)
        values = signs.cumsum(1) % 2
        return Batch(torch.cat([clauses, names], 1), values, torch.ones_like(values, dtype=torch.bool))

    def oracle(self, batch: Batch) -> Float[Tensor, "example clause value"]:
        """Certain: the sign of a variable is the product of the signs up to its clause."""
        signs = batch.inputs[:, 1 : 3 * self.length : 3] - self.variables
        return F.one_hot(signs.cumsum(1) % 2, 2).double().log()
