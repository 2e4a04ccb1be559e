"""Weight tying on a switching chain: one layer, trained in the usual way, ends at the marginal."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sandlab import figures
from sandlab.studies.claims import Above, Below, Claim, Equals
from sandlab.studies.markov.one_layer_runs import BinaryRun, train_on_chain
from sandlab.studies.study import Lab, Outcome, study
from sandlab.worlds.markov.chain import MarkovChain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SOURCE = (
    "Makkuva et al. 2024, Attention with Markov: a framework for principled analysis of transformers via Markov chains"
)
PROBES = (
    ("plain", 1, 1.0),
    ("plain", 2, 1.0),
    ("layer-norm", 1, 1.0),
    ("layer-norm", 2, 1.0),
    ("scalar", 1, 2.0),
)
"""Set-ups (variant, layers, factor of the step count) in which the tied trap is tried again."""


@dataclass(frozen=True)
class Settings:
    """Chains with p + q > 1 and < 1; training as in the authors' public code, at length 64 in the quick preset."""

    seeds: int = 4
    fast: tuple[float, float] = (0.5, 0.8)
    slow: tuple[float, float] = (0.2, 0.3)
    steps: int = 400
    length: int = 64
    batch: int = 64
    grid: tuple[float, ...] = (0.2, 0.4, 0.6, 0.8)
    grid_steps: int = 200
    grid_length: int = 32
    grid_seeds: int = 2


