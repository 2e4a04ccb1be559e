"""Claims and findings: what a source says, and what was measured. A verdict is computed, never written by hand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import numpy as np
from scipy import stats

from sandlab.errors import BadInput, choice

__all__ = [
    "Above",
    "Below",
    "Between",
    "Claim",
    "Equals",
    "Finding",
    "Relation",
    "judge",
]


class Relation(Protocol):
    """An interval of the real line that the quantity must lie in."""

    @property
    def bounds(self) -> tuple[float, float]: ...

    def __str__(self) -> str: ...


@dataclass(frozen=True)
class Equals:
    """quantity = value ± tolerance."""

    value: float
    tolerance: float

    @property
    def bounds(self) -> tuple[float, float]:
        return self.value - self.tolerance, self.value + self.tolerance

    def __str__(self) -> str:
        return f"= {self.value:g} ± {self.tolerance:g}"


@dataclass(frozen=True)
class Above:
    """quantity > value."""

    value: float

    @property
    def bounds(self) -> tuple[float, float]:
        return self.value, math.inf

    def __str__(self) -> str:
        return f"> {self.value:g}"


@dataclass(frozen=True)
class Below:
    """quantity < value. "A happens before B" is the difference of the two times, below 0."""

    value: float

    @property
    def bounds(self) -> tuple[float, float]:
        return -math.inf, self.value

    def __str__(self) -> str:
        return f"< {self.value:g}"


@dataclass(frozen=True)
class Between:
    """low ≤ quantity ≤ high."""

    low: float
    high: float

    @property
    def bounds(self) -> tuple[float, float]:
        return self.low, self.high

    def __str__(self) -> str:
        return f"in [{self.low:g}, {self.high:g}]"


@dataclass(frozen=True)
class Claim:
    """One sentence of a source that can be measured.

    id          "study-name.short-word", unique
    statement   one sentence in our own words
    source      authors, year, section or figure
    quantity    what is measured, in words
    relation    the interval it must lie in
    paper       the source's own value, as text (empty when it gives none)
    over        how values of several seeds become one: their "mean", or the "share" of seeds for which a yes/no holds
    exact       the quantity is computed, not sampled: one value decides
    held        whether the source says the claim is true (False: a corrected misprint, expected to fail)
    presets     presets in which the claim is measured
    """

    id: str
    statement: str
    source: str
    quantity: str
    relation: Relation
    paper: str = ""
    over: str = "mean"
    exact: bool = False
    held: bool = True
    confidence: float = 0.95
    presets: tuple[str, ...] = ("quick", "full")

    def __post_init__(self) -> None:
        choice("over", self.over, ("mean", "share"))


@dataclass(frozen=True)
class Finding:
    """What was measured for a claim: the estimate, its confidence interval, the verdict it implies."""

    claim: str
    statement: str
    source: str
    quantity: str
    relation: str
    paper: str
    held: bool
    verdict: str
    mean: float
    spread: float
    low: float
    high: float
    count: int
    confidence: float
    note: str = ""
    values: tuple[float, ...] = field(default=(), repr=False)

    @property
    def surprising(self) -> bool:
        """The source says it holds and we measured that it fails."""
        return self.held and self.verdict == "fails"

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def judge(claim: Claim, values: Sequence[float] | np.ndarray | float, note: str = "") -> Finding:
    """Compare the measured values (one per seed) with the claim.

    mean:   Student-t interval of the mean; share: Wilson interval of the share of seeds that say yes.
    holds when the whole interval lies in the relation, fails when it lies wholly outside, else inconclusive.
    One value of a sampled quantity has no interval: inconclusive, however good it looks.
    """
    sample = np.atleast_1d(np.asarray(values, dtype=np.float64))
    if sample.ndim != 1 or sample.size == 0:
        raise BadInput(f"claim {claim.id} needs one value per seed, got an array of shape {sample.shape}")
    if claim.over == "share" and not np.isin(sample, (0.0, 1.0)).all():
        raise BadInput(f"claim {claim.id} counts yes/no answers, got {sample.tolist()}")
    mean = float(sample.mean())
    spread = float(sample.std(ddof=1)) if sample.size > 1 else 0.0
    low, high = _interval(claim, sample, mean, spread)
    return Finding(
        claim=claim.id,
        statement=claim.statement,
        source=claim.source,
        quantity=claim.quantity,
        relation=str(claim.relation),
        paper=claim.paper,
        held=claim.held,
        verdict=_verdict(claim, mean, low, high, sample.size),
        mean=mean,
        spread=spread,
        low=low,
        high=high,
        count=int(sample.size),
        confidence=claim.confidence,
        note=note,
        values=tuple(sample.tolist()),
    )


def _interval(claim: Claim, sample: np.ndarray, mean: float, spread: float) -> tuple[float, float]:
    if claim.exact:
        return float(sample.min()), float(sample.max())
    if claim.over == "share":
        result = stats.binomtest(int(sample.sum()), sample.size).proportion_ci(claim.confidence, method="wilson")
        return float(result.low), float(result.high)
    if sample.size == 1:
        return -math.inf, math.inf
    reach = float(stats.t.ppf(0.5 + claim.confidence / 2, sample.size - 1)) * spread / math.sqrt(sample.size)
    return mean - reach, mean + reach


def _verdict(claim: Claim, mean: float, low: float, high: float, count: int) -> str:
    lower, upper = claim.relation.bounds
    if not math.isfinite(mean):
        return "fails"
    strict = isinstance(claim.relation, (Above, Below))
    inside = (low > lower and high < upper) if strict else (low >= lower and high <= upper)
    if inside:
        return "holds"
    if claim.exact:
        return "fails"
    return "fails" if high < lower or low > upper else "inconclusive"
