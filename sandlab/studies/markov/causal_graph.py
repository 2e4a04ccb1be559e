"""The first layer of a trained transformer is the adjacency matrix of the data's causal graph."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from sandlab import figures
from sandlab.studies.claims import Above, Below, Claim, Equals
from sandlab.studies.markov.graph_runs import (
    FirstLayerRun,
    GraphRun,
    SharpenRun,
    family,
    sharpen,
    train_first_layer,
    train_on_tree,
)
from sandlab.studies.study import Lab, Outcome, study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SOURCE = "Nichani, Damian & Lee 2024, How transformers learn causal structure with gradient descent"
FAMILIES = ("chain", "pairs", "random")


@dataclass(frozen=True)
class FirstLayer:
    """Layer-wise training, and joint training whose attention is then sharpened: the source's size in both presets."""

    seeds: int = 4
    states: int = 10
    length: int = 20
    steps: int = 400
    batch: int = 64
    sharpened: int = 3
    joint_steps: int = 2000


@dataclass(frozen=True)
class Settings:
    """S states, T positions, kernels with Dirichlet(α) rows; the same training for all three graph families."""

    seeds: int = 4
    states: int = 3
    length: int = 10
    concentration: float = 0.1
    steps: int = 4000
    batch: int = 64
    lr: float = 4.0
    optimizer: str = "sgd"
    adam_lr: float = 0.02
    first_layer: FirstLayer = FirstLayer()


def _claims() -> list[Claim]:
    words = {
        "chain": "For a chain the first layer attends to the previous position.",
        "pairs": "For pairs the first layer attends from the second of each pair to the first.",
        "random": "For a random tree the first layer attends to the parent.",
    }
    attention = [
        Claim(name, words[name], SOURCE, "mean attention on the true parent, over positions that have one", Above(0.7))
        for name in FAMILIES
    ]
    sharp = Claim(
        "sharp",
        "At the source's size the attention is nearly all on the parent.",
        SOURCE,
        "mean attention on the true parent, one value per family and seed",
        Above(0.9),
        presets=("full",),
    )
    layerwise = Claim(
        "layer-by-layer",
        "Trained layer by layer, as in the theorem, the first layer puts nearly all attention on the parent.",
        f"{SOURCE}, Theorem 1 (first stage of its algorithm)",
        "mean attention on the true parent, one value per family and seed, 10 states and 20 positions",
        Above(0.9),
    )
    layerwise_recovered = Claim(
        "layer-by-layer-recovered",
        "Then, too, the graph can be read off the weights.",
        f"{SOURCE}, Theorem 1",
        "share of seeds, over the three families, whose whole graph is recovered",
        Above(0.7),
        over="share",
    )
    flat = Claim(
        "joint-flat",
        "On a chain, joint training gains nothing from one-hot attention: the loss is flat in it.",
        "this laboratory",
        "loss with attention sharpened and the second layer rescaled minus loss after joint training, in nats",
        Equals(0.0, 0.03),
        presets=("quick",),
    )
    recovered = Claim(
        "recovered",
        "The largest attention of every position points at its parent: the graph can be read off the weights.",
        SOURCE,
        "share of seeds, over the three families, whose whole graph is recovered",
        Above(0.7),
        over="share",
    )
    adam = Claim(
        "adam-elsewhere",
        "Adam, which does not follow the gradient's size, can find another solution: less attention on the parents.",
        "this laboratory",
        "mean attention on the true parent, random tree, trained with Adam instead of gradient descent",
        Below(0.5),
        presets=("quick",),
    )
    optimal = Claim(
        "near-optimal",
        "The trained model's loss is close to the Bayes predictor's, on all three families.",
        SOURCE,
        "(loss − optimum)/(log S − optimum) at the end",
        Below(0.15),
    )
    return [*attention, sharp, layerwise, layerwise_recovered, flat, recovered, optimal, adam]


