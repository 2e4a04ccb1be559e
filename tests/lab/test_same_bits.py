"""Trained studies give the same bits twice, in processes, and resumed (D3)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import trained

import sandlab as sl
from sandlab.lab._store.store import Store


def bits(store: Path, **options: object) -> bytes:
    report = sl.run(trained.study, store=store, progress=False, **options)
    results = b"".join((report.path / name).read_bytes() for name in ("results/results.json", "results/arrays.npz"))
    return results + json.dumps(report.metrics).encode()


def test_locally_twice_in_processes_and_resumed(tmp_path: Path) -> None:
    expected = bits(tmp_path / "a")
    assert bits(tmp_path / "b") == expected
    assert bits(tmp_path / "c", on="processes:2") == expected
    store = Store(tmp_path / "a")
    for key in store.cache.stored()[::2]:
        store.cache.path(key).unlink()
    for record in store.records():
        (record.path / "run.json").unlink()
    assert bits(tmp_path / "a") == expected


@pytest.mark.slow
@pytest.mark.cluster
def test_on_ray(tmp_path: Path) -> None:
    assert bits(tmp_path / "a", on="ray") == bits(tmp_path / "b")
