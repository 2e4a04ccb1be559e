"""What the study of constructions computes: errors and sizes of circuits, and what goes wrong as printed."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sandlab.circuits.automata.compiler import METHODS, count_errors
from sandlab.circuits.automata.every_start import count_errors_together
from sandlab.circuits.automata.krohn_rhodes import krohn_rhodes_circuit
from sandlab.circuits.automata.scan import scan_circuit
from sandlab.circuits.sizes import Complexity, complexity
from sandlab.errors import BadInput
from sandlab.models.hooks import patch
from sandlab.random import rng
from sandlab.worlds.automata._running.words import lasting_words
from sandlab.worlds.automata.catalogue import named_machine
from sandlab.worlds.automata.machine import Automaton
from sandlab.worlds.automata.products import random_automaton

__all__ = [
    "DepthJob",
    "NamedJob",
    "RandomJob",
    "StartsJob",
    "check_named",
    "check_random",
    "check_starts",
    "measure_depths",
    "random_machine",
    "starts_jobs",
]


@dataclass(frozen=True)
class RandomJob:
    """Random machines number `first` … `first + count − 1`, each from every start."""

    first: int
    count: int
    length: int
    words: int
    exhaustive: int
    device: str = "cpu"


@dataclass(frozen=True)
class StartsJob:
    """One construction of one named automaton from the starts `first` … `last − 1`.

    All words of up to `exhaustive` letters, fewer where words times states are more than `most`; `words` of `length`.
    """

    name: str
    method: str
    first: int
    last: int
    length: int
    words: int
    exhaustive: int
    most: int
    device: str = "cpu"


@dataclass(frozen=True)
class NamedJob:
    """One named automaton, every construction that applies to it, from a few starts."""

    name: str
    length: int
    words: int
    device: str = "cpu"


@dataclass(frozen=True)
class DepthJob:
    """One construction of one automaton at several lengths."""

    name: str
    method: str
    lengths: tuple[int, ...]


def random_machine(seed: int) -> Automaton:
    """2 to 5 states, 2 or 3 letters, every table equally likely."""
    return random_automaton(2 + seed % 4, 2 + seed // 4 % 2, rng=rng(seed, "automata"))


def words_of(machine: Automaton, length: int, count: int, seed: int) -> Tensor:
    return torch.randint(machine.alphabet, (count, length), generator=rng(seed, "words"))


def long_words(machine: Automaton, length: int, count: int, seed: int) -> Tensor:
    """Uniform words, and a quarter as many that keep away from sinks."""
    lasting = lasting_words(machine, max(1, count // 4), length, rng(seed, "lasting"))
    return torch.cat([words_of(machine, length, count, seed), lasting])


def check_random(config: RandomJob) -> dict[str, Any]:
    """Wrong states of the scan and of Krohn–Rhodes, sizes against their bounds, and two spoiled circuits."""
    rows = [_check_one(seed, config) for seed in range(config.first, config.first + config.count)]
    return {name: [row[name] for row in rows] for name in rows[0]}


def _check_one(seed: int, config: RandomJob) -> dict[str, float]:
    machine = random_machine(seed)
    spoiled = words_of(machine, min(20, config.length), 20, seed)
    groups = (all_words(machine, config.exhaustive), long_words(machine, config.length, config.words, seed))
    starts = range(machine.states)
    scan = complexity(scan_circuit(machine, config.length))
    return {
        "scan_errors": errors_from(machine, "scan", starts, groups, config.device),
        "cascade_errors": errors_from(machine, "krohn-rhodes", starts, groups, config.device),
        "scan_depth_off": abs(scan.depth - max(1, math.ceil(math.log2(config.length)))),
        "scan_norm_off": abs(scan.norm / scan_norm(machine, config.length) - 1),
        **shares_of_bounds(machine, config.length),
        "no_look_back": without_look_back(machine, spoiled),
        "no_anchor": without_anchor(machine, spoiled),
        "printed_rotation": with_printed_rotation(machine, spoiled),
    }


def errors_from(
    machine: Automaton, method: str, starts: Iterable[int], groups: Iterable[Tensor], device: str = "cpu"
) -> int:
    """Wrong states of the construction from all starts; each group of words has circuits of its own length."""
    started = [machine.task(start=start) for start in starts]
    wrong = 0
    for words in groups:
        models = [METHODS[method](each, words.shape[1]).to(device) for each in started]
        wrong += count_errors_together(models, started, words)
    return wrong


def all_words(machine: Automaton, length: int) -> Tensor:
    """Every word of that length: causal circuits that are right on them are right on all shorter ones."""
    return torch.cartesian_prod(*[torch.arange(machine.alphabet)] * length).view(-1, length)


def check_starts(config: StartsJob) -> dict[str, Any]:
    """Wrong states from these starts, how long the words are of which all were tried, and size against bounds."""
    machine = named_machine(config.name)
    longest = config.exhaustive
    while longest > 1 and machine.states * machine.alphabet**longest > config.most:
        longest -= 1
    groups = (all_words(machine, longest), long_words(machine, config.length, config.words, config.first))
    starts = range(config.first, config.last)
    errors = errors_from(machine, config.method, starts, groups, config.device)
    found = {"automaton": config.name, "method": config.method, "starts": len(starts), "errors": errors}
    bounds = shares_of_bounds(machine, config.length) if config.method == "krohn-rhodes" else {}
    return {**found, "all words up to": longest, "words": config.words, "length": config.length, **bounds}


def starts_jobs(name: str, method: str, settings: dict[str, Any], at_once: int = 4) -> list[StartsJob]:
    """Jobs for all starts; circuits of the scan have most of their layers in common and stay together."""
    states = named_machine(name).states
    step = states if method == "scan" else at_once
    return [StartsJob(name, method, first, min(first + step, states), **settings) for first in range(0, states, step)]


def scan_norm(machine: Automaton, length: int) -> float:
    """max{4n + 2, 10 T √(log n + log T)}, T the next power of two."""
    window = 1 << max(1, math.ceil(math.log2(length)))
    states = machine.states
    return max(4 * states + 2, 10 * window * math.sqrt(math.log(states) + math.log(window)))


def cascade_bounds(machine: Automaton, length: int) -> dict[str, float]:
    """The stated bounds of Theorem 11 on depth, channels and largest weight."""
    n, elements = machine.states, len(machine.semigroup())
    weight = max(6 * n * length * math.log(length), 2**n * (elements + 5 * n))
    return {
        "depth": 3 * n**2 * math.log2(n) + 7 * n,
        "width": 2**n * (elements + n + 4) + 1,
        "norm": weight + 6 * max(n, machine.alphabet),
    }


def shares_of_bounds(machine: Automaton, length: int) -> dict[str, float]:
    """Depth, channels and largest weight of the Krohn–Rhodes circuit divided by their bounds."""
    size, bounds = complexity(krohn_rhodes_circuit(machine, length)), cascade_bounds(machine, length)
    return {
        "depth_share": size.depth / bounds["depth"],
        "width_share": size.width / bounds["width"],
        "norm_share": size.norm / bounds["norm"],
    }


def without_look_back(machine: Automaton, words: Tensor) -> float:
    """Share of wrong states when the wiring reads the own position instead of the one before."""
    model = krohn_rhodes_circuit(machine, words.shape[1])
    before = model.config.channels.index("possible states before")
    layers: list[Any] = list(model.layers)
    wiring = [
        place
        for place, layer in enumerate(layers)
        if len(layer.attention.output) and bool((layer.attention.output[..., before] != 0).any())
    ]
    if not wiring:
        return 0.0
    changes = {f"layers.{place}.attention.pattern": _own_position for place in wiring}
    with patch(model, changes):
        return count_errors(model, machine, words) / words.numel()


def _own_position(pattern: Tensor) -> Tensor:
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
    layers: list[Any] = list(model.layers)
    with torch.no_grad():
        for layer in layers:
            key = layer.attention.key[0]
            key[-2:, :2] = key[-2:, :2].T.clone()
    return count_errors(model, machine, words) / words.numel()


def check_named(config: NamedJob) -> dict[str, Any]:
    """Each construction on a named automaton: wrong states and size, or the reason of its refusal."""
    plain = named_machine(config.name)
    starts = sorted({0, plain.start, plain.states // 2, plain.states - 1})
    rows = []
    for method in METHODS:
        length = min(config.length, 24) if method == "sequential" else config.length
        rows.append(_try(plain, method, length, config, starts))
    levels = plain.decomposition.levels
    return {"name": config.name, "states": plain.states, "levels": levels, "solvable": plain.is_solvable, "rows": rows}


def _try(plain: Automaton, method: str, length: int, config: NamedJob, starts: list[int]) -> dict[str, Any]:
    errors, size = 0, None
    try:
        for start in starts:
            machine = plain.task(start=start)
            model = METHODS[method](machine, length).to(config.device)
            errors += count_errors(model, machine, words_of(machine, length, config.words, start))
            size = complexity(model)
    except BadInput as refusal:
        return {"automaton": config.name, "method": method, "applies": False, "why not": str(refusal)}
    return {"automaton": config.name, "method": method, "applies": True, "errors": errors, **_row(size, length)}


def _row(size: Complexity | None, length: int) -> dict[str, Any]:
    assert size is not None
    depth = length if size.length is None else size.depth
    return {
        "length": length,
        "depth": depth,
        "channels": size.width,
        "heads": size.heads,
        "head width": size.head_width,
        "network width": size.mlp_width,
        "largest weight": size.norm,
        "parameters": size.parameters,
    }


def measure_depths(config: DepthJob) -> dict[str, Any]:
    """Depth, widest layer and largest weight at each length."""
    machine = named_machine(config.name)
    sizes = []
    for length in config.lengths:
        size = complexity(METHODS[config.method](machine, length))
        sizes.append((size.depth, size.widest, size.norm))
    depth, widest, norm = np.array(sizes, dtype=float).T
    return {"name": config.name, "method": config.method, "depth": depth, "widest": widest, "norm": norm}
