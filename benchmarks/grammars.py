"""Grammars: sampling against a recursive sampler in plain Python, and the masked oracle in seconds.

    python benchmarks/grammars.py [--json] [--examples 512]

The plain sampler draws a rule by its probability for each symbol and calls itself for the children. The oracle's row
gives the seconds of the exact posterior of 64 corrupted sentences of cfg3b, whose budget is 30 s on two cores; its
"baseline" is that budget. CPU seconds on one thread for sampling, wall seconds on all threads for the oracle.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator
from typing import Any

import torch
from data_generation import compared, speed, tell

import sandlab as sl
from sandlab.worlds.distillation.derivations import derivations, sample_sentences

GRAMMARS = ("cfg3b", "cfg3i", "cfg3h", "cfg3g", "cfg3f")
BUDGET = 30.0


def plain_sentence(rules: dict[str, tuple[list[Any], list[float]]], symbol: str) -> list[str]:
    """The yield of a symbol, by recursion."""
    if symbol not in rules:
        return [symbol]
    options, weights = rules[symbol]
    (chosen,) = random.choices(options, weights)
    return [word for child in chosen for word in plain_sentence(rules, child)]


def measure(examples: int = 512, patience: float = 0.4) -> Iterator[dict[str, Any]]:
    """A row for each grammar's sentences, one for trees, one for the oracle."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    random.seed(0)
    for name in GRAMMARS:
        grammar = sl.worlds.grammar(name)
        rules = {s: ([r.children for r in rs], [r.prob for r in rs]) for s, rs in grammar.by_symbol.items()}
        generator = sl.rng(0)

        def ours(grammar: Any = grammar, generator: Any = generator) -> int:
            return int(sample_sentences(grammar, examples, rng=generator).lengths.sum())

        def trees(grammar: Any = grammar, generator: Any = generator) -> int:
            return int(derivations(grammar, examples, rng=generator).lengths.sum())

        def plain(grammar: Any = grammar, rules: Any = rules) -> int:
            return sum(len(plain_sentence(rules, grammar.start)) for _ in range(64))

        slow = speed(plain, patience / 2)
        yield compared(f"sentences of {name}", speed(ours, patience), slow, "plain Python")
        if name == "cfg3b":
            yield compared(f"trees of {name}", speed(trees, patience), slow, "plain Python")
    torch.set_num_threads(threads)
    yield oracle()


def oracle(sentences: int = 64) -> dict[str, Any]:
    """Sentences per second of the masked oracle, against what the budget asks."""
    world = sl.worlds.MaskedGrammar("cfg3b")
    batch = world.sample(sentences, rng=sl.rng(0))
    start = time.perf_counter()
    world.oracle(batch)
    return compared("masked oracle of cfg3b", sentences / (time.perf_counter() - start), 64 / BUDGET, "budget")


if __name__ == "__main__":
    tell("Speed of grammars.", measure, 512)
