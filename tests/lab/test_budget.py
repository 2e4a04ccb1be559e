"""A campaign in time boxes: cut anywhere, continued anywhere, it ends as if it had never been cut."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import toys

import sandlab as sl
from sandlab.cli import call
from sandlab.cli.studies import seconds
from sandlab.errors import BadInput
from sandlab.lab._exec.executors import Local
from sandlab.lab._exec.processes import Processes
from sandlab.lab._store.store import Store
from sandlab.lab.laboratory import Laboratory
from sandlab.learning._engine import checkpoints, loop
from sandlab.learning._engine.scratch import OutOfTime
from sandlab.learning._engine.sources import Source
from sandlab.learning._engine.step import Step
from sandlab.learning.experiment import Experiment, Runs, Training
from sandlab.models.transformer import TransformerConfig

EXPERIMENT = Experiment(
    sl.worlds.InContextMarkov(states=3, order=1, length=12),
    TransformerConfig(vocab=3, length=12, layers=1, width=16, heads=2, dropout=0.1),
    Training(steps=60, batch_size=4, evals=6, eval_examples=8, ema=0.9, schedule="cosine"),
    seeds=3,
)


def train(store: Path, budget: float | None = None) -> Runs:
    return Laboratory(Store.open(store), Local(), budget=budget).train(EXPERIMENT, weights=True)


def test_a_campaign_cut_ten_times_at_random_moments_equals_an_uncut_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = train(tmp_path / "whole")
    updates, cuts = iter(range(10**6)), []
    ends = set(random.Random(3).sample(range(5, 170), 10))

    def out_of_time() -> bool:
        """The clock of this test is the number of updates: time is up after those that were drawn."""
        now = next(updates)
        cuts.extend([now] if now in ends else [])
        return now in ends

    monkeypatch.setattr(loop, "out_of_time", out_of_time)
    folder = tmp_path / "0"
    while True:
        try:
            found = train(folder)
            break
        except OutOfTime:
            moved = tmp_path / str(len(cuts))  # goes on in another place, with what is needed and no more
            for part in ("cache", "checkpoints"):
                shutil.copytree(folder / part, moved / part)
            folder = moved
    assert len(cuts) == 10
    assert np.array_equal(found.loss, expected.loss)
    assert found.weights is not None and expected.weights is not None
    assert all((found.weights[name] == value).all() for name, value in expected.weights.items())
    assert all(np.array_equal(found.metrics[name], value) for name, value in expected.metrics.items())


@pytest.mark.parametrize("each", [0.7, 13.0, 45.0])
def test_a_kill_at_any_moment_of_a_training_loses_at_most_a_minute(
    each: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock of this test: every update takes so many seconds. What a kill loses is what was done since a save."""
    clock, done, lost = 0.0, 0.0, []
    advance, save = Step.advance, loop.save

    def timed(self: Step, source: Source, start: int, count: int) -> None:
        nonlocal clock
        advance(self, source, start, count)
        clock += each * count
        lost.append(clock - done)  # killed here, before anything else happens

    def saved(run: loop.Loop, path: Path) -> None:
        nonlocal done
        save(run, path)
        done = clock

    monkeypatch.setattr(Step, "advance", timed)
    monkeypatch.setattr(loop, "save", saved)
    for module in (loop, checkpoints):
        monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: clock))
    train(tmp_path)
    assert len(lost) == 3 * 60 and max(lost) <= 60
    assert done == pytest.approx(180 * each)


def test_when_time_is_up_no_job_begins_and_the_same_call_goes_on(tmp_path: Path) -> None:
    study, settings = toys.study, {"pause": 0.4}
    with pytest.raises(OutOfTime, match=r"[1-5] of 6 jobs"):
        sl.run(study, store=tmp_path, settings=settings, budget=0.9)
    report = sl.run(study, store=tmp_path, settings=settings)
    assert 1 <= report.about["jobs"]["cached"] <= 5
    assert report.metrics == sl.run(study, store=tmp_path / "other").metrics


def test_a_job_without_checkpoints_that_outlives_the_budget_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sandlab.lab.laboratory._GRACE", 0.5)
    place = Processes(2)
    try:
        with pytest.raises(OutOfTime, match="6 of 6"):
            sl.run(toys.study, store=tmp_path, settings={"pause": 60.0}, budget=0.5, on=place)
    finally:
        place.close()


def test_the_terminal_says_what_is_left_and_how_much_is_needed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(["run", "nce/landscape", "--budget", "0s", "--on", "local", "--store", str(tmp_path)]) == 5
    said = capsys.readouterr().err
    assert "time is up, 1 not finished: nce/landscape" in said and "MiB" in said


def test_times_are_read_as_people_write_them() -> None:
    assert [seconds("budget", text) for text in ("90", "90s", "8m", "1.5 h")] == [90, 90, 480, 5400]
    with pytest.raises(BadInput, match="such as 90s, 8m"):
        seconds("budget", "soon")
    with pytest.raises(BadInput, match="budget"):
        sl.run(toys.study, budget=-1.0)
