"""Automata made of automata: direct products, cascades, wreath products, letters that permute or reset."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Unpack

import numpy as np
import torch
from jaxtyping import Int

from sandlab.errors import BadInput, integer, require
from sandlab.worlds.automata._options import MachineOptions, TaskOptions
from sandlab.worlds.automata.machine import Automaton, as_table

__all__ = [
    "canonical",
    "cascade_product",
    "direct_product",
    "from_generators",
    "permutation_reset",
    "random_automaton",
    "wreath_product",
]


def direct_product(*machines: Automaton, idle: bool = True, **options: Unpack[TaskOptions]) -> Automaton:
    """Machines that run in parallel, each with its own letter at every step.

    States and letters are tuples, the last one fastest. With `idle` each alphabet first gets a letter that does
    nothing (number |Σ_i|); then the monoid of the product is the product of the monoids.
    """
    require(len(machines) > 0, "machines", machines, "at least one automaton")
    tables = [np.column_stack([m.table, np.arange(m.states)]) if idle else m.table for m in machines]
    sizes = [table.shape[0] for table in tables]
    states = np.stack(np.unravel_index(np.arange(np.prod(sizes)), sizes), -1)
    letters = list(itertools.product(*(range(table.shape[1]) for table in tables)))
    moved = [
        np.stack([table[states[:, part], letter[part]] for part, table in enumerate(tables)], 0) for letter in letters
    ]
    table = np.stack([np.ravel_multi_index(tuple(row), sizes) for row in moved], 1)
    start = int(np.ravel_multi_index(tuple(m.start for m in machines), sizes))
    names = [(m.letters + ["⊥"] if idle else m.letters) for m in machines]
    options.setdefault("letter_names", tuple(",".join(name) for name in itertools.product(*names)))
    options.setdefault(
        "state_names", tuple(",".join(n) for n in itertools.product(*(m.names_of_states for m in machines)))
    )
    return Automaton(transitions=as_table(table), start=start, **options)


def cascade_product(
    machines: Sequence[Automaton],
    feeds: Sequence[Callable[[tuple[int, ...], int], int]],
    alphabet: int | None = None,
    **options: Unpack[TaskOptions],
) -> Automaton:
    """Machines in series: machine i reads `feeds[i]((q₁, …, q_{i−1}), σ)`, the states as they were before the step.

    All machines then move at once. The alphabet is that of the first machine unless given. Def. 6 of Liu et al. 2023.
    """
    require(len(machines) == len(feeds), "feeds", feeds, f"one function for each of the {len(machines)} machines")
    letters = machines[0].alphabet if alphabet is None else integer("alphabet", alphabet, 1)
    sizes = [machine.states for machine in machines]
    table = np.empty((int(np.prod(sizes)), letters), dtype=np.int64)
    for number, state in enumerate(np.ndindex(*sizes)):
        for letter in range(letters):
            moved = []
            for part, (machine, feed) in enumerate(zip(machines, feeds)):
                fed = feed(state[:part], letter)
                if not 0 <= fed < machine.alphabet:
                    raise BadInput(
                        f"feeds[{part}] gave letter {fed} for states {state[:part]} and letter {letter}: "
                        f"machine {part} has letters 0 to {machine.alphabet - 1}"
                    )
                moved.append(machine.transitions[state[part]][fed])
            table[number, letter] = np.ravel_multi_index(moved, sizes)
    start = int(np.ravel_multi_index([machine.start for machine in machines], sizes))
    return Automaton(transitions=as_table(table), start=start, **options)


def wreath_product(inner: Automaton, outer: Automaton, **options: Unpack[TaskOptions]) -> Automaton:
    """The universal cascade: `outer` runs alone, `inner` reads any function of outer's state.

    Letters are pairs (f, σ) with f: Q_outer → Σ_inner, numbered f-major; |Σ_inner|^|Q_outer| · |Σ_outer| of them.
    State (q_outer, q_inner), the inner one fastest.
    """
    functions = list(itertools.product(range(inner.alphabet), repeat=outer.states))
    if len(functions) * outer.alphabet > 100_000:
        raise BadInput(f"the wreath product has {len(functions) * outer.alphabet} letters: take smaller machines")
    states = [(above, below) for above in range(outer.states) for below in range(inner.states)]
    table = [
        [
            outer.transitions[above][letter] * inner.states + inner.transitions[below][function[above]]
            for function in functions
            for letter in range(outer.alphabet)
        ]
        for above, below in states
    ]
    return Automaton(transitions=as_table(table), start=outer.start * inner.states + inner.start, **options)


def from_generators(generators: Sequence[Sequence[int]], **options: Unpack[MachineOptions]) -> Automaton:
    """Permutations of points as letters: the states are the points that are moved."""
    rows = np.array(generators)
    if rows.ndim != 2 or not (np.sort(rows, 1) == np.arange(rows.shape[-1])).all():
        raise BadInput(f"generators must be permutations of 0 … n−1, got {generators!r}: try [[1, 2, 0], [1, 0, 2]]")
    return Automaton(transitions=as_table(rows.T), **options)


def canonical(products: Int[np.ndarray, "element element"], **options: Unpack[MachineOptions]) -> Automaton:
    """A group acting on itself: states and letters are its elements, δ(g, h) = h·g, so q_t = σ_t ⋯ σ_1.

    `products[a, b]` is a·b and element 0 the identity.
    """
    return Automaton(transitions=as_table(np.asarray(products).T), **options)


def permutation_reset(
    permutations: Sequence[Sequence[int]], resets: Sequence[int], **options: Unpack[MachineOptions]
) -> Automaton:
    """Every letter is a bijection or a constant: first the permutations, then one letter "go to q" per reset."""
    rows = np.array(permutations, dtype=np.int64)
    states = rows.shape[1]
    constants = np.repeat(np.array(resets, dtype=np.int64)[:, None], states, 1)
    from_generators(permutations)
    return Automaton(transitions=as_table(np.concatenate([rows, constants]).T), **options)


def random_automaton(
    states: int, letters: int, *, rng: torch.Generator, **options: Unpack[MachineOptions]
) -> Automaton:
    """One of the |Q|^(|Q||Σ|) tables, all equally likely."""
    integer("states", states, 1)
    integer("letters", letters, 1)
    table = torch.randint(states, (states, letters), generator=rng, device=rng.device)
    return Automaton(transitions=as_table(table.cpu()), **options)
