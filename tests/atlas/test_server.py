"""The atlas's server: the Python API's numbers, and nothing for those who should not ask."""

from __future__ import annotations

import asyncio
import io
import json
import math
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

pytest.importorskip("starlette")
httpx = pytest.importorskip("httpx")
from starlette.testclient import TestClient  # noqa: E402

import sandlab as sl  # noqa: E402
from sandlab.atlas.server import create_app  # noqa: E402

HOST = "127.0.0.1:8000"
TOKEN = {"X-Sandlab-Token": "t" * 20}
DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    app = create_app(store=tmp_path_factory.mktemp("store"), hosts=(HOST,), token="t" * 20, workers=2)
    with TestClient(app, base_url=f"http://{HOST}", raise_server_exceptions=False) as made:
        yield made


def mutate(client: TestClient, method: str, path: str, body: object = None) -> httpx.Response:
    return client.request(method, path, json=body, headers=TOKEN)


def wait(client: TestClient, number: int, until: str) -> dict:
    """The facts of a job once it has said a line with this key."""
    for _ in range(2400):
        facts = client.get(f"/jobs/{number}").json()
        if any(until in line for line in facts["lines"]) or not facts["alive"]:
            break
        time.sleep(0.25)
    assert any(until in line for line in facts["lines"]), facts
    return facts


def test_the_oracle_on_the_page_is_the_oracle(client: TestClient) -> None:
    world = sl.worlds.Dyck(depth=3)
    found = client.get("/api/predict", params={"name": "dyck", "text": "([]", "settings": '{"depth": "3"}'}).json()
    tokens = world.read_text("([]").unsqueeze(0)
    law = world.oracle(sl.worlds.Batch(tokens, tokens, torch.ones_like(tokens, dtype=torch.bool)))[0].exp()
    torch.testing.assert_close(torch.tensor(found["probs"], dtype=torch.float64), law, rtol=0, atol=1e-6)
    assert found["row"] == tokens[0].tolist()
    assert found["follows"] and found["answers"] == world.letters[:4]


@pytest.mark.parametrize(
    ("world", "text", "membership", "hidden"),
    [
        ("dyck", "^([]", "word", {"depth": [0, 1, 2, 1]}),  # of the prefixes; START is no bracket
        ("dyck", "(]", "outside", {"depth": [1, 0]}),
        ("flip-flop", "w1i0r1", "word", {"stored": ["–", "1", "1", "1", "1", "1"]}),
        ("flip-flop", "w1i0", "beginning", {"stored": ["–", "1", "1", "1"]}),
        ("flip-flop", "w1r0", "outside", {"stored": ["–", "1", "1", "1"]}),
        ("cyclic", "011", "", {"state": ["0", "1", "0"]}),
        ("abab", "abab", "word", {"state": ["0", "1", "2", "3"]}),
        ("flip-flop-transduction", "1··0", "", {"state": [1, 1, 1, 0]}),
        ("addition", "1+2 5+5 9+0", "", {"carry": [0, 0, 1]}),
        ("in-context-markov", "0110", "", {}),
    ],
)
def test_a_typed_text_is_judged_and_its_hidden_states_shown(
    client: TestClient, world: str, text: str, membership: str, hidden: dict[str, list]
) -> None:
    found = client.get("/api/predict", params={"name": world, "text": text}).json()
    assert found["membership"] == membership and found["hidden"] == hidden


@pytest.mark.parametrize(
    ("world", "answers"),
    [
        ("lego", ["x0", "_"]),  # answers are letters
        ("symmetric-group", ["1234", "4321"]),  # states by their names
        ("ising", ["-", "+"]),  # what a mask may hide
        ("flip-flop-transduction", ["0", "1"]),  # neither: numbers
    ],
)
def test_what_is_predicted_has_its_name(world: str, answers: list[str]) -> None:
    from sandlab.atlas.views.oracle import world as view

    found = view(world)["answers"]
    assert [found[0], found[-1]] == answers


def test_an_oracle_that_is_told_the_answers_says_nothing_about_a_text() -> None:
    from sandlab.atlas.views.oracle import predict, world

    facts = world("program-task")
    text = " ".join(facts["letters"][token] for token in facts["rows"][0])
    found = predict("program-task", text)
    assert "probs" not in found and "answers" in found["why"]


