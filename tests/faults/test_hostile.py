"""Stores from elsewhere, with right checksums and wrong contents: a few in `make test`, 300 in `make test-full`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.parametrize("stores", [5, pytest.param(300, marks=pytest.mark.slow)])
def test_every_command_ends_with_a_documented_exit_code(stores: int) -> None:
    words = [sys.executable, str(HERE / "hostile.py"), "--stores", str(stores)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg"}
    done = subprocess.run(words, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    *told, last = done.stdout.splitlines()
    ends = json.loads(last)
    print(ends)
    assert "raw" not in ends, "\n".join(told)
    assert sum(ends.values()) == 6 * stores
