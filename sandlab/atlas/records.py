"""Claims and sources as they are recorded: text files, read by the server itself.

Neither numpy nor a worker is needed: as the first question to a fresh server the claims take a tenth of a second.
"""

from __future__ import annotations

import json
import math
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from sandlab.lab._store.plain import Facts, Json

__all__ = ["claims", "found_now", "last_change", "source_number", "sources"]

_CHECKOUT = Path(__file__).resolve().parents[2]
_RESULTS, _ERRATA = _CHECKOUT / "docs" / "results", _CHECKOUT / "docs" / "errata.md"


def last_change() -> tuple[float, ...]:
    """What differs once a run has been recorded, whose findings end in the ledger, or an erratum written down."""
    return tuple(file.stat().st_mtime for file in (_RESULTS / "ledger.jsonl", _ERRATA) if file.is_file())


def claims() -> Facts:
    """Every claim with its published finding: the full preset's, unless quick was judged later and in other words."""
    rows: dict[str, Facts] = {}
    for study, preset, date, finding in _findings():
        before = rows.get(finding["claim"])
        if before is None or before["date"] <= date or _words(before) == _words(finding):
            rows[finding["claim"]] = _row(study, preset, date, finding)
    return {"claims": list(rows.values())}


def found_now(store: Path, study: str) -> Facts:
    """What the newest quick run of a study in the store has found, in the form of `claims`."""
    runs = sorted((store / "studies" / study / "quick").glob("*/findings.json"))
    return {"claims": [_row(study, "quick", 0.0, finding) for finding in _listed(_read(runs[-1]))] if runs else []}


def _words(finding: Facts) -> tuple[str, str]:
    """What is measured and what it must be; capitals and the full stop do not count."""
    return " ".join(finding["quantity"].lower().rstrip(".").split()), finding["relation"]


def _findings() -> Iterator[tuple[str, str, float, Facts]]:
    """Study, preset, time and content of every recorded finding of a study that exists."""
    from sandlab.registry import names

    for study in names("studies"):
        for preset in ("quick", "full"):
            folder = f"{_RESULTS}/{study}/{preset}"
            found = _listed(_read(f"{folder}/findings.json") or [])
            date = float((_read(f"{folder}/run.json") or {}).get("finished", 0.0)) if found else 0.0
            yield from ((study, preset, date, finding) for finding in found)


def _listed(found: Json) -> list[Facts]:
    return list(found["findings"] if isinstance(found, dict) else found)


def _row(study: str, preset: str, date: float, finding: Facts) -> Facts:
    same = ("statement", "relation", "paper", "source", "verdict", "quantity")
    return {
        "id": finding["claim"],
        "study": study,
        "chapter": study.partition("/")[0],
        **{name: finding[name] for name in same},
        "point": source_number(finding["paper"], float(finding["mean"])),
        "expected": finding["held"],
        "note": finding.get("note", ""),
        "preset": preset,
        **{name: _finite(finding[name]) for name in ("mean", "low", "high")},
        "values": [_finite(value) for value in finding["values"][:64]],
        "count": len(finding["values"]),
        "date": date,
    }


def _read(file: str | Path) -> Json:
    try:
        with open(file, encoding="utf-8") as opened:
            return json.load(opened)
    except FileNotFoundError:
        return None


def _finite(value: float | str) -> float | None:
    number = float(value)
    return number if math.isfinite(number) else None


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


def sources() -> Facts:
    """Every published definition, theorem and experiment, where it lives, and what its claims found; the errata."""
    verdicts = {row["id"]: _standing(row) for row in claims()["claims"]}
    by_study: dict[str, list[str]] = {}
    for name, verdict in verdicts.items():
        by_study.setdefault(name.partition(".")[0], []).append(verdict)
    rows = []
    for file in sorted((_CHECKOUT / "coverage").glob("*.toml")):
        table = tomllib.loads(file.read_text(encoding="utf-8"))
        for name, value in table.get("ids", {}).items():
            places = [value] if isinstance(value, str) else list(value)
            found = [verdicts.get(place[6:], "not run") for place in places if place.startswith("claim:")]
            found += [each for place in places if place.startswith("study:") for each in by_study.get(place[6:], [])]
            rows.append({"chapter": table.get("spec", file.stem), "id": name, "places": places, "verdicts": found})
    return {"rows": rows, "errata": _errata(_ERRATA)}


def _standing(row: Facts) -> str:
    """The verdict; a claim that was printed wrong and fails as it must is "corrected"."""
    return "corrected" if row["verdict"] == "fails" and not row["expected"] else str(row["verdict"])


def _errata(file: Path) -> list[Facts]:
    """What is printed and what is true, by chapter: rows of tables and points of lists of the page on errata."""
    found: list[Facts] = []
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
