"""What the studies of this chapter share: the source, Gaussian means, and the search for step sizes of figure 4.2."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np
from matplotlib.figure import Figure

from sandlab.figures import COLOURS, new
from sandlab.learning.nce.problem import NCEProblem
from sandlab.learning.nce.search import RateSearch, search_rate
from sandlab.studies.study import Lab, Row, Rows
from sandlab.worlds.nce.gaussians import Contrast, GaussianMeans

SOURCE = "Liu 2024 (thesis, CMU-ML-24-110)"
LOSSES = {"nce": "NCE", "ence": "eNCE"}
DESCENT, NORMALISED, EXPONENTIAL = METHODS = ("NCE, gradient descent", "NCE, normalised", "eNCE, normalised")
KINDS = {DESCENT: ("nce", "gd"), NORMALISED: ("nce", "ngd"), EXPONENTIAL: ("ence", "ngd")}  # loss and descent
STYLES = {DESCENT: (COLOURS[1], "--"), NORMALISED: (COLOURS[3], "-"), EXPONENTIAL: (COLOURS[0], "-")}


def gaussian(distance: float) -> NCEProblem:
    """Data N(R, 1), noise N(0, 1)."""
    return NCEProblem.of(GaussianMeans(distance))


@dataclass(frozen=True)
class Settings:
    """`batches`: samples per side and update, the first for the claims; `cap`: the largest rate of plain descent."""

    world: Contrast
    descent_rates: tuple[float, ...]
    normalised_rates: tuple[float, ...]
    cap: float
    batches: tuple[int, ...] = (1000,)
    seeds: int = 5
    updates: int = 100
    fresh: int = 20_000


@dataclass(frozen=True)
class Search:
    """Every rate and seed of one method at one batch size."""

    settings: Settings
    method: str
    batch: int


def search(job: Search) -> RateSearch:
    settings, (kind, method) = job.settings, KINDS[job.method]
    return search_rate(
        NCEProblem.of(settings.world),
        kind,
        method,
        rates=settings.descent_rates if method == "gd" else settings.normalised_rates,
        # The largest batches get three seeds: their spread is small and their time is not.
        seeds=range(settings.seeds if job.batch <= 10_000 else min(settings.seeds, 3)),
        steps=settings.updates,
        batch=job.batch,
        fresh=settings.fresh,
    )


@dataclass(frozen=True)
class Results:
    """The searches for step sizes.

    searches   batch size → method → every rate and seed
    exact      method → the rate that comes closest with exact gradients, and its distance; not in every study
    initial    distance to the truth at the start
    """

    searches: dict[int, dict[str, RateSearch]]
    cap: float
    initial: float
    exact: dict[str, tuple[float, float]]

    @property
    def main(self) -> dict[str, RateSearch]:
        """The searches at the first batch size, which the claims are about."""
        return next(iter(self.searches.values()))

    def chosen(self, method: str, search: RateSearch) -> int:
        """Index of the rate with the smallest loss on fresh samples, up to the cap for plain descent."""
        return search.chosen("fresh_loss", self.cap if method == DESCENT else np.inf)

    def curves(self, method: str) -> np.ndarray:
        """Best distance so far at the chosen rate (seed, update)."""
        search = self.main[method]
        return search.best[self.chosen(method, search)]

    def final(self, method: str) -> np.ndarray:
        return self.curves(method)[:, -1]


def search_all(settings: Settings, lab: Lab, exact: dict[str, tuple[float, float]] | None = None) -> Results:
    """Every method at every batch size."""
    jobs = [Search(settings, method, batch) for batch, method in product(settings.batches, METHODS)]
    found = iter(lab.map(search, jobs, label="step sizes"))
    searches = {batch: {method: next(found) for method in METHODS} for batch in settings.batches}
    problem = NCEProblem.of(settings.world)
    return Results(searches, settings.cap, float(problem.distance(problem.tau_q)), exact or {})


def rate_table(results: Results) -> Rows:
    """The rate of each method by three rules of choice, and what it reaches."""
    rows = [
        row(method, batch, rule, search, index)
        for batch, found in results.searches.items()
        for method, search in found.items()
        for rule, index in (
            ("fresh_loss", results.chosen(method, search)),
            ("fresh_loss, any rate", search.chosen("fresh_loss")),
            ("distance", search.chosen("distance")),
        )
    ]
    exact = {"batch": "exact gradient", "rate chosen by": "distance"}
    return rows + [
        {"method": method, **exact, "rate": rate, "final best distance": distance}
        for method, (rate, distance) in results.exact.items()
    ]


def row(method: str, batch: int, rule: str, search: RateSearch, index: int) -> Row:
    final = search.best[index, :, -1]
    return {
        "method": method,
        "batch": str(batch),
        "rate chosen by": rule,
        "rate": float(search.rates[index]),
        "final best distance": float(final.mean()),
        "spread over seeds": float(final.std(ddof=1)) if len(final) > 1 else 0.0,
        "fresh loss": float(search.fresh[index].mean()),
    }


def draw_search(results: Results, title: str) -> Figure:
    """Left: distance against updates at the chosen rates. Right: where every rate ends."""
    figure, (left, right) = new(2, width=5.0, title=title)
    for method, found in results.main.items():
        colour, dash = STYLES[method]
        curves, index, final = results.curves(method), results.chosen(method, found), found.best[..., -1].mean(-1)
        mean, spread = curves.mean(0), curves.std(0)
        left.plot(mean, color=colour, linestyle=dash, label=f"{method}, step {found.rates[index]:g}")
        left.fill_between(np.arange(len(mean)), mean - spread, mean + spread, color=colour, alpha=0.2, linewidth=0)
        right.plot(found.rates, final, color=colour, linestyle=dash, marker="o", markersize=3.5, label=method)
        right.plot(found.rates[index], final[index], marker="*", markersize=13, color=colour, linestyle="none")
    left.set(xlabel="updates", ylabel="best distance to the truth so far", title="step chosen by loss on fresh samples")
    left.set_ylim(bottom=0)
    left.legend()
    right.set(xscale="log", xlabel="step size", ylabel="best distance after all updates")
    right.set(title="every step size (star: chosen)", ylim=(0, None))
    if np.isfinite(results.cap):
        right.axvline(results.cap, color="#555555", linestyle=":", linewidth=1.1)
        where, name = ("data", "axes fraction"), "cap of plain descent "
        right.annotate(name, (results.cap, 0.97), xycoords=where, fontsize=8, ha="right", va="top")
        right.set_ylim(top=1.15 * right.get_ylim()[1])
    return figure
