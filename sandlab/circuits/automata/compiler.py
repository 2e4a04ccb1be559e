"""An automaton in, a model with exact weights out: by a named construction, or by the shallowest that applies."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, overload

import torch
from torch import nn

from sandlab.circuits.automata.atoms import counter_circuit, memory_circuit, sine_counter_circuit
from sandlab.circuits.automata.gridworld import gridworld_circuit
from sandlab.circuits.automata.group_circuits import (
    direct_product_circuit,
    group_circuit,
    semidirect_circuit,
    series_circuit,
)
from sandlab.circuits.automata.krohn_rhodes import krohn_rhodes_circuit
from sandlab.circuits.automata.permutation_reset import permutation_reset_circuit
from sandlab.circuits.automata.scan import scan_circuit
from sandlab.circuits.automata.step_by_step import rnn_circuit, sequential_circuit
from sandlab.circuits.sizes import Complexity, complexity
from sandlab.errors import BadInput, choice, integer
from sandlab.models.automata.theory import TheoryTransformer
from sandlab.models.recurrent import RNN
from sandlab.worlds.automata._running.words import bounds, lasting_words
from sandlab.worlds.automata.machine import Automaton
from sandlab.worlds.automata.reading import read_machine

__all__ = ["METHODS", "MethodReport", "compare_methods", "compile", "verify"]

METHODS: dict[str, Callable[..., TheoryTransformer | RNN]] = {
    "scan": scan_circuit,
    "krohn-rhodes": krohn_rhodes_circuit,
    "gridworld": gridworld_circuit,
    "memory": memory_circuit,
    "modular-counter": counter_circuit,
    "sine-counter": sine_counter_circuit,
    "direct-product": direct_product_circuit,
    "semidirect": semidirect_circuit,
    "solvable-group": series_circuit,
    "group": group_circuit,
    "permutation-reset": permutation_reset_circuit,
    "sequential": sequential_circuit,
    "rnn": rnn_circuit,
}
# What "auto" tries; of two circuits of the same depth it takes the narrower.
SHORTCUTS = ("memory", "modular-counter", "group", "gridworld", "permutation-reset", "krohn-rhodes", "scan")


@dataclass(frozen=True)
class MethodReport:
    """One construction tried on a machine: its size, or why it does not apply."""

    method: str
    applies: bool
    reason: str
    size: Complexity | None = None


@overload
def compile(machine: Automaton | str, length: int | None = None, *, method: Literal["rnn"], **options: str) -> RNN: ...


@overload
def compile(
    machine: Automaton | str, length: int | None = None, method: str = "auto", **options: str
) -> TheoryTransformer: ...


def compile(
    machine: Automaton | str, length: int | None = None, method: str = "auto", **options: str
) -> TheoryTransformer | RNN:
    """A model with exact weights that simulates the automaton on words of up to `length` letters.

    machine  an automaton, or text for one: a name ("S4"), a regular expression ("(abab)*"), a JSON table
    method   "auto" takes the shallowest construction that applies and says why in `model.config.note`; else one of
             `METHODS`: "scan" (any automaton, log₂ T layers), "krohn-rhodes" (solvable ones, constant depth), …
    options  of the construction, for example `padding="constant"` of "scan"

    The model predicts what the machine's world asks for (states, or classes of its observation). It is an ordinary
    model: it can be recorded, saved, trained further, and measured with `complexity`.

    >>> shortcut = compile("S5", length=64)
    """
    world = read_machine(machine) if isinstance(machine, str) else machine
    if not isinstance(world, Automaton):
        raise BadInput(f"only automata can be compiled, got {type(world).__name__}: make one with sl.worlds.Automaton")
    if world.scratchpad:
        raise BadInput(
            "a scratchpad task cannot be compiled: leave out scratchpad, the circuit needs no intermediate states"
        )
    size = bounds(world.length)[1] if length is None else integer("length", length, 1)
    choice("method", method, ("auto", *METHODS))
    if method != "auto":
        return METHODS[method](world, size, **options)
    if options:
        raise BadInput(f"options {sorted(options)} belong to one construction: name the method, not 'auto'")
    return _shallowest(world, size)


def _shallowest(machine: Automaton, length: int) -> TheoryTransformer:
    built: dict[str, TheoryTransformer] = {}
    for method in SHORTCUTS:
        try:
            model = METHODS[method](machine, length)
        except BadInput:
            if method == "scan" and not built:
                raise
            continue
        assert isinstance(model, TheoryTransformer)
        built[method] = model
    sizes = {method: complexity(model) for method, model in built.items()}
    best = min(built, key=lambda method: (sizes[method].depth, sizes[method].widest))
    others = ", ".join(f"{method} {size.depth}" for method, size in sizes.items() if method != best)
    chosen = built[best]
    depth = f"{sizes[best].depth} layer{'s' if sizes[best].depth > 1 else ''}"
    why = f"auto: {best} is the shallowest of what applies, {depth}" + (
        f" (layers of others: {others})" if others else ""
    )
    chosen.config = dataclasses.replace(chosen.config, note=f"{why}{_outlook(machine)}. {chosen.config.note}")
    return chosen


def _outlook(machine: Automaton) -> str:
    """What the machine's groups say about constant depth, when they say no."""
    try:
        solvable = machine.is_solvable
    except BadInput:
        return "; whether constant depth is possible is not known: its semigroup is too large to be decomposed"
    return "" if solvable else "; the machine is not solvable, so no constant depth is known for it"


def compare_methods(machine: Automaton, length: int, methods: tuple[str, ...] | None = None) -> list[MethodReport]:
    """Every construction tried on the machine: how large it is, or why it does not apply."""
    reports = []
    for method in methods or tuple(METHODS):
        try:
            model = METHODS[choice("method", method, METHODS)](machine, length)
        except BadInput as refusal:
            reports.append(MethodReport(method, False, str(refusal)))
            continue
        note = model.config.note if isinstance(model, TheoryTransformer) else f"{method}: one step per letter"
        reports.append(MethodReport(method, True, note, complexity(model)))
    return reports


def verify(
    model: nn.Module, machine: Automaton, *, exhaustive_up_to: int = 20_000, examples: int = 200, rng: torch.Generator
) -> dict[str, int]:
    """Count wrong labels: on all words of the longest length that has few enough, and on random full-length words.

    A causal circuit that is right on all words of a length is right on all shorter ones. Half of the random words are
    uniform, half avoid sinks (`lasting_words`).
    """
    longest = complexity(model).length or bounds(machine.length)[1]
    full = 1
    while machine.alphabet ** (full + 1) <= exhaustive_up_to and full < longest:
        full += 1
    words = torch.cartesian_prod(*[torch.arange(machine.alphabet)] * full).view(-1, full)
    uniform = torch.randint(machine.alphabet, (examples - examples // 2, longest), generator=rng, device=rng.device)
    random = torch.cat([uniform, lasting_words(machine, examples // 2, longest, rng)]).cpu()
    result = {"exhaustive_length": full, "exhaustive_words": len(words), "random_length": longest}
    for name, group in (("exhaustive_errors", words), ("random_errors", random)):
        result[name] = count_errors(model, machine, group)
    return result


def count_errors(model: nn.Module, machine: Automaton, words: torch.Tensor, chunk: int = 256) -> int:
    """Positions at which the model's label differs from the automaton's."""
    device = next(model.parameters()).device
    wrong = 0
    with torch.no_grad():
        for part in words.to(device).split(chunk):
            labels = torch.as_tensor(machine.labels, device=device)[machine.run(part)]
            wrong += int((model(part).argmax(-1) != labels).sum())
    return wrong
