"""The depth table at the published length: words of 100 letters, up to sixteen layers.

The cells of `automata/depth-table` for a walk, a counter and five groups that are not commutative, with words as long
as the published ones. What a shallow network can do by looking at every letter at once grows with the length: at 16
letters (`automata/depth-table`) every row is easier.

Published: width 512, twenty runs for each cell, 600 000 to 5 million words. Full: width 128 (a quarter), five seeds,
5000 batches of 64 words (320 000 words, about half of the smallest published number). Quick: 24 letters, Grid₉, C₂, D₆
and S₅ with one and two layers of width 64, 600 batches, 3 seeds.

What to look for: the order in which the rows turn bright from left to right, and how far it lags behind the published
one, which had more words and wider models.
"""

from __future__ import annotations

import numpy as np

from sandlab.studies.automata import depth_table
from sandlab.studies.automata._shared import SOURCE, recipe, transformer
from sandlab.studies.automata.depth_table import RUNS, Results, Settings
from sandlab.studies.claims import Best, Mean
from sandlab.studies.nulls import untrained
from sandlab.studies.study import Study
from sandlab.worlds.automata.catalogue import named_machine

QUICK = Settings(
    machines=("Grid9", "C2", "D6", "S5"),
    depths=(1, 2),
    base=transformer(named_machine("C2", length=24), recipe(600), seeds=3, layers=1),
)
study = Study(
    "automata/depth-at-100",
    title="The depth table at the published length of 100 letters",
    source=SOURCE,
    at="Figures 5a, 15 and 16",
    quick=QUICK,
    full=Settings(
        machines=("Grid9", "C2", "D6", "Q8", "A4", "S4", "S5"),
        depths=(1, 2, 4, 8, 16),
        base=transformer(named_machine("C2", length=100), recipe(5000), seeds=5, layers=1, width=128, words=1024),
    ),
    null=untrained(QUICK),
)
study.collect(depth_table.collect)
study.table(depth_table.accuracies)
study.figure(depth_table.table)


@study.claim(Best(of=RUNS, above=0.999), at="Figure 5a", paper="99.9 %", presets=("full",))
def grid_two_layers(results: Results) -> np.ndarray:
    """A walk between two walls is solved by two layers.

    Token accuracy on Grid₉ with 2 layers, best seed.
    """
    return results.at("Grid9", 2)


@study.claim(Mean(above=0.05), at="Figure 5a", paper="more than 5 points")
def second_layer_walks(results: Results) -> np.ndarray:
    """A second layer helps a walk.

    Token accuracy on Grid₉ with 2 layers minus that with 1 layer.
    """
    return results.at("Grid9", 2) - results.at("Grid9", 1)


@study.claim(Best(of=RUNS, above=0.99), at="Figure 15", paper="99.7 %", presets=("full",))
def parity_eight_layers(results: Results) -> np.ndarray:
    """Eight layers learn parity.

    Token accuracy on C₂ with 8 layers, best seed.
    """
    return results.at("C2", 8)


@study.claim(Best(of=RUNS, above=0.99), at="Figure 15", paper="100 %", presets=("full",))
def quaternion_eight_layers(results: Results) -> np.ndarray:
    """Eight layers learn the quaternion group.

    Token accuracy on Q₈ with 8 layers, best seed.
    """
    return results.at("Q8", 8)


@study.claim(Mean(below=0.35), at="Figure 15", paper="19.7 %", presets=("full",))
def s5_four_layers(results: Results) -> np.ndarray:
    """Four layers are far from enough for S₅.

    Token accuracy on S₅ with 4 layers, mean over seeds.
    """
    return results.at("S5", 4)


@study.claim(Best(of=RUNS, above=0.95), at="Figure 15", paper="99.9 %", presets=("full",))
def s5_sixteen_layers(results: Results) -> np.ndarray:
    """Sixteen layers learn S₅.

    Token accuracy on S₅ with 16 layers, best seed.
    """
    return results.at("S5", 16)


@study.claim(Mean(above=0.1), at="Figure 15", paper="between 50 and 90 points", presets=("full",))
def depth_helps(results: Results) -> np.ndarray:
    """More layers help groups that are not commutative.

    Accuracy with 8 layers minus that with 1 layer, mean over D₆, Q₈, A₄, S₄, S₅ and over seeds.
    """
    return np.mean([results.at(name, 8) - results.at(name, 1) for name in ("D6", "Q8", "A4", "S4", "S5")], axis=0)


@study.claim(Mean(above=0.0), at="Figure 15", paper="Grid₉ 2, Q₈ 6, S₅ 13 layers", presets=("full",))
def order_of_depths(results: Results) -> np.ndarray:
    """The walk takes fewer layers than the quaternion group, and this one fewer than S₅.

    Smaller of two differences of a seed's accuracy, mean over depths: Grid₉ minus Q₈, and Q₈ minus S₅.
    """
    grid, quaternion, symmetric = (np.mean(list(results.row(name).values()), axis=0) for name in ("Grid9", "Q8", "S5"))
    return np.minimum(grid - quaternion, quaternion - symmetric)


@study.claim(Mean(above=0.3), at="Figure 5a", paper="99.9 % on Grid₉, 11.8 % on S₅ with 2 layers")
def s5_far_behind(results: Results) -> np.ndarray:
    """What solves a walk is far from enough for S₅.

    Accuracy on Grid₉ minus that on S₅ with 2 layers.
    """
    return results.at("Grid9", 2) - results.at("S5", 2)


@study.claim(Mean(above=0.05), at="Figures 15 and 16", paper="17 points with 2 layers", presets=("full",))
def parity_unstable(results: Results) -> np.ndarray:
    """Where one run learns parity, others do not.

    Accuracy of the best seed on C₂ minus that of a seed, at the depth where this is largest.
    """
    gaps = [each.max() - each for each in results.row("C2").values()]
    return max(gaps, key=lambda each: float(each.mean()))
