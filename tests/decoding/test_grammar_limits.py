"""Grammars of any size are refused in seconds: less than one on a quiet machine."""

from __future__ import annotations

import time

import pytest

from sandlab.decoding.verifiers.earley import ContextFreeGrammar
from sandlab.errors import BadInput

HUGE = {
    "long": "S = " + "a " * 60_000,
    "many rules": "\n".join(f"A{n} = A{n + 1}" for n in range(5000)),
    "many symbols": "S = " + " | ".join("a b c d e f" for _ in range(900)),
    "endless": "S = S S",
    "no text": 3,
}


@pytest.mark.parametrize("text", HUGE.values(), ids=HUGE)
def test_what_is_too_large_is_refused_in_seconds(text: str) -> None:
    start = time.process_time()
    with pytest.raises(BadInput):
        ContextFreeGrammar.parse(text)
    assert time.process_time() - start < 10


def test_the_largest_that_is_allowed_takes_seconds() -> None:
    start = time.process_time()
    chain = "\n".join([*(f"A{n} = A{n + 1} x x" for n in range(999)), "A999 = x"])
    assert ContextFreeGrammar.parse(chain).shortest["A0"] == 1 + 2 * 999
    assert time.process_time() - start < 10
