"""Training of disentangled transformers on sequences with a causal graph: the job several studies share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from sandlab.errors import BadInput
from sandlab.learning.objectives import member_loss
from sandlab.learning.population import Population
from sandlab.learning.training import train
from sandlab.lenses.attention_patterns import attention_maps, attention_match, parent_pattern
from sandlab.models.markov.disentangled import DisentangledTransformer
from sandlab.random import rng
from sandlab.worlds.base import Batch
from sandlab.worlds.markov.causal_graphs import InContextTree, chain_parents, pair_parents, random_parents

__all__ = [
    "FirstLayerRun",
    "GraphRun",
    "SharpenRun",
    "family",
    "kernel_errors",
    "matching_model",
    "read_tree",
    "sharpen",
    "train_first_layer",
    "train_on_tree",
]


@dataclass(frozen=True)
class GraphRun:
    """A population of two-layer, one-head disentangled transformers on trees with the given parents.

    tests   concentrations of the kernels on which the trained models are tested besides the one of training
    """

    parents: tuple[int, ...]
    seeds: tuple[int, ...]
    device: str
    states: int = 3
    concentration: float = 0.1
    steps: int = 4000
    batch: int = 64
    lr: float = 4.0
    optimizer: str = "sgd"
    looks: int = 25
    tests: tuple[float, ...] = ()


@dataclass(frozen=True)
class FirstLayerRun:
    """The first stage of layer-wise training: the second layer compares tokens with a fixed β₀, the readout counts."""

    parents: tuple[int, ...]
    seeds: tuple[int, ...]
    device: str
    states: int = 10
    concentration: float = 0.1
    steps: int = 400
    batch: int = 64
    lr: float = 50.0
    temperature: float = 1.0
    floor: float = 1e-3
    looks: int = 20


@dataclass(frozen=True)
class SharpenRun:
    """One jointly trained model (rate constant, then decaying) whose attention is then made one-hot by hand."""

    parents: tuple[int, ...]
    seed: int
    device: str
    states: int = 10
    concentration: float = 0.1
    steps: int = 2000
    batch: int = 128
    lr: float = 4.0
    scales: tuple[float, ...] = (0.6, 0.7, 0.8, 0.9, 1.0)


def family(name: str, length: int, seed: int = 1) -> tuple[int, ...]:
    """Parents of one of the three graph families: "chain", "pairs" or "random"."""
    if name == "chain":
        return chain_parents(length)
    if name == "pairs":
        return pair_parents(length)
    if name == "random":
        return random_parents(length, seed)
    raise BadInput(f"no graph family called {name!r}: there are chain, pairs, random")


def train_on_tree(run: GraphRun) -> dict[str, Any]:
    """Train every seed from A = 0, W = 0 and read the graph off the first layer's attention."""
    world = InContextTree(run.states, run.parents, run.concentration)
    held_out = world.sample(2048, rng=rng(0, "held out", device=run.device))
    population = Population(
        lambda seed: DisentangledTransformer(vocab=run.states, length=world.length, heads=(1, 1)), seeds=run.seeds
    ).to(run.device)
    matches: list[np.ndarray] = []

    def look(_step: int, model: Any, _metrics: Any) -> None:
        matches.append(read_tree(model, held_out[:128], run.parents)["match"])

    histories = train(
        population, world, steps=run.steps, batch_size=run.batch, lr=run.lr, optimizer=run.optimizer, schedule="cosine",
        rng=rng(run.seeds[0], "data", device=run.device), evaluate=held_out, every=max(1, run.steps // run.looks),
        callbacks=[look], data="separate",
    )  # fmt: skip
    weights = population.stacked
    errors = {
        f"errors {concentration:g}": kernel_errors(population, run, concentration)
        for concentration in (run.concentration, *run.tests)
    }
    return {
        "steps": histories[0].eval_steps,
        "loss": np.stack([history.metrics["loss"] for history in histories]),
        "optimum": world.optimal_loss(held_out),
        "match": np.stack(matches, -1),
        **{f"final {name}": value for name, value in read_tree(population, held_out[:512], run.parents).items()},
        "first": weights["layers.0.attention.weight"][0, 0].detach().cpu().numpy(),
        "second": weights["layers.1.attention.weight"][0, 0].detach().cpu().numpy(),
        "readout": weights["unembed.weight"][0].detach().cpu().numpy(),
        **errors,
    }


def train_first_layer(run: FirstLayerRun) -> dict[str, Any]:
    """Train A¹ alone, from zero, for every seed; its match to the graph over steps and what is recovered at the end."""
    world = InContextTree(run.states, run.parents, run.concentration)
    held_out = world.sample(512, rng=rng(0, "held out", device=run.device))

    def member(_seed: int) -> DisentangledTransformer:
        model = matching_model(run.states, world.length, run.temperature, run.floor)
        for name, weight in model.named_parameters():
            weight.requires_grad_(name.startswith("layers.0."))
        return model

    population = Population(member, seeds=run.seeds).to(run.device)
    steps: list[int] = []
    matches: list[np.ndarray] = []

    def look(step: int, model: Any, _metrics: Any) -> None:
        steps.append(step)
        matches.append(read_tree(model, held_out[:128], run.parents)["match"])

    train(
        population, world, steps=run.steps, batch_size=run.batch, lr=run.lr, optimizer="sgd", callbacks=[look],
        rng=rng(run.seeds[0], "first layer", device=run.device), every=max(1, run.steps // run.looks), data="separate",
    )  # fmt: skip
    found = read_tree(population, held_out, run.parents)
    return {"steps": np.array(steps), "match": np.stack(matches, -1), **{f"final {k}": v for k, v in found.items()}}


def sharpen(run: SharpenRun) -> dict[str, float]:
    """What one-hot attention would gain: loss after joint training, and with A¹ sharpened and A² rescaled.

    A¹ gets 4 more at every parent; A² is multiplied by the best of `scales`.
    """
    world = InContextTree(run.states, run.parents, run.concentration)
    held_out = world.sample(8192, rng=rng(0, "held out", device=run.device))
    model = DisentangledTransformer(vocab=run.states, length=world.length, heads=(1, 1)).to(run.device)
    train(
        model, world, steps=run.steps, batch_size=run.batch, lr=run.lr, optimizer="sgd",
        schedule=lambda step: 0.5 - 0.5 * math.cos(math.pi * min(1.0, 5 * (1 - step / run.steps))),
        rng=rng(run.seed, "sharpen", device=run.device), every=run.steps,
    )  # fmt: skip
    first, second = (model.get_parameter(f"layers.{layer}.attention.weight") for layer in (0, 1))
    children, parents = torch.tensor(world.edges, device=run.device).T

    def state() -> tuple[float, float]:
        pattern = attention_maps(model, held_out.inputs[:256])["layers.0.attention.pattern"][0]
        with torch.no_grad():
            return float(pattern[children, parents].mean()), float(member_loss(model(held_out.inputs), held_out))

    match, loss = state()
    with torch.no_grad():
        first[0, run.states + children, run.states + parents] += 4.0
        trained = second.clone()
        sharp = []
        for scale in run.scales:
            second.copy_(scale * trained)
            sharp.append(state())
    best_match, best_loss = min(sharp, key=lambda pair: pair[1])
    return {"match": match, "loss": loss, "sharp match": best_match, "sharp loss": best_loss}


def matching_model(states: int, length: int, temperature: float, floor: float) -> DisentangledTransformer:
    """A¹ = 0; A² compares the last token with each position's fetched token, β₀ · identity; the readout counts.

    Output log(p + floor). The point at which the gradient of the first layer measures χ² information.
    """
    model = DisentangledTransformer(vocab=states, length=length, heads=(1, 1), output="probabilities", floor=floor)
    token, width = torch.arange(states), states + length
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
        model.get_parameter("layers.1.attention.weight")[0, token, width + token] = temperature
        model.unembed.weight[token, 2 * width + token] = 1.0
    return model


def read_tree(population: Any, batch: Batch, parents: Sequence[int]) -> dict[str, np.ndarray]:
    """Mean first-layer attention of each seed, its match to the graph, and whether its largest entries are the graph.

    The last position asks and belongs to no tree; roots have nothing to attend to. A position's largest attention is
    taken over the earlier positions.
    """
    pattern = attention_maps(population, batch.inputs)["layers.0.attention.pattern"][:, 0, :-1, :-1]
    children = [place for place, parent in enumerate(parents[:-1]) if parent >= 0]
    target = parent_pattern(parents)[:-1, :-1].to(pattern)
    found = pattern.tril(-1).argmax(-1)[:, children]
    truth = torch.tensor([parents[child] for child in children], device=found.device)
    return {
        "pattern": pattern[0].cpu().numpy(),
        "match": attention_match(pattern, target).cpu().numpy(),
        "edges": (found == truth).cpu().numpy().astype(float),
        "recovered": (found == truth).all(-1).cpu().numpy().astype(float),
    }


def kernel_errors(population: Any, run: GraphRun, concentration: float) -> np.ndarray:
    """Mean over fresh sequences of max_a |f(a) − P(a|s_T)|: each seed of the population, then the counting estimator.

    The estimator is the one of training (it adds the training concentration), whatever law the kernels have.
    """
    asked = InContextTree(run.states, run.parents, concentration)
    batch = asked.sample(4096, rng=rng(0, "test", str(concentration), device=run.device))
    trained = InContextTree(run.states, run.parents, run.concentration)
    truth = batch.targets.squeeze(1)
    with torch.no_grad():
        predicted = population(batch.inputs).softmax(-1).squeeze(-2)
    counted = trained.oracle(batch).exp().squeeze(1)
    apart = [(guess.double() - truth).abs().amax(-1).mean() for guess in (*predicted, counted)]
    return torch.stack(apart).cpu().numpy()
