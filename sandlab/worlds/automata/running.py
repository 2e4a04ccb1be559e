"""Running an automaton on many words at once: by table of its semigroup, by composed maps, or step by step."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from sandlab.errors import BadInput
from sandlab.worlds.algebra.semigroups import Semigroup, enumerate_semigroup
from sandlab.worlds.automata.scanning import ProductTable, compose_maps, prefix_products

__all__ = ["Runner"]

SMALL_SEMIGROUP = 1024
MOST_MAPPED_STATES = 64
MOST_BLOCKS = 4096
MOST_MAP_CELLS = 1 << 25
CACHED_LETTERS = 1 << 18


@dataclass(frozen=True, eq=False)
class Tables:
    """A small semigroup's tables on one device. Elements are int32, states int64."""

    letters: Int[Tensor, "letter"]
    products: ProductTable
    action: ProductTable
    block: int
    block_letters: Int[Tensor, "word position"]
    block_prefixes: Int[Tensor, "word position"]
    block_products: Int[Tensor, "word"]


class Runner:
    """Trajectories of one transition table, table[state, letter].

    A semigroup of at most 1024 elements is scanned by its multiplication table; otherwise maps of at most 64 states
    are composed; beyond that each position is one look-up for all words.
    """

    def __init__(self, table: Int[np.ndarray, "state letter"]) -> None:
        self.table = np.ascontiguousarray(table, dtype=np.int64)
        self._on_device: dict[torch.device, Tables] = {}

    @cached_property
    def semigroup(self) -> Semigroup | None:
        """The semigroup when it is small."""
        if self.states > 4 * MOST_MAPPED_STATES:
            return None
        try:
            return enumerate_semigroup(self.table.T, limit=SMALL_SEMIGROUP)
        except BadInput:
            return None

    @property
    def states(self) -> int:
        return self.table.shape[0]

    @property
    def letters(self) -> int:
        return self.table.shape[1]

    def run(self, words: Int[Tensor, "example time"], start: int) -> Int[Tensor, "example time"]:
        """States after each letter."""
        if words.numel() == 0:
            return words.long()
        if self.semigroup is not None:
            tables = self._tables(words.device)
            elements = tables.letters.index_select(0, words.reshape(-1)).view(words.shape)
            passed = prefix_products(elements, tables.products)
            return tables.action(torch.full_like(passed, start), passed)
        table = torch.as_tensor(self.table, device=words.device)
        if self.states > MOST_MAPPED_STATES:
            return step_by_step(table, words, start)
        return self.run_maps(table.T[words], start)

    def run_maps(self, maps: Int[Tensor, "example time state"], start: int) -> Int[Tensor, "example time"]:
        """States after each of the given maps, a few examples at a time so that the maps fit into memory."""
        rows = max(1, MOST_MAP_CELLS // (maps.shape[1] * maps.shape[2]))
        parts = [prefix_products(part, compose_maps)[..., start] for part in maps.split(rows)]
        return torch.cat(parts)

    def draw(
        self, n: int, time: int, start: int, rng: torch.Generator
    ) -> tuple[Int[Tensor, "example time"], Int[Tensor, "example time"]]:
        """Words of independent uniform letters and their states.

        Letters are drawn in blocks: a uniform number below |Σ|^k is k uniform letters, and the products of all such
        blocks stand in a table, so the scan is k times shorter.
        """
        if self.semigroup is None or self.letters == 1 or rng.device.type != "cpu":
            words = torch.randint(self.letters, (n, time), generator=rng, device=rng.device)
            return words, self.run(words, start)
        tables = self._tables(rng.device)
        blocks = -(-time // tables.block)
        words = torch.empty(n, blocks * tables.block, dtype=torch.int64)
        states = torch.empty_like(words)
        # A few rows at a time: what lies between the draw and the result stays in the processor's cache.
        rows = max(1, CACHED_LETTERS // words.shape[1])
        for first in range(0, n, rows):
            part = slice(first, first + rows)
            self._fill(tables, words[part], states[part], start, rng)
        if words.shape[1] == time:
            return words, states
        return words[:, :time].contiguous(), states[:, :time].contiguous()

    @staticmethod
    def _fill(tables: Tables, words: Tensor, states: Tensor, start: int, rng: torch.Generator) -> None:
        shape = (len(words), words.shape[1] // tables.block)
        drawn = torch.randint(len(tables.block_letters), shape, generator=rng, dtype=torch.int32).view(-1)
        passed = prefix_products(tables.block_products.index_select(0, drawn).view(shape), tables.products)
        before = torch.full_like(passed, start)
        before[:, 1:] = tables.action(before[:, 1:], passed[:, :-1])
        within = tables.block_prefixes.index_select(0, drawn).view(*shape, tables.block)
        place = torch.add(within, before.unsqueeze(-1), alpha=tables.action.columns)
        torch.index_select(tables.action.flat, 0, place.view(-1), out=states.view(-1))
        torch.index_select(tables.block_letters, 0, drawn, out=words.view(-1, tables.block))

    def _tables(self, device: torch.device) -> Tables:
        if device not in self._on_device:
            self._on_device[device] = self._build(device)
        return self._on_device[device]

    def _build(self, device: torch.device) -> Tables:
        assert self.semigroup is not None
        size, products = len(self.semigroup), self.semigroup.products
        block = 1
        while self.letters > 1 and self.letters ** (block + 1) <= MOST_BLOCKS:
            block += 1
        codes = np.arange(self.letters**block)
        digits = np.stack([codes // self.letters**place % self.letters for place in reversed(range(block))], 1)
        prefixes = [self.semigroup.letters[digits[:, 0]]]
        for place in range(1, block):
            prefixes.append(products[prefixes[-1], self.semigroup.letters[digits[:, place]]])

        def tensor(values: np.ndarray, kind: torch.dtype) -> Tensor:
            return torch.as_tensor(np.ascontiguousarray(values)).to(device=device, dtype=kind)

        return Tables(
            letters=tensor(self.semigroup.letters, torch.int32),
            products=ProductTable(tensor(products.reshape(-1), torch.int32), size),
            action=ProductTable(tensor(self.semigroup.maps.T.reshape(-1), torch.int64), size),
            block=block,
            block_letters=tensor(digits, torch.int64),
            block_prefixes=tensor(np.stack(prefixes, 1), torch.int32),
            block_products=tensor(prefixes[-1], torch.int32),
        )


def step_by_step(
    table: Int[Tensor, "state letter"], words: Int[Tensor, "example time"], start: int
) -> Int[Tensor, "example time"]:
    """One look-up per position for all words: for machines whose maps are too large to compose."""
    flat, letters = table.reshape(-1), table.shape[1]
    states = torch.empty_like(words)
    state = torch.full_like(words[:, 0], start)
    for place in range(words.shape[1]):
        state = flat[state * letters + words[:, place]]
        states[:, place] = state
    return states
