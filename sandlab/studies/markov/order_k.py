"""Chains of order k in context: one head per layer is enough, and depth does not have to grow with k."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from sandlab import figures
from sandlab.learning.population import Population
from sandlab.learning.training import train
from sandlab.models.transformer import Transformer
from sandlab.random import rng
from sandlab.studies.claims import Below, Claim
from sandlab.studies.study import Lab, Outcome, study
from sandlab.worlds.base import cross_entropy
from sandlab.worlds.markov.chain import InContextMarkov
from sandlab.worlds.ngrams.estimators import ngram_name

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SOURCE = "Rajaraman et al. 2024, Transformers on Markov data: constant depth suffices; Ekbote et al. 2025"


@dataclass(frozen=True)
class Settings:
    """Binary chains of the given orders with uniform random kernels; transformers of 2 and 3 layers, one head each."""

    seeds: int = 3
    orders: tuple[int, ...] = (1, 2)
    depths: tuple[int, ...] = (2, 3)
    length: int = 64
    width: int = 32
    steps: int = 1200
    batch: int = 32
    lr: float = 5e-3
    together: int = 1


@dataclass(frozen=True)
class OrderJob:
    order: int
    layers: int
    settings: Settings
    seeds: tuple[int, ...]
    device: str


def train_order(job: OrderJob) -> dict[str, Any]:
    """Train some seeds; distance of the held-out loss from the optimum over training."""
    settings = job.settings
    steps = settings.steps if job.order > 1 else settings.steps // 2
    world = InContextMarkov(2, job.order, settings.length)
    held_out = world.sample(512, rng=rng(0, "held out", device=job.device))
    population = Population(
        lambda seed: Transformer(
            vocab=2, length=settings.length, layers=job.layers, heads=1, width=settings.width, mlp="gelu",
            positions="learned", init_std=None,
        ),
        seeds=job.seeds,
    ).to(job.device)  # fmt: skip
    histories = train(
        population, world, steps=steps, batch_size=settings.batch, lr=settings.lr, schedule="cosine", warmup=steps // 20,
        rng=rng(job.seeds[0], "data", device=job.device), evaluate=held_out, every=max(1, steps // 30),
        data="separate",
    )  # fmt: skip
    optimum = world.optimal_loss(held_out)
    below = world.baselines()[ngram_name(job.order - 1)]
    return {
        "steps": histories[0].eval_steps,
        "gap": np.stack([history.metrics["loss"] for history in histories]) - optimum,
        "lower": float(cross_entropy(below(held_out), held_out)) - optimum,
    }


@study(
    "markov/order-k",
    title="Order-k chains with one head per layer and constant depth",
    source=SOURCE,
    quick=Settings(),
    full=Settings(seeds=8, orders=(1, 2, 4), length=512, steps=8000, batch=16, lr=2e-3, together=8),
    claims=[
        Claim(
            "three-layers",
            "Three layers with one head each learn in-context chains of order 2.",
            SOURCE,
            "gap to the optimal loss at the end, relative to that of the best order-1 predictor",
            Below(0.8),
        ),
        Claim(
            "two-layers",
            "So do two layers.",
            SOURCE,
            "gap to the optimal loss at the end, relative to that of the best order-1 predictor",
            Below(0.9),
        ),
        Claim(
            "order-one",
            "Chains of order 1 need no more than two layers.",
            SOURCE,
            "gap to the optimal loss at the end, two layers, in nats",
            Below(0.02),
        ),
        Claim(
            "three-layers-near-optimal",
            "At the source's size three layers come within 0.02 nats of the optimum for every order up to 4.",
            SOURCE,
            "gap to the optimal loss at the end, one value per order and seed, in nats",
            Below(0.02),
            presets=("full",),
        ),
    ],
)
def order_k(settings: Settings, lab: Lab) -> Outcome:
    """The number of heads and layers does not have to grow with the order of the chain.

    Every sequence has a binary chain of order k of its own, its 2^k rows uniform. The obvious construction takes k
    heads, one per previous token. With relative positions and layer norm three layers of one head are enough for any k:
    weights ∝ B^{−i} write the last k tokens into one vector, digit by digit, and normalised vectors are compared by
    their angle (`sl.circuits.korder_three_layers`); two layers do when the feed-forward block extracts a digit
    (`sl.circuits.korder_two_layers`). That such models are also found by training is an observation.

    **Set-up.** Orders 1 and 2, length 64, transformers of 2 and 3 layers with one head, width 32, learned positions,
    layer norm, GELU; AdamW 5·10⁻³ with cosine, 1200 steps (600 for order 1) of 32 sequences, three seeds. Full: orders
    1, 2, 4, length 512, AdamW 2·10⁻³, 8000 steps of 16.

    **What was learnt.** The scale of the initial weights decides how long the plateau lasts: with 1/√width order 2 is
    under way after 300 steps, with the usual 0.02 only after 1000.

    **In the figure.** Gap to the Bayes-optimal loss over training. The dotted line is the gap of the best predictor of
    one order less: a model below it uses all k tokens.
    """
    seeds = range(settings.seeds)
    groups = [tuple(seeds[start : start + settings.together]) for start in range(0, settings.seeds, settings.together)]
    cases = [(order, depth) for order in settings.orders for depth in settings.depths]
    jobs = [OrderJob(order, depth, settings, group, lab.device) for order, depth in cases for group in groups]
    found = lab.map(train_order, jobs, label="training")
    results = {}
    for place, case in enumerate(cases):
        parts = found[place * len(groups) : (place + 1) * len(groups)]
        results[case] = {**parts[0], "gap": np.concatenate([part["gap"] for part in parts])}
    deep, shallow = max(settings.depths), min(settings.depths)

    def relative(order: int, depth: int) -> list[float]:
        return (results[order, depth]["gap"][:, -1] / results[order, depth]["lower"]).tolist()

    return Outcome(
        measurements={
            "three-layers": relative(2, deep),
            "two-layers": relative(2, shallow),
            "order-one": results[1, shallow]["gap"][:, -1].tolist(),
            "three-layers-near-optimal": [
                gap for order in settings.orders for gap in results[order, deep]["gap"][:, -1].tolist()
            ],
        },
        figures={"gaps": gaps_figure(settings, results)},
    )


def gaps_figure(settings: Settings, results: dict[tuple[int, int], dict[str, Any]]) -> Figure:
    """Gap to the optimum over training, a panel per order, a line per depth."""
    title = "Gap to the Bayes predictor with one head per layer"
    figure, axes = figures.new(len(settings.orders), width=4.6, height=3.4, title=title)
    with figures.style():
        for axis, order in zip(axes, settings.orders):
            for depth in settings.depths:
                result = results[order, depth]
                figures.band(axis, result["steps"], np.maximum(result["gap"], 1e-4), label=f"{depth} layers")
            figures.levels(axis, {f"best predictor of order {order - 1}": results[order, settings.depths[0]]["lower"]})
            axis.set(title=f"order {order}", xlabel="step", yscale="log")
        axes[0].set_ylabel("loss − optimum (nats)")
        axes[0].legend(loc="lower left")
    return figure
