"""Three embeddings of a minimal first layer: equal accuracy, different attention.

A first layer that has done its work perfectly gives each bracket an embedding of its type and depth.

(a) one coordinate per (type, depth), one attention layer without residual link or feed-forward block, rate 1e-2;
(b) the same embedding with residual link and ReLU block, rate 3e-3; (c) a one-hot bracket next to (cos θ_d, sin θ_d)
with θ_d = arctan(d/(D + 2 − d)); (d) a one-hot bracket next to a one-hot depth. Full has width 500 as published,
quick 50. One map per panel on START (((())))[[[[]]]]; all of them close brackets correctly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.learning.experiment import Experiment, Runs
from sandlab.studies.claims import Mean, Order
from sandlab.studies.dyck import _shared as shared
from sandlab.studies.dyck._shared import BOUNDED, SOURCE, LongWords, training
from sandlab.studies.nulls import untrained
from sandlab.studies.study import Lab, Rows, Study

PANELS = {
    "a": "type and depth one-hot, attention only",
    "b": "type and depth one-hot",
    "c": "type and an angle",
    "d": "type and depth",
}


@dataclass(frozen=True)
class Settings:
    """One experiment for each panel (a) to (d)."""

    panels: tuple[Experiment, ...]


def panels(*, width: int, steps: int, seeds: int) -> tuple[Experiment, ...]:
    final = (shared.closing, LongWords(), shared.probe_maps, shared.balance)

    def panel(embedding: str, residual: bool = True) -> Experiment:
        model = shared.minimal(BOUNDED, embedding=embedding, width=width, residual=residual)
        return Experiment(BOUNDED, model, training(steps, lr=3e-3 if residual else 1e-2), seeds, final=final)

    return panel("type-depth", residual=False), panel("type-depth"), panel("type-angle"), panel("type+depth")


QUICK = panels(width=50, steps=900, seeds=3)
study = Study(
    "dyck/embeddings",
    title="The embedding decides how attention looks, not how well it works",
    source=SOURCE,
    at="Figure 3",
    quick=Settings(QUICK),
    full=Settings(panels(width=500, steps=1000, seeds=10)),
    null=Settings(tuple(untrained(panel) for panel in QUICK)),
)


@dataclass(frozen=True)
class Results:
    """The runs of each panel."""

    runs: dict[str, Runs]

    @cached_property
    def distances(self) -> dict[str, float]:
        """Mean squared distance of the maps of two panels."""
        maps = {panel: runs.final["maps"][:, -1] for panel, runs in self.runs.items()}
        return {first + second: distance(maps[first], maps[second]) for first, second in combinations(maps, 2)}


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    return Results(dict(zip(PANELS, lab.train(settings.panels, label="embeddings"))))


def accurate(panel: str) -> Callable[[Results], np.ndarray]:
    def measure(results: Results) -> np.ndarray:
        return results.runs[panel].final["accuracy"]

    statement = f"Panel ({panel}), {PANELS[panel]}: the model closes brackets correctly."
    measure.__doc__ = f"{statement}\n\nClosing accuracy in distribution."
    return measure


for name in PANELS:
    at = f"Figure 3({name})"
    study.claim(Mean(above=0.97), at=at, paper="at least 97 %", id=f"accurate-{name}")(accurate(name))


@study.claim(Order(above=0.1), at="Figure 3", paper="visibly different")
def panels_differ(results: Results) -> np.ndarray:
    """The maps of any two panels differ.

    Mean ‖A₁ − A₂‖² between models of two panels (each seed of the one with the same seed of the other), smallest over
    pairs of panels.
    """
    maps = [runs.final["maps"][:, -1] for runs in results.runs.values()]
    return shared.one_below_the_other([((one - other) ** 2).sum((-1, -2)) for one, other in combinations(maps, 2)])


def distance(first: Float[np.ndarray, "seed query key"], second: Float[np.ndarray, "seed query key"]) -> float:
    """Mean squared Frobenius distance between maps of two groups."""
    return float(((first[:, None] - second[None]) ** 2).sum((-1, -2)).mean())


@study.table
def models(results: Results) -> Rows:
    columns = {"accuracy": "accuracy", "long accuracy": "long_accuracy", "violation": "violation"}
    return [
        {
            "panel": panel,
            "embedding": PANELS[panel],
            **{title: float(runs.final[key].mean()) for title, key in columns.items()},
        }
        for panel, runs in results.runs.items()
    ]


@study.table
def distances(results: Results) -> Rows:
    return [{"panels": pair, "mean squared distance": gap} for pair, gap in results.distances.items()]


@study.figure
def maps(results: Results) -> Figure:
    figure, axes = figures.new(columns=len(results.runs), width=2.7, height=2.9)
    for axis, (panel, runs) in zip(axes, results.runs.items()):
        title = f"({panel}) {PANELS[panel]}".replace(", ", ",\n")
        shared.draw_map(axis, runs.final["maps"][0, -1], title)
    return figure
