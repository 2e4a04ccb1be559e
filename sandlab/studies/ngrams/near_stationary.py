"""Sub-n-grams are near-stationary: the gradient at their points falls like 1/T, and a growing norm can spoil it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from sandlab import figures
from sandlab.circuits.ngrams import all_heads_bigram, ngram_estimator
from sandlab.lenses.ngram_theory import key_gradient, monte_carlo_gradient, random_like
from sandlab.random import rng
from sandlab.studies.base import Lab, Outcome, study
from sandlab.studies.claims import Above, Below, Between, Claim, Equals
from sandlab.studies.ngrams.runs import SOURCE
from sandlab.worlds.estimators import CountingEstimator
from sandlab.worlds.ngrams import InContextNgrams


@dataclass(frozen=True)
class Settings:
    """Lengths, temperatures c and sequences per estimate; three states, trigrams, Dirichlet(1)."""

    seeds: int = 3
    lengths: tuple[int, ...] = (32, 64, 128, 256)
    temperatures: tuple[float, ...] = (5.0, 10.0, 20.0)
    closed_sequences: int = 65536
    sampled_sequences: int = 4096
    states: int = 3
    order: int = 2


@dataclass(frozen=True)
class ClosedJob:
    seed: int
    length: int
    order: int
    states: int
    task_order: int
    sequences: int


@dataclass(frozen=True)
class PointJob:
    seed: int
    length: int
    order: int
    temperature: float
    states: int
    task_order: int
    sequences: int


def closed_form(job: ClosedJob) -> dict[str, Any]:
    """The surviving block at an n-gram point over √c, from its closed form."""
    world = InContextNgrams(job.states, job.task_order, job.length, 1.0)
    found = key_gradient(world, job.order, job.sequences, rng=rng(job.seed, "closed", job.length))
    return {
        "norm": found.norm, "noise": found.noise, "diagonal": found.diagonal, "error": found.diagonal_error,
        "unseen": found.unseen,
    }  # fmt: skip


def at_point(job: PointJob) -> dict[str, Any]:
    """Sampled gradient norms at an n-gram point and at a random point of the same norm, with their noise."""
    world = InContextNgrams(job.states, job.task_order, job.length, 1.0)
    model = ngram_estimator(job.states, job.order, job.length, heads=job.task_order, temperature=job.temperature)
    draw = rng(job.seed, "point", job.length, job.order)
    here = monte_carlo_gradient(model, world, job.sequences, rng=draw, chunk=job.sequences // 4)
    other = random_like(model, rng=rng(job.seed, "other"))
    there = monte_carlo_gradient(other, world, job.sequences, rng=draw, chunk=job.sequences // 4)
    blocks = {name.split(".")[3] if "weight" in name else name: value for name, value in here.norm.items()}
    return {"norm": here.norm["all"], "noise": here.noise["all"], "random": there.norm["all"], "blocks": blocks}


@study(
    "ngrams/near-stationary",
    title="The gradient at a sub-n-gram fades as 1/T, and no faster",
    source=f"{SOURCE}, Theorem 4.2",
    quick=Settings(),
    full=Settings(seeds=8, lengths=(32, 64, 128, 256, 512, 1024), closed_sequences=262144, sampled_sequences=16384),
    claims=[
        Claim(
            "rate",
            "The surviving gradient block of the full n-gram point falls like 1/T.",
            f"{SOURCE}, Theorem 4.2, with the corrected rate",
            "log–log slope of the mean diagonal entry of the first block against T",
            Between(-1.4, -0.6),
            paper="printed: exponential in T; counting says 1/T",
        ),
        Claim(
            "printed-rate",
            "The gradient falls exponentially in T.",
            f"{SOURCE}, Theorem 4.2 as printed",
            "fall of log(diagonal) over all lengths, over that of an exponential through the first two",
            Above(0.8),
            held=False,
        ),
        Claim(
            "unigram-exact",
            "At the unigram point the gradient is exactly zero.",
            f"{SOURCE}, Theorem 4.2 with k = 1",
            "gradient norm",
            Equals(0.0, 1e-12),
            exact=True,
        ),
        Claim(
            "random-point",
            "A random point of the same norm has a much larger gradient that does not fade.",
            "control",
            "log10 of the gradient norm at a random point over that at the bigram point, longest length",
            Above(0.5),
        ),
        Claim(
            "order-of-limits",
            "At a fixed short length a larger norm makes the gradient larger.",
            "order of limits",
            "gradient norm at the largest c over that at the smallest, shortest length, trigram point",
            Above(1.2),
        ),
        Claim(
            "bigram-all-heads",
            "The point with all heads on the previous token computes the bigram too.",
            f"{SOURCE}, Appendix F",
            "largest error against the clamped bigram estimator",
            Below(1e-9),
            exact=True,
        ),
    ],
)
def near_stationary(config: Settings, lab: Lab) -> Outcome:
    """The population gradient of the simplified transformer at its constructed k-gram points.

    In the limit of sharp attention only one block of the gradient survives: ∂L/∂K₂[h, 0] = √c E[e_{x_{T−h}}(p̂_k − y)ᵀ],
    the bias of counting. Left: the mean diagonal entry of that block against T with its sampling error; dotted: 1/T.
    Middle: sampled gradient norms at the bigram point and at random points of the same norm. Right: norm against c at
    each length: at short lengths a larger c makes things worse, because symbols never seen after the context have
    probability e^{−c}.
    """
    seeds = range(config.seeds)
    closed = [
        ClosedJob(seed, length, order, config.states, config.order, config.closed_sequences)
        for seed in seeds
        for length in config.lengths
        for order in range(1, config.order + 1)
    ]
    points = [
        PointJob(seed, length, order, c, config.states, config.order, config.sampled_sequences)
        for seed in seeds
        for length in (config.lengths[0], config.lengths[-1])
        for order in range(1, config.order + 1)
        for c in config.temperatures
    ]
    forms = dict(zip(closed, lab.map(closed_form, closed, label="closed form")))
    sampled = dict(zip(points, lab.map(at_point, points, label="sampled gradients")))
    diagonal = np.array(
        [[forms[job]["diagonal"] for job in closed if job.seed == seed and job.order == config.order] for seed in seeds]
    )
    logs, lengths = np.log(np.abs(diagonal)), np.log(config.lengths)
    first, last = config.lengths[0], config.lengths[-1]

    def norms(kind: str, length: int, order: int, c: float) -> np.ndarray:
        jobs = [j for j in points if (j.length, j.order, j.temperature) == (length, order, c)]
        return np.array([sampled[job][kind] for job in jobs])

    low, high = config.temperatures[0], config.temperatures[-1]
    middle = config.temperatures[len(config.temperatures) // 2]
    expected = (logs[:, 1] - logs[:, 0]) / (config.lengths[1] - first) * (last - first)
    measurements: dict[str, Any] = {
        "rate": [float(np.polyfit(lengths, row, 1)[0]) for row in logs],
        "printed-rate": (logs[:, -1] - logs[:, 0]) / expected,
        "unigram-exact": _unigram_norm(config),
        "random-point": np.log10(norms("random", last, 1, middle) / norms("norm", last, 1, middle)),
        "order-of-limits": norms("norm", first, config.order, high) / norms("norm", first, config.order, low),
        "bigram-all-heads": _bigram_error(config),
    }
    rows = [{"seed": j.seed, "length": j.length, "order": j.order, **forms[j]} for j in closed]
    return Outcome(measurements, {"gradient": _draw(config, forms, points, sampled)}, {"closed form": rows})


def _unigram_norm(config: Settings) -> float:
    world = InContextNgrams(config.states, config.order, 64, 1.0)
    model = ngram_estimator(config.states, 0, 64, heads=config.order)
    return monte_carlo_gradient(model, world, 2048, rng=rng(0), chunk=1024).norm["all"]


def _bigram_error(config: Settings) -> float:
    world = InContextNgrams(config.states, config.order, 64, 1.0)
    batch = world.sample(200, rng=rng(1))
    model = all_heads_bigram(config.states, config.order, 64, floor=0.0)
    truth = CountingEstimator.of_order(config.states, 1, boundary="clamped").probabilities(batch.inputs)[:, -1]
    with torch.no_grad():
        return float((model(batch.inputs)[:, -1].exp() - truth).abs().max())


def _draw(config: Settings, forms: dict[Any, Any], points: list[PointJob], sampled: dict[Any, Any]) -> Any:
    figure, axes = figures.new(columns=3, width=3.7, height=3.1)
    lengths, ends = np.array(config.lengths), (config.lengths[0], config.lengths[-1])
    for order in range(1, config.order + 1):
        values = np.array([[forms[j]["diagonal"] for j in forms if (j.length, j.order) == (t, order)] for t in lengths])
        error = np.array([[forms[j]["error"] for j in forms if (j.length, j.order) == (t, order)] for t in lengths])
        spread = error.mean(1) / np.sqrt(error.shape[1])
        axes[0].errorbar(lengths, values.mean(1), yerr=2 * spread, marker="o", label=f"order {order}", capsize=2)
    guide = values.mean(1)[0] * lengths[0] / lengths
    axes[0].loglog(lengths, guide, linestyle=":", color="#555555", label="1/T")
    for axis, ticks in ((axes[0], config.lengths), (axes[1], ends)):
        axis.set_xscale("log", base=2)
        axis.set_xticks(ticks, [str(tick) for tick in ticks])
    axes[0].set(title="surviving block", xlabel="length T", ylabel="mean diagonal / √c")
    axes[0].legend()
    middle = config.temperatures[len(config.temperatures) // 2]

    def mean(kind: str, length: int, order: int, c: float) -> float:
        wanted = (length, order, c)
        return float(np.mean([sampled[j][kind] for j in points if (j.length, j.order, j.temperature) == wanted]))

    for kind, label in (("norm", "bigram point"), ("random", "random point, same norm"), ("noise", "sampling noise")):
        axes[1].loglog(ends, [mean(kind, length, 1, middle) for length in ends], "o-", label=label)
    axes[1].set(title=f"sampled gradients, c = {middle:g}", xlabel="length T", ylabel="gradient norm")
    axes[1].legend()
    for length in ends:
        norms = [mean("norm", length, config.order, c) for c in config.temperatures]
        axes[2].semilogy(config.temperatures, norms, "o-", label=f"T = {length}")
    axes[2].set(title=f"order {config.order}: two limits", xlabel="temperature c", ylabel="gradient norm")
    axes[2].legend()
    return figure
