"""The report: a static site over the last run of every study. It reads on a phone and needs no network."""

from __future__ import annotations

import base64
import time
from pathlib import Path
from urllib.parse import quote

from sandlab.errors import BadInput
from sandlab.lab._report.html import Markup, element, page, prose, table
from sandlab.lab._store.files import write_atomic
from sandlab.lab._store.plain import Facts
from sandlab.lab._store.store import Record, Store
from sandlab.lab.run import Report, load_report
from sandlab.studies.claims import Finding

__all__ = ["summary", "write_site"]

_MARKS = {"holds": "✓ holds", "fails": "✗ fails", "inconclusive": "? inconclusive"}


def write_site(store: Store, out: Path) -> Path:
    """Write `out/index.html` and a page per study and preset; returns the index."""
    records = store.latest()
    if not records:
        raise BadInput(f"there is no finished run in {store.folder}: give `sandlab run` or `sandlab tour` first")
    pairs = [(record, load_report(record)) for record in records]
    for record, report in pairs:
        write_atomic(out / _address(report), _study_page(record, report).encode())
    index = out / "index.html"
    write_atomic(index, _index_page([report for _, report in pairs]).encode())
    return index


def summary(report: Report) -> str:
    """A report's findings and figures as a piece of HTML."""
    figures = [element("figure", _picture(path)) for path in report.figures.values()]
    return element("div", element("h3", report.about["title"]), _findings(report.findings), *figures)


def _index_page(reports: list[Report]) -> str:
    findings = [finding for report in reports for finding in report.findings]
    counts = [f"{sum(each.verdict == word for each in findings)} {_MARKS[word]}" for word in _MARKS]
    parts: list[Markup] = [element("h1", "What SandLab found"), element("p", " · ".join(counts))]
    for report in reports:
        title = element("a", report.about["title"], href=_address(report))
        parts.append(element("h2", title))
        parts.append(element("p", f"{report.study}, {report.preset} preset. {report.about['source']}", class_="quiet"))
        parts.append(_findings(report.findings))
    return page("SandLab: findings", *parts)


def _study_page(record: Record, report: Report) -> str:
    about, environment = report.about, record.read("environment.json")
    when = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(about["finished"]))
    parts = [
        element("p", element("a", "all findings", href=_up(report) + "index.html"), class_="quiet"),
        element("h1", about["title"]),
        element("p", f"{report.study}, {report.preset} preset, {when}. {about['source']}", class_="quiet"),
        _findings(report.findings),
        *(element("figure", _picture(path)) for path in report.figures.values()),
        *_text_of(report.study),
        *(part for name, rows in report.tables.items() if rows for part in _rows(name, rows)),
        element("h2", "How to run it again"),
        element("pre", _command(report)),
        element(
            "p",
            "While `sandlab serve` runs: ",
            element("a", "its claims in the atlas", href=_in_atlas(report)),
            class_="quiet",
        ),
        element("h2", "Configuration"),
        _facts(about["config"]["fields"]),
        element("h2", "Environment"),
        _facts({**environment, **environment["packages"], "packages": None}),
        _facts({"seconds": f"{about['seconds']:.1f}", "executor": about["executor"], "jobs": about["jobs"]["jobs"]}),
    ]
    return page(f"{about['title']} · SandLab", *parts)


def _findings(findings: list[Finding]) -> Markup:
    rows = []
    for each in findings:
        mark = element("span", _MARKS[each.verdict], class_=each.verdict)
        expected = "" if each.held else element("div", "expected to fail: the source is corrected here", class_="quiet")
        words = element(
            "div", each.statement, element("div", f"{each.quantity}. {each.source}", class_="quiet"), expected
        )
        if each.note:
            words = element("div", words, element("div", each.note, class_="quiet"))
        ours = f"{each.mean:.4g}"
        interval = f"[{each.low:.4g}, {each.high:.4g}], {each.count} value{'s' if each.count != 1 else ''}"
        rows.append([mark, words, ours, interval, each.relation, each.paper])
    return table(["verdict", "claim", "ours", "interval", "must be", "paper"], rows, class_="cards")


def _text_of(study: str) -> list[Markup]:
    """The study's own words; a run of a study that no longer exists has none."""
    from sandlab.registry import get

    try:
        return [element("h2", "What this is"), prose(get("studies", study).text)]
    except BadInput:
        return []


def _rows(name: str, rows: list[Facts]) -> list[Markup]:
    columns = list(dict.fromkeys(key for row in rows for key in row))
    cells = [[_cell(row.get(column, "")) for column in columns] for row in rows]
    return [element("h3", name.replace("-", " ").replace("_", " ")), table(columns, cells)]


def _cell(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _facts(facts: Facts) -> Markup:
    return table(["", ""], [[name, str(value)] for name, value in facts.items() if value not in (None, "")])


def _command(report: Report) -> str:
    command = f"sandlab run {report.study}" + (" --full" if report.preset == "full" else "")
    if report.about["device"] != "cpu":
        command += f" --device {report.about['device']}"
    return command


def _in_atlas(report: Report) -> str:
    """The study's claims on the live page, at the address that `sandlab serve` takes when none is given."""
    return f"http://127.0.0.1:8000/#/claims?words={quote(report.study, safe='')}."


def _picture(path: Path) -> Markup:
    """A figure as an image inside the page: nothing in an SVG file can run there."""
    data = base64.b64encode(path.read_bytes()).decode()
    return element("img", src=f"data:image/svg+xml;base64,{data}", alt=path.stem)


def _address(report: Report) -> str:
    return f"{report.study}/{report.preset}.html"


def _up(report: Report) -> str:
    return "../" * _address(report).count("/")
