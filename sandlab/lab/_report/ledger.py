"""The ledger of verdicts: every published finding, appended, never overwritten.

One line of JSON per finding. A claim whose quantity or relation has changed since keeps its former verdicts beside it.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from sandlab.errors import BadInput
from sandlab.lab._store.plain import Facts, plain

__all__ = ["LEDGER", "Entry", "append", "definition", "entries", "former", "overturned", "read", "removed"]

LEDGER = "ledger.jsonl"


@dataclass(frozen=True)
class Entry:
    """One verdict.

    definition  hash of what is measured and of the interval it must lie in
    seeds       number of independent values
    settings    hash of the settings, collect: hash of the code that computed the results ("": before hashes were kept)
    date        seconds since 1970
    """

    claim: str
    preset: str
    verdict: str
    relation: str
    quantity: str
    definition: str
    mean: float
    low: float
    high: float
    seeds: int
    device: str
    date: float
    settings: str = ""
    collect: str = ""


def definition(quantity: str, relation: str) -> str:
    """Hash of a claim's quantity and relation; capitals and the full stop do not count."""
    words = " ".join(quantity.lower().rstrip(".").split())
    return hashlib.sha256(f"{words}\0{relation}".encode()).hexdigest()[:12]


def entries(about: Facts, findings: Iterable[Facts]) -> list[Entry]:
    """The findings of a published run as lines of the ledger."""
    config = json.dumps(plain(about.get("config", "")), sort_keys=True)
    return [
        Entry(
            claim=each["claim"],
            preset=about["preset"],
            verdict=each["verdict"],
            relation=each["relation"],
            quantity=each["quantity"],
            definition=definition(each["quantity"], each["relation"]),
            mean=float(each["mean"]),
            low=float(each["low"]),
            high=float(each["high"]),
            seeds=int(each["count"]),
            device=about.get("device", ""),
            date=float(about["finished"]),
            settings=hashlib.sha256(config.encode()).hexdigest()[:12],
            collect=str(about.get("collect", ""))[:12],
        )
        for each in findings
    ]


def append(path: Path, new: Sequence[Entry]) -> None:
    """Add entries that the ledger does not hold yet, in one write."""
    known = set(read(path))
    lines = [json.dumps(plain(asdict(entry)), ensure_ascii=False) for entry in new if entry not in known]
    if not lines:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a", encoding="utf-8") as file:
        file.write("".join(line + "\n" for line in lines))
        file.flush()
        os.fsync(file.fileno())


def read(path: Path, claim: str = "") -> list[Entry]:
    """The entries of a ledger (of one claim), oldest first."""
    if not path.exists():
        return []
    names = {each.name for each in fields(Entry)}
    found = []
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        if line.strip():
            try:
                row = json.loads(line)
                found.append(_entry({name: value for name, value in row.items() if name in names}))
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as problem:
                raise BadInput(f"line {number} of {path} is no verdict ({problem}): take it out") from None
    return sorted((each for each in found if not claim or each.claim == claim), key=lambda each: each.date)


def former(history: Sequence[Entry], current: str) -> list[Entry]:
    """The last verdict of each earlier definition and preset: what a changed claim said before."""
    last = {(each.definition, each.preset): each for each in history if each.definition != current}
    return sorted(last.values(), key=lambda each: each.date)


def overturned(history: Sequence[Entry], current: str) -> list[Entry]:
    """Verdicts in the present words that a later run, or judging again, has replaced by another: the last of each."""
    same = [each for each in history if each.definition == current]
    now = {each.preset: each.verdict for each in same}
    last = {(each.preset, each.verdict): each for each in same if each.verdict != now[each.preset]}
    return sorted(last.values(), key=lambda each: each.date)


def removed(history: Sequence[Entry], study: str, kept: Iterable[str]) -> list[Entry]:
    """The last verdict, by preset and wording, of claims that a study no longer makes."""
    gone = [each for each in history if each.claim.startswith(f"{study}.") and each.claim not in set(kept)]
    last = {(each.claim, each.definition, each.preset): each for each in gone}
    return sorted(last.values(), key=lambda each: each.date)


def _entry(row: Facts) -> Entry:
    numbers = {name: float(row[name]) for name in ("mean", "low", "high", "date")}
    # The oldest lines were hashed before capitals and full stops were left out: the words themselves decide.
    return Entry(**{**row, **numbers, "definition": definition(row["quantity"], row["relation"])})
