"""The map of the field as pages: sandboxes against questions, theorem cards, bibliography, classes, statements.

    python docs/map_pages.py               write map.md, theorems.md, bibliography.md, circuit-classes.md, statements.md
    python docs/map_pages.py check C13     check a theorem now (or a rung: check NC¹)
    python docs/map_pages.py cell parity learn     what the registry holds for a sandbox and a question

The data are docs/map/*.toml, and for the statements the recorded table of the study `diffusions/lemma-audit`.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).parent
QUESTIONS = ("represent", "learn", "generalise")
ROOMS = ("worlds", "models", "circuits", "lenses", "decoding", "learning")


@dataclass(frozen=True)
class Sandbox:
    """One row of the map: a sandbox, the worlds that it is, and for each question the places of each model."""

    id: str
    worlds: tuple[str, ...]
    represent: dict[str, list[str]]
    learn: dict[str, list[str]]
    generalise: dict[str, list[str]]


@dataclass(frozen=True)
class Theorem:
    """A statement that tests check; tag: S stated, K reconstructed, V derived and checked."""

    id: str
    statement: str
    reference: str
    tag: str
    check: tuple[str, ...]

    @property
    def command(self) -> str:
        return f"python docs/map_pages.py check {self.id}"


@dataclass(frozen=True)
class Reference:
    key: str
    who: str
    year: int
    title: str
    at: tuple[str, ...]


def sandboxes() -> list[Sandbox]:
    rows = _read("sandboxes")["sandbox"]
    return [
        Sandbox(row["id"], tuple(row["worlds"]), *(row.get(question, {}) for question in QUESTIONS)) for row in rows
    ]


def theorems() -> list[Theorem]:
    rows = _read("theorems")["theorem"]
    return [Theorem(**{**row, "check": tuple(each.strip() for each in row["check"].split(","))}) for row in rows]


def references() -> list[Reference]:
    return [Reference(**{**row, "at": tuple(row["at"])}) for row in _read("references")["reference"]]


def registry() -> dict[tuple[str, str, str], tuple[str, ...]]:
    """(data, model, question) → constructions, experiments and theorem cards; cells without any are left out."""
    return {
        (box.id, model, question): tuple(places)
        for box in sandboxes()
        for question in QUESTIONS
        for model, places in getattr(box, question).items()
    }


def _read(name: str) -> dict:
    return tomllib.loads((DOCS / "map" / f"{name}.toml").read_text(encoding="utf-8"))


# ---------------------------------------------------------------------- pages


def pages() -> dict[str, str]:
    """File → text."""
    return {
        "map.md": _map(),
        "theorems.md": _theorems(),
        "bibliography.md": _bibliography(),
        "circuit-classes.md": _classes(),
        "statements.md": _statements(),
    }


def _map() -> str:
    head = (
        "# The map\n\nSandboxes against the three questions of the tutorial: can a model *represent* the solution, "
        "how does it *learn* it,\nand how does it *generalise*? Each cell leads, model by model, to constructions, "
        "experiments and\n[theorem cards](theorems.md). A study stands in a cell only if it trains that model on that "
        "sandbox.\n\n| sandbox | worlds | represent | learn | generalise |\n|---|---|---|---|---|\n"
    )
    rows = [
        f"| `{box.id}` | {', '.join(f'[{world}](reference/worlds.md)' for world in box.worlds)} | "
        + " | ".join(_square(getattr(box, question)) for question in QUESTIONS)
        + " |"
        for box in sandboxes()
    ]
    filled = sum(bool(getattr(box, question)) for box in sandboxes() for question in QUESTIONS)
    total = len(QUESTIONS) * len(sandboxes())
    return f"{head}{chr(10).join(rows)}\n\n{filled} of {total} cells are filled.\n"


def _square(cells: dict[str, list[str]]) -> str:
    """The places of each model, models with the same places in one line."""
    together: dict[tuple[str, ...], list[str]] = {}
    for model, places in cells.items():
        together.setdefault(tuple(places), []).append(model)
    return "<br>".join(
        f"{', '.join(models)}: {', '.join(_link(place) for place in places)}" for places, models in together.items()
    )


def _theorems() -> str:
    known = {reference.key: reference for reference in references()}
    tags = {"S": "stated in the source", "K": "reconstructed from the paper", "V": "derived and checked numerically"}
    cards = []
    for theorem in theorems():
        cited = known[theorem.reference]
        cards.append(
            f"## {theorem.id}\n\n{theorem.statement}.\n\n"
            f"Source: {cited.who} {cited.year}, *{cited.title}* ({tags[theorem.tag]}).\n\n"
            f"Check now: `{theorem.command}`\n"
        )
    return "# Theorem cards\n\nStatements that a program checks, each with the command that does it.\n\n" + "\n".join(
        cards
    )


def _bibliography() -> str:
    rows = [
        f"| {each.who} {each.year} | {each.title} | {'<br>'.join(_link(place) for place in each.at)} |"
        for each in sorted(references(), key=lambda each: (each.who.lower(), each.year, each.title))
    ]
    used = sum(bool(each.at) for each in references())
    return (
        "# Bibliography\n\nThe references of the tutorial and a few that its sandboxes need, with what implements "
        f"them here. {used} of\n{len(references())} are implemented; the others are background.\n\n"
        "| who | title | here |\n|---|---|---|\n" + "\n".join(rows) + "\n"
    )


def _classes() -> str:
    from sandlab.lenses.expressivity.circuit_classes import circuit_class_table

    parts = [
        f"## {rung.name}\n\n{rung.meaning[0].upper()}{rung.meaning[1:]}.\n\n"
        f"- Problems: {'; '.join(rung.problems)}.\n- Models: {'; '.join(rung.models)}.\n"
        f"- Sources: {'; '.join(rung.sources)}.\n"
        + (f"- Above the rung below if {rung.assumption}.\n" if rung.assumption else "")
        + f"\nCheck now: `python docs/map_pages.py check {rung.name.split()[0]}` ({rung.checked}).\n"
        for rung in circuit_class_table()
    ]
    return (
        "# The ladder of circuit classes\n\nAC⁰ ⊂ ACC⁰ ⊆ TC⁰ ⊆ NC¹ ⊆ L ⊆ NL ⊆ P. All of it is asymptotic, and most "
        "separations are conjectures: at a fixed\nlength every task is finite and small instances may be solved by "
        "less.\n\n" + "\n".join(parts)
    )


def _statements() -> str:
    """Every theorem and lemma about self-supervised tasks with its verdict, from the recorded table."""
    table = DOCS / "results" / "diffusions" / "lemma-audit" / "quick" / "tables.json"
    rows = json.loads(table.read_text(encoding="utf-8"))["every statement"]
    lines = [
        f"| {row['where']} | {_cell(row['statement'])} | **{row['verdict']}** | {_ratio(row['as printed'])} | "
        f"{_cell(row['correction'])} | {_ratio(row['corrected'])} |"
        for row in rows
    ]
    kinds = ("holds", "holds corrected", "fails as printed")
    count = ", ".join(f"{sum(row['verdict'] == kind for row in rows)} *{kind}*" for kind in kinds)
    head = "| where | statement | verdict | as printed | correction | corrected |\n|---|---|---|---|---|---|\n"
    return f"{STATEMENTS}\n{len(rows)} statements: {count}.\n\n{head}{chr(10).join(lines)}\n\n{NOT_STATED}"


STATEMENTS = """\
# Self-supervised tasks: which statements hold

