"""A head that copies has nothing to do on most tokens, and parks its attention on the first one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from sandlab import figures
from sandlab.learning.population import Population
from sandlab.learning.training import train
from sandlab.lenses.predictions import evaluating
from sandlab.models.hooks import record
from sandlab.models.transformer import Transformer
from sandlab.random import rng
from sandlab.studies.claims import Above, Below, Claim
from sandlab.studies.study import Lab, Outcome, study
from sandlab.worlds.base import Batch
from sandlab.worlds.markov.bigram_text import BigramBackcopy

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SOURCE = "Guo et al. 2024, Active-dormant attention heads: mechanistically demystifying extreme-token phenomena"


@dataclass(frozen=True)
class Settings:
    """Bigram text with copying triggers; one-layer transformers with one head."""

    seeds: int = 4
    states: int = 20
    triggers: int = 3
    length: int = 32
    layers: int = 1
    width: int = 32
    steps: int = 1500
    batch: int = 64
    lr: float = 5e-3


OBSERVED = ("dormant", "active", "value", "others", "stream")


@dataclass(frozen=True)
class SinkJob:
    settings: Settings
    seeds: tuple[int, ...]
    device: str


def train_sink(job: SinkJob) -> dict[str, Any]:
    """Train every seed; attention to the start token and value norms over training."""
    settings = job.settings
    world = BigramBackcopy(settings.states, settings.triggers, settings.length)
    held_out = world.sample(256, rng=rng(0, "held out", device=job.device))
    population = Population(
        lambda seed: Transformer(
            vocab=world.vocab, length=settings.length, layers=settings.layers, heads=1, width=settings.width,
            mlp="relu", norm="pre", positions="learned",
        ),
        seeds=job.seeds,
    ).to(job.device)  # fmt: skip
    seen: list[dict[str, np.ndarray]] = []

    def look(_step: int, model: Any, _metrics: Any) -> None:
        seen.append(observe(model, held_out))

    histories = train(
        population, world, steps=settings.steps, batch_size=settings.batch, lr=settings.lr, schedule="cosine",
        warmup=settings.steps // 20, rng=rng(job.seeds[0], "data", device=job.device), evaluate=held_out,
        every=max(1, settings.steps // 25), callbacks=[look], data="separate",
    )  # fmt: skip
    bigram = float(_loss(world.baselines()["bigram"](held_out), held_out))
    return {
        "steps": histories[0].eval_steps,
        "loss": np.stack([history.metrics["loss"] for history in histories]),
        "optimum": world.optimal_loss(held_out),
        "bigram": bigram,
        **{name: np.stack([moment[name] for moment in seen], -1) for name in OBSERVED},
        "pattern": seen[-1]["pattern"],
        "tokens": held_out.inputs[0].cpu().numpy(),
    }


def observe(population: Any, batch: Batch) -> dict[str, np.ndarray]:
    """Mean attention to the start token on non-triggers and on triggers; norms of its value and stream and the others'.

    The first two positions are left out: there is hardly anything else to attend to.
    """
    with (
        evaluating(population),
        torch.no_grad(),
        record(population, "layers.*.attention.pattern", "layers.*.attention.value", "layers.*.resid_post") as cache,
    ):
        population(batch.inputs)
    last = max(name.split(".")[1] for name in cache)
    stream = cache[f"layers.{last}.resid_post"].norm(dim=-1)
    pattern, value = (cache[f"layers.{last}.attention.{part}"] for part in ("pattern", "value"))
    on_start = pattern[..., 0, 2:, 0]
    trigger = batch.truth["is_trigger"][:, 2:]
    norms = value.norm(dim=-1)
    return {
        "dormant": on_start[:, ~trigger].mean(-1).cpu().numpy(),
        "active": on_start[:, trigger].mean(-1).cpu().numpy(),
        "value": norms[..., 0].mean(-1).cpu().numpy(),
        "others": norms[..., 1:].mean((-1, -2)).cpu().numpy(),
        "stream": (stream[..., 0].mean(-1) / stream[..., 1:].mean((-1, -2))).cpu().numpy(),
        "pattern": pattern[0, 0, 0].cpu().numpy(),
    }


def _loss(log_probs: torch.Tensor, batch: Batch) -> torch.Tensor:
    return -log_probs.gather(-1, batch.targets.unsqueeze(-1)).mean()


@study(
    "markov/attention-sink",
    title="A copying head rests on the first token",
    source=SOURCE,
    quick=Settings(),
    full=Settings(seeds=16, states=64, length=128, width=64, steps=10000, batch=128, lr=2e-3),
    claims=[
        Claim(
            "sink",
            "On tokens where there is nothing to copy the head attends to the start token.",
            SOURCE,
            "mean attention to the start token on non-triggers",
            Above(0.5),
        ),
        Claim(
            "active",
            "On triggers it does so less.",
            SOURCE,
            "mean attention to the start token on triggers minus that on non-triggers",
            Below(-0.2),
        ),
        Claim(
            "value-drain",
            "The value of the start token becomes small, so that resting there does nothing.",
            SOURCE,
            "norm of the start token's value relative to the mean of the others",
            Below(0.5),
        ),
        Claim(
            "learns",
            "Meanwhile the model learns both the bigram law and the copying rule.",
            SOURCE,
            "(loss − optimum)/(bigram loss − optimum) at the end",
            Below(0.2),
        ),
    ],
)
def attention_sink(settings: Settings, lab: Lab) -> Outcome:
    """Bigram text in which a few trigger tokens are followed by a copy of the token before them.

    A head that performs the copying has nothing to do on all other tokens, but softmax must put its weight somewhere:
    it rests on the start token, whose value shrinks until resting there adds nothing. Quick: 20 states of which 3 are
    triggers, 32 tokens, one layer with one head of width 32, four seeds; full: 64 states, 128 tokens, 10 000 steps.

    Left: attention on one example, rings where a trigger must look (the token before it). Middle: mean attention to
    the start token on triggers and on all others over training. Right: norms of values.
    """
    (result,) = lab.map(train_sink, [SinkJob(settings, tuple(range(settings.seeds)), lab.device)], label="training")
    gap = result["bigram"] - result["optimum"]
    return Outcome(
        measurements={
            "sink": result["dormant"][:, -1].tolist(),
            "active": (result["active"] - result["dormant"])[:, -1].tolist(),
            "value-drain": (result["value"] / result["others"])[:, -1].tolist(),
            "learns": ((result["loss"][:, -1] - result["optimum"]) / gap).tolist(),
        },
        figures={"sink": sink_figure(settings, result)},
        tables={
            "norms": [
                {
                    "seed": seed,
                    "start token's value over the others'": float(
                        result["value"][seed, -1] / result["others"][seed, -1]
                    ),
                    "start token's stream over the others'": float(result["stream"][seed, -1]),
                }
                for seed in range(settings.seeds)
            ]
        },
    )


def sink_figure(settings: Settings, result: dict[str, Any]) -> Figure:
    """Attention map of one example, attention to the start over training, value norms over training."""
    figure, axes = figures.new(3, width=4.4, height=3.6, title="Nothing to copy: the head rests on the start token")
    with figures.style():
        figures.heatmap(
            axes[0], result["pattern"], title="one example (triggers marked)", x="key", y="query", low=0, high=1
        )
        rows = np.flatnonzero(result["tokens"] < settings.triggers)
        axes[0].plot(rows - 1, rows, "o", color="none", markeredgecolor=figures.COLOURS[1], markersize=6)
        figures.band(axes[1], result["steps"], result["dormant"], label="on other tokens")
        figures.band(axes[1], result["steps"], result["active"], label="on triggers")
        axes[1].set(xlabel="step", ylim=(0, 1.02), title="attention to the start token")
        axes[1].legend()
        figures.band(axes[2], result["steps"], result["value"], label="start token")
        figures.band(axes[2], result["steps"], result["others"], label="other tokens")
        axes[2].set(xlabel="step", title="norm of the value", ylim=(0, None))
        axes[2].legend()
    return figure
