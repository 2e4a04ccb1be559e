"""Saving and loading: what comes back computes the same, and what is damaged is refused."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import sandlab as sl
from sandlab.errors import BadInput
from sandlab.models.base import seeded
from sandlab.models.io import load, save
from sandlab.models.markov.disentangled import DisentangledTransformer
from sandlab.models.ngrams.simplified import SimplifiedTransformer
from sandlab.models.transformer import Transformer

MODELS = [
    lambda: Transformer(vocab=3, length=6, layers=2, heads=(2, 1), width=8, residual=(True, False)),
    lambda: Transformer(vocab=3, length=6, width=8, tied=True, positions="sinusoidal", readout_bias=True),
    lambda: SimplifiedTransformer(vocab=3, length=6, boundary="bos"),
    lambda: DisentangledTransformer(vocab=3, length=6, heads=(2, 1), readout_std=1.0),
]


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    return Transformer(vocab=3, length=6, width=8).save(tmp_path / "model")


@pytest.mark.parametrize("make", MODELS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_loaded_model_is_the_saved_one_bit_for_bit(make, dtype: torch.dtype, tmp_path: Path) -> None:
    with seeded(0):
        model = make().to(dtype)
    twin = sl.models.load(model.save(tmp_path))
    tokens = torch.tensor([[0, 2, 1, 1, 0, 2]])
    assert type(twin) is type(model)
    assert twin.config == model.config
    assert twin.dtype == dtype
    assert torch.equal(twin(tokens), model(tokens))
    assert all(parameter.requires_grad for parameter in twin.parameters())


def test_another_process_reads_the_weights_without_sandlabs_help(saved: Path) -> None:
    weights = load_file(saved / "weights.safetensors")
    assert set(weights) == set(load(saved).state_dict())
    script = f"import sandlab as sl; print(sl.models.load({str(saved)!r}).parameter_count())"
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert int(out) == sum(value.numel() for value in weights.values())


def test_saving_again_replaces_the_older_save(saved: Path) -> None:
    other = SimplifiedTransformer(vocab=4, length=5)
    save(other, saved)
    assert load(saved).config == other.config
    assert sorted(path.name for path in saved.iterdir()) == ["config.json", "weights.safetensors"]


def crash_points(folder: Path, model: Transformer, tmp_path: Path) -> list[list[str]]:
    """What lies in the folder after a crash before each call that changes the disk: a save, stopped again and again."""
    import os
    import shutil

    class Crash(BaseException):
        pass

    found = []
    for number in range(100):
        copy, calls = tmp_path / f"copy-{number}", iter(range(10**6))
        if folder.exists():
            shutil.copytree(folder, copy)
        real = {name: getattr(os, name) for name in ("replace", "fsync", "mkdir", "open", "unlink")}

        def stopping(name, *args, calls=calls, number=number, real=real, **options):
            if next(calls) == number:
                raise Crash
            return real[name](*args, **options)

        with pytest.MonkeyPatch.context() as patch:
            for name in real:
                patch.setattr(os, name, lambda *args, name=name, **options: stopping(name, *args, **options))
            try:
                save(model, copy)
                return found
            except Crash:
                pass
        found.append(copy)
    return found


def test_a_save_that_is_stopped_at_any_moment_leaves_the_older_or_the_newer_model(saved: Path, tmp_path: Path) -> None:
    """D11."""
    older, newer = load(saved), Transformer(vocab=5, length=7, width=8)
    points = crash_points(saved, newer, tmp_path)
    assert len(points) >= 6
    for folder in points:
        assert load(folder).config in (older.config, newer.config)
        save(newer, folder)
        assert sorted(path.name for path in folder.iterdir() if path.suffix != ".part") == [
            "config.json",
            "weights.safetensors",
        ]
    assert {load(folder).config for folder in points} == {newer.config}


def test_the_first_save_is_there_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    """D11."""
    model = Transformer(vocab=5, length=7, width=8)
    for folder in crash_points(tmp_path / "none", model, tmp_path):
        if (folder / "config.json").exists():
            assert load(folder).config == model.config
        else:
            with pytest.raises(BadInput, match=r"config.json is missing"):
                load(folder)


def test_a_file_in_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    """D7: `compile --save /dev/null`."""
    with pytest.raises(BadInput, match="into a folder, got the file /dev/null"):
        Transformer(vocab=5, length=7, width=8).save("/dev/null")


def test_a_config_of_the_right_types_and_the_wrong_form_is_refused(tmp_path: Path) -> None:
    folder = save(sl.circuits.compile(sl.worlds.read_machine("(ab)*"), 4), tmp_path / "circuit")
    about = json.loads((folder / "config.json").read_text())
    about["config"]["activation"][0][1] = True
    (folder / "config.json").write_text(json.dumps(about))
    with pytest.raises(BadInput, match="does not have the form in which it is written"):
        load(folder)


@pytest.mark.parametrize("option", ["width", "vocab", "length", "layers"])
def test_sizes_in_a_config_are_checked_before_memory_is_taken(saved: Path, option: str) -> None:
    """A config that asks for far more than its weights hold."""
    config = json.loads((saved / "config.json").read_text())["config"]
    edit(saved, config=config | {option: 2**30})
    with pytest.raises(BadInput):
        load(saved)


def test_loading_leaves_the_global_generator_where_it_was(saved: Path) -> None:
    before = torch.get_rng_state()
    load(saved)
    assert torch.equal(torch.get_rng_state(), before)


def edit(folder: Path, **changes) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_missing_files_are_named(saved: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"no model in .*nowhere: config.json is missing"):
        load(tmp_path / "nowhere")
    (saved / "weights.safetensors").unlink()
    with pytest.raises(BadInput, match=r"weights.safetensors is missing"):
        load(saved)


def test_one_flipped_bit_is_noticed(saved: Path) -> None:
    path = saved / "weights.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(BadInput, match="is damaged"):
        load(saved)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": 1}', "\x00\xff"])
def test_a_damaged_config_is_refused(saved: Path, text: str) -> None:
    (saved / "config.json").write_text(text)
    with pytest.raises(BadInput, match=r"config.json (is damaged|does not describe)"):
        load(saved)


def test_an_unknown_model_or_option_suggests_the_nearest(saved: Path) -> None:
    edit(saved, model="transfomer")
    with pytest.raises(BadInput, match="did you mean 'transformer'"):
        load(saved)
    edit(saved, model="transformer", config={"vocab": 3, "length": 6, "widht": 8})
    with pytest.raises(BadInput, match="did you mean 'width'"):
        load(saved)


def test_a_newer_format_says_so(saved: Path) -> None:
    edit(saved, format=99)
    with pytest.raises(BadInput, match="install the newer version"):
        load(saved)


def test_weights_that_do_not_fit_are_refused(saved: Path) -> None:
    config = json.loads((saved / "config.json").read_text())["config"]
    edit(saved, config=config | {"layers": 1})
    with pytest.raises(BadInput, match=r"not expected \['layers.1.attention"):
        load(saved)
    edit(saved, config=config | {"vocab": 4})
    with pytest.raises(BadInput, match=r"embed.* is \(3, 8\), must be \(4, 8\)"):
        load(saved)


def test_a_file_that_is_not_safetensors_is_refused(saved: Path) -> None:
    path = saved / "weights.safetensors"
    path.write_bytes(b"junk" * 10)
    edit(saved, weights_sha256=hashlib.sha256(b"junk" * 10).hexdigest())
    with pytest.raises(BadInput, match="is not a safetensors file"):
        load(saved)
    save_file({}, path)
    edit(saved, weights_sha256=hashlib.sha256(path.read_bytes()).hexdigest())
    with pytest.raises(BadInput, match="do not fit"):
        load(saved)


def test_only_registered_models_are_saved(tmp_path: Path) -> None:
    class Mine(Transformer):
        pass

    with pytest.raises(BadInput, match="is not registered"):
        Mine(vocab=3, length=6).save(tmp_path)
