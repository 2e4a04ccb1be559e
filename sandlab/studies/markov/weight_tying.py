"""Weight tying on a switching chain: one layer, trained in the usual way, ends at the marginal.

A one-layer transformer with tied embeddings cannot get away from the marginal of a switching Markov chain. The chain
has P(1|0) = p and P(0|1) = q. Its marginal is π = (q, p)/(p + q); predicting it costs H(π), predicting the kernel costs
the entropy rate π₀h(p) + π₁h(q). A one-layer transformer can represent the kernel with and without weight tying. With
tying and p + q > 1 the marginal is a local minimum close to every small initialisation, and training ends there;
without tying it is a saddle, and training passes it. For p + q < 1 both learn.

**Set-up.** Transformer of one layer, one head, width 8, feed-forward 32 (GELU), no layer norm, no biases, tables
drawn with deviation 0.02; AdamW 2·10⁻³, betas (0.9, 0.95), weight decay 10⁻³, cosine with 2 % warm-up, 400 steps of
64 sequences of length 64 (full: 16 of length 512). Chains (0.5, 0.8) and (0.2, 0.3), four seeds (full: 16); a grid
over p and q with 200 steps at length 32. The loss is the entropy rate plus the mean divergence from the kernel on
held-out sequences.

**What was learnt.** "Fails" is a statement about this set-up and this budget. With layer norm most tied runs leave
the marginal within 400 steps, with layer norm and two layers all do; a scalar embedding x·e with an output bias and
a constant learning rate leaves it always. Depth alone, without layer norm, does not help.

At full size (16 seeds, and five for each point of the grid, one H200, 2026-11-16) 104 of 105 tied runs with p + q > 1
end at the marginal, and none of the 205 others does.

**In the figures.** Losses over training between the two dotted lines, and the predicted probabilities: the tied
model (p + q > 1) predicts the same after 0 and after 1. In the grid, 1 (bright) is the marginal, 0 (dark) the
kernel: failures fill the triangle p + q > 1 of the tied map.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from matplotlib.figure import Figure
from torch import Tensor

from sandlab import figures
from sandlab.learning.experiment import Experiment, Runs, Snapshot, Training
from sandlab.lenses.markov.chains import chain_predictions
from sandlab.models.markov.one_layer import OneLayerMarkovConfig
from sandlab.models.transformer import TransformerConfig
from sandlab.studies.claims import Mean, Share
from sandlab.studies.markov._shared import ATTENTION_WITH_MARKOV, chain_model, chain_training
from sandlab.studies.nulls import untrained
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.markov.chain import MarkovChain

FAST, SLOW = (0.5, 0.8), (0.2, 0.3)
VARIANTS = (("plain", 1), ("plain", 2), ("layer-norm", 1), ("layer-norm", 2), ("scalar", 1))
"""Set-ups (variant, layers) in which the tied trap is tried; the first is that of the main runs.

