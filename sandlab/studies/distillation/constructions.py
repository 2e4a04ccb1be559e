"""Sparse parity by one layer of attention: exact weights, and where they break.

Proposition 9 attends to the support with sharpness c and looks the number of ones up in a table; it is exact from
c = log((d − k)(4k − 1)/k) on. Proposition 10 copies all coordinates to the end and leaves the rest to the network.
Random inputs of the published size (100, 6); the constructions are checked on every input of small sizes by the tests.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.circuits.distillation.parity_transformers import (
    parity_by_selection,
    parity_by_uniform_attention,
    selection_threshold,
)
from sandlab.random import rng
from sandlab.studies.claims import Mean
from sandlab.studies.distillation import _shared as shared
from sandlab.studies.study import Lab, Study
from sandlab.worlds.distillation.parities import SparseParity


@dataclass(frozen=True)
class Settings:
    """The size, inputs for each seed, sharpness relative to the threshold; `other`: built for another support."""

    dimension: int = 100
    order: int = 6
    examples: int = 250
    seeds: int = 5
    offsets: tuple[float, ...] = (-4.0, -3.0, -1.5, 0.0, 1.0)
    other: bool = False


study = Study(
    "distillation/constructions",
    title="One layer of attention computes sparse parity exactly, from a sharpness of log((d − k)(4k − 1)/k) on",
    source=shared.SOURCE,
    at="Propositions 9 and 10",
    quick=Settings(),
    full=Settings(examples=5000, seeds=8, offsets=(-4.0, -3.0, -2.0, -1.5, -1.0, -0.5, 0.0, 1.0)),
    null=Settings(other=True),
)


@dataclass(frozen=True)
class Results:
    offsets: tuple[float, ...]
    selection: np.ndarray
    """(sharpness, seed)"""
    uniform: np.ndarray
    threshold: float


@dataclass(frozen=True)
class Tried:
    """One seed's inputs."""

    settings: Settings
    seed: int


def accuracies(tried: Tried) -> np.ndarray:
    """The job: accuracy of the selection for each sharpness, and of uniform attention last."""
    s = tried.settings
    world = SparseParity(s.dimension, s.order, "tokens")
    built = tuple(range(s.order, 2 * s.order)) if s.other else s.order
    threshold = selection_threshold(s.dimension, s.order)
    models = [parity_by_selection(s.dimension, built, sharpness=threshold + each) for each in s.offsets]
    batch = world.sample(s.examples, rng=rng(tried.seed, "inputs"))
    found = []
    for model in [*models, parity_by_uniform_attention(s.dimension, built)]:
        parts = [model(part)[:, -1].argmax(-1) for part in batch.inputs.split(250)]
        right = np.concatenate([part.numpy() for part in parts]) == batch.targets[:, 0].numpy()
        found.append(float(right.mean()))
    return np.array(found)


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    found = np.stack(lab.map(accuracies, [Tried(settings, seed) for seed in range(settings.seeds)]), 1)
    return Results(settings.offsets, found[:-1], found[-1], selection_threshold(settings.dimension, settings.order))


@study.claim(Mean(equals=1.0, within=1e-9), at="Proposition 9", paper="exact")
def selection(results: Results) -> np.ndarray:
    """Attention on the support is exact at the threshold.

    Accuracy on random inputs.
    """
    return results.selection[results.offsets.index(0.0)]


@study.claim(Mean(equals=1.0, within=1e-9), at="Proposition 10", paper="exact")
def uniform(results: Results) -> np.ndarray:
    """Uniform attention with a three-layer network is exact.

    Accuracy on random inputs.
    """
    return results.uniform


@study.claim(Mean(below=0.0), at="Proposition 9")
def breaks_below(results: Results) -> np.ndarray:
    """Well below the threshold the selection fails.

    Accuracy at threshold − 3 minus accuracy at the threshold.
    """
    return results.selection[results.offsets.index(-3.0)] - results.selection[results.offsets.index(0.0)]


@study.figure
def sharpness(results: Results) -> Figure:
    figure, (axis,) = figures.new(width=5.4, title="Where attention on the support breaks")
    figures.band(axis, np.array(results.offsets) + results.threshold, results.selection.T, "attention on the support")
    axis.axvline(results.threshold, linestyle=":", color="#555555", label="threshold")
    axis.set(xlabel="sharpness c of attention", ylabel="accuracy on random inputs")
    axis.legend()
    return figure
