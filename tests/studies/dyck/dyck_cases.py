"""Made-up runs and small settings for the studies of Dyck languages."""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar

import numpy as np

from sandlab.lab._store.codec import decode, encode
from sandlab.learning.experiment import Experiment, Runs
from sandlab.studies.dyck._shared import LongWords
from sandlab.studies.study import Outcome, Study

Value = TypeVar("Value")
SEEDS = 8


def runs(**final: Any) -> Runs:
    """Runs of eight seeds with these final measurements: a number is the same for all seeds, but for a little noise."""
    noise = np.linspace(-1e-3, 1e-3, SEEDS)
    arrays = {name: value + noise if isinstance(value, (int, float)) else value for name, value in final.items()}
    return Runs(seeds=tuple(range(SEEDS)), eval_steps=np.arange(2), loss=np.zeros((SEEDS, 1)), metrics={}, final=arrays)


def maps(*spreads: float, words: int = 0, tokens: int = 17) -> np.ndarray:
    """Causal attention (seed, layer, [word,] query, key): per layer, between uniform (0) and one random key (1)."""
    draw = np.random.default_rng(0)
    uniform = np.tril(np.ones((tokens, tokens)))
    uniform /= uniform.sum(-1, keepdims=True)
    shape = (SEEDS, len(spreads), max(words, 1), tokens)
    chosen = np.eye(tokens)[(draw.random(shape) * np.arange(1, tokens + 1)).astype(int)]
    spread = np.reshape(spreads, (-1, 1, 1, 1))
    found = spread * chosen + (1 - spread) * uniform
    return found if words else found[:, :, 0]


def small(settings: Value) -> Value:
    """The same settings with three seeds, three steps and few test words wherever something is trained."""
    if isinstance(settings, Experiment):
        training = dataclasses.replace(settings.training, steps=3, batch_size=8, eval_examples=10)
        final = tuple(LongWords(4, 40) if isinstance(probe, LongWords) else probe for probe in settings.final)
        return dataclasses.replace(settings, training=training, seeds=3, final=final)
    if isinstance(settings, tuple):
        return tuple(small(each) for each in settings)
    if dataclasses.is_dataclass(settings):
        return dataclasses.replace(settings, **{name: small(value) for name, value in vars(settings).items()})
    return settings


def measures_everything(study: Study[Any], outcome: Outcome, preset: str) -> None:
    """Every claim of the preset was measured, nothing is empty, and stored results are judged as before."""
    assert {finding.claim for finding in outcome.findings} == {claim.id for claim in study.due(preset)}
    assert all(outcome.tables.values()) and all(figure.axes for figure in outcome.figures.values())
    stored = decode(encode(outcome.results), study.results_type)
    assert [str(finding) for finding in study.judge(stored, preset).findings] == list(map(str, outcome.findings))
