"""Sampling derivations of many sentences at once: all nodes of a layer are expanded together.

Nothing waits for the host, so that on a GPU a training step that draws its own sentences can be recorded.
"""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from sandlab.errors import BadInput, require
from sandlab.worlds.distillation.pcfg import PCFG

__all__ = ["Derivations", "Sentences", "derivations", "sample_sentences"]

TABLE_SIZE = 10_000
"""Derivations of a symbol that are tabulated whole, at most."""
LONGEST = 4096
"""Tokens of a sentence, at most."""


@dataclass(frozen=True)
class Sentences:
    """Sentences as terminal numbers, padded with −1, and their lengths."""

    tokens: Int[Tensor, "example time"]
    lengths: Int[Tensor, "example"]


@dataclass(frozen=True)
class Derivations(Sentences):
    """Sentences with their trees.

    ancestors   symbol (`symbols[i]`) above each token in layer 0 (the root), 1, …, and the token itself; −1 in the
                padding. Where a branch is shallow, a terminal is repeated in the layers below it
    ends        whether the token is the last of that layer's node: its right boundary
    """

    ancestors: Int[Tensor, "example layer time"]
    ends: Bool[Tensor, "example layer time"]
    symbols: tuple[str, ...]


class _Plan:
    """The tables of a grammar: one expansion for every rule, and whole yields for symbols with few derivations."""

    def __init__(self, rules: PCFG) -> None:
        self.symbols = (*rules.terminals, *rules.bottom_up)
        self.index = {symbol: number for number, symbol in enumerate(self.symbols)}
        self.words = len(rules.terminals)
        self.rules = rules
        longest = rules.spans(rules.start)[1]
        require(longest <= LONGEST, "longest sentence", longest, f"at most {LONGEST} tokens", "cut at a smaller depth")
        self.rounds = max(rules.heights.values()) - 1
        self.widths, self.present = self._layers()
        self.expand = _Table({
            s: [(r.prob, [self.index[c] for c in r.children]) for r in rules.by_symbol.get(s, ())] or [(1.0, [i])]
            for i, s in enumerate(self.symbols)
        })  # fmt: skip
        self.shortcut, self.yields = self._yields()

    def _layers(self) -> tuple[list[int], list[set[str]]]:
        """Most nodes, and the symbols that can occur, in layer 0, 1, …: of nodes, not of derivations."""
        rules, most = self.rules, dict.fromkeys(self.symbols, 1)
        widths, present = [1], [{rules.start}]
        for _ in range(self.rounds):
            most = {
                s: max((sum(most[c] for c in r.children) for r in rules.by_symbol.get(s, ())), default=1)
                for s in self.symbols
            }
            widths.append(most[rules.start])
            present.append({
                c for s in present[-1] for c in (
                    [s] if s not in rules.by_symbol else [c for r in rules.by_symbol[s] for c in r.children]
                )
            })  # fmt: skip
        return widths, present

    def _yields(self) -> tuple[int, _Table]:
        """The first layer from which all symbols have at most TABLE_SIZE derivations, and these derivations."""
        known: dict[str, list[tuple[float, list[int]]]] = {
            word: [(1.0, [number])] for number, word in enumerate(self.rules.terminals)
        }
        for symbol in self.rules.bottom_up:
            rules = self.rules.by_symbol[symbol]
            if any(child not in known for rule in rules for child in rule.children):
                continue
            sizes = sum(int(np.prod([len(known[child]) for child in rule.children])) for rule in rules)
            if sizes <= TABLE_SIZE:
                known[symbol] = [
                    (rule.prob * float(np.prod([p for p, _ in parts])), [w for _, text in parts for w in text])
                    for rule in rules
                    for parts in itertools.product(*(known[child] for child in rule.children))
                ]
        layer = next(layer for layer, names in enumerate(self.present) if all(name in known for name in names))
        return layer, _Table({s: known.get(s, [(1.0, [i])]) for i, s in enumerate(self.symbols)})


class _Table:
    """For every symbol a choice between rows of children.

    cumulative   symbol + P(choice ≤ k), sorted over all symbols: one search finds the choice of every node
    """

    def __init__(self, choices: dict[str, list[tuple[float, list[int]]]]) -> None:
        widest = max(len(row) for options in choices.values() for _, row in options)
        rows, cumulative = [], []
        for number, options in enumerate(choices.values()):
            shares = np.cumsum([share for share, _ in options])
            cumulative += (number + np.minimum(shares[:-1] / shares[-1], 1.0)).tolist() + [number + 1.0]
            rows += [row + [-1] * (widest - len(row)) for _, row in options]
        self.widest = widest
        self.tensors = (
            torch.tensor(cumulative),
            torch.tensor(rows),
            torch.tensor([sum(w >= 0 for w in r) for r in rows]),
        )
        self.joined = torch.tensor([child for options in choices.values() for _, row in options for child in row])
        self.starts = self.tensors[2].cumsum(0) - self.tensors[2]
        self._by_device: dict[torch.device, tuple[Tensor, Tensor, Tensor]] = {}

    def on(self, device: torch.device) -> tuple[Tensor, Tensor, Tensor]:
        if device not in self._by_device:
            cumulative, rows, counts = self.tensors
            self._by_device[device] = (cumulative.double().to(device), rows.to(device), counts.to(device))
        return self._by_device[device]

    def draw(self, nodes: Int[Tensor, "example node"], rng: torch.Generator) -> tuple[Tensor, Tensor]:
        """Children (example, node, child) of a random choice for each node, and how many; none for −1."""
        _, rows, counts = self.on(nodes.device)
        choice = self.choose(nodes.clamp(min=0), rng)
        return rows[choice], counts[choice].masked_fill(nodes < 0, 0)

    def choose(self, nodes: Int[Tensor, "*lead"], rng: torch.Generator) -> Int[Tensor, "*lead"]:
        """The row of a random choice for each node."""
        cumulative = self.on(nodes.device)[0]
        # Strictly inside (0, 1), and in float64: symbol numbers are added to it.
        point = torch.rand(nodes.shape, generator=rng, device=nodes.device, dtype=torch.float64).clamp_(1e-12, 1 - 1e-9)
        return torch.searchsorted(cumulative, point.add_(nodes))

    def draw_flat(self, nodes: Int[Tensor, "node"], rng: torch.Generator) -> tuple[Tensor, Tensor]:
        """The children of all nodes in one row, and how many each node has."""
        choice = self.choose(nodes, rng)
        counts = self.tensors[2].index_select(0, choice)
        ends = counts.cumsum(0)
        # Child number t of all lies in the joined rows at (first child of its node's row) + t − (t of the first one).
        shift = (self.starts.index_select(0, choice) - ends).add_(counts)
        place = torch.repeat_interleave(shift, counts, output_size=int(ends[-1])).add_(torch.arange(int(ends[-1])))
        return self.joined.index_select(0, place), counts


