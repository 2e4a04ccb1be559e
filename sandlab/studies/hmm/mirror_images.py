"""The posterior of a Gaussian HMM does not tell its centres from their mirror image; the transitions do.

Centres of equal length have one mirror image HM with the same posterior (Lemma 7): all centres are moved along the
normal of their affine hull. Matching E[x₂ | x₁] would then need transitions whose columns sum to −1, which is why the
pairwise predictor identifies the model after all (Theorem 5). With more dimensions than states the lemma is not true as
worded: a sphere of other centres has the same posterior.

Nothing is sampled: every number is exact, and the study has no null.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.lenses.hmm.posteriors import posterior_saturation
from sandlab.studies.claims import Exact
from sandlab.studies.hmm import _shared as shared
from sandlab.studies.study import Lab, Study
from sandlab.worlds.hmm.instances import make_ghmm, named_hmm
from sandlab.worlds.hmm.models import GaussianHMM
from sandlab.worlds.hmm.twins import householder, householder_transitions, posterior_sphere

FLAT = np.array([[0.9553, 0.3153], [0.2955, 0.9490]])
FLAT = FLAT / np.linalg.norm(FLAT, axis=0)
HIGH = np.array([[1.0, 0.0], [0.0, 0.6], [0.0, 0.8], [0.0, 0.0]])
LINE = np.linspace(-2.5, 2.5, 41)


@dataclass(frozen=True)
class Settings:
    """Points of the sphere of centres with one posterior."""

    angles: int = 24


@dataclass(frozen=True)
class Results:
    """Differences and sums by model; posterior: of state 0 on a grid of the plane, model and mirror image."""

    same: np.ndarray
    norms: np.ndarray
    sums: np.ndarray
    sphere_same: np.ndarray
    sphere_norms: np.ndarray
    sphere_apart: np.ndarray
    saturation: np.ndarray
    posterior: np.ndarray


study = Study(
    "hmm/mirror-images",
    title="Centres and their mirror image have one posterior, but the mirror has no valid transitions",
    source=shared.SOURCE,
    at="Lemma 7, Theorem 5",
    quick=Settings(),
    full=Settings(angles=240),
)


def models() -> list[GaussianHMM]:
    steps = np.array([[0.8, 0.2], [0.2, 0.8]])
    named = [named_hmm("ghmm-canon"), named_hmm("ghmm-power")]
    return [make_ghmm(FLAT, steps), *[each for each in named if isinstance(each, GaussianHMM)], make_ghmm(HIGH, steps)]


def points(d: int) -> np.ndarray:
    """A fixed lattice of 200 points of the d-dimensional cube of side 4 (multiples of square roots of primes)."""
    roots = np.sqrt([2, 3, 5, 7][:d])
    return 4 * ((np.arange(200)[:, None] * roots) % 1) - 2


def compare(settings: Settings) -> Results:
    chosen = models()
    twins = [make_ghmm(householder(each.M), each.T) for each in chosen]
    angles = np.linspace(0, 2 * np.pi, settings.angles, endpoint=False)
    away = np.array([0.0, 0.8, -0.6, 0.5])
    sphere = [make_ghmm(posterior_sphere(HIGH, angle=float(angle), away=away), chosen[-1].T) for angle in angles]
    grid = np.stack(np.meshgrid(LINE, LINE, indexing="ij"), -1)
    canon = chosen[1]
    scales = np.array([1.0, 5.0, 20.0])
    expected = -scales[:, None] * (1 - canon.M[:, 0] @ canon.M)
    found = np.stack([posterior_saturation(canon, 0, float(scale)) for scale in scales])
    return Results(
        np.array([_posterior_gap(a, b) for a, b in zip(chosen, twins)]),
        np.array([np.abs(np.linalg.norm(each.M, axis=0) - 1).max() for each in twins]),
        np.concatenate([householder_transitions(each).sum(0) for each in chosen]),
        np.array([_posterior_gap(chosen[-1], each) for each in sphere]),
        np.array([np.abs(np.linalg.norm(each.M, axis=0) - 1).max() for each in sphere]),
        np.array([np.abs(each.M - HIGH).max() for each in sphere]),
        (found - expected).ravel(),
        np.stack([chosen[0].posterior(grid)[..., 0], twins[0].posterior(grid)[..., 0]]),
    )


def _posterior_gap(first: GaussianHMM, second: GaussianHMM) -> float:
    x = points(len(first.M))
    return float(np.abs(first.posterior(x) - second.posterior(x)).max())


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    (found,) = lab.map(compare, [settings])
    return found


@study.claim(Exact(below=1e-13), at="Lemma 7")
def one_posterior(results: Results) -> np.ndarray:
    """The mirror image has the same posterior, and centres of length 1.

    Largest difference of posteriors at 200 points, and of lengths from 1, for four models.
    """
    return np.concatenate([results.same, results.norms])


@study.claim(Exact(equals=-1.0, within=1e-9), at="Theorem 5")
def no_valid_transitions(results: Results) -> np.ndarray:
    """The mirror image would need transitions whose columns sum to −1.

    Column sums of (HM)†MT, four models.
    """
    return results.sums


@study.claim(Exact(below=1e-13), at="Lemma 7")
def a_sphere_of_centres(results: Results) -> np.ndarray:
    """For d > k every point of a circle of other centres has the same posterior and lengths 1.

    Largest difference of posteriors, and of lengths from 1, over the circle (d = 4, k = 2).
    """
    return np.concatenate([results.sphere_same, results.sphere_norms])


@study.claim(Exact(equals=2, within=0), at="Lemma 7", paper="M or HM only", held=False)
def only_two_centres(results: Results) -> int:
    """As printed, only M and HM would share a posterior.

    Points of the circle that differ from all others by more than 1e-6 in some centre.
    """
    return len(np.unique(results.sphere_apart.round(6)))


@study.claim(Exact(equals=0.0, within=1e-12), at="eq. 2.66")
def saturation_rate(results: Results) -> np.ndarray:
    """Far along a centre the posterior becomes certain at the exact rate 1 − μ_iᵀμ_j.

    log φ_j(cμ_1) − log φ_1(cμ_1) + c(1 − μ_1ᵀμ_j) for c = 1, 5, 20.
    """
    return results.saturation


@study.figure
def planes(results: Results) -> Figure:
    figure, axes = figures.new(3, title="Reflected centres, one posterior")
    twin = householder(FLAT)
    circle = np.linspace(0, 2 * np.pi, 200)
    axes[0].plot(np.cos(circle), np.sin(circle), color="#8a8d91", linewidth=1)
    for centres, marker, name in ((FLAT, "o", "centres M"), (twin, "s", "mirror image HM")):
        axes[0].plot(*centres, marker, label=name)
        line = centres[:, [0]] + (centres[:, [1]] - centres[:, [0]]) * np.linspace(-2, 3, 2)
        axes[0].plot(*line, ":", color="#555555", linewidth=1)
    for first, second in zip(FLAT.T, twin.T):
        axes[0].annotate("", second, first, arrowprops={"arrowstyle": "->", "color": "#555555"})
    axes[0].set(
        aspect="equal", xlim=(-1.6, 1.6), ylim=(-1.6, 1.6), xlabel="first coordinate", ylabel="second coordinate"
    )
    axes[0].set_title("all centres move along one normal", fontsize=9)
    axes[0].legend(fontsize=8, loc="upper right")
    for axis, values, title in zip(axes[1:], results.posterior, ("posterior of state 1 under M", "under HM")):
        figures.heatmap(axis, values.T[::-1], title=title, x="first coordinate", y="second coordinate", low=0, high=1)
        axis.set_xticks([0, 20, 40], ["−2.5", "0", "2.5"])
        axis.set_yticks([0, 20, 40], ["2.5", "0", "−2.5"])
    return figure


@study.figure
def space(results: Results) -> Figure:
    """The centres of `ghmm-canon`, their plane and its mirror image, on the unit sphere."""
    from matplotlib.figure import Figure as Blank
    from mpl_toolkits.mplot3d.art3d import Poly3DCollection

    figure = Blank(figsize=(5.2, 4.4), layout="constrained")
    axis = figure.add_subplot(projection="3d")
    centres = models()[1].M
    turn, height = np.meshgrid(np.linspace(0, 2 * np.pi, 30), np.linspace(0, np.pi, 15))
    ball = np.cos(turn) * np.sin(height), np.sin(turn) * np.sin(height), np.cos(height)
    axis.plot_wireframe(*ball, color="#e6e6e6", linewidth=0.5)
    for points_, colour, name in ((centres, figures.COLOURS[0], "M"), (householder(centres), figures.COLOURS[1], "HM")):
        axis.add_collection3d(Poly3DCollection([points_.T], facecolor=colour, alpha=0.35))
        axis.scatter(*points_, color=colour, s=40, label=name)
    axis.set(xlabel="x₁", ylabel="x₂", zlabel="x₃")
    axis.view_init(elev=25, azim=-20)
    axis.legend()
    figure.suptitle("Centres and mirror image on the unit sphere", x=0.01, ha="left", fontweight="bold", fontsize=11)
    return figure
