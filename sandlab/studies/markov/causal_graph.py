"""The first layer of a trained transformer is the adjacency matrix of the data's causal graph."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sandlab import figures
from sandlab.studies.base import Lab, Outcome, study
from sandlab.studies.claims import Above, Below, Claim
from sandlab.studies.markov.graph_runs import GraphRun, family, train_on_tree

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SOURCE = "Nichani, Damian & Lee 2024, How transformers learn causal structure with gradient descent"
FAMILIES = ("chain", "pairs", "random")


@dataclass(frozen=True)
class Settings:
    """S states, T positions, kernels with Dirichlet(α) rows; the same training for all three graph families."""

    seeds: int = 4
    states: int = 3
    length: int = 10
    concentration: float = 0.1
    steps: int = 1500
    batch: int = 256
    lr: float = 0.02
    optimizer: str = "adam"


def _claims() -> list[Claim]:
    words = {
        "chain": "For a chain the first layer attends to the previous position.",
        "pairs": "For pairs the first layer attends from the second of each pair to the first.",
        "random": "For a random tree the first layer attends to the parent.",
    }
    attention = [
        Claim(name, words[name], SOURCE, "mean attention on the true parent, over positions that have one", Above(0.9))
        for name in FAMILIES
    ]
    recovered = Claim(
        "recovered",
        "The largest attention of every position points at its parent: the graph can be read off the weights.",
        SOURCE,
        "share of seeds, over the three families, whose whole graph is recovered",
        Above(0.7),
        over="share",
    )
    optimal = Claim(
        "near-optimal",
        "The trained model's loss is close to the Bayes predictor's, on all three families.",
        SOURCE,
        "(loss − optimum)/(log S − optimum) at the end",
        Below(0.15),
    )
    return [*attention, recovered, optimal]


@study(
    "markov/causal-graph",
    title="Trained attention is the adjacency matrix of the causal graph",
    source=SOURCE,
    quick=Settings(),
    full=Settings(seeds=8, states=10, length=20, steps=2**15, batch=1024, lr=1.0, optimizer="sgd"),
    claims=_claims(),
)
def causal_graph(settings: Settings, lab: Lab) -> Outcome:
    """PLACEHOLDER"""
    seeds = tuple(range(settings.seeds))
    runs = [
        GraphRun(
            family(name, settings.length), seeds, lab.device, settings.states, settings.concentration, settings.steps,
            settings.batch, settings.lr, settings.optimizer,
        )
        for name in FAMILIES
    ]  # fmt: skip
    results = lab.map(train_on_tree, runs, label="training")
    chance = np.log(settings.states)
    return Outcome(
        measurements={
            **{name: result["final match"].tolist() for name, result in zip(FAMILIES, results)},
            "recovered": np.concatenate([result["final recovered"] for result in results]).tolist(),
            "near-optimal": np.concatenate(
                [(result["loss"][:, -1] - result["optimum"]) / (chance - result["optimum"]) for result in results]
            ).tolist(),
        },
        figures={"graphs": graphs(settings, runs, results), "training": curves(results)},
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


def curves(results: list[dict[str, Any]]) -> Figure:
    """Loss and attention on the parents over training."""
    figure, axes = figures.new(2, width=4.8, height=3.3, title="The graph appears while the loss falls")
    with figures.style():
        for name, result in zip(FAMILIES, results):
            figures.band(axes[0], result["steps"], result["loss"] - result["optimum"], label=name)
            figures.band(axes[1], result["steps"], result["match"], label=name)
        axes[0].set(
            xlabel="step", ylabel="loss − optimum (nats)", yscale="log", title="distance from the Bayes predictor"
        )
        axes[1].set(xlabel="step", ylabel="mean attention on the parent", ylim=(0, 1.02), title="first layer")
        axes[1].legend(loc="lower right")
    return figure
