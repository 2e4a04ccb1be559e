"""Formulas of the theory, each against an independent computation.

Gradients against automatic differentiation, the Λ oracle against a dense pass, coincidence probabilities against
enumeration, the dilution law and its doubling bounds, the power method between its bounds, and what attention leaves
over at the loss thresholds of Lemmas E.24, E.35 and F.16. The bound of Lemmas E.34 and F.15 on the negative gap is
asymptotic: it is not met at d = 200 and not asserted.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.circuits.reasoning.ideal import ideal_features
from sandlab.learning.reasoning.algorithms import next_clause_loss
from sandlab.learning.reasoning.reduced import ReducedLego, attention_left_over, sample_chains
from sandlab.lenses.reasoning.events import collision_rates, confusion_events, counted_confusions
from sandlab.lenses.reasoning.horizon import dilution_bounds
from sandlab.lenses.reasoning.tensor_power import power_bounds
from sandlab.lenses.reasoning.value_oracle import attention_gradient, ffn_gradient, lambda_oracle
from sandlab.models.base import seeded
from sandlab.models.reasoning.theory import LegoTheoryTransformer
from sandlab.random import rng
from sandlab.studies.claims import Exact, NotMeasured
from sandlab.studies.reasoning._shared import SOURCE
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.reasoning.lego import Lego


@dataclass(frozen=True)
class Settings:
    """Tasks of the threshold lemmas and clip factors C_B; points of the enumerations."""

    tasks: tuple[str, ...] = ("S3",)
    clips: tuple[float, ...] = (4.0,)
    points: tuple[int, ...] = (3, 4, 5)
    collisions: int = 2000


study = Study(
    "reasoning/theorems",
    title="The closed forms of the theory hold to the last digit",
    source=SOURCE,
    at="appendices A to F",
    quick=Settings(),
    full=Settings(("S3", "S4"), (4.0, 6.0), collisions=20_000),
)


@dataclass(frozen=True)
class Results:
    """Errors of formulas, and threshold rows.

    thresholds   task, C_B, ε and gap when the loss first is at most e^{(−½ + 3.01c₁)2B}, and c₁
    longer       the same at length 4, from there on (ε^{4,2})
    """

    ffn_error: float
    attention_error: float
    oracle_error: float
    event_error: float
    dilution: list[float]
    powers: list[tuple[float, float, float]]
    thresholds: list[dict[str, float]]
    collisions: list[dict[str, float]]
    names: list[str]


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    jobs = [ThresholdJob(task, clip) for task in settings.tasks for clip in settings.clips]
    ffn, attention = gradient_errors()
    return Results(
        ffn,
        attention,
        oracle_error(),
        max(
            abs(confusion_events(n)[name] - value)
            for n in settings.points
            for name, value in counted_confusions(f"S{n}").items()
        ),
        [
            float(each)
            for length in (2, 4, 8, 32, 128)
            for beta in (0.0, 1.0, 3.0, 6.0)
            for each in _dilution(length, beta)
        ],
        [_power(start, power) for start, power in ((0.05, 4), (0.1, 4), (0.2, 6), (0.3, 6))],
        lab.map(threshold, jobs, label="thresholds"),
        [_collision(length, settings.collisions) for length in (2, 4, 8, 16, 32)],
        [f"{job.task}, C_B = {job.clip:g}" for job in jobs],
    )


def gradient_errors() -> tuple[float, float]:
    """Largest difference of the printed gradients from automatic differentiation."""
    world = Lego("S3", variables=6, length=3, predict_blanks=True)
    with seeded(1):
        model = LegoTheoryTransformer(vocab=world.vocab, neurons=3, clip=50.0, threshold=0.6, bias=0.1, init_std=0.7)
        torch.nn.init.normal_(model.q43, std=0.5)
        torch.nn.init.normal_(model.q44, std=0.5)
    model, batch = model.double(), world.sample(40, rng=rng(0))
    (ffn,) = torch.autograd.grad(next_clause_loss(model, batch, 3), model.weight)
    routed = torch.autograd.grad(next_clause_loss(model, batch, 3, (5,)), [model.q43, model.q44])
    pairs = zip(attention_gradient(model, batch, 3), routed)
    return float((ffn_gradient(model, batch, 3) + ffn).abs().max()), max(float((a + b).abs().max()) for a, b in pairs)


def oracle_error() -> float:
    """Largest difference of the Λ oracle from a dense pass with random attention, three tasks."""
    worst = 0.0
    for name in ("C6", "S3", "S4"):
        draws = rng(3, name)
        chains, features = sample_chains(name, 5, 30, rng=draws), ideal_features(name, 9.0)
        attention = torch.rand(30, 9, generator=draws, dtype=torch.float64)
        attention /= attention.sum(1, keepdim=True)
        dense = torch.einsum(
            "nk,njrk->njr", attention[:, :5], features.actions[:, :, chains.actions].permute(2, 0, 1, 3)
        )
        dense += torch.einsum(
            "nk,njrk->njr", attention[:, 5:], features.values[:, :, chains.values[:, :4]].permute(2, 0, 1, 3)
        )
        found = lambda_oracle(name, 9.0, chains.actions, chains.values[:, :4], attention)
        worst = max(worst, float((found - dense).abs().max()))
    return worst


def _dilution(length: int, beta: float) -> tuple[float, float, float]:
    found = dilution_bounds(length, beta, beta)
    return found["doubling"] - 2, found["any step"] - 4, -found["slack"]


def _power(start: float, power: int) -> tuple[float, float, float]:
    found = power_bounds(start, 4 * start, power, 1e-4)
    return found.low, found.measured, found.high


def _collision(length: int, chains: int) -> dict[str, float]:
    found = collision_rates("S5", length, chains=chains, rng=rng(0, "collisions", length))
    return {
        "L": length,
        "U": found.share,
        "W": found.load,
        "crowded": found.crowded,
        "y0 = y1": found.repeated,
        "loaded": found.loaded,
    }


@dataclass(frozen=True)
class ThresholdJob:
    task: str
    clip: float


def threshold(job: ThresholdJob) -> dict[str, float]:
    """Descend on length 2, then on length 4, each until the loss is at most e^{(−½ + 3.01c₁)2B}."""
    model = ReducedLego(job.task, clip_factor=job.clip)
    first = 1.005 * math.log(model.vocab) / (2 * model.clip)
    level = math.exp((-0.5 + 3.01 * first) * 2 * model.clip)
    rate = 0.02 if job.clip < 5 else 1.0
    short = model.descend(((2, 2),), lr=rate, steps=30_000, below=level, log=2)
    longer = model.descend(((4, 2),), lr=rate, steps=30_000, below=level, start=short.end, log=2)
    return {
        "c1": first,
        "level": level,
        "reached": float(short.reached and longer.reached),
        "left over": float(short.left_over()[-1]),
        "gap": float(short.gap()[-1]),
        "left over 4": attention_left_over(4, 2, *longer.end),
    }


@study.claim(Exact(below=1e-12), at="Fact A.1", paper="equality")
def ffn_gradients(results: Results) -> float:
    """The gradient of the neurons is the printed one.

    Largest difference from automatic differentiation.
    """
    return results.ffn_error


@study.claim(Exact(below=1e-12), at="Fact D.1", paper="equality")
def attention_gradients(results: Results) -> float:
    """The gradient of attention is the printed one.

    Largest difference from automatic differentiation.
    """
    return results.attention_error


@study.claim(Exact(below=1e-10), at="Lemmas D.6, D.36, E.13 to E.18")
def oracle(results: Results) -> float:
    """Neurons are a linear function of attention masses on fibres and values.

    Largest difference of the Λ oracle from a dense pass.
    """
    return results.oracle_error


@study.claim(Exact(below=1e-12), at="eq. (103) to (108)")
def events(results: Results) -> float:
    """The six coincidences on length 2 have the derived probabilities (3, 4 and 5 points).

    Largest difference from enumeration.
    """
    return results.event_error


@study.claim(Exact(below=1e-9), at="Remark F.1, section 6.2.1", paper="2 and 4")
def dilution(results: Results) -> list[float]:
    """Doubling the length at most doubles ε, and no step of the doubled chain has more than four times as much.

    Excess over the bounds 2 and 4 and over the dilution law, all tried lengths and β.
    """
    return results.dilution


@study.claim(Exact(between=(0.0, 1.0)), at="Lemma B.13")
def power_method(results: Results) -> list[float]:
    """The time of the power method lies between its bounds.

    (time − lower)/(upper − lower), q = 4 and 6.
    """
    return [(measured - low) / (high - low) for low, measured, high in results.powers]


def _reached(results: Results) -> list[dict[str, float]]:
    """The rows whose loss came down to the threshold: elsewhere the lemmas say nothing."""
    found = [row for row in results.thresholds if row["reached"]]
    if not found:
        raise NotMeasured("no loss reached its threshold")
    return found


@study.claim(Exact(between=(4 / 3, 2.52)), at="Lemmas E.24 and E.35", paper="4c₁/3 ≤ ε ≤ 2.52c₁")
def left_over_at_threshold(results: Results) -> list[float]:
    """When the loss reaches its threshold, attention leaves over a constant times c₁.

    ε^{2,2}/c₁ at the first step below the threshold.
    """
    return [row["left over"] / row["c1"] for row in _reached(results)]


@study.claim(Exact(below=5.04), at="Lemma F.16", paper="ε ≤ 5.04c₁")
def left_over_longer(results: Results) -> list[float]:
    """The same after the stage of length 4.

    ε^{4,2}/c₁.
    """
    return [row["left over 4"] / row["c1"] for row in _reached(results)]


@study.claim(Exact(below=1.0), at="Lemma E.33", paper="gap ≤ c₁")
def signed_gap(results: Results) -> list[float]:
    """The signed gap stays below c₁.

    Gap/c₁ at the threshold.
    """
    return [row["gap"] / row["c1"] for row in _reached(results)]


@study.table
def tables(results: Results) -> dict[str, Rows]:
    rows = [{"task": name, **row} for name, row in zip(results.names, results.thresholds)]
    return {"thresholds": rows, "collisions (S5)": list(results.collisions)}


@study.figure
def coincidences(results: Results) -> Figure:
    figure, axes = figures.new(columns=2, title="Coincidences that confuse the neurons")
    for n in (3, 4, 5, 8):
        values = confusion_events(n)
        axes[0].plot(list(values), list(values.values()), marker="o", label=f"{n} points")
    axes[0].set(xlabel="event on length 2", ylabel="probability")
    axes[0].legend()
    lengths = [row["L"] for row in results.collisions]
    for name in ("crowded", "loaded", "y0 = y1"):
        axes[1].plot(lengths, np.array([row[name] for row in results.collisions]), marker="o", label=name)
    axes[1].set(xscale="log", xlabel="length of the chain", ylabel="probability (S5)")
    axes[1].set_xticks(lengths, [f"{length:g}" for length in lengths])
    axes[1].minorticks_off()
    axes[1].legend()
    return figure
