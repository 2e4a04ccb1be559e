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
from sandlab.worlds.knowledge.facts import FactRecall

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["described", "draw", "draw_zoo", "facts_held", "table", "write_card"]

_SHADES = ("#0b3954", "#4d7c99", "#8fb3c9", "#c3d9e6")


def tests_of(cards: Sequence[Card]) -> list[tuple[str, str]]:
    """(task, test) of the battery in its order, as far as any card has it."""
    have = {(row.task, row.test) for card in cards for row in card.rows}
    order = [(task.name, test.label) for task in tasks(cards[0].size) for test in task.tests]
    return [each for each in order if each in have]


def draw(cards: Sequence[Card]) -> Figure:
    """Scores of every test: the card's own as bars with the seeds as dots, beside the others as a heat map.

    A task's bars are the paler the farther a test is from what was trained.
    """
    tests = tests_of(cards)
    rows = _heights(tests)
    wide = len(cards) > 1
    ratios = (4.4, 0.55 * len(cards)) if wide else None
    with figures.style():
        from matplotlib.figure import Figure

        size = (6.6 + 0.55 * len(cards) * wide, 0.165 * (rows[-1] - rows[0]) + 1.3)
        figure = Figure(figsize=size, layout="constrained")
        axes = np.atleast_1d(figure.subplots(1, 1 + wide, sharey=True, width_ratios=ratios)).tolist()
        _bars(axes[0], cards[0], tests, rows)
        if wide:
            _map(axes[1], cards, tests, rows)
        about = f"battery {cards[0].battery} ({cards[0].size}), {_seeds(cards[0])}"
        figure.suptitle(f"{cards[0].model}: {about}", x=0.01, ha="left", fontweight="bold", fontsize=11)
    return figure


def draw_zoo(cards: Sequence[Card]) -> Figure:
    """Scores of several cards side by side, a row per test."""
    tests = tests_of(cards)
    rows = _heights(tests)
    with figures.style():
        from matplotlib.figure import Figure

        figure = Figure(figsize=(2.9 + 0.62 * len(cards), 0.165 * (rows[-1] - rows[0]) + 1.3), layout="constrained")
        axis = figure.subplots()
        _map(axis, cards, tests, rows)
        _labels(axis, tests, rows)
        axis.set(ylim=(rows[-1] + 0.8, rows[0] - 0.8))
        figure.suptitle(
            f"battery {cards[0].battery} ({cards[0].size})", x=0.01, ha="left", fontweight="bold", fontsize=11
        )
    return figure


def _heights(tests: list[tuple[str, str]]) -> list[float]:
    """Where each test is drawn: one below the other, with room between tasks."""
    places, y = [], 0.0
    for index, (task, _) in enumerate(tests):
        y += 1.0 if index == 0 or tests[index - 1][0] == task else 1.7
        places.append(y)
    return places


def _bars(axis: Axes, card: Card, tests: list[tuple[str, str]], places: list[float]) -> None:
    rows = _by_test(card)
    within = [[each for each in tests if each[0] == test[0]].index(test) for test in tests]
    for y, test, rank in zip(places, tests, within):
        row = rows.get(test)
        if row is None:
            axis.text(0.01, y, "not measured", va="center", fontsize=7, color="#777777")
            continue
        axis.barh(y, row.score, height=0.84, color=_SHADES[min(rank, len(_SHADES) - 1)])
        (dots,) = axis.plot(row.scores, [y] * len(row.scores), "o", clip_on=False, zorder=3, color="black")
        dots.set(markersize=3.2, markeredgecolor="white", markeredgewidth=0.5)
    _labels(axis, tests, places)
    axis.set(xlim=(0, 1), ylim=(places[-1] + 0.8, places[0] - 0.8))
    axis.set_xlabel("score: 0 guessing by frequency, 1 optimum; dots are seeds", fontsize=8.5)
    axis.grid(axis="y", visible=False)


def _labels(axis: Axes, tests: list[tuple[str, str]], places: list[float]) -> None:
    """Tests beside their rows, and each task's name at its first."""
    axis.set_yticks(places, [label for _, label in tests], fontsize=7.5)
    axis.tick_params(axis="y", length=0)
    for task in dict.fromkeys(task for task, _ in tests):
        first = next(y for y, test in zip(places, tests) if test[0] == task)
        axis.annotate(
            task, (0, first), xytext=(-62, 0), xycoords=("axes fraction", "data"), textcoords="offset points",
            ha="right", va="center", fontsize=8.5, fontweight="bold", annotation_clip=False,
        )  # fmt: skip


