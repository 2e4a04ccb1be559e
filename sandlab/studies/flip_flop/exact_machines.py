"""Exact flip-flop machines put to strings, and small facts about the language that can be counted."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from sandlab.circuits.flip_flop.memory import flip_flop_parser, flip_flop_transformer, memory_transformer
from sandlab.learning.penalties import row_sharpness
from sandlab.lenses.flip_flop.tail_errors import wrong_targets
from sandlab.models.recurrent import LSTM
from sandlab.random import rng
from sandlab.worlds.base import Batch
from sandlab.worlds.flip_flop.language import FlipFlop, FlipFlopTransduction

__all__ = [
    "SharpnessJob",
    "StringsJob",
    "circuit_errors",
    "floors_off",
    "lstm_size",
    "random_strings",
    "reads_off",
    "sharpness_off",
    "short_strings",
    "small_monoids",
    "wrong_memories",
    "wrong_parses",
]


@dataclass(frozen=True)
class SharpnessJob:
    length: int
    strings: int
    factors: tuple[float, ...]
    device: str = "cpu"


@dataclass(frozen=True)
class StringsJob:
    """Random strings of three languages put to the circuit, `chunk` at a time."""

    length: int
    strings: int
    device: str = "cpu"
    chunk: int = 512


def circuit_errors(job: SharpnessJob) -> dict[str, Any]:
    """Read error of the two-layer circuit with scores sharpened by factor · T, and of the proven sharpness."""
    batches = [
        FlipFlop.ignoring(p, length=job.length).sample(job.strings, rng=rng(0, str(p), device=job.device))
        for p in (0.8, 0.98, 0.1)
    ]

    def error(sharpness: float | None) -> float:
        model = flip_flop_transformer(job.length, sharpness=sharpness).to(job.device)
        wrong = sum(int(wrong_targets(model, batch).sum()) for batch in batches)
        return wrong / sum(int(batch.mask.sum()) for batch in batches)

    return {"errors": np.array([error(f * job.length) for f in job.factors]), "proven": error(None)}


def random_strings(job: StringsJob) -> dict[str, Any]:
    """Wrong reads of the circuit, and all reads, over random strings of a mixture of the three languages."""
    model = flip_flop_transformer(job.length).to(job.device)
    world = FlipFlop.ignoring(0.8, 0.98, 0.1, length=job.length)
    generator = rng(3, "strings", device=job.device)
    wrong, reads = 0, 0
    for done in range(0, job.strings, job.chunk):
        batch = world.sample(min(job.chunk, job.strings - done), rng=generator)
        wrong += int(wrong_targets(model, batch).sum())
        reads += int(batch.mask.sum())
    return {"wrong": wrong, "reads": reads}


def short_strings(longest: int = 12) -> tuple[int, int]:
    """Wrong reads of the circuit over every string of length 4, 6, … `longest`, and the number of those strings."""
    wrong, count = 0, 0
    for length in range(4, longest + 1, 2):
        strings, _ = FlipFlop.ignoring(0.8, length=length).enumerate()
        inputs, targets = strings[:, :-1], strings[:, 1:]
        wrong += int(wrong_targets(flip_flop_transformer(length), Batch(inputs, targets, inputs == 1)).sum())
        count += len(strings)
    return wrong, count


def small_monoids() -> int:
    """Non-commutative monoids on {0, 1}: all sixteen multiplication tables are tried."""
    found = 0
    for table in itertools.product((0, 1), repeat=4):
        product = np.array(table).reshape(2, 2)
        unital = any((product[e] == (0, 1)).all() and (product[:, e] == (0, 1)).all() for e in (0, 1))
        triples = itertools.product((0, 1), repeat=3)
        associative = all(product[product[a, b], c] == product[a, product[b, c]] for a, b, c in triples)
        found += bool(unital and associative and (product != product.T).any())
    return found


def wrong_memories(length: int = 256) -> int:
    wrong = 0
    for idle, symbols in ((0.5, 2), (0.9, 2), (0.98, 5)):
        batch = FlipFlopTransduction(length=length, idle=idle, symbols=symbols).sample(50, rng=rng(4, str(idle)))
        wrong += int(wrong_targets(memory_transformer(length, symbols), batch).sum())
    return wrong


def wrong_parses(strings: int, length: int) -> int:
    model, wrong = flip_flop_parser(), 0
    for share in (0.8, 0.98, 0.1):
        batch = FlipFlop.ignoring(share, length=length).sample(strings, rng=rng(5, str(share)))
        with torch.no_grad():
            bits = model(batch.inputs).argmax(-1)
        wrong += int(((bits + 3 != batch.targets) & batch.mask).sum())
    return wrong


def reads_off() -> float:
    """The published numbers of reads in 10³ and 10⁵ strings of FFL(0.98), as deviations from what is expected."""
    world = FlipFlop.ignoring(0.98)
    free, share = world.pairs - 2, world.laws[0][1]
    counts = ((1000, 3567), (100_000, 353_875))
    return max(
        abs(n - size * world.expected_reads()) / np.sqrt(size * free * share * (1 - share)) for size, n in counts
    )


def floors_off() -> float:
    """Largest difference between the generative loss floors at length 512 and their values to five digits."""
    values = {0.8: 0.62908, 0.98: 0.39807, 0.1: 0.66253}
    return max(abs(FlipFlop.ignoring(share).loss_floor() - value) for share, value in values.items())


def lstm_size() -> int:
    """Parameters of the published LSTM: ours has one bias per gate unit where common libraries have two."""
    return LSTM(vocab=5, width=128, layers=1, readout_bias=True).parameter_count() + 4 * 128


def sharpness_off(keys: int = 40) -> float:
    """How far uniform and one-hot rows are from the ends of each penalty's range, and random rows outside of it."""
    ends = {
        "entropy": (0.0, np.log(keys)),
        "negative-l2": (-1.0, -1 / np.sqrt(keys)),
        "negative-max": (-1.0, -1 / keys),
    }
    one_hot, uniform = torch.eye(keys, dtype=torch.float64)[0], torch.full((keys,), 1 / keys, dtype=torch.float64)
    rows = torch.randn(1000, keys, generator=rng(6), dtype=torch.float64).mul(3).softmax(-1)
    worst = 0.0
    for kind, (low, high) in ends.items():
        at_ends = abs(float(row_sharpness(one_hot, kind)) - low), abs(float(row_sharpness(uniform, kind)) - high)
        spread = row_sharpness(rows, kind)
        worst = max(worst, *at_ends, low - float(spread.min()), float(spread.max()) - high)
    return worst
