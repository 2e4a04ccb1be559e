"""The whole density of the next observation identifies a Gaussian HMM without any assumption on its centres.

Given one x₁, x₂ is a mixture of unit Gaussians. Hermite moments along a direction and Prony's method give its centres,
values of the density at k points the transitions (Theorem 9). With exact moments the recovery is exact; with sampled
ones (k = 2) the error falls with the number of draws. Of twenty directions that with the best conditioned Hankel matrix
is used; with sampled moments the first million draws choose it.

The null has the moments and densities of another model.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.learning.hmm.density_recovery import (
    HermiteMoments,
    exact_moments,
    hankel_condition,
    mixture_from_moments,
    sampled_moments,
    transitions_from_density,
)
from sandlab.learning.hmm.recovery import parameter_error
from sandlab.studies.claims import Mean, Share, Slope
from sandlab.studies.hmm import _shared as shared
from sandlab.studies.study import Lab, Study
from sandlab.worlds.hmm.instances import make_ghmm, named_hmm, random_ghmm
from sandlab.worlds.hmm.models import GaussianHMM

CHUNK = 1_000_000
"""Draws that are held at once."""


@dataclass(frozen=True)
class Settings:
    """Random models (k, d) with exact moments; sample sizes for two states; other: moments of another model (null)."""

    models: tuple[tuple[int, int], ...] = ((2, 2), (3, 3), (4, 5))
    seeds: int = 20
    sizes: tuple[int, ...] = (10_000, 100_000, 1_000_000)
    sample_seeds: int = 10
    other: bool = False


@dataclass(frozen=True)
class Job:
    settings: Settings
    seed: int
    size: int = 0


@dataclass(frozen=True)
class Results:
    """Largest errors of (M, T): exact by (model, seed); sampled by (size, seed)."""

    sizes: tuple[int, ...]
    exact: np.ndarray
    sampled: np.ndarray


QUICK = Settings()
study = Study(
    "hmm/density",
    title="The density of the next observation identifies a Gaussian HMM, whatever the lengths of its centres",
    source=shared.SOURCE,
    at="Theorem 9",
    quick=QUICK,
    full=replace(QUICK, seeds=100, sizes=(10**4, 10**5, 10**6, 10**7, 10**8), sample_seeds=20),
    null=replace(QUICK, other=True),
)


def directions(d: int, rng: np.random.Generator) -> np.ndarray:
    found = rng.normal(size=(20, d))
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def stretched(k: int, d: int, seed: int) -> GaussianHMM:
    """Random centres of different lengths, between 0.7 and 1.5."""
    rng = np.random.default_rng(seed)
    ghmm = random_ghmm(d, k, rng)
    return make_ghmm(ghmm.M * rng.uniform(0.7, 1.5, size=k), ghmm.T)


def exact_recovery(job: Job) -> np.ndarray:
    """Largest error of (M, T) from exact moments, one model after the other."""
    errors = []
    for k, d in job.settings.models:
        rng, truth = np.random.default_rng(job.seed), stretched(k, d, job.seed)
        source = stretched(k, d, job.seed + 1000) if job.settings.other else truth
        weights = (source.T @ source.posterior(rng.normal(size=(1, d))).T)[:, 0]
        moments = [exact_moments(weights, source.M, direction) for direction in directions(d, rng)]
        centres = mixture_from_moments(min(moments, key=hankel_condition))[1]
        errors.append(parameter_error(truth, centres, transitions_from_density(source, centres, rng)).largest)
    return np.array(errors)


def sampled_recovery(job: Job) -> float:
    """Frobenius error of the centres of `ghmm-k2` from draws of x₂ given x₁ = 0."""
    rng, truth = np.random.default_rng([job.seed, job.size]), named_hmm("ghmm-k2")
    assert isinstance(truth, GaussianHMM)
    source = stretched(2, 2, 77) if job.settings.other else truth
    weights = (source.T @ source.posterior(np.zeros((1, 2))).T)[:, 0]
    looks, parts, left = directions(2, np.random.default_rng(0)), [], job.size
    while left:
        count = min(left, CHUNK)
        x = source.M[:, rng.choice(2, size=count, p=weights)].T + rng.normal(size=(count, 2))
        found = [sampled_moments(x, direction, 2) for direction in looks]
        best = min(range(len(looks)), key=lambda index: hankel_condition(found[index]))
        looks = looks[best : best + 1]  # the first draws choose the direction
        parts.append((count, found[best]))
        left -= count
    moments = HermiteMoments(
        np.sum([count * part.direct for count, part in parts], axis=0) / job.size,
        np.sum([count * part.mixed for count, part in parts], axis=0) / job.size,
    )
    centres = mixture_from_moments(moments)[1]
    return parameter_error(truth, centres, truth.T).means_frobenius


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    exact = lab.map(exact_recovery, [Job(settings, seed) for seed in range(settings.seeds)], label="exact moments")
    jobs = [Job(settings, seed, size) for size in settings.sizes for seed in range(settings.sample_seeds)]
    sampled = np.array(lab.map(sampled_recovery, jobs, label="sampled moments"))
    return Results(settings.sizes, np.array(exact).T, sampled.reshape(len(settings.sizes), -1))


@study.claim(Share(above=0.8), paper="identifiable")
def exact_moments_give_the_model(results: Results) -> list[bool]:
    """Exact moments and densities give (M, T), although the centres have different lengths.

    Share of random models whose largest error is below 1e-6.
    """
    return (results.exact < 1e-6).ravel().tolist()


@study.claim(Slope(between=(-0.7, -0.3)))
def sampled_moments_approach_it(results: Results) -> np.ndarray:
    """With sampled moments the error falls like n^(−1/2).

    Slope of the logarithm of the median error over seeds against log n, with one point per size and half of the seeds.
    """
    halves = np.array_split(results.sampled, 2, axis=1)
    points = [[np.log(n), np.log(np.median(h[i]))] for h in halves for i, n in enumerate(results.sizes)]
    return np.array(points)


@study.claim(Mean(below=0.2), presets=("quick",))
def a_million_draws(results: Results) -> np.ndarray:
    """A million draws of x₂ for one x₁ give the centres of two states.

    Frobenius error of M at the largest size.
    """
    return results.sampled[-1]


@study.figure
def errors(results: Results) -> Figure:
    figure, (left, right) = figures.new(2, title="Moments of the density give the centres")
    left.boxplot([np.log10(np.maximum(row, 1e-16)) for row in results.exact])
    left.set_xticks(
        range(1, len(results.exact) + 1), [f"k = {k}, d = {d}" for k, d in QUICK.models][: len(results.exact)]
    )
    left.set(ylabel="log₁₀ of the largest error of (M, T)", title="exact moments")
    figures.band(right, results.sizes, results.sampled.T)
    right.set(
        xscale="log", yscale="log", xlabel="draws of x₂", ylabel="Frobenius error of M", title="sampled, two states"
    )
    return figure
