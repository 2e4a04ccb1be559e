"""What a worker says about the records: the history and standing of claims, their figures, cards of architectures."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from sandlab.lab._store.plain import Facts

__all__ = ["cards", "figure", "history", "standing"]


def history(claim: str) -> Facts:
    """The recorded verdicts of one claim, oldest first, and whether its published run is current."""
    from sandlab.lab._report.published import last_published, ledger
    from sandlab.registry import get

    study = claim.partition(".")[0]
    get("studies", study)
    known = last_published(study).get(claim)
    rows = [dataclasses.asdict(entry) for entry in ledger(claim)]
    status, reduced = (known[0].status, known[0].reduced) if known else ("not run", [])
    return {"history": rows, "status": status, "reduced": reduced, "figures": _figures(study)}


def standing(chapter: str) -> Facts:
    """Which recorded runs of a chapter are stale, and which are smaller than the source's own size."""
    from sandlab.lab._report.published import published
    from sandlab.registry import names

    found = []
    for study in names("studies"):
        if study.partition("/")[0] == chapter:
            runs = [run for run in published(study) if run.preset != "null"]
            found += [{"study": study, "preset": r.preset, "status": r.status, "reduced": r.reduced} for r in runs]
    return {"runs": found}


def figure(study: str, preset: str, name: str) -> Facts:
    """A published figure, found among those there are: what is asked for is never used as a path."""
    from sandlab.lab._report.published import published
    from sandlab.registry import names

    if study in names("studies"):
        for run in published(study):
            for file in run.folder.rglob("*.svg") if run.preset == preset else ():
                if file.stem == name:
                    return {"svg": file.read_text(encoding="utf-8")}
    return {"svg": ""}


def _figures(study: str) -> list[Facts]:
    from sandlab.lab._report.published import published

    return [
        {"study": run.study, "preset": run.preset, "name": file.stem}
        for run in published(study)
        for file in sorted(run.folder.rglob("*.svg"))
    ]


def cards(store: str) -> Facts:
    """The recorded cards of the built-in architectures, and those that were measured here.

    store   folder of the measured ones; the server names it, never the page
    """
    from sandlab.lab._card.kept import kept_cards
    from sandlab.lab._card.measure import recorded

    found = [*recorded("quick"), *recorded("full"), *kept_cards(Path(store))]
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
