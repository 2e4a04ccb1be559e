"""What imbalance costs: two words that an unbalanced model cannot tell apart (Wen et al. 2023, Theorems 1 and 2).

Put p = (ᵈ' [()]ⁿ )ᵈ' before t·( ) and before t'·( ): the pumped pairs leave A_p = Σ_{e ≤ d'} S_e + n S_{d'+1} in the
un-normalised output, the rest leaves Q(t) or Q(t'). When ‖A_p‖ is much larger than both, the norm makes the two
outputs nearly equal, whatever follows; but the brackets to be closed differ, and with them the laws.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from sandlab.errors import integer, number, require
from sandlab.lenses.dyck.balance import contribution
from sandlab.registry import register

__all__ = ["Twins", "cancelling_residue", "network_lipschitz", "pumped_twins", "violation_bound"]


@dataclass(frozen=True)
class Twins:
    """Two words of one length that differ in the bracket to be closed next; N is the training length they fit.

    residue, scale     ‖S‖ of the pumped pair and P: the premise of the bound is ‖S‖/P > C/N
    apart              distance of the two normed outputs; law_apart that of the true laws, √2(1 − q)
    errors             ‖f − law‖₂ of the model on each
    log_probabilities  of each as a prefix
    """

    length: int
    query: tuple[int, int]
    pair: tuple[int, int]
    residue: float
    scale: float
    apart: float
    law_apart: float
    errors: tuple[float, float]
    log_probabilities: tuple[float, float]
    words: tuple[list[int], list[int]] | None = None

    @property
    def log_loss(self) -> float:
        """ln of what the two prefixes alone add to the squared loss per position above the best, over N positions."""
        parts = [log + 2 * math.log(max(error, 1e-300)) for log, error in zip(self.log_probabilities, self.errors)]
        return math.log(sum(math.exp(part - max(parts)) for part in parts)) + max(parts) - math.log(self.length)


def network_lipschitz(model: Any) -> float:
    """γ: product of the spectral norms of the maps behind the last norm (ReLU is 1-Lipschitz)."""
    norms = [float(torch.linalg.matrix_norm(part.weight.detach().double(), 2)) for part in model.layers[-1].maps]
    return math.prod(norms)


@register("lenses")
def pumped_twins(
    model: Any, length: int, query: tuple[int, int], pair: tuple[int, int], *, opening: float = 0.5
) -> Twins:
    """The two words for a closing query (level d ≥ 2, type j) and a pumped pair (level 1…D, type i), from the weights.

    The words have 2⌊N/2⌋ − d − 1 brackets; the output is computed from its parts, so N may be a million. For N up to
    2000 the words themselves are returned too (START first).
    """
    types, depth = model.config.types, model.config.depth
    (d, j), (level, i) = query, pair
    integer("query level", d, low=2, high=depth)
    integer("pair level", level, low=1, high=depth)
    number("opening", opening, low=0.0, high=1.0)
    n = length // 2 - (level - 1) - d - 1
    require(n >= 0, "length", length, f"at least {2 * (level + d)}", "there must be room for the words")
    u = contribution(model)
    code = _closing(j, d, depth)
    seen = u[code]
    residues = [seen[_opening(i, e, depth)] + seen[_closing(i, e, depth)] for e in range(1, depth + 1)]
    common = sum(residues[: level - 1], n * residues[level - 1])
    own = seen[2 * types * depth] + seen[_opening(j, d, depth)] + seen[code]
    stacks = list(itertools.product(range(types), repeat=d - 1))
    rests = {t: own + sum(seen[_opening(kind, e, depth)] for e, kind in enumerate(t, 1)) for t in stacks}
    first = min(stacks, key=lambda t: float(rests[t].norm()))
    second = min((t for t in stacks if t[-1] != first[-1]), key=lambda t: float(rests[t].norm()))
    normed = [_unit(common + rests[t]) for t in (first, second)]
    laws = [_law(types, opening, t[-1]) for t in (first, second)]
    outputs = [_read(model, direction, code) for direction in normed]
    words = None
    if length <= 2000:
        words = tuple(_word(types, n, level, i, t, j) for t in (first, second))
    return Twins(
        length=length,
        query=query,
        pair=pair,
        residue=float(residues[level - 1].norm()),
        scale=float(rests[second].norm()),
        apart=float((normed[0] - normed[1]).norm()),
        law_apart=math.sqrt(2) * (1 - opening),
        errors=tuple(float((out - law).norm()) for out, law in zip(outputs, laws)),  # type: ignore[arg-type]
        log_probabilities=(_log_probability(types, depth, opening, n, level, d),) * 2,
        words=words,  # type: ignore[arg-type]
    )


@register("lenses")
def violation_bound(ratio: float, length: int, depth: int, lipschitz: float, opening: float = 0.5) -> float:
    """ε: with ‖S‖/P ≥ `ratio`, some word's squared error is at least ε, so the loss is at least (q(1−q)/k²)ᴺ ε.

    The theorem read backwards: loss ≤ (q(1−q)/k²)ᴺ ε implies ‖S‖ ≤ (C/N) P with C = 16·D·R, R = 4/η + 1 and
    η = (√2(1−q) − 2√ε)/γ. Solved for ε: R = N·ratio/(16D), η = 4/(R − 1), √ε = (√2(1−q) − γη)/2; 0 when that is
    negative (the violation is too small, or N too short, to say anything). Source: Wen et al. 2023, Theorem 2, with
    the exact distance of the two laws in place of its printed lower bound; N must exceed 8D.
    """
    require(length > 8 * depth, "length", length, f"above 8·depth ({8 * depth})")
    spread = length * ratio / (16 * depth)
    if spread <= 1:
        return 0.0
    root = (math.sqrt(2) * (1 - opening) - lipschitz * 4 / (spread - 1)) / 2
    return max(root, 0.0) ** 2


@register("lenses")
def cancelling_residue(scores: Float[Tensor, "key query"], types: int, depth: int) -> float:
    """How far the scores are from letting matched pairs cancel for some choice of values: 0 exactly under balance.

    A pair cancels for all closing queries q when e^{s(open,q)} v + e^{s(close,q)} w = 0 with v, w ≠ 0, that is when the
    two columns over q are parallel. The largest sine of their angle, over pairs.
    """
    queries = [_closing(j, d, depth) for j in range(types) for d in range(2, depth + 1)]
    worst = 0.0
    for kind, level in itertools.product(range(types), range(1, depth + 1)):
        rows = scores[[_opening(kind, level, depth), _closing(kind, level, depth)]][:, queries].detach().double()
        unit = (rows - rows.amax(1, keepdim=True)).exp()
        unit = unit / unit.norm(dim=1, keepdim=True)
        across = unit[1] - (unit[0] @ unit[1]) * unit[0]  # better conditioned than √(1 − cos²)
        worst = max(worst, float(across.norm()))
    return worst


def _read(model: Any, direction: Tensor, code: int) -> Tensor:
    """The network behind the norm, on a normed output and the stream of the last token."""
    with torch.no_grad():
        x = direction + model.embedding[code].double()
        maps = list(model.layers[-1].maps)
        for place, linear_map in enumerate(maps):
            x = x @ linear_map.weight.double().mT + linear_map.bias.double()
            x = x.relu() if place + 1 < len(maps) else x
    return x


def _unit(a: Tensor) -> Tensor:
    return a / a.norm().clamp(min=1e-300)


def _law(types: int, opening: float, top: int) -> Tensor:
    """The next bracket's law at a depth between 0 and D with this bracket on top."""
    law = torch.zeros(2 * types, dtype=torch.float64)
    law[0::2] = opening / types
    law[2 * top + 1] = 1 - opening
    return law


def _word(types: int, n: int, level: int, i: int, stack: tuple[int, ...], j: int) -> list[int]:
    start, close = [2 * types], 2 * i + 1
    pumped = [2 * i] * (level - 1) + [2 * i, close] * n + [close] * (level - 1)
    return start + pumped + [2 * kind for kind in stack] + [2 * j, 2 * j + 1]


def _log_probability(types: int, depth: int, opening: float, n: int, level: int, d: int) -> float:
    """ln P of such a word: 1/k to open at depth 1, q/k to open deeper, 1 − q to close when it is not forced."""

    def rise(to: int) -> float:
        return math.log(1 / types if to == 1 else opening / types)

    def fall(start: int) -> float:
        return 0.0 if start == depth else math.log(1 - opening)

    pumped = sum(rise(e) + fall(e) for e in range(1, level)) + n * (rise(level) + fall(level))
    return pumped + sum(rise(e) for e in range(1, d + 1)) + fall(d)


def _opening(kind: int, level: int, depth: int) -> int:
    return 2 * (kind * depth + level - 1)


def _closing(kind: int, level: int, depth: int) -> int:
    return _opening(kind, level, depth) + 1
