"""What the studies of this chapter share: the source, the models, the training recipe, and tests on fresh words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sandlab.learning.experiment import Experiment, Runs, Snapshot, Training
from sandlab.lenses.automata.state_tracking import state_accuracy
from sandlab.models.recurrent import LSTMConfig
from sandlab.models.transformer import TransformerConfig
from sandlab.worlds.automata._running.words import bounds
from sandlab.worlds.automata.machine import Automaton

SOURCE = "Liu, Ash, Goel, Krishnamurthy and Zhang 2023, Transformers learn shortcuts to automata"


@dataclass(frozen=True)
class Words:
    """Words to test on: of another length, with another probability of letter 1, or with a given number of ones."""

    length: int
    ones: float | None = None
    count: int | None = None

    def of(self, world: Automaton) -> Automaton:
        if self.ones is not None:
            return world.task(length=self.length, probs=(1 - self.ones, self.ones))
        return world.task(length=self.length, count=self.count)


@dataclass(frozen=True)
class StateAccuracy:
    """Accuracy on fresh words, every label counted: "token" and "sequence", and "variants" (seed, variant) by token.

    A scratchpad is filled in by the model itself.
    """

    words: int = 512
    variants: tuple[Words, ...] = ()

    def __call__(self, now: Snapshot) -> dict[str, np.ndarray]:
        world = automaton(now).task(reveal=1.0)
        found = state_accuracy(now.model, world, examples=self.words, rng=now.rng(11, "test"))
        scores = [
            state_accuracy(now.model, variant.of(world), examples=self.words, rng=now.rng(11, "probe", index))["token"]
            for index, variant in enumerate(self.variants)
        ]
        return found | ({"variants": np.stack(scores, 1)} if scores else {})


def automaton(owner: Experiment | Snapshot) -> Automaton:
    """The automaton that an experiment trains on."""
    assert isinstance(owner.world, Automaton)
    return owner.world


def letters(experiment: Experiment) -> int:
    """Letters of the (longest) training words."""
    return bounds(automaton(experiment).length)[1]


RECIPE = Training(
    steps=1000, weight_decay=1e-4, schedule="cosine", clip=1.0, evals=10, eval_examples=128, precision="tf32",
    nan="continue",
)  # fmt: skip
"""AdamW with gradients of norm at most 1; a seed whose loss is not a number does not stop the others."""


def recipe(steps: int, **changes: Any) -> Training:
    """The recipe with a warm-up over a tenth of the steps (at most 100), and fields of `Training` changed."""
    return replace(RECIPE, steps=steps, warmup=min(100, steps // 10), **changes)


def transformer(
    world: Automaton,
    training: Training,
    seeds: int,
    *,
    width: int = 64,
    words: int = 512,
    shift: int = 0,
    **options: Any,
) -> Experiment:
    """A transformer with a feed-forward block as wide as the residual stream, tested on `words` fresh words at the end.

    shift   largest random shift of the positions in training; other options are those of `TransformerConfig`
    """
    shape: dict[str, Any] = {"heads": 4, "positions": "sinusoidal", "token_std": 1.0, "init_std": None} | options
    model = TransformerConfig(
        vocab=world.vocab,
        length=tokens(world, bounds(world.length)[1] + shift),
        outputs=world.outputs,
        width=width,
        mlp_width=width,
        position_shift=shift,
        **shape,
    )
    return Experiment(world, model, training, seeds, final=(StateAccuracy(words),))


def lstm(world: Automaton, training: Training, seeds: int, *, width: int = 64, words: int = 512) -> Experiment:
    """An LSTM with one layer on an automaton."""
    model = LSTMConfig(vocab=world.vocab, outputs=world.outputs, width=width)
    return Experiment(world, model, training, seeds, final=(StateAccuracy(words),))


def with_tests(
    experiment: Experiment,
    *,
    lengths: Sequence[int] = (),
    ones: Sequence[float] = (),
    counts: Sequence[int] = (),
) -> Experiment:
    """The same experiment, also tested on words of these lengths, probabilities of a one and numbers of ones.

    The positions of the model reach the longest of them.
    """
    (probe,), usual, model = experiment.final, letters(experiment), experiment.model
    assert isinstance(probe, StateAccuracy)
    tests = [*(Words(length) for length in lengths), *(Words(usual, ones=share) for share in ones)]
    tests += [Words(usual, count=count) for count in counts]
    if isinstance(model, TransformerConfig):
        longest = max((tokens(automaton(experiment), each.length) for each in tests), default=1)
        model = replace(model, length=max(model.length, longest))
    return replace(experiment, model=model, final=(replace(probe, variants=tuple(tests)),))


def tokens(world: Automaton, letters: int) -> int:
    """Tokens of a word: a scratchpad has a state between any two letters."""
    return 2 * letters - 1 if world.scratchpad else letters


def accuracy(runs: Runs) -> np.ndarray:
    """Token accuracy of each seed on fresh words."""
    found: np.ndarray = runs.final["token"]
    return found


def best(runs: Runs) -> float:
    """Token accuracy of the best seed."""
    return float(accuracy(runs).max())


def variants(runs: Runs) -> np.ndarray:
    """Token accuracy on the words of `with_tests` (seed, variant)."""
    found: np.ndarray = runs.final["variants"]
    return found
