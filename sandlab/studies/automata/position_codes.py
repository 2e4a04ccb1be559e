"""Sinusoidal or linear positions: which automata suit which code.

The same transformer with two codes of position t: sinusoids, or a vector that grows in proportion to t. Acceptance of
abab… depends on t mod 4: sinusoids hold that, a line does not. The walk between walls needs no position at all beyond
"later is nearer": sinusoids offer features that do not continue beyond the training length.

Published: length 40 and 80, 25 runs. Quick: Grid₉ with 24 letters (900 batches of 32 words), abab with 20 (400), 2
layers of width 64, 4 seeds. Full: 40 letters, 4 layers of width 128, 5000 and 3000 batches, 8 seeds.

The source does not say which vector its linear code multiplies. The same number on every coordinate would be no code:
layer normalisation subtracts the mean over coordinates, and such a model is exactly one without positions. Here the
vector alternates between + and −, and reaches the norm of a token vector at the training length.

What to look for: left of each pair is the accuracy at the training length, right at twice that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.learning.experiment import Experiment, Runs, Training
from sandlab.models.transformer import TransformerConfig
from sandlab.studies.automata._shared import SOURCE, letters, recipe, transformer, variants, with_tests
from sandlab.studies.claims import Mean
from sandlab.studies.nulls import untrained
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.automata.counters import Grid
from sandlab.worlds.automata.languages import Abab

SINE, LINE = "sinusoidal", "linear"
GRID, PURE, MIXED = "Grid₉", "abab (1)", "abab (2)"


@dataclass(frozen=True)
class Settings:
    """A walk, and acceptance of abab… on such words only (pure) or with half of the words random (mixed)."""

    grid: Experiment
    pure: Experiment
    mixed: Experiment


def settings(lengths: tuple[int, int], trainings: tuple[Training, Training], seeds: int, **shape: int) -> Settings:
    """The same model on the three tasks; lengths and trainings of the walk and of the language."""
    grid = transformer(Grid(size=9, length=lengths[0]), trainings[0], seeds, **shape)
    worlds = (Abab(label="accept", pattern_share=share, length=lengths[1]) for share in (1.0, 0.5))
    return Settings(grid, *(transformer(world, trainings[1], seeds, **shape) for world in worlds))


SMALL = recipe(900, batch_size=32, lr=2e-3), recipe(400, batch_size=32)
LARGE = recipe(5000, batch_size=32), recipe(3000, batch_size=32, lr=5e-4)
QUICK = settings((24, 20), SMALL, seeds=4, layers=2, width=64)
study = Study(
    "automata/position-codes",
    title="On a walk sinusoids lose more beyond the training length than a linear code; on abab… they gain little",
    source=SOURCE,
    at="Figure 22",
    quick=QUICK,
    full=settings((40, 40), LARGE, seeds=8, layers=4, width=128),
    null=untrained(QUICK),
)


@dataclass(frozen=True)
class Results:
    """Task → code → runs."""

    runs: dict[str, dict[str, Runs]]

    def gap(self, *tasks: str) -> np.ndarray:
        """Accuracy with sinusoidal minus linear positions (seed, length), mean over tasks."""
        gaps = [variants(self.runs[task][SINE]) - variants(self.runs[task][LINE]) for task in tasks]
        return np.mean(gaps, axis=0)


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    tasks = {GRID: settings.grid, PURE: settings.pure, MIXED: settings.mixed}
    versions = [version for each in tasks.values() for version in (each, linear(each))]
    jobs = [with_tests(each, lengths=(letters(each), 2 * letters(each))) for each in versions]
    runs = iter(lab.train(jobs, label="position codes"))
    return Results({task: {SINE: next(runs), LINE: next(runs)} for task in tasks})


def linear(experiment: Experiment) -> Experiment:
    """The same with a code that grows to the norm of a token vector (√width) over a training word."""
    model = experiment.model
    assert isinstance(model, TransformerConfig)
    slope = model.width**0.5 / letters(experiment)
    return replace(experiment, model=replace(model, positions=LINE, position_slope=slope))


@study.claim(Mean(above=0.03), at="Figure 22", paper="clearly better at 40")
def rhythm(results: Results) -> np.ndarray:
    """For acceptance of abab… sinusoidal positions are better at the training length.

    Accuracy with sinusoidal minus linear positions at the training length, mean over abab (1) and (2) and over seeds.
    """
    return results.gap(PURE, MIXED)[:, 0]


@study.claim(Mean(above=0.0), at="Figure 22", paper="gap nearly closed at 80")
def rhythm_fades(results: Results) -> np.ndarray:
    """At twice the length the advantage is smaller.

    That difference minus the same at twice the training length.
    """
    gaps = results.gap(PURE, MIXED)
    return gaps[:, 0] - gaps[:, 1]


@study.claim(Mean(above=0.0), at="Figure 22", paper="equal at 40, sinusoidal much worse at 80")
def walk(results: Results) -> np.ndarray:
    """On the walk sinusoidal positions lose more beyond the training length than linear ones.

    Drop from the training length to twice that, sinusoidal minus linear, Grid₉.
    """
    gaps = results.gap(GRID)
    return gaps[:, 0] - gaps[:, 1]


@study.claim(Mean(above=0.05), at="Figure 22", paper="equal at 40, sinusoidal much worse at 80")
def walk_much(results: Results) -> np.ndarray:
    """On the walk sinusoidal positions lose much more beyond the training length than linear ones.

    Drop from the training length to twice that, sinusoidal minus linear, Grid₉.
    """
    return walk(results)


@study.table
def codes(results: Results) -> Rows:
    means = {(task, code): variants(each).mean(0) for task, runs in results.runs.items() for code, each in runs.items()}
    return [
        {"task": task, "positions": code, "training length": float(mean[0]), "twice that": float(mean[1])}
        for (task, code), mean in means.items()
    ]


@study.figure
def pairs(results: Results) -> dict[str, Figure]:
    figure, axes = figures.new(columns=len(results.runs), width=2.8, height=3.2)
    for axis, (task, runs) in zip(axes, results.runs.items()):
        for colour, code in enumerate((SINE, LINE)):
            scores = variants(runs[code])
            figures.band(axis, (0, 1), scores, label=code, marker="o", color=figures.COLOURS[colour])
        axis.set_xticks((0, 1), ("training\nlength", "twice\nthat"))
        axis.set(title=task, xlim=(-0.3, 1.3), ylim=(None, 1.02))
    axes[0].set_ylabel("token accuracy")
    axes[0].legend()
    return {"codes": figure}
