"""Transformers that label each position with the cell's content: experiments on their attention."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sandlab.learning.experiment import Experiment, Training
from sandlab.learning.objectives import CrossEntropy
from sandlab.learning.penalties import Penalised, Sharpening
from sandlab.lenses.flip_flop.probes import HeadReport, LabelErrors
from sandlab.models.transformer import TransformerConfig
from sandlab.worlds.flip_flop.language import FlipFlopTransduction

PROBE = (2, 0, 1, 0, 0, 1, 2, 0)
"""σ1 ⊥ σ0 ⊥ ⊥ σ0 σ1 ⊥ (0 is ⊥, 1 writes 0, 2 writes 1): the input of the published attention maps."""
IDLE = (0.9, 0.5, 0.98)
"""p(⊥) of the three tests."""


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
