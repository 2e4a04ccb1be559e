"""kill −9 at random moments: a few in `make test`, a thousand in `make test-full` (see kills.py)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.parametrize(
    ("kind", "kills"),
    [
        ("local", 3),
        ("training", 3),
        pytest.param("local", 500, marks=pytest.mark.slow),
        pytest.param("training", 400, marks=pytest.mark.slow),
        pytest.param("processes", 100, marks=pytest.mark.slow),  # one kill of such a run: tests/lab/test_faults.py
    ],
)
def test_nothing_is_lost_nothing_is_twice_and_the_bits_are_the_same(kind: str, kills: int) -> None:
    words = [sys.executable, str(HERE / "kills.py"), "--kind", kind, "--kills", str(kills)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg"}
    done = subprocess.run(words, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    counts = json.loads(done.stdout)
    print(counts)
    assert counts.pop("kills") >= kills and counts.pop("rounds") >= 2
    assert not any(counts.values()), counts
