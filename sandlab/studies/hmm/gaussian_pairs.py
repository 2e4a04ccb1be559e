"""Predicting the next observation identifies a Gaussian HMM, where it does not identify a discrete one.

(a) Least squares on the exact predictor of `ghmm-canon` at 300 points, from random starts: every fit with loss 0 is
the truth, for x₂|x₁ as for the two-token tasks; others end in local minima. The contrast panel shows the discrete HMM,
whose fits of x₂|x₁ reach loss 0 anywhere. (b) The same regression on sampled pairs, started near the truth: the error
falls like n^(−1/2). (c) The error for centres of other lengths c, known to the fit.

Chosen after a look at results: that Adam on parts of a stored sample comes before least squares on all of it. One of
ten fits to 10⁵ pairs had left the neighbourhood of the truth for a local minimum, and the ratio of errors came out as
1.6 with an interval from 0.6 to 3.8. So were the numbers of starts and seeds in quick (40 and 20; 24 and 10 had left
16 and 12 good fits, all right, too few for a verdict). What is asked was not changed.

Full has the specification's d = 16, k = 8 and 10⁸ pairs, streamed and fitted by Adam; in (c) it has two seeds of each
length (`norm_seeds`; quick has three). There the error hardly falls from 10⁷ to 10⁸ pairs (a factor of 1.3, where √10
is expected): both fits take the same thousand steps, which may decide the error more than the pairs do; this was not
looked into. The null takes no step.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.learning.hmm.parametric import fit_parametric, fit_parametric_stream
from sandlab.learning.hmm.recovery import parameter_error
from sandlab.random import rng
from sandlab.studies.claims import NotMeasured, Ratio, Share
from sandlab.studies.hmm import _shared as shared
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.base import Batch
from sandlab.worlds.hmm.instances import make_ghmm, random_ghmm
from sandlab.worlds.hmm.masked import MaskedPrediction
from sandlab.worlds.hmm.models import HMM, GaussianHMM

TASKS = ("2|1", "2x3|1", "1x3|2")
GOOD = 1e-12
PART, FIRST_STEPS = 2000, 200
"""Pairs of a part of a stored sample, and how many such parts Adam sees before all pairs are fitted at once."""


@dataclass(frozen=True)
class Settings:
    """Starts and points of the exact fits; sizes and seeds of the sampled ones; d, k of a random model if not 3, 3.

    norms          lengths of the centres in (c), at the largest size
    stream_steps   batches of 10⁵ pairs at the largest size, by Adam (0: least squares on a stored sample)
    """

    starts: int = 40
    points: int = 300
    evaluations: int = 150
    sizes: tuple[int, ...] = (10_000, 100_000)
    seeds: int = 20
    norms: tuple[float, ...] = (0.5, 1.0, 2.0)
    norm_seeds: int = 3
    d: int = 3
    k: int = 3
    stream_steps: int = 0


@dataclass(frozen=True)
class Fit:
    settings: Settings
    task: str


@dataclass(frozen=True)
class Sample:
    settings: Settings
    size: int
    seed: int
    norm: float = 1.0
    device: str = "cpu"


@dataclass(frozen=True)
class Results:
    """Loss and error of every start, axes: task (the last is the discrete HMM), start.

    sampled, by_norm   Frobenius errors of M and T of the sampled fits, axes: size or norm, seed, parameter
    """

    loss: np.ndarray
    error: np.ndarray
    sizes: tuple[int, ...]
    sampled: np.ndarray
    norms: tuple[float, ...]
    by_norm: np.ndarray


QUICK = Settings()
study = Study(
    "hmm/gaussian-pairs",
    title="The next observation identifies a Gaussian HMM",
    source=shared.SOURCE,
    at="Theorem 5",
    quick=QUICK,
    full=Settings(
        sizes=(10**7, 10**8), seeds=5, norms=(0.5, 1.0, 2.0, 4.0), norm_seeds=2, d=16, k=8, stream_steps=1000
    ),
    null=replace(QUICK, evaluations=0),
)


def model(settings: Settings, norm: float = 1.0) -> GaussianHMM:
    d, k = settings.d, settings.k
    found = GaussianHMM() if (d, k) == (3, 3) else random_ghmm(d, k, np.random.default_rng(0))
    return make_ghmm(norm * found.M, found.T)


def exact_fits(job: Fit) -> np.ndarray:
    """(loss, error) of every start on `ghmm-canon`; the task "discrete" is x₂|x₁ of `hmm-canon`."""
    draw, settings = np.random.default_rng(0), job.settings
    ghmm, hmm = GaussianHMM(), HMM()
    truth: HMM | GaussianHMM
    if job.task == "discrete":
        starts, truth = draw.normal(size=(settings.starts, 21)), hmm
        targets = hmm.predictor("2|1").ravel()
        found = fit_parametric(("2|1",), targets, 4, 3, starts=starts, evaluations=settings.evaluations)
    else:
        points, starts = draw.normal(size=(settings.points, 3)), draw.normal(size=(settings.starts, 18))
        targets, truth = ghmm.predictor(job.task, points).ravel(), ghmm
        found = fit_parametric(
            (job.task,), targets, 3, 3, starts=starts, probes=points, evaluations=settings.evaluations
        )
    return np.array([[each.loss, parameter_error(truth, each.model.means, each.model.T).largest] for each in found])


def parameters(ghmm: GaussianHMM, norm: float) -> np.ndarray:
    """What the fit starts from: the centres, scaled to length 1, and the logarithms of T."""
    return np.concatenate([(ghmm.M / norm).ravel(), np.log(np.maximum(ghmm.T, 1e-3)).ravel()])


def sampled_fit(job: Sample) -> np.ndarray:
    """Frobenius errors of M and T of the regression of x₂ on x₁, started near the truth (sd 0.3)."""
    settings, draw = job.settings, np.random.default_rng(job.seed)
    ghmm, d, k = model(settings, job.norm), settings.d, settings.k
    near = parameters(ghmm, job.norm)
    start = near + draw.normal(scale=0.3, size=len(near))
    world, generator = MaskedPrediction(ghmm, "2|1"), rng(job.seed, "pairs", job.size, device=job.device)
    if settings.stream_steps:
        batch_size = max(1, job.size // settings.stream_steps)

        def batch() -> tuple[torch.Tensor, torch.Tensor]:
            found = world.sample(batch_size, rng=generator)
            return found.inputs, found.targets

        fitted = fit_parametric_stream("2|1", batch, d, k, start=start, norm=job.norm, steps=settings.stream_steps)
    else:
        fitted = stored_fit(job, world.sample(job.size, rng=generator), start)
    error = parameter_error(ghmm, fitted.M, fitted.T)
    return np.array([error.means_frobenius, error.transitions_frobenius])


def stored_fit(job: Sample, pairs: Batch, start: np.ndarray) -> GaussianHMM:
    """Least squares on a stored sample: Adam on random parts of it stays near its start, then all pairs at once."""
    settings, draw = job.settings, np.random.default_rng(job.seed)
    d, k, x, targets = settings.d, settings.k, pairs.inputs.double().cpu(), pairs.targets.double().cpu()

    def part() -> tuple[torch.Tensor, torch.Tensor]:
        chosen = torch.from_numpy(draw.integers(len(x), size=PART))
        return x[chosen], targets[chosen]

    if settings.evaluations:
        near = fit_parametric_stream("2|1", part, d, k, start=start, norm=job.norm, steps=FIRST_STEPS)
        start = parameters(near, job.norm)
    (one,) = fit_parametric(
        ("2|1",),
        targets.flatten().numpy(),
        d,
        k,
        starts=start[None],
        probes=x.numpy(),
        norm=job.norm,
        evaluations=min(settings.evaluations, 30),
    )
    assert isinstance(one.model, GaussianHMM)
    return one.model


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    fits = np.array(lab.map(exact_fits, [Fit(settings, task) for task in (*TASKS, "discrete")], label="exact"))
    jobs = [Sample(settings, size, seed, 1.0, lab.device) for size in settings.sizes for seed in range(settings.seeds)]
    lengths = [
        Sample(settings, settings.sizes[-1], 100 + seed, norm, lab.device)
        for norm in settings.norms
        for seed in range(settings.norm_seeds)
    ]
    sampled = np.array(lab.map(sampled_fit, jobs, label="sampled"))
    by_norm = np.array(lab.map(sampled_fit, lengths, label="lengths of centres"))
    return Results(
        fits[..., 0],
        fits[..., 1],
        settings.sizes,
        sampled.reshape(len(settings.sizes), settings.seeds, 2),
        settings.norms,
        by_norm.reshape(len(settings.norms), settings.norm_seeds, 2),
    )


@study.claim(Share(above=0.8), at="Theorem 5", paper="identifiable")
def good_fits_are_right(results: Results) -> list[bool]:
    """Every fit of x₂|x₁ with loss 0 is the truth.

    Share of fits with loss < 1e-12 whose largest error is below 1e-5.
    """
    good = results.error[0][results.loss[0] < GOOD]
    if not len(good):
        raise NotMeasured("no fit reached loss 0")
    return (good < 1e-5).tolist()


@study.claim(Share(above=0.8), at="Theorem 8", paper="identifiable")
def good_two_token_fits_are_right(results: Results) -> list[bool]:
    """So is every fit of a two-token task with loss 0 (these centres have unequal Gram row sums).

    Share of fits of 2⊗3|1 and 1⊗3|2 with loss < 1e-12 whose largest error is below 1e-5.
    """
    good = results.error[1:3][results.loss[1:3] < GOOD]
    if not len(good):
        raise NotMeasured("no fit reached loss 0")
    return (good < 1e-5).tolist()


@study.claim(Share(above=0.8), at="Theorem 4", paper="not identifiable")
def discrete_fits_are_wrong(results: Results) -> list[bool]:
    """Fits of x₂|x₁ of the discrete HMM with loss 0 are not the truth.

    Share of fits with loss < 1e-12 whose largest error is above 0.01.
    """
    good = results.error[3][results.loss[3] < GOOD]
    if not len(good):
        raise NotMeasured("no fit reached loss 0")
    return (good > 0.01).tolist()


@study.claim(Ratio(between=(2.0, 5.0)), at="Theorem 5", paper="√10 by theory")
def error_falls_like_the_root(results: Results) -> np.ndarray:
    """Ten times as many pairs make the error smaller by √10.

    Frobenius error of (M, T) at the smaller size divided by that at ten times the size, by seed.
    """
    norms = np.sqrt((results.sampled**2).sum(-1))
    return norms[0] / norms[-1]


@study.table
def fits(results: Results) -> Rows:
    names = (*TASKS, "2|1 of the discrete HMM")
    return [
        {
            "task": name,
            "fits with loss 0": int((loss < GOOD).sum()),
            "of": len(loss),
            "their largest error": float(error[loss < GOOD].max(initial=0.0)),
            "losses of the others": ", ".join(f"{each:.2g}" for each in sorted(loss[loss >= GOOD])),
        }
        for name, loss, error in zip(names, results.loss, results.error)
    ]


@study.figure
def errors(results: Results) -> Figure:
    figure, (left, middle, right) = figures.new(
        3, title="Loss 0 is the truth for Gaussian, not for discrete observations"
    )
    names = (*TASKS, "2|1, discrete HMM")
    for name, loss, error, marker in zip(names, results.loss, results.error, "os^x"):
        left.loglog(np.maximum(loss, 1e-30), np.maximum(error, 1e-16), marker, alpha=0.7, label=name)
    left.set(xlabel="final squared loss per entry", ylabel="largest parameter error")
    left.legend(fontsize=8)
    for column, name in enumerate(("centres M", "transitions T")):
        figures.band(middle, results.sizes, results.sampled[..., column].T, name)
        figures.band(right, results.norms, results.by_norm[..., column].T, name)
    middle.set(xscale="log", yscale="log", xlabel="number of pairs", ylabel="Frobenius error")
    right.set(xscale="log", yscale="log", xlabel="length c of the centres", ylabel="Frobenius error")
    middle.legend(fontsize=8)
    return figure
