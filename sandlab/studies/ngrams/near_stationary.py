"""Sub-n-grams are near-stationary: the gradient at their points falls like 1/T, and a growing norm can spoil it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from sandlab import figures
from sandlab.circuits.ngrams.counting import all_heads_bigram, ngram_estimator
from sandlab.lenses.ngrams.theory import (
    covered,
    enumerate_world,
    exact_gradient,
    key_gradient,
    monte_carlo_gradient,
    random_like,
)
from sandlab.random import rng
from sandlab.studies.claims import Above, Below, Between, Claim, Equals
from sandlab.studies.ngrams.runs import SOURCE
from sandlab.studies.study import Lab, Outcome, study
from sandlab.worlds.base import Batch
from sandlab.worlds.ngrams.estimators import CountingEstimator
from sandlab.worlds.ngrams.in_context import InContextNgrams

SHORT, LOW = (6, 8, 10, 12), (3.0, 5.0, 10.0)
"""Lengths and temperatures of the enumerated task."""


@dataclass(frozen=True)
class Settings:
    """Lengths, temperatures c and sequences per estimate; three states, trigrams, Dirichlet(1)."""

    seeds: int = 4
    lengths: tuple[int, ...] = (32, 64, 128, 256)
    temperatures: tuple[float, ...] = (5.0, 10.0, 20.0)
    closed_sequences: int = 262144
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
    randoms: int = 1


def closed_form(job: ClosedJob) -> dict[str, Any]:
    """The surviving block at an n-gram point over √c, from its closed form."""
    world = InContextNgrams(job.states, job.task_order, job.length, 1.0)
    found = key_gradient(world, job.order, job.sequences, rng=rng(job.seed, "closed", job.length))
    return {
        "norm": found.norm, "noise": found.noise, "diagonal": found.diagonal, "error": found.diagonal_error,
        "unseen": found.unseen,
    }  # fmt: skip


def at_point(job: PointJob) -> dict[str, Any]:
    """Sampled gradient norm at an n-gram point with its noise, and the mean over random points of the same norm."""
    world = InContextNgrams(job.states, job.task_order, job.length, 1.0)
    model = ngram_estimator(job.states, job.order, job.length, heads=job.task_order, temperature=job.temperature)
    draw = rng(job.seed, "point", job.length, job.order)
    here = monte_carlo_gradient(model, world, job.sequences, rng=draw, chunk=job.sequences // 4)
    elsewhere = rng(job.seed, "other")
    others = [random_like(model, rng=elsewhere) for _ in range(job.randoms)]
    there = [monte_carlo_gradient(other, world, job.sequences, rng=draw, chunk=job.sequences // 4) for other in others]
    blocks = {name.split(".")[3] if "weight" in name else name: value for name, value in here.norm.items()}
    return {
        "norm": here.norm["all"],
        "noise": here.noise["all"],
        "random": float(np.mean([each.norm["all"] for each in there])),
        "blocks": blocks,
    }


@study(
    "ngrams/near-stationary",
    title="The gradient at a sub-n-gram fades as 1/T, and no faster",
    source=f"{SOURCE}, Theorem 4.2",
    quick=Settings(),
    full=Settings(seeds=8, lengths=(32, 64, 128, 256, 512)),
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
            "sub-ngram-falls",
            "At the bigram point, a sub-trigram, the surviving block falls with T too.",
            f"{SOURCE}, Theorem 4.2, with the corrected rate",
            "log–log slope of the mean diagonal entry of the bigram point's block against T",
            Below(-0.6),
        ),
        Claim(
            "sampled-falls",
            "So does the whole gradient there, sampled and differentiated automatically.",
            f"{SOURCE}, Theorem 4.2",
            "gradient norm at the bigram point, longest length over shortest, middle c",
            Below(0.5),
        ),
        Claim(
            "closed-form",
            "On sequences that show every symbol after the context, the surviving block is its closed form.",
            f"{SOURCE}, equation (20), corrected",
            "largest difference between automatic differentiation and the closed form, c = 30, T = 256, every order",
            Below(1e-9),
            exact=True,
        ),
        Claim(
            "silent-blocks",
            "There the gradients of the first layer and of the queries vanish.",
            f"{SOURCE}, Theorem 4.2",
            "largest norm of the gradients of A₁, V₁ and Q₂ on those sequences",
            Below(1e-9),
            exact=True,
        ),
        Claim(
            "enumerated-falls",
            "Summed over all sequences of a binary task, the gradient norm falls with every step of the length.",
            f"{SOURCE}, Theorem 4.2, by enumeration",
            "largest ratio of the exact norm at one length to that at the length before, orders 1 and 2, c = 3, 5, 10",
            Below(1.0),
            exact=True,
        ),
        Claim(
            "enumerated-limits",
            "There, too, a larger norm makes it larger at every fixed length.",
            "order of limits, by enumeration",
            "smallest ratio of the exact norm at one c to that at the c before",
            Above(1.0),
            exact=True,
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
            "log10 of the mean gradient norm at 16 random points over that at the bigram point, longest length",
            Above(0.5),
        ),
        Claim(
            "random-stays",
            "Over the same lengths the gradient at the random point does not fall.",
            "control",
            "mean gradient norm over 16 random points of the bigram point's norm, longest length over shortest",
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

    Three states, trigram task, Dirichlet(1) rows; the points of the bigram (a sub-trigram) and of the trigram itself.
    In the limit of sharp attention only one block of the gradient survives, the bias of counting:
    ∂L/∂K₂[h, 0] = √c E[e_{x_{T−h}}(p̂_k − y)ᵀ]. It is averaged over 2¹⁸ sequences per length and seed. Those in which
    a symbol never followed the context are not in the formula; their share fades faster than the block itself.

    For a binary task and up to 12 tokens the sum over all sequences is exact (table "enumerated").

    **In the figure.** Left: the mean diagonal entry of that block against T with its sampling error; dotted: 1/T.
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
    middle = config.temperatures[len(config.temperatures) // 2]
    points = [
        PointJob(
            seed, length, order, c, config.states, config.order, config.sampled_sequences,
            randoms=16 if (order, c) == (1, middle) else 1,
        )
        for seed in seeds
        for length in (config.lengths[0], config.lengths[-1])
        for order in range(1, config.order + 1)
        for c in config.temperatures
    ]  # fmt: skip
    forms = dict(zip(closed, lab.map(closed_form, closed, label="closed form")))
    sampled = dict(zip(points, lab.map(at_point, points, label="sampled gradients")))
    logs, lower = (
        np.log(np.abs([[forms[j]["diagonal"] for j in closed if (j.seed, j.order) == (seed, order)] for seed in seeds]))
        for order in (config.order, 1)
    )
    lengths = np.log(config.lengths)
    first, last = config.lengths[0], config.lengths[-1]

    def norms(kind: str, length: int, order: int, c: float) -> np.ndarray:
        jobs = [j for j in points if (j.length, j.order, j.temperature) == (length, order, c)]
        return np.array([sampled[job][kind] for job in jobs])

    exact = enumerated_norms()
    low, high = config.temperatures[0], config.temperatures[-1]
    expected = (logs[:, 1] - logs[:, 0]) / (config.lengths[1] - first) * (last - first)
    measurements: dict[str, Any] = {
        "rate": [float(np.polyfit(lengths, row, 1)[0]) for row in logs],
        "sub-ngram-falls": [float(np.polyfit(lengths, row, 1)[0]) for row in lower],
        "sampled-falls": norms("norm", last, 1, middle) / norms("norm", first, 1, middle),
        "random-stays": norms("random", last, 1, middle) / norms("random", first, 1, middle),
        **_surviving_block(config),
        "enumerated-falls": float((exact[:, :, 1:] / exact[:, :, :-1]).max()),
        "enumerated-limits": float((exact[:, 1:] / exact[:, :-1]).min()),
        "printed-rate": (logs[:, -1] - logs[:, 0]) / expected,
        "unigram-exact": _unigram_norm(config),
        "random-point": np.log10(norms("random", last, 1, middle) / norms("norm", last, 1, middle)),
        "order-of-limits": norms("norm", first, config.order, high) / norms("norm", first, config.order, low),
        "bigram-all-heads": _bigram_error(config),
    }
    table = [
        {"order": order, "temperature": c, **{f"T = {t}": float(norm) for t, norm in zip(SHORT, row)}}
        for order, part in enumerate(exact, start=1)
        for c, row in zip(LOW, part)
    ]
    rows = [{"seed": j.seed, "length": j.length, "order": j.order, **forms[j]} for j in closed]
    return Outcome(
        measurements, {"gradient": _draw(config, forms, points, sampled)}, {"closed form": rows, "enumerated": table}
    )


def enumerated_norms() -> np.ndarray:
    """(order, temperature, length): exact gradient norms at the points of a binary trigram task."""
    found = np.zeros((2, len(LOW), len(SHORT)))
    for column, length in enumerate(SHORT):
        batch = enumerate_world(InContextNgrams(2, 2, length, 1.0))
        for order in (1, 2):
            for row, c in enumerate(LOW):
                gradients = exact_gradient(ngram_estimator(2, order, length, heads=2, temperature=c), batch).values()
                found[order - 1, row, column] = sum(float(part.square().sum()) for part in gradients) ** 0.5
    return found


def _unigram_norm(config: Settings) -> float:
    world = InContextNgrams(config.states, config.order, 64, 1.0)
    model = ngram_estimator(config.states, 0, 64, heads=config.order)
    return monte_carlo_gradient(model, world, 2048, rng=rng(0), chunk=1024).norm["all"]


def _surviving_block(config: Settings, *, length: int = 256, c: float = 30.0) -> dict[str, float]:
    """Automatic differentiation at every point against the closed form, on sequences that show every symbol."""
    apart, silent = 0.0, 0.0
    for order in range(1, config.order + 1):
        batch = InContextNgrams(config.states, config.order, length, 1.0).sample(200, rng=rng(2, "covered", order))
        batch = batch[covered(batch.inputs, config.states, order)]
        model = ngram_estimator(config.states, order, length, heads=config.order, temperature=c)
        gradients = dict(zip(dict(model.named_parameters()), _gradient(model, batch)))
        key = gradients.pop("layers.1.attention.key.weight")
        law = CountingEstimator.of_order(config.states, order, boundary="clamped").last_probabilities(batch.inputs)
        expected = torch.zeros_like(key)
        for h in range(1, order + 1):
            token = F.one_hot(batch.inputs[:, -h], config.states).double()
            block = c**0.5 * token.T @ (law - batch.targets[:, 0]) / len(batch)
            expected[h * config.states : (h + 1) * config.states, : config.states] = block
        apart = max(apart, float((key - expected).abs().max()))
        silent = max(silent, *(float(gradient.norm()) for gradient in gradients.values()))
    return {"closed-form": apart, "silent-blocks": silent}


def _gradient(model: nn.Module, batch: Batch) -> tuple[torch.Tensor, ...]:
    loss = -(batch.targets * model(batch.inputs)).sum((-1, -2)).mean()
    return torch.autograd.grad(loss, list(model.parameters()))


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
    for axis, ticks in ((axes[0], config.lengths), (axes[1], ends)):
        axis.set_xscale("log", base=2)
        axis.set_xticks(ticks, [str(tick) for tick in ticks])
        axis.minorticks_off()
    for length in ends:
        norms = [mean("norm", length, config.order, c) for c in config.temperatures]
        axes[2].semilogy(config.temperatures, norms, "o-", label=f"T = {length}")
    axes[2].set(title=f"order {config.order}: two limits", xlabel="temperature c", ylabel="gradient norm")
    axes[2].legend()
    return figure
