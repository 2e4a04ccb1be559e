"""Flatness in numbers: minimum, curvature and condition number against distance.

Data N(R, 1), noise N(0, 1), model exp(−x²/2 + bx − c): every quantity of the loss at its optimum, exactly.

**What is computed.** The minimum L* of the NCE loss L(τ) = ½E_P*[log(1 + e^(−r))] + ½E_Q[log(1 + e^r)], the
eigenvalues σ_min ≤ σ_max of its Hessian there, H* = ½∫ p*q/(p* + q) TTᵀ, the condition number κ = σ_max/σ_min, the same
for the exponential loss eNCE (closed form), and the Bhattacharyya coefficient exp(−R²/8). Trapezoid rule in log space
with at least 4001 points; nothing is sampled.

**What is true.** p*q/(p* + q) = φ(u)·exp(−R²/8)/(2 cosh(Ru/2)), u = x − R/2: a bump of width 1/R at the midpoint. From
it follow, for large R,

    L*    ≈ (√(2π)/R)·exp(−R²/8)
    σ_max ≈ (πR/8)/√(2π)·exp(−R²/8)
    σ_min ≈ (2π³/√(2π))·R⁻⁵·exp(−R²/8)
    κ_NCE ≈ R⁶/(16π²)
    κ_eNCE = ((s + √(s² − 4))/2)², s = R²/4 + 2, about R⁴/16

The source prints a constant between ½ and 2 for L*, which is right only up to R ≈ 3.1, and a rate R⁻¹ for σ_min; both
printed statements are measured here too and fail. The message of the source survives: everything carries the factor
exp(−R²/8), so that gradients vanish, while condition numbers stay polynomial, so that directions do not.

**What to look for.** Left: on a logarithmic scale against R² the minimum, both curvatures and the overlap are parallel
lines of slope −1/8. Right: the condition numbers are straight lines on doubly logarithmic axes, of slope 6 for NCE and
4 for eNCE.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from sandlab.figures import new
from sandlab.lenses.nce.constants import condition_number, fisher_constants, nce_spectrum
from sandlab.studies.claims import Exact, NotMeasured
from sandlab.studies.nce._shared import SOURCE, gaussian
from sandlab.studies.study import Lab, Rows, Study

ROOT = math.sqrt(2 * math.pi)


@dataclass(frozen=True)
class Settings:
    """Distances R of the table."""

    distances: tuple[float, ...] = (0.5, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0, 12.0, 16.0)


study = Study(
    "nce/landscape",
    title="Loss and curvatures shrink like exp(−R²/8); condition numbers grow like R⁶ for NCE and R⁴ for eNCE",
    source=SOURCE,
    at="section 4.1.3; Liu, Rosenfeld, Ravikumar & Risteski 2022",
    quick=Settings(),
    full=Settings(
        (0.25, 0.5, *map(float, range(1, 11)), 12.0, 14.0, 16.0, 20.0, 24.0, 28.0, 32.0, 36.0, 40.0),
    ),
)


@dataclass(frozen=True)
class Results:
    """One entry per distance R; `minimum`, `largest`, `smallest` and `overlap` are natural logarithms."""

    distance: np.ndarray
    minimum: np.ndarray
    largest: np.ndarray
    smallest: np.ndarray
    overlap: np.ndarray
    kappa_nce: np.ndarray
    kappa_ence: np.ndarray
    fisher_ratio: np.ndarray

    @property
    def at_sixteen(self) -> int:
        """Index of R = 16."""
        if 16.0 not in self.distance:
            raise NotMeasured("the distance R = 16")
        return int(np.flatnonzero(self.distance == 16.0)[0])

    def slope(self, values: np.ndarray, against: np.ndarray) -> float:
        """Of the least-squares line over R in [8, 16]."""
        far = (self.distance >= 8) & (self.distance <= 16)
        if far.sum() < 3:
            raise NotMeasured("three distances between 8 and 16")
        return float(np.polyfit(against[far], values[far], 1)[0])

    def scaled(self, logs: np.ndarray) -> np.ndarray:
        """exp(logs) without the factor exp(−R²/8)."""
        return np.exp(logs + self.distance**2 / 8)


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    return Results(*np.array(lab.map(measure, settings.distances, label="distances")).T)


def measure(distance: float) -> tuple[float, ...]:
    """The entries of `Results` at one distance."""
    problem = gaussian(distance)
    spectrum = nce_spectrum(problem)
    return (
        distance,
        float(problem.population().log_loss(problem.tau_star)),
        float(spectrum[-1]),
        float(spectrum[0]),
        float(problem.family.log_affinity(problem.theta_data, problem.theta_noise)),
        float(condition_number(problem, "nce")),
        float(condition_number(problem, "ence")),
        fisher_constants(problem).ratio,
    )


@study.claim(Exact(equals=1.919388, within=2e-4), at="Proposition 7")
def minimum(results: Results) -> float:
    """At R = 16 the smallest NCE loss is 1.92e-15, although the loss at the noise is log 2.

    L*(16) in units of 1e-15.
    """
    return math.exp(results.minimum[results.at_sixteen]) / 1e-15


@study.claim(Exact(equals=1.0, within=0.04), at="Proposition 7, corrected")
def minimum_law(results: Results) -> float:
    """The smallest loss is (√(2π)/R)·exp(−R²/8) for distant data (the source's constant, corrected).

    L*(16)·exp(16²/8)·16/√(2π).
    """
    return float(results.scaled(results.minimum)[results.at_sixteen]) * 16 / ROOT


@study.claim(
    Exact(between=(0.5, 2.0)),
    at="Proposition 7, as printed",
    paper="c in [1/2, 2]",
    held=False,
    note="the constant tends to √(2π)/R and leaves [½, 2] at R ≈ 3.1",
)
def minimum_printed(results: Results) -> float:
    """The smallest loss is c·exp(−R²/8) with c between 1/2 and 2.

    L*(16)·exp(16²/8).
    """
    return float(results.scaled(results.minimum)[results.at_sixteen])


@study.claim(Exact(equals=-0.125, within=0.125 * 0.05), at="Lemma 46", paper="−1/8")
def curvature_exponent(results: Results) -> float:
    """The largest curvature at the optimum falls like R·exp(−R²/8).

    Slope of log(σ_max/R) against R² over R in [8, 16].
    """
    return results.slope(results.largest - np.log(results.distance), results.distance**2)


@study.claim(Exact(between=(0.85, 1.0)), at="Lemma 47, corrected")
def smallest_law(results: Results) -> float:
    """The smallest curvature at the optimum is (2π³/√(2π))·R⁻⁵·exp(−R²/8) for distant data.

    R⁵·σ_min·exp(R²/8)/24.74 at the largest R of the table.
    """
    return float((results.distance**5 * results.scaled(results.smallest))[-1] / (2 * math.pi**3 / ROOT))


@study.claim(
    Exact(equals=-1.0, within=0.3),
    at="Lemma 47, as printed",
    paper="−1",
    held=False,
    note="the true rate is R⁻⁵: the bump of the Hessian's weight has width 1/R, not 1",
)
def smallest_printed(results: Results) -> float:
    """The smallest curvature at the optimum is of the order exp(−R²/8)/R.

    Slope of log(σ_min·exp(R²/8)) against log R over R in [8, 16].
    """
    return results.slope(results.smallest + results.distance**2 / 8, np.log(results.distance))


@study.claim(Exact(equals=1.1788e5, within=12.0), at="Lemmas 46 and 47")
def kappa(results: Results) -> float:
    """At R = 16 the condition number of the NCE Hessian at the optimum is 1.18e5.

    κ_NCE(16).
    """
    return float(results.kappa_nce[results.at_sixteen])


@study.claim(Exact(between=(5.4, 6.2)), at="Lemmas 46 and 47, corrected", paper="2, from the misprinted lemma 47")
def kappa_growth(results: Results) -> float:
    """The condition number of NCE grows like the sixth power of the distance: R⁶/(16π²).

    Slope of log κ_NCE against log R over R in [8, 16].
    """
    return results.slope(np.log(results.kappa_nce), np.log(results.distance))


@study.claim(Exact(equals=4354.0, within=0.5), at="Lemma 53")
def kappa_exponential(results: Results) -> float:
    """At R = 16 the condition number of the eNCE Hessian at the optimum is 4354.

    κ_eNCE(16).
    """
    return float(results.kappa_ence[results.at_sixteen])


@study.claim(Exact(between=(3.7, 4.1)), at="Lemma 53")
def kappa_exponential_growth(results: Results) -> float:
    """The condition number of eNCE grows like the fourth power of the distance.

    Slope of log κ_eNCE against log R over R in [8, 16].
    """
    return results.slope(np.log(results.kappa_ence), np.log(results.distance))


@study.claim(Exact(below=1.0), at="Lemma 53", paper="≤ 1")
def kappa_bound(results: Results) -> float:
    """The condition number of eNCE never exceeds that of the Fisher matrices between noise and data.

    Largest κ_eNCE/(λ_max/λ_min) over the distances.
    """
    return float((results.kappa_ence / results.fisher_ratio).max())


@study.claim(Exact(above=0.0), at="section 4.1.5")
def advantage(results: Results) -> float:
    """From R = 1 on, eNCE is better conditioned than NCE, the more so the farther.

    Smallest increase of κ_NCE/κ_eNCE from one distance to the next.
    """
    return float(np.diff((results.kappa_nce / results.kappa_ence)[results.distance >= 1]).min())


@study.table
def landscape_table(results: Results) -> dict[str, Rows]:
    columns = {
        "R": results.distance,
        "smallest loss": np.exp(results.minimum),
        "smallest loss·e^(R²/8)": results.scaled(results.minimum),
        "σ_max·e^(R²/8)": results.scaled(results.largest),
        "σ_min·e^(R²/8)": results.scaled(results.smallest),
        "κ NCE": results.kappa_nce,
        "κ eNCE": results.kappa_ence,
        "λ_max/λ_min": results.fisher_ratio,
    }
    rows = zip(*(values.tolist() for values in columns.values()))
    return {"landscape": [dict(zip(columns, row)) for row in rows]}


@study.figure
def landscape(results: Results) -> Figure:
    figure, (left, right) = new(2, title="Everything shrinks like exp(−R²/8); condition numbers stay polynomial")
    distance = results.distance
    for logs, label, marker in (
        (results.overlap, "overlap ∫√(p*q)", "o"),
        (results.largest, "largest curvature σ_max", "s"),
        (results.minimum, "smallest loss L*", "^"),
        (results.smallest, "smallest curvature σ_min", "v"),
    ):
        left.plot(distance**2, logs / math.log(10), marker=marker, markersize=4, label=label)
    left.set(xlabel="squared distance R²", ylabel="log₁₀", title="slope −1/8, all four")
    left.legend(loc="lower left", fontsize=8)
    grid = np.geomspace(distance[distance >= 2][0], distance[-1], 50)
    right.loglog(distance, results.kappa_nce, marker="o", markersize=4, label="NCE")
    right.loglog(distance, results.kappa_ence, marker="s", markersize=4, label="eNCE")
    right.loglog(grid, grid**6 / (16 * math.pi**2), color="#555555", linestyle=":", label="R⁶/(16π²)")
    right.loglog(grid, grid**4 / 16, color="#999999", linestyle="-.", label="R⁴/16")
    right.set(xlabel="distance R", ylabel="condition number κ at the optimum", title="sixth against fourth power")
    right.legend()
    return figure
