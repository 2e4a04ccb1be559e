"""`sandlab claims`, `report`, `publish`, `results`, `coverage`, `doctor`: what was found, and whether it is whole."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from sandlab.cli.options import AsJson, StoreFolder
from sandlab.cli.screen import counted, tell
from sandlab.cli.studies import choose
from sandlab.errors import BadInput

__all__ = ["commands"]

commands = typer.Typer()


@commands.command(
    epilog="Example:  sandlab claims markov/weight-tying   ·   sandlab claims --stale   ·   "
    "sandlab claims --history ngrams/stages.plateau-is-bigram"
)
def claims(
    names: Annotated[list[str] | None, typer.Argument(metavar="STUDY", help="Studies; all when left out.")] = None,
    history: Annotated[str, typer.Option(metavar="CLAIM", help="Every verdict that was published for a claim.")] = "",
    stale: Annotated[bool, typer.Option("--stale", help="Only verdicts whose code or settings have changed.")] = False,
    idle: Annotated[
        bool,
        typer.Option("--idle", help="Claims that hold on their null; runs nulls not recorded."),
    ] = False,
    store: StoreFolder = None,
    as_json: AsJson = False,
) -> int:
    """Every claim with its last verdict, the source's value and ours.

    Verdicts come from your store, otherwise from the published results: the largest run that is current, and beside it
    what other runs found. "stale": code or settings have changed since; "reduced": measured below the source's size.
    Exit code 1 when a claim fails that held in its source.
    """
    if history:
        return _show_history(history, as_json)
    chosen = choose(names or [], not names)
    if idle:
        return _show_idle(chosen, store, as_json)
    rows = [row for name in chosen for row in last_findings(name, store)]
    rows = [row for row in rows if any(each["status"] == "stale" for each in (row, *row["others"]))] if stale else rows
    _print(rows, as_json, counted(len(rows), "claim", "claims"))
    if not as_json:
        tell("\n".join([_tally(rows), *_gaps(rows)]))
    return 1 if any(row["verdict"] == "fails" and row["held"] for row in rows) else 0


def last_findings(name: str, store: Path | None) -> list[dict[str, Any]]:
    """The claims of a study as rows, with the last findings of the store, or else the published ones.

    others   what the remaining runs found about the claim; why: what a claim without a verdict waits for
    """
    from sandlab.lab._report.published import verdicts
    from sandlab.lab._store.store import Store
    from sandlab.registry import get

    study = get("studies", name)
    found: dict[str, list[dict[str, Any]]] = {}
    for record in sorted(Store.existing(store).latest(name), key=lambda record: record.order, reverse=True):
        if record.about["preset"] != "null":
            facts = {"preset": record.about["preset"], "date": record.finished, **_standing(study, record.about)}
            for row in record.read("findings.json"):
                found.setdefault(row["claim"], []).append({**row, **facts})
    for claim, judged in verdicts(study).items():
        for run, finding in judged:
            facts = {"preset": run.preset, "date": run.date, "status": run.status, "reduced": run.reduced}
            found.setdefault(claim, []).append({**finding.as_dict(), **facts})
    reasons = _reasons(name)
    rows = [found.get(claim.id) or [_not_run(claim, name, reasons)] for claim in study.claims]
    return [{"why": "", **first, "others": _by_preset(others, first["preset"])} for first, *others in rows]


def _by_preset(rows: list[dict[str, Any]], shown: str) -> list[dict[str, Any]]:
    """Of several findings the first of each preset that is not shown yet."""
    first: dict[str, dict[str, Any]] = {}
    for row in rows:
        if row["preset"] != shown:
            first.setdefault(row["preset"], row)
    return list(first.values())


def _reasons(name: str) -> dict[str, str]:
    """Why recorded runs of a study left claims out."""
    from sandlab.lab._report.published import published

    return {claim: why for run in published(name) if run.preset != "null" for claim, why in run.reasons.items()}


def _tally(rows: list[dict[str, Any]]) -> str:
    """How many claims have which verdict: "holds: 12, fails as expected: 1, not run: 3; stale: 2"."""
    expected = ["fails as expected" if row["verdict"] == "fails" and not row["held"] else "" for row in rows]
    words = Counter(word or row["verdict"] or "not run" for word, row in zip(expected, rows))
    order = ("holds", "fails", "fails as expected", "inconclusive", "not run")
    stale = sum(row["status"] == "stale" for row in rows)
    return ", ".join(f"{word}: {words[word]}" for word in order if words[word]) + (f"; stale: {stale}" if stale else "")


def _gaps(rows: list[dict[str, Any]]) -> list[str]:
    """What claims wait for that a quick run does not measure, one line for each reason."""
    full = sum(row["why"].startswith("needs ") and "--full" in row["why"] for row in rows)
    given = sum(bool(row["why"]) and not row["why"].startswith("needs ") for row in rows)
    words = {"only a full run measures (`sandlab results` lists the runs that are missing or stale)": full,
             "something must be given for, as they say themselves": given}  # fmt: skip
    return [f"not run: {count} that {what}" for what, count in words.items() if count]


def _standing(study: Any, about: dict[str, Any]) -> dict[str, Any]:
    """Whether a run of the store is current, and how far below the source's size it is."""
    from sandlab.lab.run import is_current

    if about["preset"] not in study.presets:
        return {"status": "custom", "reduced": []}
    current = is_current(about, study, about["preset"])
    return {"status": "current" if current else "stale", "reduced": study.reductions(about["preset"])}


