"""The atlas's server: the Python API's numbers, and nothing for those who should not ask."""

from __future__ import annotations

import random
import string
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
import torch

pytest.importorskip("fastapi")
httpx = pytest.importorskip("httpx")
from fastapi.testclient import TestClient  # noqa: E402

import sandlab as sl  # noqa: E402
from sandlab.atlas.server import create_app  # noqa: E402

HOST = "127.0.0.1:8000"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    app = create_app(store=tmp_path_factory.mktemp("store"), hosts=(HOST,), token="t" * 20, workers=2)
    with TestClient(app, base_url=f"http://{HOST}", raise_server_exceptions=False) as made:
        yield made


def mutate(client: TestClient, method: str, path: str, body: object = None) -> httpx.Response:
    return client.request(method, path, json=body, headers={"X-Sandlab-Token": "t" * 20})


def test_the_oracle_on_the_page_is_the_oracle(client: TestClient) -> None:
    world = sl.worlds.Dyck(depth=3)
    found = client.get("/api/predict", params={"name": "dyck", "text": "([]", "settings": '{"depth": "3"}'}).json()
    tokens = world.read_text("([]").unsqueeze(0)
    law = world.oracle(sl.worlds.Batch(tokens, tokens, torch.ones_like(tokens, dtype=torch.bool)))[0].exp()
    torch.testing.assert_close(torch.tensor(found["probs"], dtype=torch.float64), law, rtol=0, atol=1e-6)
    assert found["row"] == tokens[0].tolist()


def test_examples_are_those_of_the_seed(client: TestClient) -> None:
    found = client.get("/api/world", params={"name": "dyck", "seed": "3", "examples": "4"}).json()
    batch = sl.worlds.Dyck().sample(4, rng=sl.rng(3))
    assert found["rows"] == batch.inputs.tolist() and found["truth"]["depth"] == batch.truth["depth"].tolist()


def test_a_circuit_answers_breaks_and_loses_a_head(client: TestClient) -> None:
    asked = {"machine": "(ab)*", "length": "8", "word": "abab", "method": "scan"}
    whole = client.get("/api/circuit", params=asked).json()
    assert whole["right"] == 1 and whole["answers"] == whole["truth"] and len(whole["layers"]) >= 3
    assert client.get("/api/circuit", params={**asked, "bits": "0"}).json()["right"] < 1
    assert client.get("/api/circuit", params={**asked, "off": "0.0"}).json()["right"] < 1


def test_claims_and_sources_are_what_is_recorded(client: TestClient) -> None:
    claims = {row["id"]: row for row in client.get("/api/claims").json()["claims"]}
    from sandlab.lab._report.published import last_published

    for name, (_, finding) in last_published("markov/weight-tying").items():
        assert claims[name]["verdict"] == finding.verdict and claims[name]["relation"] == finding.relation
    begun = time.monotonic()
    client.get("/api/claims")
    assert time.monotonic() - begun < 1.0
    assert len(client.get("/api/sources").json()["rows"]) > 300


def test_a_training_is_followed_and_stopped(client: TestClient) -> None:
    plan = {"kind": "train", "world": "in-context-markov", "model": "rnn", "settings": {"length": "8"}}
    job = mutate(client, "POST", "/jobs", {**plan, "steps": 20000, "seeds": 2, "lr": 0.01}).json()
    for _ in range(400):
        facts = client.get(f"/jobs/{job['number']}").json()
        if any("loss" in line for line in facts["lines"]):
            break
        time.sleep(0.25)
    assert any("levels" in line for line in facts["lines"]), facts
    assert len(next(line for line in facts["lines"] if "loss" in line)["loss"]) == 2
    assert mutate(client, "DELETE", f"/jobs/{job['number']}").json()["state"] == "stopped"


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Origin": f"http://{HOST}"}, 200),
    ],
)
def test_another_page_can_neither_read_nor_change(client: TestClient, headers: dict[str, str], code: int) -> None:
    assert client.get("/api/worlds", headers=headers).status_code == code
    token = {"X-Sandlab-Token": "t" * 20}
    changed = client.post("/jobs", json={"kind": "nothing"}, headers={**headers, **token})
    assert changed.status_code == (400 if code == 200 else code)


def test_a_change_needs_the_token(client: TestClient) -> None:
    for headers in ({}, {"X-Sandlab-Token": "wrong"}):
        assert client.post("/jobs", json={"kind": "run"}, headers=headers).status_code == 403
        assert client.delete("/jobs/1", headers=headers).status_code == 403


def test_an_address_that_others_reach_shows_nothing_without_the_token() -> None:
    app = create_app(token="s" * 20, private=True, workers=1)
    with TestClient(app) as client:
        assert client.get("/").status_code == 403 and client.get("/api/worlds").status_code == 403
        assert client.get("/", params={"token": "s" * 20}).status_code == 200


def test_headers_allow_nothing_from_elsewhere(client: TestClient) -> None:
    headers = client.get("/").headers
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert "unsafe" not in headers["Content-Security-Policy"] and headers["X-Content-Type-Options"] == "nosniff"


def test_slow_questions_end_and_the_server_goes_on() -> None:
    import asyncio

    from sandlab.atlas.workers import TooSlow, Workers

    async def play() -> None:
        pool = Workers(1, seconds=1)  # of processor time: compiling takes several
        pool.start()
        with pytest.raises(TooSlow):
            await pool.ask("circuit", {"machine": "S5", "length": 64, "method": "scan"})
        pool.seconds = 60
        assert (await pool.ask("world", {"name": "dyck"}))["name"] == "dyck"
        pool._all[0].process.kill()  # the system took it
        with pytest.raises(TooSlow):
            await pool.ask("world", {"name": "dyck"})
        assert (await pool.ask("world", {"name": "dyck"}))["name"] == "dyck"
        pool.close()

    asyncio.run(play())


def test_bad_requests_are_refused_without_a_trace(client: TestClient) -> None:
    draw = random.Random(0)
    paths = [
        "/api/world",
        "/api/predict",
        "/api/circuit",
        "/api/history",
        "/jobs",
        "/figure/a/b/c/d",
        "/api/x",
        "/static/x",
    ]
    names = [
        "name",
        "settings",
        "seed",
        "examples",
        "text",
        "machine",
        "word",
        "length",
        "bits",
        "off",
        "claim",
        "extra",
    ]
    junk = [
        "../../etc/passwd",
        "{",
        "[]",
        "-1",
        "1e99",
        "\x00",
        "dyck",
        "<script>",
        "a" * 9000,
        "(((((",
        "%00",
        "nan",
        "",
    ]
    outside = Path("/etc/passwd").read_text()[:20]
    for _ in range(200):
        method = draw.choice(["GET", "GET", "GET", "POST", "DELETE", "PUT"])
        words = {
            draw.choice(names): draw.choice([*junk, draw.choice(string.printable)]) for _ in range(draw.randrange(4))
        }
        path = draw.choice([*paths, f"/jobs/{draw.choice(junk[:8])}", f"/static/{draw.choice(junk[:2])}"])
        token = {"X-Sandlab-Token": draw.choice(["t" * 20, "no"])}
        content = draw.choice(junk).encode()
        answer = client.request(method, quote(path), params=words, content=content, headers=token)
        assert answer.status_code < 500 or answer.status_code == 503, (method, path, words, answer.text)
        assert "Traceback" not in answer.text and outside not in answer.text
