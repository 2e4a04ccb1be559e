"""Made-up runs, and settings with hardly any training, for the studies of this chapter."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from sandlab.lab._store.codec import decode, encode
from sandlab.learning.experiment import Experiment, Runs, Training
from sandlab.models.recurrent import LSTMConfig
from sandlab.models.transformer import TransformerConfig
from sandlab.studies.automata._shared import StateAccuracy
from sandlab.studies.study import Study
from sandlab.worlds.base import World


def runs(*, metrics: dict[str, Any] | None = None, **final: Any) -> Runs:
    """Runs with these final measurements and evaluations, seed axis first: `runs(token=[1.0, 0.9])`."""
    arrays = {name: np.asarray(value) for name, value in final.items()}
    curves = {name: np.asarray(value) for name, value in (metrics or {}).items()}
    seeds = len(next(iter([*arrays.values(), *curves.values()])))
    steps = np.arange(next(iter(curves.values())).shape[1] if curves else 1)
    return Runs(tuple(range(seeds)), steps, np.zeros((seeds, 1)), curves, arrays)


def tiny(value: Any, seeds: int = 2) -> Any:
    """The same settings with hardly any training."""
    if isinstance(value, tuple):
        return tuple(tiny(part, seeds) for part in value)
    if isinstance(value, Training):
        few = min(value.evals, 4)
        return dataclasses.replace(value, steps=few, batch_size=2, evals=few, eval_examples=4, warmup=0)
    if isinstance(value, TransformerConfig):
        return dataclasses.replace(value, width=8, heads=2, mlp_width=8)
    if isinstance(value, LSTMConfig):
        return dataclasses.replace(value, width=8)
    if isinstance(value, StateAccuracy):
        return dataclasses.replace(value, words=4)
    if not dataclasses.is_dataclass(value) or isinstance(value, (type, World)):
        return value
    changed = {field.name: tiny(getattr(value, field.name), seeds) for field in dataclasses.fields(value)}
    return dataclasses.replace(value, **changed | ({"seeds": seeds} if isinstance(value, Experiment) else {}))


def stored(study: Study[Any], results: Any) -> Any:
    """The results as they come back from the store."""
    return decode(encode(results), study.results_type)
