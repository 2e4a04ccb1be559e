"""The atlas under abuse: bad requests, many requests, many clients. The whole counts are marked slow."""

from __future__ import annotations

import asyncio
import random
import string
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

pytest.importorskip("starlette")
httpx = pytest.importorskip("httpx")
from asking import HOST, TOKEN  # noqa: E402
from starlette.testclient import TestClient  # noqa: E402

from sandlab.atlas.guard import Closed  # noqa: E402
from sandlab.atlas.questions import QUESTIONS  # noqa: E402
from sandlab.atlas.server import create_app  # noqa: E402


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="module")
def client(store: Path) -> Iterator[TestClient]:
    app = create_app(store=store, hosts=(HOST,), token="t" * 20, workers=2)
    with TestClient(app, base_url=f"http://{HOST}", raise_server_exceptions=False) as made:
        yield made


@pytest.fixture(scope="module")
def secret(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file that no answer may show and no request may change."""
    file = tmp_path_factory.mktemp("private") / "secret.json"
    file.write_text('{"letters": ["k"], "transitions": [[0]], "password": "zebra-7"}')
    return file


def bad_request(draw: random.Random, secret: Path) -> tuple[str, str, dict[str, str], bytes, dict[str, str]]:
    """A request that no page sends: wrong names, kinds, sizes, paths, bytes, methods and tokens."""
    junk = [
        "../../etc/passwd", str(secret), f"file://{secret}", "{", "[]", '{"a": [', "-1", "1e99", "\x00", "dyck", "S5",
        "<script>", "a" * 9000, "(((((", "%00", "nan", "inf", "", "' OR 1=1", "${7*7}", "__import__('os')",
        "\U0001f600", '{"length": "999999999"}', '{"path": "' + str(secret) + '"}', "[[0,1],[5,0]]",
        "masked-text", "own-module",
    ]  # fmt: skip
    view = draw.choice(list(QUESTIONS))
    known = list(QUESTIONS[view])
    words = {
        draw.choice([*known, "extra", "folder", "name"]): draw.choice([*junk, draw.choice(string.printable)])
        for _ in range(draw.randrange(5))
    }
    odd = quote(draw.choice(junk)[:200])
    paths = [f"/api/{view}"] * 6 + [
        f"/api/{odd}", "/jobs", f"/jobs/{odd}", f"/jobs/{odd}/keep", f"/jobs/{odd}/export", f"/figure/{odd}/b/c/{odd}",
        f"/static/{odd}", f"/static/../{odd}", "/kept", "/lab", f"/{odd}",
    ]  # fmt: skip
    body = {"kind": draw.choice(["train", "run", odd]), draw.choice(["world", "study", "settings"]): draw.choice(junk)}
    content = draw.choice([str(body).encode(), repr(body).replace("'", '"').encode(), draw.randbytes(40)])
    method = draw.choice(["GET", "GET", "GET", "POST", "DELETE", "PUT", "PATCH", "HEAD"])
    return method, draw.choice(paths), words, content, draw.choice([TOKEN, TOKEN, {"X-Sandlab-Token": "no"}, {}])


def abuse(client: TestClient, secret: Path, count: int, seed: int) -> dict[int, int]:
    """Send so many bad requests; how often each status came back."""
    draw, before = random.Random(seed), secret.read_bytes()
    codes: dict[int, int] = {}
    beside = sorted(path.name for path in secret.parent.iterdir())
    for _ in range(count):
        method, path, words, content, token = bad_request(draw, secret)
        answer = client.request(method, path, params=words, content=content, headers=token)
        said = (method, path, words, answer.status_code, answer.text[:300])
        assert answer.status_code < 500 or answer.status_code == 503, said
        assert "Traceback" not in answer.text and "zebra-7" not in answer.text and "root:" not in answer.text, said
        codes[answer.status_code] = codes.get(answer.status_code, 0) + 1
    assert secret.read_bytes() == before and sorted(path.name for path in secret.parent.iterdir()) == beside
    return codes


def test_some_bad_requests_are_refused(client: TestClient, secret: Path) -> None:
    codes = abuse(client, secret, 150, seed=0)
    assert codes.get(400, 0) > 20 and codes.get(404, 0) > 3 and codes.get(403, 0) > 3


@pytest.mark.slow
def test_two_thousand_bad_requests_are_refused(client: TestClient, secret: Path) -> None:
    codes = abuse(client, secret, 2000, seed=1)
    print("statuses of 2000 bad requests:", dict(sorted(codes.items())))
    assert client.get("/api/predict", params={"name": "dyck", "text": "(("}).status_code == 200


@pytest.mark.parametrize("asked", [
    {"machine": "SECRET"},
    {"machine": " SECRET "},
])  # fmt: skip
def test_a_machine_is_never_read_from_a_file(client: TestClient, secret: Path, asked: dict[str, str]) -> None:
    answer = client.get(
        "/api/circuit", params={key: value.replace("SECRET", str(secret)) for key, value in asked.items()}
    )
    assert answer.status_code == 400 and "opens no files" in answer.json()["error"]


@pytest.mark.parametrize("world", ["aligned-text", "masked-text", "topic-text", "contrastive-pairs"])
def test_worlds_and_models_of_files_are_not_for_pages(client: TestClient, secret: Path, world: str) -> None:
    settings = f'{{"path": "{secret}", "paths": "{secret}"}}'
    assert client.get("/api/world", params={"name": world, "settings": settings}).status_code == 400
    reading = f'{{"source": "folder", "folder": "{secret.parent}"}}'
    assert client.get("/api/world", params={"name": "image-contrast", "settings": reading}).status_code == 400
    folders = {"world": "image-contrast", "model": "rnn", "settings": {"folder": str(secret.parent)}}
    for body in ({"world": world, "model": "rnn"}, {"world": "dyck", "model": "own-module"}, folders):
        answer = client.post("/jobs", json={"kind": "train", **body}, headers=TOKEN)
        assert answer.status_code == 400, answer.text


def test_a_closed_process_opens_nothing_else(tmp_path: Path) -> None:
    import subprocess

    (tmp_path / "own").mkdir()
    (tmp_path / "other.txt").write_text("zebra-7")
    program = f"""
import os, subprocess, socket
from pathlib import Path
from sandlab.atlas.guard import Closed, close_files, readable_roots
own, other = Path({str(tmp_path / "own")!r}), Path({str(tmp_path / "other.txt")!r})
close_files(readable_roots(), [own])
(own / "a").write_text("yes"); print((own / "a").read_text())
def refused(call):
    try: call()
    except Closed: return True
    return False
tries = [other.read_text, lambda: other.write_text("x"), lambda: (own / ".." / "other.txt").read_text(),
         lambda: os.open(other, os.O_RDONLY), lambda: subprocess.run(["ls"]), lambda: os.system("ls"),
         lambda: socket.create_connection(("127.0.0.1", 9)), lambda: (own.parent / "new").write_text("x")]
os.symlink(other, own / "link"); tries.append((own / "link").read_text)
print([refused(each) for each in tries])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=600)
    assert done.stdout.split("\n")[:2] == ["yes", str([True] * 9)], done.stdout + done.stderr
    assert (tmp_path / "other.txt").read_text() == "zebra-7" and issubclass(Closed, PermissionError)


