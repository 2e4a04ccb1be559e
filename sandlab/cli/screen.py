"""What commands print: tables for people, JSON for programs."""

from __future__ import annotations

import json
import math
import os
import re
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "MARKS",
    "counted",
    "documents_alone",
    "print_findings",
    "print_json",
    "print_sentences",
    "print_table",
    "printable",
    "tell",
    "text_number",
    "with_synonym",
]

MARKS = {"holds": "✓ holds", "fails": "✗ fails", "inconclusive": "? inconclusive", "": "· not run"}
_COLOURS = {"holds": "green", "fails": "red", "inconclusive": "yellow", "": "dim"}
_WIDTH_WITHOUT_TERMINAL = 120
_WIDTH_OF_FINDINGS = 140  # of a table of findings whose five columns hold their words whole
_LEAST = {"claim": 40, "verdict": 14}
_MANY = 5  # columns of a table that is told line by line where its words would be broken
_WHOLE = 24  # letters of a name that is not broken
SYNONYMS = {
    "rotary": "rope",
    "softmax": "flash sdpa",
    "pre": "layernorm ln prenorm pre-norm",
    "post": "postnorm post-norm",
    "transformer": "gpt gpt2 gpt-2 nanogpt llama decoder",
    "lstm": "gru",
    "state-space": "mamba s4 ssm lru",
    "rnn": "elman",
    "torch": "onnx pt2 torch.export",
    "hf": "huggingface hugging-face transformers",
    "lens": "tl transformerlens transformer-lens transformer_lens",
    "associative-recall": "mqar multi-query-ar multiquery_ar",
    "width": "d_model n_embd hidden_size dim",
    "steps": "epochs iterations max_steps",
    "lr": "learning_rate learningrate",
}
"""Name → what other laboratories call the same thing, or what comes nearest to it."""
_ELSEWHERE = {
    r"^on must be .* got '(?:gpu|cuda|cpu)\b": "it says where jobs run; the device is --device cuda",
    r"^on must be .* got '(\d+)'$": r"did you mean 'processes:\1'?",
}
"""Refusal → what was meant, where it is no other name for the same thing."""


_UNSENDABLE = re.compile("[\x7f-\x9f\ud800-\udfff]")  # bytes of a path that are no text; what moves a cursor
_documents: TextIO | None = None  # None: stdout


@contextmanager
def documents_alone(wanted: bool) -> Iterator[None]:
    """Keep stdout for JSON documents: whatever else is printed (by a job, by Ray, by C code) goes to stderr."""
    global _documents
    if not wanted:
        yield
        return
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        with os.fdopen(os.dup(kept), "w", encoding="utf-8") as _documents:
            yield
    finally:
        _documents = None
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


def print_json(value: Any, *, compact: bool = False) -> None:
    """One JSON document on stdout; `compact` for long lists of numbers."""
    from sandlab.lab._store.plain import plain

    text = json.dumps(plain(value), indent=None if compact else 1, ensure_ascii=False)
    print(_UNSENDABLE.sub(lambda found: f"\\u{ord(found[0]):04x}", text), file=_documents)


def printable(text: str) -> str:
    """Text without control characters: what a file from elsewhere holds does not move the cursor or change colours."""
    return "".join(letter if letter.isprintable() or letter in "\n\t" else "�" for letter in text)


def counted(number: int, one: str, many: str) -> str:
    """Such as "1 claim" and "3 claims"."""
    return f"{number} {one if number == 1 else many}"


def tell(text: object = "", *, end: str = "\n", file: TextIO | None = None, flush: bool = False) -> None:
    """Print what people read: names and paths in it, whoever chose them, do nothing to the terminal."""
    print(printable(str(text)), end=end, file=file, flush=flush)


def with_synonym(message: str) -> str:
    """A refusal, with our name for what was asked for by another: "… got 'rope': did you mean 'rotary'?"."""
    for refusal, meant in _ELSEWHERE.items():
        if found := re.search(refusal, message):
            return f"{message}: {found.expand(meant)}"
    asked = re.search(r"(got|called|no setting) '([^']+)'", message)
    if asked is None:
        return message
    known = [ours for ours, theirs in SYNONYMS.items() if asked[2].lower() in theirs.split()]
    listed = {"got": r"'{}'", "called": "", "no setting": r"\b{}\b"}[asked[1]]  # how a refusal lists what is allowed
    fitting = [ours for ours in known if re.search(listed.format(ours), message)]
    if not fitting:
        return message
    return f"{re.split(': (?:see|it has|did you mean) ', message)[0]}: did you mean {fitting[0]!r}?"


def print_table(columns: Sequence[str], rows: Iterable[Sequence[Any]], title: str = "") -> None:
    """A table as wide as the terminal; where it is too narrow for many columns, what is in them line by line."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    console = _console()
    roomy = console.width >= _WIDTH_OF_FINDINGS
    rows = [list(row) for row in rows]
    if title:
        console.print(Text(printable(title), style="italic"))
    if len(columns) >= _MANY and _least_width(columns, rows) > console.width:
        _print_lines(console, columns, rows)
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for place, name in enumerate(columns):
        # Names stay whole, so that they can be copied: the first column gives nothing to the others.
        whole = place == 0 and all(len(str(row[0])) <= _WHOLE for row in rows)
        table.add_column(name, overflow="fold", no_wrap=whole, min_width=_LEAST.get(name) if roomy else None)
    for row in rows:
        table.add_row(*(cell if isinstance(cell, Text) else Text(printable(str(cell))) for cell in row))
    console.print(table)


def _least_width(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> int:
    """Letters that a table needs so that no word in it is broken, nor a name in its first column."""
    cells = [[name, *(str(row[place]) for row in rows)] for place, name in enumerate(columns)]
    words = [[word for cell in column for word in cell.split()] for column in cells[1:]]
    return max(map(len, cells[0])) + sum(max(map(len, column), default=0) for column in words) + 3 * len(columns)


def _print_lines(console: Console, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Each row as its first cell, and below it the others with their names; an empty cell is left out."""
    from rich.padding import Padding
    from rich.text import Text

    for first, *others in rows:
        console.print(Text(printable(str(first)), style="bold"))
        told = [f"{name} {cell}" for name, cell in zip(columns[1:], map(str, others)) if cell]
        console.print(Padding(Text(printable("  ·  ".join(told))), (0, 0, 0, 4), expand=False))
    console.print()


