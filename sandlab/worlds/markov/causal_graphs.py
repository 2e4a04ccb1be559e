"""Sequences with a causal graph and a fresh kernel each: trees with one parent per position, graphs with several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from sandlab.errors import choice, integer, number, require
from sandlab.random import rng as seeded_rng
from sandlab.registry import register
from sandlab.worlds.base import Batch, World
from sandlab.worlds.markov._walk import dirichlet_rows, draw, thresholds, walk_graph
from sandlab.worlds.markov.lifted import positive_stationary_distribution, stationary_distribution
from sandlab.worlds.markov.stationary_start import binary_next_probs

__all__ = [
    "InContextDag",
    "InContextTree",
    "chain_parents",
    "lag_parents",
    "pair_parents",
    "random_parents",
    "skip_parents",
]


def chain_parents(length: int) -> tuple[int, ...]:
    """Every position's parent is the one before it; the first is a root."""
    return tuple(range(-1, length - 1))


def pair_parents(length: int) -> tuple[int, ...]:
    """Pairs (0, 1), (2, 3), …: an odd position's parent is the even one before it, even positions are roots."""
    return tuple(position - 1 if position % 2 else -1 for position in range(length))


def random_parents(length: int, seed: int) -> tuple[int, ...]:
    """Each position's parent is uniform among the earlier ones and "none"."""
    generator = seeded_rng(seed, "parents")
    return tuple(int(torch.randint(-1, child, (1,), generator=generator)) if child else -1 for child in range(length))


