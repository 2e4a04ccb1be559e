"""Where a population's step spends its time on a GPU: kernels by kind, beside what the chip could do.

    python benchmarks/profile_gpu.py [--only LSTM] [--out profile-gpu.json]

The steps for which `zoo_gpu.py` names a goal: 100 LSTMs, 256 small transformers (TF32 and bf16), four of 19 M,
trained as `train` does it; 32 steps are recorded once the step is compiled. "busy" is the share of the wall clock in
which a kernel ran: what is missing is latency between kernels. The share of the products is what a faster matrix unit
would change.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch
import zoo_gpu
from torch._C._autograd import DeviceType
from torch.profiler import ProfilerActivity, profile

import sandlab as sl
from sandlab.models.base import Config, build

KINDS = {
    "scans": r"lstm_(forward|backward)$",
    "attention": r"flash|fmha|attention|sdpa",
    "products": r"gemm|cutlass|nvjet|xmma|sgemm|bmm|_mm_|triton_tem|cublas",
    "optimizer": r"multi_tensor|foreach|adam|lerp|addcdiv|addcmul",
    "copies": r"memcpy|memset|copy",
    "norms and reductions": r"triton_(red|per)|reduce|norm|softmax",
    "elementwise": r"triton_poi|elementwise|vectorized|unrolled",
}


@dataclass(frozen=True)
class Case:
    """One population whose step is looked at."""

    name: str
    config: Config
    world: sl.worlds.World
    batch: int
    members: int
    precision: str
    compile: bool = True


def cases() -> list[Case]:
    small = sl.models.TransformerConfig(vocab=3, length=64, layers=2, heads=1, width=64)
    big = sl.models.TransformerConfig(vocab=5, length=511, layers=6, heads=8, width=512, init_std=None)
    lstm = sl.models.LSTMConfig(vocab=5, width=128, layers=1, readout_bias=True, torch_start=True)
    return [
        Case("LSTM", lstm, zoo_gpu.FLIP_FLOP, 16, 100, "tf32", compile=False),
        Case("19 M transformer", big, zoo_gpu.FLIP_FLOP, 16, 4, "bf16"),
        Case("small transformer", small, zoo_gpu.MARKOV, 64, 256, "bf16"),
        Case("small transformer", small, zoo_gpu.MARKOV, 64, 256, "tf32"),
    ]


def kind(kernel: str) -> str:
    """The kind of a kernel, by its name."""
    return next((name for name, words in KINDS.items() if re.search(words, kernel, re.IGNORECASE)), "other")


def shares(kernels: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Share of the time of all kernels (name, seconds) that each kind takes, largest first."""
    taken = totals((kind(name), seconds) for name, seconds in kernels)
    whole = sum(taken.values())
    return {name: seconds / whole for name, seconds in taken.items()}


def totals(kernels: Iterable[tuple[str, float]]) -> dict[str, float]:
    """Seconds by name, largest first."""
    taken: dict[str, float] = {}
    for name, seconds in kernels:
        taken[name] = taken.get(name, 0.0) + seconds
    return dict(sorted(taken.items(), key=lambda each: -each[1]))


def look(case: Case, every: int = 32) -> dict[str, Any]:
    """Train a population, record the kernels between its third and fourth evaluation."""
    watch = profile(activities=[ProfilerActivity.CUDA])
    times: list[float] = []

    def mark(_step: int, _model: object, _metrics: object) -> None:
        torch.cuda.synchronize()
        times.append(time.perf_counter())
        if len(times) == 3:
            watch.start()
        if len(times) == 4:
            watch.stop()

    population = sl.learning.Population(
        lambda _seed: build(case.config), seeds=range(case.members), strategy="native"
    ).to(zoo_gpu.DEVICE)
    sl.learning.train(
        population, case.world, batch_size=case.batch, steps=5 * every, every=every, lr=1e-3, data="separate",
        precision=case.precision, compile=case.compile, callbacks=(mark,), progress=False,
        rng=sl.rng(1, device=zoo_gpu.DEVICE),
    )  # fmt: skip
    events = [each for each in watch.events() if each.device_type == DeviceType.CUDA]
    return summary(case, [(each.name, 1e-6 * each.device_time) for each in events], times[2] - times[1], every)


def summary(case: Case, kernels: list[tuple[str, float]], undisturbed: float, steps: int) -> dict[str, Any]:
    """What is written down: `undisturbed` is the time of as many steps without the profiler."""
    by_name = totals(kernels)
    inside = sum(by_name.values())
    return {
        "name": f"{case.name}, {case.members} members, {case.precision}",
        "step ms": 1e3 * undisturbed / steps,
        "kernels per step": len(kernels) / steps,
        "µs per kernel": 1e6 * inside / max(len(kernels), 1),
        "busy": inside / undisturbed,
        "shares": shares(kernels),
        "busiest": {name[:90]: seconds / inside for name, seconds in islice(by_name.items(), 8)},
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="cases whose names hold these words")
    parser.add_argument("--out", default="")
    options = parser.parse_args()
    done = []
    for case in (each for each in cases() if options.only in each.name):
        torch.compiler.reset()
        done.append(look(case))
        print(json.dumps(done[-1], indent=1, ensure_ascii=False), flush=True)
        torch.cuda.empty_cache()
        if options.out:
            found = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__, "rows": done}
            with open(options.out, "w", encoding="utf-8") as file:
                json.dump(found, file, indent=1, ensure_ascii=False)


if __name__ == "__main__":
    main()
