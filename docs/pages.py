"""Pages made from the registries while the documentation is built: one for every world, model, circuit, lens, study."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
import sys
import time
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).parent))

from decoder_pictures import FILM, PICTURE, decoder_film, decoder_picture
from hmm_pictures import ORBIT, orbit_film
from learning_films import FILMS as LEARNING
from pictures import circuit_picture, world_picture

import sandlab as sl
from sandlab.lab._report.ledger import definition, former
from sandlab.lab._report.published import PublishedRun, command, ledger, published
from sandlab.registry import KINDS, summary

DOCS = Path(__file__).parent
ROOMS = ("worlds", "models", "circuits", "learning", "decoding", "lenses", "studies", "lab")
SHORT_TABLE = 16
MARKS = {"holds": "✓ holds", "fails": "✗ fails", "inconclusive": "? inconclusive"}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages to those written by hand."""
    for kind in KINDS:
        names = sl.names(kind)
        files.append(_page(config, f"{kind}/index.md", _index(kind, names)))
        for name in names:
            thing = sl.get(kind, name)
            pictures = _pictures(kind, name, thing)
            for file, (_, content) in pictures.items():
                files.append(File.generated(config, f"{kind}/{file}", content=content))
            captions = {file: caption for file, (caption, _) in pictures.items()}
            text = _study_page(thing) if kind == "studies" else _thing_page(name, thing, captions)
            files.append(_page(config, f"{kind}/{name}.md", text))
    for room in ROOMS:
        files.append(_page(config, f"reference/{room}.md", _reference(room)))
    return files


def _page(config: MkDocsConfig, path: str, text: str) -> File:
    return File.generated(config, path, content=text)


def _index(kind: str, names: list[str]) -> str:
    rows = "\n".join(f"| [{name}]({name}.md) | {summary(sl.get(kind, name))} |" for name in names)
    return f"# {kind.capitalize()}\n\n| name | what it is |\n|---|---|\n{rows}\n"


def _thing_page(name: str, thing: Any, captions: dict[str, str]) -> str:
    parts = [f"# {name}", _prose(inspect.getdoc(thing) or ""), _parameters(thing), _sample(thing)]
    for file, caption in captions.items():
        parts += [f"![{name}]({file})", caption]
    parts.append(f"`{thing.__module__}.{thing.__qualname__}`")
    return "\n\n".join(part for part in parts if part) + "\n"


def _parameters(thing: Any) -> str:
    options = getattr(thing, "config_class", thing)
    if dataclasses.is_dataclass(options):
        fields = [(f.name, f.type, _default(f)) for f in dataclasses.fields(options)]
    else:
        signature = inspect.signature(thing)
        fields = [
            (p.name, p.annotation, "required" if p.default is p.empty else repr(p.default))
            for p in signature.parameters.values()
        ]
    rows = "\n".join(f"| `{name}` | `{_type_name(kind)}` | `{value}` |" for name, kind, value in fields)
    return f"| parameter | type | default |\n|---|---|---|\n{rows}" if rows else ""


def _type_name(kind: Any) -> str:
    text = (
        ""
        if kind is inspect.Parameter.empty
        else kind
        if isinstance(kind, str)
        else getattr(kind, "__name__", str(kind))
    )
    return text.replace("|", "or")


def _default(field: dataclasses.Field[Any]) -> str:
    if field.default is not dataclasses.MISSING:
        return repr(field.default).replace("|", "\\|")
    return "required" if field.default_factory is dataclasses.MISSING else repr(field.default_factory())


def _sample(thing: Any) -> str:
    """Three examples, for worlds that can be built without arguments and written down."""
    if not (inspect.isclass(thing) and hasattr(thing, "sample") and hasattr(thing, "render")):
        return ""
    try:
        world = thing()
        batch = world.sample(3, rng=sl.rng(0))
        lines = [world.render(row)[:110] for row in batch.inputs]
    except (TypeError, NotImplementedError, IndexError):
        return ""
    return "Three examples:\n\n```\n" + "\n".join(lines) + "\n```"


