"""Small settings for the translation studies: the same shapes, next to no training."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from sandlab.learning.experiment import Experiment


def tiny(experiment: Experiment, seeds: int = 2) -> Experiment:
    training = replace(experiment.training, steps=3, batch_size=8, evals=1, eval_examples=8, warmup=0)
    model: Any = experiment.model
    return replace(experiment, training=training, seeds=seeds, model=replace(model, layers=1, width=16))
