"""In-context bigrams: two layers find the induction head, one layer stays at counting single tokens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from sandlab import figures
from sandlab.learning.population import Population
from sandlab.learning.training import train
from sandlab.lenses.attention_patterns import attention_maps, attention_match, look_back, same_token_successor
from sandlab.lenses.distances import distances_to_estimators
from sandlab.models.transformer import Transformer
from sandlab.random import rng
from sandlab.studies.claims import Above, Below, Claim
from sandlab.studies.study import Lab, Outcome, study
from sandlab.worlds.base import cross_entropy
from sandlab.worlds.markov.chain import InContextMarkov

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SOURCE = "Edelman et al. 2024; Nichani, Damian & Lee 2024; Olsson et al. 2022 (induction heads)"
ESTIMATORS = ("uniform", "unigram", "bigram")


@dataclass(frozen=True)
class Settings:
    """A fresh chain on `states` states in every sequence; attention-only transformers of one and of two layers."""

    seeds: int = 4
    states: int = 3
    length: int = 48
    width: int = 32
    steps: int = 1200
    batch: int = 32
    lr: float = 5e-3
    held_out: int = 256
    looks: int = 50


@dataclass(frozen=True)
class DepthJob:
    layers: int
    settings: Settings
    seeds: tuple[int, ...]
    device: str


def train_depth(job: DepthJob) -> dict[str, Any]:
    """Train a population of one depth; loss and distances to the estimators over training, attention at the end."""
    settings = job.settings
    world = InContextMarkov(settings.states, 1, settings.length)
    held_out = world.sample(settings.held_out, rng=rng(0, "held out", device=job.device))
    population = Population(
        lambda seed: Transformer(
            vocab=settings.states, length=settings.length, layers=job.layers, heads=1, width=settings.width,
            mlp="gelu", positions="learned", norm="pre",
        ),
        seeds=job.seeds,
    ).to(job.device)  # fmt: skip
    distances: list[dict[str, np.ndarray]] = []

    def compare(_step: int, model: Any, _metrics: Any) -> None:
        found = distances_to_estimators(model, world, held_out)
        distances.append({name: found[name].cpu().numpy() for name in ESTIMATORS})

    histories = train(
        population, world, steps=settings.steps, batch_size=settings.batch, lr=settings.lr, warmup=settings.steps // 20,
        schedule="cosine", rng=rng(job.seeds[0], "data", device=job.device), evaluate=held_out,
        every=max(1, settings.steps // settings.looks), callbacks=[compare], data="separate",
    )  # fmt: skip
    known = {"oracle": world.oracle, **world.baselines()}
    return {
        "steps": histories[0].eval_steps,
        "loss": np.stack([history.metrics["loss"] for history in histories]),
        "levels": [float(cross_entropy(known[name](held_out), held_out)) for name in ESTIMATORS],
        **{f"distance {name}": np.stack([row[name] for row in distances], -1) for name in ESTIMATORS},
        **_attention(population, held_out.inputs),
    }


def _attention(population: Population, tokens: torch.Tensor) -> dict[str, Any]:
    """Mean maps of the first seed, and how well each layer of each seed matches its part of the induction head."""
    each = attention_maps(population, tokens[:64], average=False)
    first, last = each["layers.0.attention.pattern"], list(each.values())[-1]
    previous = look_back(tokens.shape[-1]).to(tokens.device)
    successor = same_token_successor(tokens[:64]).unsqueeze(1)
    return {
        "maps": torch.stack([pattern[0, :, 0].mean(0) for pattern in each.values()]).cpu().numpy(),
        "example": torch.stack([pattern[0, 0, 0] for pattern in each.values()]).cpu().numpy(),
        "tokens": tokens[0].cpu().numpy(),
        "previous": attention_match(first.mean(1)[:, 0], previous, skip=1).cpu().numpy(),
        "successor": attention_match(last, successor, skip=8).mean((1, 2)).cpu().numpy(),
    }


@study(
    "markov/induction-heads",
    title="Two layers learn to count pairs in context; one layer cannot",
    source=SOURCE,
    tour=True,
    quick=Settings(),
    full=Settings(seeds=16, length=100, width=64, steps=8000, batch=128, lr=3e-3, held_out=1024, looks=100),
    claims=[
        Claim(
            "two-layers-optimal",
            "Two layers reach the Bayes-optimal in-context bigram predictor.",
            SOURCE,
            "share of the gap between the unigram and the optimal loss that is left at the end",
            Below(0.1),
        ),
        Claim(
            "one-layer-unigram",
            "One layer stays at the in-context unigram.",
            SOURCE,
            "share of the gap between the unigram and the optimal loss that is left at the end",
            Above(0.5),
        ),
        Claim(
            "plateau",
            "On the way, two layers pass a plateau at the unigram's loss.",
            SOURCE,
            "smallest distance of the loss from the unigram's before half of the gap is closed, relative to the gap",
            Below(0.1),
        ),
        Claim(
            "nearest-unigram",
            "Before the drop the two-layer model's predictions are nearest to the unigram's.",
            SOURCE,
            "share of seeds whose predictions come nearer to the unigram's than to uniform and bigram before the drop",
            Above(0.5),
            over="share",
        ),
        Claim(
            "previous-token",
            "The first layer of the trained model attends mostly to the previous token.",
            SOURCE,
            "mean attention on the previous token in the first layer",
            Above(0.5),
        ),
        Claim(
            "successor",
            "The second layer attends to the tokens that followed earlier occurrences of the present token.",
            SOURCE,
            "one minus the mean total variation between its attention and the uniform law on these tokens",
            Above(0.7),
        ),
    ],
)
def induction_heads(settings: Settings, lab: Lab) -> Outcome:
    """In-context learning appears at depth two: the birth of an induction head.

    Every sequence has a Markov chain of its own, its rows drawn from a flat Dirichlet prior, so that the next token can
    only be predicted from what the sequence itself has shown. The Bayes predictor counts pairs,
    (#(s → s') + 1)/(#s + S). One attention layer can count single tokens (the unigram) but cannot ask what followed the
    present token earlier; two layers can: the first copies the previous token into each position, the second looks for
    positions whose copy equals the present token and reads what stands there.

    **Set-up.** S = 3 states, length 48, fresh chains in every batch of 32; transformers of width 32 with one head per
    layer, learned positions, feed-forward (GELU), layer norm; AdamW 5·10⁻³ with cosine, 1200 steps, 4 seeds. Full:
    length 100, width 64, 8000 steps of 128 sequences, 16 seeds.

    **In the figures.** Losses: both depths fall to the unigram's line at once; only two layers go on, after a pause, to
    the bigram's, which here is the optimum. Right: divergence of the two-layer model from each estimator: first uniform
    is nearest, then unigram, then bigram. Attention: the first layer's diagonal is one step below the main one; the
    second layer's last query attends to exactly those positions that follow an earlier occurrence of its token.

    **What was learnt.** A feed-forward block and learned positions matter for the last per cent: without them the model
    cannot take logarithms of frequencies nor shrink early counts, and stays a quarter of the gap above the optimum.
    One layer creeps a quarter of the gap below the unigram's line (it can weigh tokens by the present one), and no
    further. With the flat prior the pause at the unigram is short.
    """
    seeds = tuple(range(settings.seeds))
    one, two = lab.map(
        train_depth, [DepthJob(depth, settings, seeds, lab.device) for depth in (1, 2)], label="training"
    )
    _, unigram, bigram = two["levels"]
    gap = unigram - bigram
    left = {depth: (run["loss"][:, -1] - bigram) / gap for depth, run in ((1, one), (2, two))}
    drop = [_drop(curve, unigram, bigram) for curve in two["loss"]]
    before = [np.abs(curve[: end + 1] - unigram).min() / gap for curve, end in zip(two["loss"], drop)]
    return Outcome(
        measurements={
            "two-layers-optimal": left[2].tolist(),
            "one-layer-unigram": left[1].tolist(),
            "plateau": before,
            "nearest-unigram": [_nearest_is_unigram(two, seed, end) for seed, end in enumerate(drop)],
            "previous-token": two["previous"].tolist(),
            "successor": two["successor"].tolist(),
        },
        figures={"losses": losses(one, two), "attention": attention_figure(two)},
    )


def _drop(curve: np.ndarray, unigram: float, bigram: float) -> int:
    """Place of the first evaluation at which half of the gap is closed (the last one, if none is)."""
    closed = np.flatnonzero(curve < (unigram + bigram) / 2)
    return int(closed[0]) if len(closed) else len(curve) - 1


def _nearest_is_unigram(run: dict[str, Any], seed: int, end: int) -> float:
    """Whether at some moment before the drop the unigram is the nearest estimator."""
    found = np.stack([run[f"distance {name}"][seed, :end] for name in ESTIMATORS])
    return float((found.argmin(0) == ESTIMATORS.index("unigram")).any()) if end else 0.0


def losses(one: dict[str, Any], two: dict[str, Any]) -> Figure:
    """Loss of both depths with the estimators' lines; distances of the two-layer model to each estimator."""
    title = "Two layers pass the unigram and reach the bigram; one layer does not"
    figure, axes = figures.new(2, width=5.4, height=3.6, title=title)
    with figures.style():
        figures.band(axes[0], one["steps"], one["loss"], label="one layer", color=figures.COLOURS[1])
        figures.band(axes[0], two["steps"], two["loss"], label="two layers", color=figures.COLOURS[0])
        figures.levels(axes[0], dict(zip(("uniform", "unigram", "bigram = optimum"), two["levels"])))
        axes[0].set(xlabel="step", ylabel="loss (nats)", title="held-out loss")
        axes[0].set_ylim(bottom=two["levels"][2] - 0.02)
        axes[0].legend(loc="upper center", bbox_to_anchor=(0.6, 0.92))
        for name in ESTIMATORS:
            figures.band(axes[1], two["steps"], two[f"distance {name}"], label=name)
        axes[1].set(xlabel="step", ylabel="KL(estimator ‖ model), nats", yscale="log", title="what two layers compute")
        axes[1].legend(loc="lower left")
    return figure


def attention_figure(run: dict[str, Any]) -> Figure:
    """Mean attention of both layers, and of the last query of one example with its tokens."""
    figure, axes = figures.new(
        3, width=4.3, height=3.7, title="The induction head: look back one step, then find the same token"
    )
    with figures.style():
        for axis, pattern, name, high in zip(
            axes, run["maps"], ("first layer (mean)", "second layer (mean)"), (1, 0.2)
        ):
            figures.heatmap(axis, pattern, title=name, x="key position", y="query position", low=0, high=high)
        last, tokens = run["example"][1, -1], run["tokens"]
        before = np.concatenate([[-1], tokens[:-1]])
        hit = before == tokens[-1]
        places = np.arange(len(tokens))
        axes[2].bar(places[hit], last[hit], color=figures.COLOURS[1], label=f"after an earlier {tokens[-1]}")
        axes[2].bar(places[~hit], last[~hit], color=figures.COLOURS[6], label="elsewhere")
        axes[2].set(title="second layer, last query of one example", xlabel="key position", ylabel="attention")
        axes[2].legend(fontsize=8)
    return figure
