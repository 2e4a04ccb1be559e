"""A server of the atlas for the tests of one file."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

sys.path.insert(0, str(Path(__file__).parent))
from asking import HOST, TOKEN

if TYPE_CHECKING:
    from starlette.testclient import TestClient


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    from starlette.testclient import TestClient

    from sandlab.atlas.server import create_app

    store, token = tmp_path_factory.mktemp("store"), TOKEN["X-Sandlab-Token"]
    app = create_app(store=store, hosts=(HOST,), token=token, workers=1)
    with TestClient(app, base_url=f"http://{HOST}", raise_server_exceptions=False) as made:
        yield made
