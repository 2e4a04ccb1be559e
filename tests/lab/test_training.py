"""Your own training run: the world decides the model's shape, the files are there, the loss is near the truth."""

from __future__ import annotations

import json
from dataclasses import dataclass

import pyarrow.parquet as pq
import pytest
import torch

import sandlab as sl
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
