"""Regular expressions, JSON and names of any depth, size or repetition are refused quickly (D23, D24)."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

import sandlab as sl
from sandlab.errors import BadInput

HUGE = [
    "a{²}",
    "(" * 1900,
    "[" * 5000,
    "[[" * 100_000,
    "((a{200}){200}){200}",
    "((a?){20}b?){20}",
    "(a|b)*a(a|b){14}",
    "[a-\uffff]*",
    "a" * 10_000,
    "a{99999999999999999999}",
    "C99999999999",
    "C2^40",
    "Dyck50_50",
    "Grid9999x9999",
    '{"transitions": ' + "[" * 5000,
]


@pytest.mark.parametrize("text", HUGE, ids=lambda text: text[:20])
def test_what_is_too_large_is_refused_in_seconds(text: str) -> None:
    """In less than a second on a quiet machine; without a limit these take minutes, or never end."""
    start = time.process_time()
    with pytest.raises(BadInput):
        sl.worlds.read_machine(text)
    assert time.process_time() - start < 10


def test_refusing_takes_less_than_500_megabytes() -> None:
    code = (
        "import resource, sandlab as sl, test_limits\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "for text in test_limits.HUGE:\n"
        "    try: sl.worlds.read_machine(text)\n"
        "    except sl.BadInput: pass\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    folder = __file__.rpartition("/")[0]
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 500_000


@pytest.mark.parametrize("name", ["S50", "S99", "S9", "X5", "A12", "Q9"])
def test_a_name_is_never_silently_a_regular_expression(name: str) -> None:
    """D23."""
    with pytest.raises(BadInput):
        sl.worlds.read_machine(name)
    assert sl.worlds.read_machine(f"({name})").letters == sorted(set(name))


@pytest.mark.parametrize(
    "text",
    [
        '{"letters": ["a", "a"], "transitions": [[0, 0]]}',
        '{"states": ["p", "p"], "transitions": [[0], [1]]}',
        '{"states": ["p", "p"], "transitions": {"p": {"a": "p"}}}',
        '{"transitions": {"p": {"a": "p", "a": "p"}}}',
        '{"transitions": [[0]], "transitions": [[0]]}',
    ],
)
def test_a_name_given_twice_is_refused(text: str) -> None:
    """D24."""
    with pytest.raises(BadInput, match="twice"):
        sl.worlds.read_machine(text)


def test_a_file_that_cannot_be_read_is_refused(tmp_path) -> None:
    (tmp_path / "x.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadInput, match="cannot be read"):
        sl.worlds.read_machine(str(tmp_path / "x.json"))
