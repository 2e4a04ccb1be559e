"""A ring of vanishing gradient surrounds the optimum.

Where gradient descent dies: the plane (b, c) of models exp(−x²/2 + bx − c), data N(R, 1), noise N(0, 1).

**The picture.** V = {b ≥ R/2, b(R − b) ≤ c ≤ b·min(b, R)} (grey) is where the source's tail expansions hold;
A = {0.1R ≤ ‖(b, c) − (R, R²/2)‖ ≤ 0.2R} (red) surrounds the optimum. The source does not say which R its figure has,
nor what its green area is beyond "encloses the optimum"; here R = 20, and green is the disc of radius 0.1R. Colours are
the exact log₁₀‖∇L‖.

**What is measured.** The part of the gradient that points to the optimum, |⟨∇L, (τ* − τ)/‖τ* − τ‖⟩| = e^(−κR²/8),
maximised over A. The source proves κ in [3/4, 5/4]; the minimum of κ is 0.73 at R = 8, 0.585 at R = 20, and tends to
9/16 at b = 0.8R, c = R²/2, where c/b = 0.625R and the tail beyond it, e^(−(R−c/b)²/2) = e^(−(9/16)R²/8), leads.
Exponential flatness stands, with the smaller exponent.

**What to look for.** First figure, left: after 400 updates gradient descent (red) has not left the noise's corner, and
normalised descent (white) zigzags up the valley with steps of equal length; middle: the source's own drawing, to scale;
right: the exponent. Second figure: the same loss at R = 4, as a map and as a surface, with the paths of gradient
descent, heavy ball, Newton, and normalised descent on NCE and on eNCE.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from sandlab.figures import new
from sandlab.learning.nce.descent import optimise
from sandlab.lenses.nce.annulus import SteepestPoint, steepest_point
from sandlab.lenses.nce.constants import curvature_range
from sandlab.lenses.nce.pictures import NCELandscape, draw_annulus, draw_landscape, draw_surface, nce_landscape
from sandlab.studies.claims import Exact, NotMeasured
from sandlab.studies.nce._shared import SOURCE, gaussian
from sandlab.studies.study import Lab, Rows, Study


@dataclass(frozen=True)
class Settings:
    """`distances` are measured, `far` is the R of the map, `near` that of the surface with every method's path."""

    distances: tuple[float, ...] = (4.0, 6.0, 8.0, 10.0, 12.0, 16.0, 20.0, 40.0)
    far: float = 20.0
    near: float = 4.0
    grid: int = 81
    updates: int = 400


study = Study(
    "nce/annulus",
    title="A ring of vanishing gradient surrounds the optimum",
    source=SOURCE,
    at="figure 4.1, lemma 49, eq. 4.17",
    quick=Settings(),
    full=Settings(
        distances=(4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 12.0, 14.0, 16.0, 20.0, 24.0, 28.0, 32.0, 36.0, 40.0), grid=141
    ),
)


@dataclass(frozen=True)
class MapJob:
    """A landscape over the box from `low` to `high` with the paths of (name, loss, method, rate)."""

    distance: float
    grid: int
    updates: int
    low: tuple[float, float]
    high: tuple[float, float]
    methods: tuple[tuple[str, str, str, float], ...]


@dataclass(frozen=True)
class Map:
    """The maps of the NCE loss, and the path of each method (update, [b, c])."""

    distance: float
    updates: int
    optimum: tuple[float, float]
    landscape: NCELandscape
    paths: dict[str, np.ndarray]


@dataclass(frozen=True)
class Results:
    """`steepest`: the point of the annulus with the largest radial gradient, for each distance."""

    distances: tuple[float, ...]
    steepest: list[SteepestPoint]
    far: Map
    near: Map


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    maps = lab.map(draw_map, [far_map(settings), near_map(settings)], label="landscapes")
    return Results(settings.distances, lab.map(steepest, settings.distances, label="annulus"), *maps)


def steepest(distance: float) -> SteepestPoint:
    return steepest_point(gaussian(distance))


def far_map(settings: Settings) -> MapJob:
    distance = settings.far
    rate = 1 / curvature_range(gaussian(distance), points=11).largest
    methods = (("gradient descent", "nce", "gd", rate), ("normalised descent", "nce", "ngd", 0.05 * distance))
    high = (1.5 * distance, 0.8 * distance**2)
    return MapJob(distance, settings.grid, settings.updates, (-2.0, -10.0), high, methods)


