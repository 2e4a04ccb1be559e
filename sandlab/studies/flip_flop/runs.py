"""Training runs on flip-flop languages, shared by the studies of this chapter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import nn

from sandlab.learning._engine.precision import computing
from sandlab.learning.objectives import CrossEntropy
from sandlab.learning.penalties import Penalised, SequenceMean, Sharpening
from sandlab.learning.population import Population
from sandlab.learning.training import train
from sandlab.lenses.attention_patterns import attention_maps
from sandlab.lenses.flip_flop.glitches import find_glitch
from sandlab.lenses.flip_flop.tail_errors import error_curve, tail_error, wrong_targets
from sandlab.lenses.predictions import evaluating
from sandlab.models.recurrent import LSTM
from sandlab.models.transformer import Transformer
from sandlab.random import rng
from sandlab.worlds.base import Batch
from sandlab.worlds.flip_flop.language import FlipFlop

__all__ = ["SETS", "SOURCE", "Run", "by_seed", "evaluation_worlds", "split_seeds", "train_run"]

SOURCE = "Liu et al. 2023, Exposing attention glitches with flip-flop language modeling"
SETS = ("in", "sparse", "dense")
SPARSE, DENSE = 0.98, 0.1


@dataclass(frozen=True)
class Run:
    """One setting, trained for several seeds.

    seeds, data_seeds   of the initial weights, and of the data (None: the same stream for all, seed 0)
    ignore              shares p_i of the training languages, drawn per string; `extra_ignore` and `extra_steps` go on
                        from there with a fresh schedule
    recipe              AdamW, warm-up of 50 steps, linear decay to 0
    sharpen_start       share of the steps after which a "linear" or "oscillating" `sharpen_schedule` sets in
    targets             reads per evaluation set at the end; `checks` evaluations on small fixed sets along the way
    distances           also the error against the distance to the latest write
    glitches            also the shortest failing input found for the first seed that has one, and its attention
    """

    seeds: tuple[int, ...] = (0,)
    data_seed: int = 0
    device: str = "cpu"
    model: str = "transformer"
    length: int = 64
    ignore: tuple[float, ...] = (0.8,)
    mode: str = "clean"
    layers: int = 2
    width: int = 64
    heads: int = 4
    gated: bool = False
    positions: str = "learned"
    init_std: float | None = None
    dropout: float = 0.0
    attention_dropout: float = 0.0
    embedding_dropout: float = 0.0
    sharpen: str = ""
    sharpen_strength: float = 0.0
    sharpen_layers: str = "*"
    sharpen_schedule: str = "constant"
    sharpen_start: float = 0.0
    average: str = "read"
    steps: int = 1200
    batch_size: int = 32
    lr: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    weight_decay: float = 0.1
    precision: str = "float32"
    extra_ignore: tuple[float, ...] = ()
    extra_steps: int = 0
    targets: int = 6_000
    checks: int = 10
    distances: bool = False
    glitches: bool = False
    label: str = ""


def train_run(run: Run) -> dict[str, Any]:
    """Final errors (set → errors, counts per seed), error curves, losses and parameter count of a run."""
    run = replace(run, precision=run.precision if run.device != "cpu" else "float32")
    with computing(run.precision, torch.device(run.device)):
        return _train_and_test(run)


def _train_and_test(run: Run) -> dict[str, Any]:
    device = run.device
    population = Population(lambda seed: build(run), seeds=run.seeds).to(device)
    fixed = {name: world.sample(200, rng=rng(7, name, device=device)) for name, world in evaluation_worlds(run).items()}

    def errors(model: Any) -> dict[str, Any]:
        return {name: _rates(model, batch) for name, batch in fixed.items()}

    histories = _train(population, run, run.ignore, run.steps, errors, "data")
    curves = {name: np.stack([history.metrics[name] for history in histories]) for name in SETS}
    result = {
        "steps": histories[0].eval_steps,
        "curves": curves,
        "loss": np.stack([history.loss for history in histories]),
        "first": _final(population, run),
        "bits": {name: _rates(population, batch, slice(3, 5)) for name, batch in fixed.items()},
        "free": {name: _rates(population, batch) for name, batch in fixed.items()},
        "parameters": sum(weight.numel() for weight in population.template.parameters()),
    }
    if run.extra_steps:
        _train(population, run, run.extra_ignore, run.extra_steps, None, "more data")
        result["final"] = _final(population, run)
    else:
        result["final"] = result["first"]
    if run.mode == "generative":
        result["excess"] = _excess(population, run)
    if run.distances:
        result["distances"] = {name: _by_distance(population, run, name) for name in ("sparse", "dense")}
    if run.glitches:
        result["glitch"] = _glitch(population, run)
    return result


def build(run: Run) -> nn.Module:
    """The model of a run."""
    if run.model == "lstm":
        return LSTM(vocab=5, width=run.width, layers=1)
    return Transformer(
        vocab=5,
        length=run.length - 1,
        layers=run.layers,
        heads=run.heads,
        width=run.width,
        gated=run.gated,
        positions=run.positions,
        init_std=run.init_std,
        dropout=run.dropout,
        attention_dropout=run.attention_dropout,
        embedding_dropout=run.embedding_dropout,
    )


def evaluation_worlds(run: Run) -> dict[str, FlipFlop]:
    """In distribution, sparse tail FFL(0.98), dense tail FFL(0.1): reads only, whatever was trained on."""
    return {
        "in": FlipFlop.ignoring(*run.ignore, length=run.length),
        "sparse": FlipFlop.ignoring(SPARSE, length=run.length),
        "dense": FlipFlop.ignoring(DENSE, length=run.length),
    }


def _train(population: Population, run: Run, ignore: tuple[float, ...], steps: int, evaluate: Any, stream: str) -> Any:
    return train(
        population,
        FlipFlop.ignoring(*ignore, length=run.length, mode=run.mode),
        steps=steps,
        batch_size=run.batch_size,
        rng=rng(run.data_seed, stream, device=run.device),
        objective=_objective(run, steps),
        lr=run.lr,
        betas=run.betas,
        precision=run.precision,
        weight_decay=run.weight_decay,
        schedule="linear",
        warmup=50,
        evaluate=evaluate,
        every=max(1, steps // run.checks),
    )


def _objective(run: Run, steps: int) -> Any:
    plain: Any = SequenceMean() if run.average == "sequence" else CrossEntropy()
    if not run.sharpen:
        return plain
    sharpening = Sharpening(
        run.sharpen_strength, run.sharpen, run.sharpen_layers, run.sharpen_schedule, int(run.sharpen_start * steps),
        steps, period=max(1, steps // 10),
    )  # fmt: skip
    return Penalised(plain, (sharpening,))


def _final(population: Population, run: Run) -> dict[str, Any]:
    """Errors over many reads of each evaluation set; a member's rate is over the same strings as the others'."""
    found = {}
    for name, world in evaluation_worlds(run).items():
        rates = tail_error(population, world, targets=run.targets, rng=rng(11, name, device=run.device), chunk=256)
        found[name] = np.array([rate.rate for rate in rates])  # type: ignore[union-attr]
        found[f"{name}_errors"] = np.array([rate.errors for rate in rates])  # type: ignore[union-attr]
    return found


def _rates(population: Any, batch: Batch, among: slice | None = None) -> np.ndarray:
    """Read error of each seed on one batch; `among` restricts the answers that are compared."""
    wrong = wrong_targets(population, batch, among=among).flatten(1).sum(1)
    return (wrong / batch.mask.sum()).cpu().numpy()


def _excess(population: Population, run: Run) -> np.ndarray:
    """Loss on fresh strings above that of the true law on the same strings, per seed, nats per token."""
    world = FlipFlop.ignoring(*run.ignore, length=run.length, mode="generative")
    batch = world.sample(2000, rng=rng(19, device=run.device))
    with evaluating(population), torch.no_grad():
        parts = [
            population(inputs).double().log_softmax(-1).gather(-1, targets.expand(len(population), -1, -1)[..., None])
            for inputs, targets in zip(batch.inputs.split(250), batch.targets.split(250))
        ]
    return -torch.cat(parts, 1).flatten(1).mean(1).cpu().numpy() - world.optimal_loss(batch)


def _by_distance(population: Population, run: Run, name: str) -> dict[str, np.ndarray]:
    """Errors and counts per seed against the distance to the latest write, in bins that double."""
    world = evaluation_worlds(run)[name]
    edges = np.unique([0, *(2**power for power in range(12)), run.length])
    edges = edges[edges <= run.length // 2]
    generator = rng(13, name, device=run.device)
    curve = error_curve(population, world, world.since_write, edges, targets=run.targets, rng=generator, chunk=256)
    return {"edges": curve.edges, "errors": curve.errors, "counts": curve.counts}


def _glitch(population: Population, run: Run) -> dict[str, Any]:
    """The shortest failing input found for the first seed that errs: short strings of both tails are searched first."""
    lengths = [length for length in (8, 12, 16, 24, 32, 48, 64, 128, 256, 512) if length < run.length] + [run.length]
    worlds = [FlipFlop.ignoring(share, length=length) for length in lengths for share in (DENSE, SPARSE)]
    for place, member in enumerate(population.members()):
        member = member.to(run.device)
        found = find_glitch(
            member, worlds, examples=1024, rng=rng(17, device=run.device), label=worlds[0].label, pairs=2
        )
        if found is not None:
            maps = attention_maps(member, found.tokens.unsqueeze(0)) if run.model == "transformer" else {}
            return {
                "seed": run.seeds[place],
                "tokens": found.tokens.cpu().numpy(),
                "place": found.place,
                "answer": found.answer,
                "truth": found.truth,
                "tried": found.tried,
                "maps": {name: pattern.cpu().numpy() for name, pattern in maps.items()},
            }
    return {}


def split_seeds(run: Run, seeds: int, device: str) -> list[Run]:
    """One job per seed on a CPU, where jobs share the cores; one population on a GPU."""
    groups: Sequence[tuple[int, ...]] = [(seed,) for seed in range(seeds)] if device == "cpu" else [tuple(range(seeds))]
    return [replace(run, seeds=group, device=device) for group in groups]


def by_seed(results: list[dict[str, Any]], when: str, name: str) -> np.ndarray:
    """A number per seed from the results of `split_seeds`."""
    return np.concatenate([np.atleast_1d(result[when][name]) for result in results])
