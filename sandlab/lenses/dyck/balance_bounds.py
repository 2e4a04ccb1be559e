"""What imbalance costs: two words that an unbalanced model cannot tell apart (Wen et al. 2023, Theorems 1 and 2).

Put p = (ᵈ' [()]ⁿ )ᵈ' before t·( ) and before t'·( ). The pumped pairs leave A_p = Σ_{e ≤ d'} S_e + n S_{d'+1} in the
un-normalised output, the rest leaves Q(t) or Q(t'). When ‖A_p‖ is much larger than both, the norm makes the two
outputs nearly equal, whatever follows; but the brackets to be closed differ, and with them the distributions of the
next bracket.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import TypeAlias, cast

import torch
from jaxtyping import Float
from torch import Tensor

from sandlab.errors import integer, number, require
from sandlab.lenses.dyck.balance import contribution
from sandlab.models.dyck.codes import BalanceTransformer, pair_code
from sandlab.registry import register

__all__ = ["Twins", "cancelling_residue", "network_lipschitz", "pumped_twins", "violation_bound"]

Stack: TypeAlias = tuple[int, ...]
"""Types of the open brackets, the outermost first."""


@dataclass(frozen=True)
class Twins:
    """Two words of one length that differ in the bracket to be closed next; N is the training length they fit.

    residue, scale     ‖S‖ of the pumped pair and P: the premise of the bound is ‖S‖/P > C/N
    distance           of the two normed outputs
    probs_distance     of the two true distributions of the next bracket, √2(1 − q)
    errors             ‖f − p‖₂ of the model on each
    log_probability    of each as a prefix; it is the same for both
    words              START and the brackets, for N up to 2000
    """

    length: int
    query: tuple[int, int]
    pair: tuple[int, int]
    residue: float
    scale: float
    distance: float
    probs_distance: float
    errors: tuple[float, float]
    log_probability: float
    words: tuple[list[int], list[int]] | None = None

    @property
    def log_loss(self) -> float:
        """ln of what the two prefixes alone add to the squared loss per position above the best, over N positions."""
        largest = max(*self.errors, 1e-150)
        parts = sum((max(error, 1e-150) / largest) ** 2 for error in self.errors)
        return self.log_probability + math.log(parts) + 2 * math.log(largest) - math.log(self.length)


def network_lipschitz(model: BalanceTransformer) -> float:
    """γ: product of the spectral norms of the maps behind the last norm (ReLU is 1-Lipschitz)."""
    weights = [part.weight.detach().double() for part in model.layers[-1].maps]
    return math.prod(float(torch.linalg.matrix_norm(weight, 2)) for weight in weights)


@register("lenses")
def pumped_twins(
    model: BalanceTransformer, length: int, query: tuple[int, int], pair: tuple[int, int], *, opening: float = 0.5
) -> Twins:
    """The two words for a closing query (level d ≥ 2, type j) and a pumped pair (level 1…D, type i), from the weights.

    The words have 2⌊N/2⌋ − d − 1 brackets; the output is computed from its parts, so N may be a million.
    """
    types, depth = model.config.types, model.config.depth
    (d, j), (level, i) = query, pair
    integer("query level", d, low=2, high=depth)
    integer("pair level", level, low=1, high=depth)
    number("opening", opening, low=0.0, high=1.0)
    n = length // 2 - (level - 1) - d - 1
    require(n >= 0, "length", length, f"at least {2 * (level + d)}", "there must be room for the words")
    code = pair_code(j, d, depth) + 1
    seen = contribution(model)[code]
    opens = torch.tensor([pair_code(i, each, depth) for each in range(1, depth + 1)])
    residues = seen[opens] + seen[opens + 1]
    common = residues[: level - 1].sum(0) + n * residues[level - 1]
    rests = _outputs(seen, query, types, depth)
    first, second = _confused(rests)
    normed = [_unit(common + rests[stack]) for stack in (first, second)]
    errors = [
        float((_read(model, direction, code) - _probs(types, opening, stack[-1])).norm())
        for direction, stack in zip(normed, (first, second))
    ]
    short = length <= 2000
    return Twins(
        length=length,
        query=query,
        pair=pair,
        residue=float(residues[level - 1].norm()),
        scale=float(rests[second].norm()),
        distance=float((normed[0] - normed[1]).norm()),
        probs_distance=math.sqrt(2) * (1 - opening),
        errors=(errors[0], errors[1]),
        log_probability=_log_probability(types, depth, opening, n, level, d),
        words=(_word(types, n, pair, first, j), _word(types, n, pair, second, j)) if short else None,
    )


@register("lenses")
def violation_bound(ratio: float, length: int, depth: int, lipschitz: float, opening: float = 0.5) -> float:
    """ε: with ‖S‖/P ≥ `ratio`, some word's squared error is at least ε, so the loss is at least (q(1−q)/k²)ᴺ ε.

    The theorem read backwards: loss ≤ (q(1−q)/k²)ᴺ ε implies ‖S‖ ≤ (C/N) P with C = 16·D·R, R = 4/η + 1 and
    η = (√2(1−q) − 2√ε)/γ. Solved for ε: R = N·ratio/(16D), η = 4/(R − 1), √ε = (√2(1−q) − γη)/2; 0 when that is
    negative (the violation is too small, or N too short, to say anything). Source: Wen et al. 2023, Theorem 2, with
    the exact distance of the two distributions in place of its printed lower bound; N must exceed 8D.
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
    queries = [pair_code(j, d, depth) + 1 for j in range(types) for d in range(2, depth + 1)]
    worst = 0.0
    for kind, level in itertools.product(range(types), range(1, depth + 1)):
        opener = pair_code(kind, level, depth)
        rows = scores[[opener, opener + 1]][:, queries].detach().double()
        unit = (rows - rows.amax(1, keepdim=True)).exp()
        unit = unit / unit.norm(dim=1, keepdim=True)
        across = unit[1] - (unit[0] @ unit[1]) * unit[0]  # better conditioned than √(1 − cos²)
        worst = max(worst, float(across.norm()))
    return worst


