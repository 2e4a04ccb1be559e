"""The atlas's server: what it loads and sends, and nothing for those who should not ask."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time

import pytest

pytest.importorskip("starlette")
from asking import HOST, TOKEN
from starlette.testclient import TestClient

from sandlab.atlas.server import create_app


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


def test_workers_load_when_a_question_waits_or_nobody_asks() -> None:
    from sandlab.atlas.workers import Workers

    class Counted(Workers):
        """A pool of its own: the other tests' server may be loading workers meanwhile."""

        async def _load(self) -> None:
            times.append(time.monotonic() - begun)
            self._all.append(None)  # type: ignore[arg-type]
            self._last = time.monotonic()

    async def play(waits: bool) -> None:
        pool = Counted(2)
        starting = asyncio.create_task(pool.start(after=quiet))
        await asyncio.sleep(0.05)
        if waits:
            pool._short.set()
        await starting
        await pool.start()  # they are there

    for waits, quiet in ((False, 0.5), (True, 3.0)):
        times: list[float] = []
        begun = time.monotonic()
        asyncio.run(play(waits))
        assert len(times) == 2 and times[1] >= times[0] + quiet
        assert times[0] < quiet if waits else times[0] >= quiet


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
