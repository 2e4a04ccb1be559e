"""Depth decides connectivity where a chain of thought is not allowed.

Is t reachable from s in a graph of two random paths? Repeated squaring of the adjacency matrix, one layer each,
decides it with ⌈log₂ n⌉ squarings; with k squarings exactly distances up to 2^k are found. Transformers of one to
three layers (full: up to five) are trained on the question alone, and a model of two layers with a chain of thought
that walks along the path.

**What was learnt** (quick, 2026-11-16). Trained on the question alone, one, two and three layers stay at chance: that
the construction exists does not mean that a short training finds it. With a walk along the path two layers answer
every question. The claim on one squaring too few is inconclusive because of the smallest graphs: with four vertices a
path has one edge, and no squaring can be missing; with 8 and 12 vertices 54 and 66 % of the answers are right.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.circuits.reasoning.connectivity import repeated_squaring, squaring_inputs
from sandlab.learning.experiment import Experiment, Runs
from sandlab.random import rng
from sandlab.studies.claims import Mean, NotMeasured
from sandlab.studies.nulls import untrained
from sandlab.studies.reasoning.thought.circuits_with_thought import experiment
from sandlab.studies.study import Lab, Study
from sandlab.worlds.reasoning.clauses import SLOTS
from sandlab.worlds.reasoning.graphs import GraphConnectivity


@dataclass(frozen=True)
class Settings:
    """Trainings by depth, one with a chain of thought, and the sizes of the exact check."""

    depths: tuple[int, ...]
    trained: tuple[Experiment, ...]
    thought: Experiment
    exact: tuple[int, ...]


def settings(
    vertices: int,
    depths: tuple[int, ...],
    steps: int,
    seeds: tuple[int, ...],
    exact: tuple[int, ...],
    **training: Any,
) -> Settings:
    plain, walked = GraphConnectivity(vertices), GraphConnectivity(vertices, thought=True)
    trained = tuple(experiment(plain, steps, seeds, layers=depth, **training) for depth in depths)
    return Settings(depths, trained, experiment(walked, steps, seeds, **training), exact)


QUICK = settings(8, (1, 2, 3), 1200, (51, 52, 53), (4, 8, 12))

study = Study(
    "reasoning/connectivity-depth",
    title="Squaring decides paths of twice the length per layer; trained models need the walk along the path",
    source="Merrill and Sabharwal 2024, A little depth goes a long way",
    quick=QUICK,
    full=settings(
        16,
        (1, 2, 3, 4, 5),
        10_000,
        (501, 502, 503, 504, 505),
        (8, 16, 32, 64),
        batch_size=256,
        lr=5e-4,
        precision="tf32",
    ),
    null=untrained(QUICK),
)


@dataclass(frozen=True)
class Results:
    """Exact accuracy by number of vertices at ⌈log₂ n⌉ squarings and at half as many; trained runs by depth."""

    depths: tuple[int, ...]
    trained: list[Runs]
    thought: Runs
    exact: dict[int, float]
    shallow: dict[int, float]

    def solved(self) -> np.ndarray:
        """(depth, seed)"""
        return np.stack([runs.final["solved"][:, 0] for runs in self.trained])


@dataclass(frozen=True)
class SquaringJob:
    vertices: int
    squarings: int


def squaring_accuracy(job: SquaringJob) -> float:
    """Share of random questions that the construction answers."""
    world = GraphConnectivity(job.vertices)
    batch = world.sample(100, rng=rng(0, "squaring", job.vertices))
    ends = batch.inputs.view(100, -1, SLOTS)[:, : world.edges][..., [0, 2]]
    model = repeated_squaring(job.vertices, world.edges, job.squarings)
    found = model(squaring_inputs(ends, batch.truth["walk"][:, 0], batch.truth["target"], job.vertices))[:, -1].argmax(
        -1
    )
    return float((found.bool() == batch.truth["linked"]).double().mean())


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    trained = lab.train([*settings.trained, settings.thought], label="connectivity")
    enough = [SquaringJob(n, (n - 1).bit_length()) for n in settings.exact]
    few = [SquaringJob(n, max(0, (n // 2 - 1).bit_length() - 1)) for n in settings.exact]
    found = lab.map(squaring_accuracy, [*enough, *few], label="squaring")
    count = len(settings.exact)
    exact, shallow = (dict(zip(settings.exact, part)) for part in (found[:count], found[count:]))
    return Results(settings.depths, trained[:-1], trained[-1], exact, shallow)


@study.claim(Mean(above=0.999), paper="O(log n) depth suffices")
def construction(results: Results) -> list[float]:
    """⌈log₂ n⌉ squarings answer every question.

    Share of right answers of the construction, all sizes; measured beside models that were trained.
    """
    if all(np.ptp(runs.metrics["loss"], axis=1).max() == 0 for runs in results.trained):
        raise NotMeasured("trained models beside the construction")
    return list(results.exact.values())


@study.claim(Mean(below=0.9), paper="fewer layers do not")
def one_layer_less(results: Results) -> list[float]:
    """With one squaring too few for the longest path, linked ends are not found.

    Share of right answers, all sizes.
    """
    return list(results.shallow.values())


@study.claim(Mean(above=0.1), source="Specification, E-CONN")
def depth_helps(results: Results) -> np.ndarray:
    """Trained accuracy increases with depth.

    Share of right answers of the deepest model minus that of one layer.
    """
    solved = results.solved()
    return solved[-1] - solved[0]


@study.claim(Mean(above=0.1), source="Specification, E-CONN")
def thought_replaces_depth(results: Results) -> np.ndarray:
    """Two layers that walk along the path beat one layer that answers at once.

    Share of questions with the whole walk and the answer right minus that of one layer.
    """
    return results.thought.final["solved"][:, 0] - results.solved()[0]


@study.figure
def depth(results: Results) -> Figure:
    figure, axes = figures.new(columns=2, title="Connectivity by depth, and with a walk along the path")
    figures.band(axes[0], results.depths, results.solved().T, label="at once", marker="o")
    axes[0].axhline(float(results.thought.final["solved"].mean()), linestyle="--", label="two layers, with a walk")
    axes[0].axhline(0.5, color="#555555", linestyle=":", linewidth=1)
    axes[0].set(xlabel="layers", ylabel="solved questions", ylim=(0.0, 1.05), xticks=results.depths)
    axes[0].legend()
    axes[1].plot(list(results.exact), list(results.exact.values()), marker="o", label="⌈log₂ n⌉ squarings")
    axes[1].plot(list(results.shallow), list(results.shallow.values()), marker="s", label="one too few")
    axes[1].set(xlabel="vertices", ylabel="right answers (construction)", ylim=(0.0, 1.05))
    axes[1].legend()
    return figure
