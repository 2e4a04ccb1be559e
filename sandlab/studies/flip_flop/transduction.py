"""Runs on the flip-flop automaton itself (label each position with the cell's content), for looking at attention."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from sandlab.learning.objectives import CrossEntropy
from sandlab.learning.penalties import Penalised, Sharpening
from sandlab.learning.population import Population
from sandlab.learning.training import train
from sandlab.lenses.attention_patterns import attention_maps
from sandlab.lenses.flip_flop.memory_heads import (
    attention_entropy,
    head_differences,
    ideal_memory_score,
    value_norm_importance,
)
from sandlab.lenses.flip_flop.tail_errors import tail_error
from sandlab.models.transformer import Transformer
from sandlab.random import rng
from sandlab.worlds.flip_flop.language import FlipFlopTransduction

__all__ = ["PROBE", "PROBE_WRITES", "Transduction", "transduce"]

PROBE = (2, 0, 1, 0, 0, 1, 2, 0)
"""σ1 ⊥ σ0 ⊥ ⊥ σ0 σ1 ⊥ (0 is ⊥, 1 writes 0, 2 writes 1): the input of the published attention maps."""
PROBE_WRITES = {place: token - 1 for place, token in enumerate(PROBE) if token}
TESTS = (0.9, 0.5, 0.98)


@dataclass(frozen=True)
class Transduction:
    """One setting of a causal transformer on `FlipFlopTransduction`, for several seeds at once."""

    seeds: tuple[int, ...] = (0,)
    device: str = "cpu"
    length: int = 32
    idle: float = 0.9
    layers: int = 1
    heads: int = 1
    width: int = 64
    strength: float = 0.0
    sharpen_layers: str = "*"
    steps: int = 1000
    batch_size: int = 32
    lr: float = 1e-3
    targets: int = 20_000
    films: int = 10
    precision: str = "float32"


def transduce(job: Transduction) -> dict[str, Any]:
    """Errors at three rates of idling; entropies, memory scores, probe maps and differences of heads."""
    world = FlipFlopTransduction(length=job.length, idle=job.idle)
    population = Population(lambda seed: _build(job), seeds=job.seeds).to(job.device)
    probe = torch.tensor([PROBE], device=job.device)
    film: dict[str, list[np.ndarray]] = {"differences": [], "steps": [], "norms": []}

    def watch(step: int, model: Any, _metrics: Any) -> None:
        maps = attention_maps(model, probe)
        film["steps"].append(np.array(step))
        film["norms"].append(_norms(model))
        if job.heads > 1:
            film["differences"].append(torch.stack([head_differences(p) for p in maps.values()], 1).cpu().numpy())

    train(
        population,
        world,
        steps=job.steps,
        batch_size=job.batch_size,
        rng=rng(0, "data", device=job.device),
        objective=Penalised(CrossEntropy(), (Sharpening(job.strength, layers=job.sharpen_layers),)),
        lr=job.lr,
        schedule="linear",
        warmup=50,
        every=max(1, job.steps // job.films),
        precision=job.precision if job.device != "cpu" else "float32",
        callbacks=[watch],
    )
    found: dict[str, Any] = {f"error_{idle}": _errors(population, job, idle) for idle in TESTS}
    found["film"] = {name: np.stack(frames) if frames else np.zeros(0) for name, frames in film.items()}
    batch = world.sample(200, rng=rng(5, device=job.device))
    maps = attention_maps(population, batch.inputs, average=False)
    found["entropy"] = torch.stack([attention_entropy(p).flatten(1).mean(1) for p in maps.values()], 1).cpu().numpy()
    first = next(iter(maps.values()))
    scores = [ideal_memory_score(member, batch.inputs, batch.truth["latest_write"]) for member in first]
    found["scores"] = {name: torch.stack([score[name] for score in scores]).cpu().numpy() for name in scores[0]}
    found["maps"] = {name: pattern.cpu().numpy() for name, pattern in attention_maps(population, probe).items()}
    for name, layer in (("misleading", 0), ("misleading_last", job.layers - 1)):
        found[name] = np.array([_misleading(member, batch, layer) for member in population.members()])
    return found


def _build(job: Transduction) -> Transformer:
    return Transformer(
        vocab=3, outputs=2, length=job.length, layers=job.layers, heads=job.heads, width=job.width, positions="learned"
    )


def _errors(population: Population, job: Transduction, idle: float) -> np.ndarray:
    world = FlipFlopTransduction(length=job.length, idle=idle)
    rates = tail_error(population, world, targets=job.targets, rng=rng(9, str(idle), device=job.device))
    return np.array([rate.rate for rate in rates])  # type: ignore[union-attr]


def _norms(population: Population) -> np.ndarray:
    """Length of each member's whole weight vector."""
    squares = [weight.detach().flatten(1).square().sum(1) for weight in population.stacked.values()]
    return torch.stack(squares).sum(0).sqrt().cpu().numpy()


def _misleading(model: Transformer, batch: Any, layer: int) -> tuple[float, float]:
    """Rows of a layer whose largest weight is on a wrong token although the answer is right.

    Returns their share, and how often the largest importance is on a right token there (the largest weight never is).
    A token is right when it is a write of the stored symbol; of several heads the one with the largest number speaks.
    """
    model = model.to(batch.inputs.device)
    with torch.no_grad():
        right_answer = model(batch.inputs).argmax(-1) == batch.targets
    pattern = attention_maps(model, batch.inputs, average=False)[f"layers.{layer}.attention.pattern"]
    importance = value_norm_importance(model, batch.inputs, layer)
    good = batch.inputs.unsqueeze(1) == (batch.targets + 1).unsqueeze(-1)

    def on_right_token(weights: torch.Tensor) -> torch.Tensor:
        key = weights.amax(1).argmax(-1)
        return good.gather(2, key.unsqueeze(-1)).squeeze(-1)

    misled = right_answer & ~on_right_token(pattern)
    repaired = on_right_token(importance)[misled].double()
    return float(misled.double().mean()), float(repaired.mean()) if len(repaired) else 0.0
