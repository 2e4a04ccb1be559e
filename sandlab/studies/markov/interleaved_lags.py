"""Interleaved chains: a transformer finds out in context at which lag a sequence repeats its law."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from sandlab import figures
from sandlab.learning.population import Population
from sandlab.learning.training import train
from sandlab.lenses.distances import divergence
from sandlab.lenses.predictions import evaluating, log_predictions
from sandlab.models.transformer import Transformer
from sandlab.random import rng
from sandlab.studies.claims import Above, Below, Claim
from sandlab.studies.study import Lab, Outcome, study
from sandlab.worlds.base import Batch, cross_entropy
from sandlab.worlds.markov.interleaved import InterleavedChains

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SOURCE = (
    "D'Angelo, Croce & Flammarion 2025, Selective induction heads: how transformers select causal structures in context"
)


@dataclass(frozen=True)
class Settings:
    """One kernel on S states, lags drawn anew in every sequence; three-layer transformers with one head per layer."""

    seeds: int = 3
    states: int = 3
    lags: tuple[int, ...] = (1, 2, 3)
    length: int = 32
    concentration: float = 0.3
    layers: int = 3
    width: int = 32
    steps: int = 1500
    batch: int = 32
    lr: float = 5e-3


@dataclass(frozen=True)
class LagJob:
    settings: Settings
    seeds: tuple[int, ...]
    device: str


def world_of(settings: Settings) -> InterleavedChains:
    return InterleavedChains.random(
        settings.states, seed=1, concentration=settings.concentration, lags=settings.lags, length=settings.length
    )


def train_lags(job: LagJob) -> dict[str, Any]:
    """Train every seed; identification of the lag by position, for the models and for the Bayes predictor."""
    settings = job.settings
    world = world_of(settings)
    held_out = world.sample(1024, rng=rng(0, "held out", device=job.device))
    population = Population(
        lambda seed: Transformer(
            vocab=settings.states, length=settings.length, layers=settings.layers, heads=1, width=settings.width,
            mlp="gelu", positions="learned",
        ),
        seeds=job.seeds,
    ).to(job.device)  # fmt: skip
    histories = train(
        population, world, steps=settings.steps, batch_size=settings.batch, lr=settings.lr, schedule="cosine",
        warmup=settings.steps // 20, rng=rng(job.seeds[0], "data", device=job.device), evaluate=held_out,
        every=max(1, settings.steps // 30), data="separate",
    )  # fmt: skip
    with evaluating(population), torch.no_grad():
        predicted = log_predictions(population, held_out).double()
    named = {"oracle": world.oracle, **world.baselines()}
    return {
        "steps": histories[0].eval_steps,
        "loss": np.stack([history.metrics["loss"] for history in histories]),
        "levels": {
            name: float(cross_entropy(named[name](held_out), held_out)) for name in ("unigram", "any lag", "oracle")
        },
        "models": lag_found(world, held_out, predicted).cpu().numpy(),
        "bayes": lag_found(world, held_out, world.oracle(held_out)).cpu().numpy(),
    }


def lag_found(world: InterleavedChains, batch: Batch, predicted: Tensor) -> Tensor:
    """Share of examples, by position, whose prediction is nearest to that of the true lag.

    Only examples on which the lags predict different things count. The distance is KL(lag's law ‖ prediction).
    """
    each = world.lag_predictions(batch.inputs).log()
    place = torch.tensor(world.lags, device=batch.inputs.device)
    true = (place == batch.truth["lag"].unsqueeze(-1)).long().argmax(-1)
    apart = divergence(each, predicted.unsqueeze(-2).expand(*predicted.shape[:-1], *each.shape[-2:]))
    # Lags that predict the same as the true one are as right as it is.
    own = each.gather(-2, true.view(-1, 1, 1, 1).expand(-1, each.shape[1], 1, each.shape[-1]))
    same = (each - own).abs().amax(-1) < 1e-9
    right = torch.where(same, apart, torch.inf).amin(-1) <= torch.where(same, torch.inf, apart).amin(-1)
    counted = ~same.all(-1)
    return torch.where(counted, right, False).double().sum(-2) / counted.sum(-2).clamp(min=1)


@study(
    "markov/interleaved-lags",
    title="Which lag? Transformers find the causal structure of a sequence in context",
    source=SOURCE,
    quick=Settings(),
    full=Settings(seeds=16, states=5, length=64, width=64, steps=10000, batch=128, lr=2e-3),
    claims=[
        Claim(
            "lag-found",
            "At the end of a sequence the model predicts with the right lag.",
            SOURCE,
            "share of sequences whose last prediction is nearest to the true lag's",
            Above(0.8),
        ),
        Claim(
            "near-bayes",
            "It finds the lag nearly as often as the Bayes predictor.",
            SOURCE,
            "share at the last position, model minus Bayes",
            Above(-0.1),
        ),
        Claim(
            "improves",
            "The longer the sequence, the surer: the share rises with the position.",
            SOURCE,
            "share at the last position minus share after the largest lag's first use",
            Above(0.05),
        ),
        Claim(
            "beats-mixture",
            "The model does better than mixing the lags without finding out which one it is.",
            SOURCE,
            "(loss − optimum)/(loss of the equal mixture − optimum)",
            Below(0.5),
        ),
    ],
)
def interleaved_lags(settings: Settings, lab: Lab) -> Outcome:
    """Every sequence follows the same kernel, x_t ~ P(·|x_{t−κ}), with a lag κ of its own that is to be found.

    The Bayes predictor weighs the lags by how well each explains what was seen, posterior ∝ Π_t P(x_t|x_{t−κ}), and
    predicts with the winner. Quick: 3 states, lags 1 to 3, 32 tokens, three layers with one head each; full: 5 states
    and 64 tokens. A prediction counts as "lag found" when, of the lags' laws, that of the true lag is nearest to it.

    Left: losses against those of the unigram, of mixing all lags alike, and of the Bayes predictor. Right: how often
    the right lag is found, by position, for the models and for the Bayes predictor.
    """
    (result,) = lab.map(train_lags, [LagJob(settings, tuple(range(settings.seeds)), lab.device)], label="training")
    levels = result["levels"]
    early = max(settings.lags)
    return Outcome(
        measurements={
            "lag-found": result["models"][:, -1].tolist(),
            "near-bayes": (result["models"][:, -1] - result["bayes"][-1]).tolist(),
            "improves": (result["models"][:, -1] - result["models"][:, early]).tolist(),
            "beats-mixture": (
                (result["loss"][:, -1] - levels["oracle"]) / (levels["any lag"] - levels["oracle"])
            ).tolist(),
        },
        figures={"lags": lags_figure(result)},
    )


def lags_figure(result: dict[str, Any]) -> Figure:
    """Loss with the known predictors' lines, and lag identification by position."""
    figure, axes = figures.new(
        2, width=5.0, height=3.5, title="The lag is found in context, the more surely the longer"
    )
    with figures.style():
        figures.band(axes[0], result["steps"], result["loss"], label="three layers")
        names = {"unigram": "unigram", "any lag": "lags mixed equally", "oracle": "Bayes"}
        figures.levels(axes[0], {names[name]: value for name, value in result["levels"].items()})
        axes[0].set(xlabel="step", ylabel="loss (nats)", title="held-out loss")
        places = np.arange(1, result["models"].shape[1] + 1)
        figures.band(axes[1], places, result["models"], label="transformer")
        axes[1].plot(places, result["bayes"], "--", color=figures.COLOURS[1], label="Bayes predictor")
        axes[1].set(xlabel="tokens seen", ylabel="share", ylim=(0, 1.02), title="prediction nearest to the true lag's")
        axes[1].legend(loc="lower right")
    return figure
