"""What is recorded: claims with their findings, their history, the map of the sources, cards of architectures."""

from __future__ import annotations

import dataclasses
import math
import re
from pathlib import Path
from typing import Any

__all__ = ["cards", "claims", "figure", "history", "source_number", "sources", "standing"]

Json = dict[str, Any]


def claims() -> Json:
    """Every claim with its published finding, read from the records: no study is imported."""
    from sandlab.lab._report.published import published

    rows: dict[str, Json] = {}
    for run in published():
        for finding in run.findings if run.preset != "null" else ():
            rows[finding.claim] = {
                "id": finding.claim,
                "study": run.study,
                "chapter": run.study.partition("/")[0],
                "statement": finding.statement,
                "relation": finding.relation,
                "paper": finding.paper,
                "point": source_number(finding.paper, finding.mean),
                "source": finding.source,
                "verdict": finding.verdict,
                "expected": finding.held,
                "quantity": finding.quantity,
                "note": finding.note,
                "preset": run.preset,
                "mean": _finite(finding.mean),
                "low": _finite(finding.low),
                "high": _finite(finding.high),
                "values": [_finite(value) for value in list(finding.values)[:64]],
                "date": run.date,
            }
    return {"claims": list(rows.values())}


def source_number(words: str, ours: float) -> float | None:
    """The source's number, where its words are one: "0.93", "at least 97 %", "3/4", "222 of 225", "0.71 − 0.66".

    Words with more in them ("stage 1 to step 100") give none. A percentage is a share where ours is one.
    """
    plain = words.replace("−", "-").strip()
    number = r"(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)"
    if one := re.fullmatch(rf"(?:[≈~≤≥<>] ?|(?:about|at least|at most|more than|less than) )?{number}( ?%)?", plain):
        return float(one[1]) / (100 if one[2] and abs(ours) <= 1.5 else 1)
    if (two := re.fullmatch(rf"{number}(?: ?/ ?| of ){number}", plain)) and float(two[2]):
        return float(two[1]) / float(two[2])
    if two := re.fullmatch(rf"{number} - {number}", plain):
        return float(two[1]) - float(two[2])
    return None


def history(claim: str) -> Json:
    """The recorded verdicts of one claim, oldest first, and whether its published run is current."""
    from sandlab.lab._report.published import last_published, ledger
    from sandlab.registry import get

    study = claim.partition(".")[0]
    get("studies", study)
    known = last_published(study).get(claim)
    rows = [dataclasses.asdict(entry) for entry in ledger(claim)]
    status, reduced = (known[0].status, known[0].reduced) if known else ("not run", [])
    return {"history": rows, "status": status, "reduced": reduced, "figures": _figures(study)}


def standing(chapter: str) -> Json:
    """Which recorded runs of a chapter are stale, and which are smaller than the source's own size."""
    from sandlab.lab._report.published import published
    from sandlab.registry import names

    found = []
    for study in names("studies"):
        if study.partition("/")[0] == chapter:
            runs = [run for run in published(study) if run.preset != "null"]
            found += [{"study": study, "preset": r.preset, "status": r.status, "reduced": r.reduced} for r in runs]
    return {"runs": found}


def figure(study: str, preset: str, name: str) -> Json:
    """A published figure, found among those there are: what is asked for is never used as a path."""
    from sandlab.lab._report.published import published
    from sandlab.registry import names

    if study in names("studies"):
        for run in published(study):
            for file in run.folder.rglob("*.svg") if run.preset == preset else ():
                if file.stem == name:
                    return {"svg": file.read_text(encoding="utf-8")}
    return {"svg": ""}


def _figures(study: str) -> list[Json]:
    from sandlab.lab._report.published import published

    return [
        {"study": run.study, "preset": run.preset, "name": file.stem}
        for run in published(study)
        for file in sorted(run.folder.rglob("*.svg"))
    ]


def sources() -> Json:
    """Every published definition, theorem and experiment, where it lives, and what its claims found; the errata."""
    import tomllib

    from sandlab.lab._report.coverage import REPOSITORY

    verdicts = {row["id"]: _standing(row) for row in claims()["claims"]}
    by_study: dict[str, list[str]] = {}
    for name, verdict in verdicts.items():
        by_study.setdefault(name.partition(".")[0], []).append(verdict)
    rows = []
    for file in sorted((REPOSITORY / "coverage").glob("*.toml")):
        table = tomllib.loads(file.read_text(encoding="utf-8"))
        for name, value in table.get("ids", {}).items():
            places = [value] if isinstance(value, str) else list(value)
            found = [verdicts.get(place[6:], "not run") for place in places if place.startswith("claim:")]
            found += [each for place in places if place.startswith("study:") for each in by_study.get(place[6:], [])]
            rows.append({"chapter": table.get("spec", file.stem), "id": name, "places": places, "verdicts": found})
    return {"rows": rows, "errata": _errata(REPOSITORY / "docs" / "errata.md")}


def _standing(row: Json) -> str:
    """The verdict; a claim that was printed wrong and fails as it must is "corrected"."""
    return "corrected" if row["verdict"] == "fails" and not row["expected"] else str(row["verdict"])


def _errata(file: Path) -> list[Json]:
    """What is printed and what is true, by chapter: rows of tables and points of lists of the page on errata."""
    found: list[Json] = []
    for section in file.read_text(encoding="utf-8").split("\n## ")[1:] if file.is_file() else ():
        chapter, _, text = section.partition("\n")
        for line in text.splitlines():
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            if line.startswith("| ") and len(cells) >= 3 and cells[0] != "printed":
                found.append({"chapter": chapter, "printed": cells[0], "true": cells[1], "test": " | ".join(cells[2:])})
        for point in text.split("\n- **")[1:]:
            title, _, words = point.partition("**")
            true = " ".join(words.partition("\n\n")[0].split())
            found.append({"chapter": chapter, "printed": title.rstrip("."), "true": true, "test": ""})
    return found


def cards() -> Json:
    """The recorded cards of the built-in architectures."""
    from sandlab.lab._card.measure import recorded

    found = [*recorded("quick"), *recorded("full")]
    return {
        "cards": [
            {
                "model": card.model,
                "size": card.size,
                "rows": [{"task": r.task, "test": r.test, "score": r.score, "scores": r.scores} for r in card.rows],
            }
            for card in found
        ]
    }


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
