"""Inside probabilities of many sentences at once: exact posteriors of hidden tokens and of the next one.

A chart of symbol A is a band: row l, column i holds P(A generates the tokens i … i + l − 1), for the lengths l that A
can have. Putting two symbols side by side is a product of bands, and its adjoint gives the outside probabilities.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import FunctionCtx

from sandlab.worlds.distillation.pcfg import PCFG

__all__ = ["Band", "inside_charts", "next_token_probs", "sentence_probs", "token_posteriors"]

AT_ONCE = 2_000_000
"""Cells (sentence × position × length of the longest band) computed at once, at most: it bounds the memory."""


@dataclass(frozen=True)
class Band:
    """cells[l − first, sentence, i]: probability of the tokens i … i + l − 1, for lengths from `first` on."""

    cells: Float[Tensor, "length sentence start"]
    first: int

    @property
    def last(self) -> int:
        return self.first + len(self.cells) - 1


class _SideBySide(torch.autograd.Function):
    """C[l, i] = Σ_m A[m, i] B[l − m, i + m]: a loop over the lengths of A, with whole rows at once.

    A may have fewer starts than B; C has as many as A.
    """

    @staticmethod
    def forward(ctx: FunctionCtx, left: Tensor, right: Tensor, first: int) -> Tensor:
        ctx.save_for_backward(left, right)
        ctx.first = first  # type: ignore[attr-defined]
        out = left.new_zeros(len(left) + len(right) - 1, *left.shape[1:])
        for row, shift, width in _shifts(left, right, first):
            part = out[row : row + len(right), :, :width]
            part.addcmul_(left[row, :, :width], right[..., shift : shift + width])
        return out

    @staticmethod
    def backward(ctx: FunctionCtx, slope: Tensor) -> tuple[Tensor, Tensor, None]:
        left, right = ctx.saved_tensors  # type: ignore[attr-defined]
        left_slope, right_slope = torch.zeros_like(left), torch.zeros_like(right)
        for row, shift, width in _shifts(left, right, ctx.first):  # type: ignore[attr-defined]
            part, moved = slope[row : row + len(right), :, :width], slice(shift, shift + width)
            left_slope[row, :, :width] = (part * right[..., moved]).sum(0)
            right_slope[..., moved].addcmul_(part, left[row, :, :width])
        return left_slope, right_slope, None


def _shifts(left: Tensor, right: Tensor, first: int) -> Iterator[tuple[int, int, int]]:
    """Row, length and usable starts of the left part, for lengths that leave room for something to follow."""
    starts, time = left.shape[-1], right.shape[-1]
    return ((row, first + row, min(starts, time - first - row)) for row in range(len(left)) if first + row < time)


def side_by_side(left: Band, right: Band, starts: int, time: int) -> Band:
    """First what `left` generates, then what `right` does, from the first `starts` places; cut at the end."""
    cells = _SideBySide.apply(left.cells[..., :starts], right.cells, left.first)
    first = left.first + right.first
    return Band(cells[: max(1, time - first + 1)], first)


def _mixture(parts: list[tuple[float, Band]]) -> Band:
    """Σ p · band."""
    first, last = min(band.first for _, band in parts), max(band.last for _, band in parts)
    cells = parts[0][1].cells
    total = cells.new_zeros(last - first + 1, *cells.shape[1:])
    for share, band in parts:
        # Rows are added one slice at a time; autograd keeps no copies of them.
        total = total + share * torch.nn.functional.pad(band.cells, (0, 0, 0, 0, band.first - first, last - band.last))
    return Band(total, first)


class _Charts:
    """The bands of all symbols and of all beginnings of rules, each for the places where it may begin.

    The start symbol begins at 0 only, its first child too, its second child no later than the first one is long, …:
    most of the work is at the top, where few places count. `everywhere` computes all of them.
    """

    def __init__(
        self, rules: PCFG, evidence: Float[Tensor, "sentence time terminal"], *, everywhere: bool = False
    ) -> None:
        self.rules, self.time = rules, evidence.shape[1]
        self.starts = dict.fromkeys(rules.heights, self.time) if everywhere else _latest_starts(rules, self.time)
        self.prefixes: dict[tuple[str, ...], Band] = {}
        for number, word in enumerate(rules.terminals):
            self.prefixes[(word,)] = Band(evidence[..., number].unsqueeze(0), 1)
        for symbol in rules.bottom_up:
            parts = [(rule.prob, self.prefix(rule.children)) for rule in rules.by_symbol[symbol]]
            starts = self.starts[symbol]
            self.prefixes[(symbol,)] = _mixture([(p, Band(b.cells[..., :starts], b.first)) for p, b in parts])

    def prefix(self, children: tuple[str, ...]) -> Band:
        """The band of symbols one after another; rules that begin alike share it."""
        if children not in self.prefixes:
            users = [r.parent for r in self.rules.rules if r.children[: len(children)] == children]
            starts = max(self.starts[parent] for parent in users)
            before, last = self.prefix(children[:-1]), self.prefixes[children[-1:]]
            self.prefixes[children] = side_by_side(before, last, starts, self.time)
        return self.prefixes[children]

    def __getitem__(self, symbol: str) -> Band:
        return self.prefixes[(symbol,)]

    def whole(self, lengths: Int[Tensor, "sentence"]) -> Float[Tensor, "sentence"]:
        """P(sentence), read off the start symbol's band at the sentences' own lengths."""
        band = self[self.rules.start]
        rows = lengths - band.first
        fits = (rows >= 0) & (rows < len(band.cells))
        found = band.cells[rows.clamp(0, len(band.cells) - 1), torch.arange(len(lengths), device=lengths.device), 0]
        return found.where(fits, 0.0)


def inside_charts(rules: PCFG, evidence: Float[Tensor, "sentence time terminal"]) -> dict[str, Band]:
    """Symbol → its band, for weights e_i(w) of terminal w at position i: 1 for all w where the token is hidden."""
    charts = _Charts(rules, evidence.double(), everywhere=True)
    return {symbol: charts[symbol] for symbol in (*rules.terminals, *rules.bottom_up)}


def sentence_probs(
    rules: PCFG, evidence: Float[Tensor, "sentence time terminal"], lengths: Int[Tensor, "sentence"]
) -> Float[Tensor, "sentence"]:
    """Σ over strings of the given lengths of P(string) ∏ e_i(w_i)."""
    with torch.no_grad():
        parts = [_Charts(rules, evidence[rows].double()).whole(lengths[rows]) for rows in _parts(rules, evidence)]
    return torch.cat(parts)


def token_posteriors(
    rules: PCFG,
    evidence: Float[Tensor, "sentence time terminal"],
    lengths: Int[Tensor, "sentence"],
    own: Float[Tensor, "sentence time terminal"] | None = None,
) -> Float[Tensor, "sentence time terminal"]:
    """P(token at i = w | evidence and length) = e_i(w) ∂ log I(start, 1, h)/∂e_i(w); zeros beyond the length.

    own   likelihoods to use at the predicted position itself, where they differ from those used elsewhere
    """
    found = []
    for rows in _parts(rules, evidence):
        weights = evidence[rows].double().requires_grad_()
        with torch.enable_grad():
            total = _Charts(rules, weights).whole(lengths[rows]).log().sum()
            (slope,) = torch.autograd.grad(total, weights)
        found.append((weights.detach() if own is None else own[rows].double()) * slope)
    joint = torch.cat(found)
    return joint / joint.sum(-1, keepdim=True).clamp(min=1e-300)


def next_token_probs(
    rules: PCFG, tokens: Int[Tensor, "sentence time"]
) -> tuple[Float[Tensor, "sentence place terminal"], Float[Tensor, "sentence place"]]:
    """P(x_<t, x_t = w) for t = 0 … time − 1, and P(the sentence is x_<t) for t = 0 … time − 1; tokens beyond are −1.

    Top down: the weight that A begins at t is α_A(t) = Σ_rules P Σ_i α_parent(i) · I(children before A, i … t − 1).
    """
    found = [_from_left(rules, tokens[rows]) for rows in _parts(rules, tokens)]
    return torch.cat([next_ for next_, _ in found]), torch.cat([stop for _, stop in found])


@torch.no_grad()
def _from_left(rules: PCFG, tokens: Int[Tensor, "sentence time"]) -> tuple[Tensor, Tensor]:
    words = torch.arange(len(rules.terminals), device=tokens.device)
    charts = _Charts(rules, (tokens.unsqueeze(-1) == words).double())
    begins = {symbol: torch.zeros(tokens.shape, dtype=torch.float64, device=tokens.device) for symbol in rules.heights}
    begins[rules.start][:, 0] = 1.0
    for symbol in reversed(rules.bottom_up):
        for rule in rules.by_symbol[symbol]:
            begins[rule.children[0]] += rule.prob * begins[symbol]
            for place in range(1, len(rule.children)):
                moved = _moved(begins[symbol], charts.prefix(rule.children[:place]))
                begins[rule.children[place]] += rule.prob * moved
    stops = torch.zeros(tokens.shape, dtype=torch.float64, device=tokens.device)
    band, time = charts[rules.start], tokens.shape[1]
    kept = max(0, min(len(band.cells), time - band.first))
    stops[:, band.first : band.first + kept] = band.cells[:kept, :, 0].mT
    return torch.stack([begins[word] for word in rules.terminals], -1), stops


def _moved(start: Float[Tensor, "sentence time"], band: Band) -> Float[Tensor, "sentence time"]:
    """Σ_i start(i) · band(i … t − 1)."""
    moved = torch.zeros_like(start)
    for row, shift, width in _shifts(band.cells, start, band.first):
        moved[:, shift : shift + width].addcmul_(start[:, :width], band.cells[row, :, :width])
    return moved


def _latest_starts(rules: PCFG, time: int) -> dict[str, int]:
    """Symbol → in how many of the first places it may begin."""
    found = dict.fromkeys(rules.heights, 0)
    found[rules.start] = 1
    for symbol in reversed(rules.bottom_up):
        for rule in rules.by_symbol[symbol]:
            reach = found[symbol]
            for child in rule.children:
                found[child] = min(time, max(found[child], reach))
                reach += rules.spans(child)[1]
    return found


def _parts(rules: PCFG, tokens: Tensor) -> Iterator[slice]:
    """Slices of the sentences of which the largest bands fit into the bound."""
    time = tokens.shape[1]
    below = [child for rule in rules.by_symbol[rules.start] for child in rule.children]
    longest = max(min(time, rules.spans(symbol)[1]) for symbol in below)
    rows = max(1, AT_ONCE // (time * longest))
    return (slice(start, start + rows) for start in range(0, len(tokens), rows))
