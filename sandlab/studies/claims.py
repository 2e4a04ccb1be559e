"""Claims and findings: what a source says, and what was measured. A verdict is computed, never written by hand.

A claim is a function of a study's results, decorated with the quantity it measures and the interval it must lie in:

    @study.claim(Share(above=0.5), at="Figure 3", paper="every run")
    def end_is_trigram(results: Results) -> list[bool]:
        \"\"\"At the end the predictions are nearest to the trigram.

        Share of runs whose last plateau's nearest estimator is the trigram.
        \"\"\"
        return [stages.last.name == "trigram" for stages in results.stages]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, ClassVar, TypeAlias

import numpy as np
from scipy import stats

from sandlab.errors import BadInput

__all__ = [
    "Best",
    "Claim",
    "Exact",
    "Finding",
    "Mean",
    "Median",
    "NotMeasured",
    "Noted",
    "Order",
    "Quantity",
    "Ratio",
    "Share",
    "Slope",
    "Values",
    "judge",
]

Sample: TypeAlias = "np.ndarray[Any, np.dtype[np.float64]]"
Values: TypeAlias = "float | bool | Sequence[float] | Sequence[bool] | np.ndarray[Any, Any]"


class NotMeasured(Exception):
    """Raised by a claim that the chosen settings leave no results for; the message says what is missing."""


@dataclass(frozen=True)
class Noted:
    """Measured values with a sentence about them, for what is only known once they are there."""

    values: Values
    note: str


@dataclass(frozen=True, kw_only=True)
class Quantity:
    """What the values of all seeds become, and the interval it must lie in: one of

    above, below      strictly beyond a number; both: strictly between
    equals, within    value ± tolerance
    between           (low, high), ends included
    """

    above: float | None = None
    below: float | None = None
    equals: float | None = None
    within: float | None = None
    between: tuple[float, float] | None = None

    kind: ClassVar[str] = ""

    def __post_init__(self) -> None:
        given = (self.above is not None or self.below is not None, self.equals is not None, self.between is not None)
        if sum(given) != 1 or (self.equals is None) != (self.within is None):
            raise BadInput(
                f"{type(self).__name__} takes above and/or below, or equals with within, or between; got {self!r}"
            )

    @property
    def bounds(self) -> tuple[float, float]:
        if self.between is not None:
            return self.between
        if self.equals is not None and self.within is not None:
            return self.equals - self.within, self.equals + self.within
        return (-math.inf if self.above is None else self.above), (math.inf if self.below is None else self.below)

    def contains(self, low: float, high: float) -> bool:
        """Whether the whole interval [low, high] lies where the quantity must lie."""
        lower, upper = self.bounds
        if self.between is not None or self.equals is not None:
            return low >= lower and high <= upper
        return (low > lower or lower == -math.inf) and (high < upper or upper == math.inf)

    def excludes(self, low: float, high: float) -> bool:
        """Whether [low, high] lies wholly outside."""
        lower, upper = self.bounds
        return high < lower or low > upper

    def check(self, values: Sample) -> None:
        """Refuse values of the wrong form: one number per seed unless a kind says otherwise."""
        if values.ndim != 1 or values.size == 0:
            raise BadInput(f"a {self.kind} needs one value per seed, got an array of shape {values.shape}")

    def estimate(self, values: Sample) -> float:
        """The quantity itself."""
        return float(values.mean())

    def interval(self, values: Sample, confidence: float) -> tuple[float, float]:
        """Confidence interval of the quantity."""
        raise NotImplementedError

    def remark(self, values: Sample) -> str:
        """What a reader must know beside the number, such as how many seeds reach the best one."""
        return ""

    def __str__(self) -> str:
        if self.between is not None:
            return f"in [{self.between[0]:g}, {self.between[1]:g}]"
        if self.equals is not None:
            return f"= {self.equals:g} ± {self.within:g}"
        parts = [f"> {self.above:g}"] if self.above is not None else []
        parts += [f"< {self.below:g}"] if self.below is not None else []
        return ", ".join(parts)


@dataclass(frozen=True, kw_only=True)
class Exact(Quantity):
    """Numbers that no random draw enters: each of them must lie in the interval."""

    kind: ClassVar[str] = "exact"

    def interval(self, values: Sample, confidence: float) -> tuple[float, float]:
        return float(values.min()), float(values.max())


@dataclass(frozen=True, kw_only=True)
class Mean(Quantity):
    """Mean over seeds (of a difference, for paired runs), with Student's t interval; one seed has no interval."""

    kind: ClassVar[str] = "mean"

    def interval(self, values: Sample, confidence: float) -> tuple[float, float]:
        if values.size == 1:
            return -math.inf, math.inf
        reach = _student(values.size - 1, confidence) * float(values.std(ddof=1)) / math.sqrt(values.size)
        return float(values.mean()) - reach, float(values.mean()) + reach


