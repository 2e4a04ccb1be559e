"""Sweeps: experiments named by what differs, a table, a figure, resume, and loggers by the methods they have."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sandlab as sl
from sandlab.cli import call
from sandlab.errors import BadInput
from sandlab.lab.sweeps import Sweep, log_runs, name_experiments, sweep
from sandlab.learning.experiment import Experiment, Runs, Training
from sandlab.models.recurrent import LSTMConfig, RNNConfig

WORLD = sl.worlds.InContextMarkov(states=2, length=6)
ONE = Experiment(WORLD, RNNConfig(vocab=2, width=4), Training(4, batch_size=4, evals=2, eval_examples=8), seeds=2)
FAST = replace(ONE, training=replace(ONE.training, lr=0.1))
FILE = """
import sandlab as sl
from sandlab.learning import Experiment, Training
from sandlab.models import RNNConfig
world = sl.worlds.InContextMarkov(states=2, length=6)
experiments = [
    Experiment(world, RNNConfig(vocab=2, width=width), Training(4, batch_size=4, evals=2, eval_examples=8))
    for width in (2, 4)
]
logged = []
class logger:
    @staticmethod
    def log_metrics(values, step):
        logged.append((step, values))
"""


def made_up(name: str = "x") -> tuple[str, Experiment, Runs]:
    loss = np.array([[3.0, 1.0], [5.0, 2.0]])
    return name, ONE, Runs((0, 1), np.array([0, 4]), np.zeros((2, 4)), {"loss": loss})


def test_experiments_are_named_by_what_differs_among_them() -> None:
    assert list(name_experiments([ONE, FAST])) == ["lr=0.001", "lr=0.1"]
    other = replace(ONE, model=LSTMConfig(vocab=2, width=8))
    wide = replace(ONE, model=RNNConfig(vocab=2, width=16))
    assert list(name_experiments([ONE, other])) == ["RNN", "LSTM"]
    assert list(name_experiments([ONE, wide, other])) == ["RNN, width=4", "RNN, width=16", "LSTM, width=8"]
    longer = replace(ONE, world=replace(WORLD, length=8))
    assert list(name_experiments([ONE, longer])) == ["length=6", "length=8"]
    assert list(name_experiments({"mine": ONE})) == ["mine"]
    for wrong, said in (([], "at least one"), ([ONE, ONE], "are the same"), ([3], "list of Experiments, got 3")):
        with pytest.raises(BadInput, match=said):
            name_experiments(wrong)  # type: ignore[arg-type]


def test_a_sweep_has_a_table_a_figure_and_goes_on_where_it_stopped(tmp_path: Path) -> None:
    stopped = sweep([ONE, FAST], on="local", store=tmp_path / "runs", budget=0.0)
    assert stopped.left_out == ("lr=0.001", "lr=0.1") and not stopped.runs
    first = sweep([ONE], on="local", store=tmp_path / "runs")
    part = sweep([ONE, FAST], on="local", store=tmp_path / "runs", budget=0.0)
    assert part.left_out == ("lr=0.1",)
    np.testing.assert_array_equal(part.runs["lr=0.001"].loss, first.runs["RNN"].loss)
    whole = sweep([ONE, FAST], on="local", store=tmp_path / "runs")
    folder = whole.save(tmp_path / "out")
    assert {file.name for file in folder.iterdir()} == {"losses.png", "losses.svg", "sweep.json", "table.csv"}
    rows = (folder / "table.csv").read_text().splitlines()
    assert rows[0].startswith("experiment,world,parameters,seeds,loss,spread,best possible") and len(rows) == 3
    assert json.loads((folder / "sweep.json").read_text())["curves"]["lr=0.1"]["steps"] == [0, 2, 4]


def test_the_table_has_means_over_seeds_and_the_oracles_loss() -> None:
    (row,) = Sweep({"x": ONE}, {"x": made_up()[2]}).table()
    batch = WORLD.sample(8, rng=sl.rng(1, "held out"))
    assert (row["loss"], row["spread"], row["seeds"]) == (1.5, 0.5, 2)
    assert row["best possible"] == pytest.approx(WORLD.optimal_loss(batch))


class Wandb:
    def __init__(self) -> None:
        self.seen: list[Any] = []

    def log(self, values: dict[str, float], step: int) -> None:
        self.seen.append((step, values))

    def finish(self) -> None:
        self.seen.append("finished")


class TensorBoard:
    def __init__(self) -> None:
        self.seen: list[Any] = []

    def add_scalar(self, name: str, value: float, step: int) -> None:
        self.seen.append((step, {name: value}))


def test_loggers_are_known_by_their_methods() -> None:
    for logger in (Wandb(), TensorBoard()):
        log_runs(logger, *made_up("lr=0.1, width=4"))
        assert logger.seen == [(0, {"lr=0.1-width=4/loss": 4.0}), (4, {"lr=0.1-width=4/loss": 1.5})]
    made: dict[str, Any] = {}

    def start(name: str, settings: dict[str, str]) -> Wandb:
        made.update(settings)
        made["run"] = Wandb()
        return made["run"]

    log_runs(start, *made_up())
    assert made["run"].seen == [(0, {"loss": 4.0}), (4, {"loss": 1.5}), "finished"]
    assert made["training.lr"] == "0.001" and made["model"] == "RNN"
    for wrong in (3, lambda name, settings: 3):
        with pytest.raises(BadInput, match="add_scalar"):
            log_runs(wrong, *made_up())


def test_a_run_of_weights_and_biases_is_such_a_logger() -> None:
    wandb = pytest.importorskip("wandb")
    begun: list[Any] = []

    def start(name: str, settings: dict[str, str]) -> Any:
        begun.append(wandb.init(mode="disabled", name=name, config=settings))
        return begun[-1]

    log_runs(start, *made_up())
    assert len(begun) == 1 and wandb.run is None  # begun once, and ended


def test_the_terminal_sweeps_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "my_sweep.py").write_text(FILE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SANDLAB_PLUGINS", "")
    monkeypatch.syspath_prepend(str(tmp_path))
    words = ["sweep", "my_sweep.py", "--on", "local", "--store", "runs"]
    assert call([*words, "--budget", "0"]) == 5
    assert "left out for lack of time: width=2; width=4" in capsys.readouterr().out
    assert call(words) == 0
    assert "width=4" in capsys.readouterr().out and (tmp_path / "my_sweep" / "losses.svg").is_file()
    assert {step for step, _ in sys.modules["my_sweep"].logged} == {0, 2, 4}
