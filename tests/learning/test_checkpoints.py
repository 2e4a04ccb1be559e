"""A checkpoint answers for its own run alone (D1)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

import sandlab as sl
from sandlab.errors import BadInput
from sandlab.files import write_atomic
from sandlab.learning._engine.identity import digest, fingerprint
from sandlab.learning.objectives import NextToken
from sandlab.learning.training import Checkpoint

InContextMarkov, MarkovChain = sl.worlds.InContextMarkov, sl.worlds.MarkovChain
WORLD = InContextMarkov(states=3, order=1, length=8)


def model(seed: int = 0, **options: Any) -> sl.models.Transformer:
    with sl.models.seeded(seed):
        return sl.models.Transformer(**{"vocab": 3, "length": 8, "layers": 1, "heads": 1, "width": 8, **options})


def train(file: Path, **changes: Any) -> tuple[torch.nn.Module, Any]:
    trained = changes.pop("model", None) or model()
    given = {"world": WORLD, "steps": 6, "rng": sl.rng(1), "batch_size": 4, "checkpoint": file, **changes}
    return trained, sl.learning.train(trained, **given)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    train(tmp_path / "run.safetensors")
    return tmp_path / "run.safetensors"


OTHERS = {
    "data seed": {"rng": 2},
    "world": {"world": InContextMarkov(states=3, order=1, length=8, concentration=0.5)},
    "another kind of world": {"world": MarkovChain(((0.5, 0.25, 0.25), (0.2, 0.6, 0.2), (0.1, 0.1, 0.8)), length=8)},
    "objective": {"objective": NextToken()},
    "start weights": {"model": 1},
    "model": {"model": 0, "options": {"heads": 2}},
    "settings": {"lr": 0.1},
    "evaluation": {"evaluate": 3},
    "schedule": {"schedule": "linear"},
}
NAMED = {"another kind of world": "world", "evaluation": "settings"}


@pytest.mark.parametrize("part", OTHERS)
def test_a_checkpoint_of_another_run_is_refused_and_the_difference_is_named(file: Path, part: str) -> None:
    changes = dict(OTHERS[part])
    if "rng" in changes:
        changes["rng"] = sl.rng(changes["rng"])
    if "model" in changes:
        changes["model"] = model(changes["model"], **changes.pop("options", {}))
    if "evaluate" in changes:
        changes["evaluate"] = WORLD.sample(4, rng=sl.rng(changes["evaluate"]))
    before = file.read_bytes()
    named = (
        "steps of another schedule" if part == "schedule" else f"belongs to another run: its {NAMED.get(part, part)}"
    )
    with pytest.raises(BadInput, match=named):
        train(file, **changes)
    assert file.read_bytes() == before


def test_another_strategy_is_another_run(file: Path) -> None:
    def population(strategy: str) -> sl.learning.Population:
        return sl.learning.Population(model, seeds=range(2), strategy=strategy)

    other = file.with_name("population")
    train(other, model=population("native"))
    with pytest.raises(BadInput, match="its strategy was native, here it is sequential"):
        train(other, model=population("sequential"))


def test_other_library_versions_are_another_run(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(np, "__version__", "0.9")
    with pytest.raises(BadInput, match="its libraries was sandlab"):
        train(file)


def test_the_same_run_is_read_back(file: Path) -> None:
    first, history = train(file)
    whole, expected = train(file.with_name("other"))
    assert np.array_equal(history.loss, expected.loss)
    assert all(torch.equal(left, right) for left, right in zip(first.parameters(), whole.parameters()))


def test_one_changed_bit_anywhere_is_noticed(file: Path) -> None:
    data = file.read_bytes()
    for place in (len(data) - 3, len(data) // 2, len(data) // 3, 40):
        changed = bytearray(data)
        changed[place] ^= 1
        file.write_bytes(changed)
        with pytest.raises(BadInput, match="delete it to start afresh"):
            train(file)


@pytest.mark.parametrize("rubbish", [b"", b"not a checkpoint", b"\xff" * 16, (2**60).to_bytes(8, "little") + b"{}"])
def test_what_is_no_checkpoint_is_refused(file: Path, rubbish: bytes) -> None:
    file.write_bytes(rubbish)
    with pytest.raises(BadInput, match="not a checkpoint"):
        train(file)


def sealed(file: Path, change: Any) -> None:
    """Change a checkpoint's facts and tensors, and seal it again with the right checksum."""
    with safe_open(file, framework="pt") as opened:
        tensors = {name: opened.get_tensor(name) for name in opened.keys()}  # noqa: SIM118
        text = json.dumps(change(json.loads(opened.metadata()["sandlab"]), tensors))
    save_file(tensors, file, metadata={"sandlab": text, "sha256": digest(tensors, text)})


