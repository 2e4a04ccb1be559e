"""Trained studies give the same bits twice, in processes, on Ray, and resumed (D3)."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import trained

import sandlab as sl
from sandlab.lab._store.store import Store
from sandlab.learning.experiment import Experiment

STUDIES = ("ngrams/stages", "dyck/balance", "automata/grid-attention", "markov/weight-tying")


def smaller(value: Any) -> Any:
    """Settings whose experiments have two seeds and a few steps."""
    if isinstance(value, Experiment):
        training = dataclasses.replace(value.training, steps=8, batch_size=8, evals=8, eval_examples=16, warmup=0)
        return dataclasses.replace(value, training=training, seeds=2)
    if isinstance(value, tuple) and value and isinstance(value[0], Experiment):
        return tuple(map(smaller, value))
    return value


def collected(store: Path, study: Any, settings: dict[str, Any], on: str) -> bytes:
    """What the study collects, and what it finds, as bytes."""
    report = sl.run(study, store=store, on=on, settings=settings, progress=False)
    files = [report.path / "findings.json", *sorted((report.path / "results").iterdir())]
    return b"".join(file.read_bytes() for file in files)


def everywhere(folder: Path, study: Any, settings: dict[str, Any], places: tuple[str, ...]) -> bool:
    """Whether the bits are the same twice locally, in every place, and resumed."""
    expected = collected(folder / "a", study, settings, "local")
    same = [
        collected(folder / str(number), study, settings, on) == expected for number, on in enumerate(("local", *places))
    ]
    store = Store(folder / "a")  # and resumed: every other result of a job is missing, and so is the run
    for key in store.cache.stored()[::2]:
        store.cache.path(key).unlink()
    for record in store.records():
        (record.path / "run.json").unlink()
    return all(same) and collected(folder / "a", study, settings, "local") == expected


def test_locally_twice_in_processes_and_resumed(tmp_path: Path) -> None:
    assert everywhere(tmp_path, trained.study, {}, ("processes:2",))


@pytest.mark.slow
@pytest.mark.cluster
@pytest.mark.parametrize("name", ["toy", *STUDIES])
def test_studies_twice_in_processes_on_ray_and_resumed(tmp_path: Path, name: str) -> None:
    study = trained.study if name == "toy" else sl.get("studies", name)
    quick = study.presets["quick"]
    settings = {field.name: smaller(getattr(quick, field.name)) for field in dataclasses.fields(quick)}
    assert everywhere(tmp_path, study, settings if name != "toy" else {}, ("processes:2", "ray"))
