"""The fourth slot learns to copy: the neurons of a variable grow on that variable alone.

Gradient descent of the variable neurons on chains of length 1, where uniform attention shows the predicate and the
answer: the produced variable stands in slot 1 of the predicate. The diagonal of block 1 grows, everything else stays
small. Full: 50 variables, 8000 steps and five seeds (of eight first planned).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.learning.reasoning.features import RetrievalDescent, RetrievalTraining, train_retrieval
from sandlab.lenses.reasoning.features import RetrievalReport, retrieval_growth
from sandlab.studies.claims import Mean, NotMeasured
from sandlab.studies.reasoning._shared import SOURCE
from sandlab.studies.study import Lab, Study


@dataclass(frozen=True)
class Settings:
    plan: RetrievalTraining
    seeds: int


QUICK = Settings(RetrievalTraining(variables=20, actions=6, values=6, neurons=6, lr=12.0, iterations=2500), 4)

study = Study(
    "reasoning/retrieval-w4",
    title="Variable neurons grow on their own variable",
    source=SOURCE,
    at="appendix A",
    quick=QUICK,
    full=Settings(RetrievalTraining(iterations=8000), 5),
    null=Settings(replace(QUICK.plan, lr=0.0, iterations=10), 4),
)


@dataclass(frozen=True)
class Run:
    descent: RetrievalDescent
    report: RetrievalReport


def run(plan: RetrievalTraining) -> Run:
    descent = train_retrieval(plan)
    return Run(descent, retrieval_growth(plan, descent))


@dataclass(frozen=True)
class Results:
    runs: list[Run]


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    plans = [replace(settings.plan, seed=seed) for seed in range(settings.seeds)]
    return Results(lab.map(run, plans, label="retrieval"))


@study.claim(Mean(above=0.999), at="appendix A")
def copies(results: Results) -> list[float]:
    """The produced variable is predicted.

    Share of right answers of slot 4 at the end.
    """
    return [each.descent.accuracy for each in results.runs]


@study.claim(Mean(above=5.0), at="appendix A", paper="off-diagonals stay of the order of σ_0")
def diagonal_wins(results: Results) -> list[float]:
    """The diagonal is far above everything else in its block.

    Least diagonal entry (strongest neuron) over the largest off-diagonal one.
    """
    return [each.report.ratio for each in results.runs]


@study.claim(Mean(below=0.5), at="appendix A", paper="O(1/|G|) and O(1/|Y|) of the diagonal")
def other_slots_stay_small(results: Results) -> list[float]:
    """Consumed and answered variables leave little trace.

    Largest change in blocks 3 and 4 over the mean diagonal.
    """
    if min(each.descent.accuracy for each in results.runs) < 0.5:
        raise NotMeasured("nothing was learnt")
    return [max(each.report.others["consumed"], each.report.others["answered"]) for each in results.runs]


@study.figure
def growth(results: Results) -> Figure:
    figure, axes = figures.new(columns=3, title="Growth of the copying neurons")
    first = results.runs[0]
    steps = first.descent.eval_steps
    axes[0].plot(steps, first.report.growth, color="#0072b2", linewidth=0.7)
    axes[0].set(xlabel="step", ylabel="Γ, one line per variable")
    axes[1].plot(steps, first.report.total, color="#0072b2", linewidth=0.7)
    axes[1].set(xlabel="step", ylabel="Φ, sum over active neurons")
    weights = first.descent.weights[-1].max(1)
    figures.heatmap(axes[2], weights, title="block 1, strongest neuron", x="produced variable", y="class")
    return figure


@study.table
def blocks(results: Results) -> list[dict[str, float]]:
    return [
        {"ratio": each.report.ratio, "active neurons": float(np.mean(each.report.active)), **each.report.others}
        for each in results.runs
    ]
