"""Factual recall: sums over the vocabulary against the ordinary transformer with the same logits, in the same run.

    python benchmarks/facts.py

Both train on the same batches of the same world by `sl.learning.train`; the unit is updates per second of CPU time on
one thread, data generation included, the best of runs that alternate. That the logits are equal is a test
(tests/models/knowledge/test_memories.py).
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import torch

import sandlab as sl

BASELINE = "Transformer, the same logits"
QUICK = {"updates": 4, "rounds": 1}
CASES = {
    "32 heads of 8, width 32, batch 256 × 32": (
        sl.worlds.FactRecall(),
        256,
        {"width": 32, "heads": 32, "head_width": 8, "mlp_width": 128},
    ),
    "4 heads of 12, width 24, batch 512 × 8": (
        sl.worlds.FactRecall(subjects=26, relations=26, noise=8, length=8),
        512,
        {"width": 24, "heads": 4, "head_width": 12, "mlp_width": 48},
    ),
}


def ours(world: sl.worlds.FactRecall, sizes: dict[str, int]) -> torch.nn.Module:
    return sl.models.FactTransformer(vocab=world.vocab, outputs=world.outputs, **sizes)


def theirs(world: sl.worlds.FactRecall, sizes: dict[str, int]) -> torch.nn.Module:
    model = sl.models.Transformer(
        vocab=world.vocab, outputs=world.outputs, length=world.length, layers=1, mlp="relu", norm="none",
        positions="none", bias=False, init_std=None, read="last", **sizes,
    )  # fmt: skip
    for table in (model.embedding, model.unembed):
        table.weight.requires_grad_(False)
    return model


def rate(model: torch.nn.Module, world: sl.worlds.FactRecall, batch_size: int, updates: int) -> float:
    start = time.process_time()
    sl.learning.train(model, world, steps=updates, batch_size=batch_size, rng=sl.rng(1))
    return updates / (time.process_time() - start)


def measure(updates: int = 20, rounds: int = 3) -> Iterator[dict[str, Any]]:
    """Updates per second of both, size by size."""
    torch.set_num_threads(1)
    for name, (world, batch_size, sizes) in CASES.items():
        models = [make(world, sizes) for make in (ours, theirs)]
        for model in models:
            rate(model, world, batch_size, 1)
        found = [[rate(model, world, batch_size, updates) for model in models] for _ in range(rounds)]
        fast, slow = (max(row[side] for row in found) for side in (0, 1))
        yield {"name": name, "unit": "updates/s", "ours": fast, "baseline": slow, "ratio": fast / slow}


if __name__ == "__main__":
    for row in measure():
        print(f"{row['name']}: {row['ours']:.0f} against {row['baseline']:.1f} {row['unit']}, {row['ratio']:.1f} ×")
