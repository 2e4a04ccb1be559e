"""The pages of studies: figures first, then one table; the gallery; and what was found beside what was published."""

from __future__ import annotations

import html
import json
import re
import time
from functools import cache
from pathlib import Path
from typing import Any

from formulas import subscripts
from thing_pages import by_chapter, cell, prose, title_of

import sandlab as sl
from sandlab.lab._report.ledger import Entry, definition, former, overturned, removed
from sandlab.lab._report.published import PublishedRun, command, ledger, published, verdicts

DOCS = Path(__file__).parent
SHORT_TABLE = 16
MARKS = {"holds": "✓ holds", "fails": "✗ fails", "inconclusive": "? inconclusive"}
DOCUMENTS = {
    "Liu 2024, Guiding machine learning design with insights from simple sandboxes (thesis)": (
        "diffusions", "hmm", "automata", "flip-flop", "dyck", "nce", "distillation",
    ),
    "Li 2025, Mathematical foundations of data–training–inference interaction in language modeling (thesis)": (
        "topics", "verifier", "parallel",
    ),
    "Makkuva et al., Sandbox for the blackbox: how language models learn structured data (tutorial)": (
        "markov", "knowledge", "expressivity",
    ),
    "Huang et al. 2025, Transformers provably learn chain-of-thought reasoning with length generalization": (
        "reasoning",
    ),
    "Varre, Yüce and Flammarion 2025, Learning in-context n-grams with transformers": ("ngrams",),
}  # fmt: skip
"""Source document → the chapters that come from it."""


@cache
def runs_of(study: str) -> tuple[PublishedRun, ...]:
    """The recorded runs of the presets, quick before full."""
    return tuple(run for run in published(study, DOCS / "results") if run.preset != "null")


@cache
def verdicts_of(study: str) -> dict[str, list[tuple[PublishedRun, Any]]]:
    """What the recorded runs found about each claim as it is worded now, the verdict that says most first."""
    return verdicts(sl.get("studies", study), DOCS / "results")


