"""Curvature of the loss at the bad stationary point: weight tying turns a saddle into a local minimum.

Tied and untied one-layer transformers share a bad stationary point; only the tied one is trapped there. At θ_π the
embedding e and the readout a are zero and the bias is log(p/q): the model predicts the marginal π₁ = p/(p + q) whatever
it sees, the loss is H(π) and every first derivative vanishes. The second derivatives decide what happens next. With
attention and feed-forward off, and c = π₀π₁(p + q − 1):

- tied (a = e): ∂²L/∂e² = 2c·1, a minimum for p + q > 1 and a saddle for p + q < 1;
- untied: the (a, e) block is [[0, c·1], [c·1, 0]] with eigenvalues ±|c|, a saddle on both sides;
- bias: ∂²L/∂b² = π₀π₁.

With attention on, M = W_O W_V adds −mean_n (1/n) Σ_i π₀π₁λ^{n+1−i} (M + Mᵀ) to the tied block (attention is uniform
where e = 0), so the statement about the minimum needs small value maps; usual initialisations are.

**Set-up.** The expected loss is a sum over all words of 7 tokens (full: 9), each with its probability; Hessians by
automatic differentiation in float64 and a symmetric eigensolver. Chains (0.2, 0.3) and (0.5, 0.8).

**In the figure.** Left: all eigenvalues with their multiplicities. Most are zero ("almost" positive definite): where
e = a = 0 most weights do nothing. Negative ones appear in every case but the tied one with p + q > 1. Right: the
smallest eigenvalue along p = q, dots measured, lines from the closed form.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.lenses.markov.marginal_hessian import MarginalCurvature, MarginalPoint, marginal_curvature
from sandlab.studies.claims import Exact, NotMeasured
from sandlab.studies.markov._shared import ATTENTION_WITH_MARKOV
from sandlab.studies.study import Lab, Rows, Study


@dataclass(frozen=True)
class Settings:
    """Chains (p, q); draws of the free weights; words of `length` tokens are enumerated; width of the model; values of
    p + q, with p = q, at which the bare model is measured."""

    seeds: int = 3
    chains: tuple[tuple[float, float], ...] = ((0.2, 0.3), (0.5, 0.8))
    length: int = 6
    width: int = 4
    curve: tuple[float, ...] = (0.2, 0.4, 0.6, 0.8, 1.2, 1.4, 1.6, 1.8)


study = Study(
    "markov/hessian",
    title="Weight tying turns the marginal from a saddle into a local minimum",
    source=ATTENTION_WITH_MARKOV,
    tour=True,
    quick=Settings(),
    full=Settings(seeds=8, length=8, width=8),
)


@dataclass(frozen=True)
class Results:
    """whole, bare: with and without the other weights, on each chain, tied and untied; curve: bare ones along p = q."""

    whole: list[MarginalCurvature]
    bare: list[MarginalCurvature]
    curve: list[MarginalCurvature]

    @property
    def first(self) -> list[MarginalCurvature]:
        """The first seed of each case."""
        return [each for each in self.whole if each.at.seed == 0]

    def smallest(self, *, tied: bool, switching: bool) -> list[float]:
        """The smallest eigenvalue of each whole transformer, tied or untied, with p + q > 1 (`switching`) or not."""
        cases = [(each.at.tied, each.at.p + each.at.q > 1, float(each.values[0])) for each in self.whole]
        found = [value for *case, value in cases if case == [tied, switching]]
        if not found:
            raise NotMeasured(f"a chain with p + q {'>' if switching else '<'} 1")
        return found


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    size = (settings.length, settings.width)
    bare = [MarginalPoint(*chain, tied, *size) for chain in settings.chains for tied in (True, False)]
    whole = [replace(point, seed=seed) for point in bare for seed in range(settings.seeds)]
    curve = [MarginalPoint(total / 2, total / 2, tied, *size) for total in settings.curve for tied in (True, False)]
    return Results(*(lab.map(marginal_curvature, points, label="Hessians") for points in (whole, bare, curve)))


@study.claim(Exact(below=1e-12), paper="0")
def stationary(results: Results) -> float:
    """At θ_π (zero embedding and readout, bias log(p/q)) the loss is H(π) and its gradient vanishes.

    Largest gradient entry and distance of the loss from H(π), over chains, tying and weights.
    """
    points = [*results.whole, *results.bare]
    return max(max(each.gradient, abs(each.loss - each.at.theory.marginal_loss)) for each in points)


@study.claim(Exact(above=-1e-10), paper="≥ 0")
def tied_minimum(results: Results) -> list[float]:
    """With tied weights and p + q > 1 the Hessian at θ_π has no negative eigenvalue.

    Smallest eigenvalue of the tied transformer at p + q > 1, the other weights drawn with standard deviation 0.02 (with
    standard deviation 1, value maps are large enough for negative eigenvalues in some draws).
    """
    return results.smallest(tied=True, switching=True)


@study.claim(Exact(below=-1e-3), paper="< 0")
def untied_saddle(results: Results) -> list[float]:
    """Without tying θ_π is a saddle for p + q > 1.

    Smallest eigenvalue of the untied transformer at p + q > 1.
    """
    return results.smallest(tied=False, switching=True)


@study.claim(Exact(below=-1e-3), paper="< 0")
def tied_saddle(results: Results) -> list[float]:
    """With tied weights and p + q < 1 θ_π is a saddle as well.

    Smallest eigenvalue of the tied transformer at p + q < 1.
    """
    return results.smallest(tied=True, switching=False)


@study.claim(Exact(below=1e-10), paper="0")
def closed_form(results: Results) -> float:
    """The curvature is 2π₀π₁(p + q − 1) in every direction of the tied embedding, ±π₀π₁(p + q − 1) in those of the
    untied one, and π₀π₁ in the bias.

    Largest distance of an eigenvalue from its closed form (attention and feed-forward off).
    """
    points = [*results.bare, *results.curve]
    expected = [each.at.theory.marginal_curvatures(each.at.width, each.at.tied) for each in points]
    return max(float(np.abs(each.values - values).max()) for each, values in zip(points, expected))


@study.table
def smallest_eigenvalues(results: Results) -> Rows:
    found: Rows = []
    for at, values in ((each.at, each.values) for each in results.first):
        smallest = min(results.smallest(tied=at.tied, switching=at.p + at.q > 1))
        zero = int((np.abs(values) < 1e-9).sum())
        found.append({"p": at.p, "q": at.q, "tied": at.tied, "smallest": smallest, "zero": zero})
    return found


@study.figure
def spectra(results: Results) -> Figure:
    title = "At the marginal, only the tied model with p + q > 1 has no way down"
    figure, axes = figures.new(2, width=5.4, height=3.9, title=title)
    _rows(axes[0], results.first)
    total = np.linspace(0.02, 1.98, 200)
    slope = 0.25 * (total - 1)
    for tied, line, colour in ((True, 2 * slope, figures.COLOURS[1]), (False, -abs(slope), figures.COLOURS[0])):
        name = "tied" if tied else "untied"
        axes[1].plot(total, np.minimum(line, 0.25), "-", color=colour, label=f"{name}: closed form")
        dots = [(each.at.p + each.at.q, each.values[0]) for each in results.curve if each.at.tied == tied]
        axes[1].plot(*zip(*dots), "o", color=colour, label=f"{name}: measured")
    axes[1].axhline(0, color="black", linewidth=0.8)
    axes[1].axvline(1, color="#888888", linewidth=0.8, linestyle=":")
    axes[1].set(xlabel="p + q (with p = q)", ylabel="smallest eigenvalue", title="Embedding, readout and bias alone")
    axes[1].legend(fontsize=8, loc="lower right")
    return figure


def _rows(axis: Axes, cases: list[MarginalCurvature]) -> None:
    """One row per case: each eigenvalue a dot, equal ones (to 0.005) joined with their number."""
    for row, each in enumerate(cases):
        groups = np.round(each.values / 0.005)
        for group in np.unique(groups):
            members = each.values[groups == group]
            value = float(members.mean())
            colour = figures.COLOURS[6] if abs(value) < 1e-3 else figures.COLOURS[1 if value < 0 else 0]
            axis.plot(value, row, "o", markersize=7, color=colour)
            axis.annotate(f"×{len(members)}", (value, row), (0, 7), textcoords="offset points", ha="center", fontsize=8)
    names = [f"{'tied' if each.at.tied else 'untied'}\np + q = {each.at.p + each.at.q:g}" for each in cases]
    axis.axvline(0, color="black", linewidth=0.8)
    axis.set_yticks(range(len(names)), names)
    axis.set(ylim=(len(names) - 0.5, -0.6), xlabel="eigenvalue", title="Hessian of the whole transformer")