@dataclass(frozen=True, kw_only=True)
class Median(Quantity):
    """Median over seeds, with the interval between the two order statistics that the binomial distribution gives."""

    kind: ClassVar[str] = "median"

    def estimate(self, values: Sample) -> float:
        return float(np.median(values))

    def interval(self, values: Sample, confidence: float) -> tuple[float, float]:
        ordered = np.sort(values)
        below = int(stats.binom.ppf((1 - confidence) / 2, values.size, 0.5))
        if below < 1 or stats.binom.cdf(below - 1, values.size, 0.5) > (1 - confidence) / 2:
            return -math.inf, math.inf
        return float(ordered[below - 1]), float(ordered[values.size - below])


@dataclass(frozen=True, kw_only=True)
class Share(Quantity):
    """Share of seeds for which a yes/no question is answered yes, with the interval of Clopper and Pearson."""

    kind: ClassVar[str] = "share"

    def check(self, values: Sample) -> None:
        super().check(values)
        if not np.isin(values, (0.0, 1.0)).all():
            raise BadInput(f"a share counts yes/no answers, got {values.tolist()}")

    def interval(self, values: Sample, confidence: float) -> tuple[float, float]:
        found = stats.binomtest(int(values.sum()), values.size).proportion_ci(confidence, method="exact")
        return float(found.low), float(found.high)

    def remark(self, values: Sample) -> str:
        return f"{int(values.sum())} of {values.size}"


@dataclass(frozen=True, kw_only=True)
class Ratio(Quantity):
    """Geometric mean over seeds of a positive ratio (of two paired runs, say), with Student's t on the log scale."""

    kind: ClassVar[str] = "ratio"

    def check(self, values: Sample) -> None:
        super().check(values)
        if (values <= 0).any():
            raise BadInput(f"a ratio needs positive values, got {values.tolist()}")

    def estimate(self, values: Sample) -> float:
        return float(np.exp(np.log(values).mean()))

    def interval(self, values: Sample, confidence: float) -> tuple[float, float]:
        low, high = Mean(above=0.0).interval(np.log(values), confidence)
        return math.exp(low), math.exp(high) if high < 700 else math.inf


@dataclass(frozen=True, kw_only=True)
class Slope(Quantity):
    """Slope of the least-squares line through the points (x, y), rows of an array, with Student's t interval."""

    kind: ClassVar[str] = "slope"

    def check(self, values: Sample) -> None:
        if values.ndim != 2 or values.shape[1] != 2 or len(values) < 2:
            raise BadInput(f"a slope needs rows of x and y, got an array of shape {values.shape}")

    def estimate(self, values: Sample) -> float:
        return float(stats.linregress(values[:, 0], values[:, 1]).slope)

    def interval(self, values: Sample, confidence: float) -> tuple[float, float]:
        if len(values) < 3:
            return -math.inf, math.inf
        line = stats.linregress(values[:, 0], values[:, 1])
        reach = _student(len(values) - 2, confidence) * float(line.stderr)
        return float(line.slope) - reach, float(line.slope) + reach


@dataclass(frozen=True, kw_only=True)
class Order(Quantity):
    """Groups (rows, with one value per seed) whose means grow from row to row: the smallest step, paired by seed.

    The interval holds for all steps at once (Bonferroni).
    """

    kind: ClassVar[str] = "order"

    def check(self, values: Sample) -> None:
        if values.ndim != 2 or len(values) < 2 or values.shape[1] == 0:
            raise BadInput(f"an order needs one row of seeds per group, got an array of shape {values.shape}")

    def estimate(self, values: Sample) -> float:
        return float(np.diff(values.mean(1)).min())

    def interval(self, values: Sample, confidence: float) -> tuple[float, float]:
        steps = np.diff(values, axis=0)
        each = 1 - (1 - confidence) / len(steps)
        intervals = [Mean(above=0.0).interval(step, each) for step in steps]
        return min(low for low, _ in intervals), min(high for _, high in intervals)