def _map(axis: Axes, cards: Sequence[Card], tests: list[tuple[str, str]], places: list[float]) -> None:
    from matplotlib import colormaps

    colours = colormaps["cividis"]
    for x, card in enumerate(cards):
        rows = _by_test(card)
        for y, test in zip(places, tests):
            if test not in rows:
                axis.text(x, y, "–", ha="center", va="center", fontsize=6.8, color="#777777")
                continue
            value = rows[test].score
            axis.barh(y, 1, left=x - 0.5, height=1.0, color=colours(value))
            ink = "white" if value < 0.55 else "black"
            axis.text(x, y, f"{value:.2f}".removeprefix("0"), ha="center", va="center", fontsize=6.8, color=ink)
    axis.xaxis.tick_top()
    axis.set_xticks(range(len(cards)), [card.model for card in cards], rotation=35, ha="left", fontsize=8)
    axis.tick_params(axis="both", length=0)
    axis.spines[:].set_visible(False)
    axis.set_xlim(-0.5, len(cards) - 0.5)
    axis.set_xlabel("scores side by side", fontsize=8.5)
    axis.grid(visible=False)


def _seeds(card: Card) -> str:
    return "1 seed" if card.seeds == 1 else f"{card.seeds} seeds"


def facts_per_parameter(card: Card) -> float | None:
    """Facts that the weights hold over the number of weights: the share of facts known beyond guessing, times facts."""
    row = next((row for row in card.rows if row.task == "facts"), None)
    worlds = [task.world for task in tasks(card.size) if task.name == "facts"]
    if row is None or not worlds or not isinstance(worlds[0], FactRecall):
        return None
    return row.score * worlds[0].subjects * worlds[0].relations / row.parameters


def facts_held(card: Card) -> str:
    """Facts per thousand parameters in words; a bound where the model holds all that there are."""
    held = facts_per_parameter(card)
    if held is None:
        return ""
    every = next(row for row in card.rows if row.task == "facts").score > 0.995
    return f"{'at least ' * every}{1000 * held:.2g} facts held per thousand parameters"


def described(card: Card) -> str:
    """One line: parameters, seeds, where and with what it was measured, facts held, what is missing."""
    sizes = sorted({row.parameters for row in card.rows})
    span = " to ".join(f"{size:,}" for size in dict.fromkeys((sizes[0], sizes[-1]))) if sizes else "no"
    line = f"{span} parameters, {_seeds(card)} on {card.device} ({card.made})"
    facts, left = facts_held(card), ", ".join(card.left_out)
    line += "".join(f"; on {device}: {', '.join(names)}" for device, names in _elsewhere(card).items())
    return line + (f"; {facts}" if facts else "") + (f"; without {left}, for lack of time" if left else "")


def _elsewhere(card: Card) -> dict[str, list[str]]:
    """Tasks by device, of a card whose rows are of several; the one that measured most is left out."""
    found: dict[str, list[str]] = {}
    for task, device in dict.fromkeys((row.task, row.device) for row in card.rows if row.device):
        found.setdefault(device, []).append(task)
    most = max(found, key=lambda device: len(found[device]), default="")
    return {device: names for device, names in found.items() if device != most}


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
    sizes = "\n".join(f"<li><b>{html.escape(card.model)}</b>: {html.escape(described(card))}</li>" for card in cards)
    return f"""<!doctype html><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{html.escape(own.model)}: stress card</title>
<style>body{{font:15px/1.5 system-ui;margin:2em auto;max-width:62em;padding:0 1em}}img{{max-width:100%}}
table{{border-collapse:collapse;font-size:13px}}td,th{{padding:.2em .7em;text-align:left;border-bottom:1px solid #ddd}}
div{{overflow-x:auto}}
@media(prefers-color-scheme:dark){{body{{background:#111;color:#ddd}}img{{filter:invert(.9)}}}}</style>
<h1>{html.escape(own.model)}</h1>
<p>Battery {own.battery}, {own.size}. All were trained on the same number of tokens; parameters depend on a task's
alphabet.</p>
<ul>
{sizes}
</ul>
<img alt="scores of every test" src="data:image/png;base64,{b64encode(picture).decode()}">
<p>Score 0 is guessing by frequency, 1 the optimum. A value in nats is a gap, the loss above the best possible
prediction; any other is the share of wrong answers; ± is half of the 95 % interval over seeds. Tokens are those seen,
in the median over seeds, when the held-out loss had gone nine tenths of the way from uniform guessing to the
optimum. Columns on the right: scores of the others.</p>
<div><table><tr>{"".join(f"<th>{html.escape(name)}</th>" for name in head)}</tr>
{body}</table></div>
"""