def test_the_lines_shown_beside_a_typed_text_give_its_numbers(client: TestClient) -> None:
    found = client.get("/api/predict", params={"name": "dyck", "text": "^(["}).json()
    *lines, last = found["code"].split("\n")
    names: dict[str, object] = {"sl": sl, "torch": torch}
    exec("\n".join(lines), names)
    law = eval(last, names)
    torch.testing.assert_close(torch.tensor(found["probs"], dtype=torch.float64), law, rtol=0, atol=1e-6)


def test_settings_offer_what_the_world_allows() -> None:
    from sandlab.atlas.views.settings import offered

    fields = {each["name"]: each for each in offered(sl.worlds.Dyck())}
    assert fields["words"]["choices"] == ["prefix", "complete", "bounded"]
    assert fields["length"]["low"] == 1 and "high" not in fields["length"]
    assert (fields["opening"]["low"], fields["opening"]["high"]) == (0, 1)


def test_the_first_page_lists_the_worlds_that_are_registered() -> None:
    from sandlab.atlas.catalogue import built_in_worlds
    from sandlab.atlas.views.oracle import worlds

    everything = {each["name"]: each for each in worlds()["worlds"]}
    listed = built_in_worlds()
    assert listed == [everything[each["name"]] for each in listed]
    here = [name for name in everything if sl.get("worlds", name).__module__.startswith("sandlab.worlds.")]
    assert [each["name"] for each in listed] == here


@pytest.mark.parametrize(
    ("words", "ours", "number"),
    [
        ("0.93", 0.9, 0.93), ("−1", -1.0, -1.0), ("at least 97 %", 0.98, 0.97), ("99.8 %", 99.0, 99.8),
        ("3/4", 1.0, 0.75), ("222 of 225", 1.0, 222 / 225), ("0.714 − 0.660", 0.05, 0.054), ("[3/4, 5/4]", 1.0, None),
        ("yes", 1.0, None), ("stage 1 to step 100", 1.0, None), ("99.8 % with 2 layers at length 100", 1.0, None),
        ("", 1.0, None),
    ],
)  # fmt: skip
def test_the_source_has_a_point_only_where_its_words_are_a_number(
    words: str, ours: float, number: float | None
) -> None:
    from sandlab.atlas.records import source_number

    assert source_number(words, ours) == (number if number is None else pytest.approx(number))


@pytest.mark.slow
def test_every_world_has_a_page_and_answers_what_it_begins_with() -> None:
    from sandlab.atlas.catalogue import built_in_worlds
    from sandlab.atlas.views.oracle import predict, world

    silent = []
    for name in (each["name"] for each in built_in_worlds()):
        facts = world(name)
        if facts["tokens"]:
            between = "" if all(len(letter) == 1 for letter in facts["letters"]) else " "
            text = between.join(facts["letters"][token] for token in facts["rows"][0][: facts["typed"]])
            if any(" " in letter for letter in facts["letters"]):
                silent.append(name)  # what is shown cannot be typed
            else:
                found = predict(name, text)
                assert found.get("probs") or found["why"]
    assert silent == ["append-cases"]


def test_examples_are_those_of_the_seed(client: TestClient) -> None:
    found = client.get("/api/world", params={"name": "dyck", "seed": "3", "examples": "4"}).json()
    batch = sl.worlds.Dyck().sample(4, rng=sl.rng(3))
    assert found["rows"] == batch.inputs.tolist() and found["truth"]["depth"] == batch.truth["depth"].tolist()


def test_a_circuit_answers_breaks_and_loses_a_head(client: TestClient) -> None:
    asked = {"machine": "(ab)*", "length": "8", "word": "abab", "method": "scan"}
    whole = client.get("/api/circuit", params=asked).json()
    assert whole["right"] == 1 and whole["answers"] == whole["truth"] and len(whole["layers"]) >= 3
    assert len(whole["streams"]) == len(whole["layers"]) + 1
    assert len(whole["channels"]) == len(whole["streams"][0]["rows"]) and "map of 0" in whole["channels"]
    assert [each["level"] for each in whole["algebra"]["decomposition"]] == [2, 1]
    assert client.get("/api/circuit", params={**asked, "bits": "0"}).json()["right"] < 1
    assert client.get("/api/circuit", params={**asked, "off": "0.0"}).json()["right"] < 1
    assert client.get("/api/circuit", params={**asked, "temperature": "0.5"}).json()["right"] == 1
    assert client.get("/api/circuit", params={**asked, "temperature": "1e6"}).json()["right"] < 1