def _outputs(seen: Tensor, query: tuple[int, int], types: int, depth: int) -> dict[Stack, Tensor]:
    """Q(t) for every stack t of d − 1 open brackets: START, t, and the query's own pair."""
    d, j = query
    opener = pair_code(j, d, depth)
    own = seen[2 * types * depth] + seen[opener] + seen[opener + 1]
    found = {}
    for stack in itertools.product(range(types), repeat=d - 1):
        codes = [pair_code(kind, level, depth) for level, kind in enumerate(stack, start=1)]
        found[stack] = own + seen[codes].sum(0)
    return found


def _confused(outputs: dict[Stack, Tensor]) -> tuple[Stack, Stack]:
    """The stack with the smallest output, and the one with the smallest among those with another bracket on top."""
    lengths = {stack: float(output.norm()) for stack, output in outputs.items()}
    first = min(lengths, key=lengths.__getitem__)
    return first, min((stack for stack in lengths if stack[-1] != first[-1]), key=lengths.__getitem__)


def _read(model: BalanceTransformer, direction: Tensor, code: int) -> Tensor:
    """The network behind the norm, applied to a normed output and the stream of the last token."""
    maps = list(model.layers[-1].maps)
    with torch.no_grad():
        x = direction + model.embedding[code].double()
        for index, part in enumerate(maps):
            x = x @ part.weight.double().mT + cast(Tensor, part.bias).double()
            x = x.relu() if index + 1 < len(maps) else x
    return x


def _unit(a: Tensor) -> Tensor:
    return a / a.norm().clamp(min=1e-300)


def _probs(types: int, opening: float, top: int) -> Float[Tensor, "bracket"]:
    """Distribution of the next bracket at a depth between 0 and D with this bracket on top."""
    probs = torch.zeros(2 * types, dtype=torch.float64)
    probs[0::2] = opening / types
    probs[2 * top + 1] = 1 - opening
    return probs


def _word(types: int, n: int, pair: tuple[int, int], stack: Stack, j: int) -> list[int]:
    (level, i), start = pair, [2 * types]
    pumped = [2 * i] * (level - 1) + [2 * i, 2 * i + 1] * n + [2 * i + 1] * (level - 1)
    return start + pumped + [2 * kind for kind in stack] + [2 * j, 2 * j + 1]


def _log_probability(types: int, depth: int, opening: float, n: int, level: int, d: int) -> float:
    """ln P of such a word: 1/k to open at depth 1, q/k to open deeper, 1 − q to close when it is not forced."""

    def up(to: int) -> float:
        return math.log(1 / types if to == 1 else opening / types)

    def down(start: int) -> float:
        return 0.0 if start == depth else math.log(1 - opening)

    pumped = sum(up(e) + down(e) for e in range(1, level)) + n * (up(level) + down(level))
    return pumped + sum(up(e) for e in range(1, d + 1)) + down(d)
