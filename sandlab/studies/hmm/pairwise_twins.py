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
from sandlab.lenses.hmm.identifiability import predictor_difference
from sandlab.studies.claims import Exact
from sandlab.studies.hmm import _shared as shared
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.hmm.instances import make_ghmm, named_hmm
from sandlab.worlds.hmm.models import HMM
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
    )


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


@study.table
def differences(results: Results) -> Rows:
    return [{"task": task, "largest difference": value} for task, value in results.printed.items()]


@study.figure
def along_the_orbit(results: Results) -> Figure:
    figure, (left, right) = figures.new(2, title="One token cannot tell the models of the orbit apart, two tokens can")
    left.semilogy(results.angles, np.maximum(results.pairwise, 1e-17), label="one token, all distances")
    for column, task in enumerate(shared.TWO):
        left.semilogy(results.angles, np.maximum(results.two_tokens[:, column], 1e-17), label=task)
    left.set(xlabel="angle of the rotation (radians)", ylabel="largest difference of predictions")
    left.legend()
    corners = np.exp(2j * np.pi * np.arange(4) / 3)
    right.plot(corners.real, corners.imag, color="#8a8d91", label="triangle of cube roots of 1")
    for power in (2, 3, 5, 8):
        values = np.linalg.eigvals(power_twin(0.5, power)[1])
        right.plot(values.real, values.imag, "o", label=f"eigenvalues of T̃, t = {power}")
    right.set(xlabel="real part", ylabel="imaginary part", aspect="equal", title="Eigenvalues stay in the triangle")
    right.legend(fontsize=7)
    return figure
