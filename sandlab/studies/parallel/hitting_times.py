"""A sampler must redraw the whole clique to change mode; sites drawn independently in parallel never do.

Figure 4.3. Ten spins, four of them a clique of coupling J, all fields 5. From the mode where the clique is all minus,
count steps until it is all plus, at most 1000. The chain of the number of plus spins is exact, so every simulated
mean stands beside its expectation E[min(T, 1000)].

The source's values of J are not stated. That independent parallel "never" reaches the mode fixes J ≥ 4 when each pair
counts once. With J large and k ≥ 4, E T = C(10, k)/C(6, k − 4): 210, 42, 14, 6, 3, 5/3, 1. The assumption of the
theory, h_G > Σ|h_i| outside the clique, does not hold for the figure's own numbers (20 < 30); the dynamics of the
clique do not depend on outside fields. The null has J = 0.5, where all samplers are fast.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import comb

import numpy as np
import torch
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.decoding.parallel.clique_chain import clique_gibbs_matrix, clique_parallel_matrix, walk_magnetisation
from sandlab.decoding.parallel.films import SpinFilm
from sandlab.decoding.parallel.hitting import expected_hitting_time, survival
from sandlab.decoding.parallel.samplers import KGibbs, Trace
from sandlab.decoding.parallel.site_models import CliqueSites
from sandlab.random import rng
from sandlab.studies.claims import Mean, Share
from sandlab.studies.parallel import _shared as shared
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.parallel.clique import IsingClique

BUDGET = 1000


@dataclass(frozen=True)
class Settings:
    """Couplings, block sizes (0: independent parallel), and how often each walk is repeated."""

    couplings: tuple[float, ...] = (4.0, 5.0, 6.0, 8.0, 10.0)
    blocks: tuple[int, ...] = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0)
    seeds: int = 10


QUICK = Settings()
study = Study(
    "parallel/hitting-times",
    title="Larger blocks change mode sooner; drawing all spins independently in parallel never does",
    source=shared.SOURCE,
    at="Figure 4.3",
    quick=QUICK,
    full=replace(QUICK, seeds=100),
    null=replace(QUICK, couplings=(0.5, 0.6, 0.7, 0.8, 1.0)),
)


@dataclass(frozen=True)
class Walk:
    coupling: float
    block: int
    seeds: int


@dataclass(frozen=True)
class Results:
    """hits[J, block, seed] simulated, expected[J, block] exact; both count at most 1000.

    spins, drawn   one walk of 8-Gibbs at the first coupling: states (time, site), and which spins each step drew
    """

    couplings: tuple[float, ...]
    blocks: tuple[int, ...]
    hits: np.ndarray
    expected: np.ndarray
    deviation: np.ndarray
    spins: np.ndarray
    drawn: np.ndarray

    @property
    def gibbs(self) -> np.ndarray:
        """Places of k-Gibbs among the blocks."""
        return np.array([i for i, block in enumerate(self.blocks) if block])

    @property
    def parallel(self) -> np.ndarray:
        """(J, seed)"""
        return self.hits[:, self.blocks.index(0)]


def world_of(coupling: float) -> IsingClique:
    return IsingClique(10, 4, coupling, 5.0, 5.0)


def walk(job: Walk) -> np.ndarray:
    """Hitting times of all repetitions, then their exact mean and standard deviation."""
    world = world_of(job.coupling)
    stream = rng(0, "walk", str(job.coupling), job.block)
    plus = walk_magnetisation(world, 0, job.seeds, BUDGET, k=job.block or None, rng=stream)
    times = torch.where((plus == 4).any(0), (plus == 4).int().argmax(0), BUDGET).double().numpy()
    matrix = clique_gibbs_matrix(world, job.block) if job.block else clique_parallel_matrix(world)
    mean, square = _moments(matrix)
    return np.append(times, [mean, np.sqrt(max(square - mean**2, 0.0))])


def _moments(matrix: np.ndarray) -> tuple[float, float]:
    """E[min(T, B)] and E[min(T, B)²]."""
    alive = survival(matrix, np.eye(5)[0], np.arange(5) == 4, BUDGET)
    mean = expected_hitting_time(matrix, np.eye(5)[0], np.arange(5) == 4, BUDGET)
    return mean, float(((2 * np.arange(BUDGET) + 1) * alive).sum())


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    jobs = [Walk(coupling, block, settings.seeds) for coupling in settings.couplings for block in settings.blocks]
    found = np.array(lab.map(walk, jobs, label="walks")).reshape(len(settings.couplings), len(settings.blocks), -1)
    trace = _film(settings.couplings[0])
    spins, drawn = trace.states[:, 0].numpy(), trace.hidden[:, 0].numpy()
    return Results(settings.couplings, settings.blocks, found[..., :-2], found[..., -2], found[..., -1], spins, drawn)


def _film(coupling: float) -> Trace:
    """Five steps of 8-Gibbs from all minus."""
    start = torch.zeros(1, 10, dtype=torch.long)
    return KGibbs(8).run(CliqueSites(world_of(coupling)), start, 5, rng=rng(0, "film"))


@study.claim(Share(above=0.9), at="Figure 4.3", paper="210, 42, 14, 6, 3, 5/3, 1 from k = 4 on, strong coupling")
def simulation_meets_theory(results: Results) -> list[bool]:
    """Simulated walks agree with the exact chain, and this with the closed form where the coupling is strong.

    Share of (J, k) cells whose mean lies within three standard errors of E[min(T, 1000)], or within 1 where the
    chain hardly varies; none, if at the largest J the chain is off C(10, k)/C(6, k − 4) by more than 2 % for a k ≥ 4.
    """
    error = results.deviation / np.sqrt(results.hits.shape[-1])
    gap = np.abs(results.hits.mean(-1) - results.expected)
    closed = {k: comb(10, k) / comb(6, k - 4) for k in results.blocks if k >= 4}
    strong = all(
        np.isclose(results.expected[-1, results.blocks.index(k)], time, rtol=0.02) for k, time in closed.items()
    )
    return ((gap <= np.maximum(3 * error, 1.0)) & strong).ravel().tolist()


@study.claim(Mean(above=990.0), at="Figure 4.3", paper="never reached in 1000 steps, for any J tried")
def parallel_never_arrives(results: Results) -> np.ndarray:
    """Independent parallel does not reach the other mode.

    Steps until R₁ (1000: not reached), mean over couplings of each repetition.
    """
    return results.parallel.mean(0)


@study.claim(Share(above=0.9), at="Figure 4.3", paper="larger k, fewer steps")
def larger_blocks_are_faster(results: Results) -> list[bool]:
    """k-Gibbs with larger blocks arrives sooner.

    Share of (J, repetition) in which the steps averaged over k = 1 … 3 exceed those over 4 … 6, these 7 … 10, and
    the first the last a hundredfold: the clique has four spins, and from k = 7 on at most 6 steps are expected.
    """
    steps = results.hits[:, results.gibbs]
    small, middle, large = steps[:, :3].mean(1), steps[:, 3:6].mean(1), steps[:, 6:].mean(1)
    return ((small > middle) & (middle > large) & (small > 100 * large)).ravel().tolist()


@study.claim(Mean(below=2.0), at="Figure 4.3", paper="1 step at k = N")
def whole_redraw_takes_one_step(results: Results) -> np.ndarray:
    """Redrawing everything arrives at once, where nothing smaller than the clique ever does.

    Steps of k = 10, mean over couplings, plus 1000 minus those of k = 1 (0 when it never arrives).
    """
    place = results.blocks.index(10), results.blocks.index(1)
    return results.hits[:, place[0]].mean(0) + BUDGET - results.hits[:, place[1]].mean(0)


@study.claim(Share(above=0.5), at="Figure 4.3", paper="stronger coupling, more steps")
def stronger_coupling_is_slower(results: Results) -> list[bool]:
    """Stronger coupling takes more steps at k = 4.

    Share of repetitions in which the largest J needs more steps than the smallest J, at least by half.
    """
    place = results.blocks.index(4)
    return (results.hits[-1, place] > 1.5 * results.hits[0, place]).tolist()


@study.table
def steps_until_the_mode(results: Results) -> Rows:
    return [
        {
            "J": coupling,
            "sampler": f"{block}-Gibbs" if block else "independent parallel",
            "simulated": float(results.hits[i, j].mean()),
            "exact": float(results.expected[i, j]),
        }
        for i, coupling in enumerate(results.couplings)
        for j, block in enumerate(results.blocks)
    ]


@study.figure
def steps(results: Results) -> Figure:
    figure, (axis,) = figures.new(
        width=6.4, height=3.8, title="Larger blocks change mode sooner; independent spins never do"
    )
    k = np.array([results.blocks[i] for i in results.gibbs])
    for i, coupling in enumerate(results.couplings):
        runs, colour = results.hits[i, results.gibbs], figures.COLOURS[i % len(figures.COLOURS)]
        axis.errorbar(
            k + 0.06 * i, runs.mean(1), shared.spread(runs.T), fmt="o", ms=4, color=colour, label=f"J = {coupling:g}"
        )
        axis.plot(k, results.expected[i, results.gibbs], color=colour, linestyle="-", linewidth=1)
    axis.axhline(results.parallel.mean(), color="#555555", linestyle=":", label="independent parallel")
    axis.set(yscale="log", xlabel="spins redrawn per step (k)", ylabel="steps until all clique spins are plus")
    axis.legend(ncols=2)
    return figure


@study.figure
def spins(results: Results) -> Figure:
    kept = Trace(torch.as_tensor(results.spins)[:, None], torch.as_tensor(results.drawn)[:, None], 0)
    return SpinFilm(kept, clique=4, columns=5).strip(6)
