"""The documentation page of the stress cards: what the battery asks, and the recorded cards of the architectures."""

from __future__ import annotations

import io
from collections.abc import Sequence

from sandlab import figures
from sandlab.lab._card.battery import BATTERY, tasks
from sandlab.lab._card.measure import Card, Row, recorded
from sandlab.lab._card.page import described, draw_zoo, tests_of

__all__ = ["pages"]

SIZES = {"quick": "two cores, ten minutes", "full": "one GPU"}


def pages() -> dict[str, str | bytes]:
    """Path in the site → content: one page, and a figure for each size that was recorded."""
    found: dict[str, str | bytes] = {}
    parts = [_introduction(), _battery()]
    for size, machine in SIZES.items():
        cards = recorded(size)
        if cards:
            found[f"cards-{size}.svg"] = _picture(cards)
            parts.append(_recorded(size, machine, cards))
    if not found:
        parts.append("No card of a built-in architecture is recorded for this battery: `--against` trains them.")
    return {"cards.md": "\n\n".join(parts) + "\n", **found}


def _introduction() -> str:
    return f"""# Stress cards

`sandlab card my_file.py:MyModule` trains an architecture on a fixed battery and says what it can do and where it fails:
see [how to](howto/test-an-architecture.md). Cards of the same battery and size compare, whoever measured them. This is
battery {BATTERY}. A *gap* is the loss above the best possible prediction, in nats; an *error* the share of wrong
answers. Scores run from 0 (guessing by frequency) to 1 (the optimum)."""


def _battery() -> str:
    rows = [
        f"| {task.name} | {task.asks} | {', '.join(test.label for test in task.tests)} | {task.tests[0].measure} |"
        for task in tasks("quick")
    ]
    return "## The battery\n\n| task | what the model must do | tests | measure |\n|---|---|---|---|\n" + "\n".join(
        rows
    )


def _recorded(size: str, machine: str, cards: Sequence[Card]) -> str:
    return f"""## The built-in architectures, {size} ({machine})

![scores of every architecture on every test](cards-{size}.svg)

{_about(cards)}

{_table(cards)}"""


def _about(cards: Sequence[Card]) -> str:
    return "\n".join(f"- **{card.model}**: {described(card)}" for card in cards)


def _table(cards: Sequence[Card]) -> str:
    """Mean over seeds, ± half of the 95 % interval."""
    head = ["task", "test", *(card.model for card in cards)]
    rows = [{(row.task, row.test): row for row in card.rows} for card in cards]
    body = [[*test, *(_value(each.get(test)) for each in rows)] for test in tests_of(cards)]
    lines = [head, ["---"] * len(head), *body]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _value(row: Row | None) -> str:
    if row is None:
        return "not measured"
    spread = f" ± {row.half_width:.3f}" if len(row.values) > 1 else ""
    return f"{row.mean:.3f}{spread}" + (" nats" if row.measure == "gap" else "")


def _picture(cards: Sequence[Card]) -> bytes:
    sink = io.BytesIO()
    with figures.style():
        draw_zoo(cards).savefig(sink, format="svg")
    return sink.getvalue()
