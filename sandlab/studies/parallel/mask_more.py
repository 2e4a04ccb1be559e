"""Predicting more hidden spins at once estimates better: k-pseudolikelihood on four spins.

Figures 4.1 (J = 0.05, nearly uniform) and 4.2 (J = 0.3, two modes). Four spins, all coupled, no fields; six couplings
and four fields are fitted from n samples with **one** uniform mask of k spins per sample. The mean squared error per
parameter falls as Tr Γ^k/(10 n), Γ^k being the inverse of the information of size-k masks, which theory orders:
Γ^{k+1} ⪯ Γ^k. k = 4 is maximum likelihood.

The source states neither sample sizes nor how many masks are drawn. With all masks of every sample the effect is gone
(the traces are 16.337, 16.327, 16.327, 16.327 at J = 0.3), so one mask per sample it must be. The null fits exactly
so.

**What was learnt.** At n = 100 and J = 0.3 some samples of k = 1 are nearly separable, the estimate runs off, and the
mean over repetitions says little; from 300 samples on all points lie on the lines of the theory.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.learning.parallel.information import asymptotic_variance
from sandlab.learning.parallel.pseudolikelihood import fit_masked
from sandlab.random import rng
from sandlab.studies.claims import Exact, NotMeasured, Order, Ratio, Slope
from sandlab.studies.parallel import _shared as shared
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.parallel.families import Ising
from sandlab.worlds.parallel.finite import size_masks


@dataclass(frozen=True)
class Settings:
    """Ground truths, sample sizes and repetitions; masks: per sample, a number or "all"."""

    couplings: tuple[float, ...] = (0.05, 0.3)
    samples: tuple[int, ...] = (100, 300, 1000, 3000, 10000)
    seeds: int = 40
    masks: str = "one"


FULL = Settings()
study = Study(
    "parallel/mask-more",
    title="Predicting more hidden spins at once gives better estimates from the same data",
    source=shared.SOURCE,
    at="Figures 4.1 and 4.2, Theorem 4.1.1",
    quick=FULL,
    full=replace(FULL, seeds=200),
    null=replace(FULL, masks="all"),
)


@dataclass(frozen=True)
class Repetition:
    """One data set of one size."""

    coupling: float
    samples: int
    seed: int
    masks: str


@dataclass(frozen=True)
class Results:
    """error[J, n, k, seed]: mean over parameters of the squared error; trace[J, k] = Tr Γ^k of one mask per sample."""

    couplings: tuple[float, ...]
    samples: tuple[int, ...]
    error: np.ndarray
    trace: np.ndarray
    gap: np.ndarray

    def at(self, samples: int) -> np.ndarray:
        """(J, k, seed)"""
        return self.error[:, self.samples.index(samples)]


def errors(job: Repetition) -> np.ndarray:
    """Mean squared error of each k = 1 … 4 on the same samples."""
    world = Ising(4, job.coupling)
    stream = rng(job.seed, "states", str(job.coupling), job.samples)
    states = world.draw(job.samples, rng=stream).numpy() @ np.array([8, 4, 2, 1])
    count: int | str = "all" if job.masks == "all" else 1
    fits = [fit_masked(world, states, size=k, masks_per_sample=count, rng=stream).theta for k in (1, 2, 3, 4)]
    return np.array([np.mean((theta - world.parameter) ** 2) for theta in fits])


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    cells = [(coupling, samples) for coupling in settings.couplings for samples in settings.samples]
    jobs = [Repetition(*cell, seed, settings.masks) for cell in cells for seed in range(settings.seeds)]
    found = np.array(lab.map(errors, jobs, label="fits"))
    shape = (len(settings.couplings), len(settings.samples), settings.seeds, 4)
    variances = [_variances(coupling) for coupling in settings.couplings]
    trace = np.array([[np.trace(each) for each in row] for row in variances])
    gap = np.array([[np.linalg.eigvalsh(a - b)[0] for a, b in itertools.pairwise(row)] for row in variances])
    return Results(settings.couplings, settings.samples, found.reshape(shape).swapaxes(2, 3), trace, gap)


def _variances(coupling: float) -> list[np.ndarray]:
    world = Ising(4, coupling)
    return [asymptotic_variance(world.law, world.statistics, size_masks(4, k)) for k in (1, 2, 3, 4)]


@study.claim(Order(above=0.0), at="Figure 4.1", paper="larger k, lower error")
def weak_coupling(results: Results) -> np.ndarray:
    """At J = 0.05 the error falls from k = 1 to 2 to 3, from the same 10 000 samples.

    Minus the mean squared error per parameter of k = 1, 2, 3, times n.
    """
    return -10_000 * results.at(10_000)[0, :3]


@study.claim(Order(above=0.0), at="Figure 4.2", paper="larger k, lower error")
def strong_coupling(results: Results) -> np.ndarray:
    """At J = 0.3 too.

    Minus the mean squared error per parameter of k = 1, 2, 3, times n.
    """
    return -10_000 * results.at(10_000)[1, :3]


@study.claim(Order(above=0.0), at="Figures 4.1 and 4.2", paper="larger k, lower error")
def at_1000_samples(results: Results) -> np.ndarray:
    """And at 1000 samples.

    Minus the squared error per parameter of k = 1, 2, 3, times n, mean of both couplings.
    """
    return -1000 * results.at(1000)[:, :3].mean(0)


@study.claim(Ratio(below=1.05), at="Figures 4.1 and 4.2", paper="k = 4 lowest")
def likelihood_is_no_worse(results: Results) -> np.ndarray:
    """Maximum likelihood is at most 5 % worse than k = 3.

    Error of k = 4 over error of k = 3 at n = 10 000, geometric mean of both couplings.
    """
    _need_masks(results)
    return np.exp(np.log(results.at(10_000)[:, 3] / results.at(10_000)[:, 2]).mean(0))


@study.claim(Ratio(between=(0.7, 1.3)), at="Lemma 4.1.1", paper="E‖θ̂ − θ‖² → Tr Γ/n")
def theory_k1(results: Results) -> np.ndarray:
    """With one hidden spin the error is the theory's.

    Mean over repetitions in groups of four of the error at n = 10 000, over Tr Γ/(10 n), geometric mean of couplings.
    """
    return _against_theory(results, 0)


@study.claim(Ratio(between=(0.7, 1.3)), at="Lemma 4.1.1", paper="E‖θ̂ − θ‖² → Tr Γ/n")
def theory_k2(results: Results) -> np.ndarray:
    """With two.

    The same for k = 2.
    """
    return _against_theory(results, 1)


@study.claim(Ratio(between=(0.7, 1.3)), at="Lemma 4.1.1", paper="E‖θ̂ − θ‖² → Tr Γ/n")
def theory_k3(results: Results) -> np.ndarray:
    """With three.

    The same for k = 3.
    """
    _need_masks(results)
    return _against_theory(results, 2)


def _need_masks(results: Results) -> None:
    """Estimators that differ in what they hide have different errors."""
    errors = results.at(10_000).mean((0, 2))
    if errors.max() < 1.1 * errors.min():
        raise NotMeasured("masks of different sizes")


def _against_theory(results: Results, place: int) -> np.ndarray:
    """Group means, whose logarithm is nearly unbiased, unlike that of single squared errors."""
    found = results.at(10_000)[:, place] / (results.trace[:, place, None] / (10 * 10_000))
    groups = found.reshape(len(found), -1, 4).mean(-1) if found.shape[1] % 4 == 0 else found
    return np.exp(np.log(groups).mean(0))


@study.claim(Slope(between=(-1.15, -0.85)), at="Figures 4.1 and 4.2")
def falls_as_one_over_n(results: Results) -> np.ndarray:
    """The error falls as 1/n.

    Slope of the logarithm of the mean error over log n, all k and couplings, n from 300 on.
    """
    _need_masks(results)
    start = results.samples.index(300)
    logs = np.log(results.error.mean(-1))[:, start:]
    centred = logs - logs.mean(1, keepdims=True)
    x = np.log(np.array(results.samples[start:], dtype=float))
    points = [(n, value) for row in centred for n, values in zip(x, row) for value in values]
    return np.array(points)


@study.claim(Exact(above=-1e-10), at="Theorem 4.1.1", paper="Γ^{k+1} ⪯ Γ^k")
def masking_more_is_better(results: Results) -> np.ndarray:
    """The exact variance never grows with the number of hidden spins.

    Smallest eigenvalue of Γ^k − Γ^{k+1}, k = 1, 2, 3, both couplings.
    """
    return results.gap.ravel()


@study.table
def errors_and_theory(results: Results) -> Rows:
    return [
        {
            "J": coupling,
            "n": n,
            "k": k,
            "squared error": float(results.error[i, j, k - 1].mean()),
            "theory": float(results.trace[i, k - 1] / (10 * n)),
        }
        for i, coupling in enumerate(results.couplings)
        for j, n in enumerate(results.samples)
        for k in (1, 2, 3, 4)
    ]


@study.figure
def error_against_samples(results: Results) -> Figure:
    figure, axes = figures.new(columns=len(results.couplings), title=study.title)
    n = np.array(results.samples, dtype=float)
    for i, (axis, coupling) in enumerate(zip(axes, results.couplings)):
        for k in (1, 2, 3, 4):
            runs, colour = results.error[i, :, k - 1], figures.COLOURS[k - 1]
            axis.errorbar(
                n * 1.03**k, runs.mean(1), shared.spread(runs.T), fmt="o", ms=4, color=colour, label=f"k = {k}"
            )
            axis.plot(n, results.trace[i, k - 1] / (10 * n), color=colour, linestyle="-", linewidth=1)
        axis.set(xscale="log", yscale="log", xlabel="training samples", ylabel="squared error per parameter")
        axis.set_title(f"J = {coupling:g} (lines: theory)")
        axis.legend()
    return figure
