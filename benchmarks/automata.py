"""Automata: simulated letters per second, semigroup elements per second and their memory, seconds to compile.

    python benchmarks/automata.py [--json] [--words 4096] [--length 1024]

The plain simulation draws each letter with `random.randrange` and looks the next state up in a list of lists, one
letter after the other; the plain enumeration keeps tuples in a set. Both run beside ours, on one thread: on a machine
with other work, threads that wait for each other measure the other work; for the same reason CPU seconds are counted.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import time
from typing import Any

import numpy as np
import torch
from data_generation import speed

import sandlab as sl

BASELINE = "plain Python, one letter at a time"
QUICK = {"words": 1024}


def plain_simulation(machine: Any, words: int, length: int) -> int:
    """States of random words, one look-up per letter; returns the number of letters."""
    table, letters = [list(row) for row in machine.transitions], machine.alphabet
    for _ in range(words):
        state, drawn, states = machine.start, [], []
        for _ in range(length):
            letter = random.randrange(letters)
            state = table[state][letter]
            drawn.append(letter)
            states.append(state)
    return words * length


def plain_closure(maps: list[tuple[int, ...]]) -> int:
    """The semigroup as a set of tuples, breadth first; returns its size."""
    known = set(maps)
    frontier = list(known)
    while frontier:
        found = []
        for element in frontier:
            for letter in maps:
                product = tuple(letter[state] for state in element)
                if product not in known:
                    known.add(product)
                    found.append(product)
        frontier = found
    return len(known)


def simulation_row(name: str, machine: Any, words: int, length: int) -> dict[str, Any]:
    generator = sl.rng(0)
    sized = machine.task(length=length)
    sized.sample(2, rng=generator)
    ours = speed(lambda: sized.sample(words, rng=generator).targets.numel(), 3.0)
    baseline = speed(lambda: plain_simulation(machine, 64, length))
    title = f"{name}: {words} words of {length} letters"
    return {"name": title, "unit": "letters/s", "ours": ours, "baseline": baseline, "ratio": ours / baseline}


def semigroup_row(points: int = 7) -> dict[str, Any]:
    """The full transformation monoid on 7 points has 823 543 elements."""
    rotate, swap = [*range(1, points), 0], [1, 0, *range(2, points)]
    merge = [0, 0, *range(2, points)]
    machine = sl.worlds.Automaton(transitions=np.array([rotate, swap, merge]).T.tolist())
    ours = speed(lambda: len(machine.semigroup()), 0.1)
    small = [tuple(row[:6]) for row in ([1, 2, 3, 4, 5, 0], [1, 0, 2, 3, 4, 5], [0, 0, 2, 3, 4, 5])]
    baseline = speed(lambda: plain_closure(small), 0.1)
    title = f"semigroup of {points}^{points} maps enumerated"
    row = {"name": title, "unit": "elements/s", "ours": ours, "baseline": baseline, "ratio": ours / baseline}
    return {**row, "against": "a set of tuples"}


def memory_row(points: int = 7) -> dict[str, Any]:
    """Peak memory of a process that does nothing but this enumeration; the limit is 2 GB for 100 000 elements."""
    code = (
        "import resource, sys; import numpy as np; import sandlab as sl;"
        "n = int(sys.argv[1]); maps = [[*range(1, n), 0], [1, 0, *range(2, n)], [0, 0, *range(2, n)]];"
        "machine = sl.worlds.Automaton(transitions=np.array(maps).T.tolist()); size = len(machine.semigroup());"
        "print(size, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(points)], check=True, capture_output=True, text=True)
    size, peak = (int(number) for number in done.stdout.split())
    row = {"name": f"semigroup of {size} maps: peak memory of its process", "unit": "GB", "ours": peak / 1e9}
    return {**row, "baseline": 2.0, "ratio": 2e9 / peak, "against": "the limit of 2 GB"}


# Permutations of six states that make the largest groups with a solvable structure, and one without.
HARD = {
    "S3 ≀ C2": [[1, 2, 0, 3, 4, 5], [1, 0, 2, 3, 4, 5], [3, 4, 5, 0, 1, 2]],
    "C2 ≀ S3": [[1, 0, 2, 3, 4, 5], [2, 3, 4, 5, 0, 1], [2, 3, 0, 1, 4, 5]],
    "S4 × C2": [[1, 2, 3, 0, 4, 5], [1, 0, 2, 3, 4, 5], [0, 1, 2, 3, 5, 4]],
    "S6": [[1, 2, 3, 4, 5, 0], [1, 0, 2, 3, 4, 5]],
}


def compile_row(states: int = 6, length: int = 256, machines: int = 10) -> dict[str, Any]:
    """The slowest of some random machines, of the largest groups on six states and of these with a merging letter."""
    tables = [
        [*letters, *extra] for letters in HARD.values() for extra in ([], [[0, 0, *range(2, 6)]], [[0, 1, 2, 3, 4, 4]])
    ]
    made = [sl.worlds.random_automaton(states, 3, rng=sl.rng(seed)) for seed in range(machines)]
    made += [sl.worlds.Automaton(transitions=[list(row) for row in zip(*letters)]) for letters in tables]
    worst = 0.0
    for machine in made:
        start = time.process_time()
        sl.circuits.compile(machine, length)
        worst = max(worst, time.process_time() - start)
    return {
        "name": f"slowest compilation of {len(made)} machines of {states} states, length {length}",
        "unit": "s",
        "ours": worst,
        "against": "",
    }


def measure(words: int = 4096, length: int = 1024) -> list[dict[str, Any]]:
    """Rows of name, unit, ours, baseline and ratio."""
    random.seed(0)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    named = sl.worlds.named_machine
    rows = [
        simulation_row("S5", named("S5"), words, length),
        simulation_row("Grid9", named("Grid9"), words, length),
        simulation_row("Dyck4_2, legal brackets only", named("Dyck4_2"), words // 8, length // 8),
        semigroup_row(),
        memory_row(),
        compile_row(),
    ]
    torch.set_num_threads(threads)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    parser.add_argument("--words", type=int, default=4096)
    parser.add_argument("--length", type=int, default=1024)
    options = parser.parse_args()
    rows = measure(options.words, options.length)
    if options.json:
        print(json.dumps(rows, indent=2))
        return
    for row in rows:
        compared = f"   plain {row['baseline']:.3g}   {row['ratio']:.1f}×" if "ratio" in row else ""
        print(f"{row['name']:<62} {row['ours']:.3g} {row['unit']}{compared}")


if __name__ == "__main__":
    main()
