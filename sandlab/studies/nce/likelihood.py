"""Maximum likelihood needs the fewest samples; what NCE and eNCE pay on top grows with the distance of the noise.

Three estimates of τ* = [θ*, log Z(θ*)] from the same n draws of the data; NCE and eNCE see n draws of the noise, too.

**Set-up.** Data N(R, 1), noise N(0, 1), R = 1, 2, 3. Maximum likelihood takes the mean of the data and computes its
normaliser; the contrastive losses of the sample are minimised by Newton steps from the noise, and estimate the
normaliser. n from 500 to 8000 (full: 128 000); the squared error ‖τ̂ − τ*‖² is averaged over repetitions, which gives
one value per seed. Theory: n·E‖τ̂ − τ*‖² tends to 1 + R² for maximum likelihood and to tr(H⁻¹VH⁻¹) for the others. The
null has no data: draws of the noise are called data.

**What to look for.** Left: parallel lines of slope −1, so that a distance of δ takes O(1/δ²) samples whichever way.
Right: how many times the samples of maximum likelihood the others need, beside the theory (lines): the price of not
knowing the normaliser, small for near noise and exponential in R² for eNCE. The optimisers of `nce/gaussian-1d` have
another order, eNCE before NCE: there the budget is 100 updates, here the loss is minimised.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.learning.nce.descent import newton_direction
from sandlab.learning.nce.problem import NCEProblem, SampleObjective
from sandlab.lenses.nce.efficiency import asymptotic_error
from sandlab.random import rng
from sandlab.studies.claims import Mean, Ratio
from sandlab.studies.nce._shared import SOURCE, gaussian
from sandlab.studies.study import Lab, Rows, Study

METHODS = {"likelihood": "maximum likelihood", "nce": "NCE", "ence": "eNCE"}
NEWTON_STEPS = 30  # at most; eight or so arrive
THEORY = "asymptotic normality of M-estimators (for NCE: Gutmann & Hyvärinen 2012)"


@dataclass(frozen=True)
class Settings:
    """Distances R, sample sizes n, repetitions of each per seed; swapped: the data are draws of the noise."""

    distances: tuple[float, ...] = (1.0, 2.0, 3.0)
    sizes: tuple[int, ...] = (500, 2000, 8000)
    repeats: int = 40
    seeds: int = 8
    swapped: bool = False


QUICK = Settings()
study = Study(
    "nce/likelihood",
    title="Maximum likelihood needs the fewest samples, and the others the more the farther the noise",
    source=SOURCE,
    at="section 4.1.2",
    quick=QUICK,
    full=Settings(sizes=(500, 2000, 8000, 32_000, 128_000), repeats=200, seeds=20),
    null=replace(QUICK, swapped=True),
)


@dataclass(frozen=True)
class Trial:
    """One sample size at one distance, for one seed."""

    distance: float
    size: int
    repeats: int
    seed: int
    swapped: bool


def minimiser(objective: SampleObjective, problem: NCEProblem) -> np.ndarray:
    """The τ with the smallest loss on a sample, by Newton steps from τ_q."""
    tau = problem.tau_q
    for _ in range(NEWTON_STEPS):
        step = newton_direction(objective, tau)
        tau = tau - step
        if float(step.norm()) < 1e-9:
            break
    return tau.numpy()


def squared_errors(trial: Trial) -> list[float]:
    """Mean of ‖τ̂ − τ*‖² over the repetitions, for each method."""
    problem = gaussian(trial.distance)
    family, source = problem.family, rng(trial.seed, "draws", trial.distance, trial.size)  # type: ignore[arg-type]
    theta = problem.theta_noise if trial.swapped else problem.theta_data
    found = []
    for _ in range(trial.repeats):
        data = family.draw(trial.size, theta, rng=source)
        noise = family.draw(trial.size, problem.theta_noise, rng=source)
        contrasts = [minimiser(problem.on(data, noise, kind), problem) for kind in ("nce", "ence")]
        estimates = np.stack([family.coordinates(family.fit(data)).numpy(), *contrasts])
        found.append(((estimates - problem.tau_star.numpy()) ** 2).sum(-1))
    return np.mean(found, axis=0).tolist()


@dataclass(frozen=True)
class Results:
    """Mean squared errors (method, distance, size, seed), and n times their theory (method, distance)."""

    distances: np.ndarray
    sizes: np.ndarray
    errors: np.ndarray
    theory: np.ndarray

    def price(self, method: int, against: int = 0) -> np.ndarray:
        """Squared error of a method divided by that of another: (distance, seed), geometric mean over sizes."""
        return np.exp(np.log(self.errors[method] / self.errors[against]).mean(1))


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    shape = (len(settings.distances), len(settings.sizes), settings.seeds)
    trials = [
        Trial(distance, size, settings.repeats, seed, settings.swapped)
        for distance in settings.distances
        for size in settings.sizes
        for seed in range(settings.seeds)
    ]
    errors = np.array(lab.map(squared_errors, trials, label="samples")).T.reshape(len(METHODS), *shape)
    theory = [[asymptotic_error(gaussian(distance), kind) for distance in settings.distances] for kind in METHODS]
    return Results(np.array(settings.distances), np.array(settings.sizes), errors, np.array(theory))


@study.claim(Mean(equals=-1.0, within=0.1), paper="n = O(1/δ²)")
def one_over_n(results: Results) -> np.ndarray:
    """The squared error of all three falls like 1/n: a distance of δ takes O(1/δ²) samples.

    Slope of log ‖τ̂ − τ*‖² against log n, mean over methods and distances.
    """
    logs = np.moveaxis(np.log(results.errors), 2, 0)
    slopes = np.polyfit(np.log(results.sizes), logs.reshape(len(results.sizes), -1), 1)[0]
    return slopes.reshape(-1, logs.shape[-1]).mean(0)


@study.claim(Mean(equals=1.0, within=0.1), source=THEORY, at="sandwich formula")
def as_predicted(results: Results) -> np.ndarray:
    """With many samples the error is that of the theory.

    n‖τ̂ − τ*‖² divided by tr(H⁻¹VH⁻¹) (1 + R² for maximum likelihood), mean over methods, distances and the two largest
    sizes.
    """
    scaled = results.errors[:, :, -2:] * results.sizes[-2:, None] / results.theory[:, :, None, None]
    return scaled.mean((0, 1, 2))


@study.claim(Ratio(above=1.5), source=THEORY, at="efficiency of maximum likelihood")
def likelihood_first(results: Results) -> np.ndarray:
    """At every distance both contrastive estimates need more samples than maximum likelihood, at least half as many
    again.

    Squared error of the better of NCE and eNCE divided by that of maximum likelihood, at the distance where this is
    smallest.
    """
    return np.minimum(results.price(1), results.price(2))[smallest(results)]


def smallest(results: Results) -> int:
    """The distance at which the contrastive estimates cost least, on average over seeds."""
    return int(np.minimum(results.price(1), results.price(2)).mean(1).argmin())


@study.claim(Ratio(above=2.0), source=THEORY, at="sandwich formula")
def farther_is_dearer(results: Results) -> np.ndarray:
    """The farther the noise, the more samples NCE needs on top: more than twice as many times from R = 1 to R = 3.

    Squared error of NCE over that of maximum likelihood, at the largest distance divided by that at the smallest.
    """
    return results.price(1)[-1] / results.price(1)[0]


@study.claim(Ratio(above=1.5), source=THEORY, at="sandwich formula")
def ence_is_dearer(results: Results) -> np.ndarray:
    """For distant noise eNCE needs more samples than NCE, at least half as many again.

    Squared error of eNCE divided by that of NCE at the largest distance.
    """
    return results.price(2, 1)[-1]


@study.table
def samples(results: Results) -> Rows:
    last = results.errors[:, :, -1].mean(-1) * results.sizes[-1]
    return [
        {"R": float(distance)}
        | {f"{label}, n·error²": float(last[method, row]) for method, label in enumerate(METHODS.values())}
        | {f"{label}, theory": float(results.theory[method, row]) for method, label in enumerate(METHODS.values())}
        for row, distance in enumerate(results.distances)
    ]


@study.figure
def errors(results: Results) -> Figure:
    figure, axes = figures.new(columns=2, width=4.4, height=3.4)
    for method, (label, colour) in enumerate(zip(METHODS.values(), figures.COLOURS)):
        values = results.errors[method, -1].T
        figures.band(axes[0], results.sizes, values, label=label, color=colour, marker="o", markersize=3)
        axes[0].plot(results.sizes, results.theory[method, -1] / results.sizes, ":", color=colour, linewidth=1.2)
        price = results.theory[method] / results.theory[0]
        axes[1].plot(results.distances, price, ":", color=colour, linewidth=1.2)
        axes[1].plot(results.distances, results.price(method).mean(1), "o", color=colour, label=label)
    title = f"R = {results.distances[-1]:g} (dotted: theory)"
    axes[0].set(xscale="log", yscale="log", xlabel="samples n", ylabel="squared error", title=title)
    axes[1].set(yscale="log", xlabel="distance R", ylabel="samples, in those of maximum likelihood", title="price")
    axes[0].legend(fontsize=8)
    return figure
