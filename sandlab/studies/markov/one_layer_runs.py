"""Training of small transformers on one binary chain: the job that several studies of this chapter share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from sandlab.learning.population import Population
from sandlab.learning.training import train
from sandlab.lenses.distances import divergence
from sandlab.lenses.predictions import evaluating, log_predictions
from sandlab.lenses.spectra import SpectraOverTraining
from sandlab.models.markov.one_layer import OneLayerMarkov
from sandlab.models.transformer import Transformer
from sandlab.random import rng
from sandlab.worlds.markov.chain import MarkovChain

__all__ = ["VARIANTS", "BinaryRun", "train_on_chain"]

VARIANTS = {
    "plain": "token and position tables, GELU, no layer norm, no biases",
    "layer-norm": "the same with layer norm before every block and at the end",
    "scalar": "token vector x·e, learned positions, ReLU, output bias, constant learning rate",
}


@dataclass(frozen=True)
class BinaryRun:
    """One population of transformers on the chain P(1|0) = p, P(0|1) = q; the rest as in the authors' public code."""

    p: float
    q: float
    tied: bool
    seeds: tuple[int, ...]
    device: str
    variant: str = "plain"
    layers: int = 1
    window: int | None = None
    width: int = 8
    steps: int = 400
    batch: int = 64
    length: int = 64
    lr: float = 2e-3
    weight_decay: float = 1e-3
    looks: int = 20
    spectra: tuple[str, ...] = ()


def train_on_chain(run: BinaryRun) -> dict[str, Any]:
    """Train every seed; loss and predicted P(1|0), P(1|1) over training, one row per seed.

    The loss is the chain's entropy rate plus the mean divergence of the predictions from the kernel on held-out
    sequences: the expected loss without the noise of the targets.
    """
    world = MarkovChain.binary(run.p, run.q, length=run.length)
    population = Population(_factory(run), seeds=run.seeds).to(run.device)
    film = SpectraOverTraining(*run.spectra)
    histories = train(
        population, world, steps=run.steps, batch_size=run.batch, rng=rng(run.seeds[0], "data", device=run.device),
        lr=run.lr, betas=(0.9, 0.95), weight_decay=run.weight_decay,
        schedule="constant" if run.variant == "scalar" else "cosine", warmup=max(1, run.steps // 50),
        evaluate=_expected_loss(world, run), every=max(1, run.steps // run.looks),
        callbacks=[film] if run.spectra else [], data="separate",
    )  # fmt: skip
    names = histories[0].metrics
    curves = {name: np.stack([history.metrics[name] for history in histories]) for name in names}
    return {"steps": histories[0].eval_steps, **curves, **{f"spectrum {n}": v for n, v in film.spectra.items()}}


def _factory(run: BinaryRun) -> Callable[[int], nn.Module]:
    if run.variant == "scalar":
        return lambda seed: OneLayerMarkov(
            length=run.length, width=run.width, tied=run.tied, window=run.window, init_std=0.02
        )
    norm = "pre" if run.variant == "layer-norm" else "none"
    return lambda seed: Transformer(
        vocab=2, length=run.length, layers=run.layers, heads=1, width=run.width, norm=norm, tied=run.tied,
        bias=False, window=run.window, mlp="gelu", init_std=0.02,
    )  # fmt: skip


def _expected_loss(world: MarkovChain, run: BinaryRun) -> Callable[[nn.Module], dict[str, Tensor]]:
    held_out = world.sample(128, rng=rng(run.seeds[0], "held out", device=run.device))
    kernel = world.oracle(held_out)
    floor = world.entropy_rate()

    def measure(model: nn.Module) -> dict[str, Tensor]:
        with evaluating(model), torch.no_grad():
            predicted = log_predictions(model, held_out).double()
        one = predicted[..., 1].exp()
        after = [one[..., held_out.inputs == token].mean(-1) for token in (0, 1)]
        return {
            "loss": floor + divergence(kernel, predicted).mean((-1, -2)),
            "after zero": after[0],
            "after one": after[1],
        }

    return measure
