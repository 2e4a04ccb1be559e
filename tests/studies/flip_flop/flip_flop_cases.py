"""Made-up runs, and settings with hardly any training, for the studies of this chapter."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from sandlab.learning.experiment import Experiment, Runs, Training
from sandlab.lenses.flip_flop.probes import AttentionDrift, DistanceErrors, ReadErrors, ShortestFailures
from sandlab.models.recurrent import LSTMConfig
from sandlab.models.transformer import TransformerConfig
from sandlab.studies.study import Study
from sandlab.worlds.flip_flop.language import FlipFlop

SEEDS = 8


def runs(*, metrics: dict[str, Any] | None = None, **final: Any) -> Runs:
    """Runs of `SEEDS` seeds that all have these final measurements and evaluations (without the seed axis)."""
    arrays = {name.replace("_", " "): spread(value) for name, value in final.items()}
    curves = {name: spread(value) for name, value in (metrics or {}).items()}
    evals = max((each.shape[1] for each in curves.values()), default=1)
    return Runs(tuple(range(SEEDS)), np.arange(evals) * 10, np.zeros((SEEDS, 4)), curves, arrays)


def spread(value: Any) -> Any:
    """A value for every seed, each a little different unless it is a whole number."""
    if isinstance(value, dict):
        return {name: spread(each) for name, each in value.items()}
    array = np.asarray(value)
    noise = 1 if array.dtype.kind != "f" else 1 + 1e-4 * np.arange(SEEDS).reshape(-1, *[1] * array.ndim)
    return np.broadcast_to(array, (SEEDS, *array.shape)) * noise


def reads(inside: float, sparse: float, dense: float) -> Runs:
    """Runs with these final read errors, and constant errors along the way."""
    errors = {"in": inside, "sparse": sparse, "dense": dense}
    return runs(metrics={name: [error] * 4 for name, error in errors.items()}, **errors)


def tiny(value: Any, seeds: int = 2) -> Any:
    """The same settings with hardly any training and short strings."""
    if isinstance(value, (tuple, list)):
        return type(value)(tiny(part, seeds) for part in value)
    changes: dict[type, dict[str, Any]] = {
        Training: {"steps": 4, "batch_size": 8, "evals": 2, "eval_examples": 8},
        TransformerConfig: {"width": 16},
        LSTMConfig: {"width": 8},
        FlipFlop: {"length": 16},
        AttentionDrift: {"longest": 40},
        ShortestFailures: {"length": 16},
    }
    if not dataclasses.is_dataclass(value) or isinstance(value, type):
        return value
    inner = {each.name: tiny(getattr(value, each.name), seeds) for each in dataclasses.fields(value)}
    if isinstance(value, (ReadErrors, DistanceErrors)):
        inner["reads"] = min(value.reads, 50)
    if isinstance(value, Experiment):
        inner["seeds"] = seeds
    return dataclasses.replace(value, **inner | changes.get(type(value), {}))


def claims(study: Study[Any], preset: str) -> set[str]:
    return {claim.id for claim in study.claims if preset in claim.presets}
