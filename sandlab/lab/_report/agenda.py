"""What to run next: recorded presets that are missing or stale, by what their run would tell and what it would cost.

A run tells something about the claims that it measures and that no current run has measured at its size. Such a claim
counts once, once more when the source gives its own value for it, and once more when no current run decides it either
way. The sum is the run's value, and what tells most in a minute comes first; a run whose cost is unknown comes after
those whose cost is known. Trainings that a run before it asks for as well cost it nothing: they are in the store then.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from sandlab.lab._report.costs import Rates, TrainingWork, asked, fit_rates
from sandlab.lab._report.published import PublishedRun, command, published, verdicts
from sandlab.lab._store.plain import Facts
from sandlab.registry import get, names
from sandlab.studies.claims import Claim
from sandlab.studies.study import AnyStudy

__all__ = ["Agenda", "Row", "agenda"]

_DECIDED = ("holds", "fails")


@dataclass(frozen=True)
class Row:
    """One preset of a study.

    status      "current", "stale", or "missing"
    device      where it was recorded; for a run that is missing, a GPU for full presets that train, else a CPU
    seconds     what the recorded run took
    cost        about how many seconds it will take
    basis       where the cost comes from: "recorded", "estimated" from its trainings, "other settings" when it was
                recorded with these, and "unknown" without a cost
    order       its place in the list of what to run next, from 0; None for a run that is current
    extra       what it costs when everything before it in that list has been run
    value       what its run would tell; claims: how many it would measure for the first time at its size, of these
                `published` with a value of the source, `open` that no current run decides
    """

    study: str
    preset: str
    status: str
    device: str
    seconds: float | None
    cost: float | None
    basis: str
    value: int
    claims: int
    published: int
    open: int
    command: str
    order: int | None = None
    extra: float | None = None

    @property
    def rank(self) -> tuple[bool, float, str]:
        """Most telling in a minute first; a minute is the least that a run costs the person who starts it."""
        worth = self.value if self.extra is None else self.value / max(1.0, self.extra / 60)
        return self.extra is None, -worth, self.command

    def as_dict(self) -> Facts:
        return asdict(self)


@dataclass(frozen=True)
class Agenda:
    """Every preset, and the rates of a GPU that estimates come from."""

    rows: list[Row]
    rates: Rates | None

    @property
    def due(self) -> list[Row]:
        """What is missing or stale, most telling in a minute first."""
        return sorted((row for row in self.rows if row.order is not None), key=lambda row: row.order or 0)


def agenda(folder: Path | None = None) -> Agenda:
    """What is recorded, and what to run next."""
    recorded = {(run.study, run.preset): run for run in published(folder=folder)}
    whole = [run for run in recorded.values() if _device(run) == "cuda" and _computed_all(run) and run.same_settings]
    quick = {run.study: run.seconds for run in recorded.values() if run.preset == "quick"}
    rates = fit_rates(
        (_work(get("studies", run.study), run.preset), quick.get(run.study, 0.0), run.seconds) for run in whole
    )
    studies = [get("studies", name) for name in names("studies")]
    rows = [row for study in studies for row in _rows(study, recorded, rates)]
    return Agenda([row for row in rows if row.status == "current"] + list(_in_order(rows, quick, rates)), rates)


def _in_order(rows: list[Row], quick: dict[str, float], rates: Rates | None) -> Iterator[Row]:
    """What is not current, each time the run that tells most in a minute when those before it have been run."""
    waiting, trained = [row for row in rows if row.status != "current"], set[TrainingWork]()
    for order in range(len(waiting)):
        priced = [
            replace(row, order=order, extra=_extra(row, trained, quick.get(row.study, 0.0), rates)) for row in waiting
        ]
        best = min(priced, key=lambda row: row.rank)
        waiting.pop(priced.index(best))
        trained.update(_work(get("studies", best.study), best.preset) if best.basis == "estimated" else [])
        yield best


def _extra(row: Row, trained: set[TrainingWork], quick: float, rates: Rates | None) -> float | None:
    """What a run costs when these trainings are in the store."""
    if row.basis != "estimated" or rates is None:
        return row.cost
    return rates.estimate([each for each in _work(get("studies", row.study), row.preset) if each not in trained], quick)


def _rows(study: AnyStudy, recorded: dict[tuple[str, str], PublishedRun], rates: Rates | None) -> Iterator[Row]:
    own = [recorded[study.name, preset] for preset in ("quick", "full") if (study.name, preset) in recorded]
    found = {
        claim: [(run.preset, finding.verdict) for run, finding in runs if run.status == "current"]
        for claim, runs in verdicts(study, runs=own).items()
    }
    for preset in study.presets:
        run = recorded.get((study.name, preset))
        status = "missing" if run is None else run.status
        told = [] if status == "current" else [claim for claim in study.due(preset) if _new(claim, preset, found)]
        paper = [claim for claim in told if preset != "null" and claim.paper]
        unclear = [claim for claim in told if preset != "null" and not _decided(claim, found)]
        quick = next((each.seconds for each in own if each.preset == "quick"), 0.0)
        device, cost, basis = _cost(study, preset, run, quick, rates)
        yield Row(
            study=study.name,
            preset=preset,
            status=status,
            device=device,
            seconds=None if run is None else run.seconds,
            cost=cost,
            basis=basis,
            value=len(told) + len(paper) + len(unclear),
            claims=len(told),
            published=len(paper),
            open=len(unclear),
            command=command(study.name, preset, device),
        )


def _new(claim: Claim, preset: str, found: dict[str, list[tuple[str, str]]]) -> bool:
    """Whether the preset's run says something about a claim that no current run of its size or above says."""
    measured = [where for where, _ in found.get(claim.id, [])]
    return preset == "null" or not ("full" in measured or preset in measured)


def _decided(claim: Claim, found: dict[str, list[tuple[str, str]]]) -> bool:
    return any(verdict in _DECIDED for _, verdict in found.get(claim.id, []))


def _cost(
    study: AnyStudy, preset: str, run: PublishedRun | None, quick: float, rates: Rates | None
) -> tuple[str, float | None, str]:
    """Device, seconds, and where these come from."""
    if run is not None and _computed_all(run) and run.same_settings:
        return _device(run), run.seconds, "recorded"
    work = _work(study, preset) if preset == "full" or (run is not None and _device(run) == "cuda") else []
    device = _device(run) if run is not None else "cuda" if work else "cpu"
    estimate = rates.estimate(work, quick) if rates is not None and work and device == "cuda" else None
    if estimate is None and run is not None and _computed_all(run):
        return device, run.seconds, "other settings"
    return device, estimate, "unknown" if estimate is None else "estimated"


@functools.cache
def _work(study: AnyStudy, preset: str) -> list[TrainingWork]:
    """The trainings of a preset, each of them once."""
    return list(dict.fromkeys(asked(study, study.presets[preset])))


def _computed_all(run: PublishedRun) -> bool:
    """Whether the run's seconds are those of all its jobs: none was taken from the store."""
    return run.seconds > 0 and not (run.about.get("jobs") or {"cached": 1}).get("cached")


def _device(run: PublishedRun) -> str:
    return str(run.about.get("device", "cpu")).partition(":")[0]
