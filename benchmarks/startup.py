"""Start-up: seconds until `import sandlab` and `sandlab --help` are done, against the limit of half a second.

    python benchmarks/startup.py

Heavy libraries load only when they are used; `import torch` stands beside as what is not paid for.
"""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

LIMIT = 0.5
BASELINE = "the limit of half a second"
QUICK = {"tries": 2}


def seconds(code: list[str], tries: int = 5) -> float:
    """The fastest of a few fresh processes, the interpreter's own start included."""
    best = float("inf")
    for _ in range(tries):
        start = time.perf_counter()
        subprocess.run([sys.executable, *code], check=True, stdout=subprocess.DEVNULL)
        best = min(best, time.perf_counter() - start)
    return best


def measure(tries: int = 5) -> list[dict[str, Any]]:
    """Our seconds, the limit, and how many times we stay below it."""
    cases = {
        "import sandlab": ["-c", "import sandlab"],
        "sandlab --help": ["-c", "from sandlab.cli import main; main(['--help'])"],
    }
    rows = []
    for name, code in cases.items():
        ours = seconds(code, tries)
        rows.append({"name": name, "unit": "s", "ours": ours, "baseline": LIMIT, "ratio": LIMIT / ours})
    return rows


if __name__ == "__main__":
    for row in measure():
        print(f"{row['name']:<18}{row['ours']:.3f} s, {row['ratio']:.1f} times below {LIMIT} s")
