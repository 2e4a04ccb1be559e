"""Whatever the values inside the tree, the walk's leaves follow the target distribution exactly.

A random walk on the tree of prefixes replaces sampling from left to right.

From a prefix y the walk stays with probability ½, goes back to its parent with weight V(y), or on to a child y∘a with
weight π(a|y)V(y∘a). Each edge carries one conductance, c(y) = π(y)V(y), seen from both of its ends, so the walk is
reversible and its stationary distribution is the sum of the conductances at a node. A leaf has one edge, π(y)·τ(y) if V
is exact there: the target, however wrong V is elsewhere. What wrong values cost is time and, if the walk is stopped at
its first leaf, some accuracy.

Random trees (2 tokens and depth 4, 3 and 3, 2 and 6; full also 3 and 5, 2 and 8) with Dirichlet distributions and
uniform tilts, values multiplied by e^u with u uniform in [−1, 1]; 20 instances each (full 60). Everything is computed
by linear algebra in double precision; 4000 simulated walks per instance (full 20 000) are compared with it.

What to look for: in the first panel the walk is at the framed node and the numbers at its edges are the probabilities
of its next move, the second shows how much of 200 steps is spent at each length, against π̃, the third the two distances
to the target instance by instance: all points lie below the diagonal or near it, and the leaves of the stationary
distribution are exact. A film of the walk (`WalkFilm`) is on the page of the decoder vgb.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.decoding.decoders.walks import VGB
from sandlab.decoding.exact.distributions import restricted_distribution, total_variation, value_guided_distribution
from sandlab.decoding.exact.trees import Tree
from sandlab.decoding.exact.walks import TreeWalk, first_leaf_distribution, leaf_mass_bound, spectral_gap_formula
from sandlab.random import rng
from sandlab.studies.claims import Exact, Mean
from sandlab.studies.study import Lab, Rows, Study
from sandlab.studies.verifier._exact import THESIS, WALKS, leaf_p_value, table

STEPS, HERE = 200, 1  # of the walk in the second panel; node at which the walk is in the first


@dataclass(frozen=True)
class Settings:
    """Trees (tokens, depth), random instances of each, noise of log V, runs of the simulated walk."""

    seeds: int = 20
    shapes: tuple[tuple[int, int], ...] = ((2, 4), (3, 3), (2, 6))
    noise: float = 1.0
    runs: int = 4000


study = Study(
    "verifier/walk-laws",
    title="Whatever the values inside the tree, the walk's leaves follow the target exactly",
    source=f"{WALKS} ({THESIS}, §3.3)",
    quick=Settings(),
    full=Settings(seeds=60, shapes=((2, 4), (3, 3), (2, 6), (3, 5), (2, 8)), runs=20_000),
)


@dataclass(frozen=True)
class Instance:
    """A random tree, a tilt of its leaves, and values whose logarithms are noisy except at the leaves."""

    tokens: int
    depth: int
    noise: float
    runs: int
    seed: int

    def draw(self) -> tuple[Tree, list[np.ndarray], list[np.ndarray]]:
        """The tree, the exact values (the last level is the tilt) and the noisy ones."""
        tree = Tree.random(self.tokens, self.depth, rng=rng(self.seed, "tree", self.tokens, self.depth))
        chance = np.random.default_rng((self.seed, self.tokens, self.depth))
        exact = tree.values(chance.uniform(size=self.tokens**self.depth))
        noisy = [value * np.exp(self.noise * chance.uniform(-1, 1, size=value.shape)) for value in exact[:-1]]
        return tree, exact, [*noisy, exact[-1]]


def solve(instance: Instance) -> dict[str, float]:
    """Exact quantities of one random instance, and a simulation of the first leaf.

    Distances are total variations to the target; without "noisy", leaf mass, gap and steps are divided by the formulas.
    """
    tree, exact, noisy = instance.draw()
    depth, target = instance.depth, restricted_distribution(tree, exact[-1])
    walk, clean = TreeWalk(tree, noisy), TreeWalk(tree, exact)
    eigenvalues, vectors = np.linalg.eig(walk.transition.toarray().T)
    vector = np.real(vectors[:, np.argmax(np.real(eigenvalues))])
    leaves = walk.stationary[walk.levels == depth]
    excess = max(float((one / other).max()) for one, other in zip(noisy[1:-1], exact[1:-1])) - 1
    ending = Tree.ending(instance.tokens - 1, depth, rng=rng(instance.seed, "ending", instance.tokens, depth))
    wanted = restricted_distribution(ending, exact[-1])
    return {
        "tokens": instance.tokens,
        "depth": depth,
        "noise": instance.noise,
        "padded leaf": total_variation(first_leaf_distribution(ending, ending.values(exact[-1])), wanted),
        "stationary": float(np.abs(vector / vector.sum() - walk.stationary).max()),
        "leaves": total_variation(leaves / leaves.sum(), target),
        "leaf mass": clean.leaf_mass * 2 * depth,
        "leaf mass over bound": walk.leaf_mass / leaf_mass_bound(depth, excess),
        "gap": clean.gap / spectral_gap_formula(depth),
        "steps": clean.first_leaf[1] / (2 * depth**2),
        "first leaf, exact values": total_variation(clean.first_leaf[0], target),
        "noisy leaf mass": walk.leaf_mass,
        "noisy gap": walk.gap,
        "noisy steps": walk.first_leaf[1],
        "first leaf": total_variation(walk.first_leaf[0], target),
        "no backtracking": total_variation(value_guided_distribution(tree, noisy), target),
        "p-value": leaf_p_value(VGB(), tree, noisy, walk.first_leaf[0], instance.runs, rng(instance.seed, "walk")),
    }


@dataclass(frozen=True)
class Example:
    """The walk on one tree.

    values     of all nodes; moves: probabilities of the next move from node HERE
    visited    share of STEPS steps from the root that is spent at each level; stationary: in the long run
    """

    values: list[np.ndarray]
    moves: np.ndarray
    visited: np.ndarray
    stationary: np.ndarray


def draw_example(instance: Instance) -> Example:
    tree, _, noisy = instance.draw()
    walk = TreeWalk(tree, noisy)
    probs, total = np.eye(1, len(walk.levels)).ravel(), np.zeros(len(walk.levels))
    for _ in range(STEPS):
        probs = probs @ walk.transition
        total += probs / STEPS
    visited, stationary = (np.bincount(walk.levels, weights) for weights in (total, walk.stationary))
    return Example(noisy, walk.transition[HERE].toarray().ravel(), visited, stationary)


@dataclass(frozen=True)
class Results:
    """Exact quantities of all instances by name, and the walk of the picture."""

    solved: dict[str, np.ndarray]
    example: Example


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    rest = (settings.noise, settings.runs)
    instances = [Instance(*shape, *rest, seed) for shape in settings.shapes for seed in range(settings.seeds)]
    (example,) = lab.map(draw_example, [Instance(2, 4, settings.noise, 0, 0)])
    return Results(table(lab.map(solve, instances, label="walks on trees")), example)


@study.claim(Exact(below=1e-10), source=f"{WALKS}; formula derived here")
def stationary(results: Results) -> float:
    """The walk is reversible with π̃(y) ∝ 1[h>0] π(y)V(y) + 1[h<H] Σ_a π(ya)V(ya).

    Largest difference between the formula and the left eigenvector of the transition matrix.
    """
    return float(results.solved["stationary"].max())


@study.claim(Exact(below=1e-10), source=WALKS, at=f"property 3 ({THESIS}, §3.3.1)", paper="0")
def leaves(results: Results) -> float:
    """At the leaves the stationary distribution is proportional to the target for any values inside the tree.

    Largest total variation to the target, values off by factors up to e.
    """
    return float(results.solved["leaves"].max())


@study.claim(
    Exact(below=1e-10), source=WALKS, at=f"property 2 ({THESIS}, §3.3.1); constant derived here", paper="Ω(1/H)"
)
def leaf_mass(results: Results) -> float:
    """With exact values the leaves hold the share 1/(2H) of the stationary distribution.

    Largest deviation of leaf mass times 2H from 1.
    """
    return float(np.abs(results.solved["leaf mass"] - 1).max())


@study.claim(
    Exact(above=1.0 - 1e-12),
    source=WALKS,
    at="property 2; constant derived here",
    paper="Ω(1/H)",
    id="leaf-mass-bound",
)
def above_leaf_mass_bound(results: Results) -> float:
    """If V ≤ (1+ε)V* inside, the leaves hold at least 1/(2(1+(H−1)(1+ε))).

    Smallest ratio of leaf mass and bound.
    """
    return float(results.solved["leaf mass over bound"].min())


@study.claim(
    Exact(below=1e-8), source=WALKS, at=f"property 1 ({THESIS}, §3.3.1); formula derived here", paper="rapid mixing"
)
def gap(results: Results) -> float:
    """With exact values the spectral gap of the lazy walk is (1 − cos(π/2H))/2: it mixes in about H² steps.

    Largest deviation of gap divided by the formula from 1.
    """
    return float(np.abs(results.solved["gap"] - 1).max())


@study.claim(
    Exact(above=0.0),
    source=WALKS,
    at=f"property 1 ({THESIS}, §3.3.1); constant derived here",
    paper="rapid mixing",
)
def mixes(results: Results) -> float:
    """Values off by factors up to e^u cost at most a factor e^(2u) of the gap: the walk still mixes in about H² steps.

    Smallest difference between the gap with wrong values, over the formula, and e^(−2u).
    """
    formula = np.array([spectral_gap_formula(int(depth)) for depth in results.solved["depth"]])
    return float((results.solved["noisy gap"] / formula - np.exp(-2 * results.solved["noise"])).min())


@study.claim(Exact(below=1e-10), source="series-parallel reduction of the padded tree; derived here")
def padded_leaf(results: Results) -> float:
    """Where strings end at different lengths, the first leaf of the padded tree has the target distribution.

    Largest total variation to the target, exact values, random trees with an end token.
    """
    return float(results.solved["padded leaf"].max())


@study.claim(Exact(below=1e-10), source="harmonic measure of a tree; derived here")
def first_leaf(results: Results) -> float:
    """With exact values the first leaf already has the target distribution.

    Largest total variation of the first leaf's distribution to the target.
    """
    return float(results.solved["first leaf, exact values"].max())


@study.claim(Exact(below=1e-8), source="a reflecting walk on 0..H; derived here")
def steps(results: Results) -> float:
    """With exact values the first leaf is reached after 2H² steps on average, half of them lazy.

    Largest deviation of the expected steps divided by 2H² from 1.
    """
    return float(np.abs(results.solved["steps"] - 1).max())


@study.claim(Mean(above=0.0))
def order(results: Results) -> np.ndarray:
    """With noisy values the first leaf errs less than sampling with the same values without backtracking.

    Total variation without backtracking minus that of the first leaf, mean over instances.
    """
    return results.solved["no backtracking"] - results.solved["first leaf"]


@study.claim(Mean(above=0.1), source="chi-square test", note="½ is expected; the bound is ours")
def simulation(results: Results) -> np.ndarray:
    """The simulated walk has the computed distribution.

    p-value of the chi-square test of the observed first leaves, mean over instances.
    """
    return results.solved["p-value"]


@study.table
def walks_with_noisy_values(results: Results) -> dict[str, Rows]:
    columns = ("noisy leaf mass", "noisy gap", "noisy steps", "first leaf", "no backtracking")
    solved, rows = results.solved, []
    for tokens, depth in dict.fromkeys(zip(solved["tokens"].tolist(), solved["depth"].tolist())):
        chosen = (solved["tokens"] == tokens) & (solved["depth"] == depth)
        means = {name: float(solved[name][chosen].mean()) for name in columns}
        rows.append({"tokens": tokens, "depth": depth, **means, "2H²": 2 * depth**2, "1/(2H)": 1 / (2 * depth)})
    return {"walks with noisy values, means": rows}


@study.figure
def walk(results: Results) -> Figure:
    figure, axes = figures.new(columns=3, width=4.7, height=3.6)
    draw_step(axes[0], results.example)
    draw_visits(axes[1], results.example)
    guided, first = results.solved["no backtracking"], results.solved["first leaf"]
    top = max(*guided, *first) * 1.05
    axes[2].plot([0, top], [0, top], color="#999999", linewidth=1)
    axes[2].scatter(guided, first, s=12, color=figures.COLOURS[0], rasterized=True)
    axes[2].set(xlabel="distance without backtracking", ylabel="distance of the walk's first leaf")
    axes[2].set_title("total variation to the target")
    return figure


def draw_step(axis: Axes, example: Example) -> None:
    """The tree with the walk at one node, and its next move."""
    points = [
        ((node + 0.5) / len(level), -float(depth))
        for depth, level in enumerate(example.values)
        for node in range(len(level))
    ]
    for node in range(1, len(points)):
        edge = zip(points[(node - 1) // len(example.values[1])], points[node])
        axis.plot(*edge, color="#bbbbbb", linewidth=0.8, linestyle="-", zorder=0)
    depths, flat = np.arange(len(example.values)), np.concatenate(example.values)
    axis.scatter(*zip(*points), s=30 + 260 * flat / flat.max(), c=[figures.COLOURS[5]], edgecolors="white", zorder=1)
    axis.scatter(*points[HERE], s=340, facecolors="none", edgecolors=figures.COLOURS[1], linewidths=2, zorder=2)
    for index in np.flatnonzero(example.moves):
        (x, y), (other_x, other_y) = points[HERE], points[index]
        middle = ((x + other_x) / 2, (y + other_y) / 2)
        if index != HERE:
            label = axis.annotate(f"{example.moves[index]:.2f}", middle, fontsize=8, ha="center", va="center")
            label.set(backgroundcolor="white", zorder=3)
    axis.set(yticks=-depths, yticklabels=depths, xticks=[], ylabel="tokens written")
    axis.set_title("one step: back to the parent or on to a child\n(size: value of the node; stay ½)")
    axis.grid(False)


def draw_visits(axis: Axes, example: Example) -> None:
    """Visits of a walk of 200 steps (averaged over many) against the stationary distribution, by level."""
    levels, share = np.arange(len(example.visited)), 1 / (2 * (len(example.visited) - 1))
    axis.bar(levels - 0.2, example.visited, 0.4, label=f"{STEPS} steps from the root", color=figures.COLOURS[5])
    axis.bar(levels + 0.2, example.stationary, 0.4, label="stationary distribution", color=figures.COLOURS[0])
    axis.axhline(share, color="#555555", linestyle=":", linewidth=1)
    axis.annotate("1/(2H)", (levels[-1] + 0.45, share), fontsize=8, va="bottom", ha="right")
    axis.set(xlabel="tokens written", ylabel="probability", title="where the walk is", xticks=levels)
    axis.set_ylim(0, 1.3 * max(*example.visited, *example.stationary))
    axis.legend(loc="upper right")