def resident() -> float:
    """Megabytes of this process, which is the server's too."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


def many(client: TestClient, count: int) -> None:
    asked = ["/", "/static/base.js", "/api/worlds", "/jobs", "/kept", "/api/nothing", "/jobs/77", "/api/world?seed=x"]
    for number in range(count):
        assert client.get(asked[number % len(asked)]).status_code < 500


def growth(client: TestClient, count: int) -> float:
    many(client, 400)
    before = resident()
    many(client, count)
    return resident() - before


def test_memory_stays_where_it_is_over_many_requests(client: TestClient) -> None:
    assert growth(client, 800) < 30


@pytest.mark.slow
def test_memory_stays_where_it_is_over_ten_thousand_requests(client: TestClient) -> None:
    grown = growth(client, 10_000)
    print(f"memory grew by {grown:.1f} MB over 10 000 requests")
    assert grown < 30


def test_what_ended_long_ago_is_forgotten() -> None:
    from sandlab.atlas.jobs import Jobs

    async def play() -> tuple[int, list[str]]:
        jobs = Jobs(None, together=2)
        for number in range(260):
            jobs.start("run", f"job {number}", ["sandlab", "version"])
            jobs.stop(number + 1)
        found = len(jobs.known), [job.state for job in jobs.known.values()]
        jobs.close()
        return found

    known, states = asyncio.run(play())
    assert known <= 201 and set(states) == {"stopped"}


def crowd(store: Path, clients: int, questions: int, workers: int) -> list[list[float]]:
    """So many clients at once on one server, each asking one question after the other; when each was answered."""
    import time

    app = create_app(store=store, token="t" * 20, workers=workers)

    async def one(browser: httpx.AsyncClient, number: int) -> list[float]:
        times = []
        for turn in range(questions):
            text = "([" * (1 + (number + turn) % 5)
            answer = await browser.get("/api/predict", params={"name": "dyck", "text": text})
            assert answer.status_code == 200 and len(answer.json()["row"]) == len(text), answer.text
            times.append(time.monotonic())
        return times

    async def play() -> list[list[float]]:
        way = httpx.ASGITransport(app=app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=way, base_url="http://x", timeout=900) as browser,
        ):
            await browser.get("/api/predict", params={"name": "dyck", "text": "("})
            return list(await asyncio.gather(*(one(browser, number) for number in range(clients))))

    return asyncio.run(play())


def test_several_clients_take_turns(tmp_path: Path) -> None:
    assert fair(crowd(tmp_path, clients=12, questions=4, workers=1))


@pytest.mark.slow
def test_fifty_clients_take_turns(tmp_path: Path) -> None:
    times = crowd(tmp_path, clients=50, questions=20, workers=2)
    assert fair(times)
    ends = sorted(each[-1] for each in times)
    print(f"50 clients, 1000 answers, no error; first client done {ends[-1] - ends[0]:.1f} s before the last")


def fair(times: list[list[float]]) -> bool:
    """Nobody has his third answer before everybody has his first: questions are answered in the order they come."""
    return max(each[0] for each in times) <= min(each[2] for each in times)
