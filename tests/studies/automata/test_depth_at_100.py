"""The depth table at 100 letters: claims on made-up accuracies."""

from __future__ import annotations

from automata_cases import runs, stored
from claim_cases import check

from sandlab.studies.automata._shared import automaton
from sandlab.studies.automata.depth_at_100 import study
from sandlab.studies.automata.depth_table import Results


def results(walk: float, shallow: float, deep: float, worse: float) -> Results:
    """The walk at one accuracy; everything else at two, with few and with many layers, S₅ behind the others."""
    table = {}
    for name in ("Grid9", "C2", "D6", "Q8", "A4", "S4", "S5"):
        first, last = (walk, walk) if name == "Grid9" else (shallow, deep)
        behind = 0.01 if name == "S5" else 0.0
        levels = {1: first - 0.1, 2: first, 4: first, 8: last, 16: last}
        table[name] = {
            depth: runs(token=[level - behind] * 10 + [level - behind - worse * (name == "C2")] * 10)
            for depth, level in levels.items()
        }
    return Results(table)


def test_every_claim_can_hold_and_can_fail() -> None:
    bad = results(0.5, 0.9, 0.5, 0.0)
    flat = Results({name: dict.fromkeys(row, row[4]) for name, row in results(1.0, 0.9, 0.5, 0.0).cells.items()})
    check(study, stored(study, results(1.0, 0.2, 1.0, 0.2)), bad, flat)


def test_full_has_the_published_length() -> None:
    assert automaton(study.presets["full"].base).length == 100  # type: ignore[attr-defined]
