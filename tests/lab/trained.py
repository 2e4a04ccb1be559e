"""Small trained studies for tests of equal bits: an experiment, and a population inside a job."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import sandlab as sl
from sandlab.learning.experiment import Experiment, Runs, Training
from sandlab.models.transformer import TransformerConfig
from sandlab.studies.claims import Mean
from sandlab.studies.study import Lab, Study

WORLD = sl.worlds.InContextMarkov(states=3, order=1, length=8)


@dataclass(frozen=True)
class Many:
    """A population whose strategy is left to the library."""

    seed: int
    width: int


def train_many(config: Many) -> list[float]:
    """Final losses of three members."""
    population = sl.learning.Population(
        lambda seed: sl.models.Transformer(vocab=3, length=8, layers=1, heads=1, width=config.width), seeds=range(3)
    )
    rng = sl.rng(config.seed)
    histories = sl.learning.train(population, WORLD, steps=20, batch_size=8, rng=rng, lr=1e-2, progress=False)
    return [float(history.loss[-1]) for history in histories]


@dataclass(frozen=True)
class Settings:
    experiment: Experiment
    widths: tuple[int, ...] = (8, 64)


@dataclass(frozen=True)
class Results:
    runs: Runs
    many: np.ndarray


MODEL = TransformerConfig(vocab=3, length=8, layers=1, heads=1, width=8, dropout=0.1)
QUICK = Settings(Experiment(WORLD, MODEL, Training(steps=30, batch_size=8, lr=1e-2), seeds=4))
study = Study("bits/trained", title="Losses fall", source="None", quick=QUICK, full=QUICK)


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    many = lab.map(train_many, [Many(seed, width) for seed in range(2) for width in settings.widths])
    return Results(lab.train(settings.experiment), np.array(many))


@study.claim(Mean(below=1.2))
def small(results: Results) -> list[float]:
    """The losses are small.

    Last loss of each seed.
    """
    return results.runs.loss[:, -1].tolist()


@study.claim(Mean(below=1.5))
def many(results: Results) -> list[float]:
    """The losses of members are small.

    Last loss of each member.
    """
    return results.many.ravel().tolist()