@dataclass(frozen=True, kw_only=True)
class Best(Quantity):
    """Largest of `of` seeds (smallest, with `lowest`): its mean and interval over draws of so many seeds from all.

    `of` is how many runs the source took the best of. With fewer seeds the interval is open at the better end: runs
    that were not made may be better still. The remark says how many seeds reach the interval on their own.
    """

    of: int
    lowest: bool = False

    kind: ClassVar[str] = "best"

    def estimate(self, values: Sample) -> float:
        return float(self._draws(values).mean())

    def interval(self, values: Sample, confidence: float) -> tuple[float, float]:
        if values.size == 1:
            return -math.inf, math.inf
        low, high = np.quantile(self._draws(values), [(1 - confidence) / 2, (1 + confidence) / 2])
        if values.size < self.of:
            return (-math.inf, float(high)) if self.lowest else (float(low), math.inf)
        return float(low), float(high)

    def remark(self, values: Sample) -> str:
        reached = sum(self.contains(value, value) for value in values.tolist())
        return f"best of {self.of}; {reached} of {values.size} seeds reach it"

    def _draws(self, values: Sample) -> Sample:
        """The best of `of` seeds drawn with replacement, 4000 times; always the same draws."""
        chosen = np.random.default_rng(0).choice(values, size=(4000, self.of))
        return chosen.min(1) if self.lowest else chosen.max(1)


def _student(freedom: int, confidence: float) -> float:
    return float(stats.t.ppf(0.5 + confidence / 2, freedom))


@dataclass(frozen=True)
class Claim:
    """One sentence of a source that can be measured.

    id          "study-name.short-name", unique
    statement   one sentence in our own words
    quantity    what is measured, in words
    relation    the quantity and the interval it must lie in
    source      authors, year, section or figure
    measure     the function of the study's results that gives the values, one per seed
    paper       the source's own value, as text (empty when it gives none)
    held        whether the source says the claim is true (False: a corrected misprint, expected to fail)
    presets     presets in which the claim is measured
    note        what was learnt, shown beside the finding
    """

    id: str
    statement: str
    quantity: str
    relation: Quantity
    source: str
    measure: Callable[[Any], Values | Noted] = field(repr=False)
    paper: str = ""
    held: bool = True
    presets: tuple[str, ...] = ("quick", "full")
    note: str = ""
    confidence: float = 0.95


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
    kind: str = ""
    values: tuple[float, ...] = field(default=(), repr=False)

    @property
    def surprising(self) -> bool:
        """The source says it holds and we measured that it fails."""
        return self.held and self.verdict == "fails"

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Finding:
        """A finding as it was stored; fields that this version does not know are left out."""
        numbers = {name: float(row[name]) for name in ("mean", "spread", "low", "high", "confidence")}
        known = {each.name for each in fields(cls)}
        kept = {name: value for name, value in row.items() if name in known}
        return cls(**{**kept, **numbers, "values": tuple(float(value) for value in row["values"])})


def judge(claim: Claim, measured: Values | Noted) -> Finding:
    """Compare the measured values (one per seed) with the claim.

    holds when the whole interval lies in the relation, fails when it lies wholly outside, else inconclusive. An exact
    quantity that is not wholly inside fails. A value that is not a number is no measurement.
    """
    values, note = (measured.values, measured.note) if isinstance(measured, Noted) else (measured, claim.note)
    sample = np.atleast_1d(np.asarray(values, dtype=np.float64))
    try:
        claim.relation.check(sample)
    except BadInput as problem:
        raise BadInput(f"claim {claim.id}: {problem}") from None
    if np.isnan(sample).any():
        raise NotMeasured("a value is not a number")
    low, high = claim.relation.interval(sample, claim.confidence)
    remark = claim.relation.remark(sample)
    return Finding(
        claim=claim.id,
        statement=claim.statement,
        source=claim.source,
        quantity=claim.quantity,
        relation=str(claim.relation),
        paper=claim.paper,
        held=claim.held,
        verdict=_verdict(claim.relation, low, high),
        mean=claim.relation.estimate(sample),
        spread=float(sample.std(ddof=1)) if sample.size > 1 else 0.0,
        low=low,
        high=high,
        count=int(sample.shape[-1] if sample.ndim > 1 and isinstance(claim.relation, Order) else len(sample)),
        confidence=claim.confidence,
        note=". ".join(part for part in (remark, note) if part),
        kind=claim.relation.kind,
        values=tuple(sample.ravel().tolist()),
    )


def _verdict(relation: Quantity, low: float, high: float) -> str:
    if relation.contains(low, high):
        return "holds"
    return "fails" if isinstance(relation, Exact) or relation.excludes(low, high) else "inconclusive"
