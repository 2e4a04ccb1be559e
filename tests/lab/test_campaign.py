"""scripts/campaign.py: many studies within a time, and a store that travels."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from sandlab.lab._report.agenda import agenda
from sandlab.lab._store.store import Store

STUDY = "hmm/pairwise-twins"


@pytest.fixture(name="campaign")
def _campaign(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    file = Path(__file__).parents[2] / "scripts" / "campaign.py"
    spec = importlib.util.spec_from_file_location("campaign", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "campaign", module)
    spec.loader.exec_module(module)
    return module


def test_what_was_run_travels_in_parts_and_is_found_again(
    campaign: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(campaign, "PART", 5_000)
    store, packed, home = tmp_path / "runs", tmp_path / "packed", tmp_path / "home"
    words = ["--preset", "quick", "--minutes", "3", "--store", str(store), "--pack", str(packed), STUDY]
    assert campaign.main(words) == 0
    assert f"{STUDY}: finished" in capsys.readouterr().out
    assert len(list(packed.glob("studies.*"))) > 1
    home.mkdir()
    for name in ("studies", "rest"):
        subprocess.run(f"cat '{packed}'/{name}.* | tar xz -C '{home}'", shell=True, check=True)
    (record,) = Store.open(home).latest(STUDY)
    assert record.read("findings.json") == next(iter(Store.open(store).latest(STUDY))).read("findings.json")
    assert campaign.main([*words[:-3], "--store", str(home), STUDY]) == 0
    assert "finished before, nothing to do" in (home / "campaign" / f"{STUDY}.log").read_text()


def test_a_pack_holds_what_is_needed_first_and_no_part_of_an_older_one(
    campaign: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store, packed, home = tmp_path / "runs", tmp_path / "packed", tmp_path / "home"
    for name, size in (
        ("studies/a/run.json", 300),
        ("checkpoints/b/data", 400),
        ("cache/c/large", 900),
        ("cache/d", 9),
    ):
        file = store / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(bytes(size))
    packed.mkdir()
    (packed / "rest.007").write_bytes(b"of an older one")
    campaign._pack(store, packed, 1000)
    assert "left out of rest: 1 files" in capsys.readouterr().out
    home.mkdir()
    for name in ("studies", "rest"):
        subprocess.run(f"cat '{packed}'/{name}.* | tar xz -C '{home}'", shell=True, check=True)
    found = {str(file.relative_to(home)) for file in home.rglob("*") if file.is_file()}
    assert found == {"studies/a/run.json", "checkpoints/b/data", "cache/d"}


def test_a_run_that_does_not_stop_is_asked_to_and_then_ended(
    campaign: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(campaign, "LAST", 0.3)
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(flush=True); time.sleep(60)"
    for code, ended in (("print(flush=True); import time; time.sleep(60)", -15), (deaf, -9)):
        with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            assert campaign._wait(process, 0.1) == ended


def test_what_time_does_not_reach_is_told(
    campaign: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert campaign.main(["--minutes", "0.1", "--store", str(tmp_path), STUDY, "hmm/mirror-images"]) == 5
    assert f"left: {STUDY} hmm/mirror-images" in capsys.readouterr().out


def test_the_list_is_what_results_lists(campaign: ModuleType) -> None:
    listed = [row for row in agenda().due if row.preset == "full"]
    assert campaign._due("full", "cuda") == [row.study for row in listed if row.device == "cuda"]
    assert campaign._due("full", "cpu") == [row.study for row in listed if row.device == "cpu"]
