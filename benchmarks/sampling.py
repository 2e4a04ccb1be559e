"""Sampling: tokens per second of every world that benchmarks/data_generation.py does not measure already.

    python benchmarks/sampling.py [--json] [--examples 1024]

"plain Python" draws one token after the other with the standard library, as a first script would; "one at a time" calls
the world for one example after another, where a plain version would be the whole world written twice. CPU seconds on
one thread; a number of a world that is not a sequence counts as a token.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import torch
from automata import plain_simulation
from data_generation import cases, compared, speed, tell
from oracles import worlds

import sandlab as sl

QUICK = {"patience": 0.05}
Row = list[int] | list[float]


def plain_flip_flop(world: Any) -> Row:
    """Instruction and symbol in turn; a read repeats the latest write."""
    write, read = world.probs[0]
    stored, string = 0, []
    for place in range(world.length // 2):
        draw = random.random()
        instruction = 0 if draw < write else 1 if draw < write + read else 2
        if place == 0:
            instruction = 0
        elif place == world.length // 2 - 1:
            instruction = 1
        symbol = stored if instruction == 1 else random.randrange(world.symbols)
        stored = symbol if instruction == 0 else stored
        string += [instruction, symbol + 3]
    return string


def plain_brackets(world: Any) -> Row:
    """Open or close with a coin unless the stack is empty or full."""
    stack: list[int] = []
    word = []
    for _ in range(world.length):
        if not stack or (len(stack) < world.depth and random.random() < world.opening):
            stack.append(random.randrange(world.types))
            word.append(2 * stack[-1])
        else:
            word.append(2 * stack.pop() + 1)
    return word


def plain_stack(world: Any) -> Row:
    """Uniform among the brackets that are legal; the stack is kept beside the word."""
    stack: list[int] = []
    word, stacks = [], []
    for _ in range(world.length):
        legal = list(range(world.types)) if len(stack) < world.depth else []
        letter = random.choice(legal + [world.types + stack[-1]] if stack else legal)
        if letter < world.types:
            stack.append(letter)
        else:
            stack.pop()
        word.append(letter)
        stacks.append(tuple(stack))
    return word


def plain_addition(world: Any) -> Row:
    carry, digits = 0, []
    for _ in range(world.digits):
        total = random.randrange(world.base) + random.randrange(world.base) + carry
        carry = total // world.base
        digits.append(total % world.base)
    return digits


def plain_copy(world: Any) -> Row:
    string = [random.randrange(world.states) for _ in range(world.size)]
    return [*string, world.states, *string[:-1]]


def plain_needle(world: Any) -> Row:
    string = [random.randrange(world.states) for _ in range(world.size)]
    return [*string, world.states + random.randrange(world.size)]


def plain_induction(world: Any) -> Row:
    asked = random.randrange(world.states)
    others = [token for token in range(world.states) if token != asked]
    tokens = [random.choice(others) for _ in range(world.length)]
    tokens[random.randrange(world.length - 2)] = tokens[-1] = asked
    return tokens


def plain_bits(world: Any) -> Row:
    return [random.getrandbits(1) for _ in range(world.length)]


def plain_normal(world: Any) -> Row:
    """A coin for the class, then a normal number around its mean."""
    mean = world.distance if random.random() < 0.5 else 0.0
    return [random.gauss(mean, 1.0)]


PLAIN: dict[str, Callable[[Any], Row]] = {
    "flip-flop": plain_flip_flop,
    "dyck": plain_brackets,
    "dyck-stack": plain_stack,
    "addition": plain_addition,
    "copy-string": plain_copy,
    "needle-retrieval": plain_needle,
    "induction-task": plain_induction,
    "all-zeros": plain_bits,
    "some-zero": plain_bits,
    "knapsack": plain_bits,
    "gaussian-means": plain_normal,
}


def measured_elsewhere() -> set[type]:
    return {type(world) for _, world, _ in cases(64)}


def measure(examples: int = 1024, patience: float = 0.4) -> Iterator[dict[str, Any]]:
    """One row per world."""
    torch.set_num_threads(1)
    random.seed(0)
    elsewhere = measured_elsewhere()
    for name, world in worlds().items():
        if type(world) in elsewhere:
            continue
        rng = sl.rng(0)
        tokens = world.sample(1, rng=rng).inputs.numel()
        plain = PLAIN.get(name)

        def ours(world: Any = world, tokens: int = tokens, rng: Any = rng) -> int:
            return len(world.sample(examples, rng=rng)) * tokens

        def plainly(world: Any = world, tokens: int = tokens, plain: Any = plain) -> int:
            return len(torch.tensor([plain(world) for _ in range(64)])) * tokens

        def letters(world: Any = world) -> int:
            return plain_simulation(world, 16, world.length)

        def singly(world: Any = world, tokens: int = tokens, rng: Any = rng) -> int:
            return sum(len(world.sample(1, rng=rng)) for _ in range(16)) * tokens

        simple = isinstance(world, sl.worlds.Automaton) and world.legal is None
        slow = plainly if plain else letters if simple else singly
        own, other = speed(ours, patience), speed(slow, patience / 2)
        against = "one at a time" if slow is singly else "plain Python"
        yield compared(name, own, other, against)


if __name__ == "__main__":
    tell("Speed of sampling the remaining worlds.", measure, 1024)
