"""The forms of a run's files: a store may come from elsewhere, with right checksums and wrong contents."""

from __future__ import annotations

import dataclasses
import json
import typing
from pathlib import Path

from sandlab._fitting import Hint
from sandlab.checking import fits, in_words
from sandlab.errors import shown
from sandlab.lab._store.plain import Json

__all__ = ["FORMS", "check_entry", "check_run", "read_json"]

_VERDICTS = ("holds", "fails", "inconclusive")
_LAST_DATE = 253402300800.0  # the year 10 000: no calendar writes it
_NOT_FINITE = ("nan", "inf", "-inf")  # how `plain` writes what JSON has no number for
_RUN: dict[str, Hint] = {
    "key": str, "title": str, "source": str, "device": str, "executor": str, "started": float, "finished": float,
    "seconds": float, "files": dict[str, str], "jobs": dict[str, int], "config": dict[str, object],
}  # fmt: skip
_ENTRY: dict[str, Hint] = {"key": str, "job": str, "code": str, "seconds": float, "created": float, "structure": str}


def read_json(file: Path) -> Json:
    """What a file holds. ValueError where it is no JSON, too deep to be read, or text that no page can show."""
    text = file.read_text(encoding="utf-8")
    try:
        value = json.loads(text)
        if "\\ud" in text.lower():  # half of a letter, perhaps: encoding would fail wherever it is shown
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError as problem:
        raise ValueError("it is nested too deeply") from problem
    return value


def check_run(about: Json) -> None:
    """ValueError unless this describes a run."""
    _check("run", about, _RUN)
    for name in ("started", "finished"):
        _require(0 <= about[name] < _LAST_DATE, name, about[name], "a date")
    _check("config", about["config"], {"fields": dict})
    _check("jobs", about["jobs"], {"jobs": int})


def check_entry(entry: Json) -> None:
    """ValueError unless this describes the result of a job."""
    _check("entry", entry, _ENTRY)


def _check_findings(rows: Json) -> None:
    from sandlab.studies.claims import Finding

    hints = typing.get_type_hints(Finding)
    needed = {each.name for each in dataclasses.fields(Finding) if each.default is dataclasses.MISSING} | {"values"}
    _require(isinstance(rows, list), "findings", rows, "a list")
    for row in rows:
        _require(isinstance(row, dict) and needed <= set(row), "a finding", row, f"an object with {sorted(needed)}")
        for name in set(hints) & set(row) - {"values"}:
            _require(_fits(hints[name], row[name]), name, row[name], in_words(hints[name]))
        values = row["values"]
        _require(isinstance(values, list) and all(_fits(float, each) for each in values), "values", values, "numbers")
        _require(row["verdict"] in _VERDICTS, "verdict", row["verdict"], f"one of {', '.join(_VERDICTS)}")


def _fits(hint: Hint, value: object) -> bool:
    return fits(hint, value) or (hint is float and value in _NOT_FINITE)


def _check_tables(tables: Json) -> None:
    _require(fits(dict[str, list[dict[str, object]]], tables), "tables", tables, "lists of rows by name")


def _check_environment(facts: Json) -> None:
    _check("environment", facts, {"packages": dict})


FORMS = {"findings.json": _check_findings, "tables.json": _check_tables, "environment.json": _check_environment}
"""File of a run → what raises ValueError where its contents have another form."""


def _check(name: str, value: Json, hints: dict[str, Hint]) -> None:
    _require(isinstance(value, dict), name, value, "an object")
    for field, hint in hints.items():
        _require(fits(hint, value.get(field)), field, value.get(field), in_words(hint))


def _require(condition: bool, name: str, value: object, allowed: str) -> None:
    if not condition:
        raise ValueError(f"{name} must be {allowed}, got {shown(value)[:80]}")
