"""Grammars: sentences, trees and the masked oracle against plain recursive Python, in the same run.

    python benchmarks/grammars.py [--json] [--examples 512]

The plain sampler draws a rule by its probability for each symbol and calls itself for the children; for trees it also
writes down, for each token, the symbols above it and whether it ends them, as ours does. The plain oracle sums over
the derivations of every span once (a dictionary remembers them) and does so again for each masked position and word;
it runs on sentences of height 4, where it ends, and both must agree. For whole sentences of cfg3b the "baseline" is a
budget: 64 of them in 30 s on two cores. CPU seconds on one thread.
"""

from __future__ import annotations

import functools
import random
import time
from collections.abc import Iterator
from typing import Any, TypeAlias

import torch
from data_generation import compared, speed, tell

import sandlab as sl
from sandlab.worlds.distillation.derivations import derivations, sample_sentences

GRAMMARS = ("cfg3b", "cfg3i", "cfg3h", "cfg3g", "cfg3f")
BUDGET = 30.0
QUICK = {"examples": 256, "patience": 0.2}
Rules: TypeAlias = dict[str, tuple[list[Any], list[float]]]


def plain_sentence(rules: Rules, symbol: str) -> list[str]:
    """The yield of a symbol, by recursion."""
    if symbol not in rules:
        return [symbol]
    options, weights = rules[symbol]
    (chosen,) = random.choices(options, weights)
    return [word for child in chosen for word in plain_sentence(rules, child)]


def plain_tree(rules: Rules, symbol: str) -> tuple[list[str], list[list[str]], list[list[bool]]]:
    """The yield of a symbol, the symbols above each token, and whether the token is their last."""
    if symbol not in rules:
        return [symbol], [[symbol]], [[True]]
    options, weights = rules[symbol]
    (chosen,) = random.choices(options, weights)
    tokens, above, ends = [], [], []
    for child in chosen:
        words, symbols, marks = plain_tree(rules, child)
        tokens, above, ends = tokens + words, above + symbols, ends + marks
    last = len(tokens) - 1
    own = [[symbol, *row] for row in above]
    return tokens, own, [[place == last, *row] for place, row in enumerate(ends)]


def plain_inside(grammar: Any, weights: list[dict[str, float]]) -> float:
    """P(start symbol generates tokens with these weights), by recursion over spans."""

    @functools.cache
    def span(symbols: tuple[str, ...], start: int, stop: int) -> float:
        if len(symbols) == 1 and symbols[0] not in grammar.by_symbol:
            return weights[start].get(symbols[0], 0.0) if stop - start == 1 else 0.0
        if len(symbols) == 1:
            low, high = grammar.spans(symbols[0])
            if not low <= stop - start <= high:
                return 0.0
            return sum(rule.prob * span(rule.children, start, stop) for rule in grammar.by_symbol[symbols[0]])
        middles = range(start + 1, stop - len(symbols) + 2)
        return sum(span(symbols[:1], start, m) * span(symbols[1:], m, stop) for m in middles)

    return span((grammar.start,), 0, len(weights))


def plain_posterior(world: Any, inputs: list[int], masked: list[int]) -> list[list[float]]:
    """P(token | the others) at each masked position: the sentence's probability with each word put there."""
    words = world.rules.terminals
    shown = world.evidence(torch.tensor([inputs]))[0].tolist()
    weights = [dict(zip(words, row)) for row in shown[: len(inputs) - 1]]
    own = world.own_evidence(torch.tensor([inputs]))[0].tolist()
    found = []
    for place in masked:
        tried = [plain_inside(world.rules, [*weights[:place], {w: 1.0}, *weights[place + 1 :]]) for w in words]
        joint = [probability * likely for probability, likely in zip(tried, own[place])]
        found.append([each / sum(joint) for each in joint])
    return found


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

        def with_tree(grammar: Any = grammar, rules: Any = rules) -> int:
            return sum(len(plain_tree(rules, grammar.start)[0]) for _ in range(16))

        slow = speed(plain, patience / 2)
        yield compared(f"sentences of {name}", speed(ours, patience), slow, "plain Python")
        if name == "cfg3b":
            yield compared(f"trees of {name}", speed(trees, patience), speed(with_tree, patience / 2), "plain Python")
    yield small_oracle(patience)
    yield oracle()
    torch.set_num_threads(threads)


def small_oracle(patience: float, sentences: int = 64) -> dict[str, Any]:
    """Sentences per second of the masked oracle below the symbols 13, 14 and 15, against the plain one."""
    world = sl.worlds.MaskedGrammar("cfg3b", root="13|14|15")
    batch = world.sample(sentences, rng=sl.rng(0))
    length = int(world.lengths(batch.inputs)[0])
    inputs, masked = batch.inputs[0, : length + 1].tolist(), torch.nonzero(batch.mask[0, 1:]).flatten().tolist()
    wanted = torch.tensor(plain_posterior(world, inputs, masked), dtype=torch.float64)
    found = world.oracle(batch)[0, 1:][masked, : world.words].exp()
    assert torch.allclose(found, wanted, atol=1e-10), "the plain oracle and ours disagree"

    def ours() -> int:
        world.oracle(batch)
        return sentences

    def plain() -> int:
        plain_posterior(world, inputs, masked)
        return 1

    row = compared("masked oracle, height 4", speed(ours, patience), speed(plain, patience), "plain Python")
    return {**row, "unit": "sentences/s"}


def oracle(sentences: int = 64) -> dict[str, Any]:
    """Sentences per second of the masked oracle of whole sentences, against what the budget asks."""
    world = sl.worlds.MaskedGrammar("cfg3b")
    batch = world.sample(sentences, rng=sl.rng(0))
    start = time.process_time()
    world.oracle(batch)
    taken = time.process_time() - start
    row = compared("masked oracle of cfg3b", sentences / taken, 64 / BUDGET, f"budget: 64 in {BUDGET:.0f} s")
    return {**row, "unit": "sentences/s", "seconds": taken}


if __name__ == "__main__":
    tell("Speed of grammars.", measure, 512)