@study(
    "markov/weight-tying",
    title="With tied weights, one layer fails on a chain that likes to switch",
    source=SOURCE,
    tour=True,
    quick=Settings(),
    full=Settings(
        seeds=16,
        length=512,
        batch=16,
        grid=(0.2, 0.4, 0.5, 0.6, 0.8, 1.0),
        grid_steps=400,
        grid_length=256,
        grid_seeds=5,
    ),
    claims=[
        Claim(
            "tied-trapped",
            "For p + q > 1 the tied transformer ends at the marginal.",
            SOURCE,
            "final loss of the tied model minus H(π), in nats",
            Equals(0.0, 0.005),
            paper="0",
        ),
        Claim(
            "untied-learns",
            "For p + q > 1 the untied transformer learns the kernel.",
            SOURCE,
            "final loss of the untied model minus the entropy rate, in nats",
            Equals(0.0, 0.005),
            paper="0",
        ),
        Claim(
            "slow-tied",
            "For p + q < 1 the tied transformer learns the kernel.",
            SOURCE,
            "final loss of the tied model minus the entropy rate, in nats",
            Below(0.01),
            paper="0",
        ),
        Claim(
            "slow-untied",
            "For p + q < 1 the untied transformer learns the kernel.",
            SOURCE,
            "final loss of the untied model minus the entropy rate, in nats",
            Below(0.01),
            paper="0",
        ),
        Claim(
            "failures-only-there",
            "Outside of tied weights and p + q > 1 nothing fails.",
            SOURCE,
            "share of the grid's other runs that learn (end nearer to the entropy rate than to H(π))",
            Above(0.9),
            over="share",
        ),
        Claim(
            "failures-there",
            "With tied weights and p + q > 1 runs fail all over the grid.",
            SOURCE,
            "share of these runs that end nearer to H(π) than to the entropy rate",
            Above(0.7),
            over="share",
        ),
        Claim(
            "fragile",
            "The trap is a matter of set-up and budget: a scalar embedding with an output bias and a constant learning "
            "rate leaves it.",
            "this laboratory; the source says that models sometimes fail",
            "share of tied runs with p + q > 1 that end nearer to the entropy rate than to H(π)",
            Above(0.5),
            over="share",
        ),
    ],
)
def weight_tying(settings: Settings, lab: Lab) -> Outcome:
    """A one-layer transformer with tied embeddings cannot get away from the marginal of a switching Markov chain.

    The chain has P(1|0) = p and P(0|1) = q. Its marginal is π = (q, p)/(p + q); predicting it costs H(π), predicting
    the kernel costs the entropy rate π₀h(p) + π₁h(q). A one-layer transformer can represent the kernel with and without
    weight tying. With tying and p + q > 1 the marginal is a local minimum close to every small initialisation, and
    training ends there; without tying it is a saddle, and training passes it. For p + q < 1 both learn.

    **Set-up.** Transformer of one layer, one head, width 8, feed-forward 32 (GELU), no layer norm, no biases, tables
    drawn with deviation 0.02; AdamW 2·10⁻³, betas (0.9, 0.95), weight decay 10⁻³, cosine with 2 % warm-up, 400 steps of
    64 sequences of length 64 (full: 16 of length 512). Chains (0.5, 0.8) and (0.2, 0.3), four seeds (full: 16); a grid
    over p and q with 200 steps at length 32. The loss is the entropy rate plus the mean divergence from the kernel on
    held-out sequences.

    **What was learnt.** "Fails" is a statement about this set-up and this budget. With layer norm most tied runs leave
    the marginal within 400 steps, with layer norm and two layers all do; a scalar embedding x·e with an output bias and
    a constant learning rate leaves it always. Depth alone, without layer norm, does not help.

    **In the figures.** Losses over training between the two dotted lines, and the predicted probabilities: the tied
    model (p + q > 1) predicts the same after 0 and after 1. In the grid, 1 (bright) is the marginal, 0 (dark) the
    kernel: failures fill the triangle p + q > 1 of the tied map.
    """
    seeds = tuple(range(settings.seeds))
    base = BinaryRun(
        0.5, 0.5, True, seeds, lab.device, steps=settings.steps, batch=settings.batch, length=settings.length
    )
    main = [replace(base, p=p, q=q, tied=tied) for p, q in (settings.fast, settings.slow) for tied in (True, False)]
    probes = [
        replace(
            base, p=settings.fast[0], q=settings.fast[1], variant=variant, layers=layers, steps=int(factor * base.steps)
        )
        for variant, layers, factor in PROBES[1:]
    ]
    small = replace(base, seeds=seeds[: settings.grid_seeds], steps=settings.grid_steps, length=settings.grid_length)
    cells = [
        replace(small, p=p, q=q, tied=tied) for tied in (True, False) for p in settings.grid for q in settings.grid
    ]
    found = lab.map(train_on_chain, [*main, *probes, *cells], label="training")
    runs, tried, grid = found[:4], [found[0], *found[4 : 3 + len(PROBES)]], found[3 + len(PROBES) :]
    inside = [run.tied and run.p + run.q > 1 for run in cells]
    learnt = [_learnt(run, result) for run, result in zip(cells, grid)]
    escapes = [_learnt(main[0], result) for result in tried]
    return Outcome(
        measurements={
            "tied-trapped": (runs[0]["loss"][:, -1] - _levels(main[0])["marginal"]).tolist(),
            "untied-learns": (runs[1]["loss"][:, -1] - _levels(main[1])["kernel"]).tolist(),
            "slow-tied": (runs[2]["loss"][:, -1] - _levels(main[2])["kernel"]).tolist(),
            "slow-untied": (runs[3]["loss"][:, -1] - _levels(main[3])["kernel"]).tolist(),
            "failures-only-there": _joined(learnt, [not place for place in inside]),
            "failures-there": [1 - value for value in _joined(learnt, inside)],
            "fragile": escapes[-1],
        },
        figures={
            "training": training_figure(main, runs),
            "grid": grid_figure(settings, cells, grid, escapes),
        },
        tables={
            "fragility": [
                {
                    "variant": variant,
                    "layers": layers,
                    "steps": int(factor * base.steps),
                    "escaped": float(np.mean(share)),
                }
                for (variant, layers, factor), share in zip(PROBES, escapes)
            ]
        },
    )


def _levels(run: BinaryRun) -> dict[str, float]:
    world = MarkovChain.binary(run.p, run.q)
    return {"marginal": world.marginal_entropy(), "kernel": world.entropy_rate()}


