"""Updates until convergence: exponential for gradient descent, polynomial when normalised.

How many updates on the exact loss bring τ within 0.1R of τ*, starting from the noise, for R = 2, 3, …

**Set-up.** Data N(R, 1), noise N(0, 1), model exp(−x²/2 + bx − c), population gradients by quadrature (801 points, more
where the loss is steep). A method has arrived when the *running minimum* of ‖τ − τ*‖ is at most 0.1R. Gradient descent
and heavy ball (memory 0.9) use the standard step 1/λ_M, where λ_M is the largest curvature among the normalised
densities between noise and data; Newton the conservative step λ_ρ/λ_M of theorem 18 and, for comparison, the full step
1; normalised descent the best of five constants.

**What is seen.** Gradient descent: 56, 452, 4109, 41 763 updates for R = 2 … 5, a straight line against R². Heavy ball
divides by about ten and keeps the slope. Conservative Newton grows in the same way, but *full* Newton steps with the
exact Hessian arrive in 3 to 15 updates: theorem 18 is about the step size, not about curvature. Normalised descent on
NCE needs 14 … 1843 updates for R = 2 … 8 and on eNCE 15 … 516: straight lines against log R. A normalised path zigzags
once its step exceeds the valley's width, and rounding decides on which side it lands; counts of a few dozen can differ
by some updates between machines.

**What to look for.** Left, against R²: descent is straight. Right, against R on doubly logarithmic axes: normalised
descent is straight and descent bends upward. Arrows: not arrived within the limit.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import torch
from matplotlib.figure import Figure

from sandlab.figures import new
from sandlab.learning.nce.descent import steps_to_reach
from sandlab.lenses.nce.bounds import gd_step_lower_bound
from sandlab.lenses.nce.constants import curvature_range
from sandlab.studies.claims import Exact, NotMeasured
from sandlab.studies.nce._shared import SOURCE, gaussian
from sandlab.studies.study import Lab, Rows, Study

PLANS = {
    "descent": ("nce", "gd", "NCE, gradient descent"),
    "heavy-ball": ("nce", "momentum", "NCE, heavy ball"),
    "newton-damped": ("nce", "newton", "NCE, Newton, conservative step"),
    "newton": ("nce", "newton", "NCE, Newton, full step"),
    "normalised": ("nce", "ngd", "NCE, normalised descent"),
    "normalised-ence": ("ence", "ngd", "eNCE, normalised descent"),
}


@dataclass(frozen=True)
class Settings:
    """Largest R for each plan; at most `limit` updates for the slow ones, 10 000 for the normalised ones."""

    descent: int = 5
    heavy_ball: int = 5
    newton_damped: int = 4
    fast: int = 8
    limit: int = 60_000
    points: int = 801


study = Study(
    "nce/steps-to-converge",
    title="Updates until convergence: exponential for gradient descent, polynomial when normalised",
    source=SOURCE,
    at="theorems 17, 18, 19 and 21, corollary 2",
    quick=Settings(),
    full=Settings(descent=7, heavy_ball=6, newton_damped=4, fast=10, limit=600_000),
)


@dataclass(frozen=True)
class Plan:
    """One method at one distance."""

    name: str
    distance: int
    limit: int
    points: int


@dataclass(frozen=True)
class Count:
    """Updates until arrival at the best rate (−1: not within the limit), and how close the path came.

    lower_bound   the updates that crossing the annulus takes at least (gradient descent only)
    """

    plan: Plan
    updates: int
    rate: float
    closest: float
    lower_bound: float


@dataclass(frozen=True)
class Results:
    counts: list[Count]

    def of(self, plan: str) -> dict[int, Count]:
        """Distance → count of one plan."""
        return {each.plan.distance: each for each in self.counts if each.plan.name == plan}

    def updates(self, plan: str, distances: range) -> list[int]:
        found = self.of(plan)
        if not distances or not found.keys() >= set(distances):
            raise NotMeasured(f"{PLANS[plan][2]}, R from {distances.start} on")
        return [found[distance].updates for distance in distances]

    def growth(self, plan: str, distances: range) -> float:
        """Smallest factor from one distance to the next; 0 where a path did not arrive."""
        pairs = itertools.pairwise(self.updates(plan, distances))
        return min(later / earlier if min(later, earlier) > 0 else 0.0 for earlier, later in pairs)

    def exponent(self, plan: str) -> float:
        """Slope of log updates against R² over R = 2 … 5."""
        near = np.arange(2, 6)
        counts = np.maximum(self.updates(plan, range(2, 6)), 1)
        return float(np.polyfit(near**2, np.log(counts), 1)[0])


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    last = dict.fromkeys(PLANS, settings.fast) | {
        "descent": settings.descent,
        "heavy-ball": settings.heavy_ball,
        "newton-damped": settings.newton_damped,
    }
    jobs = [
        Plan(name, distance, 10_000 if name.startswith("normalised") else settings.limit, settings.points)
        for name in PLANS
        for distance in range(2, last[name] + 1)
    ]
    return Results(lab.map(count_updates, jobs, label="methods and distances"))


def count_updates(plan: Plan) -> Count:
    """Updates on the exact loss from the noise until ‖τ − τ*‖ ≤ 0.1R, at the best step.

    Gradient descent and heavy ball take the standard step 1/λ_M, Newton λ_ρ/λ_M or 1, normalised descent the best of
    0.02, 0.05, 0.1, 0.2 and 0.05R.
    """
    problem = gaussian(plan.distance)
    curvature = curvature_range(problem)
    standard = 1 / curvature.largest
    single = {"descent": standard, "heavy-ball": standard, "newton-damped": curvature.newton_rate, "newton": 1.0}
    rates = [single[plan.name]] if plan.name in single else [0.02, 0.05, 0.1, 0.2, 0.05 * plan.distance]
    kind, method, _ = PLANS[plan.name]
    rate = torch.tensor(rates, dtype=torch.float64)
    counts, closest = steps_to_reach(
        problem, 0.1 * plan.distance, kind, method, rate=rate, limit=plan.limit, points=plan.points
    )
    arrived = counts >= 0
    best = int(np.argmin(np.where(arrived, counts, np.inf))) if arrived.any() else int(np.argmin(closest))
    bound = math.exp(gd_step_lower_bound(problem, standard)) if plan.name == "descent" else 0.0
    return Count(plan, int(counts[best]), rates[best], float(closest[best]), bound)


@study.claim(Exact(above=5.0), at="Theorem 17")
def descent_grows(results: Results) -> float:
    """Each unit of distance multiplies the updates of gradient descent by more than five.

    Smallest of updates(R + 1)/updates(R) for R = 2, 3, 4.
    """
    return results.growth("descent", range(2, 6))


@study.claim(Exact(above=0.25), at="Theorem 17")
def descent_exponential(results: Results) -> float:
    """The logarithm of gradient descent's updates grows linearly with R².

    Slope of log updates against R² over R = 2 … 5.
    """
    return results.exponent("descent")


@study.claim(Exact(equals=41763, within=5), source="computed here; the source gives no number")
def descent_at_five(results: Results) -> float:
    """At R = 5 gradient descent with step 1/λ_M needs 41 763 updates.

    Updates.
    """
    return results.updates("descent", range(5, 6))[0]


@study.claim(Exact(above=1.0), at="Theorem 17")
def descent_bound(results: Results) -> float:
    """Gradient descent needs at least as many updates as crossing the annulus demands.

    Smallest of updates over 0.05R/(η·largest radial gradient on the annulus).
    """
    arrived = [each for each in results.of("descent").values() if each.updates > 0]
    if not arrived:
        raise NotMeasured("gradient descent that arrives")
    return min(each.updates / each.lower_bound for each in arrived)


@study.claim(Exact(above=0.125), at="section 4.1, introduction")
def memory_does_not_help(results: Results) -> float:
    """Heavy ball grows exponentially too.

    Slope of log updates against R² over R = 2 … 5 (exp(R²/8) would be 0.125).
    """
    return results.exponent("heavy-ball")


@study.claim(Exact(above=3.0), at="Theorem 18")
def newton_damped_grows(results: Results) -> float:
    """Newton's method with the conservative step λ_ρ/λ_M grows exponentially.

    Smallest of updates(R + 1)/updates(R).
    """
    return results.growth("newton-damped", range(2, max(results.of("newton-damped"), default=1) + 1))


@study.claim(Exact(below=5000), at="Corollary 2")
def normalised_polynomial(results: Results) -> float:
    """Normalised descent on NCE still arrives quickly at R = 8.

    Updates at R = 8.
    """
    (updates,) = results.updates("normalised", range(8, 9))
    return updates if updates >= 0 else math.inf


@study.claim(Exact(below=0.0), at="Corollary 2", paper="polynomial in R")
def normalised_growth_falls(results: Results) -> float:
    """The updates of normalised descent on NCE grow more slowly than exponentially.

    Largest change of updates(R + 1)/updates(R) from one R to the next, R = 4 … 8 (0 for an exponential).
    """
    updates = np.array(results.updates("normalised", range(4, 9)), dtype=float)
    if (updates < 0).any():
        return math.inf
    return float(np.diff(updates[1:] / updates[:-1]).max())


@study.claim(Exact(below=1.0001), at="Theorem 21")
def ence_no_slower(results: Results) -> float:
    """From R = 4 on normalised descent on eNCE needs no more updates than on NCE.

    Largest of updates with eNCE over updates with NCE, R ≥ 4.
    """
    far = range(4, max(results.of("normalised"), default=1) + 1)
    pairs = zip(results.updates("normalised-ence", far), results.updates("normalised", far))
    return max(ence / nce if min(ence, nce) > 0 else math.inf for ence, nce in pairs)


@study.table
def count_table(results: Results) -> dict[str, Rows]:
    rows = [
        {
            "method": PLANS[each.plan.name][2],
            "R": float(each.plan.distance),
            "updates": each.updates if each.updates >= 0 else None,
            "arrived": "yes" if each.updates >= 0 else "not within the limit",
            "step size": each.rate,
            "closest distance": each.closest,
        }
        for each in results.counts
    ]
    return {"steps": rows}


@study.figure
def steps(results: Results) -> Figure:
    title = "Gradient descent needs exponentially many updates, normalised descent does not"
    figure, (left, right) = new(2, width=5.0, height=3.6, title=title)
    for (name, (_, _, label)), marker in zip(PLANS.items(), "osv^Dx"):
        found = results.of(name)
        distance, counts = np.array(list(found)), np.array([float(each.updates) for each in found.values()])
        limits = np.array([float(each.plan.limit) for each in found.values()])
        lost = counts < 0
        for axis, x in ((left, distance**2), (right, distance)):
            (line,) = axis.plot(x, np.where(lost, np.nan, counts), marker=marker, markersize=4.5, label=label)
            colour = line.get_color()
            axis.plot(x[lost], limits[lost], marker=r"$\uparrow$", markersize=9, linestyle="none", color=colour)
    left.set(xlabel="squared distance R²", ylabel="updates until 0.1R from the truth", yscale="log")
    left.set_title("straight: exponential in R²")
    right.set(yscale="log", xscale="log", xlabel="distance R", title="straight: polynomial in R")
    ticks = sorted({each.plan.distance for each in results.counts})
    right.set_xticks(ticks, [str(tick) for tick in ticks])
    right.minorticks_off()
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=9)
    return figure
