"""Exact constructions for the flip-flop, and how often they err: circuits on strings, penalties, sums, monoids."""

from __future__ import annotations

import itertools

import numpy as np
import torch

from sandlab.circuits.flip_flop.memory import flip_flop_parser, flip_flop_transformer, memory_transformer
from sandlab.learning.penalties import row_sharpness
from sandlab.lenses.flip_flop.tail_errors import wrong_targets
from sandlab.random import rng
from sandlab.worlds.automata.addition import adder_as_flip_flop
from sandlab.worlds.base import Batch
from sandlab.worlds.flip_flop.language import READ, FlipFlop, FlipFlopTransduction

__all__ = [
    "sharpness_gap",
    "small_monoids",
    "window_error",
    "window_gap",
    "wrong_memories",
    "wrong_on_short_strings",
    "wrong_parses",
    "wrong_sums",
]


def wrong_on_short_strings(longest: int = 12) -> tuple[int, int]:
    """Wrong reads of `flip_flop_transformer` over every string of length 4, 6, … `longest`, and how many there are."""
    wrong, count = 0, 0
    for length in range(4, longest + 1, 2):
        strings, _ = FlipFlop.ignoring(0.8, length=length).enumerate()
        inputs, targets = strings[:, :-1], strings[:, 1:]
        wrong += int(wrong_targets(flip_flop_transformer(length), Batch(inputs, targets, inputs == 1)).sum())
        count += len(strings)
    return wrong, count


def wrong_memories(length: int = 256) -> int:
    """Wrong labels of `memory_transformer` at three rates of idling, with two and five symbols."""
    worlds = [FlipFlopTransduction(length, idle, symbols) for idle, symbols in ((0.5, 2), (0.9, 2), (0.98, 5))]
    batches = [(world.symbols, world.sample(50, rng=rng(4, str(world.idle)))) for world in worlds]
    return sum(int(wrong_targets(memory_transformer(length, symbols), batch).sum()) for symbols, batch in batches)


def wrong_parses(strings: int, length: int) -> int:
    """Wrong reads of `flip_flop_parser` on random strings of three languages."""
    batch = FlipFlop.ignoring(0.8, 0.98, 0.1, length=length).sample(strings, rng=rng(5))
    with torch.no_grad():
        bits = flip_flop_parser()(batch.inputs).argmax(-1)
    return int(((bits + 3 != batch.targets) & batch.mask).sum())


def small_monoids() -> int:
    """Non-commutative monoids on {0, 1}, among all sixteen multiplication tables."""
    found = 0
    for table in itertools.product((0, 1), repeat=4):
        product = np.array(table).reshape(2, 2)
        unital = any((product[e] == (0, 1)).all() and (product[:, e] == (0, 1)).all() for e in (0, 1))
        triples = itertools.product((0, 1), repeat=3)
        associative = all(product[product[a, b], c] == product[a, product[b, c]] for a, b, c in triples)
        found += bool(unital and associative and (product != product.T).any())
    return found


def sharpness_gap(keys: int = 40) -> float:
    """Distance of one-hot and uniform rows from the ends of each penalty's range, or of random rows outside of it."""
    ends = {"entropy": (0, np.log(keys)), "negative-l2": (-1, -1 / np.sqrt(keys)), "negative-max": (-1, -1 / keys)}
    one_hot, uniform = torch.eye(keys, dtype=torch.float64)[0], torch.full((keys,), 1 / keys, dtype=torch.float64)
    rows = torch.randn(1000, keys, generator=rng(6), dtype=torch.float64).mul(3).softmax(-1)
    gaps = []
    for kind, (low, high) in ends.items():
        at_ends = [float(row_sharpness(one_hot, kind)) - low, float(row_sharpness(uniform, kind)) - high]
        spread = row_sharpness(rows, kind)
        gaps += [*map(abs, at_ends), low - float(spread.min()), float(spread.max()) - high]
    return max(gaps)


def window_error(world: FlipFlop, window: int) -> float:
    """Read error of the best predictor that sees the last `window` tokens, by enumeration of all strings."""
    strings, probs = world.enumerate()
    seen: dict[tuple[int, ...], np.ndarray] = {}
    for string, weight in zip(strings.tolist(), probs.tolist()):
        for index in range(0, len(string), 2):
            if string[index] == READ:
                view = (*[-1] * max(0, window - index - 1), *string[max(0, index - window + 1) : index + 1])
                seen.setdefault(view, np.zeros(world.symbols))[string[index + 1] - 3] += weight
    counts = np.array(list(seen.values()))
    return float(1 - counts.max(1).sum() / counts.sum())


def window_gap(length: int = 10) -> float:
    """Largest difference between `FlipFlop.ngram_error` and `window_error`, three languages, all windows."""
    worlds = [FlipFlop.ignoring(share, length=length) for share in (0.98, 0.8, 0.1)]
    pairs = [(world, window) for world in worlds for window in range(1, length)]
    return max(abs(world.ngram_error(window) - window_error(world, window)) for world, window in pairs)


def wrong_sums(count: int) -> int:
    """Wrong sums of random pairs of 20-digit numbers through the carry's flip-flop."""
    digits = torch.randint(10, (count, 2, 20), generator=rng(2)).tolist()
    pairs = [[int("".join(map(str, number))) for number in pair] for pair in digits]
    return sum(adder_as_flip_flop(a, b)[0] != a + b for a, b in pairs)
