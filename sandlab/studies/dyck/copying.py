"""Misleading patterns: copying needs no attention, and still attention looks as if it did something.

The task is to output each input token: the residual stream can do it without attention.

After training, attention is replaced by uniform and by random rows; accuracy stays. The maps show heads with a clear
preference all the same. The table counts heads that can be removed one at a time and those that can be removed
together: importance with the others fixed is not importance with the others gone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from sandlab import figures
from sandlab.learning.experiment import Experiment, Runs, Snapshot, Training
from sandlab.lenses.ablation import accuracy_with_attention, head_importance, prune_heads
from sandlab.lenses.attention_patterns import attention_maps
from sandlab.lenses.dyck.bracket_attention import bracket_preference
from sandlab.lenses.token_accuracy import accuracy_on
from sandlab.models.transformer import TransformerConfig
from sandlab.studies.claims import Best, Mean, Share
from sandlab.studies.dyck import _shared as shared
from sandlab.studies.dyck._shared import SOURCE
from sandlab.studies.nulls import untrained
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.dyck.copying import DyckCopy

WORLD = DyckCopy()


def accuracies(now: Snapshot) -> dict[str, Tensor]:
    """Share of copied tokens with the model's own attention ("accuracy"), and with other rows in its place."""
    batch, draw = now.batch, now.rng(2)
    found = {
        "accuracy": accuracy_on(now.model, batch),
        "uniform": accuracy_with_attention(now.model, batch, "uniform"),
        "random": accuracy_with_attention(now.model, batch, "random", rng=draw),
        "zero": accuracy_with_attention(now.model, batch, "zero"),
    }
    return {name: torch.as_tensor(value) for name, value in found.items()}


def structure(now: Snapshot) -> dict[str, Tensor]:
    """How clearly some head prefers a kind of token: "structure"."""
    tokens = now.batch.inputs
    maps = attention_maps(now.model, tokens, average=False).values()
    return {"structure": torch.stack([bracket_preference(each, tokens, WORLD.types) for each in maps]).amax(0)}


def dispensable_heads(now: Snapshot) -> dict[str, np.ndarray]:
    """How many heads can go one at a time ("dispensable_alone"), and how many together ("dispensable_together")."""
    members = [member.to(now.device) for member in now.model.members()]
    drops = [head_importance(member, now.batch).values() for member in members]
    return {
        "dispensable_alone": np.array([sum(drop <= 0.01 for drop in each) for each in drops]),
        "dispensable_together": np.array([len(prune_heads(member, now.batch)) for member in members]),
    }


def first_maps(now: Snapshot) -> dict[str, Tensor]:
    """Attention on the first word: "maps" (member, layer, head, query, key) and its "tokens"."""
    word = now.batch.inputs[:1]
    maps = attention_maps(now.model, word).values()
    return {"maps": torch.stack(list(maps), 1), "tokens": word.expand(len(now.model), -1)}


def copiers(*, layers: int, steps: int, seeds: int) -> Experiment:
    return Experiment(
        world=WORLD,
        model=TransformerConfig(vocab=WORLD.vocab, length=28, layers=layers, heads=2, width=48, init_std=0.05),
        training=Training(steps=steps, batch_size=64, lr=2e-3, evals=1, eval_examples=100),
        seeds=seeds,
        final=(accuracies, structure, dispensable_heads, first_maps),
    )


@dataclass(frozen=True)
class Settings:
    """Models of one and of four layers that copy brackets."""

    shallow: Experiment
    deep: Experiment


QUICK = Settings(copiers(layers=1, steps=150, seeds=8), copiers(layers=4, steps=150, seeds=8))
study = Study(
    "dyck/copying",
    title="Models that copy without attention keep structured attention maps",
    source=SOURCE,
    at="§5 and Figures 5–7",
    quick=QUICK,
    full=Settings(copiers(layers=1, steps=600, seeds=40), copiers(layers=4, steps=600, seeds=40)),
    null=Settings(untrained(QUICK.shallow), untrained(QUICK.deep)),
)


@dataclass(frozen=True)
class Results:
    shallow: Runs
    deep: Runs


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    return Results(*lab.train([settings.shallow, settings.deep], label="copying"))


@study.claim(Mean(above=0.96), at="Figure 5", paper="more than 96 %")
def copies_deep(results: Results) -> np.ndarray:
    """Models of four layers copy Dyck words.

    Share of copied tokens, four layers.
    """
    return results.deep.final["accuracy"]


@study.claim(Mean(above=0.9), at="Figure 6", paper="more than 90 %")
def copies_shallow(results: Results) -> np.ndarray:
    """Models of one layer copy Dyck words.

    Share of copied tokens, one layer.
    """
    return results.shallow.final["accuracy"]


@study.claim(Best(below=0.05, of=8, lowest=True), at="§5")
def attention_irrelevant(results: Results) -> np.ndarray:
    """There are trained models in which replacing all attention changes almost nothing.

    Drop of accuracy when one-layer models get uniform or no attention, best of eight models; 1 for models that copy
    less than 90 %.
    """
    final = results.shallow.final
    drop = final["accuracy"] - np.maximum(final["uniform"], final["zero"])
    return np.where(final["accuracy"] > 0.9, drop, 1.0)


@study.claim(Share(above=0.5), at="§5 and Figures 5–7")
def structured_and_irrelevant(results: Results) -> np.ndarray:
    """One and the same model copies without its attention and has structured maps.

    Share of one-layer models that copy more than 90 %, lose less than 5 % with uniform or no attention, and have a head
    that prefers a kind of token by more than 0.05.
    """
    return (attention_irrelevant(results) < 0.05) & (results.shallow.final["structure"] > 0.05)


@study.claim(Mean(above=0.05), at="Figures 5–7")
def still_structured(results: Results) -> np.ndarray:
    """Yet the maps are structured: some head clearly prefers one kind of token.

    Largest excess of attention mass on a kind of token or on the position itself, best head.
    """
    return np.maximum(results.shallow.final["structure"], results.deep.final["structure"])


@study.claim(Mean(above=0.0), at="discussion of head importance")
def importance_differs(results: Results) -> np.ndarray:
    """Heads that are each dispensable are not always dispensable together.

    Heads dispensable alone minus heads dispensable together, four-layer models.
    """
    return results.deep.final["dispensable_alone"] - results.deep.final["dispensable_together"]


@study.table
def copying(results: Results) -> Rows:
    columns = ("accuracy", "uniform", "random", "zero", "structure", "dispensable_alone", "dispensable_together")
    return [
        {"layers": layers, **{name: float(np.mean(runs.final[name])) for name in columns}}
        for layers, runs in ((1, results.shallow), (4, results.deep))
    ]


@study.figure
def maps(results: Results) -> Figure:
    """The first head of each layer, of the seed whose attention is most structured."""
    panels = [(runs, layer) for runs in (results.shallow, results.deep) for layer in range(runs.final["maps"].shape[1])]
    figure, axes = figures.new(columns=len(panels), width=2.7, height=2.8)
    for axis, (runs, layer) in zip(axes, panels):
        final, layers = runs.final, runs.final["maps"].shape[1]
        seed = int(final["structure"].argmax())
        title = f"{layers}-layer model, layer {layer + 1}\nuniform instead: {final['uniform'][seed]:.1%}"
        shared.draw_map(
            axis, final["maps"][seed, layer, 0], title, WORLD.render(torch.from_numpy(final["tokens"][seed]))
        )
    return figure
