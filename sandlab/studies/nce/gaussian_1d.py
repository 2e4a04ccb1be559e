"""One-dimensional means at distance 16: only normalised descent crosses the flat part.

Data N(16, 1), noise N(0, 1): 100 updates from the noise's coordinates, on fresh samples at every update.

**Set-up.** τ = [b, c], model exp(−x²/2 + bx − c), start at τ_q, 128.996 away from τ*. Each update draws 1000 examples
from each side (the source does not say how many). A step size is judged by the loss of its last iterate on 20 000 fresh
samples per side, as in the source; the curve is the best distance so far, mean and standard deviation over seeds.
Gradients are formed in log space with a common exponent, so that nothing overflows.

**What to look for.** The samples are linearly separable, so that empirical losses have no minimiser and decrease for
ever along a ray; which point of the ray one stops at depends on the step. The star on the right shows where the fresh
loss puts it, which is erratic: among runs that separate the fresh samples it is decided by the 10⁻¹⁰ or 10⁻⁴⁰ of a few
runs, so that other batch sizes or grids choose other steps (eNCE: 100 in the quick preset, 7 to 50 in the full one;
NCE: 1, 2 or 100). The order of the three methods is the same in every case tried. By distance instead of loss, NCE and
eNCE with normalised descent do equally well (steps 10 to 15, within 3 of the truth), and gradient descent at steps 30
to 50 comes more than halfway.

**Exact gradients** (last rows of the table) reverse the order of NCE and eNCE within 100 constant steps: the figure's
order is a statement about sampled gradients.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from matplotlib.figure import Figure

from sandlab.learning.nce.descent import optimise
from sandlab.learning.nce.problem import NCEProblem
from sandlab.studies.claims import Mean
from sandlab.studies.nce import _shared as shared
from sandlab.studies.nce._shared import Results, Search, Settings
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.nce.gaussians import GaussianMeans

RATES = (0.01, 0.1, 0.3, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 100.0)
MORE_RATES = (
    0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0, 10.0, 15.0, 20.0, 30.0, 50.0, 100.0
)  # fmt: skip
EXACT_RATES = (1.0, 2.0, 3.0, 5.0, 10.0, 30.0)
QUICK = Settings(GaussianMeans(16.0), RATES, RATES, cap=float("inf"))
study = Study(
    "nce/gaussian-1d",
    title="One-dimensional means at distance 16: normalised descent crosses the flat part",
    source=shared.SOURCE,
    at="section 4.1.6, figure 4.2",
    quick=QUICK,
    full=replace(
        QUICK, descent_rates=MORE_RATES, normalised_rates=MORE_RATES, batches=(1000, 100, 10_000, 100_000), seeds=20
    ),
    null=replace(QUICK, world=GaussianMeans(0.0)),  # data equal to the noise
    tour=True,
)


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    jobs = [Search(settings, method, batch=0) for method in shared.METHODS]
    exact = dict(zip(shared.METHODS, lab.map(exact_descent, jobs, label="exact")))
    return shared.search_all(settings, lab, exact)


def exact_descent(job: Search) -> tuple[float, float]:
    """The rate that comes closest to the truth with exact gradients (no batch), and its distance."""
    kind, method = shared.KINDS[job.method]
    problem = NCEProblem.of(job.settings.world, points=1001)
    best = optimise(problem, kind, method, rate=torch.tensor(EXACT_RATES), steps=job.settings.updates).best[-1]
    return EXACT_RATES[int(best.argmin())], float(best.min())


@study.claim(Mean(above=0.0), at="figure 4.2", paper="yes")
def normalised_first(results: Results) -> np.ndarray:
    """On the NCE loss normalised descent comes closer to the truth than gradient descent in 100 updates.

    Final best distance of NCE with descent minus with normalised descent, per seed (128.996 at the start).
    """
    return results.final(shared.DESCENT) - results.final(shared.NORMALISED)


@study.claim(Mean(above=0.0), at="figure 4.2", paper="yes")
def ence_first(results: Results) -> np.ndarray:
    """With normalised descent the eNCE loss comes closer to the truth than the NCE loss.

    Final best distance of normalised NCE minus that of normalised eNCE, per seed.
    """
    return results.final(shared.NORMALISED) - results.final(shared.EXPONENTIAL)


@study.claim(Mean(below=0.2), at="figure 4.2, left")
def ence_arrives(results: Results) -> np.ndarray:
    """Normalised descent on eNCE covers four fifths of the way.

    Final best distance of normalised eNCE over the distance at the start.
    """
    return results.final(shared.EXPONENTIAL) / results.initial


@study.claim(Mean(above=0.8), at="figure 4.2, left")
def descent_stuck(results: Results) -> np.ndarray:
    """Gradient descent on NCE covers less than a fifth of the way.

    Final best distance of NCE with gradient descent over the distance at the start.
    """
    return results.final(shared.DESCENT) / results.initial


@study.table
def step_sizes(results: Results) -> Rows:
    return shared.rate_table(results)


@study.figure
def distance(results: Results) -> Figure:
    return shared.draw_search(results, "100 updates at distance 16: only normalised descent on eNCE arrives")
