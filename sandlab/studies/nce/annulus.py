"""Figure 4.1: the region of the expansions, the annulus around the optimum, and the flatness inside it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from sandlab.figures import new, style
from sandlab.learning.nce.descent import optimise
from sandlab.learning.nce.problem import NCEProblem
from sandlab.lenses.nce.annulus import flattest_ring, in_region
from sandlab.lenses.nce.constants import curvature_range
from sandlab.lenses.nce.pictures import draw_landscape, draw_surface, nce_landscape
from sandlab.studies.claims import Below, Between, Claim, Equals
from sandlab.studies.study import Lab, Outcome, study
from sandlab.worlds.nce.gaussians import GaussianMeans

SOURCE = "Liu 2024 (thesis, CMU-ML-24-110), figure 4.1, lemma 49, eq. 4.17"
_OPTIMUM: dict[str, Any] = {
    "marker": "o",
    "color": "#ff9800",
    "markersize": 6,
    "linestyle": "none",
    "label": "optimum",
}


@dataclass(frozen=True)
class AnnulusSettings:
    """`distances` are measured, `picture` is the R of the map, `slope` that of the surface with every method's path."""

    distances: tuple[float, ...] = (4.0, 6.0, 8.0, 10.0, 12.0, 16.0, 20.0, 40.0)
    picture: float = 20.0
    slope: float = 4.0
    grid: int = 81
    steps: int = 400
    seeds: int = 1


@dataclass(frozen=True)
class RingJob:
    """One distance."""

    distance: float


@dataclass(frozen=True)
class MapJob:
    """A landscape over (b, c) with the paths of several methods."""

    distance: float
    grid: int
    steps: int
    low: tuple[float, float]
    high: tuple[float, float]
    methods: tuple[tuple[str, str, float], ...]


def measure_ring(config: RingJob) -> dict[str, float]:
    """The largest radial gradient on the annulus and how much of the annulus lies in the region."""
    return {"R": config.distance, **flattest_ring(NCEProblem.of(GaussianMeans(config.distance)))}


def map_landscape(config: MapJob) -> dict[str, Any]:
    """The three maps of the NCE loss and the path of each (name, method, rate)."""
    problem = NCEProblem.of(GaussianMeans(config.distance))
    axes = [np.linspace(config.low[place], config.high[place], config.grid) for place in range(2)]
    scape = nce_landscape(problem, axes[0], axes[1])
    paths = {
        name: optimise(problem, "ence" if name.startswith("eNCE") else "nce", method, rate=rate, steps=config.steps).tau
        for name, method, rate in config.methods
    }
    return {
        **{name: getattr(scape, name) for name in ("b", "c", "log_loss", "log_norm", "log_condition")},
        **{f"path: {name}": path.numpy() for name, path in paths.items()},
    }


CLAIMS = (
    Claim(
        "inside",
        "From R = 4 on the annulus lies wholly inside the region where the tail expansions hold.",
        "figure 4.1",
        "smallest share of the annulus inside V over the distances",
        Equals(1.0, 0.0),
        exact=True,
    ),
    Claim(
        "flat",
        "On the annulus the gradient toward the optimum is at most 2·exp(−(9/16)R²/8).",
        "Lemma 49, corrected",
        "largest log of radial gradient minus log of the bound, over R of at least 8",
        Below(0.0),
        exact=True,
    ),
    Claim(
        "exponent",
        "The smallest exponent κ on the annulus tends to 9/16, attained at b = 0.8R.",
        "Lemma 49, corrected",
        "smallest κ at the largest distance",
        Equals(9 / 16, 0.01),
        exact=True,
    ),
    Claim(
        "exponent-printed",
        "On the annulus the exponent κ lies between 3/4 and 5/4.",
        "Lemma 49, as printed",
        "smallest κ at R = 20",
        Between(0.75, 1.25),
        paper="[3/4, 5/4]",
        exact=True,
        held=False,
    ),
)


