"""Updates until the truth is near, against the distance between data and noise: exponential or polynomial."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from sandlab.figures import new, style
from sandlab.learning.nce.descent import steps_to_reach
from sandlab.learning.nce.problem import NCEProblem
from sandlab.lenses.nce.bounds import gd_step_lower_bound
from sandlab.lenses.nce.constants import curvature_range
from sandlab.studies.claims import Above, Below, Claim, Equals
from sandlab.studies.study import Lab, Outcome, study
from sandlab.worlds.nce.gaussians import GaussianMeans

SOURCE = "Liu 2024 (thesis, CMU-ML-24-110), theorems 17, 18, 19 and 21, corollary 2"
PLANS = {
    "descent": ("nce", "gd", "NCE, gradient descent"),
    "heavy-ball": ("nce", "momentum", "NCE, heavy ball"),
    "newton-damped": ("nce", "newton", "NCE, Newton, conservative step"),
    "newton": ("nce", "newton", "NCE, Newton, full step"),
    "normalised": ("nce", "ngd", "NCE, normalised descent"),
    "normalised-ence": ("ence", "ngd", "eNCE, normalised descent"),
}


@dataclass(frozen=True)
class StepsSettings:
    """Largest R for each plan; `limit` steps at most for the slow ones."""

    descent: int = 5
    heavy_ball: int = 5
    newton_damped: int = 4
    fast: int = 8
    limit: int = 60_000
    points: int = 801
    seeds: int = 1


@dataclass(frozen=True)
class StepsJob:
    """One method at one distance."""

    distance: float
    plan: str
    limit: int
    points: int


def count_steps(config: StepsJob) -> dict[str, Any]:
    """Updates on the exact loss from the noise until ‖τ − τ*‖ ≤ 0.1R (−1: not within the limit), at the best step.

    Gradient descent and heavy ball take the standard step 1/λ_M, Newton λ_ρ/λ_M or 1, normalised descent the best of
    0.02, 0.05, 0.1, 0.2 and 0.05R.
    """
    problem = NCEProblem.of(GaussianMeans(config.distance))
    curvature = curvature_range(problem)
    standard = 1 / curvature.largest
    rates = {
        "descent": [standard],
        "heavy-ball": [standard],
        "newton-damped": [curvature.newton_rate],
        "newton": [1.0],
    }.get(config.plan, [0.02, 0.05, 0.1, 0.2, 0.05 * config.distance])
    kind, method, _ = PLANS[config.plan]
    counts, closest = steps_to_reach(
        problem,
        0.1 * config.distance,
        kind,
        method,
        rate=torch.tensor(rates, dtype=torch.float64),
        limit=config.limit,
        points=config.points,
    )
    arrived = counts >= 0
    best = int(np.argmin(np.where(arrived, counts, np.inf))) if arrived.any() else int(np.argmin(closest))
    return {
        "R": config.distance,
        "plan": config.plan,
        "steps": int(counts[best]),
        "rate": float(rates[best]),
        "closest": float(closest[best]),
        "lower_bound": math.exp(gd_step_lower_bound(problem, standard)) if config.plan == "descent" else 0.0,
    }


CLAIMS = (
    Claim(
        "descent-grows",
        "Each unit of distance multiplies the updates of gradient descent by more than five.",
        "Theorem 17",
        "smallest of steps(R + 1)/steps(R) for R = 2, 3, 4",
        Above(5.0),
        exact=True,
    ),
    Claim(
        "descent-exponential",
        "The logarithm of gradient descent's updates grows linearly with R².",
        "Theorem 17",
        "slope of log steps against R² over R = 2 … 5",
        Above(0.25),
        exact=True,
    ),
    Claim(
        "descent-at-five",
        "At R = 5 gradient descent with step 1/λ_M needs 41 763 updates.",
        "computed here; the source gives no number",
        "updates",
        Equals(41763, 5),
        exact=True,
    ),
    Claim(
        "descent-bound",
        "Gradient descent needs at least as many updates as crossing the annulus demands.",
        "Theorem 17",
        "smallest of steps over 0.05R/(η·largest radial gradient on the annulus)",
        Above(1.0),
        exact=True,
    ),
    Claim(
        "memory-does-not-help",
        "Heavy ball grows exponentially too.",
        "section 4.1, introduction",
        "slope of log steps against R² over R = 2 … 5 (exp(R²/8) would be 0.125)",
        Above(0.125),
        exact=True,
    ),
    Claim(
        "newton-damped-grows",
        "Newton's method with the conservative step λ_ρ/λ_M grows exponentially.",
        "Theorem 18",
        "smallest of steps(R + 1)/steps(R)",
        Above(3.0),
        exact=True,
    ),
    Claim(
        "normalised-polynomial",
        "Normalised descent on NCE still arrives quickly at R = 8.",
        "Corollary 2",
        "updates at R = 8",
        Below(5000),
        exact=True,
    ),
    Claim(
        "ence-no-slower",
        "From R = 4 on normalised descent on eNCE needs no more updates than on NCE.",
        "Theorem 21",
        "largest of steps with eNCE over steps with NCE, R ≥ 4",
        Below(1.0001),
        exact=True,
    ),
)


@study(
    "nce/steps-to-converge",
    title="Updates until convergence: exponential for gradient descent, polynomial when normalised",
    source=SOURCE,
    claims=CLAIMS,
    quick=StepsSettings(),
    full=StepsSettings(descent=7, heavy_ball=6, newton_damped=4, fast=10, limit=600_000),
)
def steps_to_converge(config: StepsSettings, lab: Lab) -> Outcome:
    """How many updates on the exact loss bring τ within 0.1R of τ*, starting from the noise, for R = 2, 3, …

    **Set-up.** Data N(R, 1), noise N(0, 1), model exp(−x²/2 + bx − c), population gradients by quadrature (801 points,
    more where the loss is steep). A method has arrived when the *running minimum* of ‖τ − τ*‖ is at most 0.1R.
    Gradient descent and heavy ball (memory 0.9) use the standard step 1/λ_M, where λ_M is the largest curvature among
    the normalised densities between noise and data; Newton the conservative step λ_ρ/λ_M of theorem 18 and, beside
    it, the full step 1; normalised descent the best of five constants.

    **What is seen.** Gradient descent: 56, 452, 4109, 41 763 updates for R = 2 … 5, a straight line against R².
    Heavy ball divides by about ten and keeps the slope. Conservative Newton grows in the same way, but *full* Newton
    steps with the exact Hessian arrive in 3 to 15 updates: theorem 18 is about the step size, not about curvature.
    Normalised descent on NCE needs 14 … 1843 updates for R = 2 … 8 and on eNCE 15 … 516: straight lines against log R.
    A normalised path zigzags once its step exceeds the valley's width, and rounding decides on which side it lands;
    counts of a few dozen can differ by some updates between machines.

    **What to look for.** Left, against R²: descent is straight. Right, against R on doubly logarithmic axes:
    normalised descent is straight and descent bends upward. Arrows: not arrived within the limit.
    """
    upto = {
        "descent": config.descent,
        "heavy-ball": config.heavy_ball,
        "newton-damped": config.newton_damped,
        "newton": config.fast,
        "normalised": config.fast,
        "normalised-ence": config.fast,
    }
    jobs = [
        StepsJob(float(distance), plan, 10_000 if plan.startswith("normalised") else config.limit, config.points)
        for plan, last in upto.items()
        for distance in range(2, last + 1)
    ]
    rows = lab.map(count_steps, jobs, label="methods and distances")
    steps = {plan: {int(row["R"]): row for row in rows if row["plan"] == plan} for plan in upto}

    def growth(plan: str, last: int) -> float:
        counts = [steps[plan][distance]["steps"] for distance in range(2, last + 1)]
        return min(later / earlier if min(later, earlier) > 0 else 0.0 for earlier, later in itertools.pairwise(counts))

    near = np.arange(2, 6)

    def exponent(plan: str) -> float:
        counts = [max(steps[plan][int(distance)]["steps"], 1) for distance in near]
        return float(np.polyfit(near**2, np.log(counts), 1)[0])

    arrived = [row for row in steps["descent"].values() if row["steps"] > 0]
    both = [(steps["normalised-ence"][r]["steps"], steps["normalised"][r]["steps"]) for r in range(4, config.fast + 1)]
    at_eight = steps["normalised"][8]["steps"]
    measurements = {
        "descent-grows": growth("descent", 5),
        "descent-exponential": exponent("descent"),
        "descent-at-five": float(steps["descent"][5]["steps"]),
        "descent-bound": min(row["steps"] / row["lower_bound"] for row in arrived),
        "memory-does-not-help": exponent("heavy-ball"),
        "newton-damped-grows": growth("newton-damped", config.newton_damped),
        "normalised-polynomial": float(at_eight) if at_eight >= 0 else math.inf,
        "ence-no-slower": max(ence / nce if min(ence, nce) > 0 else math.inf for ence, nce in both),
    }
    table = [
        {
            "method": PLANS[row["plan"]][2],
            "R": row["R"],
            "updates": row["steps"] if row["steps"] >= 0 else None,
            "arrived": "yes" if row["steps"] >= 0 else "not within the limit",
            "step size": row["rate"],
            "closest distance": row["closest"],
        }
        for row in rows
    ]
    return Outcome(measurements, {"steps": _draw(steps, jobs)}, {"steps": table})


def _draw(steps: dict[str, dict[int, dict[str, Any]]], jobs: list[StepsJob]) -> Any:
    with style():
        return _draw_both(steps, {job.plan: job.limit for job in jobs})


def _draw_both(steps: dict[str, dict[int, dict[str, Any]]], limit: dict[str, int]) -> Any:
    figure, (left, right) = new(
        2, width=5.0, height=3.6, title="Gradient descent needs exponentially many updates, normalised descent does not"
    )
    for (plan, found), marker in zip(steps.items(), "osv^Dx"):
        distance = np.array(sorted(found))
        counts = np.array([found[r]["steps"] for r in distance], dtype=float)
        counts[counts < 0] = np.nan
        lost = distance[np.isnan(counts)]
        for axis, x in ((left, distance**2), (right, distance)):
            (line,) = axis.plot(x, counts, marker=marker, markersize=4.5, label=PLANS[plan][2])
            axis.plot(
                lost**2 if axis is left else lost,
                np.full(len(lost), limit[plan], dtype=float),
                marker=r"$\uparrow$",
                markersize=9,
                color=line.get_color(),
                linestyle="none",
            )
    left.set(
        yscale="log",
        xlabel="squared distance R²",
        ylabel="updates until 0.1R from the truth",
        title="straight: exponential in R²",
    )
    right.set(yscale="log", xscale="log", xlabel="distance R", title="straight: polynomial in R")
    ticks = sorted({r for found in steps.values() for r in found})
    right.set_xticks(ticks, [str(tick) for tick in ticks])
    right.minorticks_off()
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=9)
    return figure