def print_findings(findings: Iterable[dict[str, Any]], title: str) -> None:
    """Findings as a table, or one under the other where the terminal is too narrow for its columns."""
    from rich.padding import Padding
    from rich.text import Text

    rows, names = finding_rows(findings), ["verdict", "claim", "ours", "must be", "paper"]
    console = _console()
    if console.width >= _WIDTH_OF_FINDINGS:
        print_table(names, rows, title)
        return
    console.print(Text(printable(title), style="italic"))
    for verdict, claim, *values in rows:
        console.print(Text.assemble(verdict, "  ", claim))
        told = [(name, value) for name, value in zip(names[2:], values) if value]
        for name, value in told:
            line = Text.assemble((f"{name:<8}", "dim"), printable(str(value)))
            console.print(Padding(line, (0, 0, 0, 4), expand=False))
        console.print()


def print_sentences(findings: Iterable[dict[str, Any]], title: str) -> None:
    """Findings to be read one after the other: the verdict, the sentence, and below it what was measured."""
    from rich.padding import Padding
    from rich.text import Text

    console = _console()
    console.print(Text(printable(title), style="bold"))
    for each in findings:
        mark, colour = _mark(each)
        console.print(Text.assemble((mark, colour), "  ", printable(each["statement"])))
        words = f"{each['quantity'].rstrip('.')}: {_estimate(each)}, must be {_relation(each)}"
        words += f"; paper: {each['paper']}" if each["paper"] else ""
        console.print(Padding(Text(printable(words), style="dim"), (0, 0, 0, 4), expand=False))
    console.print()


def _console() -> Console:
    """As wide as the terminal; elsewhere as COLUMNS says."""
    from rich.console import Console

    if sys.stdout.isatty():
        return Console()
    told = os.environ.get("COLUMNS", "")
    return Console(width=int(told) if told.isdigit() and int(told) else _WIDTH_WITHOUT_TERMINAL)


def finding_rows(findings: Iterable[dict[str, Any]]) -> list[list[Any]]:
    """Verdict, claim, ours with its interval, what the claim asks for, the source's value."""
    from rich.text import Text

    rows = []
    for each in findings:
        below = [each["statement"], f"Measured: {each['quantity']}", *_circumstances(each)]
        words = Text.assemble(each["claim"], *((f"\n{printable(line)}", "dim") for line in below))
        rows.append([Text(*_mark(each)), words, _measured(each), _relation(each), each["paper"]])
    return rows


def _mark(each: dict[str, Any]) -> tuple[str, str]:
    """The verdict and its colour; a corrected misprint is expected to fail."""
    expected = each["verdict"] == "fails" and not each["held"]
    if expected:
        return f"{MARKS['fails']}, as expected", "dim"
    return MARKS[each["verdict"]], _COLOURS[each["verdict"]]


def _relation(each: dict[str, Any]) -> str:
    """What the claim asks for; a tolerance of nothing is not mentioned."""
    return str(each["relation"]).removesuffix(" ± 0")


def _circumstances(each: dict[str, Any]) -> list[str]:
    """When and how a verdict was measured, what other runs found, and what a claim without a verdict waits for."""
    lines = [_standing(each), each.get("why", "")]
    for other in each.get("others", ()):
        lines.append(f"beside it {_standing(other)}: {_mark(other)[0]}, {_measured(other)}")
    return [line for line in lines if line]


def _standing(each: dict[str, Any]) -> str:
    """When and how a verdict was measured: "quick, 2026-11-15, current, reduced (seeds 4 of 32)"."""
    parts = [each["preset"]] if each.get("preset") else []
    parts += [time.strftime("%Y-%m-%d", time.gmtime(each["date"]))] if each.get("date") else []
    parts += [each["status"]] if each.get("status") not in (None, "", each.get("preset")) else []
    reduced = each.get("reduced") or []
    parts += [f"reduced ({'; '.join(reduced[:2])}{'; …' if len(reduced) > 2 else ''})"] if reduced else []
    return ", ".join(parts)


def text_number(value: float) -> str:
    """Four digits, or a word for what is not a number."""
    value = float(value)
    return f"{value:.4g}" if math.isfinite(value) else {math.inf: "∞", -math.inf: "−∞"}.get(value, "nan")


def _measured(each: dict[str, Any]) -> str:
    if not each["verdict"]:
        return ""
    return f"{_estimate(each)}, {each['count']} value{'s' if each['count'] != 1 else ''}"


def _estimate(each: dict[str, Any]) -> str:
    """The mean and its interval, where it is more than a point."""
    mean, low, high = (text_number(each[name]) for name in ("mean", "low", "high"))
    return mean if mean == low == high else f"{mean}  [{low}, {high}]"