@study(
    "markov/causal-graph",
    title="Trained attention is the adjacency matrix of the causal graph",
    source=SOURCE,
    quick=Settings(),
    full=Settings(states=10, length=20, steps=2**14, batch=512),
    claims=_claims(),
)
def causal_graph(settings: Settings, lab: Lab) -> Outcome:
    """A two-layer transformer trained by gradient descent writes the causal graph of its data into its first layer.

    Sequences come with a graph: position i has a parent p(i) or none, and x_i ~ P(·|x_{p(i)}) with a kernel P that is
    drawn anew in every sequence (Dirichlet rows). The last token s_T is drawn independently and asks for P(·|s_T). The
    solution: layer 1 copies each position's parent, layer 2 compares the last token with these copies, the readout
    gives the frequencies of the children that match (the circuit `causal-graph` is this solution by hand). Three
    families: the chain p(i) = i − 1, pairs (the setting of in-context learning with examples), and a random tree.

    **Set-up.** Disentangled transformer (one-hot tokens and positions, concatenation instead of addition, merged score
    matrices A), from A = 0 and readout 0; loss against the law P(·|s_T) at the last position. Quick: S = 3, T = 10,
    Dirichlet(0.1), gradient descent with learning rate 4 and cosine decay, 4000 steps of 64 sequences, four seeds.
    Full: the source's S = 10, T = 20, learning rate 4, 2¹⁴ steps of 512 sequences, four seeds. The source takes 2¹⁷
    steps of 1024 at rate 1; rate × steps, the time of the gradient flow, is half of that, and attention has settled by
    then.

    Besides, the first stage of the theorem's algorithm at the source's size in both presets: the second layer compares
    tokens with a fixed β₀ = 1, the readout counts, and A¹ alone is trained from zero (gradient descent, rate 50, 400
    steps of 64).

    **In the figures.** Left to right: the graph; the first layer's attention, whose rows of roots are free; the block
    of the second layer's scores that compares the last token with the parent's token, diagonal; the readout of what is
    fetched, diagonal.

    **What was learnt.** Trained alone, the first layer's attention goes to one. Trained jointly it stops short, most of
    all on the chain: 0.79 at the source's size, reached at the jump and flat from then on, the rest spread evenly over
    the other positions (2 to 3 % each, self and grandparent included). The joint minimum is not one-hot there, and
    nearly flat: sharpening such a model to 0.995 and rescaling its second layer by the best factor, 0.8, raises the
    loss by 0.005 nats. The even rest tells how frequent a token is, which a second layer with larger scores can use,
    and unsmoothed counts want such help. The noise of small batches sharpens attention (0.89 with batches of 64). The
    recovered graph is the truth in every run.

    Gradient descent follows the lemma of `markov/chi2-gradient` and finds the graph. Adam with the same loss does not
    always: on the random tree it settles on attention that avoids the parent, at a somewhat higher loss. Stationary
    roots tell something about the kernel by themselves, which the counting estimator does not use: on pairs the model
    ends below its loss (negative values of near-optimal).
    """
    seeds = tuple(range(settings.seeds))
    runs = [
        GraphRun(
            family(name, settings.length), seeds, lab.device, settings.states, settings.concentration, settings.steps,
            settings.batch, settings.lr, settings.optimizer,
        )
        for name in FAMILIES
    ]  # fmt: skip
    other = replace(runs[-1], optimizer="adam", lr=settings.adam_lr, steps=min(1000, settings.steps))
    *results, adam = lab.map(train_on_tree, [*runs, other], label="training")
    stage = settings.first_layer
    firsts = lab.map(
        train_first_layer,
        [
            FirstLayerRun(
                family(name, stage.length), tuple(range(stage.seeds)), lab.device, stage.states, settings.concentration,
                stage.steps, stage.batch,
            )
            for name in FAMILIES
        ],
        label="first layer alone",
    )  # fmt: skip
    pulls = [
        SharpenRun(family("chain", stage.length), seed, lab.device, stage.states) for seed in range(stage.sharpened)
    ]
    gains = lab.map(sharpen, pulls, label="sharpened by hand")
    chance = np.log(settings.states)
    return Outcome(
        measurements={
            **{name: result["final match"].tolist() for name, result in zip(FAMILIES, results)},
            "sharp": np.concatenate([result["final match"] for result in results]).tolist(),
            "layer-by-layer": np.concatenate([first["final match"] for first in firsts]).tolist(),
            "layer-by-layer-recovered": np.concatenate([first["final recovered"] for first in firsts]).tolist(),
            "joint-flat": [gain["sharp loss"] - gain["loss"] for gain in gains],
            "adam-elsewhere": adam["final match"].tolist(),
            "recovered": np.concatenate([result["final recovered"] for result in results]).tolist(),
            "near-optimal": np.concatenate(
                [(result["loss"][:, -1] - result["optimum"]) / (chance - result["optimum"]) for result in results]
            ).tolist(),
        },
        tables={"sharpened": [{"seed": seed, **gain} for seed, gain in enumerate(gains)]},
        figures={"graphs": graphs(settings, runs, results), "training": curves(results, firsts)},
    )


def graphs(settings: Settings, runs: list[GraphRun], results: list[dict[str, Any]]) -> Figure:
    """For each family: the graph, the first layer's attention, the compared blocks of the second, the readout."""
    size, width = settings.states, settings.states + settings.length
    title = "Graph, first-layer attention, second-layer comparison and readout after training"
    figure, axes = figures.new(4, len(runs), width=3.1, height=2.7, title=title)
    with figures.style():
        for row, (name, run, result) in enumerate(zip(FAMILIES, runs, results)):
            graph = np.zeros((settings.length - 1, settings.length - 1))
            for child, parent in enumerate(run.parents[:-1]):
                if parent >= 0:
                    graph[child, parent] = 1
            here = axes[4 * row : 4 * row + 4]
            figures.heatmap(here[0], graph, title=f"{name}: graph", x="parent", y="position", low=0, high=1, bar=False)
            figures.heatmap(here[1], result["final pattern"], title="attention, layer 1", x="key", low=0, high=1)
            compare = result["second"][:size, width : width + size]
            figures.heatmap(here[2], compare, title="A², token × parent's token", x="parent's token", y="last token")
            readout = result["readout"][:, 2 * width : 2 * width + size]
            figures.heatmap(here[3], readout, title="readout of fetched token", x="fetched token", y="output")
    return figure


def curves(results: list[dict[str, Any]], firsts: list[dict[str, Any]]) -> Figure:
    """Loss and attention on the parents over training, jointly and of the first layer alone."""
    figure, axes = figures.new(3, width=3.9, height=3.3, title="The graph appears while the loss falls")
    with figures.style():
        for name, result, first in zip(FAMILIES, results, firsts):
            figures.band(axes[0], result["steps"], result["loss"] - result["optimum"], label=name)
            figures.band(axes[1], result["steps"], result["match"], label=name)
            figures.band(axes[2], first["steps"], first["match"], label=name)
        axes[0].set(xlabel="step", ylabel="loss − optimum (nats)", title="distance from the counting estimator")
        axes[0].set_yscale("symlog", linthresh=0.03)  # stationary roots tell more than is counted: it can be negative
        axes[0].axhline(0.0, color="#555555", linestyle=":", linewidth=1)
        axes[1].set(
            xlabel="step", ylabel="mean attention on the parent", ylim=(0, 1.02), title="first layer, trained jointly"
        )
        axes[2].set(xlabel="step", ylim=(0, 1.02), title="first layer alone (10 states, T = 20)")
        axes[1].legend(loc="lower right")
    return figure