def _not_run(claim: Any, study: str, reasons: dict[str, str]) -> dict[str, Any]:
    """A claim without a verdict, and what it waits for: the run that measures it, or what such a run was not given."""
    from sandlab.lab._report.published import command, ledger

    due = f"needs {command(study, 'quick' if 'quick' in claim.presets else 'full')}"
    due += f"; asked otherwise before: sandlab claims --history {claim.id}" if ledger(claim.id) else ""
    names = ("statement", "source", "quantity", "paper", "held")
    blank = {"verdict": "", "mean": None, "low": None, "high": None, "count": 0, "preset": "", "date": None}
    about = {"claim": claim.id, "relation": str(claim.relation), "status": "", "reduced": []}
    about["why"] = reasons.get(claim.id, due)
    return {**about, **{name: getattr(claim, name) for name in names}, **blank}


def _print(rows: list[dict[str, Any]], as_json: bool, title: str) -> None:
    from sandlab.cli.screen import print_findings, print_json

    if as_json:
        print_json(rows)
        return
    print_findings(rows, title)


def _show_history(claim: str, as_json: bool) -> int:
    from dataclasses import asdict

    from sandlab.cli.screen import print_json, print_table, text_number
    from sandlab.errors import nearest
    from sandlab.lab._report.published import ledger

    found = ledger(claim)
    if not found:
        known = sorted({entry.claim for entry in ledger()})
        raise BadInput(f"the ledger has no claim {claim!r}: {nearest(claim, known) or 'see `sandlab claims`'}")
    if as_json:
        print_json([asdict(entry) for entry in found])
        return 0
    rows = [
        [
            time.strftime("%Y-%m-%d %H:%M", time.gmtime(entry.date)),
            entry.preset,
            entry.verdict,
            f"{text_number(entry.mean)} [{text_number(entry.low)}, {text_number(entry.high)}], {entry.seeds}",
            f"{entry.quantity} {entry.relation}",
            entry.device,
        ]
        for entry in found
    ]
    print_table(["date (UTC)", "preset", "verdict", "ours, values", "must be", "device"], rows, claim)
    return 0


def _show_idle(chosen: list[str], store: Path | None, as_json: bool) -> int:
    """Judge each study on its null: a claim that holds there says nothing about the effect, and gives exit code 1.

    Nulls that are recorded and current are read; the others are run.
    """
    from sandlab.lab._report.published import null_findings
    from sandlab.lab.run import run
    from sandlab.registry import get

    rows = []
    for name in chosen:
        study = get("studies", name)
        if "null" in study.presets:
            recorded = null_findings(study)
            findings = run(name, "null", store=store, on="processes").findings if recorded is None else recorded
            rows += [finding.as_dict() for finding in findings if finding.verdict == "holds" and finding.held]
    _print(rows, as_json, counted(len(rows), "idle claim", "idle claims") if rows else "no idle claims")
    return 1 if rows else 0


@commands.command(epilog="Example:  sandlab report --out report/")
def report(
    out: Annotated[Path, typer.Option(help="Folder of the site.")] = Path("report"),
    store: StoreFolder = None,
) -> None:
    """Write the static report: findings, figures, configuration, environment. Needs no network to read."""
    from sandlab.lab._report.site import write_site
    from sandlab.lab._store.store import Store

    page = write_site(Store.existing(store), out)
    tell(f"open {page}")


