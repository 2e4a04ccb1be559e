"""`sandlab report`, `publish`, `results`, `coverage`: what was found, for readers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sandlab.cli.options import AsJson, StoreFolder
from sandlab.cli.studies import choose
from sandlab.errors import BadInput

__all__ = ["commands"]

commands = typer.Typer()


@commands.command(epilog="Example:  sandlab report --out report/")
def report(
    out: Annotated[Path, typer.Option(help="Folder of the site.")] = Path("report"),
    store: StoreFolder = None,
) -> None:
    """Write the static report: findings, figures, configuration, environment. Needs no network to read."""
    from sandlab.lab._report.site import write_site
    from sandlab.lab._store.store import Store

    page = write_site(Store.existing(store), out)
    print(f"open {page}")


@commands.command(epilog="Example:  sandlab publish markov/weight-tying --to docs/results")
def publish(
    names: Annotated[list[str], typer.Argument(metavar="STUDY...", help="Studies; * matches many.")],
    to: Annotated[Path, typer.Option(help="Folder to copy into.")] = Path("docs/results"),
    store: StoreFolder = None,
) -> None:
    """Copy the last findings, figures and environment of studies to a folder that is kept, preset by preset."""
    from sandlab.lab._report.publish import publish_latest
    from sandlab.lab._store.store import Store

    folders = [folder for name in choose(names) for folder in publish_latest(Store.existing(store), name, to)]
    if not folders:
        raise BadInput(f"{', '.join(names)}: there is no finished run in the store; give `sandlab run` first")
    for folder in folders:
        print(folder)


@commands.command(epilog="Example:  sandlab results   ·   sandlab results --json")
def results(as_json: AsJson = False) -> None:
    """What is recorded, what is missing or stale, and what to run next, cheapest first."""
    from sandlab.cli.screen import print_json, print_table
    from sandlab.lab._report.published import command, published
    from sandlab.registry import get
    from sandlab.registry import names as known

    recorded = {(run.study, run.preset): run for run in published()}
    rows = []
    for name in known("studies"):
        for preset in get("studies", name).presets:
            run = recorded.get((name, preset))
            status = run.status if run else "missing"
            device = str(run.about.get("device", "cpu")) if run else "cpu"
            rows.append({"study": name, "preset": preset, "status": status, "seconds": run.seconds if run else None,
                         "command": command(name, preset, device)})  # fmt: skip
    if as_json:
        print_json(rows)
        return
    due = sorted((row for row in rows if row["status"] != "current"), key=lambda row: row["seconds"] or 1e9)
    counts = {word: sum(row["status"] == word for row in rows) for word in ("current", "stale", "missing")}
    table = [[row["status"], f"{row['seconds']:.0f} s" if row["seconds"] else "", row["command"]] for row in due]
    print_table(["", "last time", "run next"], table, ", ".join(f"{count} {word}" for word, count in counts.items()))


@commands.command(epilog="Example:  sandlab coverage   ·   sandlab coverage --json")
def coverage(
    folder: Annotated[
        Path | None, typer.Option(help="Folder of the tables (default: coverage/ of the repository).")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Which published definition, theorem and experiment lives where. Exit code 2 when a line leads nowhere."""
    from sandlab.cli.screen import print_json, print_table
    from sandlab.lab._report.coverage import read_coverage

    rows = read_coverage(folder)
    if as_json:
        print_json([row.as_dict() for row in rows])
    else:
        table = [[row.chapter, row.id, ", ".join(row.places), "; ".join(row.problems) or "✓"] for row in rows]
        print_table(["chapter", "id", "where it lives", ""], table, f"{len(rows)} ids")
    return 2 if any(row.problems for row in rows) else 0
