"""Predicting one token from another cannot identify an HMM: a whole circle of models makes the same predictions.

The source prints two different 4 × 3 models (eq. 2.47) whose predictions of any token from any other agree. They are
one rotation by 0.1 about the all-ones vector, and every angle gives another such model. Two-token predictions differ.
For k = 2 a single distance has twins of its own, and T̃ᵗ = Tᵗ has solutions T̃ ≠ T for every t ≥ 2 (Claims 1 and 3).

Nothing is sampled: every number is exact, and the study has no null.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.learning.hmm.gaussian_recovery import read_ghmm_pairwise
from sandlab.learning.hmm.recovery import parameter_error
from sandlab.lenses.hmm.identifiability import predictor_difference
from sandlab.studies.claims import Exact
from sandlab.studies.hmm import _shared as shared
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.hmm.instances import make_ghmm, named_hmm
from sandlab.worlds.hmm.models import HMM, GaussianHMM
from sandlab.worlds.hmm.twins import gap_one_twin, orbit, power_twin


@dataclass(frozen=True)
class Settings:
    """How many angles of the orbit, and the largest power."""

    angles: int = 25
    powers: int = 12


@dataclass(frozen=True)
class Results:
    """Largest differences: of the printed pair by task, along the orbit, of matrix powers, of the k = 2 twin."""

    printed: dict[str, float]
    angles: np.ndarray
    pairwise: np.ndarray
    two_tokens: np.ndarray
    power_equal: np.ndarray
    power_apart: np.ndarray
    gaussian_same: np.ndarray
    gaussian_apart: np.ndarray
    neighbours: float
    second_neighbours: float
    kl: dict[str, float]
    orbit_parameters: np.ndarray
    centres_recovered: np.ndarray


study = Study(
    "hmm/pairwise-twins",
    title="One token from another: a circle of HMMs makes the same predictions",
    source=shared.SOURCE,
    at="Theorems 4 and 6, Claims 1 and 3",
    quick=Settings(),
    full=Settings(angles=201),
    tour=True,
)


def compare(settings: Settings) -> Results:
    hmm, twin, small = named_hmm("hmm-thm6"), named_hmm("hmm-thm6-twin"), named_hmm("hmm-2x2")
    assert isinstance(hmm, HMM) and isinstance(small, HMM)
    single = ("2|1", "3|1", "4|1", "5|1", "6|1", "1|2", "1|3")
    angles = np.linspace(0, 2 * np.pi / 3, settings.angles)
    models = [orbit(hmm, float(angle)) for angle in angles]
    powers = range(2, settings.powers + 1)
    pairs = [power_twin(0.5, power) for power in powers]
    roots = [[np.linalg.matrix_power(each, power) for each in pair] for power, pair in zip(powers, pairs)]
    cone = named_hmm("ghmm-power")
    others = [make_ghmm(cone.means, pair[1]) for pair in pairs]
    near = gap_one_twin(small, 0.1)
    return Results(
        {task: predictor_difference(hmm, twin, task) for task in (*single, *shared.TWO)},
        angles,
        np.array([max(predictor_difference(hmm, each, task) for task in single) for each in models]),
        np.array([[predictor_difference(hmm, each, task) for task in shared.TWO] for each in models]),
        np.array([np.abs(first - second).max() for first, second in roots]),
        np.array([np.abs(first - second).max() for first, second in pairs]),
        np.array([predictor_difference(cone, each, f"{power + 1}|1") for power, each in zip(powers, others)]),
        np.array([predictor_difference(cone, each, "2|1") for each in others]),
        max(predictor_difference(small, near, task) for task in ("2|1", "1|2")),
        predictor_difference(small, near, "3|1"),
        {f"{length}-grams": string_kl(hmm, orbit(hmm, 0.1), length) for length in (2, 3, 4, 6)},
        np.stack([np.concatenate([each.O, each.T]) for each in models[:: max(1, (len(models) - 1) // 3)]]),
        np.array([centre_error(cone, power) for power in (2, 3, 5)]),
    )


def string_kl(first: HMM, second: HMM, length: int) -> float:
    """KL between the laws of strings, in nats, each divided by its sum: printed digits make sums of 1 ± 3·10⁻⁹."""
    p, q = (each.joint(length) / each.joint(length).sum() for each in (first, second))
    return float((p * np.log(p / q)).sum())


def centre_error(model: HMM | GaussianHMM, power: int) -> float:
    """Error of the centres read off E[x_{t+1} | x₁]: the step is too long for T, not for M."""
    found = read_ghmm_pairwise(lambda x: model.predictor(f"{power + 1}|1", x), 3, 3)
    return min(parameter_error(model, each.means, model.T).means_max for each in found if each.accepted)


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    (found,) = lab.map(compare, [settings])
    return found


@study.claim(Exact(below=1e-8), at="eq. 2.47", paper="equal")
def printed_pair_agrees(results: Results) -> list[float]:
    """The two printed models predict every token from every other alike.

    Largest difference of the optimal predictors at distances 1 to 5 and backwards.
    """
    return [value for task, value in results.printed.items() if task not in shared.TWO]


@study.claim(Exact(equals=1.653e-4, within=1e-6), at="eq. 2.47")
def two_tokens_differ(results: Results) -> list[float]:
    """They predict two tokens differently.

    Largest difference of the three two-token predictors.
    """
    return [results.printed[task] for task in shared.TWO]


@study.claim(Exact(below=1e-13), at="Theorem 6")
def whole_orbit_agrees(results: Results) -> np.ndarray:
    """Every angle gives the same predictions of one token from another.

    Largest difference over distances, one value per angle in [0, 2π/3].
    """
    return results.pairwise


@study.claim(Exact(below=1e-13), at="Claim 1")
def equal_powers(results: Results) -> np.ndarray:
    """Tᵗ = T̃ᵗ for every t from 2 to 12.

    Largest entry of Tᵗ − T̃ᵗ.
    """
    return results.power_equal


@study.claim(Exact(above=0.16), at="Claim 1", paper="T ≠ T̃")
def different_roots(results: Results) -> np.ndarray:
    """T and T̃ are different.

    Largest entry of T − T̃.
    """
    return results.power_apart


@study.claim(Exact(below=1e-13), at="Claim 3")
def gaussian_long_step(results: Results) -> np.ndarray:
    """A Gaussian HMM with T̃ predicts the token t steps ahead like T.

    Largest difference of E[x_{t+1} | x₁] at 64 points.
    """
    return results.gaussian_same


@study.claim(Exact(above=0.01), at="Claim 3")
def gaussian_next_step(results: Results) -> np.ndarray:
    """It predicts the next token differently.

    Largest difference of E[x₂ | x₁] at 64 points.
    """
    return results.gaussian_apart


@study.claim(Exact(below=1e-13), at="Theorem 4")
def two_states_have_a_twin(results: Results) -> float:
    """With two states the neighbours alone have a twin.

    Largest difference of the predictors of x₂ from x₁ and back.
    """
    return results.neighbours


@study.claim(Exact(equals=0.0162, within=1e-4), at="Theorem 4")
def twin_of_two_states_is_seen_two_steps_away(results: Results) -> float:
    """It is told apart two steps away.

    Largest difference of the predictors of x₃ from x₁.
    """
    return results.second_neighbours


@study.claim(Exact(below=1e-6), at="Claim 3", paper="M identifiable")
def long_steps_give_the_centres(results: Results) -> np.ndarray:
    """Predictions two, three or five steps ahead still give the centres.

    Largest error of the centres read off E[x_{t+1} | x₁].
    """
    return results.centres_recovered


@study.claim(Exact(equals=1.98442e-7, within=1e-11), at="eq. 2.47")
def samples_could_not_tell(results: Results) -> float:
    """The two printed models could hardly be told apart by samples.

    KL between the laws of three tokens, in nats; of two tokens it is 0.
    """
    return results.kl["3-grams"]


@study.table
def divergences(results: Results) -> Rows:
    return [{"strings": name, "KL (nats)": value} for name, value in results.kl.items()]


@study.table
def differences(results: Results) -> Rows:
    return [{"task": task, "largest difference": value} for task, value in results.printed.items()]


@study.figure
def along_the_orbit(results: Results) -> Figure:
    figure, (axis,) = figures.new(
        width=6.5, title="One token cannot tell the models of the orbit apart, two tokens can"
    )
    axis.semilogy(results.angles, np.maximum(results.pairwise, 1e-17), label="one token, all distances")
    for column, task in enumerate(shared.TWO):
        axis.semilogy(results.angles, np.maximum(results.two_tokens[:, column], 1e-17), label=task)
    axis.set(xlabel="angle of the rotation (radians)", ylabel="largest difference of predictions")
    axis.legend()
    return figure


@study.figure
def parameters(results: Results) -> Figure:
    count = len(results.orbit_parameters)
    figure, axes = figures.new(
        count, 2, width=2.6, height=2.2, title="Models of the orbit: emissions (above), transitions"
    )
    for column, both in enumerate(results.orbit_parameters):
        for axis, matrix in ((axes[column], both[:-3]), (axes[count + column], both[-3:])):
            figures.heatmap(axis, matrix, low=0, high=0.7, bar=False, numbers=True)
            axis.set(xticks=[], yticks=[])
        axes[column].set_title(f"angle {results.angles[-1] * column / max(count - 1, 1):.2f}", fontsize=9)
    return figure


@study.figure
def eigenvalue_triangle(results: Results) -> Figure:
    """Eigenvalues of T̃ for equal powers, inside the triangle of cube roots of 1 in which circulant T have theirs."""
    figure, (axis,) = figures.new(
        width=5.2, height=4.4, title="Turned eigenvalues stay in the triangle: T̃ᵗ = Tᵗ is possible"
    )
    corners, circle = np.exp(2j * np.pi * np.arange(4) / 3), 0.5 * np.exp(1j * np.linspace(0, 2 * np.pi, 200))
    axis.plot(corners.real, corners.imag, color="#8a8d91", label="triangle of cube roots of 1")
    axis.plot(circle.real, circle.imag, ":", color="#8a8d91", label="inscribed circle, |λ| = ½")
    first = np.linalg.eigvals(power_twin(0.5, 2)[0])
    axis.plot(first.real, first.imag, "k*", markersize=10, label="T = ½(I + P)", linestyle="none")
    for power, marker in zip((2, 3, 5, 8), "os^D"):
        values = np.linalg.eigvals(power_twin(0.5, power)[1])
        axis.plot(values.real, values.imag, marker, label=f"T̃ for t = {power}", linestyle="none", markersize=5)
    axis.set(xlabel="real part", ylabel="imaginary part", aspect="equal")
    axis.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure
