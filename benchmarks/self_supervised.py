"""Self-supervised data: contrastive pairs and HMM triples per second against plain Python loops.

    python benchmarks/self_supervised.py [--json] [--examples 20000]

The plain versions draw one number after the other with the standard library and make tensors of the lists, as a first
script would. Streamed counts are compared with the same loop that counts into a dictionary. CPU seconds on one thread;
a pair counts as two tokens, a triple as three.

The last row is about memory: what counting 10⁸ triples adds to the peak of a fresh process, after a thousand have been
counted, against the bytes of the triples themselves.
"""

from __future__ import annotations

import math
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from data_generation import compared, plain_row, speed, tell

import sandlab as sl
from sandlab.worlds.diffusions.contrast import NearbyContrast
from sandlab.worlds.diffusions.pairs import make_pairs

QUICK = {"examples": 2000, "patience": 0.05, "triples": 10_000_000}
PLAIN = 500
ETA = 0.5


def plain_path_pairs(count: int) -> int:
    """Pairs of one OU path: a Gaussian step at a time, a coin, and a negative near x."""
    a, spread, sd = math.exp(-ETA), math.sqrt(1 - math.exp(-2 * ETA)), math.sqrt(2 * ETA)
    state, rows = random.gauss(0, 1), []
    for _ in range(count):
        after = a * state + spread * random.gauss(0, 1)
        label = random.random() < 0.5
        rows.append([state, after if label else state + sd * random.gauss(0, 1), float(label)])
        state = a * after + spread * random.gauss(0, 1)
    return 2 * len(torch.tensor(rows))


def plain_independent_pairs(count: int) -> int:
    """Pairs with a start of their own, negatives from the stationary law."""
    a, spread = math.exp(-ETA), math.sqrt(1 - math.exp(-2 * ETA))
    rows = []
    for _ in range(count):
        state, label = random.gauss(0, 1), random.random() < 0.5
        rows.append([state, a * state + spread * random.gauss(0, 1) if label else random.gauss(0, 1), float(label)])
    return 2 * len(torch.tensor(rows))


def plain_triple(columns: tuple[list[list[float]], list[list[float]]]) -> tuple[int, int, int]:
    """A hidden path and its three tokens."""
    emissions, transitions = columns
    state, tokens = random.randrange(len(transitions)), []
    for _ in range(3):
        tokens.append(plain_row(emissions[state]))
        state = plain_row(transitions[state])
    return tokens[0], tokens[1], tokens[2]


def cases(examples: int) -> list[tuple[str, Callable[[], int], Callable[[], int]]]:
    hmm, rng, draw = sl.worlds.HMM(), sl.rng(0), np.random.default_rng(0)
    columns = hmm.O.T.tolist(), hmm.T.T.tolist()
    ou, parallel, law = sl.worlds.OrnsteinUhlenbeck(), sl.worlds.ContrastivePairs(), NearbyContrast.natural(ETA)
    return [
        (
            "pairs of one path",
            lambda: 2 * len(make_pairs(ou.path(2 * examples, ETA, draw), law, draw)),
            lambda: plain_path_pairs(PLAIN),
        ),
        (
            "independent pairs",
            lambda: 2 * len(parallel.sample(examples, rng=rng)),
            lambda: plain_independent_pairs(PLAIN),
        ),
        (
            "triples of an HMM",
            lambda: 3 * len(hmm.sample_tokens(examples, rng)[0]),
            lambda: 3 * len(torch.tensor([plain_triple(columns) for _ in range(PLAIN)])),
        ),
        (
            "counted triples",
            lambda: 3 * int(hmm.string_counts(10 * examples, rng=rng).sum()),
            lambda: 3 * sum(Counter(plain_triple(columns) for _ in range(PLAIN)).values()),
        ),
    ]


# The high-water mark of this process alone: getrusage would hand on that of the process that started it.
_CODE = """
import re, sys
import sandlab as sl
hmm, peaks = sl.worlds.HMM(), []
for n in map(int, sys.argv[1:]):
    assert hmm.string_counts(n, rng=sl.rng(0)).sum() == n
    peaks.append(1024 * int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]))
print(peaks[1] - peaks[0])
"""


def streamed(triples: int) -> dict[str, Any]:
    """Megabytes that counting so many triples adds to the peak, against those of the triples (three 8-byte numbers)."""
    command = [sys.executable, "-c", _CODE, "1000", str(triples)]
    added = int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    ours, stored = added / 1e6, 24 * triples / 1e6
    row = {
        "name": f"memory of {triples // 10**6} million counted triples",
        "unit": "MB",
        "ours": ours,
        "baseline": stored,
    }
    return {**row, "ratio": stored / ours, "against": "the triples in memory"}


def measure(examples: int = 20_000, patience: float = 0.4, triples: int = 10**8) -> Iterator[dict[str, Any]]:
    """One row per kind of data, and the memory of streamed counts (where the system tells it)."""
    torch.set_num_threads(1)
    random.seed(0)
    for name, ours, plain in cases(examples):
        yield compared(name, speed(ours, patience), speed(plain, patience / 2), "plain Python")
    if sys.platform == "linux":
        yield streamed(triples)


if __name__ == "__main__":
    tell("Speed of contrastive pairs and HMM triples.", measure, 20_000)
