"""What the study of constructions computes: errors and sizes of circuits, and what goes wrong as printed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor

from sandlab.circuits.automata.compiler import METHODS, count_errors
from sandlab.circuits.automata.every_start import count_errors_together
from sandlab.circuits.automata.krohn_rhodes import krohn_rhodes_circuit
from sandlab.circuits.automata.scan import scan_circuit
from sandlab.circuits.sizes import Complexity, complexity
from sandlab.errors import BadInput
from sandlab.models.automata.theory import TheoryTransformer
from sandlab.models.hooks import patch
from sandlab.random import rng
from sandlab.worlds.automata._running.words import lasting_words
from sandlab.worlds.automata.catalogue import named_machine
from sandlab.worlds.automata.machine import Automaton
from sandlab.worlds.automata.products import random_automaton


@dataclass(frozen=True)
class WordSets:
    """All words of up to `exhaustive` letters (fewer where words times states exceed `most`); `words` of `length`."""

    length: int
    words: int
    exhaustive: int
    most: int


@dataclass(frozen=True)
class RandomJob:
    """Random machine number `seed`, from every start."""

    seed: int
    tests: WordSets
    device: str = "cpu"


@dataclass(frozen=True)
class StartsJob:
    """One construction of one named automaton from the starts `first` … `last − 1`."""

    name: str
    method: str
    first: int
    last: int
    tests: WordSets
    device: str = "cpu"


@dataclass(frozen=True)
class NamedJob:
    """One construction of one named automaton from a few starts, on `words` of `length` (sequential: at most 24)."""

    name: str
    method: str
    length: int
    words: int
    device: str = "cpu"


@dataclass(frozen=True)
class SizeJob:
    """One construction of one automaton at several lengths."""

    name: str
    method: str
    lengths: tuple[int, ...]


@dataclass(frozen=True)
class Shares:
    """Depth, channels and largest weight of the Krohn–Rhodes circuit divided by their bounds."""

    depth: float
    width: float
    norm: float


@dataclass(frozen=True)
class RandomCheck:
    """Wrong states of both circuits of a random machine, sizes over bounds, shares of wrong states as printed."""

    scan_errors: int
    cascade_errors: int
    shares: Shares
    no_look_back: float
    no_anchor: float
    printed_rotation: float


@dataclass(frozen=True)
class StartsCheck:
    """Wrong states from some starts; all words of up to `exhaustive` letters were tried."""

    starts: int
    errors: int
    exhaustive: int
    shares: Shares | None = None


@dataclass(frozen=True)
class NamedCheck:
    """Wrong states of a construction on words of `length`, and its size, or why it does not apply."""

    length: int
    errors: int = 0
    size: Complexity | None = None
    refusal: str = ""


def check_random(job: RandomJob) -> RandomCheck:
    """Wrong states of the scan and of Krohn–Rhodes, sizes against their bounds, and three circuits as printed."""
    # 2 to 5 states, 2 or 3 letters, every table equally likely.
    machine = random_automaton(2 + job.seed % 4, 2 + job.seed // 4 % 2, rng=rng(job.seed, "automata"))
    tests, starts, length = job.tests, range(machine.states), job.tests.length
    groups = (all_words(machine, tests.exhaustive), long_words(machine, length, tests.words, job.seed))
    few = words_of(machine, min(20, length), 20, job.seed)
    return RandomCheck(
        scan_errors=errors_from(machine, "scan", starts, groups, job.device),
        cascade_errors=errors_from(machine, "krohn-rhodes", starts, groups, job.device),
        shares=bound_shares(machine, length),
        no_look_back=without_look_back(machine, few),
        no_anchor=without_anchor(machine, few),
        printed_rotation=with_printed_rotation(machine, few),
    )


def check_starts(job: StartsJob) -> StartsCheck:
    """Wrong states from these starts, and size against bounds."""
    machine, tests, starts = named_machine(job.name), job.tests, range(job.first, job.last)
    longest = tests.exhaustive
    while longest > 1 and machine.states * machine.alphabet**longest > tests.most:
        longest -= 1
    groups = (all_words(machine, longest), long_words(machine, tests.length, tests.words, job.first))
    errors = errors_from(machine, job.method, starts, groups, job.device)
    shares = bound_shares(machine, tests.length) if job.method == "krohn-rhodes" else None
    return StartsCheck(len(starts), errors, longest, shares)


def check_named(job: NamedJob) -> NamedCheck:
    """The construction from a few starts: wrong states and size, or the reason of its refusal."""
    plain = named_machine(job.name)
    length, errors = min(job.length, 24) if job.method == "sequential" else job.length, 0
    try:
        for start in sorted({0, plain.start, plain.states // 2, plain.states - 1}):
            machine = plain.task(start=start)
            model = METHODS[job.method](machine, length).to(job.device)
            errors += count_errors(model, machine, words_of(machine, length, job.words, start))
    except BadInput as refusal:
        return NamedCheck(length, refusal=str(refusal))
    return NamedCheck(length, errors, complexity(model))


def measure_sizes(job: SizeJob) -> list[Complexity]:
    """The size of the circuit at each length."""
    return [complexity(METHODS[job.method](named_machine(job.name), length)) for length in job.lengths]


def starts_jobs(name: str, method: str, tests: WordSets, device: str = "cpu", at_once: int = 4) -> list[StartsJob]:
    """Jobs for all starts; circuits of the scan have most of their layers in common and stay together."""
    states = named_machine(name).states
    step = states if method == "scan" else at_once
    ranges = [(first, min(first + step, states)) for first in range(0, states, step)]
    return [StartsJob(name, method, first, last, tests, device) for first, last in ranges]


def words_of(machine: Automaton, length: int, count: int, seed: int) -> Tensor:
    return torch.randint(machine.alphabet, (count, length), generator=rng(seed, "words"))


def long_words(machine: Automaton, length: int, count: int, seed: int) -> Tensor:
    """Uniform words, and a quarter as many that avoid sinks."""
    lasting = lasting_words(machine, max(1, count // 4), length, rng(seed, "lasting"))
    return torch.cat([words_of(machine, length, count, seed), lasting])


def all_words(machine: Automaton, length: int) -> Tensor:
    """Every word of that length: causal circuits that are right on them are right on all shorter ones."""
    return torch.cartesian_prod(*[torch.arange(machine.alphabet)] * length).view(-1, length)


def errors_from(
    machine: Automaton, method: str, starts: Iterable[int], groups: Sequence[Tensor], device: str = "cpu"
) -> int:
    """Wrong states of the construction from all starts; each group of words has circuits of its length."""
    started = [machine.task(start=start) for start in starts]
    wrong = 0
    for words in groups:
        models = [cast(TheoryTransformer, METHODS[method](each, words.shape[1]).to(device)) for each in started]
        wrong += count_errors_together(models, started, words)
    return wrong


def bound_shares(machine: Automaton, length: int) -> Shares:
    """Depth, channels and largest weight of the Krohn–Rhodes circuit over the bounds of Theorem 11."""
    size, n, elements = complexity(krohn_rhodes_circuit(machine, length)), machine.states, len(machine.semigroup())
    weight = max(6 * n * length * math.log(length), 2**n * (elements + 5 * n))
    return Shares(
        depth=size.depth / (3 * n**2 * math.log2(n) + 7 * n),
        width=size.width / (2**n * (elements + n + 4) + 1),
        norm=size.norm / (weight + 6 * max(n, machine.alphabet)),
    )


def without_look_back(machine: Automaton, words: Tensor) -> float:
    """Share of wrong states when the wiring reads its own position instead of the previous one."""
    model = krohn_rhodes_circuit(machine, words.shape[1])
    before = model.config.channels.index("possible states before")
    outputs = [layer.attention.output for layer in model.layers]
    wiring = [index for index, each in enumerate(outputs) if len(each) and bool((each[..., before] != 0).any())]
    if not wiring:
        return 0.0
    with patch(model, {f"layers.{index}.attention.pattern": _diagonal for index in wiring}):
        return count_errors(model, machine, words) / words.numel()


def _diagonal(pattern: Tensor) -> Tensor:
    return torch.eye(pattern.shape[-1], dtype=pattern.dtype, device=pattern.device).expand_as(pattern)


def without_anchor(machine: Automaton, words: Tensor) -> float:
    """Share of wrong states when the anchor is no reset, so that "no reset yet" finds some other position."""
    model = krohn_rhodes_circuit(machine, words.shape[1])
    with torch.no_grad():
        model.anchors[0, model.config.channels.index("reset")] = 0
    return count_errors(model, machine, words) / words.numel()


def with_printed_rotation(machine: Automaton, words: Tensor) -> float:
    """Share of wrong states of the scan when keys are turned the other way."""
    model = scan_circuit(machine, words.shape[1])
    with torch.no_grad():
        for layer in model.layers:
            key = layer.attention.key[0]
            key[-2:, :2] = key[-2:, :2].T.clone()
    return count_errors(model, machine, words) / words.numel()
