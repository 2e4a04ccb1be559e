"""Data generation: tokens per second of the Markov worlds against a plain per-token Python sampler, in the same run.

    python benchmarks/data_generation.py [--json] [--examples 1024] [--length 256]

The plain sampler draws one token after the other with the standard library (`random.choices`, or a coin for two states)
and makes tensors of the lists, as a first script would; its speed per token does not depend on the batch, so it is
measured on few examples. Both run on one thread: on a machine
with other work, threads that wait for each other measure the other work; for the same reason CPU seconds are counted.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable, Iterable
from typing import Any

import torch

import sandlab as sl

BASELINE = "plain Python, one token at a time"
QUICK = {"examples": 256, "length": 128}


def plain_row(row: list[float]) -> int:
    """One draw from a distribution: the toss of a coin for two states, `random.choices` for more."""
    if len(row) == 2:
        return int(random.random() < row[1])
    return random.choices(range(len(row)), row)[0]


def plain_chain(rows: list[list[float]], order: int, length: int) -> list[int]:
    """One sequence of a chain whose row number is the last `order` tokens read as digits; uniform start."""
    states = len(rows[0])
    tokens = [random.randrange(states) for _ in range(order)]
    while len(tokens) < length + 1:
        context = 0
        for token in tokens[-order:]:
            context = context * states + token
        tokens.append(plain_row(rows[context]))
    return tokens


def plain_fixed(world: Any) -> Callable[[int], list[list[int]]]:
    """Examples of a fixed chain."""
    rows = world.table.tolist()

    return lambda examples: [plain_chain(rows, world.order, world.length) for _ in range(examples)]


def plain_in_context(world: Any) -> Callable[[int], list[list[int]]]:
    """Examples with a fresh Dirichlet kernel each."""

    def kernel() -> list[list[float]]:
        return [dirichlet(world.states, world.concentration) for _ in range(world.states**world.order)]

    return lambda examples: [plain_chain(kernel(), world.order, world.length) for _ in range(examples)]


def dirichlet(entries: int, concentration: float) -> list[float]:
    gammas = [random.gammavariate(concentration, 1.0) for _ in range(entries)]
    return [gamma / sum(gammas) for gamma in gammas]


def plain_tree(world: Any) -> Callable[[int], list[list[int]]]:
    """A fresh kernel each; roots by running the chain for a while from a uniform state."""

    def one() -> list[int]:
        rows = [dirichlet(world.states, world.concentration) for _ in range(world.states)]
        tokens: list[int] = []
        for parent in world.parents[:-1]:
            if parent < 0:
                state = random.randrange(world.states)
                for _ in range(20):
                    state = plain_row(rows[state])
                tokens.append(state)
            else:
                tokens.append(plain_row(rows[tokens[parent]]))
        return [*tokens, random.randrange(world.states)]

    return lambda examples: [one() for _ in range(examples)]


def plain_triggers(world: Any) -> Callable[[int], list[list[int]]]:
    table = world.table.tolist()

    def one() -> list[int]:
        forced = {token: random.randrange(world.states) for token in range(world.triggers)}
        tokens = [random.randrange(world.states)]
        while len(tokens) < world.length + 1:
            last = tokens[-1]
            tokens.append(forced[last] if last in forced else plain_row(table[last]))
        return tokens

    return lambda examples: [one() for _ in range(examples)]


def plain_backcopy(world: Any) -> Callable[[int], list[list[int]]]:
    table = world.table.tolist()

    def one() -> list[int]:
        tokens = [world.states, random.randrange(world.triggers, world.states)]
        while len(tokens) < world.length + 1:
            last = tokens[-1]
            tokens.append(tokens[-2] if last < world.triggers else plain_row(table[last]))
        return tokens

    return lambda examples: [one() for _ in range(examples)]


def plain_interleaved(world: Any) -> Callable[[int], list[list[int]]]:
    table, probs = world.chain.table.tolist(), world.chain.stationary().tolist()

    def one() -> list[int]:
        lag = random.choice(world.lags)
        tokens = [plain_row(probs) for _ in range(lag)]
        while len(tokens) < world.length + 1:
            tokens.append(plain_row(table[tokens[-lag]]))
        return tokens

    return lambda examples: [one() for _ in range(examples)]


def plain_hops(world: Any) -> Callable[[int], list[list[int]]]:
    def one() -> list[int]:
        tokens = [random.randrange(world.states) for _ in range(world.length)]
        last: dict[int, int] = {}
        hop = []
        for place, token in enumerate(tokens):
            hop.append(last[token] + 1 if token in last else -1)
            last[token] = place
        answers = []
        for place in range(world.length):
            at = place
            for _ in range(world.hops):
                at = hop[at] if at >= 0 else -1
            answers.append(tokens[at] if at >= 0 else world.states)
        return answers

    return lambda examples: [one() for _ in range(examples)]


def plain_recall(world: Any) -> Callable[[int], list[list[int]]]:
    def one() -> list[int]:
        keys = random.sample(range(world.keys), world.pairs)
        values = [random.randrange(world.keys, world.vocab) for _ in keys]
        table = dict(zip(keys, values))
        asked = random.sample(keys, world.queries)
        tokens = [token for pair in zip(keys, values) for token in pair] + asked
        return tokens if [table[key] for key in asked] else []

    return lambda examples: [one() for _ in range(examples)]


def plain_batch(rows: list[list[int]], world: Any) -> int:
    """The tensors that a training step needs, from lists of tokens; returns the number of tokens, counted as ours."""
    tokens = torch.tensor(rows)
    batch = sl.worlds.Batch(tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous(), tokens[:, 1:] >= 0)
    return len(batch) * (world.length + 1)


def compared(name: str, ours: float, baseline: float, against: str) -> dict[str, Any]:
    """A row of a table of speeds in tokens/s."""
    ratio = ours / baseline
    return {
        "name": name, "unit": "tokens/s", "ours": ours, "baseline": baseline, "ratio": ratio, "against": against
    }  # fmt: skip


def tell(words: str, measure: Callable[[int], Iterable[dict[str, Any]]], examples: int) -> None:
    """The command line of a benchmark whose rows compare speeds."""
    parser = argparse.ArgumentParser(description=words)
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    parser.add_argument("--examples", type=int, default=examples)
    options = parser.parse_args()
    rows = measure(options.examples)
    if options.json:
        print(json.dumps(list(rows), indent=2))
        return
    for row in rows:
        print(
            f"{row['name']:<24} {row['ours']:.3g} {row['unit']}, "
            f"{row['against']} {row['baseline']:.3g}, {row['ratio']:.1f}×"
        )


def speed(sample: Callable[[], int], at_least: float = 0.4) -> float:
    """Tokens per second: the best of the calls that fit into `at_least` seconds (at least three)."""
    sample()
    best, spent, calls = 0.0, 0.0, 0
    while spent < at_least or calls < 3:
        start = time.process_time()
        tokens = sample()
        taken = time.process_time() - start
        best, spent, calls = max(best, tokens / taken), spent + taken, calls + 1
    return best


def cases(length: int) -> list[tuple[str, Any, Callable[[Any], Callable[[int], list[list[int]]]]]]:
    worlds = sl.worlds
    trigrams = max(length // 2, 16)
    return [
        ("binary chain", worlds.MarkovChain.binary(0.2, 0.3, length=length), plain_fixed),
        ("binary chain, switching", worlds.MarkovChain.binary(0.5, 0.8, length=length), plain_fixed),
        ("chain of order 2 on 3 states", worlds.MarkovChain.random(3, 2, length=length), plain_fixed),
        ("in-context bigrams, 3 states", worlds.InContextMarkov(3, 1, length), plain_in_context),
        ("in-context trigrams, 5 states", worlds.InContextMarkov(5, 2, trigrams), plain_in_context),
        ("in-context trigrams, 5 states, α = 0.5", worlds.InContextMarkov(5, 2, trigrams, 0.5), plain_in_context),
        ("in-context tree", worlds.InContextTree(3, worlds.random_parents(64, 0), 0.5), plain_tree),
        ("bigram with triggers, 16 states", worlds.BigramTrigger(length=length), plain_triggers),
        ("bigram with back-copies, 20 states", worlds.BigramBackcopy(length=length), plain_backcopy),
        ("interleaved chains", worlds.InterleavedChains(length=length), plain_interleaved),
        ("3-hop induction", worlds.KHopInduction(hops=3, length=length), plain_hops),
        ("associative recall", worlds.AssociativeRecall(keys=64, pairs=32, queries=16), plain_recall),
    ]


def measure(examples: int = 1024, length: int = 256, plain_examples: int = 16) -> list[dict[str, Any]]:
    """One row per world: our tokens per second at the given batch, the plain sampler's, and their ratio."""
    rows = []
    generator = sl.rng(0)
    random.seed(0)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    for name, world, plain in cases(length):
        # Counted alike for both: a sequence of length + 1 tokens for `length` inputs and their targets.
        ours = speed(lambda world=world: world.sample(examples, rng=generator).inputs.shape[0] * (world.length + 1))
        slow = plain(world)
        baseline = speed(lambda slow=slow, world=world: plain_batch(slow(plain_examples), world), at_least=0.2)
        rows.append({"name": name, "unit": "tokens/s", "ours": ours, "baseline": baseline, "ratio": ours / baseline})
    torch.set_num_threads(threads)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")
    parser.add_argument("--examples", type=int, default=1024)
    parser.add_argument("--length", type=int, default=256)
    options = parser.parse_args()
    rows = measure(options.examples, options.length)
    if options.json:
        print(json.dumps(rows, indent=2))
        return
    print(f"{'world':<42}{'ours, M tokens/s':>18}{'plain, M tokens/s':>19}{'ratio':>9}")
    for row in rows:
        print(f"{row['name']:<42}{row['ours'] / 1e6:>18.2f}{row['baseline'] / 1e6:>19.3f}{row['ratio']:>8.0f}×")


if __name__ == "__main__":
    main()
