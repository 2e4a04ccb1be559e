"""How the width of a network decides when it learns sparse parity.

Perceptrons of several widths (d = 40, k = 6, batch 8, rate 0.1). The source's list of widths is not given; ours stands
in the settings. Transformers with more and more heads stand in distillation/parity-heads (here until 2026-11-18).

Full, at a size that fits a share of one GPU for some minutes, decided from its cost before any run: (60, 6) for
(100, 6), where a single perceptron of 1000 units took 17 000 steps, with `widths` of 100, 300 and 1000 for up to
50 000 (a fiftieth), batch 64 for 1 and the rate 0.3 for 0.01, 400 000 `updates` for 20 million (a fiftieth), five
seeds.

**What was learnt** (quick, 2026-11-16). 40 000 steps separate 1000 units, of which five of six seeds learn, from 200
and from 50, of which none does; these two tie, so that the order of all three is inconclusive. (50 units take about
190 000 steps.)

Full (five seeds, two cores, 2026-11-19): every perceptron learns; the middle one of five after 149 000 steps with 100
units, 74 000 with 300 and 30 000 with 1000. For one seed of five 300 units take longer than 100 (134 000 and 77 000
steps), and five seeds leave that step open.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.learning.distillation.perceptrons import Drill, drill
from sandlab.studies.claims import Order
from sandlab.studies.distillation import _shared as shared
from sandlab.studies.distillation._shared import Curves
from sandlab.studies.study import Lab, Study
from sandlab.worlds.distillation.parities import SparseParity


@dataclass(frozen=True)
class Settings:
    """Perceptrons and their widths."""

    drill: Drill
    widths: tuple[int, ...]


WORLD = SparseParity(40, 6)
QUICK = Settings(Drill(WORLD, 50, 40_000, 8, 0.1, every=1000, seeds=tuple(range(20, 26)), settle=1), (50, 200, 1000))
PUBLISHED = SparseParity(60, 6)
study = Study(
    "distillation/parity-scaling",
    title="Perceptrons of several widths on sparse parity: which learn first",
    source=shared.SOURCE,
    at="Figure 4.10 (left)",
    quick=QUICK,
    full=Settings(
        Drill(PUBLISHED, 100, 400_000, 64, 0.3, every=1600, seeds=(10, 11, 12, 13, 14), settle=1),
        (100, 300, 1000),
    ),
    null=replace(QUICK, drill=replace(QUICK.drill, lr=0.0, updates=2000)),
)


@dataclass(frozen=True)
class Results:
    perceptrons: dict[int, Curves]
    never: int


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    drills = [replace(settings.drill, width=width, device=lab.device) for width in settings.widths]
    found = lab.map(drill, drills, label="widths")
    perceptrons = {w: Curves(runs.eval_steps, runs.accuracy) for w, runs in zip(settings.widths, found)}
    return Results(perceptrons, 2 * settings.drill.updates)


@study.claim(Order(above=0.0), at="Figure 4.10 (left)", paper="larger is earlier")
def wider_is_earlier(results: Results) -> np.ndarray:
    """The wider the perceptron, the earlier it learns.

    −log of the first step above 0.95 by width (twice the horizon where it is never reached).
    """
    first = [each.first_above() for each in results.perceptrons.values()]
    return np.array([-np.log(np.where(np.isfinite(row) & (row > 0), row, results.never)) for row in first])


@study.figure
def curves(results: Results) -> dict[str, Figure]:
    figure, (axis,) = figures.new(width=5.6, title="When networks of several widths learn sparse parity")
    for size, each in results.perceptrons.items():
        figures.band(axis, each.eval_steps, each.accuracy, f"{size} units")
    axis.set(xlabel="training step", ylabel="held-out accuracy", title="perceptrons")
    axis.legend()
    return {"perceptrons": figure}
