"""The ideal network solves chains up to a length that grows like e^β.

Explicit weights: two diagonals of strength β in the query matrix and one neuron per class and value. The table is the
share of solved chains by length for β = 3, 4, 5; the sweep measures the longest length at which 90 % are solved against
L* = 1 + e^β/(1 − 2/n). At equal β the construction is not worse on permutations than on cyclic groups: the source's
separation comes from training.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.learning.reasoning.reduced import Chains, ReducedLego, attention_left_over, sample_chains
from sandlab.lenses.reasoning.horizon import length_horizon, measured_horizon, solved_chains
from sandlab.random import rng
from sandlab.studies.claims import Exact, Mean, Slope
from sandlab.studies.reasoning._shared import SOURCE
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.reasoning.actions import named_action

LENGTHS = (5, 10, 20, 40, 80, 160)
KNOWN = {
    ("C6", 3.0): (1, 1, 1, 0, 0, 0),
    ("C6", 4.0): (1, 1, 1, 1, 0.04, 0),
    ("C6", 5.0): (1,) * 6,
    ("S3", 3.0): (1, 1, 1, 0.78, 0, 0),
    ("S3", 4.0): (1, 1, 1, 1, 1, 0),
    ("S3", 5.0): (1,) * 6,
    ("S4", 3.0): (1, 1, 1, 0.02, 0, 0),
    ("S4", 4.0): (1, 1, 1, 1, 1, 0),
    ("S4", 5.0): (1,) * 6,
    ("S5", 3.0): (1, 1, 1, 0, 0, 0),
    ("S5", 4.0): (1, 1, 1, 1, 0.8, 0),
    ("S5", 5.0): (1,) * 6,
}
"""(task, β) → share of solved chains at the lengths, as the specification measured it."""


@dataclass(frozen=True)
class Settings:
    """Chains per length, β of the sweep, seeds (of chains); `strength` multiplies every β (0: uniform attention)."""

    chains: int = 100
    sweep: tuple[float, ...] = (2.0, 3.0, 4.0, 5.0, 6.0)
    seeds: int = 4
    longest: int = 1200
    strength: float = 1.0


@dataclass(frozen=True)
class HorizonJob:
    settings: Settings
    seed: int


@dataclass(frozen=True)
class Horizons:
    """Of one seed: accuracy by task and β (in the order of `KNOWN`), and the horizons of the sweep (C6)."""

    accuracy: np.ndarray
    measured: np.ndarray


def measure(job: HorizonJob) -> Horizons:
    """The table and the sweep with chains of one seed."""
    rows = []
    for name, beta in KNOWN:
        model = ReducedLego(name, vocab=400)
        drawn = [sample_chains(name, n, job.settings.chains, rng=rng(job.seed, "table", n)) for n in LENGTHS]
        rows.append([_share(model, chains, job.settings.strength * beta) for chains in drawn])
    cyclic = ReducedLego("C6", vocab=400)
    sweep = [
        measured_horizon(
            cyclic, job.settings.strength * beta, chains=job.settings.chains, most=job.settings.longest, seed=job.seed
        )
        for beta in job.settings.sweep
    ]
    return Horizons(np.array(rows), np.array(sweep, dtype=float))


def _share(model: ReducedLego, chains: Chains, beta: float) -> float:
    return float(solved_chains(model, chains, beta, beta).double().mean())


study = Study(
    "reasoning/ideal-horizon",
    title="Two sharp diagonals solve every chain up to about e^β, for every action",
    source="Derived from " + SOURCE,
    at="section 6.2",
    quick=Settings(),
    full=Settings(chains=300, sweep=(2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 5.5, 6.0, 6.5, 7.0), seeds=8, longest=4000),
    null=Settings(chains=20, strength=0.0, longest=100),
)


@dataclass(frozen=True)
class Results:
    seeds: list[Horizons]
    sweep: tuple[float, ...]
    rates: list[float]

    @property
    def accuracy(self) -> np.ndarray:
        """(seed, task and β, length)"""
        return np.stack([each.accuracy for each in self.seeds])


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    jobs = [HorizonJob(settings, seed) for seed in range(settings.seeds)]
    actions = [named_action(name) for name in ("C6", "S3", "S4", "S5")]
    rates = [action.distractor_rate - 1 / action.values for action in actions]
    return Results(lab.map(measure, jobs, label="horizons"), settings.sweep, rates)


def known(certain: bool) -> np.ndarray:
    """Which entries of the table are 0 or 1 (`certain`), or in between."""
    table = np.array(list(KNOWN.values()), dtype=float)
    return np.isin(table, (0.0, 1.0)) == certain


@study.claim(Mean(below=0.05), at="section 3.10", source="Specification", paper="0 or 1")
def certain_entries(results: Results) -> np.ndarray:
    """Where the table says all or nothing, so it is.

    Mean difference from the tabulated zeros and ones.
    """
    wanted = np.array(list(KNOWN.values()), dtype=float)
    return np.abs(results.accuracy - wanted)[:, known(True)].mean(1)


@study.claim(Mean(below=0.15), at="section 3.10", source="Specification", paper=".04, .78, .02, .80")
def other_entries(results: Results) -> np.ndarray:
    """The entries in between are met within 0.15.

    Mean difference from them.
    """
    wanted = np.array(list(KNOWN.values()), dtype=float)
    return np.abs(results.accuracy - wanted)[:, known(False)].mean(1)


@study.claim(Slope(between=(0.8, 1.2)), at="section 4.12", source="Specification", paper="1")
def exponential(results: Results) -> np.ndarray:
    """The horizon grows like e^β (C6).

    Slope of the logarithm of the longest length with 90 % solved against β.
    """
    return np.array(
        [(beta, np.log(each.measured[i])) for each in results.seeds for i, beta in enumerate(results.sweep)]
    )


@study.claim(Mean(between=(0.5, 1.3)), at="section 4.12", source="Specification")
def near_mean_field(results: Results) -> list[float]:
    """It lies near the mean-field length L*.

    Longest length with 90 % solved over L*, mean over β.
    """
    stars = np.array([length_horizon("C6", beta) for beta in results.sweep])
    return [float((each.measured / stars).mean()) for each in results.seeds]


@study.claim(Exact(equals=0.0, within=1e-12), at="section 3.13", source="Specification")
def distractor_rate(results: Results) -> list[float]:
    """The distractor rate of every transitive action is one over the number of values.

    Rate minus 1/|Y| for C6, S3, S4, S5.
    """
    return results.rates


@study.table
def table(results: Results) -> dict[str, Rows]:
    mean = results.accuracy.mean(0)
    rows = [
        {"task": name, "β": beta, **dict(zip((f"L = {n}" for n in LENGTHS), mean[i].tolist()))}
        for i, (name, beta) in enumerate(KNOWN)
    ]
    return {"accuracy of the construction": rows}


@study.figure
def horizon(results: Results) -> Figure:
    figure, axes = figures.new(columns=3, title="How far the ideal network reaches")
    marks = dict(zip(("C6", "S3", "S4", "S5"), "osD^"))
    for index, (name, beta) in enumerate(KNOWN):
        if beta == 4.0:
            # Curves that coincide are told apart by their marks: large hollow ones and small full ones.
            look = {"markersize": 10, "fillstyle": "none"} if name == "S3" else {}
            label = f"{name}, β = 4"
            figures.band(axes[0], LENGTHS, results.accuracy[:, index], label=label, marker=marks[name], **look)
    axes[0].set(xscale="log", xlabel="length of the chain", ylabel="all steps right")
    axes[0].set_xticks(LENGTHS, [str(n) for n in LENGTHS])
    axes[0].minorticks_off()
    axes[0].legend()
    figures.band(
        axes[1], results.sweep, np.stack([each.measured for each in results.seeds]), label="90 % solved", marker="o"
    )
    axes[1].plot(results.sweep, [length_horizon("C6", beta) for beta in results.sweep], linestyle=":", label="L*")
    axes[1].set(yscale="log", xlabel="β", ylabel="length (C6)")
    axes[1].legend()
    for beta in (3.0, 4.0, 5.0):
        left = [attention_left_over(n, n, beta, beta) for n in LENGTHS]
        axes[2].plot(LENGTHS, left, marker="o", label=f"β = {beta:g}")
    axes[2].set(xscale="log", xlabel="length of the chain", ylabel="ε at the last step (dilution law)", ylim=(0, 1))
    axes[2].set_xticks(LENGTHS, [str(n) for n in LENGTHS])
    axes[2].minorticks_off()
    axes[2].legend()
    return figure
