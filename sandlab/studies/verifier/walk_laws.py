"""The walk of value-guided sampling with backtracking, solved exactly on small trees."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy import stats

from sandlab import figures
from sandlab.decoding.decoders.walks import VGB
from sandlab.decoding.exact.distributions import restricted_law, total_variation, value_guided_law
from sandlab.decoding.exact.trees import TableVerifier, Tree, TreeGenerator, node_numbers
from sandlab.decoding.exact.walks import TreeWalk, leaf_mass_bound, spectral_gap_formula
from sandlab.random import rng
from sandlab.studies.claims import Above, Below, Claim
from sandlab.studies.study import Lab, Outcome, study
from sandlab.studies.verifier.sources import THESIS, WALKS


@dataclass(frozen=True)
class Settings:
    """Trees (tokens, depth), random instances of each, noise of log V, runs of the simulated walk."""

    seeds: int = 20
    shapes: tuple[tuple[int, int], ...] = ((2, 4), (3, 3), (2, 6))
    noise: float = 1.0
    runs: int = 4000


@dataclass(frozen=True)
class Job:
    tokens: int
    depth: int
    noise: float
    runs: int
    seed: int


def instance(job: Job) -> tuple[Tree, np.ndarray, list[np.ndarray], list[np.ndarray]]:
    """A random tree, a tilt of its leaves, the exact values, and values with log-noise that are exact at the leaves."""
    tree = Tree.random(job.tokens, job.depth, rng=rng(job.seed, "tree", job.tokens, job.depth))
    chance = np.random.default_rng((job.seed, job.tokens, job.depth))
    tilt = chance.uniform(size=job.tokens**job.depth)
    exact = tree.values(tilt)
    noisy = [value * np.exp(job.noise * chance.uniform(-1, 1, size=value.shape)) for value in exact[:-1]]
    return tree, tilt, exact, [*noisy, tilt]


def solve(job: Job) -> dict[str, Any]:
    """All exact quantities of one random instance, and a simulation of the first leaf."""
    tree, tilt, exact, noisy = instance(job)
    target = restricted_law(tree, tilt)
    walk, clean = TreeWalk(tree, noisy), TreeWalk(tree, exact)
    matrix = walk.transition.toarray()
    eigenvalues, vectors = np.linalg.eig(matrix.T)
    vector = np.real(vectors[:, np.argmax(np.real(eigenvalues))])
    levels = walk.stationary[walk.levels == job.depth]
    excess = max(float((one / other).max()) for one, other in zip(noisy[1:-1], exact[1:-1])) - 1
    return {
        "stationary": float(np.abs(vector / vector.sum() - walk.stationary).max()),
        "leaves": total_variation(levels / levels.sum(), target),
        "leaf mass": clean.leaf_mass * 2 * job.depth,
        "noisy leaf mass": walk.leaf_mass,
        "above bound": walk.leaf_mass / leaf_mass_bound(job.depth, excess),
        "gap": clean.gap / spectral_gap_formula(job.depth),
        "noisy gap": walk.gap,
        "steps": clean.first_leaf[1] / (2 * job.depth**2),
        "noisy steps": walk.first_leaf[1],
        "first leaf, exact values": total_variation(clean.first_leaf[0], target),
        "first leaf": total_variation(walk.first_leaf[0], target),
        "no backtracking": total_variation(value_guided_law(tree, noisy), target),
        "p-value": _simulate(tree, noisy, walk.first_leaf[0], job),
    }


def _simulate(tree: Tree, values: list[np.ndarray], law: np.ndarray, job: Job) -> float:
    """Chi-square probability of the first leaves of simulated walks under the exact law."""
    done = VGB().generate(
        TreeGenerator(tree),
        torch.zeros(job.runs, 0, dtype=torch.long),
        verifier=TableVerifier(values, tree.tokens),
        max_new=tree.depth,
        rng=rng(job.seed, "walk"),
    )
    leaves = node_numbers(done.tokens, done.lengths, tree.tokens) - len(np.concatenate(values[:-1]))
    counts = np.bincount(leaves.numpy(), minlength=len(law))
    rare = law * job.runs < 5
    observed, expected = np.append(counts[~rare], counts[rare].sum()), np.append(law[~rare], law[rare].sum()) * job.runs
    kept = expected > 0
    return float(stats.chisquare(observed[kept], expected[kept] * observed[kept].sum() / expected[kept].sum()).pvalue)


@study(
    "verifier/walk-laws",
    title="Whatever the values inside the tree, the walk's leaves follow the target exactly",
    source=f"{WALKS} ({THESIS}, §3.3)",
    quick=Settings(),
    full=Settings(seeds=60, shapes=((2, 4), (3, 3), (2, 6), (3, 5), (2, 8)), runs=20_000),
    claims=[
        Claim(
            "stationary",
            "The walk is reversible with π̃(y) ∝ 1[h>0] π(y)V(y) + 1[h<H] Σ_a π(ya)V(ya).",
            f"{WALKS}; formula derived here",
            "largest difference between the formula and the left eigenvector of the transition matrix",
            Below(1e-10),
            exact=True,
        ),
        Claim(
            "leaves",
            "At the leaves the stationary law is proportional to the target for any values inside the tree.",
            f"{WALKS}, property 3 ({THESIS}, §3.3.1)",
            "largest total variation to the target, values off by factors up to e",
            Below(1e-10),
            exact=True,
        ),
        Claim(
            "leaf-mass",
            "With exact values the leaves hold the share 1/(2H) of the stationary law.",
            f"{WALKS}, property 2 ({THESIS}, §3.3.1); constant derived here",
            "largest deviation of leaf mass times 2H from 1",
            Below(1e-10),
            exact=True,
            paper="Ω(1/H)",
        ),
        Claim(
            "leaf-mass-bound",
            "If V ≤ (1+ε)V* inside, the leaves hold at least 1/(2(1+(H−1)(1+ε))).",
            f"{WALKS}, property 2; constant derived here",
            "smallest ratio of leaf mass and bound",
            Above(1.0 - 1e-12),
            exact=True,
            paper="Ω(1/H)",
        ),
        Claim(
            "gap",
            "With exact values the spectral gap of the lazy walk is (1 − cos(π/2H))/2: it mixes in about H² steps.",
            f"{WALKS}, property 1 ({THESIS}, §3.3.1); formula derived here",
            "largest deviation of gap divided by the formula from 1",
            Below(1e-8),
            exact=True,
            paper="rapid mixing",
        ),
        Claim(
            "first-leaf",
            "With exact values the first leaf already has the target law.",
            "harmonic measure of a tree; derived here",
            "largest total variation of the first leaf's law to the target",
            Below(1e-10),
            exact=True,
        ),
        Claim(
            "steps",
            "With exact values the first leaf is reached after 2H² steps on average, half of them lazy.",
            "a reflecting walk on 0..H; derived here",
            "largest deviation of the expected steps divided by 2H² from 1",
            Below(1e-8),
            exact=True,
        ),
        Claim(
            "order",
            "With noisy values the first leaf errs less than sampling with the same values without backtracking.",
            f"{WALKS} ({THESIS}, §3.3)",
            "total variation without backtracking minus that of the first leaf, mean over instances",
            Above(0.0),
        ),
        Claim(
            "simulation",
            "The simulated walk has the computed law.",
            "chi-square test",
            "smallest probability of the observed first leaves, times the number of instances (Bonferroni)",
            Above(1e-3),
            exact=True,
        ),
    ],
)
def walk_laws(config: Settings, lab: Lab) -> Outcome:
    """A random walk on the tree of prefixes replaces sampling from left to right.

    From a prefix y the walk stays with probability ½, goes back to its parent with weight V(y), or on to a child y∘a
    with weight π(a|y)V(y∘a). Each edge carries one conductance, c(y) = π(y)V(y), seen from both of its ends, so the
    walk is reversible and its stationary law is the sum of the conductances at a node. A leaf has one edge, π(y)·τ(y)
    if V is exact there: the target, however wrong V is elsewhere. What wrong values cost is time and, if the walk is
    stopped at its first leaf, some accuracy.

    Random trees (2 tokens and depth 4, 3 and 3, 2 and 6; full also 3 and 5, 2 and 8) with Dirichlet laws and uniform
    tilts, values multiplied by e^u with u uniform in [−1, 1]; 20 instances each (full 60). Everything is computed by
    linear algebra in double precision; 4000 simulated walks per instance (full 20 000) are compared with it.

    What to look for: in the first picture the walk stands at the framed node and the numbers at its edges are the
    probabilities of its next move, the second shows how much of 200 steps is spent at each length, against π̃, the third
    the two distances to the target instance by instance: all points lie below the diagonal or near it, and the leaves
    of the stationary law are exact. A film of the walk (`WalkFilm`) is on the page of the decoder vgb.
    """
    jobs = [Job(*shape, config.noise, config.runs, seed) for shape in config.shapes for seed in range(config.seeds)]
    found = lab.map(solve, jobs, label="walks on trees")

    def every(name: str) -> np.ndarray:
        return np.array([each[name] for each in found])

    def off_one(name: str) -> float:
        return float(np.abs(every(name) - 1).max())

    measurements: dict[str, Any] = {
        "stationary": float(every("stationary").max()),
        "leaves": float(every("leaves").max()),
        "leaf-mass": off_one("leaf mass"),
        "leaf-mass-bound": float(every("above bound").min()),
        "gap": off_one("gap"),
        "first-leaf": float(every("first leaf, exact values").max()),
        "steps": off_one("steps"),
        "order": every("no backtracking") - every("first leaf"),
        "simulation": float(every("p-value").min() * len(jobs)),
    }
    columns = ("noisy leaf mass", "noisy gap", "noisy steps", "first leaf", "no backtracking")
    rows = [
        {
            "tokens": tokens,
            "depth": depth,
            **{
                name: float(
                    np.mean(
                        [each[name] for job, each in zip(jobs, found) if (job.tokens, job.depth) == (tokens, depth)]
                    )
                )
                for name in columns
            },
            "2H²": 2 * depth**2,
            "1/(2H)": 1 / (2 * depth),
        }
        for tokens, depth in config.shapes
    ]
    figure = _draw(Job(2, 4, config.noise, 0, 0), every("first leaf"), every("no backtracking"))
    return Outcome(measurements, {"walk": figure}, {"walks with noisy values, means": rows})


def _draw(job: Job, first: np.ndarray, guided: np.ndarray) -> Any:
    tree, _, _, values = instance(job)
    walk = TreeWalk(tree, values)
    figure, axes = figures.new(columns=3, width=4.7, height=3.6)
    with figures.style():
        _draw_step(axes[0], tree, values, walk)
        _draw_visits(axes[1], tree, values, walk)
        top = float(max(guided.max(), first.max())) * 1.05
        axes[2].plot([0, top], [0, top], color="#999999", linewidth=1)
        axes[2].scatter(guided, first, s=12, color=figures.COLOURS[0], rasterized=True)
        axes[2].set(
            xlabel="distance without backtracking",
            ylabel="distance of the walk's first leaf",
            title="total variation to the target",
        )
    return figure


def _positions(tree: Tree) -> list[tuple[float, float]]:
    places = []
    for level in range(tree.depth + 1):
        count = tree.tokens**level
        places += [((node + 0.5) / count, -float(level)) for node in range(count)]
    return places


def _edges(axis: Any, tree: Tree, places: list[tuple[float, float]]) -> None:
    for node in range(1, len(places)):
        parent = (node - 1) // tree.tokens
        (x0, y0), (x1, y1) = places[parent], places[node]
        axis.plot([x0, x1], [y0, y1], color="#bbbbbb", linewidth=0.8, linestyle="-", zorder=0)
    axis.set(yticks=-np.arange(tree.depth + 1), yticklabels=range(tree.depth + 1), xticks=[], ylabel="tokens written")
    axis.grid(False)


def _draw_step(axis: Any, tree: Tree, values: list[np.ndarray], walk: TreeWalk) -> None:
    """The walk stands at one node; its next move."""
    places = _positions(tree)
    _edges(axis, tree, places)
    flat = np.concatenate(values)
    x, y = np.array(places).T
    axis.scatter(x, y, s=30 + 260 * flat / flat.max(), c=[figures.COLOURS[5]], edgecolors="white", zorder=1)
    here = 1
    axis.scatter(*places[here], s=340, facecolors="none", edgecolors=figures.COLOURS[1], linewidths=2, zorder=2)
    row = walk.transition[here].toarray().ravel()
    for node in np.flatnonzero(row):
        if node == here:
            continue
        middle = (np.array(places[here]) + np.array(places[node])) / 2
        axis.annotate(
            f"{row[node]:.2f}", middle, fontsize=8, ha="center", va="center", backgroundcolor="white", zorder=3
        )
    axis.set_title("one step: back to the parent or on to a child\n(size: value of the node; stay ½)")


def _draw_visits(axis: Any, tree: Tree, values: list[np.ndarray], walk: TreeWalk) -> None:
    """Visits of a walk of 200 steps (averaged over many) against the stationary law, by level."""
    law, total = np.eye(1, len(walk.levels)).ravel(), np.zeros(len(walk.levels))
    for _ in range(200):
        law = law @ walk.transition
        total += law / 200
    levels = np.arange(tree.depth + 1)
    measured = [total[walk.levels == level].sum() for level in levels]
    stationary = [walk.stationary[walk.levels == level].sum() for level in levels]
    axis.bar(levels - 0.2, measured, 0.4, label="200 steps from the root", color=figures.COLOURS[5])
    axis.bar(levels + 0.2, stationary, 0.4, label="stationary law", color=figures.COLOURS[0])
    axis.axhline(1 / (2 * tree.depth), color="#555555", linestyle=":", linewidth=1)
    axis.annotate("1/(2H)", (levels[-1] + 0.45, 1 / (2 * tree.depth)), fontsize=8, va="bottom", ha="right")
    axis.set(xlabel="tokens written", ylabel="probability", title="where the walk is", xticks=levels)
    axis.set_ylim(0, 1.3 * max(*measured, *stationary))
    axis.legend(loc="upper right")
