"""The fully generative mode: every token is predicted, and the glitches stay.

The same models with the loss on every next token, scored on reads as before. Most tokens are coin flips, so the loss is
nearly all noise floor: L* = [(I−2)H(p) + (1+(I−2)(1−p_r)) ln 2]/(T−1) nats per token with I = T/2 pairs. The part that
can be learnt is small, and so is its gradient: convergence in distribution takes longer than for the same model in the
clean mode (dotted). The figure shows the training loss above its floor, and the read errors.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.learning.experiment import Experiment, Runs
from sandlab.lenses.flip_flop.probes import excess_loss
from sandlab.studies.claims import Mean
from sandlab.studies.flip_flop._shared import SETS, SOURCE, language_model, larger_tail
from sandlab.studies.nulls import untrained
from sandlab.studies.study import Lab, Study
from sandlab.worlds.flip_flop.language import FlipFlop


@dataclass(frozen=True)
class Settings:
    """The generative models, and the clean ones they are compared with."""

    generative: Experiment
    clean: Experiment


SHORT, LONG = FlipFlop.ignoring(0.8, length=32), FlipFlop.ignoring(0.8, length=128)


def generative(clean: Experiment, *, steps: int) -> Experiment:
    """The clean models, trained for `steps` steps on every token."""
    assert isinstance(clean.world, FlipFlop)
    world, training = replace(clean.world, mode="generative"), replace(clean.training, steps=steps)
    return replace(clean, world=world, training=training, final=(*clean.final, excess_loss))


CLEAN = language_model(SHORT, steps=800, evals=30, seeds=4)
CLEAN_LONG = language_model(LONG, steps=5000, evals=50, reads=100_000, seeds=8)
QUICK = Settings(generative(CLEAN, steps=1500), CLEAN)
study = Study(
    "flip-flop/generative",
    title="Predicting every token is slower to learn and glitches all the same",
    source=SOURCE,
    at="Figure 7 (right)",
    quick=QUICK,
    full=Settings(generative(CLEAN_LONG, steps=5000), CLEAN_LONG),
    null=Settings(untrained(QUICK.generative), untrained(QUICK.clean)),
)


@dataclass(frozen=True)
class Results:
    """Both kinds of models, and the closed form of the least generative loss."""

    generative: Runs
    clean: Runs
    least: float


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    world = settings.generative.world
    assert isinstance(world, FlipFlop)
    both = lab.train([settings.generative, settings.clean], label="generative runs")
    return Results(both[0], both[1], world.loss_floor())


@study.claim(Mean(below=0.03), source="closed form")
def reaches_floor(results: Results) -> np.ndarray:
    """Training comes close to the floor.

    Loss on fresh strings minus that of the true distribution on the same strings, nats per token.
    """
    return results.generative.final["excess"]


@study.claim(Mean(above=0.0), at="Figure 7 (right)", paper="slower convergence in distribution")
def slower(results: Results) -> np.ndarray:
    """Reads are learnt later than when only reads count.

    ln of steps until the error in distribution is below 1 %, generative over clean (never: all steps).
    """
    return np.log(learnt_at(results.generative) / learnt_at(results.clean))


def learnt_at(runs: Runs) -> np.ndarray:
    """The first evaluated step with an error in distribution below 1 %, per seed; the last step when never."""
    low = runs.metrics["in"] < 0.01
    return np.where(low.any(1), runs.eval_steps[low.argmax(1)], runs.eval_steps[-1]).astype(float)


@study.claim(Mean(above=0.0), at="Figure 7")
def tail(results: Results) -> np.ndarray:
    """The larger tail error exceeds the error in distribution.

    Larger tail error minus in-distribution error, models that err on less than 1 % in distribution (0 for others).
    """
    final = results.generative.final
    return np.where(final["in"] < 0.01, larger_tail(final) - final["in"], 0.0)


@study.figure
def curves(results: Results) -> Figure:
    figure, axes = figures.new(columns=2, width=4.2, height=3.0)
    above, steps = results.generative.loss - results.least, results.generative.eval_steps
    width = max(1, above.shape[1] // 100)
    smooth = above[:, : above.shape[1] // width * width].reshape(len(above), -1, width).mean(-1)
    figures.band(axes[0], np.arange(smooth.shape[1]) * width, smooth)
    axes[0].axhline(0, color="#555555", linestyle=":")
    axes[0].set_yscale("symlog", linthresh=1e-2)
    axes[0].set(title="loss above its floor", xlabel="training step", ylabel="nats per token")
    for name in SETS:
        figures.band(axes[1], steps, results.generative.metrics[name], label=name)
    clean = np.median(results.clean.metrics["in"], 0)
    axes[1].plot(results.clean.eval_steps, clean, color="#555555", linestyle=":", label="in, clean mode")
    axes[1].set_yscale("symlog", linthresh=1e-3)
    axes[1].set(title="read error", xlabel="training step")
    axes[1].legend()
    return figure