@pytest.mark.parametrize("facts", [[], {}, 3, {"identity": []}, {"identity": {}, "done": "x"}])
def test_sealed_rubbish_is_refused(file: Path, facts: object) -> None:
    sealed(file, lambda *_: facts)
    with pytest.raises(BadInput):
        train(file)


@pytest.mark.parametrize("facts", [{"done": "x"}, {"done": None}, {"words": 3}, {"words": [1]}, {"metrics": ["x"]}])
def test_sealed_facts_of_another_form_are_refused(file: Path, facts: dict[str, Any]) -> None:
    sealed(file, lambda known, _: {**known, **facts})
    with pytest.raises(BadInput, match="does not have the form in which it is written"):
        train(file)


@pytest.mark.parametrize("name", ["row.0", "losses", "generator", "dropout", "factor", "optimizer.mean.0"])
@pytest.mark.parametrize("shape", [None, (3, 3, 3)])
def test_sealed_tensors_of_another_form_are_refused(file: Path, name: str, shape: tuple[int, ...] | None) -> None:
    def change(facts: Any, tensors: dict[str, torch.Tensor]) -> Any:
        del tensors[name]
        if shape is not None:
            tensors[name] = torch.zeros(shape, dtype=torch.int64)
        return facts

    sealed(file, change)
    with pytest.raises(BadInput, match=r"does not have the form in which it is written|holds weights of shape"):
        train(file)


@pytest.mark.parametrize("path", [".", 3, "a\0b", None.__class__])
def test_a_path_that_is_no_file_is_refused(tmp_path: Path, path: Any) -> None:
    with pytest.raises(BadInput, match="checkpoint"):
        train(tmp_path if path == "." else path)


def test_a_job_replaces_a_checkpoint_that_does_not_fit(file: Path) -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        train(file, checkpoint=Checkpoint(file, replace=True), rng=sl.rng(2))
    assert any("starts afresh" in str(each.message) for each in told)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        train(file, rng=sl.rng(2))


def test_parts_of_killed_writers_are_removed(tmp_path: Path) -> None:
    code = (
        "import os, sys, pathlib, signal\nfrom sandlab import files\n"
        "os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "files.write_atomic(pathlib.Path(sys.argv[1]), b'half')\n"
    )
    file = tmp_path / "run.safetensors"
    subprocess.run([sys.executable, "-c", code, str(file)])
    assert [name for name in os.listdir(tmp_path) if name.endswith(".part")]
    train(file)
    assert os.listdir(tmp_path) == ["run.safetensors"]


def test_what_is_written_is_flushed_before_it_gets_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    order: list[str] = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *args, name=name, real=real: (order.append(name), real(*args))[1])
    write_atomic(tmp_path / "file", b"x")
    assert order == ["fsync", "replace", "fsync"]


def test_fingerprints_do_not_depend_on_the_process() -> None:
    text = fingerprint({"world": WORLD, "numbers": np.arange(3), "function": fingerprint, "odd": object()})
    assert "0x" not in text
    assert fingerprint(torch.zeros(2)) != fingerprint(torch.zeros(3))


def test_how_a_population_is_computed_is_never_a_matter_of_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """D3: the strategy is a fixed function of model, size and device."""
    import time

    from sandlab.learning._engine.population_step import LARGE, PopulationStep

    chosen = []
    real = PopulationStep.choose_strategy

    def note(self: PopulationStep, source: Any) -> None:
        real(self, source)
        chosen.append(self.strategy)

    monkeypatch.setattr(PopulationStep, "choose_strategy", note)
    for clock in (lambda: 0.0, iter(range(10**9)).__next__):
        for name in ("process_time", "perf_counter", "monotonic", "time"):
            monkeypatch.setattr(time, name, clock)
        for width in (8, 64):
            population = sl.learning.Population(lambda seed, width=width: model(seed, width=width), seeds=range(2))
            sl.learning.train(population, WORLD, steps=1, batch_size=2, rng=sl.rng(0), progress=False)
    small, large = model(width=8).parameter_count(), model(width=64).parameter_count()
    assert small < LARGE < large
    assert chosen == ["native", "sequential"] * 2
