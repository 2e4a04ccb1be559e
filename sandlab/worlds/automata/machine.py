"""The automaton as a world: letters in, states out, and the options that the experiments of the field vary."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sandlab.errors import BadInput, choice, integer, nearest, number, require
from sandlab.registry import register
from sandlab.worlds.automata._running.machines import Runner
from sandlab.worlds.automata._running.words import bounds, draw_words
from sandlab.worlds.automata.algebra.holonomy import Holonomy, holonomy
from sandlab.worlds.automata.algebra.semigroups import LARGEST, Semigroup, enumerate_semigroup
from sandlab.worlds.base import Batch, World

__all__ = ["Automaton", "as_table"]

DRAWS = ("probs", "legal", "pattern", "count")
"""Options that say how letters are drawn; only `probs` and `pattern` go together."""


@register("worlds")
@dataclass(frozen=True)
class Automaton(World):
    """A finite automaton reads random letters; at each position its state is predicted.

    q_t = δ(q_{t−1}, σ_t) with q_0 = start. The semiautomaton (Q, Σ, δ) is a table; one table serves every experiment
    (Liu, Ash, Goel, Krishnamurthy & Zhang 2023):

    - transitions    transitions[state][letter] = next state; every state needs one entry per letter
    - start          q_0
    - length         letters per word; (low, high) draws each word's length uniformly and masks the rest
    - probs          probability of each letter (default: uniform)
    - legal          legal[state][letter]: letters are drawn uniformly among those legal in the current state
    - pattern        letters that are repeated instead of random ones, in a share `pattern_share` of the words
    - count          number of letters 1 in each word, at uniformly random positions
    - observation    observation[state] = class that is predicted instead of the state
    - reveal         each label counts in the loss with this probability, drawn independently for every sample
    - scratchpad     inputs are σ₁ q₁ σ₂ q₂ … σ_T (state tokens come after the letters' tokens); labels at letters
    - accepting      the states that accept, when the automaton stands for a language
    - letter_names, state_names    how letters and states are written
    """

    transitions: Sequence[Sequence[int]] = ((0, 1), (1, 0))
    start: int = 0
    length: int | tuple[int, int] = 100
    probs: tuple[float, ...] | None = None
    legal: tuple[tuple[bool, ...], ...] | None = None
    pattern: tuple[int, ...] | None = None
    pattern_share: float = 1.0
    count: int | None = None
    observation: tuple[int, ...] | None = None
    reveal: float = 1.0
    scratchpad: bool = False
    accepting: tuple[int, ...] | None = None
    letter_names: tuple[str, ...] = ()
    state_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self._set("transitions", as_table(self.transitions))
        for name in ("probs", "pattern", "observation", "accepting", "letter_names", "state_names"):
            if getattr(self, name) is not None:
                self._set(name, tuple(getattr(self, name)))
        if self.legal is not None:
            self._set("legal", tuple(tuple(bool(entry) for entry in row) for row in self.legal))
        if not isinstance(self.length, int):
            self._set("length", tuple(self.length))
        self._check()

    # ------------------------------------------------------------------ the table

    @property
    def states(self) -> int:
        """|Q|."""
        return len(self.transitions)

    @property
    def alphabet(self) -> int:
        """|Σ|."""
        return len(self.transitions[0])

    @cached_property
    def table(self) -> Int[np.ndarray, "state letter"]:
        """The transitions as an array."""
        return np.array(self.transitions, dtype=np.int64)

    @cached_property
    def maps(self) -> Int[np.ndarray, "letter state"]:
        """maps[σ, q] = δ(q, σ)."""
        return np.ascontiguousarray(self.table.T)

    def matrices(self) -> Float[Tensor, "letter state state"]:
        """δ(·, σ) as matrices with one-hot columns: e_{q_t} = δ(·, σ_t) e_{q_{t−1}}."""
        return torch.nn.functional.one_hot(torch.as_tensor(self.maps), self.states).double().mT

    def semigroup(self, limit: int = LARGEST) -> Semigroup:
        """The transformation semigroup T(A); more than `limit` elements are refused."""
        return enumerate_semigroup(self.maps, limit)

    @cached_property
    def decomposition(self) -> Holonomy:
        """Levels that permute or reset, Krohn–Rhodes in its holonomy form."""
        return holonomy(self.maps)

    @property
    def is_solvable(self) -> bool:
        """Every group inside the semigroup is solvable: then a circuit of constant depth exists."""
        return self.decomposition.solvable

    @cached_property
    def runner(self) -> Runner:
        return Runner(self.table)

    def run(
        self, words: Int[Tensor, "*example time"] | Sequence[int | str], start: int | None = None
    ) -> Int[Tensor, "*example time"]:
        """States after each letter, for one word (tensor, numbers or letter names) or for many (tensor)."""
        first = self.start if start is None else self._state("start", start)
        tokens = words if isinstance(words, Tensor) else self.read_text(words)
        if tokens.numel():
            self._known_letters(int(tokens.min()), int(tokens.max()))
        if tokens.ndim == 1:
            return self.runner.run(tokens.unsqueeze(0), first)[0]
        return self.runner.run(tokens, first)

    def read_text(self, text: Sequence[int | str]) -> Tensor:
        """Letter numbers of a word given by names, for example "abba"; numbers pass through."""
        numbers = {name: letter for letter, name in enumerate(self.letters)}
        result: list[int] = []
        single = all(len(name) == 1 for name in numbers)
        for symbol in text.split() if isinstance(text, str) and not single else text:
            if isinstance(symbol, str) and symbol not in numbers:
                known = ", ".join(numbers)
                raise BadInput(
                    f"unknown letter {symbol!r}: the alphabet is {known}. {nearest(symbol, numbers)}".strip()
                )
            result.append(numbers[symbol] if isinstance(symbol, str) else symbol)
        return torch.tensor(result, dtype=torch.long)

    def task(self, **changes: Any) -> Self:
        """The same machine with other options: `machine.task(length=40, reveal=0.1)`."""
        return dataclasses.replace(self, **changes)

    def observe(self, observation: Callable[[int], int] | Sequence[int]) -> Self:
        """Predict a function of the state instead of the state."""
        given = [observation(state) for state in range(self.states)] if callable(observation) else list(observation)
        return self.task(observation=tuple(int(label) for label in given))

    # ------------------------------------------------------------------ the world

    @property
    def vocab(self) -> int:
        return self.alphabet + (self.states if self.scratchpad else 0)

    @property
    def outputs(self) -> int:
        return int(self.labels.max()) + 1

    @property
    def letters(self) -> list[str]:
        names = list(self.letter_names) or self.default_letters()
        return names + ([f"[{name}]" for name in self.names_of_states] if self.scratchpad else [])

    @property
    def names_of_states(self) -> list[str]:
        return list(self.state_names) or self.default_states()

    def default_letters(self) -> list[str]:
        """Letter names when none are given."""
        return [str(letter) for letter in range(self.alphabet)]

    def default_states(self) -> list[str]:
        """State names when none are given."""
        return [str(state) for state in range(self.states)]

    @cached_property
    def labels(self) -> Int[np.ndarray, "state"]:
        """The class that is predicted in each state."""
        return self.default_labels() if self.observation is None else np.array(self.observation)

    def default_labels(self) -> Int[np.ndarray, "state"]:
        """The predicted classes when no observation is given: the states themselves."""
        return np.arange(self.states)

    @property
    def sampling_probs(self) -> tuple[float, ...] | None:
        """Probability of each letter when none of the other options decides; None is uniform."""
        return self.probs

    def draw(self, n: int, rng: torch.Generator) -> tuple[Int[Tensor, "example time"], Int[Tensor, "example time"]]:
        """Words by the options above, and the states after each letter."""
        return draw_words(self, n, rng)

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self._check_count(n)
        words, states = self.draw(n, rng)
        low, high = bounds(self.length)
        mask = torch.ones_like(words, dtype=torch.bool)
        if low < high:
            lengths = torch.randint(low, high + 1, (n, 1), generator=rng, device=rng.device)
            mask &= torch.arange(high, device=rng.device) < lengths
        if self.reveal < 1:
            mask &= torch.rand(words.shape, generator=rng, device=rng.device) < self.reveal
        targets = self._labels_of(states)
        truth = {"states": states, "letters": words}
        if self.scratchpad:
            return Batch(self.interleave(words, states), _spread(targets), _spread(mask), truth)
        return Batch(words, targets, mask, truth)

    def oracle(self, batch: Batch) -> Float[Tensor, "example time label"]:
        """The label is certain once the letters are read; the states of a scratchpad have no label."""
        words = batch.inputs[:, ::2] if self.scratchpad else batch.inputs
        certain = torch.nn.functional.one_hot(self._labels_of(self.run(words)), self.outputs).double().log()
        if not self.scratchpad:
            return certain
        uniform = torch.full_like(certain, 1 / self.outputs).log()
        return torch.stack([certain, uniform], 2).flatten(1, 2)[:, :-1]

    def baselines(self) -> dict[str, Callable[[Batch], Tensor]]:
        """ "position": the exact probabilities of the labels at each position, letters unread; "majority": their mean
        over time."""

        def position(batch: Batch) -> Tensor:
            probs = self.label_probs(batch.inputs.shape[1]).to(batch.inputs.device)
            return probs.log().expand(len(batch), -1, -1)

        def majority(batch: Batch) -> Tensor:
            probs = self.label_probs(batch.inputs.shape[1]).to(batch.inputs.device)
            return probs.mean(0, keepdim=True).log().expand(len(batch), batch.inputs.shape[1], -1)

        if self.scratchpad or self.pattern or self.count is not None:
            return {}
        return {"position": position, "majority": majority}

    def label_probs(self, time: int) -> Float[Tensor, "time label"]:
        """Probability of each label at each position: powers of the Markov chain of states."""
        chain = torch.zeros(self.states, self.states, dtype=torch.float64)
        chain.scatter_add_(1, torch.as_tensor(self.table), torch.as_tensor(self.letter_probs()))
        probs = torch.zeros(self.states, dtype=torch.float64)
        probs[self.start] = 1
        rows = []
        for _ in range(time):
            probs = probs @ chain
            rows.append(probs)
        sums = torch.zeros(time, self.outputs, dtype=torch.float64)
        return sums.index_add_(1, torch.as_tensor(self.labels), torch.stack(rows))

    def letter_probs(self) -> Float[np.ndarray, "state letter"]:
        """Probability of each letter in each state."""
        if self.legal is not None:
            legal = np.array(self.legal, dtype=float)
            return legal / legal.sum(1, keepdims=True)
        given = self.sampling_probs
        probs = np.full(self.alphabet, 1 / self.alphabet) if given is None else np.array(given)
        return np.tile(probs / probs.sum(), (self.states, 1))

    def accepts(self, tokens: Tensor | str) -> bool | Tensor:
        require(self.accepting is not None, "accepting", None, "given for a language", "name the accepting states")
        assert self.accepting is not None
        words = tokens if isinstance(tokens, Tensor) else self.read_text(tokens)
        final = torch.zeros(self.states, dtype=torch.bool, device=words.device)
        final[list(self.accepting)] = True
        if words.shape[-1] == 0:
            verdict = final[self.start].expand(words.shape[:-1])
        else:
            verdict = final[self.run(words)[..., -1]]
        return bool(verdict) if words.ndim == 1 else verdict

    def interleave(self, words: Tensor, states: Tensor) -> Int[Tensor, "example doubled"]:
        """σ₁ q₁ σ₂ q₂ … σ_T: state q is token |Σ| + q."""
        return torch.stack([words, states + self.alphabet], 2).flatten(1)[:, :-1]

    # ------------------------------------------------------------------ checks

    def _labels_of(self, states: Tensor) -> Tensor:
        if (self.labels == np.arange(self.states)).all():
            return states
        return torch.as_tensor(self.labels, device=states.device)[states]

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def _state(self, field: str, value: int) -> int:
        return integer(field, value, 0, self.states - 1, f"the machine has {self.states} states, numbered from 0")

    def _known_letters(self, low: int, high: int) -> None:
        wrong = low if low < 0 else high
        if not 0 <= wrong < self.alphabet:
            raise BadInput(f"unknown letter {wrong}: letters are numbered 0 to {self.alphabet - 1}")

    def _check(self) -> None:
        self._state("start", self.start)
        low, high = bounds(self.length)
        integer("length", low, 1)
        integer("length", high, low)
        number("reveal", self.reveal, 0.0, 1.0)
        number("pattern_share", self.pattern_share, 0.0, 1.0)
        for name, given in {"probs": self.probs, "letter_names": self.letter_names}.items():
            if given:
                require(len(given) == self.alphabet, name, given, f"one entry for each of the {self.alphabet} letters")
        for name, each in {
            "observation": self.observation,
            "legal": self.legal,
            "state_names": self.state_names,
        }.items():
            if each:
                require(len(each) == self.states, name, each, f"one entry for each of the {self.states} states")
        if self.probs is not None:
            require(min(self.probs) >= 0 and sum(self.probs) > 0, "probs", self.probs, "probabilities, not all zero")
        if self.legal is not None:
            for state, row in enumerate(self.legal):
                require(len(row) == self.alphabet, f"legal[{state}]", row, f"{self.alphabet} truth values")
                require(any(row), f"legal[{state}]", row, "at least one legal letter")
        if self.observation is not None:
            require(min(self.observation) >= 0, "observation", self.observation, "classes numbered from 0")
        for letter in self.pattern or ():
            choice("pattern", letter, range(self.alphabet))
        for state in self.accepting or ():
            self._state("accepting", state)
        if self.count is not None:
            integer("count", self.count, 0, high, "it is the number of letters 1 in a word")
            require(self.alphabet > 1, "count", self.count, "left out when there is only one letter")
        chosen = self._draws()
        if len(chosen) > 1 and chosen != ["probs", "pattern"]:
            raise BadInput(f"{' and '.join(chosen)} were given together: choose one way of drawing letters")

    def _draws(self) -> list[str]:
        """The options in use that say how letters are drawn."""
        return [name for name in DRAWS if getattr(self, name) is not None]


def as_table(transitions: object) -> tuple[tuple[int, ...], ...]:
    """The transition table as nested tuples, every entry a state."""
    rows = transitions.tolist() if isinstance(transitions, (np.ndarray, Tensor)) else transitions
    if not isinstance(rows, (list, tuple)) or not rows:
        raise BadInput(f"transitions must be one row per state, got {transitions!r}: try [[0, 1], [1, 0]]")
    if not all(isinstance(row, (list, tuple)) for row in rows):
        raise BadInput(f"transitions must be rows of next states, one per letter, got {rows!r}: try [[0, 1], [1, 0]]")
    letters = max(len(row) for row in rows)
    if letters == 0:
        raise BadInput("the alphabet is empty: every state needs a row with one next state per letter")
    for state, row in enumerate(rows):
        if len(row) != letters:
            raise BadInput(
                f"state {state} has transitions for {len(row)} of {letters} letters: "
                "give every state one next state per letter (add a sink state for letters that are not allowed)"
            )
        for letter, following in enumerate(row):
            whole = isinstance(following, int) and not isinstance(following, bool)
            if not whole or not 0 <= following < len(rows):
                raise BadInput(
                    f"transitions[{state}][{letter}] must be a state between 0 and {len(rows) - 1}, got {following!r}"
                )
    return tuple(tuple(row) for row in rows)


def _spread(labels: Bool[Tensor, "example time"] | Int[Tensor, "example time"]) -> Tensor:
    """Labels at the letters of a scratchpad, nothing (0, False) at the states between them."""
    return torch.stack([labels, torch.zeros_like(labels)], 2).flatten(1)[:, :-1]