@study(
    "nce/annulus",
    title="A ring of vanishing gradient surrounds the optimum",
    source=SOURCE,
    claims=CLAIMS,
    quick=AnnulusSettings(),
    full=AnnulusSettings(
        distances=(4.0, 5.0, 6.0, 7.0, 8.0, 10.0, 12.0, 14.0, 16.0, 20.0, 24.0, 28.0, 32.0, 36.0, 40.0), grid=141
    ),
)
def annulus(config: AnnulusSettings, lab: Lab) -> Outcome:
    """Where gradient descent dies: the plane (b, c) of models exp(−x²/2 + bx − c), data N(R, 1), noise N(0, 1).

    **The picture.** V = {b ≥ R/2, b(R − b) ≤ c ≤ b·min(b, R)} (grey) is where the source's tail expansions
    hold; A = {0.1R ≤ ‖(b, c) − (R, R²/2)‖ ≤ 0.2R} (red) surrounds the optimum. The source does not say which R its
    figure has, nor what its green area is beyond "encloses the optimum"; here R = 20, and green is the disc of radius
    0.1R. Colours are the exact log₁₀‖∇L‖.

    **What is measured.** The part of the gradient that points to the optimum, |⟨∇L, (τ* − τ)/‖τ* − τ‖⟩| = e^(−κR²/8),
    maximised over A. The source proves κ in [3/4, 5/4]; the minimum of κ is 0.73 at R = 8, 0.585 at R = 20, and tends
    to 9/16 at b = 0.8R, c = R²/2, where c/b = 0.625R and the tail beyond it, e^(−(R−c/b)²/2) = e^(−(9/16)R²/8), leads.
    Exponential flatness stands, with the smaller exponent.

    **What to look for.** First figure, left: after 400 updates gradient descent (red) has not left the noise's corner,
    and normalised descent (white) zigzags up the valley with steps of equal length; middle: the source's own drawing,
    to scale; right: the exponent. Second figure: the same loss at R = 4, as a map and as a surface, with the paths of
    gradient descent, heavy ball, Newton, and normalised descent on NCE and on eNCE.
    """
    rings = lab.map(measure_ring, [RingJob(distance) for distance in config.distances], label="annulus")
    maps = lab.map(map_landscape, [_far(config), _near(config)], label="landscapes")
    far = [ring for ring in rings if ring["R"] >= 8]
    at_twenty = next((ring for ring in rings if ring["R"] == 20.0), rings[-1])
    measurements = {
        "inside": min(ring["inside_region"] for ring in rings),
        "flat": max(ring["log_largest"] - math.log(2) + 9 / 16 * ring["R"] ** 2 / 8 for ring in far),
        "exponent": rings[-1]["exponent"],
        "exponent-printed": at_twenty["exponent"],
    }
    table = [
        {
            "R": ring["R"],
            "largest radial gradient": math.exp(ring["log_largest"]),
            "exponent κ": ring["exponent"],
            "at b/R": ring["b"] / ring["R"],
            "at c/R²": ring["c"] / ring["R"] ** 2,
            "share of A in V": ring["inside_region"],
        }
        for ring in rings
    ]
    figures = {"annulus": _draw_far(config, maps[0], rings), "landscape": _draw_near(maps[1])}
    notes = {"exponent-printed": "the minimum over A is 9/16 in the limit, below the printed interval"}
    return Outcome(measurements, figures, {"annulus": table}, notes)


def _far(config: AnnulusSettings) -> MapJob:
    distance = config.picture
    standard = 1 / curvature_range(NCEProblem.of(GaussianMeans(distance)), points=11).largest
    methods = (("gradient descent", "gd", standard), ("normalised descent", "ngd", 0.05 * distance))
    return MapJob(distance, config.grid, config.steps, (-2.0, -10.0), (1.5 * distance, 0.8 * distance**2), methods)


def _near(config: AnnulusSettings) -> MapJob:
    distance = config.slope
    standard = 1 / curvature_range(NCEProblem.of(GaussianMeans(distance)), points=11).largest
    methods = (
        ("gradient descent", "gd", standard),
        ("normalised descent", "ngd", 0.1),
        ("Newton", "newton", 1.0),
        ("heavy ball", "momentum", standard / 10),
        ("eNCE, normalised", "ngd", 0.1),
    )
    return MapJob(distance, config.grid, config.steps, (-1.0, -1.0), (6.0, 14.0), methods)


