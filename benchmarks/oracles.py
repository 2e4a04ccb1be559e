"""Oracles: tokens per second of the exact prediction of every world that has one.

    python benchmarks/oracles.py [--json] [--examples 256]

Two baselines. "plain Python": the same oracle written for one sequence with lists and loops, as a first script would;
its answers are compared with ours before anything is timed. "one at a time": where the plain version would be a second
implementation of the whole world, our own oracle is called with one example after another, as an evaluation loop
without batches does. CPU seconds on one thread; a number of a world that is not a sequence counts as a token.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import torch
from data_generation import compared, speed, tell

import sandlab as sl

Rows = list[list[float]]
Plain = Callable[[Any, list[int]], Rows]
QUICK = {"patience": 0.05}


def logs(probs: list[float]) -> list[float]:
    return [math.log(share) if share > 0 else -math.inf for share in probs]


def sure(answer: int, classes: int) -> list[float]:
    return [0.0 if each == answer else -math.inf for each in range(classes)]


def plain_automaton(world: Any, tokens: list[int]) -> Rows:
    """The state after each letter."""
    state, labels, rows = world.start, world.labels.tolist(), []
    for letter in tokens:
        state = world.transitions[state][letter]
        rows.append(sure(labels[state], world.outputs))
    return rows


def plain_chain(world: Any, tokens: list[int]) -> Rows:
    """The kernel's row of the last token (chains of order 1 only)."""
    return [logs(world.table[token].tolist()) for token in tokens]


def plain_in_context(world: Any, tokens: list[int]) -> Rows:
    """(N + α) / (ΣN + Sα) from the transitions seen so far (order 1)."""
    counts = [[world.concentration] * world.states for _ in range(world.states)]
    rows = []
    for place, token in enumerate(tokens):
        if place:
            counts[tokens[place - 1]][token] += 1
        total = sum(counts[token])
        rows.append(logs([count / total for count in counts[token]]))
    return rows


def plain_ngrams(world: Any, tokens: list[int]) -> Rows:
    """The same for the last token only, after the context of `order` tokens."""
    counts = [world.concentration] * world.states
    context = tokens[-world.order :]
    for place in range(world.order, len(tokens)):
        if tokens[place - world.order : place] == context:
            counts[tokens[place]] += 1
    return [logs([count / sum(counts) for count in counts])]


def plain_hops(world: Any, tokens: list[int]) -> Rows:
    """Hop k times to the place after the latest earlier occurrence."""
    last: dict[int, int] = {}
    hop = []
    for place, token in enumerate(tokens):
        hop.append(last[token] + 1 if token in last else -1)
        last[token] = place
    rows = []
    for place in range(len(tokens)):
        for _ in range(world.hops):
            place = hop[place] if place >= 0 else -1
        rows.append(sure(tokens[place] if place >= 0 else world.states, world.outputs))
    return rows


def plain_induction(world: Any, tokens: list[int]) -> Rows:
    return [sure(tokens[tokens.index(tokens[-1]) + 1], world.states)]


def plain_recall(world: Any, tokens: list[int]) -> Rows:
    memory = dict(zip(tokens[: 2 * world.pairs : 2], tokens[1 : 2 * world.pairs : 2]))
    return [sure(memory[key], world.vocab) for key in tokens[2 * world.pairs :]]


def plain_copy(world: Any, tokens: list[int]) -> Rows:
    return [sure(token, world.vocab) for token in tokens[: world.size]]


def plain_needle(world: Any, tokens: list[int]) -> Rows:
    return [sure(tokens[tokens[-1] - world.states], world.vocab)]


def plain_addition(world: Any, tokens: list[int]) -> Rows:
    """School addition: digit pairs from the lowest place, with a carry."""
    carry, rows = 0, []
    for token in tokens:
        total = token // world.base + token % world.base + carry
        carry = total // world.base
        rows.append(sure(total % world.base, world.base))
    return rows


PLAIN: dict[str, Plain] = {
    "markov-chain": plain_chain,
    "in-context-markov": plain_in_context,
    "in-context-ngrams": plain_ngrams,
    "k-hop-induction": plain_hops,
    "induction-task": plain_induction,
    "associative-recall": plain_recall,
    "copy-string": plain_copy,
    "needle-retrieval": plain_needle,
    "addition": plain_addition,
}


def plain_version(name: str, world: Any) -> Plain | None:
    """The plain oracle of a world, if there is one."""
    return plain_automaton if isinstance(world, sl.worlds.Automaton) else PLAIN.get(name)


def worlds() -> dict[str, Any]:
    """Every world with an exact oracle, at its default size."""
    found = {}
    for name in sl.names("worlds"):
        settings = {"source": "mixture"} if name == "image-contrast" else {}
        world = sl.get("worlds", name)(**settings)
        if type(world).oracle is not sl.worlds.World.oracle:
            found[name] = world
    return found


def agree(world: Any, plain: Plain, batch: Any) -> bool:
    """Whether the plain oracle and ours say the same on a batch."""
    rows = torch.tensor([plain(world, tokens) for tokens in batch.inputs.tolist()], dtype=torch.float64)
    return bool(torch.allclose(rows.exp(), world.oracle(batch).exp(), atol=1e-9))


def measure(examples: int = 256, patience: float = 0.4) -> Iterator[dict[str, Any]]:
    """One row per world."""
    torch.set_num_threads(1)
    for name, world in worlds().items():
        batch = world.sample(examples, rng=sl.rng(0))
        few, plain = batch[:16], plain_version(name, world)
        if plain is not None and not agree(world, plain, batch[:4]):
            raise RuntimeError(f"the plain oracle of {name} and ours disagree")

        def ours(world: Any = world, batch: Any = batch) -> int:
            world.oracle(batch)
            return int(batch.inputs.numel())

        def plainly(world: Any = world, few: Any = few, plain: Any = plain) -> int:
            torch.tensor([plain(world, tokens) for tokens in few.inputs.tolist()])
            return int(few.inputs.numel())

        def singly(world: Any = world, few: Any = few) -> int:
            torch.cat([world.oracle(few[row : row + 1]) for row in range(len(few))])
            return int(few.inputs.numel())

        own, other = speed(ours, patience), speed(singly if plain is None else plainly, patience / 2)
        against = "one at a time" if plain is None else "plain Python"
        yield compared(name, own, other, against)


if __name__ == "__main__":
    tell("Speed of the exact oracle of every world.", measure, 256)
