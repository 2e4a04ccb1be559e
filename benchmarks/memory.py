"""Memory: streamed evaluation holds as much for a billion tokens as for a few, against the limit of 2 GB.

    python benchmarks/memory.py [--tokens 30000000]

`tail_error` and `agreement` of a small transformer run in a fresh process, first over few tokens, then over many; after
each the highest resident memory so far is read from the system. It goes up in rare steps of some megabytes, not in
proportion to the tokens; read as growth per token all the same, it gives an upper estimate at 10⁹ tokens. Over few
million tokens one such step alone would look like gigabytes, so there is no shorter measurement.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from typing import Any

LIMIT = 2e9
BILLION = 10**9
BASELINE = "the limit of 2 GB"

# The high-water mark of this process alone: getrusage would hand on that of the process that started it.
_CODE = """
import json, re, resource, sys
import torch
import sandlab as sl

def peak():
    try:
        return 1024 * int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)

torch.set_num_threads(1)
world = sl.worlds.InContextMarkov(states=3, order=1, length=64)
model = sl.models.Transformer(vocab=3, length=64, layers=1, heads=1, width=16)
peaks = []
for tokens in map(int, sys.argv[1:]):
    {run}
    peaks.append(peak())
print(json.dumps(peaks))
"""
_RUNS = {
    "tail_error": "sl.lenses.tail_error(model, world, targets=tokens, rng=sl.rng(0))",
    "agreement": "sl.lenses.agreement(model, world, examples=tokens // 64, rng=sl.rng(0))",
}


def peaks(name: str, *sizes: int) -> list[int]:
    """Highest resident memory, in bytes, of a fresh process after each of some evaluations, one after another."""
    code = _CODE.replace("{run}", _RUNS[name])
    found = subprocess.run([sys.executable, "-c", code, *map(str, sizes)], check=True, capture_output=True, text=True)
    return list(json.loads(found.stdout))


def at_a_billion(few: int, many: int, low: float, high: float) -> float:
    """Bytes at 10⁹ tokens, if memory goes on growing as it did between `few` and `many`."""
    return high + max(0.0, (high - low) / (many - few)) * (BILLION - many)


def measure(few: int = 1_000_000, many: int = 30_000_000) -> list[dict[str, Any]]:
    """For each lens: peak memory after few and many tokens, and what follows for 10⁹."""
    rows = []
    for name in _RUNS:
        low, high = peaks(name, few, many)
        billion = at_a_billion(few, many, low, high)
        rows.append(
            {
                "name": f"{name}, 10⁹ tokens (extrapolated)",
                "unit": "GB",
                "ours": billion / 1e9,
                "baseline": LIMIT / 1e9,
                "ratio": LIMIT / billion,
                "bytes per token": (high - low) / (many - few),
                "peaks": {few: low, many: high},
            }
        )
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description="Peak memory of streamed evaluation.")
    parser.add_argument("--tokens", type=int, default=30_000_000)
    for row in measure(many=parser.parse_args().tokens):
        print(f"{row['name']}: {row['ours']:.3f} GB, {row['bytes per token']:.3g} bytes per token, {row['peaks']}")


if __name__ == "__main__":
    main()
