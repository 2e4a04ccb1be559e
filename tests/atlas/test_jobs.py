"""Trainings and runs that the atlas starts: their limits, their ends, what is kept of them."""

from __future__ import annotations

import asyncio
import io
import subprocess
import sys
import time
import zipfile

import pytest
import torch

pytest.importorskip("starlette")
from asking import mutate, wait
from starlette.testclient import TestClient

import sandlab as sl


def test_a_training_is_stopped_kept_exported_and_guessed_against(client: TestClient) -> None:
    plan = {"kind": "train", "world": "in-context-markov", "model": "transformer", "settings": {"length": "8"}}
    job = mutate(client, "POST", "/jobs", {**plan, "steps": 20000, "seeds": 2, "lr": 0.01}).json()
    place = f"/jobs/{job['number']}"
    assert mutate(client, "POST", f"{place}/keep").status_code == 400  # nothing yet
    facts = wait(client, job["number"], "loss")
    assert any("levels" in line for line in facts["lines"])
    seen = [line for line in facts["lines"] if "attention" in line]
    assert len(seen) == 1 and len(seen[0]["loss"]) == len(seen[0]["attention"]) == 2  # the latest maps, of every member
    assert len(seen[0]["attention"][1][0]["heads"][0]) == len(seen[0]["row"]) == 8
    assert mutate(client, "DELETE", place).json()["state"] == "stopped"
    wait(client, job["number"], "end")
    for _ in range(400):
        if not client.get(place).json()["alive"]:
            break
        time.sleep(0.1)
    kept = mutate(client, "POST", f"{place}/keep").json()["kept"]
    assert [each["name"] for each in client.get("/kept").json()["kept"]] == [kept]
    archive = zipfile.ZipFile(io.BytesIO(client.get(f"{place}/export").content))
    assert {"about.json", "model-0/weights.safetensors", "model-1/config.json"} <= set(archive.namelist())
    world = sl.worlds.InContextMarkov(length=8)
    text = world.render(world.sample(1, rng=sl.rng(0)).inputs[0])
    found = client.get("/api/guess", params={"kept": kept, "text": text}).json()
    law = torch.tensor(found["model"])
    assert law.shape == torch.tensor(found["probs"]).shape
    torch.testing.assert_close(law.sum(1), torch.ones(len(law)), atol=1e-4, rtol=0)
    assert client.get("/api/guess", params={"kept": "../" + kept, "text": text}).status_code == 400


def test_a_study_that_was_run_shows_what_it_found(client: TestClient) -> None:
    job = mutate(client, "POST", "/jobs", {"kind": "run", "study": "hmm/mirror-images"}).json()
    place = f"/jobs/{job['number']}"
    assert client.get(f"{place}/findings").status_code == 400  # not yet
    while client.get(place).json()["alive"]:
        time.sleep(0.25)
    assert client.get(place).json()["state"] == "done"
    found = client.get(f"{place}/findings").json()["claims"]
    assert [row["id"] for row in found] == [claim.id for claim in sl.get("studies", "hmm/mirror-images").claims]
    recorded = {row["id"]: row for row in client.get("/api/claims").json()["claims"]}
    assert all(set(row) == set(recorded[row["id"]]) for row in found)
    assert [row["verdict"] for row in found] == [recorded[row["id"]]["verdict"] for row in found]


def test_what_cannot_be_trained_is_refused_before_it_starts(client: TestClient) -> None:
    plan = {"kind": "train", "world": "in-context-markov", "model": "transformer", "steps": 5}
    for wrong in ({"options": {"heads": "3"}}, {"settings": {"length": "-1"}}, {"model": "nothing"},
                  {"world": "gaussian-means"}, {"model": "file.py:Model"}):  # fmt: skip
        answer = mutate(client, "POST", "/jobs", {**plan, **wrong})
        assert answer.status_code == 400 and len(answer.json()["error"]) > 10, wrong
    assert not any(job["alive"] for job in client.get("/jobs").json()["jobs"])


def test_the_training_page_offers_what_world_and_model_allow() -> None:
    from sandlab.atlas.views.machine import training

    found = training("dyck", "transformer", {"depth": "3"}, {"heads": "2"})
    options = {each["name"]: each for each in found["options"]}
    assert options["heads"]["value"] == "2" and not {"vocab", "length", "outputs"} & set(options)
    assert {each["name"]: each["value"] for each in found["settings"]}["depth"] == "3"
    assert all(name in found["models"] for name in ("transformer", "lstm")) and "own-module" not in found["models"]
    names: dict = {"sl": sl}
    exec(found["code"], names)
    assert names["world"] == sl.worlds.Dyck(depth=3) and names["config"].heads == 2


def test_a_job_has_limits_of_memory_and_time() -> None:
    def said(line: str) -> subprocess.CompletedProcess[str]:
        words = [sys.executable, "-m", "sandlab.atlas.bounded", "timeit", "-n1", "-r1", line]
        return subprocess.run(words, capture_output=True, text=True, timeout=600)

    limits = said("import resource as r; print(r.getrlimit(r.RLIMIT_DATA)[0] > 0, r.getrlimit(r.RLIMIT_CPU)[0])")
    assert limits.stdout.startswith("True 7200")
    assert "MemoryError" in said("bytearray(2**42)").stderr


def test_a_job_is_alive_from_its_order_to_its_end() -> None:
    from sandlab.atlas.jobs import Jobs

    async def play() -> list[tuple[str, bool]]:
        jobs, seen = Jobs(None), []
        job = jobs.start("run", "a job", ["sandlab", "--version"])
        while not seen or seen[-1][1]:
            seen.append((job.state, job.alive))
            await asyncio.sleep(0)  # also between "running" and the process that runs
        jobs.close()
        return seen

    seen = asyncio.run(asyncio.wait_for(play(), 300))
    assert seen[0] == ("waiting", True) and ("running", True) in seen and seen[-1] == ("done", False)
    assert ("running", False) not in seen


def test_a_job_ends_when_no_page_asks_about_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from sandlab.atlas import jobs

    monkeypatch.setattr(jobs, "_FORGOTTEN", 1.0)
    monkeypatch.setattr(jobs, "_LOOK", 0.2)

    async def play() -> tuple[str, str]:
        known = jobs.Jobs(None)
        job = known.start("run", "asleep", ["timeit", "-n1", "-r1", "import time; time.sleep(600)"])
        for _ in range(10):  # a page is there
            await asyncio.sleep(0.2)
            known.all()
        before = job.state
        while job.alive:
            await asyncio.sleep(0.2)
        known.close()
        return before, job.state

    assert asyncio.run(asyncio.wait_for(play(), 300)) == ("running", "stopped")
