"""Conditionals that were learnt one by one need not have a joint law, and Gibbs sampling amplifies their errors.

Section 4.1.3 bounds the distance of joint laws by the error of the conditionals times the tensorisation constant.
Here the exact conditionals of four coupled spins get errors of a given size (each logit of p(x_i | x_−i) plus
Gaussian noise), as a masked language model would have. Two things are measured exactly for each draw: whether a joint
law exists at all (ratios around squares of states multiply to 1), and how far the law of Gibbs sampling with these
conditionals lies from the truth, relative to the error of the conditionals. Strong coupling amplifies. The null has
no coupling.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.lenses.parallel.dependence import conditional_consistency
from sandlab.random import rng
from sandlab.studies.claims import Mean, Ratio
from sandlab.studies.parallel import _shared as shared
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.parallel.families import Ising


@dataclass(frozen=True)
class Settings:
    """Couplings from weak to strong, size of the errors, and draws of them."""

    couplings: tuple[float, ...] = (0.0, 0.2, 0.4, 0.6, 0.8)
    noise: float = 0.1
    seeds: int = 30


QUICK = Settings()
study = Study(
    "parallel/inconsistent-conditionals",
    title="Errors of conditionals have no joint law, and strong coupling amplifies them",
    source=shared.SOURCE,
    at="§4.1.3, Proposition 4.3.1",
    quick=QUICK,
    full=replace(QUICK, seeds=200),
    null=replace(QUICK, couplings=(0.0, 0.0, 0.0, 0.0, 0.0), noise=1e-4),
)


@dataclass(frozen=True)
class Case:
    coupling: float
    noise: float
    seed: int


@dataclass(frozen=True)
class Results:
    """cycle and amplification, each (coupling, seed)."""

    couplings: tuple[float, ...]
    cycle: np.ndarray
    amplified: np.ndarray


def perturb(job: Case) -> np.ndarray:
    """Mean cycle and amplification of one draw of errors."""
    law = Ising(4, job.coupling).law
    draws = torch.randn(16, 4, 2, generator=rng(job.seed, "errors"), dtype=torch.float64).numpy()
    table = law.site_conditionals() * np.exp(job.noise * draws)
    for site, mask in enumerate(np.eye(4, dtype=bool)):
        groups = law.groups(mask)
        # p(x_i | x_−i) cannot depend on x_i: both states of a pair get the same errors.
        table[groups, site] = table[groups[:, :1], site]
    report = conditional_consistency(table / table.sum(-1, keepdims=True), law)
    return np.array([report.mean_cycle, report.amplified])


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    jobs = [Case(j, settings.noise, seed) for j in settings.couplings for seed in range(settings.seeds)]
    found = np.array(lab.map(perturb, jobs, label="errors")).reshape(len(settings.couplings), settings.seeds, 2)
    return Results(settings.couplings, found[..., 0], found[..., 1])


@study.claim(Mean(above=0.01), source=shared.SPEC, at="§5")
def no_joint_law(results: Results) -> np.ndarray:
    """Conditionals with independent errors have no joint law.

    Mean |log-ratio| around squares of states, mean over couplings.
    """
    return results.cycle.mean(0)


@study.claim(Ratio(above=1.5), at="Proposition 4.3.1", paper="KL ≤ C_AT · L: C_AT grows with the coupling")
def coupling_amplifies(results: Results) -> np.ndarray:
    """Strong coupling amplifies errors more than none.

    Amplification at the largest coupling over that at the smallest, the same errors.
    """
    return results.amplified[-1] / results.amplified[0]


@study.table
def amplification(results: Results) -> Rows:
    return [
        {"J": j, "mean cycle": float(cycle.mean()), "amplification": float(np.median(ratio))}
        for j, cycle, ratio in zip(results.couplings, results.cycle, results.amplified)
    ]


@study.figure
def amplified(results: Results) -> Figure:
    figure, (axis,) = figures.new(width=6.0, title="Strong coupling amplifies the errors of conditionals")
    figures.band(axis, results.couplings, results.amplified.T, "median and range of draws", marker="o")
    axis.set(xlabel="coupling J", ylabel="error of joint law / of conditionals")
    axis.legend()
    return figure