def study_page(study: Any) -> str:
    """Figures of the largest recorded preset, every claim with its verdict, ours and the source's, then the rest."""
    runs = runs_of(study.name)
    parts = [f"# {study.name}", f"**{cell(study.title)}**", f"*{cell(study.source)}*"]
    parts += [*figures_of(study, runs[-1]), _drawn(runs[-1])] if runs else ["*No run is recorded yet.*"]
    parts += [f"```\nsandlab run {study.name}\nsandlab run {study.name} --full\n```"]
    parts += [claims(study), _former(study), prose(study.text)]
    parts += [results(study, run, drawn=run is runs[-1]) for run in reversed(runs)]
    parts += [_settings(study)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _drawn(run: PublishedRun) -> str:
    """Which run the figures at the top are of."""
    return f"*Figures: {standing_of(run)}.*"


def standing_of(run: PublishedRun) -> str:
    """Preset, day, and whether the run is current or stale, and reduced: "full, 2026-11-15, **stale**"."""
    marks = ["**stale**" if run.status == "stale" else run.status]
    marks += ["reduced"] if run.reduced else []
    return ", ".join([run.preset, time.strftime("%Y-%m-%d", time.gmtime(run.date)), *marks])


def claims(study: Any) -> str:
    """One row per claim: statement, verdict with its circumstances, ours, the source's; what other runs found below."""
    rows = []
    for claim in study.claims:
        (run, finding), *others = verdicts_of(study.name).get(claim.id) or [(None, None)]
        short = claim.id.rpartition(".")[2]
        words = f"{cell(claim.statement)}<br><small>`{short}`: {cell(claim.quantity)}</small>"
        verdict = f"{MARKS[finding.verdict]}<br><small>{standing_of(run)}</small>" if finding else _unmeasured(claim)
        ours = f"{ours_of(finding)}<br><small>must be {cell(claim.relation)}</small>{_note(finding)}"
        ours += "".join(
            f"<br><small>{standing_of(run)}: {MARKS[each.verdict]}, {ours_of(each)}</small>" for run, each in others
        )
        rows.append(f"| {words} | {verdict} | {ours} | {cell(claim.paper) or '–'} |")
    return "\n".join(["## Claims\n", "| statement | verdict | ours | source's |", "|---|---|---|---|", *rows])


def _unmeasured(claim: Any) -> str:
    only_full = "quick" not in claim.presets
    return "not measured yet" + ("<br><small>needs `--full`</small>" if only_full else "")


def ours_of(finding: Any) -> str:
    """The measured value and, where it was sampled, its interval and the number of seeds."""
    if finding is None:
        return ""
    if finding.count <= 1:
        return f"{finding.mean:.4g}"
    return f"{finding.mean:.4g} <small>[{finding.low:.4g}, {finding.high:.4g}], {finding.count} values</small>"


def _note(finding: Any) -> str:
    return f"<br><small>{cell(finding.note)}</small>" if finding is not None and finding.note else ""


def _former(study: Any) -> str:
    """Verdicts that claims had before they were measured or judged again, changed, or removed."""
    history = ledger()
    told = [(entry, "removed: ") for entry in removed(history, study.name, [claim.id for claim in study.claims])]
    for claim in study.claims:
        own = [entry for entry in history if entry.claim == claim.id]
        words = definition(claim.quantity, str(claim.relation))
        told += [(entry, "") for entry in former(own, words)]
        told += [(entry, "same words: ") for entry in overturned(own, words)]
    rows = [_former_row(entry, mark) for entry, mark in told]
    if not rows:
        return ""
    head = "| claim | date | preset | was asked for | was found |\n|---|---|---|---|---|\n"
    summary_line = f"<summary>Former wordings and verdicts ({len(rows)})</summary>"
    return f'<details markdown="1">\n{summary_line}\n\n{head}' + "\n".join(rows) + "\n\n</details>"


def _former_row(entry: Entry, mark: str) -> str:
    day = time.strftime("%Y-%m-%d", time.gmtime(entry.date))
    asked, short = f"{cell(entry.quantity)} {cell(entry.relation)}", entry.claim.rpartition(".")[2]
    ours = f"{entry.mean:.4g} [{entry.low:.4g}, {entry.high:.4g}], {entry.seeds}"
    return f"| {mark}`{short}` | {day} | {entry.preset} | {asked} | {MARKS[entry.verdict]} {ours} |"


def figure_files(study: Any, run: PublishedRun) -> list[Path]:
    """The figures of a run in the order in which the study draws them."""
    order = {name: place for place, name in enumerate(study.figures)}
    files = run.folder.glob("*.svg")
    return sorted(files, key=lambda file: (order.get(file.stem, len(order)), _numbered(file.stem)))


def _numbered(name: str) -> list[Any]:
    """2-gram before 10-gram."""
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", name) if part]


def figures_of(study: Any, run: PublishedRun) -> list[str]:
    up = "../" * (run.study.count("/") + 1)
    return [
        f"![{file.stem}]({up}results/{run.study}/{run.preset}/{file.name.replace(' ', '%20')})\n"
        f"<br>*{_caption(study, file.stem)}*"
        for file in figure_files(study, run)
    ]


def _caption(study: Any, name: str) -> str:
    draw = study.figures.get(name)
    words = " ".join((draw.__doc__ or "").split("\n\n")[0].split()) if draw is not None else ""
    return cell(words or name.replace("-", " ").replace("_", " ").capitalize())


def results(study: Any, run: PublishedRun, *, drawn: bool) -> str:
    """When and how a preset was computed, its figures unless they stand above, its tables."""
    parts = [f"## Results, {run.preset}", f"{_where(run.folder)} {status_of(run)}."]
    parts += [f"`{command(run.study, run.preset, str(run.about.get('device', 'cpu')))}`"]
    parts += [] if drawn else figures_of(study, run)
    tables_file = run.folder / "tables.json"
    if tables_file.exists():
        parts += [table(name, rows) for name, rows in json.loads(tables_file.read_text()).items() if rows]
    return "\n\n".join(part for part in parts if part)


def status_of(run: PublishedRun) -> str:
    """Current or stale, and by what the run is smaller than its source."""
    marks = [f"**{run.status}**" if run.status == "stale" else run.status]
    marks += [f"smaller than the source: {'; '.join(map(cell, run.reduced[:6]))}"] if run.reduced else []
    return ". ".join(marks).capitalize()


def _where(folder: Path) -> str:
    """When and on what the results were computed."""
    if not (file := folder / "environment.json").exists():
        return ""
    about = json.loads(file.read_text())
    machine = about.get("accelerator") or f"{about.get('processor', 'a processor')}, {about.get('cores', '?')} cores"
    return f"Computed {about['date']} on {machine}, Python {about['python']}, torch {about['packages']['torch']}."


def table(name: str, rows: list[dict[str, Any]]) -> str:
    """One table of a study; long ones are folded."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    lines = [columns, ["---"] * len(columns), *([cell(row.get(column)) for column in columns] for row in rows)]
    text = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    opened = " open" if len(rows) <= SHORT_TABLE else ""
    return f'<details{opened} markdown="1">\n<summary>{name} ({len(rows)} rows)</summary>\n\n{text}\n\n</details>'


def _settings(study: Any) -> str:
    quick, full = (study.describe(preset) for preset in ("quick", "full"))
    names = dict.fromkeys([*quick, *full])
    rows = "\n".join(f"| `{name}` | `{_set(quick, name)}` | `{_set(full, name)}` |" for name in names)
    return f"## Settings\n\n| setting | quick | full |\n|---|---|---|\n{rows}" if rows else ""


def _set(settings: dict[str, Any], name: str) -> str:
    text = str(settings.get(name, "")).replace("|", "\\|").replace("`", "'")
    return text if len(text) <= 160 else text[:159] + "…"


def gallery(names: list[str]) -> str:
    """Every study on one page: its first figure, what was found, how many claims hold."""
    parts = ["# Gallery of studies", "Each card: the first figure, what was found, and how the claims were judged."]
    for chapter, members in by_chapter("studies", names).items():
        cards = "\n".join(_card(sl.get("studies", name)) for name in members)
        parts.append(f'## {title_of(chapter)}\n\n<div class="cards" markdown="0">\n{cards}\n</div>')
    return "\n\n".join(parts) + "\n"


def _card(study: Any) -> str:
    runs = runs_of(study.name)
    files = figure_files(study, runs[-1]) if runs else []
    image = f"results/{study.name}/{runs[-1].preset}/{files[0].name.replace(' ', '%20')}" if files else ""
    image = f'<img src="{image}" alt="" loading="lazy">' if image else ""
    words = subscripts(html.escape(study.title))
    counts = f"<small>{tally(study.name)}</small>"
    return (
        f'<a class="card" href="studies/{study.name}.html">{image}<b>{study.name}</b><span>{words}</span>{counts}</a>'
    )


def tally(*names: str) -> str:
    """How many claims hold, fail and are open, by the verdicts that say most."""
    found = [judged[0][1].verdict for name in names for judged in verdicts_of(name).values()]
    words = [f"{mark} {n}" for mark, verdict in zip("✓✗?", MARKS) if (n := found.count(verdict))]
    return " · ".join(words) if words else "no run recorded"


def sources_index(names: list[str]) -> str:
    """The source documents, their chapters, and how the claims of each stand."""
    parts = ["# Here and published", SOURCES_TEXT]
    chapters = by_chapter("studies", names)
    for document, members in DOCUMENTS.items():
        rows = [
            f"| [{title_of(chapter)}]({chapter}.md) | {len(chapters[chapter])} | {tally(*chapters[chapter])} |"
            for chapter in members
            if chapter in chapters
        ]
        lines = "\n".join(["| chapter | studies | claims |", "|---|---|---|", *rows])
        parts.append(f"## {document}\n\n{lines}" if rows else "")
    return "\n\n".join(part for part in parts if part) + "\n"


SOURCES_TEXT = """For every source: what it says, the number it prints, the number found here, and the verdict.
*Current* means that the code and the settings are those of the repository as it stands; *stale* that one of them has
changed since; *reduced* that the run is smaller than the source's. See also
[how verdicts are made](../verdicts.md) and [where sources are wrong](../errata.md)."""


def source_page(chapter: str, names: list[str]) -> str:
    """The studies of one chapter: figures here, tables with the published numbers, one row per claim."""
    parts = [f"# {title_of(chapter)}: here and published", f"{tally(*names)} of the claims of {len(names)} studies."]
    cited = dict.fromkeys(sl.get("studies", name).reference for name in names)
    parts.append("\n".join(f"- {cell(source)}" for source in cited))
    for name in names:
        parts += _beside(sl.get("studies", name))
    return "\n\n".join(part for part in parts if part) + "\n"


def _beside(study: Any) -> list[str]:
    runs = runs_of(study.name)
    parts = [f"## [{study.name}](../studies/{study.name}.md)", f"{cell(study.title)}. *{cell(study.source)}*"]
    if not runs:
        return [*parts, "No run is recorded yet.", f"```\nsandlab run {study.name}\n```"]
    run = runs[-1]
    images = [
        f"![{file.stem}](../results/{run.study}/{run.preset}/{file.name.replace(' ', '%20')}){{ .thumb loading=lazy }}"
        for file in figure_files(study, run)[:2]
    ]
    found = verdicts_of(study.name)
    rows = [row for claim in study.claims for row in _rows(claim, found.get(claim.id, []))]
    head = ["| statement | published | here | verdict | status |", "|---|---|---|---|---|"]
    commands = "\n".join(command(each.study, each.preset, str(each.about.get("device", "cpu"))) for each in runs)
    return [*parts, " ".join(images), "\n".join([*head, *rows]), *_published_tables(run), f"```\n{commands}\n```"]


def _rows(claim: Any, judged: list[tuple[PublishedRun, Any]]) -> list[str]:
    """A claim beside what each run found; one that no run has measured is told, too."""
    found = [f"{ours_of(finding)} | {MARKS[finding.verdict]} | {standing_of(run)}" for run, finding in judged]
    said = f"| {cell(claim.statement)} | {cell(claim.paper) or 'no number'}"
    return [f"{said} | {each} |" for each in found or [f"– | {_unmeasured(claim)} | –"]]


def _published_tables(run: PublishedRun) -> list[str]:
    """The tables of the run that carry the source's numbers in a column of their own."""
    file = run.folder / "tables.json"
    tables = json.loads(file.read_text()) if file.exists() else {}
    return [table(name, rows) for name, rows in tables.items() if rows and any("publ" in column for column in rows[0])]
