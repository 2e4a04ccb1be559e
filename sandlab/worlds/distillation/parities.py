"""Sparse parity, and a decision tree whose branches are sparse parities."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from sandlab.errors import choice, integer, require
from sandlab.registry import register
from sandlab.worlds.base import Batch, World

__all__ = ["HierarchicalParity", "SparseParity"]

FORMS = ("signs", "tokens")


def _signs(inputs: Tensor) -> Tensor:
    """±1 of inputs in either form: tokens are (1 − x)/2."""
    return inputs if inputs.is_floating_point() else (1 - 2 * inputs).float()


def _certain(labels: Tensor, classes: int) -> Float[Tensor, "example 1 classes"]:
    """log 1 at the label, log 0 elsewhere."""
    sure = torch.full((*labels.shape, classes), -torch.inf, dtype=torch.float64, device=labels.device)
    return sure.scatter(-1, labels.unsqueeze(-1), 0.0)


@dataclass(frozen=True)
class _SignWorld(World):
    """Uniform signs with a label that is a function of them."""

    def label(self, signs: Float[Tensor, "*lead dimension"]) -> Int[Tensor, "*lead"]:
        """The class of each example."""
        raise NotImplementedError

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        dimension, form = self.dimension, self.form  # type: ignore[attr-defined]
        bits = torch.randint(2, (n, dimension), generator=rng, device=rng.device)
        signs = (1 - 2 * bits).float()
        labels = self.label(signs).unsqueeze(-1)
        return Batch(bits if form == "tokens" else signs, labels, torch.ones_like(labels, dtype=torch.bool))

    @property
    def vocab(self) -> int:
        return 2

    def oracle(self, batch: Batch) -> Float[Tensor, "example 1 classes"]:
        return _certain(self.label(_signs(batch.inputs)).unsqueeze(-1), self.outputs)


@register("worlds")
@dataclass(frozen=True)
class SparseParity(_SignWorld):
    """(d, k)-sparse parity: x uniform on {±1}^d, class 0 when ∏_{i∈S} x_i = +1, else 1.

    dimension    d
    support      S, coordinates from 0; a number k stands for the first k
    form         "signs": x itself, as features; "tokens": (1 − x)/2, one token per coordinate

    Source: Panigrahi et al. 2024, Definition 23 of the thesis's section 4.2.
    """

    dimension: int = 100
    support: int | tuple[int, ...] = 6
    form: str = "signs"

    def __post_init__(self) -> None:
        integer("dimension", self.dimension, low=1)
        choice("form", self.form, FORMS)
        if isinstance(self.support, list):
            object.__setattr__(self, "support", tuple(self.support))
        chosen = self.coordinates
        fits = len(set(chosen)) == len(chosen) >= 1 and all(0 <= each < self.dimension for each in chosen)
        require(fits, "support", self.support, f"distinct coordinates from 0 to {self.dimension - 1}")

    @property
    def coordinates(self) -> tuple[int, ...]:
        """S."""
        return tuple(range(self.support)) if isinstance(self.support, int) else self.support

    @property
    def outputs(self) -> int:
        return 2

    @property
    def length(self) -> int:
        return self.dimension

    def label(self, signs: Float[Tensor, "*lead dimension"]) -> Int[Tensor, "*lead"]:
        # A slice where it can be: a list of indices would make a GPU wait for the host.
        chosen = signs[..., : self.support] if isinstance(self.support, int) else signs[..., list(self.support)]
        return (chosen.prod(-1) < 0).long()


@register("worlds")
@dataclass(frozen=True)
class HierarchicalParity(_SignWorld):
    """A binary decision tree of depth D whose node j (heap order from 1) branches on T_j(x) = ∏ x_{(j−1)k+1 … jk}.

    −1 turns left, +1 right; the label is the leaf, 0 … 2^D − 1 from the left. With `flipped` the turns are the
    opposite ones, as in the authors' code.

    dimension, order, depth   d, k, D; (2^D − 1)k coordinates count

    Source: Panigrahi et al. 2024, thesis section 4.2.7.3.
    """

    dimension: int = 100
    order: int = 5
    depth: int = 3
    form: str = "signs"
    flipped: bool = False

    def __post_init__(self) -> None:
        integer("order", self.order, low=1)
        integer("depth", self.depth, low=1, high=10)
        integer("dimension", self.dimension, low=self.relevant, hint="every node has coordinates of its own")
        choice("form", self.form, FORMS)

    @property
    def nodes(self) -> int:
        """Internal nodes of the tree."""
        return 2**self.depth - 1

    @property
    def relevant(self) -> int:
        """How many coordinates count."""
        return self.nodes * self.order

    @property
    def outputs(self) -> int:
        return self.nodes + 1

    @property
    def length(self) -> int:
        return self.dimension

    def group(self, node: int) -> tuple[int, ...]:
        """The coordinates (from 0) of node 1, 2, … in heap order."""
        integer("node", node, low=1, high=self.nodes)
        return tuple(range((node - 1) * self.order, node * self.order))

    def path(self, leaf: int) -> tuple[int, ...]:
        """The nodes from the root to a leaf."""
        integer("leaf", leaf, low=0, high=self.nodes)
        return tuple((leaf + self.nodes + 1) >> level for level in range(self.depth, 0, -1))

    def features(self, signs: Float[Tensor, "*lead dimension"]) -> Float[Tensor, "*lead node"]:
        """T_j(x) of every node."""
        return signs[..., : self.relevant].unflatten(-1, (self.nodes, self.order)).prod(-1)

    def label(self, signs: Float[Tensor, "*lead dimension"]) -> Int[Tensor, "*lead"]:
        right = (self.features(signs) > 0) != self.flipped
        place = torch.ones(right.shape[:-1], dtype=torch.long, device=signs.device)
        for _ in range(self.depth):
            place = 2 * place + right.gather(-1, (place - 1).unsqueeze(-1)).squeeze(-1)
        return place - self.nodes - 1

    def member(self, signs: Float[Tensor, "*lead dimension"], leaf: int) -> Tensor:
        """∏_j 1[c_j T_{v_j}(x) > 0] along the path to a leaf: c_j = +1 iff the path turns right there.

        c_j is the bit D − j of the leaf's number; the printed rule c = 1 iff i ≥ 2^{D−j} gives it for D = 1 only.
        """
        features, inside = self.features(signs), torch.ones(signs.shape[:-1], dtype=torch.bool, device=signs.device)
        for level, node in enumerate(self.path(leaf), start=1):
            turn = 1.0 if (leaf >> (self.depth - level)) & 1 else -1.0
            inside &= (-turn if self.flipped else turn) * features[..., node - 1] > 0
        return inside