def _excess(run: BinaryRun, result: dict[str, Any]) -> np.ndarray:
    """(loss − entropy rate)/(H(π) − entropy rate) at the end: 0 the kernel, 1 the marginal; nan if they are equal."""
    levels = _levels(run)
    gap = levels["marginal"] - levels["kernel"]
    final = result["loss"][:, -1]
    return (final - levels["kernel"]) / gap if gap > 1e-9 else np.full(len(final), np.nan)


def _learnt(run: BinaryRun, result: dict[str, Any]) -> list[float]:
    """Yes or no for each seed; nothing for independent tokens, where there is nothing to learn."""
    excess = _excess(run, result)
    return [] if np.isnan(excess).any() else (excess < 0.5).astype(float).tolist()


def _joined(answers: list[list[float]], chosen: list[bool]) -> list[float]:
    return [value for values, taken in zip(answers, chosen) if taken for value in values]


def training_figure(main: list[BinaryRun], runs: list[dict[str, Any]]) -> Figure:
    """Loss and predicted probabilities over training, a row per chain."""
    title = "Tied weights keep one layer at the marginal when p + q > 1"
    figure, axes = figures.new(2, 2, width=4.9, height=3.0, title=title)
    with figures.style():
        for row in range(2):
            left, right = axes[2 * row], axes[2 * row + 1]
            for run, result in zip(main[2 * row : 2 * row + 2], runs[2 * row : 2 * row + 2]):
                colour, name = (figures.COLOURS[1], "tied") if run.tied else (figures.COLOURS[0], "untied")
                dash = "-" if run.tied else "--"
                figures.band(left, result["steps"], result["loss"], label=name, color=colour, linestyle=dash)
                for token, marker in (("zero", "o"), ("one", "s")):
                    figures.band(
                        right, result["steps"], result[f"after {token}"], color=colour, linestyle=dash, marker=marker,
                        markersize=3, label=f"{name}, after {token}",
                    )  # fmt: skip
            run, levels = main[2 * row], _levels(main[2 * row])
            figures.levels(left, {"marginal H(π)": levels["marginal"], "kernel": levels["kernel"]})
            figures.levels(right, {"P(1|0)": run.p, "P(1|1)": 1 - run.q, "π₁": run.p / (run.p + run.q)})
            relation = ">" if run.p + run.q > 1 else "<"
            left.set(title=f"p = {run.p:g}, q = {run.q:g}: p + q {relation} 1", xlabel="step", ylabel="loss (nats)")
            right.set(title="predicted probability of a 1", xlabel="step", ylim=(0, 1))
            left.legend(loc="center right")
            right.legend(fontsize=7.5, ncols=2, loc="upper right")
    return figure


def grid_figure(
    settings: Settings, cells: list[BinaryRun], results: list[dict[str, Any]], escapes: list[list[float]]
) -> Figure:
    """Final excess over the grid, tied and untied, and the escape share of each set-up."""
    figure, axes = figures.new(
        3, width=4.2, height=3.5, title="Failures: tied weights, p + q > 1, and a certain set-up"
    )
    size = len(settings.grid)
    with figures.style():
        for axis, tied in zip(axes, (True, False)):
            chosen = [_excess(run, result).mean() for run, result in zip(cells, results) if run.tied == tied]
            table = np.array(chosen).reshape(size, size)
            name = "tied" if tied else "untied"
            figures.heatmap(
                axis, table, title=f"{name}: 1 marginal, 0 kernel", x="q", y="p", low=0, high=1, numbers=True
            )
            axis.set_xticks(range(size), [f"{value:g}" for value in settings.grid])
            axis.set_yticks(range(size), [f"{value:g}" for value in settings.grid])
            axis.invert_yaxis()
        names = [f"{variant}, {layers} layer{'s' if layers > 1 else ''}" for variant, layers, _ in PROBES]
        shares = [float(np.mean(share)) for share in escapes]
        axes[2].barh(names, shares, color=figures.COLOURS[0])
        for place, share in enumerate(shares):
            axes[2].annotate(
                f"{share:.0%}", (share, place), (4, 0), textcoords="offset points", va="center", fontsize=8
            )
        axes[2].invert_yaxis()
        axes[2].set(xlim=(0, 1.15), xlabel="share of seeds", title="tied runs that leave the marginal")
    return figure
