"""The lemmas behind the theorems, each tried on random draws; misprints are told apart from what is true.

Each inequality is tried on random draws and its largest share of the bound reported; each network is exact.

Bars are how much of each bound random draws use: 1 would be attained. Two statements are also tried as printed:
the composition lemma with the constants of the two maps swapped, and the selection network with spacing M instead
of 2M; both fail, as they must. The distance of two random maps is an expectation: it is measured on eight sets of
pairs, and judged over these.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.lenses.dyck import _lemma_trials as trials
from sandlab.registry import kebab
from sandlab.studies.claims import Exact, Mean
from sandlab.studies.dyck._shared import SOURCE
from sandlab.studies.study import Lab, Study

BOUND, EXACT = Exact(below=1.0 + 1e-9), Exact(below=1e-9)
SHARE, ERROR = "Largest share of the bound.", "Largest error over random inputs."
SETS = 8  # of pairs of random maps


@dataclass(frozen=True)
class Settings:
    """Random draws of each lemma."""

    draws: int = 300


study = Study(
    "dyck/lemmas",
    title="What the proofs stand on, drawn at random",
    source=SOURCE,
    at="appendix",
    quick=Settings(),
    full=Settings(draws=5000),
)


@dataclass(frozen=True)
class Results:
    """What was measured for each lemma: the largest share of its bound, or the largest error.

    maps   relative difference of random maps' distance from its closed form, by set of pairs
    """

    values: dict[str, float]
    maps: np.ndarray


@dataclass(frozen=True)
class Trial:
    """A lemma and the number of random draws it is tried on."""

    lemma: str
    draws: int


LEMMAS: dict[str, Callable[[int], float]] = {}


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    jobs = [Trial(name, settings.draws) for name in LEMMAS]
    found = dict(zip(LEMMAS, lab.map(run, jobs, label="lemmas")))
    return Results(found, np.array(lab.map(trials.random_maps, range(SETS), label="random maps")))


def run(trial: Trial) -> float:
    """The value of one lemma over random draws."""
    return LEMMAS[trial.lemma](trial.draws)


def claim(
    relation: Exact, quantity: str, at: str, trial: Callable[[int], float], *, paper: str = "", held: bool = True
) -> None:
    """Claim that a lemma, the docstring of its trial, holds on random draws."""
    name = kebab(trial.__name__)
    LEMMAS[name] = trial

    def measure(results: Results) -> float:
        return results.values[name]

    measure.__doc__ = f"{trial.__doc__}\n\n{quantity}"
    said = paper or ("≤ 1" if relation == BOUND else "0")
    study.claim(relation, at=at, id=name, paper=said, held=held)(measure)


claim(BOUND, SHARE, "Lemma 31", trials.softmax)
claim(BOUND, SHARE, "Lemma 33", trials.floor_norm)
claim(BOUND, SHARE, "Lemma 34", trials.mixing)
claim(BOUND, SHARE, "Lemma 36", trials.attention)
claim(BOUND, "Largest share of ε.", "Lemma 24", trials.overwhelming)
claim(BOUND, SHARE, "Lemma 28", trials.composition)
claim(BOUND, "Largest share of ε₁λ₁ + ε₂λ₂ + ε₁ε₂.", "Lemma 28", trials.composition_printed, held=False)
claim(EXACT, ERROR, "Lemma 35", trials.padding)
claim(EXACT, ERROR, "Lemma 38", trials.look_up)
claim(EXACT, ERROR, "Lemma 40", trials.indexing)
claim(EXACT, ERROR, "Lemma 41", trials.hot_index)
claim(EXACT, ERROR, "Lemma 42", trials.select)
claim(EXACT, ERROR, "Lemma 42", trials.select_printed, held=False)
claim(EXACT, ERROR, "Lemma 43", trials.linear)
claim(EXACT, ERROR, "Proposition 6", trials.zero_head)


@study.claim(Mean(equals=0.0, within=0.02), at="footnote on the random baseline", paper="2.85 and 3.33")
def random_maps(results: Results) -> np.ndarray:
    """Two random causal maps are 4(H_{N+1} − 1) − 2H_N apart.

    Relative difference between 2000 pairs and the closed form, mean over N = 15, 16, 19, 20, mean over sets of pairs.
    """
    return results.maps


@study.figure
def bounds(results: Results) -> Figure:
    bounded = [claim.id.rpartition(".")[2] for claim in study.claims if claim.relation is BOUND]
    shares = {name: results.values[name] for name in bounded}
    figure, (axis,) = figures.new(width=5.4, height=0.32 * len(shares) + 1.1)
    axis.barh(list(shares), list(shares.values()), color=[figures.COLOURS[share > 1] for share in shares.values()])
    axis.axvline(1.0, color="#555555", linestyle=":")
    axis.set_xscale("log")
    axis.invert_yaxis()
    axis.set(xlabel="largest share of the bound that random draws reach")
    axis.grid(axis="y", visible=False)
    return figure
