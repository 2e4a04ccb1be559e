"""Every bound of the chapter, printed and measured.

Each statement as one number: measured over bound, the largest over the distances; at most 1 if it holds.

**Set-up.** Data N(R, 1), noise N(0, 1), exact losses; Θ is the segment [0, R]. Statements "for R ≫ 1" are taken at
R ≥ 1, and so is lemma 54: its constants belong to Θ, and at R = 0.25 the ball of radius 1/β_Z = 4 leaves Θ so far that
the measured β_u exceeds them four and a half times. With Θ enlarged until it contains its own ball it holds.

**The promise of normalised descent.** With δ = 1/R ≤ 1/β_Z, step η = √(β_l/(β_u κ*))·δ and measured β's, an iterate
lies within δ of τ* after at most (β_u κ*/β_l)·‖τ_q − τ*‖²/δ² updates. It takes a small fraction of them. The constant
of the source for NCE (theorem 20, from lemma 61) is not used: lemma 61's lower constant is printed as 16·e^(−2−1/β_Z)
where its derivation gives 1/16 of e^(−2−1/β_Z).

**Corrected.** Lemma 48 is printed with σ_max ≥ R²/2, from a Hessian without off-diagonal entries; the Hessian at the
noise is ⅛[[R² + 2, −R], [−R, 2]]. Lemma 60 is printed with one power of λ_max/λ_min and fails at R = 0.5; re-derived,
κ ≤ 4(λ_max/λ_min)²/BC. Corollary 2 says R ≪ 1 where R ≫ 1 is meant, and its O(R⁶/δ²) becomes O(R¹⁰/δ²) with the
corrected σ_min; polynomial all the same.

**What to look for.** Left: bounds that hold end left of the line, the two misprints (red) cross it. Right: promised and
taken updates. The table also gives the demand on damped Newton (theorem 18).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

from matplotlib.figure import Figure

from sandlab.figures import COLOURS, new
from sandlab.learning.nce.descent import steps_to_reach
from sandlab.lenses.nce.annulus import steepest_point
from sandlab.lenses.nce.bounds import bound_ratios, newton_step_lower_bound, ngd_step_upper_bound
from sandlab.studies.claims import Exact
from sandlab.studies.nce._shared import LOSSES, SOURCE, gaussian
from sandlab.studies.study import Lab, Rows, Study

FAR = ("largest-curvature", "quadratic", "neighbourhood")  # statements that are taken at R ≥ 1


@dataclass(frozen=True)
class Settings:
    """Distances of the bounds, random coordinates at each, and distances of the promises (targets are 1/R)."""

    distances: tuple[float, ...] = (0.5, 1.0, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0)
    promises: tuple[float, ...] = (1.0, 2.0, 3.0, 4.0)
    points: int = 300


study = Study(
    "nce/theorems",
    title="Eleven bounds hold, two of them after correction; as printed those two are violated",
    source=SOURCE,
    at="section 4.1",
    quick=Settings(),
    full=Settings(
        distances=(0.25, 0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0, 14.0, 16.0),
        promises=(1.0, 2.0, 3.0, 4.0, 5.0),
    ),
)


@dataclass(frozen=True)
class BoundsJob:
    distance: float
    points: int


@dataclass(frozen=True)
class Bounds:
    """Measured over bound for each statement at one distance; the exponent on the annulus; log updates of Newton."""

    distance: float
    ratios: dict[str, float]
    exponent: float
    log_newton: float


@dataclass(frozen=True)
class PromiseJob:
    kind: str
    distance: float


@dataclass(frozen=True)
class Promise:
    """Updates of normalised descent until within 1/R of the optimum, taken and promised, and its step."""

    kind: str
    distance: float
    taken: float
    promised: float
    rate: float


@dataclass(frozen=True)
class Results:
    bounds: list[Bounds]
    promises: list[Promise]

    def worst(self, name: str) -> float:
        """Largest of measured over bound (taken over promised), over the distances the statement is about."""
        if name.startswith("promise"):
            return max(each.taken / each.promised for each in self.promises if name == f"promise-{each.kind}")
        return max(each.ratios[name] for each in self.bounds if each.distance >= 1 or name not in FAR)


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    bounds = [BoundsJob(distance, settings.points) for distance in settings.distances]
    promises = [PromiseJob(kind, distance) for kind, distance in product(("ence", "nce"), settings.promises)]
    found = lab.map(measure_bounds, bounds, label="bounds")
    return Results(found, lab.map(measure_promise, promises, label="promises"))


def measure_bounds(job: BoundsJob) -> Bounds:
    problem = gaussian(job.distance)
    ratios, exponent = bound_ratios(problem, job.points), steepest_point(problem).exponent
    return Bounds(job.distance, ratios, exponent, newton_step_lower_bound(problem))


def measure_promise(job: PromiseJob) -> Promise:
    problem = gaussian(job.distance)
    bound = ngd_step_upper_bound(problem, 1 / job.distance, job.kind)
    limit = min(int(bound.iterations), 20_000)
    (count,), _ = steps_to_reach(problem, bound.target, job.kind, "ngd", rate=bound.rate, limit=limit)
    return Promise(job.kind, job.distance, float(count) if count >= 0 else math.inf, bound.iterations, bound.rate)


def bound(name: str, statement: str, at: str, *, paper: str = "", held: bool = True, note: str = "") -> None:
    """Claim that what is measured stays within the bound of a statement."""

    def measure(results: Results) -> float:
        return results.worst(name)

    measure.__doc__ = f"{statement}\n\nLargest of measured over bound, over the distances the statement is about."
    said = paper or ("" if "corrected" in at else "≤ 1")
    study.claim(Exact(below=1.0 + 1e-9), at=at, id=name, paper=said, held=held, note=note)(measure)


bound("quadratic", "Within 0.1/R of the optimum the loss increases by at most ½σ_max δ² (to 5 %).", "Proposition 8")
bound("largest-curvature", "For R ≥ 1, σ_max at the optimum is at most (R/√2π)·exp(−R²/8).", "Lemma 46")
bound("noise-curvature", "At the noise σ_max is at least (R² + 2)/8.", "Lemma 48, corrected")
bound(
    "noise-curvature-printed",
    "At the noise σ_max is at least R²/2.",
    "Lemma 48, as printed",
    paper="R²/2",
    held=False,
    note="the Hessian there is ⅛[[R² + 2, −R], [−R, 2]], with largest eigenvalue near R²/8",
)
bound("gradient", "Everywhere ‖∇L‖ ≤ 32·max(R, |b|).", "Claim 6")
bound("ring-jump", "One step of 0.01 from outside 0.2R stays outside 0.15R.", "Lemma 50")
bound("ence-condition", "The condition number of eNCE is at most λ_max/λ_min.", "Lemma 53")
bound("neighbourhood", "Within 1/β_Z the eNCE Hessian changes by at most 2e·λ_max/λ_min.", "Lemma 54")
bound("condition-safe", "The condition number of NCE is at most 4(λ_max/λ_min)²/BC.", "Lemma 60, corrected")
bound(
    "condition-printed",
    "The condition number of NCE is at most λ_max/(2λ_min BC), at every distance.",
    "Lemma 60, as printed",
    paper="false at R = 0.5",
    held=False,
    note="violated at small R; 4(λ_max/λ_min)²/BC is safe",
)
bound("overlap", "The Bhattacharyya coefficient is at least 1 − R²/8.", "Lemma 52")
bound("promise-ence", "Normalised descent on eNCE arrives within the promised updates.", "Theorems 19 and 21")
bound("promise-nce", "Normalised descent on NCE arrives within the promised updates.", "Theorem 19, corollary 2")


@study.table
def tables(results: Results) -> dict[str, Rows]:
    bounds = [
        {
            "R": each.distance,
            **each.ratios,
            "κ on the annulus": each.exponent,
            "log₁₀ updates of damped Newton, at least": each.log_newton / math.log(10),
        }
        for each in results.bounds
    ]
    promises = [
        {"R": each.distance, "kind": each.kind, "taken": each.taken, "promised": each.promised, "rate": each.rate}
        for each in results.promises
    ]
    return {"bounds": bounds, "promises": promises}


@study.figure
def theorems(results: Results) -> Figure:
    title = "Measured against promised: what holds, and what was misprinted"
    figure, (left, right) = new(2, width=5.6, height=4.0, title=title)
    ratios = {name: results.worst(name) for name in (*results.bounds[0].ratios, "promise-ence", "promise-nce")}
    shown = sorted(ratios, key=lambda name: ratios[name])
    colours = [COLOURS[1] if name.endswith("printed") else COLOURS[0] for name in shown]
    left.barh([name.replace("-", " ") for name in shown], sorted(ratios.values()), color=colours, height=0.65)
    left.axvline(1.0, color="black", linewidth=1)
    left.set(xscale="log", xlabel="measured over bound", title="right of the line: violated (red: as printed)")
    left.grid(False, axis="y")
    for (kind, label), marker in zip(LOSSES.items(), "os"):
        chosen = [each for each in results.promises if each.kind == kind]
        x, taken, promised = zip(*((each.distance, each.taken, each.promised) for each in chosen))
        (line,) = right.semilogy(x, taken, marker=marker, label=f"{label}, taken", linestyle="-")
        colour = line.get_color()
        right.semilogy(x, promised, marker=marker, color=colour, linestyle=":", label=f"{label}, promised")
    right.set(xlabel="distance R", ylabel="updates to come within 1/R", title="normalised descent keeps its promise")
    right.legend(fontsize=8)
    return figure
