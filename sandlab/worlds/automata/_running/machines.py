"""Running an automaton on many words at once: by table of its semigroup, by composed maps, or step by step."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from sandlab.errors import BadInput
from sandlab.worlds.automata._running.buffer_pool import BufferPool
from sandlab.worlds.automata._running.scan import ProductTable, compose_maps, prefix_products
from sandlab.worlds.automata.algebra.semigroups import Semigroup, enumerate_semigroup

__all__ = ["Runner"]

SMALL_SEMIGROUP = 1024
MOST_MAPPED_STATES = 64
MOST_BLOCKS = 4096
MOST_MAP_CELLS = 1 << 25
CACHED_LETTERS = 1 << 20
PAIR = 1 + (1 << 32)


@dataclass(frozen=True, eq=False)
class Tables:
    """A small semigroup's tables on one device. Elements are int32, states int64.

    block_letters    the k letters of each block
    block_prefixes   the products of a block's first 1 … k letters, two of them packed into one int64
    block_products   the product of each block
    """

    letters: Int[Tensor, "letter"]
    products: ProductTable
    action: ProductTable
    block: int
    block_letters: Int[Tensor, "word position"]
    block_prefixes: Int[Tensor, "word packed"]
    block_products: Int[Tensor, "word"]


class Runner:
    """Trajectories of one transition table, table[state, letter].

    With a semigroup of at most 1024 elements, prefix products are scanned in its multiplication table; otherwise maps
    of at most 64 states are composed; beyond that, each position is one look-up for all words.
    """

    def __init__(self, table: Int[np.ndarray, "state letter"]) -> None:
        self.table = np.ascontiguousarray(table, dtype=np.int64)
        self._on_device: dict[torch.device, Tables] = {}
        self.buffers = BufferPool()

    @cached_property
    def semigroup(self) -> Semigroup | None:
        """The semigroup, if it is small."""
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
            return torch.cat([self._run_table(part, start) for part in words.split(_rows(words))])
        table = torch.as_tensor(self.table, device=words.device)
        if self.states > MOST_MAPPED_STATES:
            return step_by_step(table, words, start)
        return self.run_maps(table.T[words], start)

    def _run_table(self, words: Int[Tensor, "example time"], start: int) -> Int[Tensor, "example time"]:
        tables = self._tables(words.device)
        elements = tables.letters.index_select(0, words.T.reshape(-1)).view(words.shape[1], -1)
        passed = prefix_products(elements, tables.products)
        return tables.action.row(start, passed).T

    def run_maps(self, maps: Int[Tensor, "example time state"], start: int) -> Int[Tensor, "example time"]:
        """States after each of the given maps, a few examples at a time so that the maps fit into memory."""
        rows = max(1, MOST_MAP_CELLS // (maps.shape[1] * maps.shape[2]))
        parts = [prefix_products(part.transpose(0, 1), compose_maps)[..., start].T for part in maps.split(rows)]
        return torch.cat(parts)

    def draw(
        self, n: int, time: int, start: int, rng: torch.Generator
    ) -> tuple[Int[Tensor, "example time"], Int[Tensor, "example time"]]:
        """Words of independent uniform letters and their states.

        Letters are drawn in blocks: a uniform number below |Σ|^k is k uniform letters, and the products of all such
        blocks are tabulated, which makes the scan k times shorter.
        """
        if self.semigroup is None or self.letters == 1 or rng.device.type != "cpu":
            words = torch.randint(self.letters, (n, time), generator=rng, device=rng.device)
            return words, self.run(words, start)
        tables = self._tables(rng.device)
        columns = -(-time // tables.block) * tables.block
        words, states = self.buffers.empty(n, columns), self.buffers.empty(n, columns)
        # numpy draws small numbers twice as fast as torch; its seed is a draw from the caller's generator.
        seed = int(torch.randint(2**62, (), generator=rng))
        source = np.random.Generator(np.random.SFC64(seed))
        # A few rows at a time, so that intermediate results stay in the processor's cache.
        rows = _rows(words)
        for first in range(0, n, rows):
            part = slice(first, first + rows)
            self._fill(tables, words[part], states[part], start, source)
        if columns == time:
            return words, states
        return words[:, :time].contiguous(), states[:, :time].contiguous()

    @staticmethod
    def _fill(tables: Tables, words: Tensor, states: Tensor, start: int, source: np.random.Generator) -> None:
        rows, blocks = len(words), words.shape[1] // tables.block
        flat = torch.from_numpy(source.integers(len(tables.block_letters), size=rows * blocks, dtype=np.int32))
        products = tables.block_products.index_select(0, flat).view(rows, blocks).T.contiguous()
        passed = prefix_products(products, tables.products)
        # state · columns + element is the index into the table of actions. Two such indices are computed at once, one
        # in each half of an int64, and separated by reading the memory as int32.
        columns = tables.action.columns
        lines = (columns * PAIR) * tables.action.flat[start * columns : (start + 1) * columns]
        before = torch.empty(rows, blocks, dtype=torch.int64)
        before[:, 0] = columns * PAIR * start
        before[:, 1:] = lines.index_select(0, passed[:-1].view(-1)).view(blocks - 1, rows).T
        pairs = tables.block_prefixes.index_select(0, flat).add_(before.view(-1, 1))
        indices = pairs.view(torch.int32)
        if tables.block % 2:
            indices = indices[:, : tables.block]
        torch.index_select(tables.action.flat, 0, indices.reshape(-1), out=states.view(-1))
        torch.index_select(tables.block_letters, 0, flat, out=words.view(-1, tables.block))

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
        digits = np.stack([codes // self.letters**position % self.letters for position in reversed(range(block))], 1)
        prefixes = [self.semigroup.letters[digits[:, 0]]]
        for position in range(1, block):
            prefixes.append(products[prefixes[-1], self.semigroup.letters[digits[:, position]]])

        packed = np.zeros((len(codes), 2 * -(-block // 2)), dtype=np.int32)
        packed[:, :block] = np.stack(prefixes, 1)

        def tensor(values: np.ndarray, kind: torch.dtype) -> Tensor:
            return torch.as_tensor(np.ascontiguousarray(values)).to(device=device, dtype=kind)

        return Tables(
            letters=tensor(self.semigroup.letters, torch.int32),
            products=ProductTable(tensor(products.reshape(-1), torch.int32), size),
            action=ProductTable(tensor(self.semigroup.maps.T.reshape(-1), torch.int64), size),
            block=block,
            block_letters=tensor(digits, torch.int64),
            block_prefixes=tensor(packed.view(np.int64), torch.int64),
            block_products=tensor(prefixes[-1], torch.int32),
        )


def _rows(words: Tensor) -> int:
    """How many words at a time: on a CPU, few enough to stay in its cache."""
    return max(1, CACHED_LETTERS // words.shape[1]) if words.device.type == "cpu" else len(words)


def step_by_step(
    table: Int[Tensor, "state letter"], words: Int[Tensor, "example time"], start: int
) -> Int[Tensor, "example time"]:
    """One look-up per position for all words, for machines whose maps are too large to compose."""
    flat, letters = table.reshape(-1), table.shape[1]
    states = torch.empty_like(words)
    state = torch.full_like(words[:, 0], start)
    for position in range(words.shape[1]):
        state = flat[state * letters + words[:, position]]
        states[:, position] = state
    return states
