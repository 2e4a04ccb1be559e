"""A card as a figure, as a table and as one page."""

from __future__ import annotations

import html
import io
from base64 import b64encode
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sandlab import figures
from sandlab.lab._card.battery import tasks
from sandlab.lab._card.measure import Card, Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["draw", "table", "write_card"]


def tests_of(cards: Sequence[Card]) -> list[tuple[str, str]]:
    """(task, test) of the battery in its order, as far as any card has it."""
    have = {(row.task, row.test) for card in cards for row in card.rows}
    order = [(task.name, test.label) for task in tasks(cards[0].size) for test in task.tests]
    return [each for each in order if each in have]


def draw(cards: Sequence[Card]) -> Figure:
    """Scores of every test: the card's own as bars with the seeds as dots, beside the others as a heat map."""
    tests = tests_of(cards)
    with figures.style():
        from matplotlib import pyplot

        ratios = (1.25, 0.26 * len(cards) + 0.25)[: len(cards)]
        size = (9.6 if len(cards) > 1 else 7.0, 0.27 * len(tests) + 1.5)
        figure, axes = pyplot.subplots(1, min(2, len(cards)), figsize=size, squeeze=False, width_ratios=ratios)
        _bars(axes[0, 0], cards[0], tests)
        if len(cards) > 1:
            _map(axes[0, 1], cards, tests)
        title = f"{cards[0].model}, battery {cards[0].battery} ({cards[0].size}), {cards[0].seeds} seeds"
        figure.suptitle(title, x=0.01, ha="left", fontweight="bold", fontsize=11)
        figure.tight_layout(rect=(0, 0, 1, 0.98))
    return figure


def _bars(axis: object, card: Card, tests: list[tuple[str, str]]) -> None:
    from matplotlib.axes import Axes

    assert isinstance(axis, Axes)
    rows = _by_test(card)
    place = np.arange(len(tests))
    scores = [rows[test].score if test in rows else np.nan for test in tests]
    colours = {
        name: figures.COLOURS[i % len(figures.COLOURS)] for i, name in enumerate(dict.fromkeys(t for t, _ in tests))
    }
    axis.barh(place, scores, color=[colours[task] for task, _ in tests], height=0.72, alpha=0.85)
    for y, test in zip(place, tests):
        dots = rows[test].scores if test in rows else []
        axis.plot(dots, [y] * len(dots), "o", color="black", markersize=2.4, clip_on=False)
    first = [index == 0 or tests[index - 1][0] != task for index, (task, _) in enumerate(tests)]
    axis.set_yticks(place, [f"{task}:  {label}" if new else label for new, (task, label) in zip(first, tests)])
    axis.set(xlim=(0, 1), ylim=(len(tests) - 0.4, -0.6), xlabel="score (0 guessing, 1 optimum); dots are seeds")
    axis.grid(axis="y", visible=False)


def _map(axis: object, cards: Sequence[Card], tests: list[tuple[str, str]]) -> None:
    from matplotlib.axes import Axes

    assert isinstance(axis, Axes)
    rows = [_by_test(card) for card in cards]
    values = np.array([[row[test].score if test in row else np.nan for row in rows] for test in tests])
    axis.imshow(values, vmin=0, vmax=1, aspect="auto", cmap="cividis")
    for (y, x), value in np.ndenumerate(values):
        if np.isfinite(value):
            axis.text(
                x,
                y,
                f"{value:.2f}".removeprefix("0"),
                ha="center",
                va="center",
                fontsize=7.5,
                color="white" if value < 0.55 else "black",
            )
    axis.set_xticks(range(len(cards)), [card.model for card in cards], rotation=35, ha="right")
    axis.set_yticks([])
    axis.grid(visible=False)
    axis.set_title("score beside others", fontsize=9.5)


def table(cards: Sequence[Card]) -> list[list[str]]:
    """Task, test, the card's value with its interval, its score, tokens to the optimum, and the others' scores."""
    rows = [_by_test(card) for card in cards]
    found = []
    for test in tests_of(cards):
        own = rows[0].get(test)
        others = [f"{row[test].score:.2f}" if test in row else "–" for row in rows[1:]]
        found.append([*test, _value(own), f"{own.score:.2f}" if own else "–", _tokens(own), *others])
    return found


def _value(row: Row | None) -> str:
    if row is None:
        return "not measured"
    unit = " nats" if row.measure == "gap" else ""
    return f"{row.mean:.4f} ± {row.half_width:.4f}{unit}" if len(row.values) > 1 else f"{row.mean:.4f}{unit}"


def _tokens(row: Row | None) -> str:
    if row is None or not row.tokens:
        return ""
    middle = float(np.median([np.inf if seen is None else seen for seen in row.tokens]))
    return f"{middle:.2g}" if np.isfinite(middle) else "not reached"


def _by_test(card: Card) -> dict[tuple[str, str], Row]:
    return {(row.task, row.test): row for row in card.rows}


def write_card(cards: Sequence[Card], folder: Path) -> Path:
    """card.json, card.svg, card.png and card.html of the first card, with the others beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "card.json").write_text(cards[0].to_json(), encoding="utf-8")
    figure = draw(cards)
    pictures = {}
    for kind in ("svg", "png"):
        sink = io.BytesIO()
        with figures.style():
            figure.savefig(sink, format=kind)
        pictures[kind] = sink.getvalue()
        (folder / f"card.{kind}").write_bytes(pictures[kind])
    page = folder / "card.html"
    page.write_text(_page(cards, pictures["png"]), encoding="utf-8")
    return page


def _page(cards: Sequence[Card], picture: bytes) -> str:
    head = ["task", "test", "value", "score", "tokens to within 10 %", *(f"{card.model}" for card in cards[1:])]
    escaped = ["".join(f"<td>{html.escape(cell)}</td>" for cell in row) for row in table(cards)]
    body = "\n".join(f"<tr>{row}</tr>" for row in escaped)
    own = cards[0]
    sizes = sorted({row.parameters for row in own.rows})
    span = f"{sizes[0]:,} to {sizes[-1]:,} parameters" if sizes else "nothing measured"
    left = f"<p>Left out for lack of time: {html.escape(', '.join(own.left_out))}.</p>" if own.left_out else ""
    return f"""<!doctype html><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{html.escape(own.model)}: stress card</title>
<style>body{{font:15px/1.5 system-ui;margin:2em auto;max-width:62em;padding:0 1em}}img{{max-width:100%}}
table{{border-collapse:collapse;font-size:13px}}td,th{{padding:.2em .7em;text-align:left;border-bottom:1px solid #ddd}}
@media(prefers-color-scheme:dark){{body{{background:#111;color:#ddd}}img{{filter:invert(.9)}}}}</style>
<h1>{html.escape(own.model)}</h1>
<p>Battery {own.battery}, {own.size}, {own.seeds} seeds on {html.escape(own.device)}; {span}, depending on the task's
alphabet. Score 0 is guessing by frequency, 1 the optimum; gaps are nats above the best possible prediction, errors are
shares of wrong answers, ± half of the 95 % interval over seeds.</p>{left}
<img alt="scores of every test" src="data:image/png;base64,{b64encode(picture).decode()}">
<table><tr>{"".join(f"<th>{html.escape(name)}</th>" for name in head)}</tr>
{body}</table>
"""
