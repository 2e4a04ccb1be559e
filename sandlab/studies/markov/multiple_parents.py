"""Several parents per position: each head of the first layer takes one of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from sandlab import figures
from sandlab.learning.population import Population
from sandlab.learning.training import train
from sandlab.lenses.attention_patterns import attention_maps
from sandlab.lenses.head_matching import match_heads
from sandlab.models.base import Model
from sandlab.models.markov.disentangled import DisentangledTransformer
from sandlab.models.ngrams.simplified import SimplifiedTransformer
from sandlab.random import rng
from sandlab.studies.claims import Above, Below, Claim
from sandlab.studies.study import Lab, Outcome, study
from sandlab.worlds.markov.causal_graphs import InContextDag, lag_parents, skip_parents

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SOURCE = "Nichani, Damian & Lee 2024, How transformers learn causal structure with gradient descent, §6"
GRAPHS = ("skip", "two lags", "three lags")


@dataclass(frozen=True)
class Training:
    """One training set-up: S states, T tokens, kernels with Dirichlet(α) rows.

    model   "simplified": the first layer attends by position alone; "disentangled": by tokens and positions
    spare   first-layer heads beyond one per parent
    """

    model: str = "simplified"
    states: int = 3
    length: int = 48
    concentration: float = 0.3
    steps: int = 3000
    batch: int = 64
    lr: float = 0.03
    weight_decay: float = 0.0
    schedule: str = "constant"
    init_std: float = 0.02
    spare: int = 1


SOURCE_SIZE = Training("disentangled", 5, 32, 0.1, 2**14, 512, 0.01, 1e-4, "cosine", spare=0)


@dataclass(frozen=True)
class Settings:
    """Seeds and training on the three graphs, and of the source's model and size on the second one (0 seeds: none)."""

    seeds: int = 4
    training: Training = Training()
    source_seeds: int = 0
    source: Training = SOURCE_SIZE


@dataclass(frozen=True)
class ParentsJob:
    graph: str
    training: Training
    seeds: tuple[int, ...]
    device: str


def parents_of(graph: str, length: int) -> tuple[tuple[int, ...], ...]:
    """Parents of positions 0 … length (the last entry is the predicted token's)."""
    if graph == "skip":
        return skip_parents(length)
    return lag_parents(length, (1, 2) if graph == "two lags" else (1, 2, 3))


def build(settings: Training, heads: int) -> Model:
    """The model of a set-up, with small random weights where zero would leave the heads equal."""
    if settings.model == "simplified":
        return SimplifiedTransformer(vocab=settings.states, length=settings.length, heads=heads)
    return DisentangledTransformer(
        vocab=settings.states, length=settings.length, heads=(heads, 1), init_std=settings.init_std
    )