def _pictures(kind: str, name: str, thing: Any) -> dict[str, tuple[str, bytes]]:
    """What can be drawn of a world, a circuit or a decoder without being told how: file name → caption, content."""
    if kind == "decoders":
        film = decoder_film(name)
        moving = {} if film is None else {f"{name}-film.gif": (FILM, film[0]), f"{name}-film.svg": ("", film[1])}
        return {f"{name}.svg": (PICTURE, decoder_picture(name)), **moving}
    if (kind, name) == ("worlds", "hmm"):
        return {"hmm.svg": ("", _picture(kind, name, thing) or b""), "hmm-orbit.gif": (ORBIT, orbit_film())}
    picture = _picture(kind, name, thing)
    still = {} if picture is None else {f"{name}.svg": ("", picture)}
    caption, film = LEARNING.get((kind, name), ("", None))
    return still if film is None else {**still, f"{name}-film.gif": (caption, film())}


def _picture(kind: str, name: str, thing: Any) -> bytes | None:
    if kind == "circuits":
        return circuit_picture(name)
    if kind != "worlds" or not inspect.isclass(thing):
        return None
    try:
        return world_picture(thing())
    except (TypeError, NotImplementedError, IndexError, RuntimeError, ValueError):
        return None  # needs arguments, or its examples are not tokens or points