def _place(
    children: Int[Tensor, "example node child"], counts: Int[Tensor, "example node"], width: int
) -> tuple[Int[Tensor, "example width"], Int[Tensor, "example node"]]:
    """Children of all nodes in one row, padded with −1, and the place after each node's last child."""
    ends = counts.cumsum(1)
    within = torch.arange(children.shape[2], device=children.device)
    # Children that do not exist go to a column that is cut off.
    index = torch.where(within < counts.unsqueeze(-1), (ends - counts).unsqueeze(-1) + within, width)
    row = children.new_full((len(children), width + 1), -1)
    return row.scatter_(1, index.flatten(1), children.flatten(1))[:, :width], ends


@functools.lru_cache(maxsize=64)
def _plan(rules: PCFG) -> _Plan:
    return _Plan(rules)


def _roots(plan: _Plan, n: int, rng: torch.Generator) -> Tensor:
    return torch.full((n, 1), plan.index[plan.rules.start], device=rng.device)


def sample_sentences(rules: PCFG, n: int, *, rng: torch.Generator) -> Sentences:
    """n independent sentences, without their trees: the lowest layers are drawn whole from a table."""
    plan = _plan(rules)
    if rng.device.type == "cpu":
        return _sample_flat(plan, n, rng)
    nodes = _roots(plan, n, rng)
    for layer in range(plan.shortcut):
        nodes, _ = _place(*plan.expand.draw(nodes, rng), plan.widths[layer + 1])
    tokens, ends = _place(*plan.yields.draw(nodes, rng), plan.widths[-1])
    return Sentences(tokens, ends[:, -1])


def _sample_flat(plan: _Plan, n: int, rng: torch.Generator) -> Sentences:
    """The same without padding between: all sentences lie end to end until the last step."""
    nodes, last = _roots(plan, n, rng).flatten(), torch.arange(1, n + 1)
    for table in [plan.expand] * plan.shortcut + [plan.yields]:
        nodes, counts = table.draw_flat(nodes, rng)
        last = counts.cumsum(0)[last - 1]
    lengths = torch.diff(last, prepend=last.new_zeros(1))
    tokens = torch.full((n, plan.widths[-1]), -1)
    return Sentences(tokens.masked_scatter_(torch.arange(plan.widths[-1]) < lengths.unsqueeze(1), nodes), lengths)


def derivations(rules: PCFG, n: int, *, rng: torch.Generator) -> Derivations:
    """n independent sentences with their trees."""
    plan = _plan(rules)
    layers, ends = [_roots(plan, n, rng)], []
    for layer in range(plan.rounds):
        nodes, places = _place(*plan.expand.draw(layers[-1], rng), plan.widths[layer + 1])
        layers.append(nodes)
        ends.append(places)
    tokens = layers[-1]
    ancestors, marks = _above(layers, ends)
    return Derivations(tokens, (tokens >= 0).sum(1), ancestors, marks, plan.symbols)


def _above(layers: list[Tensor], ends: list[Tensor]) -> tuple[Tensor, Tensor]:
    """For every layer the node above each token, and whether the token is that node's last."""
    tokens = layers[-1]
    exists = tokens >= 0
    place = torch.arange(tokens.shape[1], device=tokens.device).expand_as(tokens).contiguous()
    symbols, last = [tokens], [exists]
    for nodes, after in zip(reversed(layers[:-1]), reversed(ends)):
        # `after` counts places of the layer below; the node of a place is the first that ends beyond it.
        node = torch.searchsorted(after, place, right=True).clamp(max=nodes.shape[1] - 1)
        closes = after.gather(1, node) == place + 1
        last.append(last[-1] & closes & exists)
        symbols.append(nodes.gather(1, node).masked_fill(~exists, -1))
        place = node
    return torch.stack(symbols[::-1], 1), torch.stack(last[::-1], 1)


def check_layered(rules: PCFG) -> None:
    """Refuse grammars whose branches differ in depth, where heights of spans are not defined."""
    if not rules.layered:
        raise BadInput("levels need a grammar of fixed depth, such as cfg3b: this one has branches of several depths")