def lag_parents(length: int, lags: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    """Parents of positions 0 … length at the given lags; positions without all of them have none."""
    ordered = sorted(integer("lag", lag, low=1) for lag in lags)
    return tuple(tuple(child - lag for lag in ordered) if child >= ordered[-1] else () for child in range(length + 1))


def skip_parents(length: int) -> tuple[tuple[int, ...], ...]:
    """Two parents, {⌊(i−1)/2⌋, i − 1}, for positions 2 … length (Nichani, Damian & Lee 2024)."""
    return tuple((child - 1, (child - 1) // 2) if child >= 2 else () for child in range(length + 1))


@register("worlds")
@dataclass(frozen=True)
class InContextTree(World):
    """One parent per position, x_i ~ P(·|x_{p(i)}), with a fresh kernel P per sequence; the last token is the query.

    states         alphabet size S
    parents        p(i) < i for each of the T positions, −1 for a root. `chain_parents`, `pair_parents` and
                   `random_parents` give the families of the source
    concentration  α: rows P(·|s) are independent Dirichlet(α, …, α) draws
    roots          "stationary": roots follow the stationary distribution of P; "uniform": they are uniform

    The last token s_T is uniform and independent of the rest; the target, at the last position, is P(·|s_T).
    truth["kernels"]: (example, state, state).

    Oracle, when roots are uniform: (#{i : x_{p(i)} = s_T, x_i = a} + α)/(# + Sα). Stationary roots say a little about
    P by themselves; that is integrated exactly for two states. No closed form is known for more: `oracle` refuses,
    `stationary_bayes` samples the Bayes prediction and gives its error bar, and the counts are the baseline "graph"
    (0.01 to 0.07 nats above the Bayes predictor at α = 0.1, most on pairs, where half of the positions are roots).

    Source: Nichani, Damian & Lee 2024, "How transformers learn causal structure with gradient descent", §2 and §4.
    """

    states: int = 3
    parents: tuple[int, ...] = chain_parents(20)
    concentration: float = 0.1
    roots: str = "stationary"

    def __post_init__(self) -> None:
        integer("states", self.states, low=2)
        object.__setattr__(self, "parents", tuple(self.parents))
        integer("length", self.length, low=2)
        for child, parent in enumerate(self.parents):
            fits = isinstance(parent, int) and -1 <= parent < child
            require(fits, f"parents[{child}]", parent, f"a position between 0 and {child - 1}, or −1 for a root")
        number("concentration", self.concentration, low=1e-3)
        choice("roots", self.roots, ("stationary", "uniform"))

    @property
    def length(self) -> int:
        return len(self.parents)

    @property
    def vocab(self) -> int:
        return self.states

    @property
    def edges(self) -> list[tuple[int, int]]:
        """(child, parent) of every position drawn from the kernel; the last position, the query, has no parent."""
        return [(child, parent) for child, parent in enumerate(self.parents[:-1]) if parent >= 0]

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        kernels = dirichlet_rows((n, self.states, self.states), self.concentration, rng=rng)
        flat = kernels.new_full((n, self.states), 1 / self.states)
        root_probs = self._root_distribution(kernels) if self.roots == "stationary" else flat
        tokens = torch.zeros(n, self.length, dtype=torch.int64, device=rng.device)
        roots = [position for position, parent in enumerate(self.parents) if parent < 0]
        level = torch.rand(n, len(roots), 1, device=rng.device, generator=rng)
        drawn = (level >= thresholds(root_probs).unsqueeze(1)).sum(-1)
        for column, root in enumerate(roots):  # indexing with a list would synchronise a GPU with the host
            tokens[:, root] = drawn[:, column]
        tokens[:, -1] = draw(flat, rng=rng)
        tokens = walk_graph(kernels, tokens, [(child, (parent,)) for child, parent in self.edges], rng=rng)
        target = kernels[torch.arange(n, device=kernels.device), tokens[:, -1]].unsqueeze(1)
        return Batch(tokens, target, torch.ones(n, 1, dtype=torch.bool, device=tokens.device), {"kernels": kernels})

    def _root_distribution(self, kernels: Float[Tensor, "example state state"]) -> Float[Tensor, "example state"]:
        # Rows of this concentration have no zeros: the distribution is unique, and a GPU need not check it.
        positive = self.concentration >= 0.1 and kernels.is_cuda
        return positive_stationary_distribution(kernels) if positive else stationary_distribution(kernels)

    def oracle(self, batch: Batch) -> Float[Tensor, "example 1 states"]:
        if self.roots == "uniform":
            return self._smoothed(self.edge_counts(batch.inputs))
        if self.states == 2:
            return self._binary_oracle(batch.inputs).log().unsqueeze(1)
        raise NotImplementedError(
            f"no closed form is known for the Bayes predictor of {self.states} states with stationary roots: "
            'take roots="uniform", or the baseline "graph", which counts along the edges'
        )

    def baselines(self) -> dict[str, Callable[[Batch], Tensor]]:
        """uniform; unigram (frequencies); bigram (as if the graph were a chain); graph (counts along its edges)."""
        chain = [(child, child - 1) for child in range(1, self.length - 1)]
        return {
            "uniform": lambda batch: self._smoothed(torch.zeros(len(batch), self.states, device=batch.inputs.device)),
            "unigram": lambda batch: self._smoothed(F.one_hot(batch.inputs, self.states).sum(1)),
            "bigram": lambda batch: self._smoothed(self.edge_counts(batch.inputs, chain)),
            "graph": lambda batch: self._smoothed(self.edge_counts(batch.inputs)),
        }

    def edge_counts(
        self, tokens: Int[Tensor, "example time"], edges: Sequence[tuple[int, int]] | None = None
    ) -> Float[Tensor, "example states"]:
        """How often each token is the child of a token equal to the last one."""
        used = self.edges if edges is None else list(edges)
        counts = torch.zeros(len(tokens), self.states, dtype=torch.float64, device=tokens.device)
        if used:
            children, parents = torch.tensor(used, device=tokens.device).T
            match = tokens[:, parents] == tokens[:, -1:]
            counts = (F.one_hot(tokens[:, children], self.states) * match.unsqueeze(-1)).sum(1).to(torch.float64)
        return counts

    def _smoothed(self, counts: Tensor) -> Float[Tensor, "example 1 states"]:
        counts = counts.to(torch.float64) + self.concentration
        return (counts / counts.sum(-1, keepdim=True)).log().unsqueeze(1)

    def _binary_oracle(self, tokens: Tensor) -> Float[Tensor, "example 2"]:
        pairs = torch.zeros(len(tokens), 4, dtype=torch.int64, device=tokens.device)
        if self.edges:
            children, parents = torch.tensor(self.edges, device=tokens.device).T
            pairs = F.one_hot(2 * tokens[:, parents] + tokens[:, children], 4).sum(1)
        roots = [position for position, parent in enumerate(self.parents[:-1]) if parent < 0]
        starts = F.one_hot(tokens[:, roots], 2).sum(1)
        return binary_next_probs(pairs, tokens[:, -1], starts, self.concentration)


@register("worlds")
@dataclass(frozen=True)
class InContextDag(World):
    """Several parents per position, x_i ~ P(·|x of the parents), with a fresh kernel P per sequence.

    states         alphabet size S
    parents        of positions 0 … T: k of them everywhere, or none; the last entry belongs to the token
                   that is predicted. `lag_parents(T, lags)` are chains of order k, `skip_parents(T)` the
                   two-parent graph {⌊(i−1)/2⌋, i − 1}
    concentration  α: the row of each of the S^k configurations is an independent Dirichlet(α, …, α) draw

    Positions without parents are uniform. The target, at the last position, is the distribution of the next token;
    truth["kernels"]: (example, configuration, state), configuration Σ_i x_{parent i} S^i in the order given. The oracle
    (counts of children with the current configuration, plus α) is exactly the Bayes predictor.

    Source: Nichani, Damian & Lee 2024, §6 (several parents; n-grams as a special case).
    """

    states: int = 3
    parents: tuple[tuple[int, ...], ...] = skip_parents(16)
    concentration: float = 0.1

    def __post_init__(self) -> None:
        integer("states", self.states, low=2)
        object.__setattr__(self, "parents", tuple(tuple(each) for each in self.parents))
        integer("length", self.length, low=1)
        require(self.in_degree >= 1, "parents of the predicted token", self.parents[-1], "at least one position")
        for child, parents in enumerate(self.parents):
            fits = len(parents) in (0, self.in_degree) and all(0 <= parent < child for parent in parents)
            require(fits, f"parents[{child}]", parents, f"empty or {self.in_degree} earlier positions")
        contexts = self.states**self.in_degree
        require(contexts <= 2**20, "parents", self.in_degree, f"few enough for 2^20 configurations, not {contexts}")
        number("concentration", self.concentration, low=1e-3)

    @property
    def length(self) -> int:
        return len(self.parents) - 1

    @property
    def in_degree(self) -> int:
        """k, parents per child."""
        return len(self.parents[-1])

    @property
    def vocab(self) -> int:
        return self.states

    @property
    def children(self) -> list[int]:
        """Positions drawn from the kernel."""
        return [child for child, parents in enumerate(self.parents[:-1]) if parents]

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        kernels = dirichlet_rows((n, self.states**self.in_degree, self.states), self.concentration, rng=rng)
        tokens = torch.randint(0, self.states, (n, self.length), generator=rng, device=rng.device)
        tokens = walk_graph(kernels, tokens, [(child, self.parents[child]) for child in self.children], rng=rng)
        query = torch.zeros_like(tokens[:, 0])
        for power, parent in enumerate(self.parents[-1]):
            query += tokens[:, parent] * self.states**power
        target = kernels[torch.arange(n, device=kernels.device), query].unsqueeze(1)
        return Batch(tokens, target, torch.ones(n, 1, dtype=torch.bool, device=tokens.device), {"kernels": kernels})

    def configurations(
        self, tokens: Int[Tensor, "example time"], positions: Sequence[int], slots: Sequence[int] | None = None
    ) -> Int[Tensor, "example position"]:
        """Index of the parents' configuration at each position (of the parents in the given slots only)."""
        used = range(self.in_degree) if slots is None else slots
        code = torch.zeros(len(tokens), len(positions), dtype=torch.int64, device=tokens.device)
        for power, slot in enumerate(used):
            code += tokens[:, [self.parents[position][slot] for position in positions]] * self.states**power
        return code

    def counts(self, tokens: Int[Tensor, "example time"], slots: Sequence[int] | None = None) -> Tensor:
        """How often each token is a child whose parents (in the given slots) agree with those of the next token."""
        match = self.configurations(tokens, self.children, slots) == self.configurations(tokens, [self.length], slots)
        followers = F.one_hot(tokens[:, self.children], self.states)
        return (followers * match.unsqueeze(-1)).sum(1).to(torch.float64)

    def oracle(self, batch: Batch) -> Float[Tensor, "example 1 states"]:
        return self._smoothed(self.counts(batch.inputs))

    def baselines(self) -> dict[str, Callable[[Batch], Tensor]]:
        """uniform; unigram; each parent alone ("parent 0", …); all of them ("graph")."""
        named: dict[str, Callable[[Batch], Tensor]] = {
            "uniform": lambda batch: self._smoothed(torch.zeros(len(batch), self.states, device=batch.inputs.device)),
            "unigram": lambda batch: self._smoothed(F.one_hot(batch.inputs, self.states).sum(1)),
        }
        if self.in_degree > 1:
            for slot in range(self.in_degree):
                named[f"parent {slot}"] = lambda batch, slot=slot: self._smoothed(self.counts(batch.inputs, [slot]))
        return named | {"graph": self.oracle}

    def _smoothed(self, counts: Tensor) -> Float[Tensor, "example 1 states"]:
        counts = counts.to(torch.float64) + self.concentration
        return (counts / counts.sum(-1, keepdim=True)).log().unsqueeze(1)
