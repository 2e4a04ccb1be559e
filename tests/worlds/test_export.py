"""Exports are read back with the libraries that others would use."""

from __future__ import annotations

import json

import numpy as np
import pyarrow.parquet as parquet
import pytest
import torch
from torch.utils.data import DataLoader

from sandlab import BadInput, rng
from sandlab.worlds.export import WorldDataset, read_parquet, to_huggingface, to_parquet
from sandlab.worlds.markov.chain import InContextMarkov, MarkovChain

WORLD = InContextMarkov(states=3, order=2, length=12)


def test_parquet_holds_the_sampled_examples_and_names_the_world(tmp_path):
    path = to_parquet(WORLD, tmp_path / "data.parquet", 25, rng=rng(3), chunk=10)
    table = parquet.read_table(path)
    assert table.num_rows == 25
    generator = rng(3)
    chunks = [WORLD.sample(n, rng=generator) for n in (10, 10, 5)]
    inputs = torch.cat([chunk.inputs for chunk in chunks])
    assert np.array_equal(np.array(table.column("inputs").to_pylist()), inputs.numpy())
    about = json.loads(table.schema.metadata[b"sandlab"])
    assert about["world"] == "in-context-markov" and about["settings"]["order"] == "2"
    back = read_parquet(path)
    assert torch.equal(back.inputs, inputs) and torch.equal(back.mask, torch.cat([c.mask for c in chunks]))
    assert torch.equal(back.targets, torch.cat([c.targets for c in chunks]))
    assert torch.equal(back.truth["kernels"], torch.cat([c.truth["kernels"] for c in chunks]))
    assert [file.name for file in tmp_path.iterdir()] == ["data.parquet"]


def test_missing_folders_and_foreign_files_are_refused(tmp_path):
    with pytest.raises(BadInput, match="folder"):
        to_parquet(WORLD, tmp_path / "nowhere" / "data.parquet", 5, rng=rng(0))
    with pytest.raises(BadInput, match="no file"):
        read_parquet(tmp_path / "none.parquet")
    import pyarrow as pa

    parquet.write_table(pa.table({"a": [1]}), tmp_path / "other.parquet")
    with pytest.raises(BadInput, match="to_parquet"):
        read_parquet(tmp_path / "other.parquet")


def test_hugging_face_rows_equal_the_batch():
    data = to_huggingface(WORLD, 7, rng=rng(1))
    batch = WORLD.sample(7, rng=rng(1))
    assert len(data) == 7
    assert np.array_equal(np.array(data["inputs"]), batch.inputs.numpy())
    assert np.allclose(np.array(data.with_format("numpy")[2]["truth.kernels"]), batch.truth["kernels"][2].numpy())
    assert "truth.kernels" not in to_huggingface(WORLD, 2, rng=rng(1), truth=False).column_names


def test_data_loader_workers_draw_different_examples_and_the_seed_decides():
    world = MarkovChain.random(5, length=20)

    def rows(workers: int, seed: int) -> torch.Tensor:
        loader = DataLoader(WorldDataset(world, seed=seed, size=30), batch_size=10, num_workers=workers)
        return torch.cat([batch["inputs"] for batch in loader])

    assert rows(0, 1).shape == (30, 20)
    assert torch.equal(rows(0, 1), rows(0, 1))
    assert not torch.equal(rows(0, 1), rows(0, 2))
    assert len({tuple(row.tolist()) for row in rows(2, 1)}) == 30


def test_ready_batches_follow_each_other_without_end():
    stream = iter(WorldDataset(WORLD, seed=0, batch_size=6))
    first, second = next(stream), next(stream)
    assert first["inputs"].shape == (6, 12) and not torch.equal(first["inputs"], second["inputs"])
    assert len(list(WorldDataset(WORLD, seed=0, batch_size=6, size=4))) == 4
    with pytest.raises(BadInput, match="batch_size"):
        WorldDataset(WORLD, seed=0, batch_size=0)
