"""Your own training run: the world decides the model's shape, the files are there, the loss is near the truth."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from dataclasses import dataclass

import pyarrow.parquet as pq
import pytest
import torch

import sandlab as sl
import sandlab.learning.experiment as experiments
from sandlab.cli import call
from sandlab.errors import BadInput
from sandlab.lab.training import fit_config, train_experiment
from sandlab.learning.experiment import Experiment, Training

WORLD = sl.worlds.MarkovChain.binary(0.1, 0.1, length=16)


def test_trained_models_are_kept_with_their_history_figure_and_levels(tmp_path):
    config = fit_config(WORLD, sl.models.Transformer, {"layers": 1, "width": 16})
    assert (config.vocab, config.outputs, config.length, config.layers) == (2, 2, 16, 1)
    training = Training(steps=200, batch_size=64, lr=1e-2)
    result = train_experiment(Experiment(WORLD, config, training, seeds=2), store=tmp_path)
    levels = result.levels
    assert abs(levels["this model"] - levels["the best possible"]) < 0.1
    assert any(value > levels["this model"] + 0.1 for value in levels.values())
    about = json.loads((result.path / "training.json").read_text())
    assert about["model"]["width"] == 16
    assert pq.read_table(result.path / "history.parquet").num_rows == 200
    assert (result.path / "loss.svg").is_file()
    twin = sl.models.load(result.path / "model-1")
    batch = WORLD.sample(4, rng=sl.rng(3))
    assert torch.equal(twin(batch.inputs), result.runs.model(config, 1)(batch.inputs))
    assert result.as_dict()["parameters"] == sum(weight.numel() for weight in twin.parameters())


@dataclass(frozen=True)
class Features(sl.worlds.World):
    def sample(self, n, *, rng):
        targets = torch.zeros(n, 1, dtype=torch.int64)
        return sl.worlds.Batch(torch.rand(n, 3, generator=rng), targets, torch.ones(n, 1, dtype=torch.bool))


def test_features_do_not_fit_a_model_of_tokens_and_settings_are_checked(tmp_path):
    with pytest.raises(BadInput, match="features, not tokens"):
        fit_config(Features(), sl.models.Transformer, {})
    with pytest.raises(BadInput, match="steps must be"):
        Training(steps=-1)
    config = fit_config(WORLD, sl.models.Transformer, {})
    with pytest.raises(BadInput, match="no CUDA device"):
        train_experiment(Experiment(WORLD, config, Training(steps=1)), device="cuda", store=tmp_path)


COMMAND = shlex.split(
    "train --world markov-chain --set world.length=8 --set model.width=8 --set steps=60 --set batch_size=4 "
    "--set eval_examples=8 --json --store"
)
CODE = """
import os, signal, sys
import sandlab.learning.experiment as experiment
from sandlab.cli import main
real = experiment.train
def ended(*args, **options):
    def end(step, *_):
        if step == int(sys.argv[2]):
            os.kill(os.getpid(), getattr(signal, sys.argv[1]))
    return real(*args, **{**options, "callbacks": [end], "every": 10})
experiment.train = ended
main(sys.argv[3:])
"""


def command(store, how: str, step: int) -> subprocess.CompletedProcess:
    """The training in a process of its own, ended by a signal at a step."""
    words = [sys.executable, "-c", CODE, how, str(step), *COMMAND, str(store)]
    return subprocess.run(words, capture_output=True, text=True, timeout=200)


def test_a_training_that_is_ended_saves_itself_and_the_same_command_goes_on(tmp_path, capsys, monkeypatch):
    """D9: what was trained is kept, and a run that was ended three times equals one that was never ended."""
    real = experiments.train
    same = {"callbacks": [lambda *_: None], "every": 10}
    monkeypatch.setattr(experiments, "train", lambda *args, **options: real(*args, **{**options, **same}))

    def uncut(store) -> dict:
        assert call([*COMMAND, str(store)]) == 0
        return json.loads(capsys.readouterr().out)

    whole, store = uncut(tmp_path / "whole"), tmp_path / "ended"
    for step, (how, code) in zip((10, 30, 50), (("SIGTERM", 143), ("SIGHUP", 129), ("SIGINT", 130))):
        ended = command(store, how, step)
        assert ended.returncode == code, ended.stderr
        assert "the same command goes on from there" in ended.stderr and "Traceback" not in ended.stderr
        assert list((store / "training").iterdir()) == []
        assert len(list((store / "checkpoints").glob("*/*.safetensors"))) == 1
    resumed = uncut(store)
    assert resumed["loss"] == whole["loss"] and resumed["levels"] == whole["levels"]
    assert list((store / "checkpoints").iterdir()) == []


def test_a_store_that_cannot_be_written_is_refused_before_the_training(tmp_path):
    """D9."""
    (tmp_path / "file").write_text("")
    endless = Experiment(WORLD, fit_config(WORLD, sl.models.Transformer, {}), Training(10**9))
    with pytest.raises(BadInput, match="must be a folder, got the file"):
        train_experiment(endless, store=tmp_path / "file")
