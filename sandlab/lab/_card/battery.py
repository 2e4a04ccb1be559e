"""The battery: what every architecture is trained and tested on. A change of any number makes a new battery.

Each task is one world with exact truth and some tests: the same world, its tails, longer or deeper words, which the
model never saw. A *gap* is the loss above that of the best possible prediction, in nats; an *error* is the share of
wrong answers. Scores run from 0 (guessing by frequency) to 1 (the optimum).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from sandlab.lab._card.worlds import SignChain, TokenRegression
from sandlab.learning._engine.evaluation import evaluate_batch
from sandlab.learning.experiment import Snapshot, Training
from sandlab.learning.objectives import CrossEntropy
from sandlab.worlds.automata.counters import Cyclic
from sandlab.worlds.automata.rotations import Dihedral, SymmetricGroup
from sandlab.worlds.base import World
from sandlab.worlds.dyck.language import Dyck
from sandlab.worlds.expressivity.communication import Majority
from sandlab.worlds.expressivity.program_tasks import ProgramTask
from sandlab.worlds.flip_flop.language import FlipFlop
from sandlab.worlds.knowledge.facts import FactRecall
from sandlab.worlds.markov.chain import InContextMarkov
from sandlab.worlds.recall import AssociativeRecall, CopyString

__all__ = ["BATTERY", "EXAMPLES", "CardProbe", "CardTest", "Task", "tasks"]

BATTERY = 2
LONGER = (2, 4)
EXAMPLES = 512
"""Of each test."""


@dataclass(frozen=True)
class CardTest:
    """What is measured: "gap" (nats above the optimum) or "error" (share of wrong answers), on examples of a world."""

    label: str
    world: World
    measure: str = "error"


@dataclass(frozen=True)
class Task:
    """A world to train on, how, the tests, and the longest input among them."""

    name: str
    asks: str
    world: World
    tests: tuple[CardTest, ...]
    training: Training

    @property
    def longest(self) -> int:
        return max(_length(each) for each in (self.world, *(test.world for test in self.tests)))


@dataclass(frozen=True)
class CardProbe:
    """Loss above the optimum and share of wrong answers on every test."""

    tests: tuple[CardTest, ...]

    def __call__(self, now: Snapshot) -> dict[str, object]:
        found: dict[str, object] = {}
        for test in self.tests:
            batch = test.world.sample(EXAMPLES, rng=now.rng(5, test.label))
            measured = evaluate_batch(now.model, batch, CrossEntropy())
            found[f"{test.label}: gap"] = measured["loss"] - test.world.optimal_loss(batch)
            found[f"{test.label}: error"] = 1 - measured["accuracy"]
        return found


def tasks(size: str) -> list[Task]:
    """The battery, the most telling first: "quick" for two cores and ten minutes, "full" for a GPU."""
    full = size == "full"
    length, steps = (64, 1600) if full else (32, 400)
    return list(_tasks(length, training(steps), full))


def training(steps: int) -> Training:
    """The same for every task and every model; a diverging one does not end the card."""
    return Training(
        steps,
        batch_size=32,
        lr=3e-3,
        schedule="cosine",
        warmup=steps // 20,
        clip=1.0,
        evals=20,
        eval_examples=256,
        nan="continue",
    )


def _tasks(length: int, how: Training, full: bool) -> Iterator[Task]:
    markov = InContextMarkov(states=3, order=1, length=length)
    yield Task(
        "in-context Markov",
        "counts transitions in its context",
        markov,
        (CardTest("as trained", markov, "gap"), *_longer(markov, "gap")),
        how,
    )
    pairs = 16 if full else 8
    recall = AssociativeRecall(keys=4 * pairs, values=16, pairs=pairs, queries=4)
    numbers = (CardTest(f"{n} pairs", replace(recall, pairs=n)) for n in (pairs // 2, pairs, 2 * pairs, 4 * pairs))
    yield Task("associative recall", "looks up what followed a key", recall, tuple(numbers), how)
    flip = FlipFlop.ignoring(0.8, length=length)
    tails = [("sparse tail", 0.98), ("dense tail", 0.1)]
    yield Task(
        "flip-flop",
        "remembers one bit through distractors",
        flip,
        (CardTest("as trained", flip), *(CardTest(n, FlipFlop.ignoring(p, length=length)) for n, p in tails)),
        how,
    )
    for name, asks, machine in _machines(length):
        yield Task(name, asks, machine, (CardTest("as trained", machine), *_longer(machine)), how)
    dyck = Dyck(types=2, depth=4, length=length - 4)
    deeper = CardTest("depth 6", replace(dyck, depth=6), "gap")
    yield Task(
        "Dyck brackets",
        "closes the bracket that was opened last",
        dyck,
        (CardTest("as trained", dyck, "gap"), deeper, *_longer(dyck, "gap")),
        how,
    )
    copy = CopyString(states=8, size=length // 4)
    yield Task("copying", "repeats a string", copy, (CardTest("as trained", copy), *_longer(copy, size="size")), how)
    ngram = InContextMarkov(states=2, order=2, length=length)
    yield Task(
        "in-context trigrams",
        "counts what followed each pair of letters",
        ngram,
        (CardTest("as trained", ngram, "gap"), *_longer(ngram, "gap")),
        how,
    )
    majority = Majority(length=length)
    yield Task("majority", "counts", majority, (CardTest("as trained", majority), *_longer(majority)), how)
    count = ProgramTask("count", longest=length // 4, pool=length)
    yield Task(
        "counting up",
        "writes a, a+1, … b",
        count,
        (CardTest("as trained", count), *_longer_count(count)),
        how,
    )
    regression = TokenRegression(dimension=4 if full else 3, pairs=length // 4)
    yield Task(
        "in-context regression",
        "finds the weights of a linear map",
        regression,
        (CardTest("as trained", regression, "gap"), *_longer(regression, "gap", "pairs")),
        how,
    )
    lego = SignChain(length=length // 8, variables=length)
    yield Task("LEGO", "follows a chain of assignments", lego, (CardTest("as trained", lego), *_longer(lego)), how)
    facts = FactRecall(subjects=64 if full else 32, relations=32 if full else 16, answers=8, noise=16, length=8)
    yield Task("facts", "stores facts in its weights", facts, (CardTest("as trained", facts),), how)


def _machines(length: int) -> Iterator[tuple[str, str, World]]:
    yield "parity", "keeps one bit that every letter may flip", Cyclic(length=length, size=2)
    yield "D6", "follows a solvable group of 12 states", Dihedral(length=length, positions=6)
    yield "S5", "follows a group that is not solvable", SymmetricGroup(length=length, points=5, letters_used=4)


def _longer(world: Any, measure: str = "error", size: str = "length") -> list[CardTest]:
    """The same world with inputs of twice and four times the length, by the field that sets it."""
    return [CardTest(f"× {n} long", replace(world, **{size: n * getattr(world, size)}), measure) for n in LONGER]


def _longer_count(world: ProgramTask) -> list[CardTest]:
    """Numbers to write that are up to two and four times as many, and more than half of that."""
    sizes = [(n, n * world.longest) for n in LONGER]
    return [CardTest(f"× {n} long", replace(world, shortest=most // 2 + 1, longest=most)) for n, most in sizes]


def _length(world: World) -> int:
    from sandlab.random import rng

    return int(world.sample(1, rng=rng(0)).inputs.shape[1])
