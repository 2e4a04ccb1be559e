"""A weight matrix by itself says nothing: random networks pruned into given ones.

What can be read off one weight matrix? Nothing: the same pruned matrix serves the identity and a swap.

First panel: spectral error of a pruned random pair of matrices against the number of random hidden units per input.
Second: a given random transformer of four layers of one shape is masked into a target layer, and nothing is drawn
again when that fails; success against width. Third: the matrix that both functions share. Then the matrices in which
they differ. A seed whose random signs are unlucky can leave a large error, so medians are judged, or success counted.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.circuits.dyck.masks import apply_masks, find_masks, random_transformer
from sandlab.circuits.dyck.pruning import (
    TheoryLayerWeights,
    layer_output,
    prune_layer,
    prune_linear,
    prune_transformer,
    random_layer,
    shared_matrix,
)
from sandlab.errors import BadInput
from sandlab.studies.claims import Mean, Median, Share
from sandlab.studies.dyck._shared import SOURCE
from sandlab.studies.study import Lab, Study

COPIES = (4, 8, 12, 16, 20, 24)
WIDTH, TARGET_WIDTH, POSITIONS, INPUTS = 48, 4, 8, 20
UNITS = (8, 16, 32, 64, 96)
"""Hidden units of the given transformer for each hidden unit of the target."""
TARGET_HIDDEN, GOOD = 6, 0.05


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
class MaskJob:
    """One random transformer of each width, given once."""

    seed: int


@dataclass(frozen=True)
class Results:
    """masked: largest error of the masked transformer (draw, units), infinite where no masks exist."""

    seeds: list[Pruning]
    masked: np.ndarray

    @property
    def linear_errors(self) -> Float[np.ndarray, "seed copies"]:
        return np.stack([each.linear for each in self.seeds])


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    jobs = [PruneJob(seed, settings.size, settings.relu_copies) for seed in range(settings.seeds)]
    pruned = lab.map(prune, jobs, label="pruned networks")
    masks = [MaskJob(seed) for seed in range(4 * settings.seeds)]
    return Results(pruned, np.stack(lab.map(mask_errors, masks, label="masked transformers")))


def mask_errors(job: MaskJob) -> np.ndarray:
    """Largest error of random transformers of four layers under masks for one target layer, by width."""
    draw = np.random.default_rng([job.seed, 2])
    target = random_layer(TARGET_WIDTH, 2, TARGET_HIDDEN, rng=draw)
    return np.array([_mask_error(target, units, draw) for units in UNITS])


def _mask_error(target: TheoryLayerWeights, units: int, draw: np.random.Generator) -> float:
    hidden = units * TARGET_HIDDEN
    given = random_transformer(4, width=WIDTH, attention=20 * TARGET_WIDTH, hidden=hidden, rng=draw)
    try:
        masks = find_masks(given, [target])
    except BadInput:
        return float("inf")
    return _largest_error([target], apply_masks(given, masks), draw)


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


@study.claim(Share(above=0.5), at="Theorem 3", paper="with high probability")
def given_transformer(results: Results) -> np.ndarray:
    """A random transformer of 4L layers that is given, wide, and never drawn again can be masked into one of L layers.

    Share of draws at the largest width whose masked outputs err by less than 0.05, one target layer, twenty inputs.
    """
    return results.masked[:, -1] < GOOD


@study.claim(Mean(above=0.5), at="Theorem 3", paper="from 0 to 1 as the width grows")
def width_decides(results: Results) -> np.ndarray:
    """Whether that succeeds is a matter of width.

    Success (error below 0.05) at the largest width minus success at the smallest, mean over draws.
    """
    good = results.masked < GOOD
    return good[:, -1].astype(float) - good[:, 0]


@study.claim(Median(below=0.05), at="Corollary 3")
def same_matrix(results: Results) -> list[float]:
    """Two different functions can share a pruned matrix entry by entry.

    Largest relative error of the two functions.
    """
    return [each.shared for each in results.seeds]


@study.figure
def pruning(results: Results) -> Figure:
    example = results.seeds[0]
    figure, axes = figures.new(columns=5, width=2.8, height=2.8)
    figures.band(axes[0], COPIES, results.linear_errors)
    axes[0].set_yscale("log")
    axes[0].set(title="pruned linear map", xlabel="random units per input", ylabel="spectral error")
    titles = ("shared by both functions", "only in the identity", "only in the swap")
    axes[1].plot(UNITS, (results.masked < GOOD).mean(0), marker="o")
    axes[1].set(
        title="given transformer, masked", xlabel="hidden units per target unit", ylabel="share with error < 0.05"
    )
    axes[1].set_ylim(-0.03, 1.03)
    for axis, matrix, title in zip(axes[2:], (example.shared_matrix, *example.last_matrices), titles):
        figures.heatmap(axis, np.abs(matrix[:, :48]), title=title, x="hidden unit", y="output", bar=False)
    return figure
