"""Junk at the door: a hundred calls in `make test`, ten thousand at the API and two thousand at the terminal in
`make test-full`. Each ends in a result, in `BadInput` or in a documented exit code; none takes 20 seconds or 3 GB."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CODES = {f"exit {code}" for code in (0, 1, 2, 3, 5, 130)}
ALLOWED = {"success", "BadInput", "NotImplementedError", "Diverged"} | CODES


def ends(*words: str) -> dict[str, int]:
    """In an interpreter of its own: the calls are made in forks of it, which must not inherit threads."""
    command = [sys.executable, str(HERE / "junk.py"), *words]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    *told, last = done.stdout.splitlines()
    found = json.loads(last)
    assert set(found) <= ALLOWED, "\n".join(told)
    return found


@pytest.mark.parametrize("seed", [1])
def test_some_junk_at_the_api(seed: int) -> None:
    assert sum(ends("--calls", "100", "--seed", str(seed)).values()) == 100


@pytest.mark.parametrize("seed", [1])
def test_some_junk_at_the_terminal(seed: int) -> None:
    assert sum(ends("--terminal", "--calls", "25", "--seed", str(seed)).values()) == 25


@pytest.mark.slow
def test_ten_thousand_calls_of_the_api() -> None:
    found = ends("--calls", "10000")
    print(found)
    assert sum(found.values()) == 10_000


@pytest.mark.slow
def test_two_thousand_commands() -> None:
    found = ends("--terminal", "--calls", "2000")
    print(found)
    assert sum(found.values()) == 2_000
