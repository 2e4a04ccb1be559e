"""The number of facts a one-layer transformer stores is proportional to its weights, in heads or in the MLP.

A subject and a relation stand among noise; the answer is the attribute a*(s, r). One attention layer (H heads of
width d_h) and a feed-forward block (m hidden units) read the last token; token and answer vectors are random and
frozen. Sufficient for all S·R facts (up to logarithms): with the feed-forward block H·d_h ≳ S + R and m·d ≳ S·R; with
attention alone d ≳ R + D and H·d_h ≳ S. So facts may be kept in the values of many heads or in a wide feed-forward
block, and their number grows linearly with the 4·H·d_h·d + 2·m·d weights.

**Set-up.** Random facts, Adam with a cosine schedule on fresh batches; as in the source a run stops when 99 % are
right: when the held-out loss is below 0.01 log 2, which leaves room for no more than 1 % of wrong answers. *Grid*:
accuracy over (H·d_h, m) for one number of facts. *Capacity*: a family of models that grows in all directions (H·d_h =
2d, m = 2d), each with several numbers of facts S·R, S = R; its capacity is the number of facts at which accuracy first
falls below 99 %, interpolated between the tried numbers. The family's facts stand among five noise tokens of eight
kinds, so that it is the facts that fill the weights.

Quick: grid of 3 × 3 with S = R = 8, D = 4, sequences of 8 tokens, 700 steps of 128; family of d = 12, 16, 24, 32 with
D = 4, six seeds, at most 3000 steps of 256. Full: the source's S = R = 32, D = 8, 64 noise tokens, length 32, width 32
on a grid of 3 × 3 (planned first: 6 × 6), at most 6144 steps of 256 where the source takes 16384 of 1024 (factors 2.7
and 4); family of d = 12 to 48 with D = 8, five sizes, four numbers of facts and eight seeds, at most 8192 steps of 512
(factors 2 and 2).

**What was learnt.** In full (two cores, 2026-11-20) models of d = 12 to 48 hold 0.07 to 0.12 facts per weight (medians
124 to 3169), none all of the numbers tried: a slope of 1.14 from 1.07 to 1.21, a little more than in proportion and
open by 0.01 at the upper end, since the smallest vectors crowd and the spread among seeds is a factor of two at d = 12.
Many heads without a block are right in 99 %, a wide block with heads of S + R dimensions in 97 %, few heads without a
block in less than a tenth. Two cores suffice since the model computes keys and values once for each token of the
vocabulary (`FactTransformer`), where a transformer does so for each token of a batch.

The way there: the first quick preset (2026-11-16) said nothing about the slope, because only one of its six models held
99 % of even the smallest number of facts; since then the tries of both presets lie on both sides of what single runs of
another seed held (d = 8: 0.055 facts per weight, d = 16: 0.066, d = 32: less than 0.068 after 2000 steps), and capacity
is interpolated between them. A full run with a family of d = 8 to 24 (five seeds, one H200, 2026-11-18) had a slope of
1.8 from 1.2 to 2.5: two of five seeds at d = 8 did not hold even 16 facts, since vectors of eight dimensions crowd, and
counted as holding 1. Both families begin at d = 12 since; this was chosen after that look, before they were run. With
three sizes, five seeds and 1500 steps quick left the slope open (0.85 from 0.65 to 1.05): its largest models were held
back (three seeds of d = 24 with 441 facts: right in 97.5 to 100 % after 1500 steps, 99.3 to 100 % after 4000; at rate
0.003 in 88 to 96 %). A first full run of these families tried up to 0.1 facts per weight: its slope was 1.11 from 1.05
to 1.18, but more than half of the seeds held the largest number, so that their capacities were cut at the same multiple
of the weights, which draws a slope towards 1. Full tries up to 0.22 since; quick up to 0.16, with a fourth size, a
sixth seed and 3000 steps (1.12 from 0.97 to 1.27).

**In the figure.** Left: accuracy on the grid. Right: the facts that each size of the family holds, median and range of
seeds, among those tried; dotted, as many for each weight at every size.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.learning.experiment import Experiment, Runs, Training
from sandlab.learning.stopping import EarlyStop
from sandlab.models.base import build
from sandlab.models.knowledge.facts import FactTransformer, FactTransformerConfig
from sandlab.studies.claims import Mean, Slope
from sandlab.studies.knowledge._shared import SOURCE
from sandlab.studies.nulls import untrained
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.knowledge.facts import FactRecall

LEVEL = 0.99


@dataclass(frozen=True)
class Settings:
    """The grid (heads, then hidden units, row by row) and the growing family (sizes, then numbers of facts).

    needed   S + R of the grid's facts: dimensions of the heads that suffice beside a wide block
    """

    needed: int
    heads: tuple[int, ...]
    hidden: tuple[int, ...]
    widths: tuple[int, ...]
    roots: tuple[tuple[int, ...], ...]
    grid: tuple[Experiment, ...]
    family: tuple[Experiment, ...]


def experiment(
    world: FactRecall, training: Training, seeds: int, *, width: int, heads: int, head_width: int, hidden: int
) -> Experiment:
    model = FactTransformerConfig(world.vocab, world.outputs, width, heads, head_width, hidden)
    return Experiment(world, model, training, seeds)


def settings(
    world: FactRecall, training: Training, seeds: int, *, width: int, head_width: int, heads: tuple[int, ...],
    hidden: tuple[int, ...], stored: FactRecall, longer: Training, members: int, widths: tuple[int, ...],
    shares: tuple[float, ...],
) -> Settings:  # fmt: skip
    """Of the growing family: its facts, training and seeds, and the tried numbers of facts per weight."""
    grid = tuple(
        experiment(world, training, seeds, width=width, heads=h, head_width=head_width, hidden=m)
        for h in heads
        for m in hidden
    )
    roots = tuple(tuple(round((share * 12 * each**2) ** 0.5) for share in shares) for each in widths)
    family = tuple(
        experiment(
            replace(stored, subjects=root, relations=root), longer, members,
            width=each, heads=4, head_width=each // 2, hidden=2 * each,
        )
        for each, row in zip(widths, roots)
        for root in row
    )  # fmt: skip
    return Settings(world.subjects + world.relations, heads, hidden, widths, roots, grid, family)


HELD = EarlyStop(below=0.01 * math.log(2))
GRID_TRAINING = Training(
    steps=700, batch_size=128, lr=0.01, optimizer="adam", schedule="cosine", evals=4, eval_examples=1024, stop=HELD
)
FAMILY_TRAINING = replace(GRID_TRAINING, steps=3000, batch_size=256, evals=20)
QUICK = settings(
    FactRecall(subjects=8, relations=8, answers=4, noise=8, length=8), GRID_TRAINING, seeds=3,
    width=16, head_width=4, heads=(1, 4, 12), hidden=(0, 8, 64),
    stored=FactRecall(answers=4, noise=8, length=8), longer=FAMILY_TRAINING, members=6,
    widths=(12, 16, 24, 32), shares=(0.03, 0.06, 0.1, 0.16),
)  # fmt: skip
study = Study(
    "knowledge/fact-capacity",
    title="Facts are stored in heads or in the feed-forward block, in proportion to the weights",
    source=SOURCE,
    at="factual recall",
    quick=QUICK,
    full=settings(
        FactRecall(subjects=32, relations=32, answers=8, noise=64, length=32),
        replace(GRID_TRAINING, steps=6144, batch_size=256, evals=24, eval_examples=8192), seeds=5,
        width=32, head_width=8, heads=(1, 8, 32), hidden=(0, 32, 128),
        stored=FactRecall(answers=8, noise=8, length=8),
        longer=replace(FAMILY_TRAINING, steps=8192, batch_size=512, evals=64, eval_examples=8192),
        members=8, widths=(12, 16, 24, 32, 48), shares=(0.03, 0.045, 0.065, 0.1, 0.15, 0.22),
    ),
    null=untrained(QUICK),
)  # fmt: skip


@dataclass(frozen=True)
class Results:
    """Accuracy on the grid (heads, hidden, seed) and of the family (size, number of facts, seed)."""

    needed: int
    inner: list[int]
    hidden: list[int]
    grid: np.ndarray
    weights: list[int]
    facts: np.ndarray
    family: np.ndarray

    @property
    def capacity(self) -> np.ndarray:
        """The number of facts at which accuracy first falls below 99 %, (size, seed); between tries on the log scale.

        Where even the smallest number is not held, 1; where all are, the largest.
        """
        found = np.empty(self.family[:, 0].shape)
        for size, seed in np.ndindex(found.shape):
            found[size, seed] = _crossing(self.facts[size], self.family[size, :, seed])
        return found

    @property
    def hold_all(self) -> np.ndarray:
        """Whether a seed held each number tried, so that its capacity is known from below alone, (size, seed)."""
        return (self.family >= LEVEL).all(1)  # type: ignore[return-value]


def _crossing(facts: np.ndarray, accuracy: np.ndarray) -> float:
    held = int(np.logical_and.accumulate(accuracy >= LEVEL).sum())  # how many tries passed
    if held in (0, len(facts)):
        return float(facts[-1]) if held else 1.0
    above, below = accuracy[held - 1], accuracy[held]
    return float(facts[held - 1] * (facts[held] / facts[held - 1]) ** ((above - LEVEL) / (above - below)))


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    runs = lab.train([*settings.grid, *settings.family], label="fact models")
    last = [last_accuracy(each) for each in runs]
    grid = np.stack(last[: len(settings.grid)]).reshape(len(settings.heads), len(settings.hidden), -1)
    family = np.stack(last[len(settings.grid) :]).reshape(*np.shape(settings.roots), -1)
    inner = sorted({_model(each).config.heads * _model(each).config.head_width for each in settings.grid})
    step = len(settings.roots[0])
    weights = [_model(each).trained_parameters for each in settings.family[::step]]
    facts = np.square(np.array(settings.roots, float))
    return Results(settings.needed, inner, list(settings.hidden), grid, weights, facts, family)


def last_accuracy(runs: Runs) -> np.ndarray:
    """Of each seed; NaN stands behind the evaluation at which one stopped."""
    found = runs.metrics["accuracy"]
    return found[np.arange(len(found)), np.isfinite(found).sum(1) - 1]


def _model(experiment: Experiment) -> FactTransformer:
    model = build(experiment.model)
    assert isinstance(model, FactTransformer)
    return model


@study.claim(Slope(between=(0.8, 1.2)), paper="facts scale linearly with parameters")
def capacity_slope(results: Results) -> np.ndarray:
    """The number of stored facts grows linearly with the number of weights.

    Slope of log capacity against log weights, a point for each size and seed.
    """
    sizes = np.repeat(np.log(results.weights), results.capacity.shape[1])
    return np.stack([sizes, np.log(results.capacity).ravel()], -1)


@study.claim(Mean(above=0.9), paper="H·d_h ≳ S suffices")
def many_heads_suffice(results: Results) -> np.ndarray:
    """With many heads no feed-forward block is needed.

    Accuracy with the most heads and the smallest block.
    """
    return results.grid[-1, 0]


@study.claim(Mean(above=0.9), paper="m·d ≳ S·R suffices")
def wide_block_suffices(results: Results) -> np.ndarray:
    """With a wide block the heads need only hold S + R values.

    Accuracy with the widest block, with the fewest heads whose values together have S + R dimensions.
    """
    enough = next((row for row, inner in enumerate(results.inner) if inner >= results.needed), -1)
    return results.grid[enough, -1]


@study.claim(Mean(below=-0.3), paper="both bounds are needed")
def small_models_fail(results: Results) -> np.ndarray:
    """With few heads and no block the facts are not stored.

    Accuracy with the fewest heads and the smallest block, minus that of the largest model, seed by seed.
    """
    return results.grid[0, 0] - results.grid[-1, -1]


@study.table
def table(results: Results) -> dict[str, Rows]:
    rows = [
        {"weights": weights, "facts": int(facts), "facts per weight": facts / weights, "accuracy": float(value.mean())}
        for weights, row, accuracies in zip(results.weights, results.facts, results.family)
        for facts, value in zip(row, accuracies)
    ]
    seeds = results.capacity.shape[1]
    held = [
        {"weights": weights, "median capacity": float(np.median(row)), "seeds": seeds, "hold all tried": int(full)}
        for weights, row, full in zip(results.weights, results.capacity, results.hold_all.sum(1))
    ]
    return {"family": rows, "capacity": held}


@study.figure
def accuracy(results: Results) -> Figure:
    figure, axes = figures.new(2, width=4.8, height=3.6, title="Heads or hidden units: either can hold the facts")
    figures.heatmap(
        axes[0], results.grid.mean(-1), x="hidden units m", y="width of all heads", low=0, high=1, numbers=True
    )
    axes[0].set_xticks(range(len(results.hidden)), [str(each) for each in results.hidden])
    axes[0].set_yticks(range(len(results.inner)), [str(each) for each in results.inner])
    axes[0].set_title("accuracy")
    weights = np.array(results.weights, float)
    figures.band(axes[1], weights, results.capacity.T, label="held (99 % right)", marker="o")
    axes[1].plot(weights, results.facts, "_", color="#555555")
    level = np.exp(np.log(results.capacity / weights[:, None]).mean())
    axes[1].plot(weights, level * weights, ":", color="#555555", label=f"{level:.2g} facts per weight")
    axes[1].set(xscale="log", yscale="log", xlabel="weights", ylabel="facts", title="growing models")
    axes[1].minorticks_off()
    axes[1].set_xticks(weights, [f"{each:.0f}" for each in weights])
    marks = [each for each in (30, 100, 300, 1000, 3000, 10000) if results.facts.min() <= each <= results.facts.max()]
    axes[1].set_yticks(marks, [str(each) for each in marks])
    axes[1].legend(loc="lower right")
    return figure
