"""Misleading patterns: copying needs no attention, and still attention looks as if it did something."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from sandlab import figures
from sandlab.learning.population import Population
from sandlab.learning.training import train
from sandlab.lenses.ablation import accuracy_with_attention, head_importance, prune_heads
from sandlab.lenses.attention_patterns import attention_maps
from sandlab.lenses.token_accuracy import agreement_on
from sandlab.models.transformer import Transformer
from sandlab.random import rng
from sandlab.studies.claims import Above, Below, Claim
from sandlab.studies.dyck.runs import SOURCE
from sandlab.studies.study import Lab, Outcome, study
from sandlab.worlds.base import Batch
from sandlab.worlds.dyck.language import Dyck


@dataclass(frozen=True)
class DyckCopy:
    """Dyck prefixes whose target is the token itself: the residual stream alone can do it."""

    types: int = 2
    depth: int = 4
    length: int = 28

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        tokens = Dyck(self.types, self.depth, self.length).sample(n, rng=rng).inputs
        return Batch(tokens, tokens, torch.ones_like(tokens, dtype=torch.bool))


@dataclass(frozen=True)
class Settings:
    seeds: int = 8
    depths: tuple[int, ...] = (1, 4)
    heads: int = 2
    width: int = 48
    steps: int = 150


@dataclass(frozen=True)
class CopyJob:
    seeds: tuple[int, ...]
    device: str
    layers: int
    heads: int
    width: int
    steps: int


def copy_run(job: CopyJob) -> dict[str, Any]:
    """Accuracy of copying, with its own attention and with replaced ones; structure of the maps; head importance."""
    world = DyckCopy()
    population = Population(
        lambda seed: Transformer(
            vocab=5, length=28, layers=job.layers, heads=job.heads, width=job.width, init_std=0.05, positions="learned"
        ),
        seeds=job.seeds,
    ).to(job.device)
    train(
        population,
        world,
        steps=job.steps,
        batch_size=64,
        rng=rng(0, "copy", device=job.device),
        lr=2e-3,
        data="separate",
    )
    batch = world.sample(100, rng=rng(1, "copy", device=job.device))
    probe = batch.inputs[:1]
    maps = {name: pattern[:, 0] for name, pattern in attention_maps(population, probe, average=False).items()}
    found: dict[str, Any] = {
        "accuracy": _plain(agreement_on(population, batch)),
        "uniform": _plain(accuracy_with_attention(population, batch, "uniform")),
        "random": _plain(accuracy_with_attention(population, batch, "random", rng=rng(2, device=job.device))),
        "zero": _plain(accuracy_with_attention(population, batch, "zero")),
        "structure": _structure(population, batch),
        "maps": {name: pattern.cpu().numpy() for name, pattern in maps.items()},
        "tokens": probe[0].cpu().numpy(),
    }
    alone, together = [], []
    for member in population.members():
        member = member.to(job.device)
        alone.append(sum(drop <= 0.01 for drop in head_importance(member, batch).values()))
        together.append(len(prune_heads(member, batch)))
    found["dispensable_alone"], found["dispensable_together"] = np.array(alone), np.array(together)
    return found


def _plain(value: Any) -> np.ndarray:
    return torch.as_tensor(value).double().cpu().numpy()


def _structure(population: Population, batch: Batch) -> np.ndarray:
    """Per member: the largest excess mass, over all heads, on closing brackets, one type, or the position itself.

    Excess over what uniform attention would put there: 0 is no structure, 1 all of it.
    """
    tokens = batch.inputs
    brackets = tokens < 4
    features = [brackets & (tokens % 2 == 1), brackets & (tokens % 2 == 0)]
    features += [brackets & (tokens // 2 == kind) for kind in range(2)]
    time = tokens.shape[1]
    uniform = torch.ones(time, time, device=tokens.device).tril()
    uniform = uniform / uniform.sum(-1, keepdim=True)
    best = torch.zeros(len(population), device=tokens.device)
    for pattern in attention_maps(population, tokens, average=False).values():
        change = pattern - uniform
        own = change.diagonal(dim1=-2, dim2=-1).mean((-1, 1))
        best = torch.maximum(best, own.amax(-1))
        for feature in features:
            mass = (change * feature[:, None, None, :]).sum(-1).mean((-1, 1))
            best = torch.maximum(best, mass.amax(-1))
    return best.double().cpu().numpy()


@study(
    "dyck/copying",
    title="Structured attention that explains nothing",
    source=f"{SOURCE}, §5 and Figures 5–7",
    quick=Settings(),
    full=Settings(seeds=40, steps=600),
    claims=[
        Claim(
            "copies-deep",
            "Models of four layers copy Dyck words.",
            f"{SOURCE}, Figure 5",
            "share of copied tokens, four layers",
            Above(0.96),
            paper="more than 96 %",
        ),
        Claim(
            "copies-shallow",
            "Models of one layer copy Dyck words.",
            f"{SOURCE}, Figure 6",
            "share of copied tokens, one layer",
            Above(0.9),
            paper="more than 90 %",
        ),
        Claim(
            "attention-irrelevant",
            "There are trained models in which replacing all attention changes almost nothing.",
            f"{SOURCE}, §5",
            "smallest loss of accuracy over seeds when one-layer models get uniform or no attention",
            Below(0.05),
            exact=True,
        ),
        Claim(
            "still-structured",
            "Yet the maps are structured: some head clearly prefers one kind of token.",
            f"{SOURCE}, Figures 5–7",
            "largest excess of attention mass on a kind of token or on the position itself, best head",
            Above(0.05),
        ),
        Claim(
            "importance-differs",
            "Heads that are each dispensable are not always dispensable together.",
            f"{SOURCE}, discussion of head importance",
            "heads dispensable alone minus heads dispensable together, four-layer models",
            Above(0.0),
        ),
    ],
)
def copying(config: Settings, lab: Lab) -> Outcome:
    """The task is to output each input token: the residual stream can do it without attention.

    After training, attention is replaced by uniform and by random rows; accuracy stays. The maps drawn beside show
    heads with a clear preference all the same. The table counts heads that can be taken away one at a time and those
    that can go together: importance with the others fixed is not importance with the others gone.
    """
    seeds = tuple(range(config.seeds))
    jobs = [CopyJob(seeds, lab.device, layers, config.heads, config.width, config.steps) for layers in config.depths]
    found = dict(zip(config.depths, lab.map(copy_run, jobs, label="copying")))
    shallow, deep = found[config.depths[0]], found[config.depths[-1]]
    measurements: dict[str, Any] = {
        "copies-deep": deep["accuracy"],
        "copies-shallow": shallow["accuracy"],
        "attention-irrelevant": float((shallow["accuracy"] - np.maximum(shallow["uniform"], shallow["zero"])).min()),
        "still-structured": np.maximum(shallow["structure"], deep["structure"]),
        "importance-differs": deep["dispensable_alone"] - deep["dispensable_together"],
    }
    columns = ("accuracy", "uniform", "random", "zero", "structure", "dispensable_alone", "dispensable_together")
    rows = [
        {"layers": layers, **{name: float(np.mean(result[name])) for name in columns}}
        for layers, result in found.items()
    ]
    return Outcome(measurements, {"maps": _draw(found)}, {"copying": rows})


def _draw(found: dict[int, dict[str, Any]]) -> Any:
    letters = "()[]^"
    panels = [(layers, name, result) for layers, result in found.items() for name in result["maps"]]
    figure, axes = figures.new(columns=len(panels), width=2.7, height=2.8)
    for axis, (layers, name, result) in zip(axes, panels):
        marks = [letters[token] for token in result["tokens"]]
        seed = int(result["structure"].argmax())
        layer = int(name.split(".")[1]) + 1
        title = f"{layers}-layer model, layer {layer}\nuniform instead: {result['uniform'][seed]:.1%}"
        figures.heatmap(axis, result["maps"][name][seed, 0], title=title, bar=False)
        axis.title.set_fontsize(9)
        axis.set_xticks(range(len(marks)), marks, fontsize=5)
        axis.set_yticks(range(len(marks)), marks, fontsize=5)
    return figure
