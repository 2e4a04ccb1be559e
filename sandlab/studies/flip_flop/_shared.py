"""What the studies of this chapter share: the source, and experiments on the language and on the automaton."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from sandlab.learning.experiment import Experiment, Probe, Training
from sandlab.learning.objectives import CrossEntropy
from sandlab.learning.penalties import Penalised, Sharpening
from sandlab.lenses.flip_flop.probes import HeadReport, LabelErrors, ReadErrors
from sandlab.models.base import Config
from sandlab.models.recurrent import LSTMConfig
from sandlab.models.transformer import TransformerConfig
from sandlab.worlds.flip_flop.language import FlipFlop, FlipFlopTransduction

SOURCE = "Liu et al. 2023, Exposing attention glitches with flip-flop language modeling"
SETS = {"in": "training distribution", "sparse": "sparse tail, FFL(0.98)", "dense": "dense tail, FFL(0.1)"}
"""The test sets (`read_sets`) and their titles."""
PROBE = (2, 0, 1, 0, 0, 1, 2, 0)
"""σ1 ⊥ σ0 ⊥ ⊥ σ0 σ1 ⊥ (0 is ⊥, 1 writes 0, 2 writes 1): the input of the published attention maps."""
LSTM = LSTMConfig(vocab=5, width=128, layers=1, readout_bias=True, torch_start=True)
"""The published recurrent baseline: one layer of width 128, 133,381 parameters."""
IDLE = (0.9, 0.5, 0.98)
"""p(⊥) of the three tests."""


def transformer(length: int = 64, layers: int = 2, width: int = 64, heads: int = 4) -> TransformerConfig:
    """A causal transformer for flip-flop strings of `length` tokens."""
    return TransformerConfig(vocab=5, length=length - 1, layers=layers, width=width, heads=heads, init_std=None)


def language_model(
    world: FlipFlop,
    model: Config | None = None,
    *,
    steps: int,
    seeds: int,
    reads: int = 6_000,
    final: tuple[Probe, ...] = (),
    **training: Any,
) -> Experiment:
    """Flip-flop language modelling: AdamW, warm-up of 50 steps, linear decay to 0; tested on `reads` reads per set."""
    recipe = Training(steps, batch_size=32, weight_decay=0.1, schedule="linear", warmup=50, evals=10, eval_examples=64)
    return Experiment(
        world=world,
        model=model or transformer(world.length),
        training=replace(recipe, **training),
        seeds=seeds,
        probes=(ReadErrors(world),),
        final=(ReadErrors(world, reads), *final),
    )


def labelling(
    *, steps: int, seeds: int, layers: int = 1, heads: int = 1, width: int = 64, **training: Any
) -> Experiment:
    """A causal transformer on `FlipFlopTransduction` at p(⊥) = 0.9: AdamW, warm-up of 50 steps, linear decay to 0."""
    recipe = Training(steps, batch_size=32, schedule="linear", warmup=50, evals=10, eval_examples=200)
    return Experiment(
        world=FlipFlopTransduction(length=32, idle=0.9),
        model=TransformerConfig(vocab=3, outputs=2, length=32, layers=layers, heads=heads, width=width),
        training=replace(recipe, **training),
        seeds=seeds,
        final=(LabelErrors(IDLE), HeadReport(PROBE)),
    )


def sharpened(experiment: Experiment, strength: float, layers: str = "*") -> Experiment:
    """The experiment with an entropy penalty on the attention rows of some layers."""
    if strength == 0:
        return experiment
    objective = Penalised(CrossEntropy(), (Sharpening(strength, layers=layers),))
    return replace(experiment, training=replace(experiment.training, objective=objective))


def larger_tail(errors: dict[str, np.ndarray]) -> np.ndarray:
    """The larger of the errors on the sparse and on the dense tail."""
    return np.maximum(errors["sparse"], errors["dense"])


def glitches(errors: dict[str, np.ndarray], tail: str = "") -> np.ndarray:
    """Tail error (one tail, or the larger) of the models that err on less than 1 % in distribution; 0 for the others.

    A model that has not learnt its own distribution says nothing about glitches.
    """
    found = errors[tail] if tail else larger_tail(errors)
    return np.where(errors["in"] < 0.01, found, 0.0)