plain        token and position tables, GELU, no layer norm, no biases
layer-norm   the same with layer norm before every block and at the end
scalar       token vector x·e, learned positions, ReLU, output bias, constant learning rate, twice as many steps
"""


def predictions(now: Snapshot) -> dict[str, Tensor]:
    assert isinstance(now.world, MarkovChain)
    return chain_predictions(now.model, now.world, now.batch)


@dataclass(frozen=True)
class Settings:
    """Training as in the authors' public code.

    main       p + q > 1 tied and untied, p + q < 1 tied and untied
    variants   the tied trap in the other VARIANTS
    grid       smaller runs over p and q, tied and untied
    """

    main: tuple[Experiment, ...]
    variants: tuple[Experiment, ...]
    grid: tuple[Experiment, ...]


def experiment(chain: tuple[float, float], tied: bool, length: int, training: Training, seeds: int) -> Experiment:
    world, model = MarkovChain.binary(*chain, length), chain_model(length, tied)
    return Experiment(world, model, training, seeds, probes=(predictions,))


def settings(
    length: int, batch_size: int, seeds: int, values: tuple[float, ...], grid_length: int, steps: int, grid_seeds: int
) -> Settings:
    """Main runs of 400 steps; a grid over `values` × `values` with its own length and numbers of steps and seeds."""
    both, usual, small = (True, False), chain_training(400, batch_size), chain_training(steps, batch_size)
    main = [experiment(chain, tied, length, usual, seeds) for chain in (FAST, SLOW) for tied in both]
    grid = [experiment((p, q), tied, grid_length, small, grid_seeds) for tied in both for p in values for q in values]
    models = [chain_model(length, layers=layers, norm=norm) for norm in ("none", "pre") for layers in (1, 2)]
    variants = [replace(main[0], model=model) for model in models[1:]]
    scalar, constant = OneLayerMarkovConfig(length, init_std=0.02), chain_training(800, batch_size, schedule="constant")
    return Settings(tuple(main), (*variants, replace(main[0], model=scalar, training=constant)), tuple(grid))


QUICK = settings(64, 64, seeds=4, values=(0.2, 0.4, 0.6, 0.8), grid_length=32, steps=200, grid_seeds=2)
study = Study(
    "markov/weight-tying",
    title="With tied weights, one layer fails on a chain that likes to switch",
    source=ATTENTION_WITH_MARKOV,
    tour=True,
    quick=QUICK,
    full=settings(512, 16, seeds=16, values=(0.2, 0.4, 0.5, 0.6, 0.8, 1.0), grid_length=256, steps=400, grid_seeds=5),
    null=untrained(QUICK),
)


@dataclass(frozen=True)
class Trained:
    """The runs of one set-up on one chain, whose losses are H(π) (`marginal`) and the entropy rate (`kernel`)."""

    p: float
    q: float
    tied: bool
    marginal: float
    kernel: float
    runs: Runs

    @property
    def switching(self) -> bool:
        return self.p + self.q > 1

    @property
    def final(self) -> np.ndarray:
        return self.runs.metrics["expected loss"][:, -1]

    @property
    def excess(self) -> np.ndarray:
        """(loss − entropy rate)/(H(π) − entropy rate) at the end: 0 kernel, 1 marginal, NaN if they are equal."""
        gap = self.marginal - self.kernel
        return (self.final - self.kernel) / (gap if gap > 1e-9 else np.nan)

    @property
    def learnt(self) -> list[bool]:
        """Whether each seed learnt the kernel; nothing for independent tokens, where there is nothing to learn."""
        return [bool(excess < 0.5) for excess in self.excess if not np.isnan(excess)]


@dataclass(frozen=True)
class Results:
    """The main runs; all VARIANTS, of which the first is `fast_tied`; the grid, tied first, then by p and q."""

    fast_tied: Trained
    fast_untied: Trained
    slow_tied: Trained
    slow_untied: Trained
    variants: list[Trained]
    grid: list[Trained]


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    experiments = [*settings.main, *settings.variants, *settings.grid]
    found = [_trained(*pair) for pair in zip(experiments, lab.train(experiments))]
    end = 4 + len(settings.variants)
    return Results(found[0], found[1], found[2], found[3], [found[0], *found[4:end]], found[end:])


def _trained(experiment: Experiment, runs: Runs) -> Trained:
    chain, model = experiment.world, experiment.model
    assert isinstance(chain, MarkovChain) and isinstance(model, (TransformerConfig, OneLayerMarkovConfig))
    (_, p), (q, _) = chain.kernel
    return Trained(p, q, model.tied, chain.marginal_entropy(), chain.entropy_rate(), runs)


@study.claim(Mean(equals=0.0, within=0.005), paper="0")
def tied_trapped(results: Results) -> np.ndarray:
    """For p + q > 1 the tied transformer ends at the marginal.

    Final loss of the tied model minus H(π), in nats.
    """
    return results.fast_tied.final - results.fast_tied.marginal


@study.claim(Mean(equals=0.0, within=0.005), paper="0")
def untied_learns(results: Results) -> np.ndarray:
    """For p + q > 1 the untied transformer learns the kernel.

    Final loss of the untied model minus the entropy rate, in nats.
    """
    return results.fast_untied.final - results.fast_untied.kernel


@study.claim(Mean(below=0.01), paper="0")
def slow_tied(results: Results) -> np.ndarray:
    """For p + q < 1 the tied transformer learns the kernel.

    Final loss of the tied model minus the entropy rate, in nats.
    """
    return results.slow_tied.final - results.slow_tied.kernel


@study.claim(Mean(below=0.01), paper="0")
def slow_untied(results: Results) -> np.ndarray:
    """For p + q < 1 the untied transformer learns the kernel.

    Final loss of the untied model minus the entropy rate, in nats.
    """
    return results.slow_untied.final - results.slow_untied.kernel


@study.claim(Share(above=0.9))
def failures_only_there(results: Results) -> list[bool]:
    """Outside of tied weights and p + q > 1 nothing fails.

    Share of the grid's other runs that learn (end nearer to the entropy rate than to H(π)).
    """
    return [learnt for cell in results.grid if not (cell.tied and cell.switching) for learnt in cell.learnt]


@study.claim(Share(above=0.7))
def failures_there(results: Results) -> list[bool]:
    """With tied weights and p + q > 1 runs fail all over the grid, where most others learn.

    Share of these runs that end nearer to H(π) than to the entropy rate; none when half of the others do too.
    """
    others = np.mean([learnt for cell in results.grid if not (cell.tied and cell.switching) for learnt in cell.learnt])
    there = [learnt for cell in results.grid if cell.tied and cell.switching for learnt in cell.learnt]
    return [not learnt and bool(others > 0.5) for learnt in there]


@study.claim(Share(above=0.5), source="this laboratory; the source says that models sometimes fail")
def fragile(results: Results) -> list[bool]:
    """The trap is a matter of set-up and budget: a scalar embedding with an output bias and a constant learning rate
    leaves it.

    Share of tied runs with p + q > 1 that end nearer to the entropy rate than to H(π).
    """
    return results.variants[-1].learnt


@study.table
def fragility(results: Results) -> Rows:
    return [
        {"variant": name, "layers": layers, "steps": each.runs.loss.shape[1], "escaped": float(np.mean(each.learnt))}
        for (name, layers), each in zip(VARIANTS, results.variants)
    ]


@study.figure
def training(results: Results) -> Figure:
    title = "Tied weights keep one layer at the marginal when p + q > 1"
    figure, axes = figures.new(2, 2, width=4.9, height=3.0, title=title)
    fast, slow = (results.fast_tied, results.fast_untied), (results.slow_tied, results.slow_untied)
    for left, right, chain in zip(axes[::2], axes[1::2], (fast, slow)):
        for each, name, colour, dash in zip(chain, ("tied", "untied"), figures.COLOURS[1::-1], ("-", "--")):
            draw = partial(figures.band, x=each.runs.eval_steps, color=colour, linestyle=dash)
            draw(left, curves=each.runs.metrics["expected loss"], label=name)
            for token, marker in (("zero", "o"), ("one", "s")):
                curves, label = each.runs.metrics[f"after {token}"], f"{name}, after {token}"
                draw(right, curves=curves, marker=marker, markersize=3, label=label)
        p, q, relation = each.p, each.q, ">" if each.switching else "<"
        figures.levels(left, {"marginal H(π)": each.marginal, "kernel": each.kernel})
        figures.levels(right, {"P(1|0)": p, "P(1|1)": 1 - q, "π₁": p / (p + q)})
        left.set(title=f"p = {p:g}, q = {q:g}: p + q {relation} 1", xlabel="step", ylabel="loss (nats)")
        right.set(title="predicted probability of a 1", xlabel="step", ylim=(0, 1))
        left.legend(loc="center right")
        right.legend(fontsize=7.5, ncols=2, loc="upper right")
    return figure


@study.figure
def grid(results: Results) -> Figure:
    title = "Failures: tied weights, p + q > 1, and a certain set-up"
    figure, axes = figures.new(3, width=4.2, height=3.5, title=title)
    values = sorted({cell.p for cell in results.grid})
    size, names = len(values), [f"{value:g}" for value in values]
    for axis, tied in zip(axes, (True, False)):
        table = np.array([cell.excess.mean() for cell in results.grid if cell.tied == tied]).reshape(size, size)
        title = f"{'tied' if tied else 'untied'}: 1 marginal, 0 kernel"
        figures.heatmap(axis, table, title=title, x="q", y="p", low=0, high=1, numbers=True)
        axis.set_xticks(range(size), names)
        axis.set_yticks(range(size), names)
        axis.invert_yaxis()
    labels = [f"{name}, {layers} layer{'s' if layers > 1 else ''}" for name, layers in VARIANTS]
    shares = [float(np.mean(each.learnt)) for each in results.variants]
    axes[2].barh(labels, shares, color=figures.COLOURS[0])
    for row, share in enumerate(shares):
        axes[2].annotate(f"{share:.0%}", (share, row), (4, 0), textcoords="offset points", va="center", fontsize=8)
    axes[2].invert_yaxis()
    axes[2].set(xlim=(0, 1.15), xlabel="share of seeds", title="tied runs that leave the marginal")
    return figure
