"""Sub-n-grams are near-stationary: the gradient at their points falls like 1/T, and a growing norm can spoil it.

The population gradient of the simplified transformer at its constructed k-gram points.

Three states, trigram task, Dirichlet(1) rows; the points of the bigram (a sub-trigram) and of the trigram itself. In
the limit of sharp attention only one block of the gradient survives, the bias of counting:
∂L/∂K₂[h, 0] = √c E[e_{x_{T−h}}(p̂_k − y)ᵀ]. It is averaged over 2¹⁷ sequences per length and seed (full: 2¹⁸). Those in
which a symbol never followed the context are not in the formula; their share fades faster than the block itself.

For a binary task and up to 12 tokens the sum over all sequences is exact (table "enumerated").

**In the figure.** Left: the mean diagonal entry of that block against T with its sampling error; dotted: 1/T. Middle:
sampled gradient norms at the bigram point and at random points of the same norm. Right: norm against c at each length:
at short lengths a larger c makes things worse, because symbols never seen after the context have probability e^{−c}.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.circuits.ngrams.counting import all_heads_bigram, ngram_estimator
from sandlab.lenses.ngrams import lemmas, theory
from sandlab.random import rng
from sandlab.studies.claims import Exact, Mean
from sandlab.studies.ngrams._shared import SOURCE, Lemmas
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.base import Batch
from sandlab.worlds.ngrams.in_context import InContextNgrams

SHORT, LOW = (6, 8, 10, 12), (3.0, 5.0, 10.0)
"""Lengths and temperatures of the enumerated task."""
TASK = InContextNgrams(states=3, order=2, length=64, concentration=1.0)
ORDERS = (1, 2)  # of the points: the bigram, a sub-trigram, and the trigram
COLUMNS = ("norm", "noise", "diagonal", "error", "unseen")


@dataclass(frozen=True)
class Settings:
    """Lengths, temperatures c (smallest, middle, largest) and sequences per estimate."""

    seeds: int = 4
    lengths: tuple[int, ...] = (32, 64, 128, 256)
    temperatures: tuple[float, float, float] = (5.0, 10.0, 20.0)
    closed_sequences: int = 131072
    sampled_sequences: int = 4096


study = Study(
    "ngrams/near-stationary",
    title="The gradient at a sub-n-gram fades as 1/T, and no faster",
    source=SOURCE,
    at="Theorem 4.2",
    quick=Settings(),
    full=Settings(seeds=8, lengths=(32, 64, 128, 256, 512), closed_sequences=262144),
)
lemma = Lemmas(study)


@dataclass(frozen=True)
class Results:
    """Gradients at the points.

    closed       the surviving block (seed, length, order, COLUMNS)
    sampled      gradient norm at the point, its noise, and the norm at random points of the same norm
                 (seed, shortest or longest length, order, temperature, these three)
    enumerated   exact gradient norms of a binary trigram task (order, temperature, length)
    exact        numbers of the lemmas
    """

    lengths: tuple[int, ...]
    temperatures: tuple[float, ...]
    closed: np.ndarray
    sampled: np.ndarray
    enumerated: np.ndarray
    exact: dict[str, float]

    @property
    def log_diagonal(self) -> np.ndarray:
        """(seed, length, order)"""
        return np.log(np.abs(self.closed[..., COLUMNS.index("diagonal")]))

    @property
    def at_bigram(self) -> np.ndarray:
        """`sampled` at the bigram point and the middle temperature (seed, shortest or longest, these three)."""
        return self.sampled[:, :, 0, len(self.temperatures) // 2]


@dataclass(frozen=True)
class Point:
    """A constructed point on sequences of one length; the control is the mean over `randoms` points."""

    seed: int
    length: int
    order: int
    sequences: int
    temperature: float = 0.0
    randoms: int = 1


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    lengths, temperatures, seeds = settings.lengths, settings.temperatures, range(settings.seeds)
    blocks = [Point(*each, settings.closed_sequences) for each in product(seeds, lengths, ORDERS)]
    randoms = {(1, temperatures[1]): 16}  # the control of the claims: the bigram point at the middle temperature
    points = [
        Point(seed, length, order, settings.sampled_sequences, c, randoms.get((order, c), 1))
        for seed, length, order, c in product(seeds, (lengths[0], lengths[-1]), ORDERS, temperatures)
    ]
    closed = lab.map(surviving_block, blocks, label="closed form")
    sampled = lab.map(at_point, points, label="sampled gradients")
    return Results(
        lengths,
        temperatures,
        closed=np.array(closed).reshape(len(seeds), len(lengths), len(ORDERS), -1),
        sampled=np.array(sampled).reshape(len(seeds), 2, len(ORDERS), len(temperatures), -1),
        enumerated=enumerated_norms(),
        exact=lemma.numbers(),
    )


def surviving_block(job: Point) -> tuple[float, ...]:
    """The surviving block over √c, from its closed form (COLUMNS)."""
    world = replace(TASK, length=job.length)
    found = theory.key_gradient(world, job.order, job.sequences, rng=rng(job.seed, "closed", job.length))
    return found.norm, found.noise, found.diagonal, found.diagonal_error, found.unseen


def at_point(job: Point) -> tuple[float, ...]:
    """Sampled gradient norm with its noise, and the mean norm at random points."""
    model = ngram_estimator(TASK.states, job.order, job.length, heads=TASK.order, temperature=job.temperature)
    draw, elsewhere = rng(job.seed, "point", job.length, job.order), rng(job.seed, "other")
    models = [model, *(theory.random_like(model, rng=elsewhere) for _ in range(job.randoms))]
    world, chunk = replace(TASK, length=job.length), job.sequences // 4
    here, *there = (theory.monte_carlo_gradient(each, world, job.sequences, rng=draw, chunk=chunk) for each in models)
    return here.norm["all"], here.noise["all"], float(np.mean([each.norm["all"] for each in there]))


def enumerated_norms() -> np.ndarray:
    def norm(order: int, c: float, batch: Batch) -> float:
        model = ngram_estimator(2, order, batch.inputs.shape[1], heads=2, temperature=c)
        return theory.exact_gradient_norm(model, batch)

    batches = [theory.enumerate_world(InContextNgrams(2, 2, length, 1.0)) for length in SHORT]
    return np.array([[[norm(order, c, batch) for batch in batches] for c in LOW] for order in ORDERS])


@study.claim(
    Mean(between=(-1.4, -0.6)),
    at="Theorem 4.2, with the corrected rate",
    paper="printed: exponential in T; counting says 1/T",
)
def rate(results: Results) -> list[float]:
    """The surviving gradient block of the full n-gram point falls like 1/T.

    Log–log slope of the mean diagonal entry of the first block against T.
    """
    return slopes(results, order=-1)


@study.claim(Mean(below=-0.6), at="Theorem 4.2, with the corrected rate")
def sub_ngram_falls(results: Results) -> list[float]:
    """At the bigram point, a sub-trigram, the surviving block falls with T too.

    Log–log slope of the mean diagonal entry of the bigram point's block against T.
    """
    return slopes(results, order=0)


def slopes(results: Results, order: int) -> list[float]:
    return [float(np.polyfit(np.log(results.lengths), row, 1)[0]) for row in results.log_diagonal[:, :, order]]


@study.claim(Mean(below=0.5), at="Theorem 4.2")
def sampled_falls(results: Results) -> np.ndarray:
    """So does the whole gradient there, sampled and differentiated automatically.

    Gradient norm at the bigram point, longest length over shortest, middle c.
    """
    return results.at_bigram[:, 1, 0] / results.at_bigram[:, 0, 0]


@lemma(Exact(below=1e-9), at="equation (20), corrected")
def closed_form() -> float:
    """On sequences that show every symbol after the context, the surviving block is its closed form.

    Largest difference between automatic differentiation and the closed form, c = 30, T = 256, every order.
    """
    return max(key_error for key_error, _ in block_errors())


@lemma(Exact(below=1e-9), at="Theorem 4.2", paper="0")
def silent_blocks() -> float:
    """There the gradients of the first layer and of the queries vanish.

    Largest norm of the gradients of A₁, V₁ and Q₂ on those sequences.
    """
    return max(norm for _, norm in block_errors())


def block_errors(length: int = 256, c: float = 30.0) -> Iterator[tuple[float, float]]:
    """Automatic differentiation at the point of every order against the closed form."""
    for order in ORDERS:
        batch = replace(TASK, length=length).sample(200, rng=rng(2, "covered", order))
        batch = batch[theory.covered(batch.inputs, TASK.states, order)]
        model = ngram_estimator(TASK.states, order, length, heads=TASK.order, temperature=c)
        yield lemmas.key_gradient_errors(model, batch, range(1, order + 1), c)


@study.claim(Exact(below=1.0), at="Theorem 4.2, by enumeration")
def enumerated_falls(results: Results) -> float:
    """Summed over all sequences of a binary task, the gradient norm falls with every increase of the length.

    Largest ratio of the exact norm at one length to that at the length before, orders 1 and 2, c = 3, 5, 10.
    """
    return float((results.enumerated[:, :, 1:] / results.enumerated[:, :, :-1]).max())


@study.claim(Exact(above=1.0), source="order of limits, by enumeration")
def enumerated_limits(results: Results) -> float:
    """There, too, a larger norm makes it larger at every fixed length.

    Smallest ratio of the exact norm at one c to that at the c before.
    """
    return float((results.enumerated[:, 1:] / results.enumerated[:, :-1]).min())


@study.claim(Mean(above=0.8), at="Theorem 4.2 as printed", held=False)
def printed_rate(results: Results) -> np.ndarray:
    """The gradient falls exponentially in T.

    Drop of log(diagonal) over all lengths, over that of an exponential through the first two.
    """
    logs, lengths = results.log_diagonal[:, :, -1], results.lengths
    expected = (logs[:, 1] - logs[:, 0]) / (lengths[1] - lengths[0]) * (lengths[-1] - lengths[0])
    return (logs[:, -1] - logs[:, 0]) / expected


@lemma(Exact(equals=0.0, within=1e-12), at="Theorem 4.2 with k = 1")
def unigram_exact() -> float:
    """At the unigram point the gradient is exactly zero.

    Gradient norm.
    """
    point = ngram_estimator(TASK.states, 0, TASK.length, heads=TASK.order)
    return theory.monte_carlo_gradient(point, TASK, 2048, rng=rng(0), chunk=1024).norm["all"]


@study.claim(Mean(above=0.5), source="control")
def random_point(results: Results) -> np.ndarray:
    """A random point of the same norm has a much larger gradient that does not fade.

    Log10 of the mean gradient norm at 16 random points over that at the bigram point, longest length.
    """
    return np.log10(results.at_bigram[:, 1, 2] / results.at_bigram[:, 1, 0])


@study.claim(Mean(above=0.5), source="control")
def random_stays(results: Results) -> np.ndarray:
    """Over the same lengths the gradient at the random point does not fall.

    Mean gradient norm over 16 random points of the bigram point's norm, longest length over shortest.
    """
    return results.at_bigram[:, 1, 2] / results.at_bigram[:, 0, 2]


@study.claim(Mean(above=1.2), source="order of limits")
def order_of_limits(results: Results) -> np.ndarray:
    """At a fixed short length a larger norm makes the gradient larger.

    Gradient norm at the largest c over that at the smallest, shortest length, trigram point.
    """
    return results.sampled[:, 0, -1, -1, 0] / results.sampled[:, 0, -1, 0, 0]


@lemma(Exact(below=1e-9), at="Appendix F", paper="0")
def bigram_all_heads() -> float:
    """The point with all heads on the previous token computes the bigram too.

    Largest error against the clamped bigram estimator.
    """
    point = all_heads_bigram(TASK.states, TASK.order, TASK.length, floor=0.0)
    return lemmas.counting_error(point, 1, TASK.sample(200, rng=rng(1)).inputs)


@study.table
def gradients(results: Results) -> dict[str, Rows]:
    points = product(range(len(results.closed)), results.lengths, ORDERS)
    closed = [
        {"seed": seed, "length": length, "order": order, **dict(zip(COLUMNS, values.tolist()))}
        for (seed, length, order), values in zip(points, results.closed.reshape(-1, len(COLUMNS)))
    ]
    enumerated = [
        {"order": order, "temperature": c, **{f"T = {t}": float(norm) for t, norm in zip(SHORT, row)}}
        for (order, c), row in zip(product(ORDERS, LOW), results.enumerated.reshape(-1, len(SHORT)))
    ]
    return {"closed form": closed, "enumerated": enumerated}


@study.figure
def gradient(results: Results) -> Figure:
    figure, axes = figures.new(columns=3, width=3.7, height=3.1)
    lengths, ends, temperatures = (
        np.array(results.lengths),
        results.lengths[:: len(results.lengths) - 1],
        results.temperatures,
    )
    diagonal, error = (results.closed[..., COLUMNS.index(name)].mean(0).T for name in ("diagonal", "error"))
    bars = 2 * error / np.sqrt(len(results.closed))
    for order, values, bar in zip(ORDERS, diagonal, bars):
        axes[0].errorbar(lengths, values, yerr=bar, marker="o", label=f"order {order}", capsize=2)
    axes[0].loglog(lengths, diagonal[-1, 0] * lengths[0] / lengths, linestyle=":", color="#555555", label="1/T")
    axes[0].set(title="surviving block", xlabel="length T", ylabel="mean diagonal / √c")
    for index, label in ((0, "bigram point"), (2, "random point, same norm"), (1, "sampling noise")):
        axes[1].loglog(ends, results.at_bigram.mean(0)[:, index], "o-", label=label)
    axes[1].set(title=f"sampled gradients, c = {temperatures[1]:g}", xlabel="length T", ylabel="gradient norm")
    for axis, ticks in ((axes[0], results.lengths), (axes[1], ends)):
        axis.set_xscale("log", base=2)
        axis.set_xticks(ticks, [str(tick) for tick in ticks])
        axis.minorticks_off()
    for length, norms in zip(ends, results.sampled.mean(0)[:, -1, :, 0]):
        axes[2].semilogy(temperatures, norms, "o-", label=f"T = {length}")
    axes[2].set(title=f"order {ORDERS[-1]}: two limits", xlabel="temperature c", ylabel="gradient norm")
    for axis in axes:
        axis.legend()
    return figure
