"""`sandlab doctor` mends what it can, says what it did, and names what is damaged."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from toys import study as uniform

import sandlab as sl
from sandlab.cli import call
from sandlab.lab._store.store import Store


@pytest.fixture
def store(tmp_path):
    sl.run(uniform, store=tmp_path / "runs", progress=False)
    return Store(tmp_path / "runs")


@pytest.fixture
def doctor(store, capsys):
    """The doctor's exit code, what it did and what it found damaged."""

    def ask() -> tuple[int, list[str], list[str]]:
        capsys.readouterr()
        code = call(["doctor", "--store", str(store.folder), "--json"])
        told = json.loads(capsys.readouterr().out)
        return code, told["done"], told["damaged"]

    return ask


def test_a_whole_store_needs_nothing(doctor):
    assert doctor() == (0, [], [])


@pytest.mark.parametrize("harm", [Path.unlink, lambda index: index.write_bytes(b"no database" * 100)])
def test_an_index_that_was_made_again_is_no_damage(store, doctor, harm):
    for suffix in ("-wal", "-shm"):
        store.index.path.with_name(store.index.path.name + suffix).unlink(missing_ok=True)
    harm(store.index.path)
    code, done, damaged = doctor()
    assert code == 0 and damaged == []
    assert "was made again from the folders" in done[0] and "6 jobs were entered into the index" in done
    assert doctor() == (0, [], [])


def test_leftovers_of_the_dead_are_removed_and_told(store, doctor):
    left = store.folder / "cache" / "ab" / ".y.part"
    left.parent.mkdir(exist_ok=True)
    left.write_text("")
    os.utime(left, (0, 0))
    assert doctor() == (0, ["cache/ab/.y.part was a leftover and was removed"], [])
    assert not left.exists()


def test_damaged_runs_and_results_are_each_named_once(store, doctor):
    (record,) = store.records()
    (record.path / "findings.json").write_text("[]")
    entry = next((store.folder / "cache").rglob("*.json"))
    entry.write_text(entry.read_text().replace("seconds", "minutes"))
    code, _, damaged = doctor()
    assert code == 3 and sorted(damaged) == sorted([str(record.path), str(entry)])
    (record.path / "run.json").write_text("[" * 100_000)
    code, _, damaged = doctor()
    assert code == 3 and len(damaged) == 2 and any("nested too deeply" in line for line in damaged)
