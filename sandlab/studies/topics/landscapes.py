"""The best attention within a topic grows with the number of topics of a document.

**Set-up.** No training: the loss L(α, β) of attention with three levels (β to the same word, α to other words of the
topic, 1 elsewhere) over a frozen value matrix, T = 100 topics of 300 words, τ of them in a document. With the block
optimum the loss depends on γ = ((v − 1)α + β)/v alone, so that its level sets are curves of constant γ. With the
diagonal optimum the best β is in the thousands and α hardly matters as long as it is far below β.

The formulas of the source leave out the keys that show [MASK]; the exact ones include them. The best levels change by a
tenth, the losses in the sixth digit. The claims on printed bounds use the printed form; all of them hold with the
exact one, too (`--set form=exact`).

**What to look for.** Darker is lower; each panel has its own colours, because all losses of the block optimum lie
between 0.1997 and 0.2001. The cross is the minimum, for block values that with α = β. The best α of diagonal values is
0, below the picture: a triangle at the lower edge points there.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import ScalarFormatter
from scipy.optimize import minimize

from sandlab.figures import new
from sandlab.lenses.topics.stage_two import StageTwoBounds, block_level, stage_two_loss
from sandlab.studies.claims import Exact
from sandlab.studies.study import Lab, Rows, Study
from sandlab.studies.topics import _shared as shared
from sandlab.worlds.topics.masking import MaskedStatistics

KINDS = ("diagonal", "block")


@dataclass(frozen=True)
class Settings:
    """Topics, words of each, numbers of topics of a document, and points of the grid from 10⁻⁴ to 10⁷."""

    topics: int = 100
    words: int = 300
    present: tuple[int, ...] = (20, 40, 60, 80)
    points: int = 221
    form: str = "source"


study = Study(
    "topics/landscapes",
    title="The best attention within a topic grows with the number of topics of a document",
    source=shared.SOURCE,
    at="Figures 2.7 and 2.8",
    quick=Settings(),
    full=Settings(),
)


@dataclass(frozen=True)
class LandscapeJob:
    statistics: MaskedStatistics
    value: str
    points: int
    form: str


@dataclass(frozen=True)
class Landscape:
    """Losses on the grid (α, β), and the minimum: its levels, loss and γ."""

    statistics: MaskedStatistics
    value: str
    levels: np.ndarray
    loss: np.ndarray
    alpha: float
    beta: float

    @property
    def gamma(self) -> float:
        return float(block_level(self.statistics, np.asarray(self.alpha), np.asarray(self.beta)))

    @property
    def least(self) -> float:
        return float(self.loss.min())


@dataclass(frozen=True)
class Results:
    landscapes: list[Landscape]

    def of(self, value: str) -> list[Landscape]:
        return [each for each in self.landscapes if each.value == value]


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    jobs = [
        LandscapeJob(MaskedStatistics(settings.topics, settings.words, each), value, settings.points, settings.form)
        for value in KINDS
        for each in settings.present
    ]
    return Results(lab.map(survey, jobs, label="landscapes"))


def survey(job: LandscapeJob) -> Landscape:
    """The loss on the grid, and its minimum, refined."""
    levels = np.logspace(-4, 7, job.points)
    loss = stage_two_loss(job.statistics, levels[:, None], levels, value=job.value, form=job.form)
    row, column = np.unravel_index(loss.argmin(), loss.shape)
    alpha, beta = refined(job, float(levels[row]), float(levels[column]))
    return Landscape(job.statistics, job.value, levels, loss, alpha, beta)


def refined(job: LandscapeJob, alpha: float, beta: float) -> tuple[float, float]:
    """The minimum near a point of the grid; block values leave a curve of minima, of which that with α = β is taken.

    Neighbouring numbers of topics have minima closer to each other than points of the grid.
    """
    if job.value == "block":
        alpha = beta = float(block_level(job.statistics, np.asarray(alpha), np.asarray(beta)))
    start = np.log([alpha, beta] if job.value == "diagonal" else [beta])

    def loss(logs: np.ndarray) -> float:
        levels = np.exp(logs)
        return float(stage_two_loss(job.statistics, levels[0], levels[-1], value=job.value, form=job.form))

    found = np.exp(minimize(loss, start, method="Nelder-Mead", options={"xatol": 1e-6, "fatol": 1e-16}).x)
    return float(found[0]), float(found[-1])


@study.claim(Exact(above=1.0), at="Theorem 2.1.3", paper="γ > λ₁(τ − 1)")
def block_lower_bound(results: Results) -> list[float]:
    """With block values the best mean level within a topic lies above the stated bound.

    γ*/(λ₁(τ − 1)) of each number of topics, with λ₁ as stated.
    """
    pairs = [(each, StageTwoBounds(each.statistics)) for each in results.of("block")]
    return [each.gamma / (bounds.lambda1_stated * (each.statistics.present - 1)) for each, bounds in pairs]


@study.claim(Exact(below=1.0), at="Theorem 2.1.3", paper="γ < λ₂T")
def block_upper_bound(results: Results) -> list[float]:
    """It lies below the stated upper bound.

    γ*/(λ₂T) of each number of topics.
    """
    return [
        each.gamma / (StageTwoBounds(each.statistics).lambda2 * each.statistics.topics) for each in results.of("block")
    ]


@study.claim(Exact(above=0.0), at="Figure 2.8")
def block_levels_grow(results: Results) -> list[float]:
    """It grows with the number of topics of a document.

    Steps of γ* from one number of topics to the next.
    """
    return np.diff([each.gamma for each in results.of("block")]).tolist()


@study.claim(Exact(above=1.0), at="Theorem 2.1.5", paper="β > λ₃τ")
def diagonal_lower_bound(results: Results) -> list[float]:
    """With diagonal values the best level of the same word lies above the stated bound.

    β*/(λ₃τ) of each number of topics.
    """
    pairs = [(each, StageTwoBounds(each.statistics)) for each in results.of("diagonal")]
    return [each.beta / (bounds.lambda3 * each.statistics.present) for each, bounds in pairs]


@study.claim(Exact(below=1.0), at="Theorem 2.1.5", paper="β < λ₄T")
def diagonal_upper_bound(results: Results) -> list[float]:
    """It lies below the stated upper bound.

    β*/(λ₄T) of each number of topics.
    """
    pairs = [(each, StageTwoBounds(each.statistics)) for each in results.of("diagonal")]
    return [each.beta / (bounds.lambda4 * each.statistics.topics) for each, bounds in pairs]


@study.claim(Exact(below=1.0), at="Theorem 2.1.5", paper="α < λ₅β")
def diagonal_other_words(results: Results) -> list[float]:
    """Other words of the topic get far less attention than the same word.

    α*/(λ₅β*) of each number of topics.
    """
    return [each.alpha / (StageTwoBounds(each.statistics).lambda5 * each.beta) for each in results.of("diagonal")]


@study.claim(Exact(above=0.0), at="Figure 2.7")
def diagonal_levels_grow(results: Results) -> list[float]:
    """The best level of the same word grows with the number of topics of a document.

    Steps of β* from one number of topics to the next.
    """
    return np.diff([each.beta for each in results.of("diagonal")]).tolist()


@study.table
def optima(results: Results) -> Rows:
    return [
        {
            "value matrix": each.value,
            "topics of a document": each.statistics.present,
            "α": each.alpha,
            "β": each.beta,
            "γ": each.gamma,
            "loss": each.least,
        }
        for each in results.landscapes
    ]


@study.figure
def maps(results: Results) -> dict[str, Figure]:
    titles = {"diagonal": "Diagonal values: attention to the same word", "block": "Block values: only γ matters"}
    return {f"{value} values": draw(results.of(value), titles[value]) for value in KINDS}


def draw(landscapes: list[Landscape], title: str) -> Figure:
    figure, axes = new(columns=len(landscapes), width=3.4, height=3.1, title=title)
    for axis, each in zip(axes, landscapes):
        mesh = axis.pcolormesh(each.levels, each.levels, each.loss, shading="nearest", rasterized=True)
        inside = each.alpha > each.levels[0]
        axis.plot(each.beta, each.alpha if inside else 3 * each.levels[0], "x" if inside else "v", color="white")
        axis.set(xscale="log", yscale="log", title=f"{each.statistics.present} topics", xlabel="β, same word")
        figure.colorbar(mesh, ax=axis, shrink=0.85, format=ScalarFormatter(useOffset=False))
    axes[0].set_ylabel("α, other words of the topic")
    return figure
