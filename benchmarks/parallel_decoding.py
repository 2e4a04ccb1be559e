"""Parallel decoding: four passes of iterative refinement against cached token-by-token decoding, by length.

    python benchmarks/parallel_decoding.py [--json] [--rounds 7]

Two encoder-decoders of one size (2 + 2 layers, width 64) with random weights, one sentence at a time, greedy, answers
of a given length; seconds do not depend on what was learnt. Both are timed in turns in the same run, CPU seconds of one
thread, the median of the rounds. Passes are counted by the decoders themselves: at most four for every length here, one
per token there. Below some thirty tokens the cached decoder may win.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from statistics import median
from typing import Any

import torch

import sandlab as sl
from sandlab.decoding.parallel.beam import BeamSearch
from sandlab.decoding.parallel.refine import IterativeRefinement
from sandlab.models.parallel.encoder_decoder import EncoderDecoder, EncoderDecoderConfig

BASELINE = "token by token, with a cache"
QUICK = {"lengths": (16, 32, 64), "rounds": 3}
VOCAB, STEPS = 256, 4


def decoders(length: int) -> tuple[Callable[[], int], Callable[[], int]]:
    """Both ways to write an answer of so many tokens; each returns the number of its decoder passes."""
    sizes = EncoderDecoderConfig(VOCAB, length, length, layers=2, width=64)
    with sl.models.seeded(0):
        refine, write = (EncoderDecoder.from_config(replace(sizes, causal=causal)).eval() for causal in (False, True))
    source = torch.randint(4, VOCAB, (1, length), generator=sl.rng(0))
    lengths = torch.full((1,), length)

    def parallel() -> int:
        found = IterativeRefinement(STEPS).translate(refine, source, rng=sl.rng(0), true_lengths=lengths)
        return int(found.passes)

    return parallel, lambda: BeamSearch(1).translate(write, source, length=length).passes


def seconds(work: Callable[[], int]) -> float:
    start = time.process_time()
    work()
    return time.process_time() - start


def measure(lengths: tuple[int, ...] = (8, 16, 32, 64, 128), rounds: int = 7) -> Iterator[dict[str, Any]]:
    """A row for each length: sentences per second both ways, their ratio, and the passes of both."""
    torch.set_num_threads(1)
    for length in lengths:
        parallel, written = decoders(length)
        passes = {"passes": parallel(), "baseline passes": written()}
        turns = [(seconds(parallel), seconds(written)) for _ in range(rounds)]
        ours, baseline = (1 / median(column) for column in zip(*turns))
        name, row = f"{STEPS} passes, {length} tokens", {"unit": "sentences/s", "ours": ours, "baseline": baseline}
        yield {"name": name, **row, "ratio": ours / baseline, **passes}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    parser.add_argument("--rounds", type=int, default=7)
    chosen = parser.parse_args()
    rows = list(measure(rounds=chosen.rounds))
    if chosen.json:
        print(json.dumps(rows, indent=1))
        return
    for row in rows:
        count = f"{row['passes']} against {row['baseline passes']} passes"
        print(
            f"{row['name']:<22} {row['ours']:.3g} /s, {BASELINE} {row['baseline']:.3g} /s, {row['ratio']:.2f}×, {count}"
        )


if __name__ == "__main__":
    main()
