"""How the tests ask the atlas's server."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from httpx import Response
    from starlette.testclient import TestClient

HOST = "127.0.0.1:8000"
TOKEN = {"X-Sandlab-Token": "t" * 20}


def mutate(client: TestClient, method: str, path: str, body: object = None) -> Response:
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