@commands.command(epilog="Example:  sandlab publish markov/weight-tying --to docs/results")
def publish(
    names: Annotated[list[str], typer.Argument(metavar="STUDY", help="Studies; * matches many.")],
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
        tell(folder)


@commands.command(epilog="Example:  sandlab results   ·   sandlab results --json")
def results(as_json: AsJson = False) -> None:
    """What is recorded, what is missing or stale, and what to run next: most telling in a minute first.

    Value: each claim that the run would be the first current one to measure at its size counts 1, again 1 when the
    source gives a number for it, and again 1 when no current run decides it. Cost: what the run took when it was
    recorded, alone or beside others; or about (~) what its trainings take on a GPU at the speed of the recorded runs,
    or what it took with other settings; "unknown" where nothing of this is there. Trainings that a run above asks for
    as well are in the store by then and are not counted again.
    """
    from sandlab.cli.screen import print_json
    from sandlab.lab._report.agenda import agenda

    found = agenda()
    if as_json:
        print_json([row.as_dict() for row in found.rows])
        return
    due = found.due
    if due:  # no table: at 80 columns it would break the longest commands, which are there to be copied
        tell("to be run, most telling in a minute first: value, cost, command")
        tell("\n".join(f"{row.value:3} {_price(row):>7} {row.command}" for row in due))
        tell("\n".join(_about_costs(found)))
    counts = Counter(row.status for row in found.rows)
    tell(", ".join(f"{count} {word}" for word, count in sorted(counts.items())))


def _price(row: Any) -> str:
    """What a run costs, in words that fit into a column: "~12 min", "33 s", "unknown"."""
    if row.extra is None:
        return "unknown"
    mark = "" if row.basis == "recorded" else "~"
    steps = ((5400, 3600, "h"), (90, 60, "min"), (1, 1, "s"))
    for least, unit, word in steps:
        if row.extra >= least:
            return f"{mark}{row.extra / unit:.{word == 'h':d}f} {word}"
    return "< 1 s"


def _about_costs(found: Any) -> list[str]:
    """What the estimates were read from, and what all known costs come to."""
    lines = []
    if found.rates is not None:
        low, high = found.rates.spread
        lines.append(
            f"~ read from {found.rates.runs} recorded runs on a GPU: half of them took {low:.2g} to {high:.2g} times "
            "what is estimated so"
        )
    for device in sorted({row.device for row in found.due}):
        known = [row.extra for row in found.due if row.device == device and row.extra is not None]
        hours = f"{sum(known) / 3600:.1f} h" if known else "unknown"
        lines.append(f"all whose cost is known on {device}: {len(known)} runs, {hours}")
    return lines


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


@commands.command(epilog="Example:  sandlab doctor --store runs")
def doctor(store: StoreFolder = None, as_json: AsJson = False) -> int:
    """Check every file of a store, mend what can be mended, and say what was done.

    The index is brought in line with the folders, leftovers of killed runs are removed, every result and every run is
    compared with its checksums. Damaged ones are named: they are computed again when they are asked for. Exit code 3
    when something is damaged.
    """
    from sandlab.cli.screen import print_json
    from sandlab.lab._store.cache import Damaged
    from sandlab.lab._store.store import Store

    opened = Store.existing(store)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        done = opened.mend_index() + [f"{name} was a leftover and was removed" for name in opened.tidy()]
        damaged = [str(record.path) for record in opened.records() if not record.intact()]
        damaged += [str(opened.cache.path(key)) for key in opened.cache.stored() if opened.cache.read(key) is None]
        runs, jobs = len(opened.records()), len(opened.cache.stored())
    for text, category in dict.fromkeys((str(each.message), each.category) for each in told):
        mended = issubclass(category, Damaged) and text.startswith(f"{opened.index.path} ")
        if not mended and not text.startswith(tuple(f"{name} " for name in damaged)):
            damaged.append(text)
    if as_json:
        print_json({"store": str(opened.folder), "done": done, "damaged": damaged})
    else:
        tell(f"{opened.folder}: {runs} runs, {jobs} results of jobs")
        tell("\n".join([*done, *(f"damaged: {name}" for name in damaged)]) or "nothing to mend")
    return 3 if damaged else 0
