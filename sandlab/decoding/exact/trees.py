"""Small language models that fit on a page: complete trees of prefixes with explicit tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from sandlab.decoding.generators.base import Generator
from sandlab.decoding.verifiers.base import Verifier
from sandlab.errors import BadInput, integer

__all__ = ["TableVerifier", "Tree", "TreeGenerator"]


@dataclass(frozen=True, eq=False)
class Tree:
    """A generator of strings of length H over A tokens, as tables of conditional probabilities.

    probs[h][node] is the distribution of the next token after the h-token prefix number `node`; prefixes of one length
    are numbered as base-A numbers, first token most significant. Node tables below (values, verdicts) have the same
    form: one array of A^h numbers for each h = 0..H.
    """

    probs: tuple[np.ndarray, ...]

    def __post_init__(self) -> None:
        if not self.probs:
            raise BadInput("a tree needs at least one level: give distributions for prefixes of length 0")
        for level, probs in enumerate(self.probs):
            if probs.shape != (self.tokens**level, self.tokens) or not np.allclose(probs.sum(1), 1):
                raise BadInput(
                    f"level {level} needs {self.tokens**level} rows of {self.tokens} probabilities, got {probs.shape}"
                )

    @classmethod
    def random(cls, tokens: int, depth: int, *, rng: torch.Generator, concentration: float = 1.0) -> Tree:
        """Every next-token distribution drawn from a symmetric Dirichlet."""
        integer("tokens", tokens, low=1)
        integer("depth", depth, low=1)
        gamma = torch.full((tokens,), concentration, dtype=torch.float64)
        tables = []
        for level in range(depth):
            shares = torch._standard_gamma(gamma.expand(tokens**level, tokens), generator=rng).numpy()
            tables.append(shares / shares.sum(1, keepdims=True))
        return cls(tuple(tables))

    @classmethod
    def ending(cls, letters: int, depth: int, *, rng: torch.Generator, concentration: float = 1.0) -> Tree:
        """Strings of different lengths: token `letters` ends a string, and nothing but it follows (the padding).

        Prefixes that have not ended have random distributions over the letters and the end token.
        """
        free = cls.random(letters + 1, depth, rng=rng, concentration=concentration)
        ended, tables = np.zeros(1, dtype=bool), []
        padding = np.eye(letters + 1)[letters]
        for probs in free.probs:
            tables.append(np.where(ended[:, None], padding, probs))
            ended = (ended[:, None] | (np.arange(letters + 1) == letters)).ravel()
        return cls(tuple(tables))

    @classmethod
    def uniform(cls, tokens: int, depth: int) -> Tree:
        """Every token equally likely everywhere."""
        return cls(tuple(np.full((tokens**level, tokens), 1 / tokens) for level in range(depth)))

    @property
    def tokens(self) -> int:
        return self.probs[0].shape[-1]

    @property
    def depth(self) -> int:
        return len(self.probs)

    @cached_property
    def reach(self) -> list[np.ndarray]:
        """π(y) of every node: the probability that the generator passes through it."""
        levels = [np.ones(1)]
        for probs in self.probs:
            levels.append((levels[-1][:, None] * probs).ravel())
        return levels

    def strings(self) -> np.ndarray:
        """All A^H strings, in the order of the leaves."""
        return np.stack(np.unravel_index(np.arange(self.tokens**self.depth), (self.tokens,) * self.depth), 1)

    def values(self, tilt: np.ndarray) -> list[np.ndarray]:
        """V*(y) = E[tilt of the complete string | y] = Σ_a π(a|y) V*(y∘a), from a tilt of the leaves."""
        levels = [np.asarray(tilt, dtype=np.float64)]
        for probs in reversed(self.probs):
            levels.append((probs * levels[-1].reshape(probs.shape)).sum(1))
        return levels[::-1]

    def verdicts(self, accepted: np.ndarray) -> list[np.ndarray]:
        """1 where some leaf below is accepted (whatever its probability), else 0: the exact process verifier."""
        levels = [np.asarray(accepted, dtype=np.float64)]
        for _ in range(self.depth):
            levels.append(levels[-1].reshape(-1, self.tokens).max(1))
        return levels[::-1]


class TreeGenerator(Generator):
    """A tree as a generator; its log-probabilities are table look-ups."""

    def __init__(self, tree: Tree) -> None:
        super().__init__()
        self.tree, self.vocab = tree, tree.tokens
        with np.errstate(divide="ignore"):
            self.table = torch.from_numpy(np.log(np.concatenate(tree.probs)))

    def _next_log_probs(self, tokens: Tensor, lengths: Tensor, rows: Tensor) -> Tensor:
        return self.table[node_numbers(tokens, lengths, self.vocab)]


class TableVerifier(Verifier):
    """Values of all nodes of a tree as a verifier: one array per level."""

    def __init__(self, levels: Sequence[np.ndarray], tokens: int) -> None:
        self.table, self.tokens = torch.from_numpy(np.concatenate(levels)).to(torch.float64), tokens

    def value(self, tokens: Tensor, lengths: Tensor, rows: Tensor) -> Tensor:
        return self.table[node_numbers(tokens, lengths, self.tokens)]

    def children(self, tokens: Tensor, lengths: Tensor, rows: Tensor, vocab: int) -> Tensor:
        return self.child_outcomes(tokens, lengths, rows, torch.arange(vocab))

    def child_outcomes(self, tokens: Tensor, lengths: Tensor, rows: Tensor, letters: Tensor) -> Tensor:
        # Nodes are numbered like a heap: the children of node i are A·i + 1, ..., A·i + A.
        parents = node_numbers(tokens, lengths, self.tokens)
        return self.table[parents.unsqueeze(1) * self.tokens + 1 + letters]


def node_numbers(tokens: Tensor, lengths: Tensor, arity: int) -> Tensor:
    """Place of each prefix in the list of all nodes, shortest first."""
    number = torch.zeros_like(lengths)
    for place in range(int(lengths.max()) if len(lengths) else 0):
        number = torch.where(place < lengths, number * arity + tokens[:, place], number)
    first = (arity**lengths - 1) // (arity - 1) if arity > 1 else lengths
    return first + number
