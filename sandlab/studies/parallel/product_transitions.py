"""Parallel decoding writes products: what a block of coupled spins loses when each is drawn on its own.

Propositions 4.1.2 and 4.1.3: a transformer that writes all positions at once realises exactly the Markov chains whose
transitions are products, with explicit weights; a block of k > 1 coupled spins is not among them. What the best
product misses is the total correlation of the block, (c − 1) ln 2 nats in the limit of strong coupling. One Gibbs
update of a *given* site is a product; when the site itself is random, the transition is a mixture and no product
either.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.circuits.parallel.product_weights import (
    deterministic_map,
    gibbs_site_step,
    nearest_product_chain,
    product_chain,
)
from sandlab.decoding.parallel.product_steps import ParallelDecoding, decoding_matrix
from sandlab.lenses.parallel.dependence import dependency_gap, total_correlation
from sandlab.studies.claims import Exact
from sandlab.studies.parallel import _shared as shared
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.parallel.families import Ising
from sandlab.worlds.parallel.finite import FiniteLaw, enumerate_states, size_masks
from sandlab.worlds.parallel.heat_bath import block_matrix

KNOWN = {0.05: 0.0085, 0.3: 0.4668, 1.0: 2.0018, 5.0: 2.0794}


@dataclass(frozen=True)
class Settings:
    """Sites of the constructed chains, and couplings of the curve."""

    sites: int = 3
    couplings: tuple[float, ...] = tuple(np.linspace(0, 1.6, 33).round(3).tolist())


study = Study(
    "parallel/product-transitions",
    title="Drawing coupled tokens independently loses their total correlation; products are all a parallel decoder has",
    source=shared.SOURCE,
    at="Propositions 4.1.2 and 4.1.3",
    quick=Settings(),
    full=Settings(sites=4),
)


@dataclass(frozen=True)
class Results:
    """Errors of the constructed weights, dependence of one step's positions, and curves over the coupling."""

    weights_error: float
    map_error: float
    site_error: float
    step_dependence: float
    random_site: float
    known: np.ndarray
    couplings: tuple[float, ...]
    gaps: np.ndarray
    nearest: np.ndarray


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    sites, states = settings.sites, enumerate_states(settings.sites)
    probs = _some_chain(len(states), sites)
    wanted = np.prod([probs[:, j][:, states[:, j]] for j in range(sites)], 0)
    found = decoding_matrix(product_chain(probs), sites, 2)
    images = states[(3 * np.arange(len(states)) + 1) % len(states)]
    moved = decoding_matrix(deterministic_map(images, 2), sites, 2, ParallelDecoding(temperature=0)).argmax(1)
    law = Ising(sites, 0.6).law
    steps = np.stack([decoding_matrix(gibbs_site_step(law, site), sites, 2) for site in range(sites)])
    mixed = steps.mean(0)
    gaps = [[dependency_gap(Ising(4, j).law, np.arange(4) < k) for k in (1, 2, 3, 4)] for j in settings.couplings]
    return Results(
        weights_error=float(np.abs(found - wanted).max()),
        map_error=float(np.abs(moved - (3 * np.arange(len(states)) + 1) % len(states)).max()),
        site_error=float(np.abs(mixed - block_matrix(law, size_masks(sites, 1))).max()),
        step_dependence=max(abs(total_correlation(FiniteLaw(2, row / row.sum()))) for row in (*found, *steps[0])),
        random_site=max(total_correlation(FiniteLaw(2, row / row.sum())) for row in mixed),
        known=np.array([total_correlation(Ising(4, j).law) - value for j, value in KNOWN.items()]),
        couplings=settings.couplings,
        gaps=np.array(gaps),
        nearest=_nearest_gap(sites),
    )


def _some_chain(states: int, sites: int) -> np.ndarray:
    """A product chain without any symmetry: P(1) at site j after state s is σ(sin(1 + 5s + 3j))."""
    plus = 1 / (1 + np.exp(-2 * np.sin(1 + 5 * np.arange(states)[:, None] + 3 * np.arange(sites))))
    return np.stack([1 - plus, plus], -1)


def _nearest_gap(sites: int) -> np.ndarray:
    """KL of each row of a joint redraw to the weights' nearest product, minus the row's total correlation."""
    matrix = block_matrix(Ising(sites, 1.0).law, size_masks(sites, sites))
    product = decoding_matrix(product_chain(nearest_product_chain(matrix, 2)), sites, 2)
    gap = (matrix * np.log(matrix / product)).sum(1)
    return gap - np.array([total_correlation(FiniteLaw(2, row)) for row in matrix])


@study.claim(Exact(below=1e-6), at="Proposition 4.1.3", paper="every product chain")
def weights_realise_the_chain(results: Results) -> list[float]:
    """Explicit weights of two blocks realise a given product chain.

    Largest difference of transition probabilities.
    """
    return [results.weights_error]


@study.claim(Exact(equals=0.0, within=0.0), at="Proposition 4.1.2", paper="every function")
def weights_realise_the_map(results: Results) -> list[float]:
    """With the likeliest tokens they realise a given map of sequences.

    Largest difference of the images' numbers.
    """
    return [results.map_error]


@study.claim(Exact(below=1e-9), at="Proposition 4.3.5", paper="products only")
def one_step_is_a_product(results: Results) -> list[float]:
    """Positions written in one step are independent.

    Largest total correlation of a row of the transition matrix (nats).
    """
    return [results.step_dependence]


@study.claim(Exact(below=1e-9), at="§4.1.4", paper="1-Gibbs encodes a product in each transition")
def gibbs_with_given_sites(results: Results) -> list[float]:
    """Steps at given sites, mixed over a random site, are Gibbs sampling.

    Largest difference of transition probabilities.
    """
    return [results.site_error]


@study.claim(Exact(below=1e-3), at="§4.1.4", paper="1-Gibbs encodes a product in each transition", held=False)
def random_site_is_a_product(results: Results) -> list[float]:
    """A Gibbs step whose site is drawn inside the step is a product too (it is a mixture).

    Largest total correlation of its rows (nats).
    """
    return [results.random_site]


@study.claim(Exact(equals=0.0, within=1e-4), source=shared.SPEC)
def total_correlation_digits(results: Results) -> np.ndarray:
    """What products lose on a clique of four has the known values.

    Difference from 0.0085, 0.4668, 2.0018, 2.0794 at J = 0.05, 0.3, 1, 5.
    """
    return results.known


@study.claim(Exact(equals=0.0, within=1e-9), source=shared.SPEC)
def nearest_product(results: Results) -> np.ndarray:
    """The nearest product chain misses exactly the total correlation.

    KL(row ‖ product of marginals, as weights) − total correlation of the row.
    """
    return results.nearest


@study.table
def losses(results: Results) -> Rows:
    return [
        {"J": coupling, **{f"k = {k}": float(results.gaps[i, k - 1]) for k in (1, 2, 3, 4)}}
        for i, coupling in enumerate(results.couplings)
        if i % 4 == 0
    ]


@study.figure
def lost_dependence(results: Results) -> Figure:
    figure, (axis,) = figures.new(
        width=5.8, height=3.5, title="What the best product loses when k coupled spins are drawn at once"
    )
    for k in (1, 2, 3, 4):
        axis.plot(results.couplings, results.gaps[:, k - 1], label=f"k = {k}")
    figures.levels(axis, {"(c − 1) ln 2": 3 * np.log(2)})
    axis.set(xlabel="coupling J", ylabel="total correlation of the block (nats)")
    axis.legend()
    return figure
