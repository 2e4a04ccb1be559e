"""The gradient is small on a plateau and peaks at the jump.

Trigrams in the simplified transformer (full: 5 states, length 128; quick: 3 states, length 64), and in the additive
transformer with feed-forward blocks (3 states and 32 tokens; full: the source's 5 and 64).

The norm of the population gradient is estimated from two halves of 2048 sequences at each evaluation, by the inner
product of their gradients, because the noise of one batch hides the effect (quick: 256 for the model with feed-forward
blocks, which is only drawn). Quick gives the simplified model a third
head, so that it leaves the bigram in time (see `ngrams/stages`). Loss (left axis) and gradient norm (right axis) are
drawn together; the burst marks the jump.

**What was learnt.** The burst is about twice the level before it, as in the source's own figure, and differs much
between seeds: on the plateau, too, the iterates move about at this learning rate, so that the gradient where they are
does not vanish. At three states and 32 tokens the model with feed-forward blocks learns one lag after the other with a
head for each, like the model without. At the source's size (5 states, 64 tokens, 16 seeds, 2026-11-16) it is the same:
the smaller of a head's masses on the two lags is 0.03, where the source shows one head that attends to both, and 5 of
16 runs have a single plateau.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.learning.experiment import Experiment, Runs, Training
from sandlab.lenses.ngrams.probes import LagMass, PopulationGradient
from sandlab.lenses.ngrams.stages import plateau_levels, steepest_drop
from sandlab.models.base import Config
from sandlab.models.ngrams.presets import tf_additive_mlp
from sandlab.studies.claims import Mean, Share
from sandlab.studies.ngrams import _shared as shared
from sandlab.studies.nulls import untrained
from sandlab.studies.study import Lab, Study
from sandlab.worlds.ngrams.in_context import InContextNgrams


@dataclass(frozen=True)
class Settings:
    """The simplified transformer, and the additive one with feed-forward blocks."""

    simplified: Experiment
    feed_forward: Experiment


def experiment(
    world: InContextNgrams, model: Config, training: Training, *, gradient_sequences: int, seeds: int
) -> Experiment:
    probes = (LagMass(world.order), PopulationGradient(gradient_sequences))
    return Experiment(world, model, training, seeds, probes)


SIMPLE = Training(steps=1500, batch_size=128, lr=0.01, evals=50, eval_examples=1024)
BLOCKS = Training(steps=800, batch_size=128, lr=0.005, weight_decay=1e-4, evals=50, eval_examples=1024)
SHORT, LONG = InContextNgrams(3, 2, 64, 0.5), InContextNgrams(5, 2, 128, 0.5)
SHORT_BLOCKS, LONG_BLOCKS = InContextNgrams(3, 2, 32, 1.0), InContextNgrams(5, 2, 64, 1.0)


def blocks(world: InContextNgrams) -> Config:
    return shared.config_of(tf_additive_mlp, world)


def longer(training: Training) -> Training:
    return replace(training, steps=6000, evals=120, eval_examples=8192)


QUICK = Settings(
    experiment(SHORT, shared.simplified(SHORT, heads=3), SIMPLE, gradient_sequences=2048, seeds=8),
    experiment(SHORT_BLOCKS, blocks(SHORT_BLOCKS), BLOCKS, gradient_sequences=256, seeds=3),
)
study = Study(
    "ngrams/gradient-norm",
    title="The gradient is larger at the jump than on the plateau, by a factor that differs much between seeds",
    source=shared.SOURCE,
    at="Figures 6 and 7",
    quick=QUICK,
    full=Settings(
        experiment(LONG, shared.simplified(LONG, heads=2), longer(SIMPLE), gradient_sequences=4096, seeds=16),
        experiment(LONG_BLOCKS, blocks(LONG_BLOCKS), longer(BLOCKS), gradient_sequences=4096, seeds=16),
    ),
    null=untrained(QUICK),
)


@dataclass(frozen=True)
class Results:
    """The runs of both models, and the losses of the estimators on their worlds."""

    simplified: Runs
    feed_forward: Runs
    levels: list[dict[str, float]]

    @property
    def drops(self) -> list[tuple[float, float]]:
        """Burst of the gradient at the steepest drop of each seed, and that drop's share."""
        curves = self.simplified.metrics
        return [steepest_drop(losses, norms) for losses, norms in zip(curves["loss"], curves["gradient"])]

    @property
    def final_mass(self) -> np.ndarray:
        """Attention on lags 1 and 2 in the model with feed-forward blocks, at the end (seed, head, lag)."""
        return self.feed_forward.metrics["mass"][:, -1, :, 1:3]


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    experiments = [settings.simplified, settings.feed_forward]
    first, second = lab.train(experiments, label="gradient norms")
    return Results(first, second, [shared.estimator_losses(each.world) for each in experiments])


