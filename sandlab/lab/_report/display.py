"""Progress on the screen: a bar on a terminal, plain lines elsewhere, nothing for work that ends at once."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sandlab.lab.laboratory import Progress

__all__ = ["shown"]

_PATIENCE = 2.0
_BETWEEN_LINES = 10.0


@contextmanager
def shown(progress: Callable[[Progress], None] | bool | None, title: str) -> Iterator[Callable[[Progress], None]]:
    """The function that shows progress: the caller's own, a bar or lines on stderr, or silence for False."""
    if progress is False:
        yield lambda _progress: None
    elif callable(progress):
        yield progress
    elif sys.stderr.isatty():
        with _bar(title) as show:
            yield show
    else:
        yield _lines(title)


def _lines(title: str) -> Callable[[Progress], None]:
    """Print a line at most every ten seconds, the first after two."""
    due = time.monotonic() + _PATIENCE

    def show(progress: Progress) -> None:
        nonlocal due
        if time.monotonic() >= due:
            print(f"{title} · {progress}", file=sys.stderr, flush=True)
            due = time.monotonic() + _BETWEEN_LINES

    return show


@contextmanager
def _bar(title: str) -> Iterator[Callable[[Progress], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, TaskID, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[state]}"), TimeElapsedColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        shown_as: dict[int, TaskID] = {}

        def show(progress: Progress) -> None:
            if id(progress) not in shown_as:
                shown_as[id(progress)] = bar.add_task(title, total=progress.total, state="")
            bar.update(shown_as[id(progress)], completed=progress.done, total=progress.total, state=str(progress))

        yield show
