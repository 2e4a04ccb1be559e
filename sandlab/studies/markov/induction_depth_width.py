"""Induction heads: two layers do it at any length, one layer must grow with the length."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from sandlab import figures
from sandlab.learning.population import Population
from sandlab.learning.training import train
from sandlab.lenses.predictions import evaluating, log_predictions
from sandlab.models.transformer import Transformer
from sandlab.random import rng
from sandlab.studies.claims import Above, Below, Claim
from sandlab.studies.study import Lab, Outcome, study
from sandlab.worlds.base import Batch
from sandlab.worlds.recall import KHopInduction

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SOURCE = "Sanford, Hsu & Telgarsky 2024, One-layer transformers fail to solve the induction heads task"


@dataclass(frozen=True)
class Settings:
    """Lengths T with T/2 different tokens; widths of the one-layer models; the two-layer model has the last width."""

    seeds: int = 3
    lengths: tuple[int, ...] = (16, 32, 48)
    widths: tuple[int, ...] = (16, 64)
    steps: int = 400
    batch: int = 64
    lr: float = 3e-3


@dataclass(frozen=True)
class DepthWidthJob:
    length: int
    layers: int
    width: int
    steps: int
    batch: int
    lr: float
    seeds: tuple[int, ...]
    device: str


@dataclass(frozen=True)
class Answered:
    """The induction task with the positions that have no answer left out of the loss."""

    world: KHopInduction

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        batch = self.world.sample(n, rng=rng)
        return replace(batch, mask=batch.truth["found"] >= 0)


def train_induction(job: DepthWidthJob) -> dict[str, Any]:
    """Train every seed; accuracy on the second half of fresh sequences over training."""
    world = KHopInduction(job.length // 2, 1, job.length)
    task = Answered(world)
    held_out = task.sample(512, rng=rng(0, "held out", device=job.device))
    late = held_out.mask & (torch.arange(job.length, device=job.device) >= job.length // 2)
    population = Population(
        lambda seed: Transformer(
            vocab=world.vocab, outputs=world.outputs, length=job.length, layers=job.layers, heads=1, width=job.width,
            mlp="gelu", positions="learned", init_std=None,
        ),
        seeds=job.seeds,
    ).to(job.device)  # fmt: skip

    def accuracy(model: Any) -> dict[str, torch.Tensor]:
        with evaluating(model), torch.no_grad():
            chosen = log_predictions(model, held_out).argmax(-1)
        return {"accuracy": (chosen == held_out.targets)[:, late].double().mean(-1)}

    histories = train(
        population, task, steps=job.steps, batch_size=job.batch, lr=job.lr, schedule="cosine", warmup=job.steps // 20,
        rng=rng(job.seeds[0], "data", device=job.device), evaluate=accuracy, every=max(1, job.steps // 20),
        data="separate",
    )  # fmt: skip
    return {
        "steps": histories[0].eval_steps,
        "accuracy": np.stack([history.metrics["accuracy"] for history in histories]),
        "parameters": population.template.parameter_count(),
    }


@study(
    "markov/induction-depth-width",
    title="One layer must grow with the length, two layers need not",
    source=SOURCE,
    quick=Settings(),
    full=Settings(seeds=8, lengths=(16, 32, 64, 128), widths=(16, 64, 256), steps=2000, lr=2e-3),
    claims=[
        Claim(
            "two-layers-flat",
            "Two layers of fixed width solve the induction task at every length.",
            SOURCE,
            "accuracy of two layers, one value per length and seed",
            Above(0.9),
        ),
        Claim(
            "one-layer-falls",
            "At fixed width one layer gets worse with the length.",
            SOURCE,
            "accuracy of one layer (widest) at the longest length minus that at the shortest, seed by seed",
            Below(-0.1),
        ),
        Claim(
            "width-helps",
            "More width helps one layer.",
            SOURCE,
            "accuracy of one layer at the shortest length, widest minus narrowest, seed by seed",
            Above(0.0),
        ),
        Claim(
            "one-layer-fails",
            "At the longest length one layer is far from solving the task, at any width tried.",
            SOURCE,
            "accuracy of one layer (widest) at the longest length",
            Below(0.6),
        ),
    ],
)
def induction_depth_width(settings: Settings, lab: Lab) -> Outcome:
    """What followed the last occurrence of the present token? Depth answers, width only helps.

    The induction task asks at each position for the token after the last earlier occurrence of the present one. Two
    layers solve it with one head and a width that does not depend on the length T. One layer with H heads of width m
    and p bits of precision needs H·m·p = Ω(T): the sequence a₁w₁a₂w₂…a_n asks for one bit out of n (INDEX, a problem of
    communication complexity), and what a single layer can pass on is a sum.

    **Set-up.** Uniform sequences of length T over T/2 tokens (so that occurrences lie about T/2 apart); transformers
    with one head, learned positions, feed-forward and layer norm; AdamW 3·10⁻³ with cosine, 400 steps of 64 sequences;
    accuracy on the second half of fresh sequences, where an answer exists. The statement is asymptotic; experiments at
    these lengths illustrate it.

    **In the figure.** Left: final accuracy by length. Right: accuracy over training at the longest length: two layers
    go through a plateau, then jump.
    """
    seeds = tuple(range(settings.seeds))
    wide = settings.widths[-1]
    cases = [(length, 1, width) for length in settings.lengths for width in settings.widths]
    cases += [(length, 2, wide) for length in settings.lengths]
    jobs = [
        DepthWidthJob(length, layers, width, settings.steps, settings.batch, settings.lr, seeds, lab.device)
        for length, layers, width in cases
    ]
    results = dict(zip(cases, lab.map(train_induction, jobs, label="training")))
    final = {case: result["accuracy"][:, -1] for case, result in results.items()}
    short, long, narrow = settings.lengths[0], settings.lengths[-1], settings.widths[0]
    return Outcome(
        measurements={
            "two-layers-flat": np.concatenate([final[length, 2, wide] for length in settings.lengths]).tolist(),
            "one-layer-falls": (final[long, 1, wide] - final[short, 1, wide]).tolist(),
            "width-helps": (final[short, 1, wide] - final[short, 1, narrow]).tolist(),
            "one-layer-fails": final[long, 1, wide].tolist(),
        },
        figures={"accuracy": accuracy_figure(settings, results)},
        tables={
            "accuracy": [
                {
                    "length": length,
                    "layers": layers,
                    "width": width,
                    "parameters": result["parameters"],
                    "accuracy": float(result["accuracy"][:, -1].mean()),
                }
                for (length, layers, width), result in results.items()
            ]
        },
    )


def accuracy_figure(settings: Settings, results: dict[tuple[int, int, int], dict[str, Any]]) -> Figure:
    """Final accuracy by length for each depth and width, and accuracy over training at the longest length."""
    figure, axes = figures.new(2, width=4.8, height=3.4, title="Two layers are flat in the length, one layer falls")
    kinds = [(2, settings.widths[-1]), *((1, width) for width in reversed(settings.widths))]
    longest = settings.lengths[-1]
    with figures.style():
        for layers, width in kinds:
            name = f"{layers} layer{'s' if layers > 1 else ''}, width {width}"
            table = np.stack([results[length, layers, width]["accuracy"][:, -1] for length in settings.lengths], -1)
            figures.band(axes[0], settings.lengths, table, label=name, marker="o")
            result = results[longest, layers, width]
            figures.band(axes[1], result["steps"], result["accuracy"], label=name)
        axes[0].set(xlabel="length T (alphabet T/2)", ylabel="accuracy", ylim=(0, 1.03), title="after training")
        axes[0].set_xticks(settings.lengths, [str(length) for length in settings.lengths])
        axes[1].set(xlabel="step", ylim=(0, 1.03), title=f"over training, T = {longest}")
        axes[0].legend(loc="center right", fontsize=8)
    return figure
