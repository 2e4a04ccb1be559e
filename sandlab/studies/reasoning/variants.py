"""The gap between the tasks depends on what the source leaves open: a table of variants.

The source does not say whether the network has a residual stream, learned or identity values, how the rate is
scheduled, how much data there is. The specification's single runs found the published order (cyclic ahead) without a
residual, none with identity values, and the reverse with a residual. Here every variant is trained with the same
seeds, and the sensitivity is the finding. Quick: smaller models and S_3. Full: the five rows of the specification's
table, with 8000 steps of 20 000 (factor 0.4; 10 000 for its cyclic task), and with 10 000 of 30 000 for the fixed
chains (factor 0.33), which are one set for all seeds.

**What was learnt** (full, five seeds, one H200, 2026-11-18). The order depends on what is left open, but not as in the
specification's single runs. At length 80 the symmetric task is ahead with a residual (0.78 against 0.05, all seeds)
and in the mean without one (0.67 against 0.34, which five seeds leave open); with identity values the cyclic one is
(0.70 against 0.28, open too). Every variant at rate 1e-3 solves the training length. At rate 1e-4 with 20 000 fixed
chains 10 000 steps teach the cyclic task and not the symmetric one, so that these rows compare nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.learning.experiment import Experiment, Runs
from sandlab.studies.claims import Mean
from sandlab.studies.nulls import untrained
from sandlab.studies.reasoning import _shared as shared
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.reasoning.lego import FixedLego, Lego


@dataclass(frozen=True)
class Variant:
    """One way to fill what is open, for both tasks."""

    name: str
    cyclic: Experiment
    symmetric: Experiment


@dataclass(frozen=True)
class Settings:
    variants: tuple[Variant, ...]


def quick(name: str, **model: Any) -> Variant:
    made = [shared.brief_experiment(action, **model) for action in ("C6", "S3")]
    return Variant(name, *made)


CONSTANT = {"schedule": "constant", "steps": 8000}
SEEDS = (201, 202, 203, 204, 205)


def full(name: str, training: dict[str, Any], fixed: int = 0, **model: Any) -> Variant:
    made = [shared.full_experiment(action, seeds=SEEDS, training=training, **model) for action in ("C6", "S5")]
    if fixed:
        made = [replace(each, world=_fixed(each.world, fixed)) for each in made]
    return Variant(name, *made)


def _fixed(world: Any, chains: int) -> FixedLego:
    assert isinstance(world, Lego)
    return FixedLego(world.action, variables=world.variables, length=world.length, chains=chains)


QUICK = Settings((quick("no residual"), quick("residual", residual=True), quick("identity values", values="identity")))
SLOW = {"schedule": "constant", "steps": 10_000, "lr": 1e-4}

study = Study(
    "reasoning/variants",
    title="Which task goes further depends on residual stream and values",
    source="Specification, sensitivity table of section 4.1",
    quick=QUICK,
    full=Settings(
        (
            full("no residual", CONSTANT),
            full("residual", CONSTANT, residual=True),
            full("identity values", CONSTANT, values="identity"),
            full("20 000 chains, rate 1e-4", SLOW, fixed=20_000),
            full("identity values, 20 000 chains, rate 1e-4", SLOW, fixed=20_000, values="identity"),
        )
    ),
    null=untrained(QUICK),
)


@dataclass(frozen=True)
class Results:
    cyclic: dict[str, Runs]
    symmetric: dict[str, Runs]
    lengths: tuple[int, ...]

    def accuracy(self, name: str, length: int) -> tuple[np.ndarray, np.ndarray]:
        """Accuracy of both tasks at a length."""
        both = (shared.accuracy_at(runs[name], self.lengths, length) for runs in (self.cyclic, self.symmetric))
        first, second = both
        return first, second


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    flat = [each for variant in settings.variants for each in (variant.cyclic, variant.symmetric)]
    found = [replace(each, weights=None) for each in lab.train(flat, label="variants", weights=True)]
    names = [variant.name for variant in settings.variants]
    return Results(dict(zip(names, found[::2])), dict(zip(names, found[1::2])), shared.tested_lengths(flat[0]))


@study.claim(Mean(above=0.05), at="Figure 2, residual variant", paper="answer mass .20 with a residual, .48 without")
def residual_weakens_answers(results: Results) -> np.ndarray:
    """With a residual stream the cyclic task attends less to the answer clause, which the stream already carries.

    Attention on the answer at the training length: without minus with a residual.
    """
    plain, stream = (_own_mass(results.cyclic[name]) for name in ("no residual", "residual"))
    return plain - stream


def _own_mass(runs: Runs) -> np.ndarray:
    maps = runs.final["map"]
    steps = maps.shape[1]
    found: np.ndarray = maps[:, np.arange(steps), maps.shape[2] - steps + np.arange(steps)].mean(1)
    return found


@study.claim(Mean(above=0.95))
def every_variant_learns(results: Results) -> np.ndarray:
    """Without a residual, with one, and with identity values the cyclic task is learnt at the training length.

    Share of solved chains of length 5, the smallest of the three variants.
    """
    names = ("no residual", "residual", "identity values")
    return np.min([results.accuracy(name, 5)[0] for name in names], axis=0)


@study.claim(Mean(above=0.0), presets=("full",), paper="one run each: .88 against .27, .56 against .18")
def cyclic_ahead_without_residual(results: Results) -> np.ndarray:
    """Without a residual the cyclic task is ahead at length 80.

    Cyclic minus symmetric share of solved chains.
    """
    first, second = results.accuracy("no residual", 80)
    return first - second


@study.claim(Mean(below=0.0), presets=("full",), paper="one run: .50 against .95")
def symmetric_ahead_with_residual(results: Results) -> np.ndarray:
    """With a residual the symmetric task is ahead at length 80.

    Cyclic minus symmetric share of solved chains.
    """
    first, second = results.accuracy("residual", 80)
    return first - second


@study.claim(Mean(equals=0.0, within=0.2), presets=("full",), paper="one run: .99 against .98")
def identity_values_close_the_gap(results: Results) -> np.ndarray:
    """With identity values both tasks go equally far.

    Cyclic minus symmetric share of solved chains of length 80.
    """
    first, second = results.accuracy("identity values", 80)
    return first - second


@study.table
def sensitivity(results: Results) -> Rows:
    return [
        {
            "variant": name,
            "task": task,
            **{f"L = {n}": float(value) for n, value in zip(results.lengths, runs[name].final["all steps"].mean(0))},
            "final training loss": float(np.nanmean(runs[name].loss[:, -100:])),
        }
        for name in results.cyclic
        for task, runs in (("cyclic", results.cyclic), ("symmetric", results.symmetric))
    ]


@study.figure
def curves(results: Results) -> Figure:
    names = list(results.cyclic)
    rows = (len(names) + 3) // 4
    figure, axes = figures.new(
        columns=min(4, len(names)), rows=rows, width=3.7, title="Accuracy by length in every variant"
    )
    for axis, name in zip(axes, names):
        both = {
            "cyclic": results.cyclic[name].final["all steps"],
            "symmetric": results.symmetric[name].final["all steps"],
        }
        shared.draw_lengths(axis, both, results.lengths, title=name)
    for axis in axes[len(names) :]:
        axis.remove()
    return figure