@pytest.mark.parametrize("change", [{}, {"bits": 2}, {"off": "0.0"}, {"temperature": 50.0}, {"bits": 9, "off": "1.0"},
                                    {"bits": 3, "off": "0.0", "temperature": 20.0}])  # fmt: skip
def test_the_lines_shown_beside_a_circuit_give_its_answers(change: dict) -> None:
    from sandlab.atlas.views.circuits import circuit

    found = circuit("(ab)*", word="abba", length=8, method="scan", **change)
    names: dict = {"sl": sl, "torch": torch}
    with torch.no_grad():
        exec(found["code"], names)
    assert names["answers"] == found["answers"]


def test_a_circuit_begins_with_one_word_that_its_language_can_complete() -> None:
    from sandlab.atlas.views.circuits import circuit

    first = circuit("(abab)*", length=10)
    assert first["word"] == [0, 1] * 5 == circuit("(abab)*", length=10, bits=1)["word"]
    assert first["accepting"] == [first["start"]] and not first["accepted"]  # ten letters are no multiple of four
    assert circuit("(abab)*", word="abababab", length=10)["accepted"]
    assert circuit("S5", length=4)["accepted"] is None


def test_a_pasted_table_is_the_machine_it_says(client: TestClient) -> None:
    table = json.dumps({"letters": ["a", "b"], "transitions": [[1, 0], [0, 1]], "start": 0})
    found = client.get("/api/circuit", params={"machine": table, "length": "8", "word": "abaab"}).json()
    assert found["transitions"] == [[1, 0], [0, 1]] and found["letters"] == ["a", "b"]
    assert found["truth"] == [1, 1, 0, 1, 1] == found["answers"]
    table = json.dumps({"letters": ["a", "b"], "transitions": [[1, 1], [0, 0]], "start": 1, "accepting": [0]})
    found = client.get("/api/circuit", params={"machine": table, "length": "8", "word": "aba"}).json()
    assert found["transitions"] == [[1, 1], [0, 0]] and (found["start"], found["accepting"]) == (1, [0])
    assert found["truth"] == [0, 1, 0] and found["accepted"]


def test_claims_and_sources_are_what_is_recorded(client: TestClient) -> None:
    claims = {row["id"]: row for row in client.get("/api/claims").json()["claims"]}
    from sandlab.lab._report.published import last_published

    known = {name: each for study in sl.names("studies") for name, each in last_published(study).items()}
    assert set(claims) == set(known)
    for name, (run, finding) in known.items():
        row = claims[name]
        assert (row["verdict"], row["relation"], row["note"]) == (finding.verdict, finding.relation, finding.note)
        assert (row["preset"], row["date"]) == (run.preset, run.date)
        assert row["mean"] == (finding.mean if math.isfinite(finding.mean) else None)
    sources = client.get("/api/sources").json()
    assert len(sources["rows"]) > 300
    assert {"printed", "true", "test", "chapter"} == set(sources["errata"][0]) and len(sources["errata"]) > 150
    corrected = {name for name, row in claims.items() if row["verdict"] == "fails" and not row["expected"]}
    studies = {f"study:{name.partition('.')[0]}" for name in corrected}
    judged = [row["verdicts"] for row in sources["rows"] if studies.intersection(row["places"])]
    assert judged and all("corrected" in verdicts for verdicts in judged)
    unknown = [name for name in ("knowledge/fact-capacity.capacity-slope",) if name in claims]  # has "nan" in its past
    assert all(client.get("/api/history", params={"claim": name}).json()["history"] for name in unknown)
    runs = {(run["study"], run["preset"]): run for run in client.get("/api/standing?chapter=nce").json()["runs"]}
    assert runs and all(run["status"] in ("current", "stale") for run in runs.values())