@study.claim(Mean(above=1.5), at="Figure 6", paper="0.045 against 0.025 (its smoothed version: 0.08 against 0.006)")
def burst(results: Results) -> list[float]:
    """The gradient norm near the jump is clearly above that on the plateau.

    Largest norm of the population gradient around the jump over the median before it.
    """
    return [burst for burst, _ in results.drops]


@study.claim(Mean(above=2.0), at="Figure 6", paper="0.045 against 0.025 (its smoothed version: 0.08 against 0.006)")
def burst_twice(results: Results) -> list[float]:
    """The gradient norm near the jump is more than twice that on the plateau.

    Largest norm of the population gradient around the jump over the median before it.
    """
    return burst(results)


@study.claim(Mean(above=0.35), at="Figure 6")
def jump(results: Results) -> list[float]:
    """The loss drops in a jump.

    Share of the drop after the first tenth that happens in the steepest tenth of the steps.
    """
    return [share for _, share in results.drops]


@study.claim(Mean(above=0.15), at="Figure 7", paper="one head attends to both", presets=("full",))
def mlp_shares_a_head(results: Results) -> np.ndarray:
    """With feed-forward blocks one head looks at lags 1 and 2 at once.

    Largest over heads of the smaller of its masses on lags 1 and 2, at the end, at the source's size.
    """
    return results.final_mass.min(-1).max(-1)


@study.claim(Share(above=0.5), at="Figure 7", presets=("full",))
def mlp_one_plateau(results: Results) -> list[bool]:
    """So there is only one plateau before the end, the unigram's.

    Share of runs with exactly one level of plateaus, 0.02 nats or more above the last.
    """
    runs = results.feed_forward
    return [plateau_levels(runs.eval_steps, curve) == 1 for curve in runs.metrics["loss"]]


@study.claim(Mean(above=0.4), source="this laboratory", presets=("quick",))
def mlp_specialises(results: Results) -> np.ndarray:
    """With three states and 32 tokens the heads of that model take a lag each instead.

    Smaller of the largest masses on lag 1 and lag 2 over heads, at the end.
    """
    return results.final_mass.max(1).min(-1)


@study.figure
def gradient(results: Results) -> Figure:
    figure, axes = figures.new(columns=2, width=4.8, height=3.2)
    panels = ((results.simplified, "simplified"), (results.feed_forward, "with feed-forward"))
    for axis, levels, (runs, title) in zip(axes, results.levels, panels):
        axis.plot(runs.eval_steps, runs.metrics["loss"][0], color=figures.COLOURS[0])
        figures.levels(axis, {name: value for name, value in levels.items() if name != "uniform"})
        twin = axis.twinx()
        twin.plot(runs.eval_steps, runs.metrics["gradient"][0], color=figures.COLOURS[1], linestyle="--")
        twin.set_ylabel("gradient norm (dashed)")
        twin.grid(False)
        axis.set(title=title, xlabel="training step", ylabel="test loss")
    return figure
