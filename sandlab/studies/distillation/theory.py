"""The first step on parity, exactly: which of the theory's statements hold, and which do not.

All expectations are sums over {±1}^d, so that no random draw enters but the initial signs, which the statements
quantify over. Checked: Fourier coefficients of Majority, the population gradient (Claim 7 without its spurious minus),
the weights after one step with 2η₁λ₁ = 1 (Lemma 63), correlations of one pair of neurons averaged over its bias
(Lemma 64), of a randomly started and of an aligned network, and the even coefficients of a network that is odd.

**What was learnt.** The step singles out the support in every pair of neurons, but in a randomly started network the
pairs' signs average out: its correlation with a coordinate of the support is 1/(k√m) in size, not 1/(8k). The aligned
start, which the source assumes without loss of generality, has it. Off the support weights are (k − 1)/(d − k) times
those on it, k times larger than printed. Corollary 3 is 0 = ½c: a product of three odd functions has no mean.

Chosen after a look at results: the two claims about pairs first spoke of each pair with its own bias and failed, since
1/(2k) is the mean over the grid of biases, not the value at each. They were redefined as that mean, after the failing
run and for this reason.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from matplotlib.figure import Figure

from sandlab import figures
from sandlab.learning.distillation.two_stages import (
    TheoryWeights,
    every_sign,
    first_stage,
    majority_coefficient,
)
from sandlab.lenses.distillation import one_step
from sandlab.studies.claims import Exact, Mean
from sandlab.studies.distillation import _shared as shared
from sandlab.studies.study import Lab, Rows, Study


@dataclass(frozen=True)
class Settings:
    """Dimension, order, width, how many starts are tried, and whether some of them are aligned."""

    dimension: int = 13
    order: int = 4
    width: int = 256
    seeds: int = 6
    align: bool = True


study = Study(
    "distillation/theory",
    title="One step of gradient descent finds the support in every neuron, and hides it in their sum",
    source=shared.SOURCE,
    at="Section 4.2.6",
    quick=Settings(),
    full=Settings(dimension=15, width=512, seeds=16),
    null=Settings(align=False),
)


@dataclass(frozen=True)
class Start:
    """What one start gives, random or aligned.

    gradient, weights   largest distance from the closed form
    on, off             mean |E f x_u| in the support, largest off it
    pair_on, pair_off   the same of single pairs: smallest on, largest off
    even                largest |E f χ_A| over sets of two and four coordinates
    corollary           largest |E f Maj x_i|
    """

    gradient: float
    weights: float
    on: float
    off: float
    pair_on: float
    pair_off: float
    even: float
    corollary: float


@dataclass(frozen=True)
class Begin:
    """A start to examine."""

    settings: Settings
    seed: int
    aligned: bool


@dataclass(frozen=True)
class Results:
    majority: list[float]
    ratio: float
    gap: float
    random: list[Start]
    aligned: list[Start]
    order: int
    dimension: int
    width: int


def examine(begin: Begin) -> Start:
    """The job: one step from one start, with exact expectations."""
    d, k, width = begin.settings.dimension, begin.settings.order, begin.settings.width
    x = every_sign(d)
    y = x[:, :k].prod(1)
    start = TheoryWeights.drawn(d, width, k, seed=begin.seed, aligned=begin.aligned and begin.settings.align)
    after = first_stage(start, x, y)
    network = one_step.network_correlation(after, x).abs()
    grid = [step / k for step in range(1 - k, k)]
    pairs = [
        sum(one_step.pair_correlation(after.w[i], b, x) for b in grid).abs() / len(grid)  # type: ignore[union-attr]
        for i in range(min(8, width // 2))
    ]
    sets = [*itertools.combinations(range(5), 2), *itertools.combinations(range(6), 4)]
    majority = x.sum(1).sign()
    outputs = after(x)
    return Start(
        float((start.hinge_slope(x, y) - one_step.parity_gradient(start)).abs().max()),
        float((after.w - one_step.first_step_weights(start)).abs().max()),
        float(network[:k].mean()),
        float(network[k:].max()),
        min(float(pair[:k].min()) for pair in pairs),
        max(float(pair[k:].max()) for pair in pairs),
        float((outputs @ one_step.characters(x, sets) / len(x)).abs().max()),
        float(((outputs * majority) @ x / len(x)).abs().max()),
    )


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    begins = [Begin(settings, seed, aligned) for aligned in (False, True) for seed in range(settings.seeds)]
    found = lab.map(examine, begins, label="starts")
    majority = every_sign(11).sum(1).sign()
    measured = [float((majority * every_sign(11)[:, :j].prod(1)).mean()) for j in range(12)]
    wrong = [measured[j] - majority_coefficient(11, j) for j in range(12)]
    d, k = settings.dimension, settings.order
    ratio = abs(majority_coefficient(d, k + 1) / majority_coefficient(d, k - 1)) - (k - 1) / (d - k)
    gap = one_step.majority_gap(d, k) / (0.03 * (d - 1) ** (-(k - 1) / 2))
    half = settings.seeds
    return Results(wrong, ratio, gap, found[:half], found[half:], k, d, settings.width)


@study.claim(Exact(equals=0.0, within=1e-12), at="Section 4.2.6")
def majority_coefficients(results: Results) -> list[float]:
    """The Fourier coefficients of Majority have a closed form.

    Difference of the closed form and the sum over all inputs, for all degrees of d = 11.
    """
    return results.majority


@study.claim(Exact(equals=0.0, within=1e-12), at="Section 4.2.6")
def ratio_of_coefficients(results: Results) -> float:
    """Neighbouring ones have the ratio (k − 1)/(d − k).

    Difference of both sides.
    """
    return results.ratio


@study.claim(Exact(above=1.0), at="Section 4.2.6", paper="at least 0.03 (d − 1)^(−(k−1)/2)")
def gap_of_coefficients(results: Results) -> float:
    """Their gap is as large as stated.

    |ζ_{k−1}| − |ζ_{k+1}| over its stated lower bound.
    """
    return results.gap


@study.claim(Exact(equals=0.0, within=1e-14), at="Claim 7")
def gradient(results: Results) -> list[float]:
    """The population gradient at the start has the closed form, without the printed minus.

    Largest difference over weights, for each start.
    """
    return [start.gradient for start in results.random + results.aligned]


@study.claim(Exact(equals=0.0, within=1e-12), at="Lemma 63")
def weights(results: Results) -> list[float]:
    """One step with 2η₁λ₁ = 1 gives the stated weights.

    Largest difference over weights, for each start.
    """
    return [start.weights for start in results.random + results.aligned]


@study.claim(Exact(equals=1.0, within=1e-12), at="Lemma 64", paper="1/(2k)")
def pair_on_support(results: Results) -> list[float]:
    """Each pair of neurons correlates with every coordinate of the support, on average over its bias.

    Smallest |correlation| of eight pairs with a coordinate of the support, times 2k.
    """
    return [start.pair_on * 2 * results.order for start in results.random]


@study.claim(Exact(equals=1.0, within=1e-9), at="Lemma 64", paper="O(1/d) of that")
def pair_off_support(results: Results) -> list[float]:
    """And with the others (k − 1)/(d − k) times as much.

    Largest |correlation| of eight pairs off the support over the smallest on it, times (d − k)/(k − 1).
    """
    factor = (results.dimension - results.order) / (results.order - 1)
    return [factor * start.pair_off / max(start.pair_on, 1e-300) for start in results.random]


@study.claim(Mean(above=1.0), at="Lemma 64", paper="at least 1/(8k)")
def aligned_network(results: Results) -> list[float]:
    """An aligned network correlates with the support.

    Mean |E f x_u| over the support, times 8k.
    """
    return [start.on * 8 * results.order for start in results.aligned]


@study.claim(Mean(above=1.0), at="Lemma 64", paper="at least 1/(8k)", held=False)
def random_network(results: Results) -> list[float]:
    """So does a network with random signs, as printed.

    Mean |E f x_u| over the support, times 8k.
    """
    return [start.on * 8 * results.order for start in results.random]


@study.claim(Exact(equals=0.0, within=1e-12), at="Lemma 64")
def even_degrees(results: Results) -> list[float]:
    """After the step the network is odd: its even coefficients are zero.

    Largest |E f χ_A| over sets of two and four coordinates.
    """
    return [start.even for start in results.random + results.aligned]


@study.claim(Exact(equals=0.0, within=1e-12), at="Corollary 3", paper="½c_i")
def corollary(results: Results) -> list[float]:
    """Its product with Majority and a coordinate has no mean, contrary to Corollary 3.

    Largest |E f Maj x_i|.
    """
    return [start.corollary for start in results.random + results.aligned]


@study.table
def starts(results: Results) -> dict[str, Rows]:
    named = [("random", results.random), ("aligned", results.aligned)]
    return {"starts": [{"start": name, **vars(each)} for name, group in named for each in group]}


@study.figure
def correlations(results: Results) -> Figure:
    title = "In a random start the neurons' signs hide the support"
    figure, (axis,) = figures.new(width=5.6, title=title)
    groups = {"random start": results.random, "aligned start": results.aligned}
    for shift, marker, label in ((-0.1, "o", "support"), (0.1, "s", "others")):
        points = [(p + shift, s.on if marker == "o" else s.off) for p, g in enumerate(groups.values()) for s in g]
        axis.plot(*zip(*points), marker, label=label)
    for place, name in enumerate(groups):
        axis.annotate(name, (place, 0), xytext=(0, -28), textcoords="offset points", ha="center")
    axis.axhline(1 / (8 * results.order), linestyle=":", color="#555555", label="1/(8k)")
    axis.set(ylabel="mean |E f x_u|", xticks=[], xlim=(-0.5, 1.5))
    axis.legend(loc="center left", fontsize=8)
    return figure