Every theorem and lemma of Liu 2024 (thesis), chapter 2, that a number decides: the left side of an inequality divided
by its right side, or a difference divided by its tolerance. At most 1 means that it holds.
"""
NOT_STATED = """\
Not in the table, because only samples speak about them: Lemma 2, a cited bound that lies above every gap of
[diffusions/path-length](studies/diffusions/path-length.md) and is vacuous there, and Theorem 1, whose printed exponents
contradict its own proof; its qualitative part, that the length of the path decides and not the number of pairs, is a
claim of that study.

Computed by [diffusions/lemma-audit](studies/diffusions/lemma-audit.md): `sandlab run diffusions/lemma-audit`. What is
printed and what is true, with the tests that show it: [errata](errata.md).
"""


def _cell(text: str) -> str:
    return text.replace("|", "∣").replace("*", "\\*")  # a star is a star, not emphasis


def _ratio(value: float | str | None) -> str:
    """A ratio as the table shows it; a counter-example without a size is ∞."""
    if value is None:
        return ""
    number = float(value)
    return "∞" if math.isinf(number) else f"{number:.2g}"


def _link(place: str) -> str:
    """A place as a link to its page, or as code."""
    kind, _, rest = place.partition(":")
    if kind == "theorem":
        return f"[{rest}](theorems.md#{rest.lower()})"
    if kind == "study":
        return f"[{rest}](studies/{rest}.md)"
    if kind == "claim":
        return f"[{rest}](studies/{rest.rpartition('.')[0]}.md)"
    room = kind.split(".")[1]
    return f"[{rest}](reference/{room}.md)" if room in ROOMS else f"`{rest}`"


# ---------------------------------------------------------------------- commands


def check(name: str) -> int:
    """Run the tests of a theorem card, slow ones too, or the check of a rung; 0 when it passes."""
    found = [theorem for theorem in theorems() if theorem.id == name]
    if found:
        return subprocess.call([sys.executable, "-m", "pytest", "-q", *found[0].check], cwd=DOCS.parent)
    from sandlab.lenses.expressivity.circuit_classes import check_rung, circuit_class_table

    rungs = [rung.name for rung in circuit_class_table() if rung.name.split()[0] == name]
    if not rungs:
        sys.exit(f"no theorem or class called {name!r}: there are {', '.join(theorem.id for theorem in theorems())}")
    passed = check_rung(rungs[0])
    sys.stdout.write(f"{rungs[0]}: {'holds' if passed else 'fails'}\n")
    return 0 if passed else 1


def cell(data: str, question: str) -> int:
    """Print what the registry holds for a sandbox and a question, model by model."""
    for (box, model, asked), places in registry().items():
        if box == data and asked == question:
            sys.stdout.write(f"{box} × {model} × {asked}: {', '.join(places)}\n")
    return 0


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["check"] and len(arguments) == 2:
        return check(arguments[1])
    if arguments[:1] == ["cell"] and len(arguments) == 3:
        return cell(arguments[1], arguments[2])
    for file, text in pages().items():
        (DOCS / file).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