def test_the_claims_are_read_without_numpy_or_a_study() -> None:
    program = """
import sys
from sandlab.atlas.records import claims, sources
print(len(claims()["claims"]) > 500, len(sources()["rows"]) > 300)
print([name for name in sys.modules if name in ("numpy", "scipy", "torch") or name.startswith("sandlab.studies.")])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=600)
    assert done.stdout.split("\n")[:2] == ["True True", "[]"], done.stdout + done.stderr


def test_a_newly_recorded_run_is_shown_without_a_restart(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from sandlab.atlas import records

    shown = client.get("/api/claims").json()["claims"]
    monkeypatch.setattr(records, "_RESULTS", tmp_path)  # where nothing is recorded
    assert client.get("/api/claims").json()["claims"] == []
    folder = tmp_path / "markov" / "weight-tying" / "quick"
    shutil.copytree(DOCS / "results" / "markov" / "weight-tying" / "quick", folder)
    assert client.get("/api/claims").json()["claims"] == []  # remembered
    (tmp_path / "ledger.jsonl").write_text("{}")
    assert {row["study"] for row in client.get("/api/claims").json()["claims"]} == {"markov/weight-tying"}
    monkeypatch.undo()
    assert client.get("/api/claims").json()["claims"] == shown


def test_the_server_starts_without_what_only_workers_need() -> None:
    program = """
