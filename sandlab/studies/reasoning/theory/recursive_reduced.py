"""Recursive self-training without training noise: each stage doubles what is solved.

Reduced model (two numbers, ideal neurons), d = 200, B = 4 log d. Stage k trains Loss_5^{L,2} on chains of length L =
2^k until the loss is 10⁻⁵, and is then tested on L, 2L, 4L and 8L. With ideal neurons the teacher's labels at length
2L are right, so that they are the truth (Fact F.1). After every stage chains of twice the length are solved and those
of eight times are not. The cyclic group, stopped at the same loss, is constant-factor too: the source's separation
comes from its stopping rules, not from these dynamics. A loose threshold (10⁻³) breaks the doubling: a teacher that
is not converged.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.learning.reasoning.reduced import ReducedLego, attention_left_over, sample_chains
from sandlab.lenses.reasoning.horizon import solved_chains
from sandlab.random import rng
from sandlab.studies.claims import Mean, NotMeasured
from sandlab.studies.reasoning._shared import SOURCE
from sandlab.studies.study import Lab, Rows, Study


@dataclass(frozen=True)
class ChainJob:
    """Stages of length 2, 4, …, 2^K on one task, with samples of one seed."""

    action: str
    stages: int
    below: float = 1e-5
    rate: float = 1.0
    iterations: int = 20_000
    seed: int = 0


@dataclass(frozen=True)
class Settings:
    """Chains of stages with a tight threshold, the same with a loose one; the unit is a seed of the samples."""

    tight: tuple[ChainJob, ...]
    loose: tuple[ChainJob, ...]


def tight(action: str, stages: int, seeds: int) -> tuple[ChainJob, ...]:
    return tuple(ChainJob(action, stages, seed=seed) for seed in range(seeds))


def loose(action: str, stages: int, seeds: int) -> tuple[ChainJob, ...]:
    return tuple(ChainJob(action, stages, 1e-3, 2.0, seed=seed) for seed in range(seeds))


NULL = tuple(ChainJob("S3", 3, rate=0.0, iterations=1, seed=seed) for seed in range(4))

study = Study(
    "reasoning/recursive-reduced",
    title="Each stage of self-training doubles the solved length",
    source=SOURCE,
    at="Theorem 5.1, appendix F",
    quick=Settings(tight("S3", 3, 4), loose("S4", 4, 2)),
    full=Settings((*tight("S3", 5, 5), *tight("S4", 5, 5), *tight("C6", 3, 5)), loose("S4", 5, 5)),
    null=Settings(NULL, NULL),
)


@dataclass(frozen=True)
class ChainResult:
    """One chain of stages: ε at the start and the end of each, and accuracy (stage, factor) at L, 2L, 4L, 8L."""

    action: str
    seed: int
    start: np.ndarray
    end: np.ndarray
    accuracy: np.ndarray


FACTORS = (1, 2, 4, 8)
KNOWN = ((0.5, 0.119), (0.213, 0.137), (0.241, 0.150), (0.261, 0.162), (0.278, 0.168))
"""ε of three points at the start and the end of each stage, as the specification measured it."""


def run_stages(job: ChainJob) -> ChainResult:
    """Train the stages one after another and test each on longer chains."""
    model, betas = ReducedLego(job.action), (0.0, 0.0)
    start, end, accuracy = [], [], []
    for stage in range(1, job.stages + 1):
        length = 2**stage
        start.append(attention_left_over(length, 2, *betas))
        descent = model.descend(
            ((length, 2),), lr=job.rate, steps=job.iterations, below=job.below, start=betas, seed=job.seed, log=2
        )
        betas = descent.end
        end.append(attention_left_over(length, 2, *betas))
        accuracy.append([_accuracy(model, job, factor * length, betas) for factor in FACTORS])
    return ChainResult(job.action, job.seed, np.array(start), np.array(end), np.array(accuracy))


def _accuracy(model: ReducedLego, job: ChainJob, length: int, betas: tuple[float, float]) -> float:
    chains = sample_chains(job.action, length, 200, rng=rng(job.seed, "test", length))
    return float(solved_chains(model, chains, *betas).double().mean())


@dataclass(frozen=True)
class Results:
    tight: list[ChainResult]
    loose: list[ChainResult]

    def of(self, action: str) -> list[ChainResult]:
        return [each for each in self.tight if each.action == action]


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    found = lab.map(run_stages, [*settings.tight, *settings.loose], label="stages")
    return Results(found[: len(settings.tight)], found[len(settings.tight) :])


@study.claim(Mean(above=0.99), at="Theorem 5.1", paper="Acc at 2^{k+1} = 1 − 1/poly(d)")
def doubles(results: Results) -> list[float]:
    """After every stage chains of twice its length are solved (three points).

    Share of solved chains of length 2L, the smallest over stages.
    """
    return [float(each.accuracy[:, 1].min()) for each in results.of("S3")]


@study.claim(Mean(below=0.01), at="section 4.8", source="Specification", paper=".5 → .119, .213 → .137, .241 → .150, …")
def known_stages(results: Results) -> list[float]:
    """Attention leaves over at the start and at the end of each stage what the table says (three points).

    Largest difference of ε from the specification's values, over stages.
    """
    return [
        float(np.abs(np.stack([each.start, each.end], 1) - np.array(KNOWN)[: len(each.end)]).max())
        for each in results.of("S3")
    ]


@study.claim(Mean(below=2.0), at="Remark F.1", paper="ε^{2L,2} ≤ 2 ε^{L,2}")
def left_over_at_most_doubles(results: Results) -> list[float]:
    """When the length doubles, attention leaves over at most twice as much.

    ε at the start of a stage over ε at the end of the one before, the largest over stages; refused where no stage
    trained.
    """
    trained = [each for each in results.of("S3") if (each.end < each.start - 1e-9).all()]
    if not trained:
        raise NotMeasured("no stage moved attention")
    return [float((each.start[1:] / each.end[:-1]).max()) for each in trained]


@study.claim(Mean(below=0.5), at="section 5")
def not_eightfold(results: Results) -> list[float]:
    """Chains of eight times the length are mostly not solved: the extension is a constant factor.

    Share of solved chains of length 8L after the last stage; refused where not even L is solved.
    """
    if min(float(each.accuracy[:, 0].min()) for each in results.of("S3")) < 0.5:
        raise NotMeasured("no stage learnt its own length")
    return [float(each.accuracy[-1, 3]) for each in results.of("S3")]


@study.claim(Mean(below=0.9), at="section 4.8", source="Specification", paper=".79, .10, 0 from the third stage on")
def loose_teacher_fails(results: Results) -> list[float]:
    """Stopped at a loose loss, four points no longer double.

    Share of solved chains of twice the length after the last stage; refused where the first stage fails already.
    """
    if min(float(each.accuracy[0, 0]) for each in results.loose) < 0.5:
        raise NotMeasured("the first stage learnt nothing")
    return [float(each.accuracy[-1, 1]) for each in results.loose]


@study.table
def stages(results: Results) -> dict[str, Rows]:
    rows = [
        {
            "task": each.action,
            "threshold": name,
            "seed": each.seed,
            "L": 2 ** (stage + 1),
            "ε start": float(each.start[stage]),
            "ε end": float(each.end[stage]),
            **{f"{factor}L": float(value) for factor, value in zip(FACTORS, each.accuracy[stage])},
        }
        for name, chains in (("1e-5", results.tight), ("1e-3", results.loose))
        for each in chains
        for stage in range(len(each.end))
    ]
    return {"stages": rows}


@study.figure
def accuracy(results: Results) -> Figure:
    tasks = list(dict.fromkeys(each.action for each in results.tight))
    panels = [(f"{task}, loss 1e-5", results.of(task)) for task in tasks] + [("S4, loss 1e-3", results.loose)]
    figure, axes = figures.new(
        columns=len(panels), width=3.9, title="Solved chains after each stage, at L, 2L, 4L and 8L"
    )
    for axis, (title, chains) in zip(axes, panels):
        for factor, name in enumerate(FACTORS):
            values = np.array([each.accuracy[:, factor] for each in chains])
            figures.band(axis, np.arange(1, values.shape[1] + 1), values, label=f"{name}L", marker="o")
        axis.set(title=title, xlabel="stage k (L = 2ᵏ)", ylabel="all steps right", ylim=(-0.03, 1.05))
        axis.legend()
    return figure
