"""From conditionals to the joint law: the bound of Theorem 4.1.4 against the distance it bounds.

Two coupled spins with fields; the model is fitted by pseudolikelihood with m masks per sample, and the bound is
evaluated with its own constants: the fitted loss in its KL form, the tensorisation constant of the fitted model, and
β, the smallest conditional. The parameter space is taken as finite (covering number 1), which only lowers the bound.
It is far from tight (above 1 at all these sizes, where it says nothing); what is checked is that it holds and falls
with n and m. The null replaces the fitted model by a sample of the wrong sign, at which the distance does not fall.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from matplotlib.figure import Figure
from scipy.special import logsumexp

from sandlab import figures
from sandlab.learning.parallel.generalization import TotalVariationBound, empirical_law, sampled_divergence
from sandlab.learning.parallel.pseudolikelihood import draw_counts, fit_masked
from sandlab.lenses.parallel.mixing import tensorisation_constant
from sandlab.random import rng
from sandlab.studies.claims import Order, Share, Slope
from sandlab.studies.parallel import _shared as shared
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.parallel.families import Ising
from sandlab.worlds.parallel.finite import FiniteLaw, size_masks

WORLD = Ising(2, 0.4, 0.2)


@dataclass(frozen=True)
class Settings:
    """Samples n, masks m for each, data sets of each size; sign −1 fits a world of opposite coupling."""

    samples: tuple[int, ...] = (100, 1000, 10000)
    masks: tuple[int, ...] = (1, 8)
    seeds: int = 12
    sign: float = 1.0


QUICK = Settings()
study = Study(
    "parallel/generalization-bound",
    title="The distance of joint laws stays below the bound from conditionals, and both fall with data",
    source=shared.SOURCE,
    at="Theorem 4.1.4",
    quick=QUICK,
    full=replace(QUICK, samples=(100, 1000, 10000, 100000), masks=(1, 8, 64), seeds=40),
    null=replace(QUICK, sign=-1.0),
)


@dataclass(frozen=True)
class Case:
    samples: int
    masks: int
    seed: int
    sign: float


@dataclass(frozen=True)
class Results:
    """distance and bound, each (n, m, seed)."""

    samples: tuple[int, ...]
    masks: tuple[int, ...]
    distance: np.ndarray
    bound: np.ndarray


def compare(job: Case) -> np.ndarray:
    """Total variation between fitted and true law, and the bound."""
    stream, masks = rng(job.seed, "pairs", job.samples, job.masks), size_masks(2, 1)
    fitted_world = replace(WORLD, coupling=job.sign * 0.4)
    states = fitted_world.draw(job.samples, rng=stream).numpy() @ np.array([2, 1])
    theta = fit_masked(WORLD, states, size=1, masks_per_sample=job.masks, rng=stream).theta
    scores = WORLD.statistics @ theta
    model = FiniteLaw(2, np.exp(scores - logsumexp(scores)))
    data = draw_counts(states, masks, 4, masks_per_sample=job.masks, rng=stream)
    loss = sampled_divergence(empirical_law(2, 4, states), model, data)
    floor = min(float(model.conditional(mask).min()) for mask in masks.masks)
    bound = TotalVariationBound(2, 2, job.samples, job.masks, floor=floor)
    constant = tensorisation_constant(model, masks, starts=3)
    return np.array([0.5 * np.abs(model.probs - WORLD.law.probs).sum(), bound(loss, constant)])


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    sizes = [(n, m) for n in settings.samples for m in settings.masks]
    jobs = [Case(*size, seed, settings.sign) for size in sizes for seed in range(settings.seeds)]
    shape = (len(settings.samples), len(settings.masks), settings.seeds, 2)
    found = np.array(lab.map(compare, jobs, label="fits")).reshape(shape)
    return Results(settings.samples, settings.masks, found[..., 0], found[..., 1])


@study.claim(Share(above=0.9), at="Theorem 4.1.4", paper="with probability at least 0.9", presets=("full",))
def bound_holds(results: Results) -> list[bool]:
    """The distance lies below the bound.

    Share of all fits.
    """
    return (results.distance < results.bound).ravel().tolist()


@study.claim(Slope(between=(-0.7, -0.3)), at="Theorem 4.1.4", paper="n^(−1/2)")
def distance_falls(results: Results) -> np.ndarray:
    """The distance falls as 1/√n.

    Slope of log distance over log n, all fits.
    """
    x = np.log(np.array(results.samples, dtype=float))
    logs = np.log(np.maximum(results.distance, 1e-12))
    return np.stack([np.broadcast_to(x[:, None, None], logs.shape).ravel(), logs.ravel()], 1)


@study.claim(Order(above=0.0), at="Theorem 4.1.4")
def more_data_help(results: Results) -> np.ndarray:
    """Each tenfold of samples brings the distance down.

    Minus the distance at each n, mean over m, by data set.
    """
    return -results.distance.mean(1)


@study.table
def distances(results: Results) -> Rows:
    return [
        {"n": n, "m": m, "distance": float(results.distance[i, j].mean()), "bound": float(results.bound[i, j].mean())}
        for i, n in enumerate(results.samples)
        for j, m in enumerate(results.masks)
    ]


@study.figure
def both(results: Results) -> Figure:
    figure, (axis,) = figures.new(width=5.6, title="The bound holds and is loose")
    for j, m in enumerate(results.masks):
        figures.band(axis, results.samples, results.bound[:, j].T, f"bound, {m} mask{'s' if m > 1 else ''} per sample")
    figures.band(axis, results.samples, results.distance.mean(1).T, "distance", marker="o")
    axis.axhline(1.0, color="#555555", linestyle=":")
    axis.set(xscale="log", yscale="log", xlabel="training samples", ylabel="total variation of joint laws")
    axis.legend()
    return figure