def _study_page(study: Any) -> str:
    """Figures of the largest recorded preset first, then every claim with its verdicts, then the text and the rest."""
    runs = [run for run in published(study.name, DOCS / "results") if run.preset != "null"]
    parts = [f"# {study.name}", f"**{study.title}**", f"*{study.source}*"]
    parts += _figures(runs[-1]) if runs else []
    parts += [_claims(study, runs), _former(study), _prose(study.text)]
    parts += [_results(study, run, drawn=run is runs[-1]) for run in reversed(runs)]
    parts += [f"## Run it\n\n```\nsandlab run {study.name}\nsandlab run {study.name} --full\n```", _settings(study)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _claims(study: Any, runs: list[PublishedRun]) -> str:
    """One row per claim: statement, what was asked for, the source's value, and the verdict of each preset."""
    found = {(run.preset, finding.claim): finding for run in runs for finding in run.findings}
    head = "".join(f" {run.preset} |" for run in runs)
    rows = []
    for claim in study.claims:
        verdicts = "".join(f" {_verdict(found.get((run.preset, claim.id)))} |" for run in runs)
        words = f"{_cell(claim.statement)}<br><small>`{claim.id.rpartition('.')[2]}`: {_cell(claim.quantity)}</small>"
        rows.append(f"| {words} | {claim.relation} | {_cell(claim.paper)} |{verdicts}")
    lines = "\n".join([f"| claim | must be | source |{head}", "|---|---|---|" + "---|" * len(runs), *rows])
    return f"## Claims\n\n{lines}"


def _verdict(finding: Any) -> str:
    if finding is None:
        return ""
    interval = f"[{finding.low:.4g}, {finding.high:.4g}]" if finding.count > 1 else "computed"
    note = f"<br><small>{_cell(finding.note)}</small>" if finding.note else ""
    return f"{MARKS[finding.verdict]}<br>{finding.mean:.4g} <small>{interval}, {finding.count}</small>{note}"


def _former(study: Any) -> str:
    """Verdicts that claims had before their quantity or their interval was changed."""
    rows = []
    for claim in study.claims:
        for entry in former(ledger(claim.id), definition(claim.quantity, str(claim.relation))):
            day = time.strftime("%Y-%m-%d", time.gmtime(entry.date))
            asked, short = f"{_cell(entry.quantity)} {entry.relation}", claim.id.rpartition(".")[2]
            ours = f"{entry.mean:.4g} [{entry.low:.4g}, {entry.high:.4g}], {entry.seeds}"
            rows.append(f"| `{short}` | {day} | {entry.preset} | {asked} | {MARKS[entry.verdict]} {ours} |")
    if not rows:
        return ""
    head = "| claim | date | preset | was asked for | was found |\n|---|---|---|---|---|\n"
    summary_line = f"<summary>Former wordings and their verdicts ({len(rows)})</summary>"
    return f'<details markdown="1">\n{summary_line}\n\n{head}' + "\n".join(rows) + "\n\n</details>"


def _figures(run: PublishedRun) -> list[str]:
    up = "../" * (run.study.count("/") + 1)
    names = sorted(run.folder.glob("*.svg"))
    return [f"![{name.stem}]({up}results/{run.study}/{run.preset}/{name.name})" for name in names]


def _results(study: Any, run: PublishedRun, *, drawn: bool) -> str:
    marks = [f"**{run.status}**" if run.status == "stale" else run.status]
    marks += [f"smaller than the source: {'; '.join(run.reduced[:6])}"] if run.reduced else []
    parts = [f"## Results, {run.preset}", f"{_where(run.folder)} {'. '.join(marks).capitalize()}."]
    parts += [f"`{command(run.study, run.preset, str(run.about.get('device', 'cpu')))}`"]
    parts += [] if drawn else _figures(run)
    tables_file = run.folder / "tables.json"
    if tables_file.exists():
        parts += [_table(name, rows) for name, rows in json.loads(tables_file.read_text()).items() if rows]
    return "\n\n".join(part for part in parts if part)


def _where(folder: Path) -> str:
    """When and on what the results were computed."""
    if not (file := folder / "environment.json").exists():
        return ""
    about = json.loads(file.read_text())
    machine = about.get("accelerator") or f"{about.get('processor', 'a processor')}, {about.get('cores', '?')} cores"
    return f"Computed {about['date']} on {machine}, Python {about['python']}, torch {about['packages']['torch']}."


def _table(name: str, rows: list[dict[str, Any]]) -> str:
    """One table of a study; long ones are folded."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    lines = [columns, ["---"] * len(columns), *([_cell(row.get(column)) for column in columns] for row in rows)]
    table = "\n".join("| " + " | ".join(line) + " |" for line in lines)
    opened = " open" if len(rows) <= SHORT_TABLE else ""
    return f'<details{opened} markdown="1">\n<summary>{name} ({len(rows)} rows)</summary>\n\n{table}\n\n</details>'


def _cell(value: Any) -> str:
    if value is None:
        return ""
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    # Square brackets would become links: strings of bracket languages stand in these tables.
    return text.replace("|", "\\|").replace("<", "&lt;").replace("[", "&#91;").replace("\n", " ")


def _settings(study: Any) -> str:
    quick, full = (study.describe(preset) for preset in ("quick", "full"))
    names = dict.fromkeys([*quick, *full])
    rows = "\n".join(f"| `{name}` | `{quick.get(name, '')}` | `{full.get(name, '')}` |" for name in names)
    return f"## Settings\n\n| setting | quick | full |\n|---|---|---|\n{rows}"


def _reference(room: str) -> str:
    package = DOCS.parent / "sandlab" / room
    paths = sorted(path for path in package.rglob("*.py") if not path.name.startswith("_"))
    modules = [".".join(path.relative_to(DOCS.parent).with_suffix("").parts) for path in paths]
    return f"# {room}\n\n" + "\n\n".join(f"::: {module}" for module in modules) + "\n"


def _prose(text: str) -> str:
    """A docstring as Markdown: indented blocks become code, everything else stays as it is."""
    lines = text.splitlines()
    blocks, block = [], []
    for line in [*lines, ""]:
        if line.strip():
            block.append(line)
            continue
        if block:
            aligned = len(block) > 1 and all(re.match(r"^(\s{2,}\S|\S.*\s{2,}\S)", part) for part in block)
            blocks.append("```\n" + "\n".join(block) + "\n```" if aligned else "\n".join(block))
        block = []
    return "\n\n".join(blocks)
