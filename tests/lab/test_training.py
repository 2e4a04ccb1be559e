"""One's own training run: the world decides the model's shape, the files are there, the loss is near the truth."""

from __future__ import annotations

import json

import pyarrow.parquet as pq
import pytest

import sandlab as sl
from sandlab.errors import BadInput
from sandlab.lab.training import Plan, train_model


def test_a_trained_model_is_kept_with_its_history_figure_and_levels(tmp_path):
    world = sl.worlds.MarkovChain.binary(0.1, 0.1, length=16)
    plan = Plan(steps=200, batch_size=64, lr=1e-2)
    result = train_model(world, sl.get("models", "transformer"), {"layers": 1, "width": 16}, plan, tmp_path)
    levels = result.levels
    assert abs(levels["this model"] - levels["the best possible"]) < 0.1
    assert any(value > levels["this model"] + 0.1 for value in levels.values())
    about = json.loads((result.path / "training.json").read_text())
    assert about["options"] == {"vocab": 2, "outputs": 2, "length": 16, "layers": 1, "width": 16}
    assert pq.read_table(result.path / "history.parquet").num_rows == 200
    assert (result.path / "loss.svg").is_file()
    assert (result.path / "model" / "weights.safetensors").is_file()
    assert result.as_dict()["parameters"] == result.parameters > 0


def test_features_do_not_fit_a_model_of_tokens_and_plans_are_checked(tmp_path):
    from types import SimpleNamespace

    import torch

    batch = sl.worlds.Batch(torch.rand(4, 3), torch.zeros(4, 1, dtype=torch.int64), torch.ones(4, 1, dtype=torch.bool))
    world = SimpleNamespace(sample=lambda n, rng: batch)
    with pytest.raises(BadInput, match="features, not tokens"):
        train_model(world, sl.get("models", "transformer"), {}, Plan(steps=1), tmp_path)
    with pytest.raises(BadInput, match="steps must be"):
        Plan(steps=0)
    with pytest.raises(BadInput, match="no CUDA device"):
        train_model(world, sl.get("models", "transformer"), {}, Plan(steps=1, device="cuda"), tmp_path)
