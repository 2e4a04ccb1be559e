"""`sandlab run`, `tour`: published results, checked by running them."""

from __future__ import annotations

import fnmatch
import re
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any

import typer

from sandlab.cli.options import AsJson, Device, On, Settings, StoreFolder, open_folder
from sandlab.cli.screen import counted, tell
from sandlab.errors import BadInput

__all__ = ["commands"]

commands = typer.Typer()

OUT_OF_TIME = 5
TOUR = (
    "automata/constructions",
    "diffusions/ou-kernel",
    "distillation/two-stage",
    "dyck/theorems",
    "flip-flop/theorems",
    "hmm/pairwise-twins",
    "knowledge/hallucination-stage",
    "markov/hessian",
    "nce/annulus",
    "ngrams/theory",
    "parallel/separation",
    "reasoning/theorems",
    "topics/value-blocks",
    "verifier/query-complexity",
)
"""One study of each chapter that has a quick and telling one. The list lies here, not in the studies: the arguments of
`Study` count as code of its results, and a change of the tour must make none of them stale."""
Show = Callable[[Iterable[dict[str, Any]], str], None]
"""How the findings of a study are printed under a title."""


@commands.command(
    epilog="Example:  sandlab run markov/weight-tying --seeds 8   ·   sandlab run 'markov/*' --full --device cuda"
)
def run(
    names: Annotated[list[str] | None, typer.Argument(metavar="STUDY", help="Studies; * matches many.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Every study there is.")] = False,
    full: Annotated[bool, typer.Option("--full", help="The source's own size instead of the quick preset.")] = False,
    null: Annotated[bool, typer.Option("--null", help="The study without its effect: untrained, shuffled, …")] = False,
    seeds: Annotated[int | None, typer.Option(help="Number of seeds instead of the preset's.")] = None,
    settings: Settings = None,
    on: On = "",
    device: Device = "cpu",
    resume: Annotated[
        bool, typer.Option("--resume/--fresh", help="Use what is in the store, or compute everything again.")
    ] = True,
    budget: Annotated[
        str, typer.Option(help="Stop cleanly after this time, such as 8m or 90s; the same command goes on from there.")
    ] = "",
    judge_only: Annotated[
        bool, typer.Option("--judge-only", help="Judge and draw the stored results again; nothing is computed.")
    ] = False,
    store: StoreFolder = None,
    as_json: AsJson = False,
) -> int:
    """Run studies and judge their claims. Exit code 1 when a claim fails that held in its source, 5 when time is up.

    On the null claims are expected to fail: that is exit code 0.
    An interrupted run goes on where it stopped when the same command is given again.
    """
    from sandlab.cli.screen import print_findings
    from sandlab.cli.settings import pairs

    chosen = choose(names or [], everything)
    texts = pairs(settings or [])
    if full and null:
        raise BadInput("--full and --null are two presets: give one of them")
    preset = "full" if full else "null" if null else "quick"
    options: dict[str, Any] = {"preset": preset, "seeds": seeds, "device": device, "store": store, "resume": resume}
    options |= {"judge_only": True} if judge_only else {}
    options |= {"budget": seconds("budget", budget)} if budget else {}
    return _run_all(chosen, texts, on, options, None if as_json else print_findings)


@commands.command(epilog="Example:  sandlab tour")
def tour(
    out: Annotated[Path, typer.Option(help="Folder of the report.")] = Path("report"),
    on: On = "",
    store: StoreFolder = None,
) -> int:
    """Run a quick study of most chapters, print what was found, and write the report. Two to four minutes.

    An interrupted tour goes on where it stopped when the same command is given again.
    """
    from sandlab.cli.screen import print_sentences
    from sandlab.lab._report.site import write_site
    from sandlab.lab._store.store import Store

    open_folder(out)
    start = time.monotonic()
    tell(f"{counted(len(TOUR), 'study', 'studies')}, two to four minutes on two free cores\n", flush=True)
    options = {"preset": "quick", "seeds": None, "device": "cpu", "store": store, "resume": True}
    code = _run_all(list(TOUR), {}, on, options, print_sentences)
    page = write_site(Store(store), out)
    tell(f"{time.monotonic() - start:.0f} s. The report with all figures: {page}")
    return code


def choose(names: list[str], everything: bool = False) -> list[str]:
    """Study names, patterns resolved, in order and once each; an unknown one suggests the nearest."""
    from sandlab.registry import get
    from sandlab.registry import names as known

    if everything:
        return known("studies")
    if not names:
        raise BadInput("name a study, or --all: see `sandlab list studies`")
    found: list[str] = []
    for name in names:
        matching = fnmatch.filter(known("studies"), name)
        if not matching and fnmatch.filter(known("studies"), f"{name}/*"):
            raise BadInput(f"no studies called {name!r}: did you mean '{name}/*'?")
        if not matching:
            get("studies", name)
        found += [each for each in matching if each not in found]
    return found


