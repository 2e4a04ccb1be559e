"""A sampler that mixes fast belongs to an estimator that wastes little: Poincaré constants and masked variances.

Theorems 4.1.2 and 4.1.3: Γ ⪯ C · I⁻¹, C being the Poincaré constant of the block dynamics with the estimator's law of
masks. Everything here is exact, by enumeration of Ising models on three and four spins: the constants C of k-Gibbs,
the variances, the constants of approximate tensorisation (found by maximisation, hence a lower estimate), and the
decay of χ² and KL along the chain. KL decays by (1 − 1/C_AT) per step; the source's e^{−2t/C_AT} does not follow.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.decoding.parallel.hitting import distance_curve
from sandlab.learning.parallel.information import asymptotic_variance, fisher_information, mask_information
from sandlab.lenses.parallel.mixing import poincare_constant, tensorisation_constant, variance_gap
from sandlab.studies.claims import Exact
from sandlab.studies.parallel import _shared as shared
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.parallel.families import Ising
from sandlab.worlds.parallel.finite import FiniteLaw, MaskLaw, size_masks
from sandlab.worlds.parallel.heat_bath import block_matrix

COUPLINGS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
POINCARE = {0.0: (4, 2, 4 / 3, 1), 0.05: (4.7009, 2.2336, 1.4112, 1), 0.3: (14.6987, 5.5516, 2.5172, 1)}
TENSORISATION = {0.0: (3, 1.5), 0.2: (4.838, 1.960), 0.5: (12.584, 3.896)}


@dataclass(frozen=True)
class Settings:
    """Starts of each maximisation, and values of couplings and fields on the grid of three-spin models."""

    starts: int = 3
    grid: tuple[float, ...] = (-0.6, 0.1, 0.8)


study = Study(
    "parallel/mixing-and-variance",
    title="Fast mixing bounds the variance: masked estimators lose at most the Poincaré constant",
    source=shared.SOURCE,
    at="Theorems 4.1.2 and 4.1.3",
    quick=Settings(),
    full=Settings(starts=30, grid=(-0.9, -0.4, 0.1, 0.6, 1.1)),
)


@dataclass(frozen=True)
class Results:
    """Constants and traces by (coupling, k); slack: C·I⁻¹ − Γ on the grid; decay: (k, distance, time) and its bound."""

    constants: np.ndarray
    traces: np.ndarray
    tensorisation: np.ndarray
    poincare_of_three: np.ndarray
    slack: np.ndarray
    decay: np.ndarray
    bound: np.ndarray


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    four = [Ising(4, coupling) for coupling in COUPLINGS]
    masks = [size_masks(4, k) for k in (1, 2, 3, 4)]
    constants = np.array([[poincare_constant(world.law, each) for each in masks] for world in four])
    traces = np.array([[np.trace(asymptotic_variance(w.law, w.statistics, each)) for each in masks] for w in four])
    three = [(Ising(3, coupling).law, size_masks(3, k)) for coupling in TENSORISATION for k in (1, 2)]
    tensor = [tensorisation_constant(law, each, starts=settings.starts) for law, each in three]
    gaps = [poincare_constant(law, each) for law, each in three]
    decay, bound = zip(*[_decay(k, tensor[4 + k - 1]) for k in (1, 2)])
    return Results(
        constants, traces, np.array(tensor), np.array(gaps), _slack(settings.grid), np.array(decay), np.array(bound)
    )


def _slack(grid: tuple[float, ...]) -> np.ndarray:
    """Smallest eigenvalue of C·I⁻¹ − Γ for three-spin models, with uniform masks and with masks by state."""
    found = []
    for couplings in itertools.product(grid, repeat=3):
        world = Ising(3, couplings, (0.2, -0.3, 0.5))
        fisher = fisher_information(world.law, world.statistics)
        for masks in (size_masks(3, 1), size_masks(3, 2), _by_state(world.law)):
            masked = mask_information(world.law, world.statistics, masks)
            found.append(variance_gap(fisher, masked, poincare_constant(world.law, masks)))
    return np.array(found)


def _by_state(law: FiniteLaw) -> MaskLaw:
    """An adaptive law: sites are hidden two at a time, preferably those of plus spins."""
    masks = size_masks(3, 2).masks
    weights = 1.0 + (law.states[:, None, :] * masks).sum(-1)
    return MaskLaw(masks, weights / weights.sum(1, keepdims=True))


def _decay(k: int, constant: float) -> tuple[np.ndarray, np.ndarray]:
    """χ² and KL along k-Gibbs at J = 0.5 from nearly a point mass, and their bounds."""
    law, masks, time = Ising(3, 0.5).law, size_masks(3, k), np.arange(41)
    start = np.full(8, 1e-3 / 7)
    start[0] = 1 - 1e-3
    matrix = block_matrix(law, masks)
    chi, kl = (distance_curve(matrix, start, law, 40, distance=name) for name in ("chi2", "kl"))
    rate = 1 - 1 / poincare_constant(law, masks)
    return np.stack([chi, kl]), np.stack([chi[0] * rate ** (2 * time), kl[0] * (1 - 1 / constant) ** time])


@study.claim(Exact(equals=0.0, within=1e-3), at="Definition 4.1.5", source=shared.SPEC)
def poincare_digits(results: Results) -> np.ndarray:
    """Poincaré constants of k-Gibbs on four spins have the known values.

    Difference from 4, 2, 4/3, 1 (J = 0), 4.7009, 2.2336, 1.4112, 1 (J = 0.05) and 14.6987, 5.5516, 2.5172, 1 (0.3).
    """
    return np.concatenate([results.constants[COUPLINGS.index(j)] - np.array(known) for j, known in POINCARE.items()])


@study.claim(Exact(above=-1e-9), at="Lee 2023, cited in §4.4", paper="k-Gibbs mixes at least k times faster")
def blocks_mix_faster(results: Results) -> np.ndarray:
    """k-Gibbs mixes at least k times as fast as Gibbs.

    C₁/k − C_k for k = 1 … 4 and all couplings.
    """
    return (results.constants[:, :1] / np.array([1, 2, 3, 4]) - results.constants).ravel()


@study.claim(Exact(above=-1e-9), at="Theorems 4.1.2 and 4.1.3", paper="Γ ⪯ C · I⁻¹")
def variance_is_bounded(results: Results) -> np.ndarray:
    """The masked estimator's variance is at most C times the best, also with masks that depend on the state.

    Smallest eigenvalue of C·I⁻¹ − Γ over a grid of three-spin models and three laws of masks.
    """
    return results.slack


@study.claim(Exact(equals=0.0, within=2e-3), at="Definition 4.1.9", source=shared.SPEC)
def tensorisation_digits(results: Results) -> np.ndarray:
    """Tensorisation constants on three spins have the known values, which are Poincaré's.

    Difference from 3, 1.5; 4.838, 1.960; 12.584, 3.896 at J = 0, 0.2, 0.5 for k = 1, 2.
    """
    return results.tensorisation - np.array([value for known in TENSORISATION.values() for value in known])


@study.claim(Exact(above=-1e-9), at="Definition 4.1.9")
def tensorisation_is_at_least_poincare(results: Results) -> np.ndarray:
    """Tensorisation of entropy implies Poincaré with the same constant.

    C_AT − C.
    """
    return results.tensorisation - results.poincare_of_three


@study.claim(Exact(below=1.0 + 1e-9), at="§4.1.2", paper="χ²: e^{−2t/C}; KL: e^{−2t/C_AT} (only e^{−t/C_AT} follows)")
def distances_decay(results: Results) -> np.ndarray:
    """χ² falls by (1 − 1/C)² and KL by (1 − 1/C_AT) in every step, at least.

    Distance over its bound for t = 0 … 40, k = 1, 2.
    """
    return (results.decay / np.maximum(results.bound, 1e-13)).ravel()


@study.table
def constants(results: Results) -> Rows:
    return [
        {"J": coupling, "k": k, "Poincaré constant": float(results.constants[i, k - 1]),
         "Tr Γ": float(results.traces[i, k - 1])}
        for i, coupling in enumerate(COUPLINGS)
        for k in (1, 2, 3, 4)
    ]  # fmt: skip


@study.figure
def mixing(results: Results) -> Figure:
    figure, axes = figures.new(columns=3, width=3.9, title="Blocks mix faster, and their estimators lose less")
    for k in (1, 2, 3, 4):
        axes[0].plot(COUPLINGS, results.constants[:, k - 1], marker="o", ms=4, label=f"k = {k}")
        axes[1].plot(COUPLINGS, results.traces[:, k - 1] / results.traces[:, 3], marker="o", ms=4, label=f"k = {k}")
    axes[0].set(yscale="log", xlabel="coupling J", ylabel="Poincaré constant")
    axes[1].set(xlabel="coupling J", ylabel="variance, relative to likelihood")
    for place, k in enumerate((1, 2)):
        colour = figures.COLOURS[place]
        axes[2].plot(results.decay[place, 1], color=colour, label=f"k = {k}")
        axes[2].plot(results.bound[place, 1], color=colour, linestyle=":", label="bound")
    axes[2].set(yscale="log", xlabel="steps", ylabel="KL to the target", ylim=(1e-9, None))
    for axis in axes:
        axis.legend(fontsize=8)
    return figure
