"""Dataset folders: Hugging Face loads them, the card is true, and its code makes the same files again."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import sandlab as sl
from sandlab.cli import call
from sandlab.errors import BadInput
from sandlab.lab.dataset_card import export_dataset

WORLDS = {
    "dyck": sl.worlds.Dyck(types=3, length=12),
    "markov-chain": sl.worlds.MarkovChain.binary(0.1, 0.3, length=9),
    "in-context-regression": sl.worlds.InContextRegression(),
}


def header(card: str) -> dict[str, object]:
    yaml = pytest.importorskip("yaml")
    found = yaml.safe_load(card.split("---\n")[1])
    assert isinstance(found, dict)
    return found


def again(folder: Path) -> None:
    """Run the code of the card, which writes into a folder of the same name here."""
    code = re.search(r"```python\n(.*?)```", (folder / "README.md").read_text(), re.DOTALL)
    assert code is not None
    exec(code[1], {})


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.mark.parametrize("name", list(WORLDS))
def test_the_code_of_the_card_makes_the_same_files(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = export_dataset(WORLDS[name], tmp_path / "first" / "data", {"train": 5, "test": 3}, seed=4)
    assert sorted(contents(folder)) == ["README.md", "test.parquet", "train.parquet"]
    monkeypatch.chdir(tmp_path)
    again(folder)
    assert contents(tmp_path / "data") == contents(folder)


@pytest.mark.slow
@pytest.mark.parametrize("name", sl.names("worlds"))
def test_every_world_has_a_card_whose_code_holds(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = export_dataset(sl.get("worlds", name)(), tmp_path / "first" / "data", {"train": 3, "test": 2}, seed=1)
    card = (folder / "README.md").read_text()
    assert header(card)["pretty_name"] == name and "## Columns" in card
    monkeypatch.chdir(tmp_path)
    again(folder)
    assert contents(tmp_path / "data") == contents(folder)


def test_hugging_face_loads_the_folder_with_its_splits(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    world = WORLDS["dyck"]
    folder = export_dataset(world, tmp_path / "dyck", {"train": 6, "test": 2}, seed=3)
    data = datasets.load_dataset(str(folder), cache_dir=str(tmp_path / "cache"))
    assert {split: len(rows) for split, rows in data.items()} == {"train": 6, "test": 2}
    batch = world.sample(2, rng=sl.rng(3, "test"))
    assert np.array_equal(np.array(data["test"]["inputs"]), batch.inputs.numpy())


def test_the_card_says_what_the_data_is(tmp_path: Path) -> None:
    world = WORLDS["dyck"]
    card = (export_dataset(world, tmp_path, 2000, seed=7) / "README.md").read_text()
    about = header(card)
    assert about["license"] == "apache-2.0" and about["size_categories"] == ["1K<n<10K"]
    assert about["configs"] == [
        {"config_name": "default", "data_files": [{"split": "train", "path": "train.parquet"}]},
    ]
    back = sl.worlds.read_parquet(tmp_path / "train.parquet")
    assert f"The first example: `{world.render(back.inputs[0])}`" in card
    assert f"loses {world.optimal_loss(back[:256]):.4f} nats" in card
    assert "| types | `3` |" in card and "| truth.depth | int32 | 12 | not shown to the model |" in card
    assert world.__doc__ is not None and world.__doc__.splitlines()[0] in card


def test_a_readme_of_ones_own_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("# My notes")
    with pytest.raises(BadInput, match="no dataset card of SandLab"):
        export_dataset(WORLDS["dyck"], tmp_path, 5)
    assert (tmp_path / "README.md").read_text() == "# My notes" and len(list(tmp_path.iterdir())) == 1
    for wrong in ({}, {"two words": 3}, {"train": 0}):
        with pytest.raises(BadInput):
            export_dataset(WORLDS["dyck"], tmp_path / "new", wrong)
    assert not (tmp_path / "new").exists()


def test_what_the_code_cannot_say_is_said(tmp_path: Path) -> None:
    either = sl.worlds.Mixture((sl.worlds.Dyck(types=1, length=8), sl.worlds.Dyck(types=1, length=8, opening=0.9)))
    card = (export_dataset(either, tmp_path, 3) / "README.md").read_text()
    assert "no plain values are not written out" in card


def test_the_terminal_writes_a_file_or_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["sample", "dyck", "--set", "length=10", "-n", "4", "--seed", "2", "--to"]
    assert call([*words, str(tmp_path / "brackets")]) == 0
    assert "4 examples of dyck" in capsys.readouterr().out
    card = (tmp_path / "brackets" / "README.md").read_text()
    assert 'sl.get("worlds", "dyck")(length=10)' in card and "seed=2" in card
    assert call([*words, str(tmp_path / "brackets.parquet")]) == 0
    assert len(sl.worlds.read_parquet(tmp_path / "brackets.parquet")) == 4