def _run_all(names: list[str], texts: dict[str, str], on: str, options: dict[str, Any], show: Show | None) -> int:
    """Run studies one after another on one executor, and `show` each one's findings; without it, print JSON.

    A job that fails ends its study, not the others.
    """
    from sandlab.cli.screen import print_json
    from sandlab.lab._exec.executors import executor
    from sandlab.lab._exec.jobs import JobFailed
    from sandlab.learning._engine.scratch import OutOfTime

    settings = {name: _read(name, texts, options["preset"]) for name in names}
    place = executor(on or ("processes" if options["device"] == "cpu" else "local"))
    reports, failures, unfinished = [], [], []
    end = time.monotonic() + options["budget"] if "budget" in options else None
    try:
        for number, name in enumerate(names, start=1):
            if end is not None:
                options["budget"] = max(0.0, end - time.monotonic())
            try:
                reports.append(_run_one(name, settings[name], place, options))
                if show is not None:
                    _tell(reports[-1], show, f"({number} of {len(names)}) " if len(names) > 1 else "")
            except OutOfTime as problem:
                unfinished.append(name)
                tell(f"sandlab: {name} is not finished: {problem}", file=sys.stderr)
            except JobFailed as problem:
                failures.append(name)
                tell(f"sandlab: {name} could not finish: {problem}", file=sys.stderr)
    finally:
        place.close()
    if show is None:
        print_json([_as_data(report) for report in reports])
    elif len(names) > 1:
        _summarise(reports, failures)
    if unfinished:
        _say_what_is_left(unfinished, options)
    if failures or unfinished:
        return 3 if failures else OUT_OF_TIME
    return int(options["preset"] != "null" and any(report.surprises for report in reports))


def _say_what_is_left(names: list[str], options: dict[str, Any]) -> None:
    """After a budget: what is not finished, and how much of the store is needed to go on elsewhere."""
    from sandlab.lab._store.store import Store

    store = Store(options["store"])
    needed = sum(file.stat().st_size for part in (store.cache.folder, store.checkpoints) for file in part.rglob("*.*"))
    tell(
        f"sandlab: time is up, {len(names)} not finished: {', '.join(names)}. The same command goes on from there; "
        f"elsewhere it needs {store.cache.folder} and {store.checkpoints} ({needed / 2**20:.1f} MiB)",
        file=sys.stderr,
    )


def seconds(name: str, text: str) -> float:
    """A time such as 90s, 8m, 1.5h or 90 (seconds)."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(s|m|h)?", text.strip())
    if found is None:
        raise BadInput(f"{name} must be a time such as 90s, 8m or 1.5h, got {text!r}")
    return float(found[1]) * {"s": 1, "m": 60, "h": 3600}[found[2] or "s"]


def _run_one(name: str, settings: dict[str, Any], place: Any, options: dict[str, Any]) -> Any:
    from sandlab.lab.run import run as run_study

    return run_study(name, settings=settings, on=place, **options)


def _tell(report: Any, show: Show, number: str) -> None:
    """What one study found, how long it took and where its figures are."""
    show((finding.as_dict() for finding in report.findings), f"{number}{report.study}: {report.about['title']}")
    for absent in report.tables.get("not measured", []):
        tell(f"not measured: {absent['claim']} ({absent['why']})")
    how = "finished before, nothing to do (--fresh computes it again)" if report.reused else _how(report.about["jobs"])
    tell(f"{report.about['seconds']:.1f} s, {how}. Figures and data: {report.path}\n", flush=True)


def _how(jobs: dict[str, int]) -> str:
    found = f", {jobs['cached']} found in the store" if jobs["cached"] else ""
    again = f", {jobs['retried']} retried" if jobs["retried"] else ""
    return f"{counted(jobs['computed'], 'job', 'jobs')} computed{found}{again}"


def _read(name: str, texts: dict[str, str], preset: str) -> dict[str, Any]:
    from sandlab.cli.settings import read_settings
    from sandlab.registry import get

    return read_settings(get("studies", name).config(preset), texts, name)


def _as_data(report: Any) -> dict[str, Any]:
    findings = [finding.as_dict() for finding in report.findings]
    figures = {name: str(path) for name, path in report.figures.items()}
    return {
        "study": report.study,
        "preset": report.preset,
        "findings": findings,
        "not measured": report.tables.get("not measured", []),
        "figures": figures,
        "path": str(report.path),
        "jobs": report.about["jobs"],
        "seconds": report.about["seconds"],
        "reused": report.reused,
    }


def _summarise(reports: list[Any], failures: list[str]) -> None:
    from sandlab.cli.screen import print_table

    rows = []
    for report in reports:
        verdicts = [finding.verdict for finding in report.findings]
        counts = [verdicts.count(word) for word in ("holds", "fails", "inconclusive")]
        rows.append([report.study, *counts, f"{report.about['seconds']:.1f} s"])
    rows += [[name, "", "", "", "could not finish"] for name in failures]
    print_table(["study", "holds", "fails", "inconclusive", "time"], rows, "All findings")
    expected = sum(each.verdict == "fails" and not each.held for report in reports for each in report.findings)
    if expected:
        claims = counted(expected, "claim", "claims")
        tell(f"Failing as expected: {claims}, printed wrong in the source (docs/errata.md).")
