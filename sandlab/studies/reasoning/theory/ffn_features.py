"""Neurons learn one feature each: the right pair of action and value grows, pairs that share a part cancel.

Exact gradient descent of the value neurons on chains of length 1, d = 200. Preset (a), a large threshold ϱ = 1:
nearly every feature has one neuron of its own. Preset (b), ϱ = ½ and a long second phase at a high rate: cancellation
is nearly complete, and the ratio V(g)/V(y) comes to C_α = 5/4 for three points, which the conserved sums force;
features are then shared by several neurons. The asymptotic initialisation is not small at this d, so σ_0 = 0.02 and μ
= 0.05 are set.

**What was learnt** (full, 8 seeds, 2026-11-16). With preset (a) 64 % of the features have exactly one neuron (57 to
70 %), fewer than the 70 % asked for; the others are shared by two or more. Every feature is learnt, in the predicted
order (correlation 0.95).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import matplotlib
import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.circuits.reasoning.ideal import ValueFeatures
from sandlab.learning.reasoning.features import FeatureDescent, FeatureTraining, train_features
from sandlab.lenses.reasoning.features import (
    FeatureReport,
    curriculum_order,
    feature_magnitudes,
    feature_report,
    initial_statistics,
    order_agreement,
    phase_times,
)
from sandlab.studies.claims import Mean, NotMeasured
from sandlab.studies.reasoning._shared import SOURCE
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.reasoning.actions import named_action


@dataclass(frozen=True)
class Settings:
    """Preset (a) on a cyclic task, preset (b) on three points; the unit is a seed of the initial weights."""

    single: FeatureTraining
    balanced: FeatureTraining
    seeds: int


SINGLE = FeatureTraining("C6", threshold=1.0, neurons=12, phases=((5.0, 10_000),))
BALANCED = FeatureTraining("S3", threshold=0.5, neurons=12, phases=((3.0, 5000), (200.0, 25_000)))
QUICK = Settings(replace(SINGLE, action="C4", neurons=8), BALANCED, 4)

study = Study(
    "reasoning/ffn-features",
    title="One neuron per feature, cancellation of half-right pairs, and a conserved imbalance",
    source=SOURCE,
    at="Theorems B.1 and C.1",
    quick=QUICK,
    full=Settings(SINGLE, BALANCED, 8),
    null=Settings(replace(QUICK.single, phases=((0.0, 50),)), replace(BALANCED, phases=((0.0, 50),)), 4),
)


@dataclass(frozen=True)
class Run:
    """One descent, with its report and the order in which it learnt."""

    plan: FeatureTraining
    descent: FeatureDescent
    report: FeatureReport
    tau: float


def run(plan: FeatureTraining) -> Run:
    descent = train_features(plan)
    return Run(
        plan, descent, feature_report(descent.final, plan.action, plan.clip), order_agreement(descent, plan.action)
    )


@dataclass(frozen=True)
class Results:
    single: list[Run]
    balanced: list[Run]


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    plans = [
        replace(plan, seed=seed) for plan in (settings.single, settings.balanced) for seed in range(settings.seeds)
    ]
    found = lab.map(run, plans, label="features")
    return Results(found[: settings.seeds], found[settings.seeds :])


def learnt(runs: list[Run]) -> list[Run]:
    """Refuse to measure descents that learnt nothing."""
    if any(not np.isfinite(each.report.ratio) for each in runs):
        raise NotMeasured("no feature was learnt")
    return runs


@study.claim(Mean(above=0.99), at="Theorem B.1")
def all_learnt(results: Results) -> list[float]:
    """Every feature is learnt (preset a).

    Share of the |Y|² features with a neuron above 0.3 B.
    """
    return [each.report.learnt for each in results.single]


@study.claim(Mean(above=0.7), at="Theorem B.1", paper="exactly one neuron per feature")
def one_neuron_each(results: Results) -> list[float]:
    """Most features have exactly one neuron (preset a).

    Share of features with exactly one neuron above 0.3 B.
    """
    return [each.report.single for each in results.single]


@study.claim(Mean(equals=0.0, within=0.05), at="Theorem C.1, Lemma C.7", paper="V(g)/V(y) = C_α")
def imbalance(results: Results) -> list[float]:
    """The ratio of action to value weights is C_α = 5/4 on three points (preset b).

    Mean V(g)/V(y) minus C_α.
    """
    return [each.report.ratio - named_action(each.plan.action).imbalance for each in learnt(results.balanced)]


@study.claim(Mean(below=0.06), at="Theorem C.1", paper="0")
def cancellation(results: Results) -> list[float]:
    """Pairs that share one part cancel (preset b).

    Mean |V| of such pairs over V of the right pair.
    """
    return [each.report.cancellation for each in learnt(results.balanced)]


@study.claim(Mean(below=1e-9), at="Lemmas B.7 and C.7", paper="conserved")
def conservation(results: Results) -> list[float]:
    """Σ_g V(g) − Σ_y V(y) of a neuron never changes.

    Largest drift over the whole descent, both presets.
    """
    if max(each.descent.accuracy for each in results.single) < 0.9:
        raise NotMeasured("the weights did not move")
    return [max(first.descent.drift, second.descent.drift) for first, second in zip(results.single, results.balanced)]


@study.claim(Mean(above=0.3), at="Definitions B.3 and C.4", paper="learnt in the predicted order")
def curriculum(results: Results) -> list[float]:
    """Features are learnt in the order that the initial weights predict (preset a).

    Kendall's τ between the predicted order and the times at which features reach ½ log d.
    """
    taus = [each.tau for each in results.single]
    if not all(np.isfinite(taus)):
        raise NotMeasured("no feature reached the threshold")
    return taus


@study.table
def reports(results: Results) -> Rows:
    return [
        {
            "preset": name,
            "task": each.plan.action,
            "seed": each.plan.seed,
            "learnt": each.report.learnt,
            "single": each.report.single,
            "ratio": each.report.ratio,
            "cancellation": each.report.cancellation,
            "opposite": each.report.opposite,
            "order τ": each.tau,
            "accuracy": each.descent.accuracy,
            "loss": float(each.descent.loss[-1]),
            **initial_statistics(each.plan, each.descent),
        }
        for name, runs in (("a", results.single), ("b", results.balanced))
        for each in runs
    ]


@study.figure
def features(results: Results) -> Figure:
    """Growth by predicted rank, the final weights, and a feature's half-right pairs that rise and cancel."""
    figure, axes = figures.new(
        columns=4, width=3.9, title="Features grow one after another and cancel their half-right pairs"
    )
    first, second = results.single[0], results.balanced[0]
    _draw_growth(axes[0], first)
    times = phase_times(first.descent, first.plan.action)
    axes[1].plot(np.arange(len(times.reached)), times.taken_off, "o", label="takes off")
    axes[1].plot(np.arange(len(times.reached)), times.reached, "s", label="reaches ½ log d")
    axes[1].set(title="learning times", xlabel="predicted rank", ylabel="step")
    axes[1].legend()
    weights = np.concatenate([first.descent.final.actions.numpy(), first.descent.final.values.numpy()], -1)
    figures.heatmap(
        axes[2], weights.reshape(-1, weights.shape[-1]), title="final weights", x="action | value", y="class and neuron"
    )
    _draw_cancelling(axes[3], second)
    return figure


