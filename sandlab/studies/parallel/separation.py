"""One step against a thousand: the separation of k-Gibbs and independent parallel (Corollary 4.1.1).

δ = 0.1, M = 1000: a clique of 93 spins, total field h_G = 2.178, J − ‖h‖₁ = 32.23. From a start with Σ x = −3 (the
nearest odd number to the corollary's ≤ −2) and from all minus, redrawing everything lands in the all-plus mode in one
step with probability 0.987 (the bound of the proof is 0.975), while independent parallel does not reach it in 1000
steps. Each unit is a batch of chains. The null has no coupling but a field of 1.7 on each spin: one step seldom makes
all plus, and both samplers, now the same, arrive soon.

The heat maps show how far the coupling and the size of the clique may fall before the separation goes: expected steps
(at most 1000) of N-Gibbs and of independent parallel, exact.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.decoding.parallel.clique_chain import (
    clique_gibbs_matrix,
    clique_parallel_matrix,
    stuck_bound,
    visit_bound,
    walk_magnetisation,
)
from sandlab.decoding.parallel.hitting import expected_hitting_time, survival
from sandlab.random import rng
from sandlab.studies.claims import Exact, Mean
from sandlab.studies.parallel import _shared as shared
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.parallel.clique import IsingClique, IsingConditions, separating_clique

STUCK = ((20, 1.0), (30, 1.0), (12, 2.0))
"""Cliques and J₀ for the bound of Proposition 4.1.5."""


@dataclass(frozen=True)
class Settings:
    """δ and M of the corollary, chains in each of `seeds` batches, factors of coupling and field, grid of the maps."""

    delta: float = 0.1
    horizon: int = 1000
    chains: int = 100
    seeds: int = 20
    strength: float = 1.0
    field: float = 1.0
    cliques: tuple[int, ...] = (4, 8, 12, 16, 24, 32)
    couplings: tuple[float, ...] = (0.02, 0.05, 0.1, 0.2, 0.4, 0.8)


QUICK = Settings()
study = Study(
    "parallel/separation",
    title="Redrawing all spins jointly changes mode in one step; redrawing them independently does not in a thousand",
    source=shared.SOURCE,
    at="Corollary 4.1.1",
    quick=QUICK,
    full=replace(QUICK, chains=1000),
    null=replace(QUICK, strength=0.0, field=74.0),
)


@dataclass(frozen=True)
class Batch:
    settings: Settings
    seed: int
    start: int


@dataclass(frozen=True)
class Results:
    """Shares of chains per batch, from Σ = −3 and from all minus; exact numbers of the theory beside them.

    stuck   for each clique of the stuck bound: exact chance of staying below, and 1 − δ of the bound
    """

    clique: int
    arrived: np.ndarray
    reached: np.ndarray
    exact: float
    bound: float
    stuck: np.ndarray
    cliques: tuple[int, ...]
    couplings: tuple[float, ...]
    maps: np.ndarray


def world_of(settings: Settings) -> IsingClique:
    world = separating_clique(settings.delta, settings.horizon)
    return replace(world, coupling=world.coupling * settings.strength, field=world.field * settings.field)


def shares(job: Batch) -> np.ndarray:
    """Share of chains in R₁ after one step of N-Gibbs, and of those that independent parallel ever brings there."""
    world, chains = world_of(job.settings), job.settings.chains
    one = walk_magnetisation(world, job.start, chains, 1, k=world.sites, rng=rng(job.seed, "gibbs", job.start))
    many = walk_magnetisation(
        world, job.start, chains, job.settings.horizon, k=None, rng=rng(job.seed, "parallel", job.start)
    )
    return np.array(
        [float((one[-1] == world.clique).double().mean()), float((many == world.clique).any(0).double().mean())]
    )


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    world = world_of(settings)
    starts = (world.clique // 2 - 1, 0)
    jobs = [Batch(settings, seed, start) for start in starts for seed in range(settings.seeds)]
    found = np.array(lab.map(shares, jobs, label="chains")).reshape(2, settings.seeds, 2)
    conditions = IsingConditions(world, settings.delta, settings.horizon)
    matrix = clique_gibbs_matrix(world, world.sites)
    bound = 1 - visit_bound(world.sites, world.clique, world.sites, conditions.slack, world.total_field)
    return Results(
        world.clique, found[..., 0], found[..., 1], float(matrix[0, -1]), bound, _stuck(), settings.cliques,
        settings.couplings, np.array([[_steps(c, j) for j in settings.couplings] for c in settings.cliques]),
    )  # fmt: skip


def _stuck() -> np.ndarray:
    """Exact chance that Σ ≤ −2 is kept for the T steps of Proposition 4.1.5 at δ = ½, started at its edge."""
    kept = []
    for clique, slack in STUCK:
        world = IsingClique(clique, clique, slack + 0.01 * clique, 0.01)
        start, above = np.eye(clique + 1)[clique // 2 - 1], np.arange(clique + 1) > clique // 2 - 1
        kept.append(survival(clique_parallel_matrix(world), start, above, stuck_bound(clique, slack, 0.5) + 1)[-1])
    return np.array(kept)


def _steps(clique: int, coupling: float) -> tuple[float, float]:
    """Expected steps to R₁ of N-Gibbs and of independent parallel, at a total field of 2."""
    world = IsingClique(clique, clique, coupling, 2.0 / clique)
    start, inside = np.eye(clique + 1)[0], np.arange(clique + 1) == clique
    joint, parallel = clique_gibbs_matrix(world, clique), clique_parallel_matrix(world)
    return tuple(expected_hitting_time(matrix, start, inside, 1000) for matrix in (joint, parallel))  # type: ignore


@study.claim(Mean(above=0.95), at="Corollary 4.1.1", paper="with probability at least 1 − δ/2 = 0.95")
def one_joint_step(results: Results) -> np.ndarray:
    """One step of N-Gibbs reaches the all-plus mode.

    Share of chains in R₁ after one step, per batch, mean of both starts.
    """
    return results.arrived.mean(0)


@study.claim(Mean(below=1e-4), at="Corollary 4.1.1", paper="with probability at least 1 − δ never in M steps")
def never_in_parallel(results: Results) -> np.ndarray:
    """Independent parallel never reaches it in 1000 steps.

    Share of chains that ever are in R₁, per batch, mean of both starts.
    """
    return results.reached.mean(0)


@study.claim(Exact(above=0.0), at="Proposition 4.1.4")
def exact_exceeds_the_bound(results: Results) -> list[float]:
    """The exact one-step probability exceeds the bound of the proof.

    P(R₁ after one step) minus 1/(1 + e^{−2h_G} + (2^c − 2)e^{−2(J₀ + h_G)}).
    """
    return [results.exact - results.bound]


@study.claim(Exact(above=0.5), at="Proposition 4.1.5", paper="at least 1 − δ")
def stuck_as_long_as_bounded(results: Results) -> np.ndarray:
    """Independent parallel stays at Σ ≤ −2 at least as long as the bound says.

    Exact chance of staying for ⌊(δ/2)e^{c_stuck}⌋ steps at δ = ½, for (c, J₀) = (20, 1), (30, 1), (12, 2).
    """
    return results.stuck


@study.claim(Exact(below=0.4), at="Corollary 4.1.1")
def the_gap_needs_coupling_and_size(results: Results) -> list[float]:
    """The separation is a matter of coupling times size: weak coupling in a small clique has none.

    log₁₀ of the ratio of expected steps (parallel over joint) at the smallest coupling and clique.
    """
    joint, parallel = results.maps[0, 0]
    return [float(np.log10(parallel / joint))]


@study.table
def probabilities(results: Results) -> Rows:
    starts = ("Σ = −3", "all minus")
    return [
        {"start": name, "N-Gibbs, one step": float(one.mean()), "exact": results.exact, "bound": results.bound,
         "parallel, ever": float(many.mean())}
        for name, one, many in zip(starts, results.arrived, results.reached)
    ]  # fmt: skip


@study.figure
def expected_steps(results: Results) -> Figure:
    figure, axes = figures.new(
        columns=2, width=4.8, height=3.4, title="Steps until all spins are plus (log₁₀, at most 3)"
    )
    for axis, values, name in zip(
        axes, np.moveaxis(results.maps, -1, 0), ("all spins jointly", "independently in parallel")
    ):
        figures.heatmap(
            axis, np.log10(values), title=name, x="coupling J", y="spins in the clique", low=0, high=3, numbers=True
        )
        axis.set_xticks(range(len(results.couplings)), [f"{value:g}" for value in results.couplings])
        axis.set_yticks(range(len(results.cliques)), [str(value) for value in results.cliques])
    return figure
