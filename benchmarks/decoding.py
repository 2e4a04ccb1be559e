"""Decoding: batched, with a cache that rolls back, against prompts decoded one by one and recomputed from scratch.

    python benchmarks/decoding.py [--json] [--device cuda] [--prompts 64]

The model has 6 layers and width 512, the task is to complete Dyck words of 32 brackets, the algorithm tokenwise
rejection with backtracking and the exact verifier. Both ways give the same strings from the same random numbers, and
are counted in tokens written per second (CPU seconds of one thread; wall time on a GPU).
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable
from typing import Any

import torch

import sandlab as sl
from sandlab.decoding.decoders.backtracking import Backtracking
from sandlab.decoding.generators.neural import ModelGenerator, RecomputingGenerator
from sandlab.decoding.verifiers.base import LanguageVerifier
from sandlab.models.transformer import Transformer
from sandlab.worlds.dyck.language import Dyck

BASELINE = "prompts one by one, without a cache"
QUICK = {"prompts": 16, "alone": 1}


def seconds(work: Callable[[], Any], device: str) -> tuple[float, Any]:
    """Time of one call and what it returned."""
    if device != "cpu":
        torch.cuda.synchronize()
    clock = time.process_time if device == "cpu" else time.perf_counter
    begin = clock()
    result = work()
    if device != "cpu":
        torch.cuda.synchronize()
    return clock() - begin, result


def plain_word(length: int, opening: float, first: float) -> list[int]:
    """One Dyck word of exactly `length` brackets, token by token, as a first script would write it."""
    stack: list[int] = []
    word = []
    for place in range(length):
        left = length - place
        if not stack or (len(stack) < left and random.random() < opening):
            stack.append(0 if random.random() < first else 1)
            word.append(2 * stack[-1])
        else:
            word.append(2 * stack.pop() + 1)
    return word


def measure(*, device: str = "cpu", prompts: int = 64, alone: int = 4) -> list[dict[str, Any]]:
    """Tokens per second of both ways and their ratio; and the Dyck world's sampling against plain Python."""
    world = Dyck(depth=None, length=32, words="complete", type_probs=(0.8, 0.2))
    with sl.models.seeded(0):
        model = Transformer(vocab=6, length=34, layers=6, heads=8, width=512, positions="rotary").to(device).eval()
    tokens, lengths = world.prompts(prompts, 4, 12, rng=sl.rng(0, device=device))
    strings = [row[:cut] for row, cut in zip(tokens.tolist(), lengths.tolist())]
    room, keys = 34 - lengths, torch.arange(prompts, device=device)
    decoder = Backtracking(quota=4, stride=4)
    options: dict[str, Any] = {"verifier": LanguageVerifier(world), "eos": world.end_token}

    def together() -> Any:
        return decoder.generate(ModelGenerator(model), strings, max_new=room, keys=keys, **options)

    def one_by_one() -> list[Any]:
        plain = RecomputingGenerator(model)
        return [
            decoder.generate(plain, [strings[row]], max_new=room[row : row + 1], keys=keys[row : row + 1], **options)
            for row in range(alone)
        ]

    together()
    batched_time, batched = seconds(together, device)
    single_time, single = seconds(one_by_one, device)
    same = all(result.string(0) == batched.string(row) for row, result in enumerate(single))
    batched_speed = batched.total("oracle_calls") / batched_time
    single_speed = sum(result.total("oracle_calls") for result in single) / single_time
    source = sl.rng(1, device=device)
    sampling_time, _ = seconds(lambda: [world.sample(4096, rng=source) for _ in range(10)], device)
    plain_time, _ = seconds(lambda: [plain_word(32, 0.5, 0.8) for _ in range(500)], "cpu")
    ours, plain = 10 * 4096 * 32 / sampling_time, 500 * 32 / plain_time
    return [
        {
            "name": "decoding with backtracking, 6 layers, width 512",
            "unit": "tokens/s",
            "ours": batched_speed,
            "baseline": single_speed,
            "ratio": batched_speed / single_speed,
            "same_strings": same,
            "prompts": prompts,
            "device": device,
        },
        {
            "name": "sampling Dyck words, batch 4096",
            "unit": "tokens/s",
            "against": "plain Python",
            "ours": ours,
            "baseline": plain,
            "ratio": ours / plain,
            "device": device,
        },
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--prompts", type=int, default=64)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    rows = measure(device=chosen.device, prompts=chosen.prompts)
    if chosen.json:
        print(json.dumps(rows, indent=1))
        return
    for row in rows:
        print(f"{row['name']:<50}{row['ours']:>14,.0f} {row['unit']}{row['baseline']:>14,.0f}{row['ratio']:>8.1f}×")


if __name__ == "__main__":
    main()