def _draw_growth(axis: Axes, run: Run) -> None:
    order, descent = curriculum_order(run.descent.initial, run.plan.action), run.descent
    kept = zip(descent.kept_actions, descent.kept_values)
    strength = np.stack(
        [
            feature_magnitudes(ValueFeatures(torch.as_tensor(a), torch.as_tensor(v)), run.plan.action).numpy()
            for a, v in kept
        ]
    )
    shades = matplotlib.colormaps["cividis"](np.linspace(0, 0.9, len(order)))
    for shade, (j, r, y) in zip(shades, order):
        axis.plot(descent.kept_steps, strength[:, j, r, y], color=shade, linewidth=1, linestyle="-")
    axis.axhline(run.plan.clip, color="#555555", linestyle=":")
    axis.set(title=f"{run.plan.action}: V by predicted rank", xlabel="step", ylabel="V of the right pair")


def _draw_cancelling(axis: Axes, run: Run) -> None:
    descent, action = run.descent, named_action(run.plan.action)
    j, r, y = curriculum_order(descent.initial, run.plan.action)[0]
    pairs = (descent.kept_actions[:, j, r, :, None] + descent.kept_values[:, j, r, None, :]) / 2
    inside = action.array[:, y] == j
    same = np.arange(action.values) == y
    for label, chosen in (
        ("right", inside[:, None] & same),
        ("half right", inside[:, None] ^ same),
        ("wrong", ~inside[:, None] & ~same),
    ):
        axis.plot(descent.kept_steps, pairs[:, chosen].mean(1), label=label)
    axis.set(title=f"{run.plan.action}: one neuron", xlabel="step", ylabel="mean V of pairs")
    axis.locator_params(axis="x", nbins=4)
    axis.legend(loc="center right")