def train_heads(job: ParentsJob) -> dict[str, Any]:
    """Train every seed; match the first layer's heads to the parents at the end and on the way."""
    settings = job.training
    parents = parents_of(job.graph, settings.length)
    world = InContextDag(settings.states, parents, settings.concentration)
    held_out = world.sample(2048, rng=rng(0, "held out", device=job.device))
    population = Population(lambda seed: build(settings, world.families + settings.spare), seeds=job.seeds).to(
        job.device
    )

    def read(model: Any) -> tuple[torch.Tensor, list[Any]]:
        # The last position looks at the parents of the token to come; all others at their own.
        pattern = attention_maps(model, held_out.inputs[:256])["layers.0.attention.pattern"][..., :-1, :-1]
        return pattern, [match_heads(one, parents) for one in pattern]

    scores: list[list[float]] = []

    def look(_step: int, model: Any, _metrics: Any) -> None:
        scores.append([match.score for match in read(model)[1]])

    histories = train(
        population, world, steps=settings.steps, batch_size=settings.batch, lr=settings.lr, schedule=settings.schedule,
        weight_decay=settings.weight_decay, rng=rng(job.seeds[0], "data", device=job.device), evaluate=held_out,
        every=max(1, settings.steps // 25), callbacks=[look], data="separate",
    )  # fmt: skip
    pattern, matches = read(population)
    best = int(np.argmax([match.score for match in matches]))
    return {
        "steps": histories[0].eval_steps,
        "loss": np.stack([history.metrics["loss"] for history in histories]),
        "optimum": world.optimal_loss(held_out),
        "scores": np.array(scores).T,
        "pattern": pattern[best].cpu().numpy(),
        "heads": list(matches[best].heads),
        "parents": [list(family) for family in parents[:-1]],
    }


@study(
    "markov/multiple-parents",
    title="With several parents, each head takes one",
    source=SOURCE,
    quick=Settings(),
    full=Settings(seeds=16, training=Training(steps=5000), source_seeds=4),
    claims=[
        Claim(
            "skip",
            "With parents {⌊(i−1)/2⌋, i − 1} each parent has a first-layer head of its own.",
            SOURCE,
            "mean attention of the best one-to-one matching of heads to parents",
            Above(0.8),
        ),
        Claim(
            "two-lags",
            "With parents {i − 1, i − 2} (order 2) each lag has a head of its own.",
            SOURCE,
            "mean attention of the best one-to-one matching of heads to parents",
            Above(0.8),
        ),
        Claim(
            "three-lags",
            "With three parents each lag has a head of its own.",
            SOURCE,
            "mean attention of the best one-to-one matching of heads to parents",
            Above(0.8),
        ),
        Claim(
            "near-optimal",
            "The two-parent models come close to the Bayes predictor.",
            SOURCE,
            "(loss − optimum)/(log S − optimum) at the end",
            Below(0.25),
        ),
        Claim(
            "disentangled",
            "Heads separate in the disentangled transformer too, where attention may depend on tokens.",
            SOURCE,
            "mean attention of the best matching, parents {i − 1, i − 2}, source's model",
            Above(0.8),
            presets=("full",),
        ),
    ],
)
def multiple_parents(settings: Settings, lab: Lab) -> Outcome:
    """Each token depends on several earlier ones; with one first-layer head per parent, each head takes one of them.

    Three graphs: parents {⌊(i−1)/2⌋, i−1}, {i−1, i−2} and {i−1, i−2, i−3}; a kernel with Dirichlet rows is drawn for
    every sequence, and the law of the token to come is asked for. Heads are matched to parents one to one so that the
    mean attention on the matched parent is largest (Hungarian method); the last position, whose heads look at the
    parents of the token to come, is left out.

    **Set-up.** Simplified transformer (the first layer attends by position alone, values and layer 2 trained), 3
    states, 48 tokens, Dirichlet(0.3), one head more than parents, Adam 0.03, 3000 steps of 64 sequences. Full: 5000
    steps, sixteen seeds; and the source's disentangled transformer on the second graph (5 states, 32 tokens,
    Dirichlet(0.1), as many heads as parents, Adam 0.01 with cosine decay and weight decay 10⁻⁴, 2¹⁴ steps of 512; the
    source takes 2¹⁶ of 1024).

    **In the figure.** Attention of each head (rings: the parent it is matched to) and the score over training. It goes
    in stages: one head finds a parent, then the next.

    **What was learnt.** With the disentangled transformer at small size (12 to 32 tokens, some thousand steps of 128)
    heads do not separate. Adam moves every entry of its score matrices at the same speed, also those that compare
    tokens, and settles on patterns that mix parents at a loss between one parent's and two parents'; plain gradient
    descent heads for the parents, but the readout becomes unstable before attention has grown. When attention may
    only depend on positions, the same Adam separates the heads within a thousand steps. With exactly one head per
    parent, one seed in four stays for thousands of steps where all heads share the parents found so far, a
    near-stationary point as in `ngrams/stages`; a spare head leaves it. Nearly deterministic chains of fixed lags
    (α = 0.1) run into cycles, where a parent cannot be told from the same place of an earlier round. On the first graph
    heads change parents at single positions, those that are themselves parents of the token to come.
    """
    groups = [(seed,) for seed in range(settings.seeds)] if lab.device == "cpu" else [tuple(range(settings.seeds))]
    jobs = [ParentsJob(graph, settings.training, group, lab.device) for graph in GRAPHS for group in groups]
    if settings.source_seeds:
        jobs.append(ParentsJob("two lags", settings.source, tuple(range(settings.source_seeds)), lab.device))
    found = lab.map(train_heads, jobs, label="training")
    size = len(groups)
    results = [_joined(found[place * size : (place + 1) * size]) for place in range(len(GRAPHS))]
    chance = np.log(settings.training.states)
    left = [(result["loss"][:, -1] - result["optimum"]) / (chance - result["optimum"]) for result in results[:2]]
    measurements = {
        "skip": results[0]["scores"][:, -1],
        "two-lags": results[1]["scores"][:, -1],
        "three-lags": results[2]["scores"][:, -1],
        "near-optimal": np.concatenate(left),
    }
    names = list(GRAPHS)
    if settings.source_seeds:
        measurements["disentangled"] = found[-1]["scores"][:, -1]
        results.append(found[-1])
        names.append("disentangled")
    return Outcome(measurements, {"heads": heads_figure(names, results)})


def _joined(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Curves of all seeds, and the maps of the seed with the best matching."""
    best = max(parts, key=lambda part: part["scores"][:, -1].max())
    return best | {name: np.concatenate([part[name] for part in parts]) for name in ("loss", "scores")}


def heads_figure(names: list[str], results: list[dict[str, Any]]) -> Figure:
    """Attention of each head with its parent ringed, and the matching score over training."""
    columns = 1 + max(len(result["heads"]) for result in results)
    title = "Each first-layer head attends to one parent (rings: the parent it is matched to)"
    figure, axes = figures.new(columns, len(results), width=3.3, height=2.9, title=title)
    with figures.style():
        for row, (name, result) in enumerate(zip(names, results)):
            here = axes[columns * row : columns * (row + 1)]
            for slot, head in enumerate(result["heads"]):
                figures.heatmap(
                    here[slot], result["pattern"][head], title=f"{name}: head {head}", x="key", y="query", low=0, high=1
                )
                rings = [(family[slot], place) for place, family in enumerate(result["parents"]) if family]
                rings = [(key, place) for key, place in rings if place < len(result["pattern"][head])]
                here[slot].plot(
                    *zip(*rings), "o", color="none", markeredgecolor=figures.COLOURS[1], markersize=5, markeredgewidth=1
                )
            for axis in here[len(result["heads"]) : -1]:
                axis.set_axis_off()
            figures.band(here[-1], result["steps"], result["scores"])
            here[-1].axhline(0.8, color="#555555", linestyle=":", linewidth=1)
            here[-1].set(xlabel="step", ylim=(0, 1.02), title="on the matched parent")
    return figure