def _paths(found: dict[str, Any]) -> dict[str, Any]:
    return {name.removeprefix("path: "): np.asarray(path) for name, path in found.items() if name.startswith("path: ")}


def _scape(found: dict[str, Any]) -> Any:
    from sandlab.lenses.nce.pictures import NCELandscape

    return NCELandscape(*(np.asarray(found[name]) for name in ("b", "c", "log_loss", "log_norm", "log_condition")))


def _draw_far(config: AnnulusSettings, found: dict[str, Any], rings: list[dict[str, float]]) -> Any:
    distance = config.picture
    with style():
        figure, (left, middle, right) = new(
            3, width=4.7, height=3.9, title=f"Around the optimum the gradient vanishes (R = {distance:g})"
        )
        draw_landscape(left, _scape(found), paths=_paths(found))
        left.plot([distance], [distance**2 / 2], **_OPTIMUM)
        _dark_legend(left)
        left.set_title(f"exact gradient, paths of {config.steps} updates")
        _draw_regions(middle, distance)
        radii = [ring["R"] for ring in rings]
        right.plot(radii, [ring["exponent"] for ring in rings], marker="o", label="smallest κ on the annulus")
        right.axhspan(0.75, 1.25, color="#d1495b", alpha=0.12, linewidth=0, label="printed range [3/4, 5/4]")
        right.axhline(9 / 16, color="#555555", linestyle=":", label="limit 9/16")
        right.set(
            xlabel="distance R", ylabel="κ in gradient = e^(−κR²/8)", title="the exponent leaves the printed range"
        )
        right.legend()
    return figure


def _draw_regions(axis: Any, distance: float) -> None:
    """The source's own figure: region V grey, disc of radius 0.1R green, annulus red, optimum orange."""
    reach = 0.32 * distance
    b = np.linspace(distance - reach, distance + reach, 400)
    c = np.linspace(distance**2 / 2 - reach, distance**2 / 2 + reach, 400)
    inside = in_region(torch.from_numpy(np.stack(np.meshgrid(b, c), -1)), distance).numpy()
    axis.grid(False)
    axis.contourf(b, c, inside.astype(float), levels=[0.5, 1.5], colors=["#dcdcdc"])
    angle = np.linspace(0, 2 * np.pi, 200)
    outer, inner = (
        (distance + share * distance * np.cos(angle), distance**2 / 2 + share * distance * np.sin(angle))
        for share in (0.2, 0.1)
    )
    axis.fill(*outer, color="#e57373", label="annulus A")
    axis.fill(*inner, color="#81c784", label="within 0.1R")
    axis.plot([distance], [distance**2 / 2], **_OPTIMUM)
    axis.fill([], [], color="#dcdcdc", label="region V")
    axis.set(xlabel="slope b", ylabel="log-partition c", title="annulus inside the region", aspect="equal")
    axis.legend(loc="upper left", fontsize=8, frameon=True)


def _dark_legend(axis: Any) -> None:
    legend = axis.legend(
        loc="upper left", frameon=True, facecolor="#333333", edgecolor="none", labelcolor="white", fontsize=8
    )
    legend.get_frame().set_alpha(0.8)


def _draw_near(found: dict[str, Any]) -> Any:
    from matplotlib.figure import Figure

    scape, paths = _scape(found), _paths(found)
    with style():
        figure = Figure(figsize=(11.5, 4.6), layout="constrained")
        figure.suptitle("One loss, five methods: data at distance 4", x=0.01, ha="left", fontweight="bold", fontsize=11)
        left = figure.add_subplot(121)
        draw_landscape(left, scape, "log_loss", paths=paths)
        left.plot([4.0], [8.92], **_OPTIMUM)
        _dark_legend(left)
        left.set_title("map with contour lines")
        surface: Any = draw_surface(figure, 122, scape, "log_loss", paths=paths)
        surface.set_title("the same as a surface")
        surface.view_init(elev=50, azim=-125)
    return figure
