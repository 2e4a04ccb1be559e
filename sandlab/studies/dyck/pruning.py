"""A weight matrix by itself says nothing: random networks pruned into given ones.

What can be read off one weight matrix? Nothing: the same pruned matrix serves the identity and a swap.

Left: spectral error of a pruned random pair of matrices against the number of random hidden units per input.
Middle: the matrix that both functions share. Right: the matrices in which they differ. A seed whose random signs
are unlucky can leave a large error, so medians are judged.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.circuits.dyck.pruning import (
    TheoryLayerWeights,
    layer_output,
    prune_layer,
    prune_linear,
    prune_transformer,
    random_layer,
    shared_matrix,
)
from sandlab.studies.claims import Mean, Median
from sandlab.studies.dyck._shared import SOURCE
from sandlab.studies.study import Lab, Study

COPIES = (4, 8, 12, 16, 20, 24)
WIDTH, TARGET_WIDTH, POSITIONS, INPUTS = 48, 4, 8, 20


@dataclass(frozen=True)
class Settings:
    """Random networks, size of the linear maps, random units per hidden unit of the pruned ReLU networks."""

    seeds: int = 8
    size: int = 6
    relu_copies: int = 96


study = Study(
    "dyck/pruning",
    title="Random networks can be pruned into given layers, and one pruned matrix serves two functions",
    source=SOURCE,
    at="Theorem 3 and Corollary 3",
    quick=Settings(),
    full=Settings(seeds=30),
)


@dataclass(frozen=True)
class PruneJob:
    seed: int
    size: int
    relu_copies: int


@dataclass(frozen=True)
class Pruning:
    """Errors of what one seed's random networks were pruned into.

    linear           spectral error of a linear map, by number of copies
    layer            largest error of a position's output, one target layer out of two random ones
    transformer      the same for two target layers out of eight
    shared           largest relative error of two functions that share a matrix
    shared_matrix    that matrix; last_matrices: the last matrix of each function, in which they differ
    """

    linear: np.ndarray
    layer: float
    transformer: float
    shared: float
    shared_matrix: np.ndarray
    last_matrices: list[np.ndarray]


@dataclass(frozen=True)
class Results:
    seeds: list[Pruning]

    @property
    def linear_errors(self) -> Float[np.ndarray, "seed copies"]:
        return np.stack([each.linear for each in self.seeds])


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    jobs = [PruneJob(seed, settings.size, settings.relu_copies) for seed in range(settings.seeds)]
    return Results(lab.map(prune, jobs, label="pruned networks"))


def prune(job: PruneJob) -> Pruning:
    """Prune random networks into a linear map, a transformer layer, a transformer, and two functions."""
    draw = np.random.default_rng(job.seed)
    linear = _linear_errors(job, draw)
    layer = random_layer(TARGET_WIDTH, 2, 8, rng=draw)
    pruned = prune_layer(layer, width=WIDTH, linear_copies=24, relu_copies=job.relu_copies, rng=draw)
    layer_error = _largest_error([layer], list(pruned), draw)
    shared = shared_matrix(TARGET_WIDTH, rng=draw)
    draw = np.random.default_rng([job.seed, 1])
    targets = [random_layer(TARGET_WIDTH, 2, 8, rng=draw) for _ in range(2)]
    layers = prune_transformer(targets, width=WIDTH, linear_copies=24, relu_copies=job.relu_copies, rng=draw)
    return Pruning(
        linear=linear,
        layer=layer_error,
        transformer=_largest_error(targets, list(layers), draw),
        shared=max(shared.identity_error, shared.swap_error),
        shared_matrix=shared.shared,
        last_matrices=[shared.identity_last, shared.swap_last],
    )


def _linear_errors(job: PruneJob, draw: np.random.Generator) -> np.ndarray:
    """Spectral error of a random linear map of norm 1 that is pruned out of 4, 8, … random units per input."""
    target = draw.normal(size=(job.size, job.size))
    target /= np.linalg.norm(target, 2)
    errors = []
    for copies in COPIES:
        first, second = prune_linear(target, copies, rng=np.random.default_rng([job.seed, copies])).weights
        errors.append(np.linalg.norm(second @ first - target, 2))
    return np.array(errors)


def _largest_error(
    targets: list[TheoryLayerWeights], layers: list[TheoryLayerWeights], draw: np.random.Generator
) -> float:
    """Largest error of a position's output over random inputs when the pruned layers stand in for the targets."""
    return max(_error(targets, layers, draw.normal(size=(TARGET_WIDTH, POSITIONS))) for _ in range(INPUTS))


def _error(targets: list[TheoryLayerWeights], layers: list[TheoryLayerWeights], x: np.ndarray) -> float:
    x = x / np.linalg.norm(x, axis=0).max()
    expected, found = x, np.concatenate([x, np.zeros((WIDTH - TARGET_WIDTH, POSITIONS))])
    for target in targets:
        expected = layer_output(target, expected)
    for layer in layers:
        found = layer_output(layer, found)
    return float(np.linalg.norm(found[:TARGET_WIDTH] - expected, axis=0).max())


@study.claim(Mean(below=-0.15), at="Lemma on subset sums", paper="logarithmic width suffices")
def exponential(results: Results) -> list[float]:
    """The error of a pruned linear map decreases exponentially in the number of random copies.

    Slope of log10 error per copy.
    """
    return [float(np.polyfit(COPIES, np.log10(errors), 1)[0]) for errors in results.linear_errors]


@study.claim(Median(below=0.05), at="Theorem 3")
def layer(results: Results) -> list[float]:
    """A whole transformer layer can be pruned out of two random ones.

    Largest error of a position's output, twenty inputs.
    """
    return [each.layer for each in results.seeds]


@study.claim(Median(below=0.05), at="Theorem 3")
def transformer(results: Results) -> list[float]:
    """A random transformer of 4L layers can be pruned into a given one of L layers.

    Largest error of a position's output, two target layers, twenty inputs.
    """
    return [each.transformer for each in results.seeds]


@study.claim(Median(below=0.05), at="Corollary 3")
def same_matrix(results: Results) -> list[float]:
    """Two different functions can share a pruned matrix entry by entry.

    Largest relative error of the two functions.
    """
    return [each.shared for each in results.seeds]


@study.figure
def pruning(results: Results) -> Figure:
    example = results.seeds[0]
    figure, axes = figures.new(columns=4, width=3.0, height=2.8)
    figures.band(axes[0], COPIES, results.linear_errors)
    axes[0].set_yscale("log")
    axes[0].set(title="pruned linear map", xlabel="random units per input", ylabel="spectral error")
    titles = ("shared by both functions", "only in the identity", "only in the swap")
    for axis, matrix, title in zip(axes[1:], (example.shared_matrix, *example.last_matrices), titles):
        figures.heatmap(axis, np.abs(matrix[:, :48]), title=title, x="hidden unit", y="output", bar=False)
    return figure
