"""One progress bar: lines where there is no terminal, one display where there is, silence in workers."""

from __future__ import annotations

import io
import os
import subprocess
import sys

import pytest

from sandlab import progress
from sandlab.progress import ProgressBar

PROGRAM = """
from sandlab.progress import ProgressBar
with ProgressBar("counting", 10, patience=0.0, interval=0.0, show={show}) as bar:
    for step in range(3):
        bar.update(step + 1, "note")
"""


@pytest.mark.parametrize(
    ("show", "worker", "lines"), [("None", "", 3), ("None", "1", 0), ("True", "1", 3), ("False", "", 0)]
)
def test_progress_is_told_in_lines_and_workers_are_silent(show: str, worker: str, lines: int) -> None:
    environment = {**os.environ, **({"SANDLAB_WORKER": worker} if worker else {})}
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(show=show)], env=environment, capture_output=True, text=True, check=True
    )
    assert len(run.stderr.splitlines()) == lines
    assert not lines or run.stderr.startswith("counting: 1/10 steps  note")
    assert not lines or "/s, " in run.stderr.splitlines()[-1]


def test_nothing_is_said_about_work_that_ends_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressBar("counting", 10) as bar:
        bar.update(9)
    assert capsys.readouterr().err == ""


def test_bars_of_one_process_share_the_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", terminal)
    with ProgressBar("jobs", 4, patience=0.0, show=True) as outer:
        outer.update(1)
        with ProgressBar("training", 100, patience=0.0, show=True) as inner:
            inner.update(50, "loss 0.5")
            assert progress._screen is not None and len(progress._screen.tasks) == 2
        assert len(progress._screen.tasks) == 1
        outer.begin("figures", 2)
        outer.update(2)
        assert progress._screen.tasks[0].description == "figures"
    assert progress._screen is None and "jobs" in terminal.getvalue()
