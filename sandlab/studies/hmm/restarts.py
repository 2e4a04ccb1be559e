"""A perfect loss does not mean the right parameters: least squares from many random starts.

The population squared loss of `hmm-canon`, fitted by a predictor of the right parametric form. With one-token tasks the
fits reach loss 0 far from the truth; with two-token tasks every fit that reaches it is the truth.

The null starts at random and takes no step: no run is good.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.learning.hmm.parametric import fit_parametric
from sandlab.learning.hmm.recovery import parameter_error
from sandlab.studies.claims import NotMeasured, Share
from sandlab.studies.hmm import _shared as shared
from sandlab.studies.study import Lab, Study
from sandlab.worlds.hmm.instances import random_hmm
from sandlab.worlds.hmm.models import HMM

SETS = (("2|1",), ("2|1", "1|2", "3|1", "1|3"), *((task,) for task in shared.TWO))
GOOD = 1e-10


@dataclass(frozen=True)
class Settings:
    """Random starts, evaluations of the loss, and d, k of a random model when they are not 4 and 3."""

    starts: int = 20
    evaluations: int = 120
    d: int = 4
    k: int = 3


@dataclass(frozen=True)
class Fit:
    settings: Settings
    tasks: tuple[str, ...]


@dataclass(frozen=True)
class Results:
    """Loss and parameter error of every start; axes: tasks, start."""

    loss: np.ndarray
    error: np.ndarray

    def good(self, index: int) -> np.ndarray:
        """Errors of the runs that reach the smallest loss."""
        return self.error[index][self.loss[index] < GOOD]


QUICK = Settings()
study = Study(
    "hmm/restarts",
    title="With one-token tasks a perfect loss is reached by wrong parameters",
    source=shared.SOURCE,
    at="Theorems 6 and 7",
    quick=QUICK,
    full=Settings(starts=512, evaluations=2000, d=32, k=8),
    null=replace(QUICK, evaluations=0),
)


def fit(job: Fit) -> np.ndarray:
    """(loss, error) of every start."""
    settings = job.settings
    d, k = settings.d, settings.k
    hmm = HMM() if (d, k) == (4, 3) else random_hmm(d, k, np.random.default_rng(0))
    targets = np.concatenate([hmm.predictor(task).ravel() for task in job.tasks])
    starts = np.random.default_rng(0).normal(size=(settings.starts, d * k + k * k))
    found = fit_parametric(job.tasks, targets, d, k, starts=starts, evaluations=settings.evaluations)
    return np.array([[each.loss, parameter_error(hmm, each.model.means, each.model.T).largest] for each in found])


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    found = np.array(lab.map(fit, [Fit(settings, tasks) for tasks in SETS]))
    return Results(found[..., 0], found[..., 1])


@study.claim(Share(above=0.6), at="Theorem 6", paper="not identifiable")
def one_token_good_runs_are_wrong(results: Results) -> list[bool]:
    """Runs that solve one-token tasks perfectly have other parameters.

    Share of good runs (loss < 1e-10) of {2|1} and of all pairs of three tokens whose error is above 0.01.
    """
    errors = np.concatenate([results.good(0), results.good(1)])
    if not len(errors):
        raise NotMeasured("no run reached the smallest loss")
    return (errors > 0.01).tolist()


@study.claim(Share(above=0.8), at="Theorem 7", paper="identifiable")
def two_token_good_runs_are_right(results: Results) -> list[bool]:
    """Runs that solve a two-token task perfectly have the true parameters.

    Share of good runs of the three two-token tasks whose error is below 1e-4.
    """
    errors = np.concatenate([results.good(index) for index in (2, 3, 4)])
    if not len(errors):
        raise NotMeasured("no run reached the smallest loss")
    return (errors < 1e-4).tolist()


@study.claim(Share(above=0.5), at="Theorem 7")
def half_of_the_runs_are_good(results: Results) -> list[bool]:
    """At least half of the starts solve a two-token task.

    Share of runs of the three tasks with loss < 1e-10.
    """
    return (results.loss[2:] < GOOD).ravel().tolist()


@study.figure
def scatter(results: Results) -> Figure:
    figure, (axis,) = figures.new(width=6.5, height=4, title="A perfect loss is the truth for two-token tasks only")
    for tasks, loss, error in zip(SETS, results.loss, results.error):
        axis.loglog(np.maximum(loss, 1e-30), np.maximum(error, 1e-16), "o", alpha=0.7, label=", ".join(tasks))
    axis.axvline(GOOD, color="#555555", linestyle=":")
    axis.set(xlabel="final squared loss per entry", ylabel="largest parameter error")
    axis.legend(fontsize=8)
    return figure
