"""Regular languages as automata: (abab)*, and any regular expression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Unpack

import numpy as np

from sandlab.errors import BadInput, shown
from sandlab.registry import register
from sandlab.worlds.automata._options import TaskOptions
from sandlab.worlds.automata.expressions import Expression, parse
from sandlab.worlds.automata.family import Family, Observations, Table
from sandlab.worlds.automata.machine import Automaton, as_table

__all__ = ["Abab", "from_regex", "minimal"]

MOST_STATES, MOST_WORK = 5000, 5_000_000


@register("worlds")
@dataclass(frozen=True, kw_only=True)
class Abab(Family):
    """The language (abab)*: state 3 accepts and starts, a b a b leads through 0, 1, 2 back to 3, anything else to 4.

    A share `pattern_share` of the words is abab…, the others have independent uniform letters; with share 1 the
    position alone tells the answer. label  "state", or "accept": whether the word so far is in the language.
    """

    start: int = 3
    pattern: tuple[int, ...] | None = (0, 1)
    pattern_share: float = 0.5
    accepting: tuple[int, ...] | None = (3,)
    observations: ClassVar[Observations] = {"accept": lambda self: [0, 0, 0, 1, 0]}

    def build(self) -> Table:
        return [[4, 1], [2, 4], [4, 3], [0, 4], [4, 4]]

    def default_letters(self) -> list[str]:
        return ["a", "b"]


def from_regex(expression: str, alphabet: str | None = None, **options: Unpack[TaskOptions]) -> Automaton:
    """The minimal automaton of a regular expression: `from_regex("(abab)*")`.

    Understood: letters, ( ), |, *, +, ?, {m}, {m,n}, [abc], [a-z], . (any letter) and \\ before a special character.
    Unless given, the alphabet is the letters of the expression. Positions of the expression are the states of
    a nondeterministic automaton (Glushkov 1961), sets of them those of a deterministic one, which is then minimised.
    """
    if not isinstance(expression, str):
        raise BadInput(f"a regular expression is a text, got {shown(expression)}")
    tree = parse(expression, alphabet)
    letters = sorted(set(alphabet)) if alphabet else sorted(set(tree.symbols))
    if not letters:
        raise BadInput(f"the regular expression {expression!r} mentions no letter: give the alphabet")
    table, final = _determinise(tree, letters, expression)
    table, final, start = minimal(table, final, 0)
    return Automaton(
        transitions=as_table(table),
        start=start,
        accepting=tuple(np.flatnonzero(final).tolist()),
        letter_names=tuple(letters),
        **options,
    )


def _determinise(tree: Expression, letters: list[str], text: str) -> tuple[np.ndarray, np.ndarray]:
    """Subset construction over the positions of the expression; −1 stands for "before the first letter"."""
    begin = frozenset([-1])
    number = {begin: 0}
    queue, rows, work = [begin], [], 0
    for subset in queue:
        work += len(letters) + sum(len(tree.follow[position]) for position in subset if position >= 0)
        if work > MOST_WORK:
            raise BadInput(f"the automaton of {shown(text)} takes too many steps to build: take a smaller expression")
        following = set().union(*(tree.first if position < 0 else tree.follow[position] for position in subset))
        row = []
        by_letter: dict[str, list[int]] = {}
        for position in following:
            by_letter.setdefault(tree.symbols[position], []).append(position)
        for letter in letters:
            target = frozenset(by_letter.get(letter, ()))
            if target not in number:
                number[target] = len(number)
                queue.append(target)
            row.append(number[target])
        rows.append(row)
        if len(number) > MOST_STATES:
            raise BadInput(f"the automaton of {shown(text)} has more than {MOST_STATES} states: take a smaller one")
    final = [any(tree.nullable if position < 0 else position in tree.last for position in subset) for subset in queue]
    return np.array(rows), np.array(final)


def minimal(table: np.ndarray, final: np.ndarray, start: int) -> tuple[np.ndarray, np.ndarray, int]:
    """Merge states that no word tells apart (Moore 1956): refine the classes until successors' classes agree.

    States are numbered in the order in which a breadth-first search from the start meets them.
    """
    classes: np.ndarray = final.astype(np.int64)
    work = 0
    while True:
        work += table.size
        if work > 2 * MOST_WORK:
            raise BadInput("the automaton takes too many steps to be made small: take a smaller expression")
        signature = np.column_stack([classes, classes[table]])
        refined = np.unique(signature, axis=0, return_inverse=True)[1].reshape(-1)
        if refined.max() == classes.max():
            break
        classes = refined
    queue, number = [int(classes[start])], {int(classes[start]): 0}
    one_of = {int(label): state for state, label in enumerate(classes)}
    rows = []
    for label in queue:
        successors = [int(classes[state]) for state in table[one_of[label]]]
        for successor in successors:
            if successor not in number:
                number[successor] = len(number)
                queue.append(successor)
        rows.append([number[successor] for successor in successors])
    return np.array(rows), np.array([final[one_of[label]] for label in queue]), 0
