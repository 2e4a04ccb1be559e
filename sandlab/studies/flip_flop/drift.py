"""Attention drift: a head with linear positions leaves the right write as the input grows.

One head with positions i/C is trained on flip-flop inputs and then shown much longer ones. Two inputs, as published: a
write followed by no-ops, and a second write 33 positions later followed by no-ops. The curves show how much of its
attention each query gives to the latest write: near the training length most of it, far beyond it almost none, because
the score of a key grows with position at a rate set by κ and b. The dashed line is the length at which the trained
weights predict that the wrong key overtakes. Heads that have not learnt to hold a write say nothing about losing it:
they count as failures of the claims on drift.

**What was learnt** (full, one H200, 2026-11-18). Trained on inputs of 500 letters, seven of eight heads with linear
positions make no error in distribution (the eighth 12 %), but they do not hold a write: it gets 10 % of the attention.
There is nothing to lose, and the claims on drift fail. What quick shows, heads that hold a write over short inputs and
lose it, does not carry over to the longer training.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.learning.experiment import Experiment, Runs, Training
from sandlab.lenses.flip_flop.pictures import draw_drift
from sandlab.lenses.flip_flop.probes import COMPARED, NEVER, AttentionDrift
from sandlab.models.flip_flop.linear_memory import LinearMemoryConfig
from sandlab.studies.claims import Mean, NotMeasured
from sandlab.studies.flip_flop._shared import SOURCE
from sandlab.studies.nulls import untrained
from sandlab.studies.study import Lab, Study
from sandlab.worlds.flip_flop.language import FlipFlopTransduction


def head(world: FlipFlopTransduction, *, longest: int, steps: int, seeds: int) -> Experiment:
    """Heads of width 32 with positions i/8, tested on inputs of up to `longest` operations."""
    return Experiment(
        world=world,
        model=LinearMemoryConfig(width=32, scale=8.0),
        training=Training(steps, lr=3e-3, schedule="cosine", warmup=50, evals=1, eval_examples=500),
        seeds=seeds,
        final=(AttentionDrift(longest),),
    )


QUICK = head(FlipFlopTransduction(length=48, idle=0.7), longest=800, steps=1500, seeds=4)
study = Study(
    "flip-flop/drift",
    title="Every trained head with linear positions loses the write it held, at the length its weights predict",
    source=SOURCE,
    at="Figure 13 and Proposition 5",
    quick=QUICK,
    full=head(FlipFlopTransduction(length=500, idle=0.5), longest=834, steps=4000, seeds=8),
    null=untrained(QUICK),
)


@dataclass(frozen=True)
class Results:
    """The heads, and the length they were trained at."""

    heads: Runs
    length: int


@study.collect
def collect(heads: Experiment, lab: Lab) -> Results:
    assert isinstance(heads.world, FlipFlopTransduction)
    return Results(lab.train(heads, label="heads with linear positions"), heads.world.length)


@study.claim(Mean(below=0.05), at="Figure 13")
def learns(results: Results) -> np.ndarray:
    """The head answers its training lengths.

    Error in distribution.
    """
    return 1 - results.heads.metrics["accuracy"][:, -1]


@study.claim(Mean(above=1e-4), at="Prop. 5")
def curvature(results: Results) -> np.ndarray:
    """The trained curvature κ = W_Qp·W_Kp is not zero.

    Absolute value of κ of the heads that err on less than 5 % in distribution; 0 for the others.
    """
    return np.where(learns(results) < 0.05, np.abs(results.heads.final["curvature"]), 0.0)


@study.claim(Mean(below=0.1), at="Figure 13")
def drifts(results: Results) -> np.ndarray:
    """On long inputs attention leaves the only write.

    Attention of the last query on the latest write, the smaller of the two inputs; 1 for heads that never held it.
    """
    last = np.minimum(*(results.heads.final[name][:, -1] for name in ("one write", "two writes")))
    return np.where(held_at_first(results) > 0.5, last, 1.0)


@study.claim(Mean(above=0.5), at="Figure 13")
def held_at_first(results: Results) -> np.ndarray:
    """On short inputs it holds it.

    Mean attention on the only write over the first quarter of the training length.
    """
    return results.heads.final["one write"][:, : max(2, results.length // 4)].mean(1)


@study.claim(Mean(below=0.1), at="Prop. 5")
def predicted(results: Results) -> np.ndarray:
    """The trained weights say where each input fails first.

    Largest relative difference between the length that the formulas give and the one at which the head's own attention
    first prefers the wrong key, over the inputs that fail by 200 in either way, heads with such an input; 1
    for heads that err on more than 5 % in distribution.
    """
    lengths = results.heads.final["predicted"], results.heads.final["measured"]
    expected, measured = (np.where(each <= COMPARED, each, NEVER) for each in lengths)
    fails = np.minimum(expected, measured) < NEVER
    if not fails.any():
        raise NotMeasured("no head fails within 200 operations")
    gaps = np.where(fails, np.abs(expected - measured) / np.minimum(expected, measured), 0.0)
    return np.where(learns(results) < 0.05, gaps.max(1), 1.0)[fails.any(1)]


@study.figure
def drift(results: Results) -> Figure:
    figure, axes = figures.new(columns=2, width=4.2, height=3.0)
    final = results.heads.final
    draw_drift(axes[0], final["one write"][:8], results.length, final["predicted"][:8, 0])
    draw_drift(axes[1], final["two writes"][:8], results.length)
    axes[0].set_title("one write, then no-ops")
    axes[1].set_title("a second write at 33, then no-ops")
    return figure