import sys
import sandlab.cli, sandlab.atlas.server
print([name for name in ("torch", "numpy", "scipy", "pydantic", "matplotlib", "rich.console") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=600)
    assert done.stdout == "[]\n", done.stdout + done.stderr


def test_scripts_are_sent_once_and_nothing_beside_them(client: TestClient) -> None:
    first = client.get("/static/base.js")
    assert first.status_code == 200 and first.headers["Content-Type"].startswith("text/javascript")
    again = client.get("/static/base.js", headers={"If-None-Match": first.headers["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert client.get("/static/base.js", headers={"If-None-Match": '"another"'}).content == first.content
    for path in ("", "pages", "../server.py", "%2e%2e/server.py", "/etc/passwd", "pages/../../server.py"):
        assert client.get(f"/static/{path}").status_code == 404


def test_a_card_that_was_measured_here_is_shown(client: TestClient) -> None:
    from sandlab.lab._card.battery import BATTERY
    from sandlab.lab._card.kept import keep_card
    from sandlab.lab._card.measure import Card, Row

    before = client.get("/api/cards").json()["cards"]
    row = Row("parity", "longer", "errors", values=[0.25], worst=0.5, parameters=30)
    keep_card(Card("../Mine", BATTERY, "quick", 1, "cpu", [row]), client.app.state.kept.folder.parent)
    found = client.get("/api/cards").json()["cards"]
    assert found[:-1] == before and (found[-1]["model"], found[-1]["rows"][0]["score"]) == ("../Mine", 0.5)
    assert client.get("/api/cards", params={"store": "/"}).status_code == 400


def test_a_recorded_figure_is_served_and_nothing_beside_it(client: TestClient) -> None:
    from sandlab.lab._report.published import published

    run, file = next((run, file) for run in published() for file in sorted(run.folder.rglob("*.svg")))
    answer = client.get(f"/figure/{run.study}/{run.preset}/{file.stem}")
    assert answer.text == file.read_text(encoding="utf-8") and answer.headers["content-type"].startswith("image/svg")
    for other in ("nothing", "..%2f" + file.stem, "run.json"):
        assert client.get(f"/figure/{run.study}/{run.preset}/{other}").status_code == 404


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


def test_numbers_that_json_does_not_have_are_null() -> None:
    from sandlab.atlas.plain import as_json

    assert (
        as_json({"a": [1.5, float("nan")], "b": (float("inf"), "x", True)}) == b'{"a":[1.5,null],"b":[null,"x",true]}'
    )


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

    monkeypatch.setattr(jobs, "_FORGOTTEN", 2.0)
    monkeypatch.setattr(jobs, "_LOOK", 0.2)

    async def play() -> tuple[str, str]:
        known = jobs.Jobs(None)
        job = known.start("run", "asleep", ["timeit", "-n1", "-r1", "import time; time.sleep(600)"])
        for _ in range(20):  # a page is there
            await asyncio.sleep(0.2)
            known.all()
        before = job.state
        while job.alive:
            await asyncio.sleep(0.2)
        known.close()
        return before, job.state

    assert asyncio.run(asyncio.wait_for(play(), 300)) == ("running", "stopped")


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Origin": f"http://{HOST}"}, 200),
    ],
)
def test_another_page_can_neither_read_nor_change(client: TestClient, headers: dict[str, str], code: int) -> None:
    assert client.get("/api/worlds", headers=headers).status_code == code
    answer = client.get("/", headers=headers)
    assert answer.status_code == code and (("t" * 20 in answer.text) == (code == 200))
    assert "access-control-allow-origin" not in answer.headers
    changed = client.post("/jobs", json={"kind": "nothing"}, headers={**headers, **TOKEN})
    assert changed.status_code == (400 if code == 200 else code)


def test_a_link_from_elsewhere_opens_the_page_and_nothing_else(client: TestClient) -> None:
    followed = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    answer = client.get("/", headers=followed)
    assert answer.status_code == 200 and answer.headers["Cross-Origin-Opener-Policy"] == "same-origin"
    assert client.get("/api/worlds", headers=followed).status_code == 403
    assert client.post("/", headers=followed).status_code == 403
    assert client.get("/", headers={**followed, "Sec-Fetch-Dest": "iframe"}).status_code == 403


def test_a_change_needs_the_token(client: TestClient) -> None:
    for headers in ({}, {"X-Sandlab-Token": "wrong"}):
        assert client.post("/jobs", json={"kind": "run"}, headers=headers).status_code == 403
        assert client.post("/jobs/1/keep", headers=headers).status_code == 403
        assert client.delete("/jobs/1", headers=headers).status_code == 403


def test_an_address_that_others_reach_shows_nothing_without_the_token() -> None:
    client = TestClient(create_app(token="s" * 20, private=True))
    assert client.get("/").status_code == 403 and client.get("/api/worlds").status_code == 403
    assert client.get("/", params={"token": "s" * 20}).status_code == 200
    figure = "/figure/markov/weight-tying/quick/nothing"  # pictures carry the token in their address
    with client:
        assert client.get(figure).status_code == 403
        assert client.get(figure, params={"token": "s" * 20}).status_code == 404


def test_headers_allow_nothing_from_elsewhere(client: TestClient) -> None:
    headers = client.get("/").headers
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert "unsafe" not in headers["Content-Security-Policy"] and headers["X-Content-Type-Options"] == "nosniff"


def test_workers_load_when_a_question_waits_or_nobody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    from sandlab.atlas.workers import Workers

    async def loaded(self: Workers) -> None:
        times.append(time.monotonic() - begun)
        self._all.append(None)  # type: ignore[arg-type]
        self._last = time.monotonic()

    async def play(waits: bool) -> None:
        pool = Workers(2)
        starting = asyncio.create_task(pool.start(after=0.5))
        await asyncio.sleep(0.05)
        if waits:
            pool._short.set()
        await starting
        await pool.start()  # they are there

    monkeypatch.setattr(Workers, "_load", loaded)
    for waits, first in ((False, 0.5), (True, 0.0)):
        times: list[float] = []
        begun = time.monotonic()
        asyncio.run(play(waits))
        assert len(times) == 2 and times[0] >= first and times[1] >= times[0] + 0.5
        assert not waits or times[0] < 0.5


def test_slow_questions_end_and_the_server_goes_on() -> None:
    from sandlab.atlas.workers import TooSlow, Workers

    async def play() -> None:
        pool = Workers(1, seconds=1)  # of processor time: compiling takes minutes
        await pool.start()
        with pytest.raises(TooSlow):
            await pool.ask("circuit", {"machine": "Grid60", "length": 64, "method": "scan"})
        pool.seconds = 60
        assert (await pool.ask("world", {"name": "dyck"}))["name"] == "dyck"
        pool._all[0].process.kill()  # the system took it
        pool._all[0].process.join()
        assert (await pool.ask("world", {"name": "dyck"}))["name"] == "dyck"
        pool.close()

    asyncio.run(play())
