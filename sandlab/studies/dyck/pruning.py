"""A weight matrix by itself says nothing: random networks pruned into given ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sandlab import figures
from sandlab.circuits.dyck.pruning import (
    layer_output,
    prune_layer,
    prune_linear,
    prune_transformer,
    random_layer,
    shared_matrix,
)
from sandlab.studies.claims import Below, Claim
from sandlab.studies.dyck.runs import SOURCE
from sandlab.studies.study import Lab, Outcome, study

COPIES = (4, 8, 12, 16, 20, 24)


@dataclass(frozen=True)
class Settings:
    seeds: int = 5
    size: int = 6
    relu_copies: int = 96


@dataclass(frozen=True)
class PruneJob:
    seed: int
    size: int
    relu_copies: int


def prune(job: PruneJob) -> dict[str, Any]:
    """Errors of pruned linear maps, of a pruned transformer layer, and of two functions that share a matrix."""
    draw = np.random.default_rng(job.seed)
    target = draw.normal(size=(job.size, job.size))
    target /= np.linalg.norm(target, 2)
    errors = []
    for copies in COPIES:
        first, second = prune_linear(target, copies, rng=np.random.default_rng([job.seed, copies])).matrices
        errors.append(np.linalg.norm(second @ first - target, 2))
    layer = random_layer(4, 2, 8, rng=draw)
    before, after = prune_layer(layer, width=48, linear_copies=24, relu_copies=job.relu_copies, rng=draw)
    x = draw.normal(size=(4, 8))
    x /= np.linalg.norm(x, axis=0).max()
    padded = np.zeros((48, 8))
    padded[:4] = x
    found = layer_output(after, layer_output(before, padded))[:4]
    shared = shared_matrix(4, rng=draw)
    whole = _whole(job, np.random.default_rng([job.seed, 1]))
    return {
        "linear": np.array(errors),
        "layer": float(np.linalg.norm(found - layer_output(layer, x), axis=0).max()),
        "whole": whole,
        "shared": float(max(shared["identity_error"], shared["swap_error"])),
        "matrix": shared["shared"],
        "last": np.stack([shared["identity_last"], shared["swap_last"]]),
    }


def _whole(job: PruneJob, draw: np.random.Generator) -> float:
    """Two target layers out of eight random ones: the largest error of a position's output."""
    targets = [random_layer(4, 2, 8, rng=draw) for _ in range(2)]
    layers = prune_transformer(targets, width=48, linear_copies=24, relu_copies=job.relu_copies, rng=draw)
    x = draw.normal(size=(4, 8))
    x /= np.linalg.norm(x, axis=0).max()
    expected, found = x, np.concatenate([x, np.zeros((44, 8))])
    for target in targets:
        expected = layer_output(target, expected)
    for layer in layers:
        found = layer_output(layer, found)
    return float(np.linalg.norm(found[:4] - expected, axis=0).max())


@study(
    "dyck/pruning",
    title="Prune a random network and it becomes the one you want",
    source=f"{SOURCE}, Theorem 3 and Corollary 3",
    quick=Settings(),
    full=Settings(seeds=30),
    claims=[
        Claim(
            "exponential",
            "The error of a pruned linear map falls exponentially in the number of random copies.",
            f"{SOURCE}, Lemma on subset sums",
            "slope of log10 error per copy",
            Below(-0.15),
            paper="logarithmic width suffices",
        ),
        Claim(
            "layer",
            "A whole transformer layer can be pruned out of two random ones.",
            f"{SOURCE}, Theorem 3",
            "largest error of a position's output, median over seeds",
            Below(0.05),
            exact=True,
        ),
        Claim(
            "transformer",
            "A random transformer of 4L layers can be pruned into a given one of L layers.",
            f"{SOURCE}, Theorem 3",
            "largest error of a position's output, two target layers, median over seeds",
            Below(0.05),
            exact=True,
        ),
        Claim(
            "same-matrix",
            "Two different functions can share a pruned matrix entry by entry.",
            f"{SOURCE}, Corollary 3",
            "largest relative error of the two functions, median over seeds",
            Below(0.05),
            exact=True,
        ),
    ],
)
def pruning(config: Settings, lab: Lab) -> Outcome:
    """What can be read off one weight matrix? Nothing: the same pruned matrix serves the identity and a swap.

    Left: spectral error of a pruned random pair of matrices against the number of random hidden units per input.
    Middle: the matrix that both functions share. Right: the matrices in which they differ. A seed whose random signs
    are unlucky can leave a large error, so medians are judged.
    """
    jobs = [PruneJob(seed, config.size, config.relu_copies) for seed in range(config.seeds)]
    found = lab.map(prune, jobs, label="pruned networks")
    errors = np.stack([result["linear"] for result in found])
    slopes = [float(np.polyfit(COPIES, np.log10(row), 1)[0]) for row in errors]
    measurements: dict[str, Any] = {
        "exponential": slopes,
        "layer": float(np.median([result["layer"] for result in found])),
        "transformer": float(np.median([result["whole"] for result in found])),
        "same-matrix": float(np.median([result["shared"] for result in found])),
    }
    return Outcome(measurements, {"pruning": _draw(errors, found[0])})


def _draw(errors: np.ndarray, example: dict[str, Any]) -> Any:
    figure, axes = figures.new(columns=4, width=3.0, height=2.8)
    figures.band(axes[0], COPIES, errors)
    axes[0].set_yscale("log")
    axes[0].set(title="pruned linear map", xlabel="random units per input", ylabel="spectral error")
    titles = ("shared by both functions", "only in the identity", "only in the swap")
    for axis, matrix, title in zip(axes[1:], (example["matrix"], *example["last"]), titles):
        figures.heatmap(axis, np.abs(matrix[:, :48]), title=title, x="hidden unit", y="output", bar=False)
    return figure
