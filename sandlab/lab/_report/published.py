"""Published results: what the repository (or the installed package) has recorded, and whether it is still current."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from sandlab.errors import BadInput
from sandlab.lab._exec.jobs import canonical
from sandlab.lab._exec.sources import PACKAGE
from sandlab.lab._report.ledger import LEDGER, Entry, definition, read
from sandlab.lab._store.forms import read_json
from sandlab.lab._store.plain import Facts, Json, plain
from sandlab.lab.run import is_current
from sandlab.registry import get, names
from sandlab.studies.claims import Finding
from sandlab.studies.study import AnyStudy

__all__ = [
    "PublishedRun",
    "command",
    "last_published",
    "ledger",
    "null_findings",
    "published",
    "results_folder",
    "verdicts",
]


def results_folder() -> Path:
    """`docs/results` of a checkout."""
    return PACKAGE.parent / "docs" / "results"


def ledger(claim: str = "") -> list[Entry]:
    """The published verdicts (of one claim), oldest first."""
    return read(results_folder() / LEDGER, claim)


@dataclass(frozen=True)
class PublishedRun:
    """One recorded run of a preset.

    status   "current"; "stale": code or settings have changed since; "unknown": recorded before hashes were kept
    """

    study: str
    preset: str
    folder: Path

    @cached_property
    def about(self) -> Facts:
        return dict(self._read("run.json") or {})

    @cached_property
    def findings(self) -> list[Finding]:
        rows = self._read("findings.json") or []
        return [Finding.from_dict(row) for row in (rows["findings"] if isinstance(rows, dict) else rows)]

    @property
    def date(self) -> float:
        return float(self.about.get("finished", 0.0))

    @property
    def seconds(self) -> float:
        return float(self.about.get("seconds", 0.0))

    @cached_property
    def status(self) -> str:
        return "current" if is_current(self.about, get("studies", self.study), self.preset) else "stale"

    @property
    def same_settings(self) -> bool:
        """Whether the preset's settings are those of the run, whatever became of the code."""
        settings = get("studies", self.study).presets.get(self.preset)
        return settings is not None and plain(canonical(settings)) == self.about.get("config")

    @property
    def unmeasured(self) -> list[str]:
        """Claims about which the run says nothing."""
        return list(self.reasons)

    @property
    def reasons(self) -> dict[str, str]:
        """Claims about which the run says nothing, and why."""
        tables = self._read("tables.json") or {}
        return {str(row["claim"]): str(row["why"]) for row in tables.get("not measured", [])}

    @property
    def reduced(self) -> list[str]:
        """Where the preset is smaller than the source's size."""
        reductions: list[str] = get("studies", self.study).reductions(self.preset)
        return reductions

    def _read(self, name: str) -> Json:
        file = self.folder / name
        try:
            return read_json(file) if file.exists() else None
        except ValueError as problem:
            raise BadInput(f"{file} is damaged ({problem}): publish the run again") from None


def published(study: str | None = None, folder: Path | None = None) -> Iterator[PublishedRun]:
    """Every recorded run, of one study or of all; runs of studies that no longer exist are left out."""
    base = folder or results_folder()
    for name in [study] if study else names("studies"):
        for preset in ("quick", "full", "null"):
            if (base / name / preset / "findings.json").exists():
                yield PublishedRun(name, preset, base / name / preset)


def verdicts(
    study: AnyStudy, folder: Path | None = None, runs: Iterable[PublishedRun] | None = None
) -> dict[str, list[tuple[PublishedRun, Finding]]]:
    """Claim → what recorded runs found about it in today's words: current before stale, full before quick.

    What was found when the claim asked for something else stands in the ledger, and is no verdict on it.

    runs   the study's recorded runs, where somebody has looked them up already
    """
    words = {claim.id: definition(claim.quantity, str(claim.relation)) for claim in study.claims}
    found: dict[str, list[tuple[PublishedRun, Finding]]] = {}
    whole = _runs(study.name, folder) if runs is None else [run for run in runs if run.preset != "null"]
    for run in sorted(whole, key=lambda run: (run.status == "stale", run.preset != "full")):
        for finding in run.findings:
            if _words(finding) == words.get(finding.claim):
                found.setdefault(finding.claim, []).append((run, finding))
    return found


def last_published(study: str, folder: Path | None = None) -> dict[str, tuple[PublishedRun, Finding]]:
    """Claim → the full preset's finding where there is one, unless a newer run has other words for the claim.

    Told by the files alone: neither the code of the study nor its present claims are asked.
    """
    found: dict[str, tuple[PublishedRun, Finding]] = {}
    for run in _runs(study, folder):
        for finding in run.findings:
            before = found.get(finding.claim)
            if before is None or before[0].date <= run.date or _words(before[1]) == _words(finding):
                found[finding.claim] = (run, finding)
    return found


def _runs(study: str, folder: Path | None) -> list[PublishedRun]:
    """The recorded runs of a study's presets, quick before full, without the null."""
    return [run for run in published(study, folder) if run.preset != "null"]


def _words(finding: Finding) -> str:
    return definition(finding.quantity, finding.relation)


def null_findings(study: AnyStudy, folder: Path | None = None) -> list[Finding] | None:
    """What was recorded on the study's null; None when it must be run: not recorded, stale, or other claims."""
    for run in published(study.name, folder):
        if run.preset == "null" and run.status == "current":
            asked = {claim.id: definition(claim.quantity, str(claim.relation)) for claim in study.due("null")}
            told = {each.claim: _words(each) for each in run.findings}
            told |= {claim: asked.get(claim, "") for claim in run.unmeasured}
            return run.findings if all(told.get(claim) == words for claim, words in asked.items()) else None
    return None


def command(study: str, preset: str, device: str = "cpu") -> str:
    """The command that makes the run again."""
    option = {"quick": "", "full": " --full", "null": " --null"}.get(preset)
    if option is None:
        raise BadInput(f"a run with settings of its own has no preset, got {preset!r}")
    return f"sandlab run {study}{option}" + (f" --device {device}" if device != "cpu" else "")
