"""Training runs on bounded Dyck languages, shared by the studies of this chapter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import nn

from sandlab.learning.objectives import CrossEntropy
from sandlab.learning.penalties import InvariantLogits, Penalised
from sandlab.learning.population import Population
from sandlab.learning.training import train
from sandlab.lenses.attention_patterns import attention_maps
from sandlab.lenses.dyck.balance import balance_report, seen_drift
from sandlab.lenses.dyck.bracket_attention import closing_accuracy, stack_likeness
from sandlab.models.dyck.codes import MinimalDyck
from sandlab.models.transformer import Transformer
from sandlab.random import rng
from sandlab.worlds.base import Batch
from sandlab.worlds.dyck.language import Dyck

__all__ = ["SOURCE", "Nested", "Run", "apart", "gather", "layer_maps", "probe_word", "split_seeds", "train_run"]

SOURCE = (
    "Wen et al. 2023, Transformers are uninterpretable with myopic methods: a case study with bounded Dyck grammars"
)


@dataclass(frozen=True)
class Run:
    """One setting, trained for several seeds on fresh words.

    model        "standard": a causal transformer; "minimal": one layer over (type, depth) codes
    words        "bounded": complete words of at most `length` brackets with END; "prefix": prefixes of that length
    contrast     strength of the penalty for logits that change when nested pairs are put before the word
    frozen       attention logits stay 0 (uniform attention)
    init_std     of the standard model: small enough that attention starts nearly uniform
    positions    "none", "linear" (one coordinate i/6000) or any kind of the standard model
    arrangement  where the norm stands: "pre", "gpt" or "theory" (see `BracketTransformer`)
    long         brackets of the long test prefixes; only positions from 4/5 of it on are counted
    sentences    random prefixes of 19 tokens, START included, on which attention is recorded too
    """

    seeds: tuple[int, ...] = (0,)
    device: str = "cpu"
    model: str = "standard"
    types: int = 2
    depth: int = 4
    length: int = 28
    words: str = "bounded"
    opening: float = 0.5
    layers: int = 2
    heads: int = 1
    width: int = 50
    mlp_width: int = 50
    positions: str = "none"
    arrangement: str = "pre"
    embedding: str = "type-depth"
    residual: bool = False
    frozen: bool = False
    init_std: float = 0.05
    contrast: float = 0.0
    steps: int = 1000
    batch_size: int = 100
    lr: float = 3e-3
    weight_decay: float = 0.0
    tests: int = 200
    long: int = 500
    long_tests: int = 40
    sentences: int = 0


@dataclass(frozen=True)
class Nested:
    """START w ↦ START p w with p a random number (1…depth) of nested pairs of random types."""

    types: int
    depth: int

    def __call__(self, batch: Batch, rng: torch.Generator) -> tuple[torch.Tensor, int]:
        levels = int(torch.randint(1, self.depth + 1, (1,), generator=rng, device=rng.device))
        shape = (len(batch.inputs), levels)
        opens = 2 * torch.randint(self.types, shape, generator=rng, device=rng.device)
        start, word = batch.inputs[:, :1], batch.inputs[:, 1:]
        return torch.cat([start, opens, opens.flip(1) + 1, word], 1), batch.inputs.shape[1]


def train_run(run: Run) -> dict[str, Any]:
    """Accuracies in distribution and on long prefixes, loss above the best, attention on the probe, balance."""
    world = Dyck(run.types, run.depth, run.length, run.opening, words=run.words)
    population = Population(lambda seed: build(run, world), seeds=run.seeds).to(run.device)
    penalties = (InvariantLogits(Nested(run.types, run.depth), run.contrast),) if run.contrast else ()
    histories = train(
        population,
        world,
        steps=run.steps,
        batch_size=run.batch_size,
        rng=rng(0, "data", device=run.device),
        objective=Penalised(CrossEntropy(), penalties) if penalties else CrossEntropy(),
        optimizer="adam",
        lr=run.lr,
        weight_decay=run.weight_decay,
        schedule="cosine",
        data="separate",
    )
    test = world.sample(run.tests, rng=rng(1, "test", device=run.device))
    prefixes = Dyck(run.types, run.depth, run.long, run.opening).sample(run.long_tests, rng=rng(2, device=run.device))
    probe = probe_word(run.types, run.depth).to(run.device)
    maps = attention_maps(population, probe, names="*pattern", average=False)
    found: dict[str, Any] = {
        "loss": np.stack([history.loss for history in histories])[:, -50:].mean(1) - world.optimal_loss(test),
        "maps": {name: pattern[:, 0].float().cpu().numpy() for name, pattern in maps.items()},
        "probe": probe[0].cpu().numpy(),
    }
    last = list(maps)[-1]
    likeness = stack_likeness(_heads(maps[last], population).mean(2), probe, run.types)
    found["stack_argmax"] = likeness["argmax"].cpu().numpy()
    for name, accuracy in closing_accuracy(population, test.inputs, run.types).items():
        found[f"in_{name}"] = accuracy.cpu().numpy()
    found |= {f"long_{name}": value for name, value in _long_accuracy(population, prefixes.inputs, run).items()}
    if run.sentences:
        texts = Dyck(run.types, run.depth, 18).sample(run.sentences, rng=rng(3, device=run.device))
        words = torch.cat([texts.inputs, texts.targets[:, -1:]], 1)
        patterns = attention_maps(population, words, names="*pattern", average=False)
        found["sentence_maps"] = {name: _heads(p, population).mean(2).cpu().numpy() for name, p in patterns.items()}
    if run.model == "minimal":
        reports = [balance_report(member.cpu()) for member in population.members()]
        found["balance"] = np.array([report.violation for report in reports])
        found["balance_max"] = np.array([report.worst_violation for report in reports])
        found["balance_largest"] = np.array([report.ratios.max() for report in reports])
        if not run.residual:
            found["seen_drift"] = np.array([seen_drift(member.cpu(), run.opening) for member in population.members()])
    return found


def build(run: Run, world: Dyck) -> nn.Module:
    """The model of a run."""
    if run.model == "minimal":
        return MinimalDyck(
            types=run.types,
            depth=run.depth,
            outputs=world.outputs,
            embedding=run.embedding,
            width=run.width,
            residual=run.residual,
            mlp_width=run.mlp_width if run.residual else 0,
            positions="linear" if run.positions == "linear" else "none",
        )
    longest = max(run.long, run.length) + 2 * run.depth + 2
    model = Transformer(
        vocab=world.vocab,
        outputs=world.outputs,
        length=longest,
        layers=run.layers,
        heads=run.heads,
        width=run.width,
        mlp_width=run.mlp_width,
        mlp="relu",
        positions=run.positions,
        init_std=run.init_std,
    )
    if run.frozen:
        for layer in model.layers:
            for part in (layer.attention.query, layer.attention.key):  # type: ignore[union-attr]
                for weight in part.parameters():  # type: ignore[union-attr]
                    weight.data.zero_()
                    weight.requires_grad_(False)
    return model


def probe_word(types: int, depth: int) -> torch.Tensor:
    """START [[[[ ]]]] (((( )))): each of two types nested to the largest depth, as in the published maps."""
    kinds = (0, 1 % types)
    word = [token for kind in kinds for token in [2 * kind] * depth + [2 * kind + 1] * depth]
    return torch.tensor([[2 * types, *word]])


def _heads(pattern: torch.Tensor, population: Population) -> torch.Tensor:
    """Patterns as (member, word, head, query, key); a model with one head may leave that axis out."""
    return pattern if pattern.ndim == 5 else pattern.unsqueeze(2)


def _long_accuracy(population: Population, tokens: torch.Tensor, run: Run) -> dict[str, np.ndarray]:
    """Closing accuracy at the far end of long prefixes, a few words at a time."""
    totals: dict[str, list[np.ndarray]] = {}
    ends = [int(run.long * share) for share in (0.8, 0.85, 0.9, 0.95, 1.0)]
    for part in tokens.split(20):
        for end in ends:
            found = closing_accuracy(population, part[:, :end], run.types, ends_only=True)
            for name, value in found.items():
                totals.setdefault(name, []).append(value.cpu().numpy())
    return {name: np.mean(values, 0) for name, values in totals.items()}


def split_seeds(run: Run, seeds: int, device: str, size: int = 2) -> list[Run]:
    """Groups of `size` seeds per job on a CPU, one population on a GPU."""
    step = size if device == "cpu" else seeds
    groups: Sequence[tuple[int, ...]] = [
        tuple(range(first, min(first + step, seeds))) for first in range(0, seeds, step)
    ]
    return [replace(run, seeds=group, device=device) for group in groups]


def gather(results: list[dict[str, Any]], name: str) -> np.ndarray:
    """A number per seed from the results of `split_seeds`."""
    return np.concatenate([np.atleast_1d(result[name]) for result in results])


def layer_maps(results: list[dict[str, Any]], kind: str = "maps") -> list[np.ndarray]:
    """Per layer, the maps of all seeds (seed, …, query, key); heads are averaged."""
    layers = []
    for name in results[0][kind]:
        patterns = np.concatenate([result[kind][name] for result in results])
        layers.append(patterns.mean(1) if kind == "maps" and patterns.ndim == 4 else patterns)
    return layers


def apart(maps: np.ndarray) -> np.ndarray:
    """One number per seed: its mean squared distance to all other seeds, averaged over what lies between."""
    flat = maps.reshape(len(maps), -1).astype(np.float64)
    examples = flat.shape[1] // (maps.shape[-1] * maps.shape[-2])
    squares = (flat**2).sum(1)
    distances = (squares[:, None] + squares[None] - 2 * flat @ flat.T).clip(min=0) / examples
    np.fill_diagonal(distances, 0.0)
    return distances.sum(1) / (len(maps) - 1)