def near_map(settings: Settings) -> MapJob:
    rate = 1 / curvature_range(gaussian(settings.near), points=11).largest
    methods = (
        ("gradient descent", "nce", "gd", rate),
        ("normalised descent", "nce", "ngd", 0.1),
        ("Newton", "nce", "newton", 1.0),
        ("heavy ball", "nce", "momentum", rate / 10),
        ("eNCE, normalised", "ence", "ngd", 0.1),
    )
    return MapJob(settings.near, settings.grid, settings.updates, (-1.0, -1.0), (6.0, 14.0), methods)


def draw_map(job: MapJob) -> Map:
    problem = gaussian(job.distance)
    b, c = (np.linspace(low, high, job.grid) for low, high in zip(job.low, job.high))
    paths = {
        name: optimise(problem, kind, method, rate=rate, steps=job.updates).tau.numpy()
        for name, kind, method, rate in job.methods
    }
    optimum = (float(problem.tau_star[0]), float(problem.tau_star[1]))
    return Map(job.distance, job.updates, optimum, nce_landscape(problem, b, c), paths)


@study.claim(Exact(equals=1.0, within=0.0), at="figure 4.1", paper="1")
def inside(results: Results) -> float:
    """From R = 4 on the annulus lies wholly inside the region where the tail expansions hold.

    Smallest share of the annulus inside V over the distances.
    """
    return min(point.inside for point in results.steepest)


@study.claim(Exact(below=0.0), at="Lemma 49, corrected")
def flat(results: Results) -> float:
    """On the annulus the gradient toward the optimum is at most 2·exp(−(9/16)R²/8).

    Largest log of radial gradient minus log of the bound, over R of at least 8.
    """
    far = [(distance, point) for distance, point in zip(results.distances, results.steepest) if distance >= 8]
    if not far:
        raise NotMeasured("a distance of at least 8")
    return max(point.log_gradient - math.log(2) + 9 / 16 * distance**2 / 8 for distance, point in far)


@study.claim(Exact(equals=9 / 16, within=0.01), at="Lemma 49, corrected")
def exponent(results: Results) -> float:
    """The smallest exponent κ on the annulus tends to 9/16, attained at b = 0.8R.

    Smallest κ at the largest distance.
    """
    return results.steepest[-1].exponent


@study.claim(
    Exact(between=(0.75, 1.25)),
    at="Lemma 49, as printed",
    paper="[3/4, 5/4]",
    held=False,
    note="the minimum over A is 9/16 in the limit, below the printed interval",
)
def exponent_printed(results: Results) -> float:
    """On the annulus the exponent κ lies between 3/4 and 5/4.

    Smallest κ at R = 20.
    """
    if 20.0 not in results.distances:
        raise NotMeasured("the distance R = 20")
    return results.steepest[results.distances.index(20.0)].exponent


@study.table
def annulus_table(results: Results) -> dict[str, Rows]:
    rows = [
        {
            "R": distance,
            "largest radial gradient": math.exp(point.log_gradient),
            "exponent κ": point.exponent,
            "at b/R": point.b / distance,
            "at c/R²": point.c / distance**2,
            "share of A in V": point.inside,
        }
        for distance, point in zip(results.distances, results.steepest)
    ]
    return {"annulus": rows}


@study.figure
def annulus(results: Results) -> Figure:
    distance, far = results.far.distance, results.far
    title = f"Around the optimum the gradient vanishes (R = {distance:g})"
    figure, (left, middle, right) = new(3, width=4.7, height=3.9, title=title)
    draw_landscape(left, far.landscape, paths=far.paths, optimum=far.optimum)
    left.set_title(f"exact gradient, paths of {far.updates} updates")
    draw_annulus(middle, distance)
    exponents = [point.exponent for point in results.steepest]
    right.plot(results.distances, exponents, marker="o", label="smallest κ on the annulus")
    right.axhspan(0.75, 1.25, color="#d1495b", alpha=0.12, linewidth=0, label="printed range [3/4, 5/4]")
    right.axhline(9 / 16, color="#555555", linestyle=":", label="limit 9/16")
    right.set(xlabel="distance R", ylabel="κ in gradient = e^(−κR²/8)", title="the exponent leaves the printed range")
    right.legend()
    return figure


@study.figure
def landscape(results: Results) -> Figure:
    near = results.near
    figure = Figure(figsize=(11.5, 4.6), layout="constrained")
    title = f"One loss, five methods: data at distance {near.distance:g}"
    figure.suptitle(title, x=0.01, ha="left", fontweight="bold", fontsize=11)
    left = figure.add_subplot(121)
    draw_landscape(left, near.landscape, "log_loss", paths=near.paths, optimum=near.optimum)
    left.set_title("map with contour lines")
    surface = draw_surface(figure, 122, near.landscape, "log_loss", paths=near.paths)
    surface.set_title("the same as a surface")
    surface.view_init(elev=50, azim=-125)
    return figure
