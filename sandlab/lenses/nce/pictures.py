"""Pictures of contrastive losses: heat maps and surfaces over (b, c) with paths, the density chasm, an animation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import torch
from torch import Tensor

from sandlab.errors import BadInput, choice, integer
from sandlab.figures import COLOURS, style
from sandlab.learning.nce.problem import NCEProblem
from sandlab.lenses.nce.annulus import in_region, mean_distance
from sandlab.registry import register

if TYPE_CHECKING:
    from matplotlib.animation import FuncAnimation
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D
    from mpl_toolkits.mplot3d import Axes3D

__all__ = [
    "NCELandscape",
    "animate_path",
    "draw_annulus",
    "draw_chasm",
    "draw_landscape",
    "draw_surface",
    "nce_landscape",
]

_TITLES = {
    "log_loss": "log₁₀ of the loss",
    "log_norm": "log₁₀ of the gradient's length",
    "log_condition": "log₁₀ of the Hessian's condition number",
}


@dataclass(frozen=True)
class NCELandscape:
    """A loss over a grid of (b, c): decimal logarithms of loss, gradient norm and condition number, rows along c."""

    b: np.ndarray
    c: np.ndarray
    log_loss: np.ndarray
    log_norm: np.ndarray
    log_condition: np.ndarray

    def values(self, what: str) -> np.ndarray:
        """The map called "log_loss", "log_norm" or "log_condition"."""
        maps = {"log_loss": self.log_loss, "log_norm": self.log_norm, "log_condition": self.log_condition}
        return maps[choice("what", what, maps)]


@register("lenses")
def nce_landscape(
    problem: NCEProblem, b: np.ndarray | Tensor, c: np.ndarray | Tensor, kind: str = "nce"
) -> NCELandscape:
    """log₁₀ L, log₁₀ ‖∇L‖ and log₁₀ cond ∇²L on the grid b × c of a two-coordinate family, exactly.

    Values far below the smallest floating-point number are fine: everything is computed in log space.
    """
    if len(problem.tau_star) != 2:
        raise BadInput(f"a landscape over (b, c) needs two coordinates, {problem.family!r} has {len(problem.tau_star)}")
    first, second = (np.asarray(axis, dtype=np.float64) for axis in (b, c))
    objective = problem.population(kind)
    rows = []
    for value in second:  # one row at a time: a row is (b, quadrature node), already a large array
        tau = torch.from_numpy(np.stack([first, np.full_like(first, value)], axis=-1))
        spectrum = torch.linalg.eigvalsh(objective.hessian(tau).mantissa)
        floor = torch.finfo(torch.float64).eps * spectrum[:, -1]
        condition = spectrum[:, -1] / torch.maximum(spectrum[:, 0], floor)
        rows.append(torch.stack([objective.log_loss(tau), objective.gradient(tau).log_norm, condition.log()]))
    maps = (torch.stack(rows, dim=1) / math.log(10)).numpy()
    return NCELandscape(first, second, *maps)


def draw_landscape(
    axis: Axes,
    landscape: NCELandscape,
    what: str = "log_norm",
    *,
    paths: Mapping[str, Tensor | np.ndarray] | None = None,
    optimum: tuple[float, float] | None = None,
    contours: int = 8,
) -> None:
    """A heat map with contour lines of one of the three maps; on it named paths (step, [b, c]) and the optimum."""
    values = landscape.values(what)
    axis.grid(False)
    mesh = axis.pcolormesh(landscape.b, landscape.c, values, shading="auto", rasterized=True, cmap="cividis")
    axis.contour(
        landscape.b, landscape.c, values, levels=contours, colors="white", linewidths=0.5, linestyles="solid", alpha=0.6
    )
    axis.figure.colorbar(mesh, ax=axis, shrink=0.9, label=_TITLES[what])
    for index, (name, path) in enumerate((paths or {}).items()):
        colour, width = ("#ff6b6b", "#ffffff", "#7ee081", "#ffd166", "#9ad1ff")[index % 5], max(1.0, 2.8 - 0.5 * index)
        axis.plot(path[:, 0], path[:, 1], color=colour, linewidth=width, label=name, linestyle="-")
        axis.plot(path[-1:, 0], path[-1:, 1], color=colour, marker="o", markersize=4)
    if optimum is not None:
        _mark_optimum(axis, optimum)
    if paths or optimum:
        dark: Any = {"facecolor": "#333333", "edgecolor": "none", "labelcolor": "white", "framealpha": 0.8}
        axis.legend(loc="upper left", frameon=True, fontsize=8, **dark)
    axis.set(xlabel="slope b", ylabel="log-partition c")
    axis.set_xlim(landscape.b[0], landscape.b[-1])
    axis.set_ylim(landscape.c[0], landscape.c[-1])


def draw_annulus(axis: Axes, distance: float) -> None:
    """The annulus A (red) around the optimum inside the region V (grey) of the expansions; green: within 0.1R.

    Source: Liu 2024 (thesis), figure 4.1.
    """
    optimum, reach = np.array([distance, distance**2 / 2]), 0.32 * distance
    b, c = (np.linspace(centre - reach, centre + reach, 400) for centre in optimum)
    inside = in_region(torch.from_numpy(np.stack(np.meshgrid(b, c), -1)), distance).numpy()
    axis.grid(False)
    axis.contourf(b, c, inside.astype(float), levels=[0.5, 1.5], colors=["#dcdcdc"])
    angle = np.linspace(0, 2 * np.pi, 200)
    circle = np.stack([np.cos(angle), np.sin(angle)])
    for share, colour, label in ((0.2, "#e57373", "annulus A"), (0.1, "#81c784", "within 0.1R")):
        axis.fill(*(optimum[:, None] + share * distance * circle), color=colour, label=label)
    _mark_optimum(axis, (distance, distance**2 / 2))
    axis.fill([], [], color="#dcdcdc", label="region V")
    axis.set(xlabel="slope b", ylabel="log-partition c", title="annulus inside the region", aspect="equal")
    axis.legend(loc="upper left", fontsize=8, frameon=True)


def _mark_optimum(axis: Axes, optimum: tuple[float, float]) -> None:
    axis.plot(*optimum, marker="o", color="#ff9800", markersize=6, linestyle="none", label="optimum")


def draw_surface(
    figure: Figure,
    position: int,
    landscape: NCELandscape,
    what: str = "log_loss",
    *,
    paths: Mapping[str, Tensor | np.ndarray] | None = None,
) -> Axes3D:
    """The same map as a surface, with the paths on it; `position` is a subplot position such as 121."""
    values = landscape.values(what)
    with style():
        axis = cast("Axes3D", figure.add_subplot(position, projection="3d"))
        grid = np.meshgrid(landscape.b, landscape.c)
        axis.plot_surface(*grid, values, cmap="cividis", alpha=0.85, rcount=60, ccount=60, rasterized=True, zorder=1)
        for name, path in (paths or {}).items():
            height = _interpolate(landscape, values, np.asarray(path))
            axis.plot(path[:, 0], path[:, 1], height + 0.02 * np.ptp(values), label=name, linewidth=2, zorder=10)
        axis.set(xlabel="slope b", ylabel="log-partition c", zlabel=_TITLES[what])
    return axis


def _interpolate(landscape: NCELandscape, values: np.ndarray, path: np.ndarray) -> np.ndarray:
    from scipy.interpolate import RegularGridInterpolator

    height = RegularGridInterpolator((landscape.c, landscape.b), values, bounds_error=False, fill_value=np.nan)
    return np.asarray(height(path[:, ::-1]))


def draw_chasm(
    axis: Axes, problem: NCEProblem, tau: Tensor | None = None, *, rng: torch.Generator, n: int = 60
) -> None:
    """The density chasm of Gaussian means: both densities, samples of each, and the weight each x has in a gradient.

    Weights at τ (default τ*), on a logarithmic axis: q/(p + q) for NCE and √(q/p) for eNCE.
    """
    distance = mean_distance(problem)
    tau = problem.tau_star if tau is None else tau
    x = torch.linspace(-4, distance + 4, 800, dtype=torch.float64).unsqueeze(-1)
    ratio = problem.family.statistics(x) @ (tau - problem.tau_q)
    for name, theta, colour, level in (
        ("noise Q", problem.theta_noise, COLOURS[0], -0.03),
        ("data P*", problem.theta_data, COLOURS[1], -0.06),
    ):
        axis.plot(x[:, 0], problem.family.log_density(x, theta).exp(), color=colour, label=name, linestyle="-")
        drawn = problem.family.draw(n, theta, rng=rng)[:, 0]
        axis.plot(drawn, np.full(n, level), "|", color=colour, markersize=5)
    axis.set(xlabel="x", ylabel="density")
    axis.grid(False)
    weights = axis.twinx()
    weights.semilogy(x[:, 0], torch.sigmoid(-ratio), color=COLOURS[2], linestyle="--", label="NCE weight q/(p+q)")
    weights.semilogy(x[:, 0], (-ratio / 2).exp(), color=COLOURS[3], linestyle="-.", label="eNCE weight √(q/p)")
    weights.set_ylabel("weight of a data example")
    weights.grid(False)
    handles = [*axis.get_legend_handles_labels()[0], *weights.get_legend_handles_labels()[0]]
    axis.legend(handles=handles, loc="upper center", ncols=2, fontsize=8)
    axis.set_ylim(top=0.55)


def animate_path(problem: NCEProblem, path: Tensor, *, frames: int = 60) -> FuncAnimation:
    """An animation of a descent: the model's density between noise and data on the left, the point (b, c) on the right.

    Save it with `animation.save("descent.gif", writer="pillow")` or show it with `animation.to_jshtml()`.
    """
    from matplotlib.animation import FuncAnimation

    from sandlab.figures import new

    distance = mean_distance(problem)
    chosen = np.unique(np.linspace(0, len(path) - 1, integer("frames", frames, low=2)).astype(int))
    x = torch.linspace(-4, distance + 4, 400, dtype=torch.float64).unsqueeze(-1)
    base, statistics = problem.family.log_base(x), problem.family.statistics(x)
    figure, (left, right) = new(2)
    with style():
        for name, theta in (("noise Q", problem.theta_noise), ("data P*", problem.theta_data)):
            left.plot(x[:, 0], problem.family.log_density(x, theta).exp(), label=name)
        (curve,) = left.plot([], [], label="model p", linestyle="--")
        left.set(ylim=(0, 0.6), xlabel="x", ylabel="density")
        left.legend(loc="upper center")
        right.plot(path[:, 0], path[:, 1], linewidth=1)
        right.plot(*problem.tau_star.tolist(), marker="*", markersize=12)
        (point,) = right.plot([], [], "o")
        right.set(xlabel="slope b", ylabel="log-partition c")

    def show(frame: int) -> tuple[Line2D, Line2D]:
        tau = path[frame]
        curve.set_data(x[:, 0], (base + statistics @ tau).clamp(max=5).exp())
        point.set_data([float(tau[0])], [float(tau[1])])
        left.set_title(f"step {frame}")
        return curve, point

    return FuncAnimation(figure, show, frames=chosen.tolist(), blit=False)
