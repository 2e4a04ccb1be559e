"""The previous token always comes first.

Five states, length 32, Dirichlet(½), two heads, over seeds; and the same without the query's own token.

Matching x_T with x_{j−1} needs one head, because x_T itself is in the stream; matching x_{T−1} with x_{j−2} needs two.
The source conjectures that this is why lag 1 comes first. Removing block 0 from the query removes the difference: lag 1
then needs two heads as well.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.learning.experiment import Experiment, Runs, Training
from sandlab.lenses.ngrams.probes import LagMass
from sandlab.studies.claims import Mean, NotMeasured, Share
from sandlab.studies.ngrams._shared import SOURCE, simplified
from sandlab.studies.nulls import untrained
from sandlab.studies.study import Lab, Study
from sandlab.worlds.ngrams.in_context import InContextNgrams


@dataclass(frozen=True)
class Settings:
    """The ordinary model, and the one whose query does not see its own token."""

    ordinary: Experiment
    without_skip: Experiment


def settings(steps: int, evals: int, eval_examples: int, seeds: int) -> Settings:
    world = InContextNgrams(states=5, order=2, length=32, concentration=0.5)
    ordinary = Experiment(
        world=world,
        model=simplified(world, heads=2),
        training=Training(steps=steps, batch_size=128, lr=0.01, evals=evals, eval_examples=eval_examples),
        seeds=seeds,
        probes=(LagMass(world.order),),
    )
    return Settings(ordinary, replace(ordinary, model=simplified(world, heads=2, query_skip=False)))


QUICK = settings(steps=1600, evals=80, eval_examples=1024, seeds=6)
study = Study(
    "ngrams/first-lag",
    title="The previous token comes first in every seed",
    source=SOURCE,
    at="Figure 5",
    quick=QUICK,
    full=settings(steps=6000, evals=200, eval_examples=8192, seeds=32),
    null=untrained(QUICK),
)


@dataclass(frozen=True)
class Results:
    ordinary: Runs
    without_skip: Runs


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    return Results(*lab.train([settings.ordinary, settings.without_skip], label="seeds"))


def best_mass(runs: Runs, lag: int) -> np.ndarray:
    """Largest attention mass of a head on the lag (seed, evaluation)."""
    return runs.metrics["mass"][:, :, :, lag].max(2)


def at_step(runs: Runs, step: int) -> int:
    """Index of the evaluation nearest to a step."""
    return int(np.abs(runs.eval_steps - step).argmin())


def arrival(runs: Runs, lag: int, level: float = 0.3) -> np.ndarray:
    """First step at which the best mass on the lag exceeds the level (after the end, if it never does)."""
    above = best_mass(runs, lag) > level
    return np.where(above.any(1), runs.eval_steps[above.argmax(1)], runs.eval_steps[-1] + 1)


@study.claim(Share(above=0.5), at="Figure 5", paper="always (1)")
def lag_1_first(results: Results) -> np.ndarray:
    """In every seed the first lag that a head settles on is 1.

    Share of seeds in which lag 1 exceeds a mass of 0.3 before lag 2 does.
    """
    return arrival(results.ordinary, 1) < arrival(results.ordinary, 2)


@study.claim(Share(above=0.85), at="Figure 5", paper="always (1)", presets=("full",))
def lag_1_always(results: Results) -> np.ndarray:
    """Hardly any seed settles on another lag first.

    Share of seeds in which lag 1 exceeds a mass of 0.3 before lag 2 does.
    """
    return lag_1_first(results)


@study.claim(Mean(below=0.2), at="Figure 5")
def no_lag_2_yet(results: Results) -> np.ndarray:
    """At step 1600 no head looks two tokens back where one looks one token back.

    Largest mass on lag 2 at step 1600, mean over the seeds whose mass on lag 1 exceeds 0.3 by then.
    """
    now = at_step(results.ordinary, 1600)
    settled = best_mass(results.ordinary, 1)[:, now] > 0.3
    if not settled.any():
        raise NotMeasured("no seed looks one token back at step 1600")
    return best_mass(results.ordinary, 2)[settled, now]


@study.claim(Mean(below=0.12), at="Figure 5")
def no_lag_2_at_all(results: Results) -> np.ndarray:
    """At step 1600 the mass two tokens back is no more than that of uniform attention.

    Largest mass on lag 2 at step 1600, mean over the seeds whose mass on lag 1 exceeds 0.3 by then.
    """
    return no_lag_2_yet(results)


@study.claim(Mean(above=0.0), source="conjecture of the source, tested here")
def skip_matters(results: Results) -> np.ndarray:
    """Without the skip connection on the query side the head start of lag 1 is smaller.

    Largest mass on lag 1 at step 400, with minus without the query's own token.
    """
    early = at_step(results.ordinary, 400)
    return best_mass(results.ordinary, 1)[:, early] - best_mass(results.without_skip, 1)[:, early]


@study.figure
def lags(results: Results) -> Figure:
    figure, axes = figures.new(columns=2, width=4.2, height=3.0)
    panels = ((results.ordinary, "query sees its token"), (results.without_skip, "query does not"))
    for axis, (runs, title) in zip(axes, panels):
        for lag in (1, 2):
            figures.band(axis, runs.eval_steps, best_mass(runs, lag), label=f"lag {lag}")
        axis.set(title=title, xlabel="training step", ylabel="mass of the best head", ylim=(0, 1))
    axes[0].legend()
    return figure
