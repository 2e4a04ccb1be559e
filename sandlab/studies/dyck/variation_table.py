"""More layers, more types, deeper brackets: how attention varies between seeds, layer by layer.

Transformers of two and three layers on brackets of two and three types, depth four and eight.

Layers are those of the theory: the norm sees the attention's output alone and the stream is added after it. For
each cell, ‖A₁ − A₂‖²_F is averaged over pairs of seeds and over 40 random prefixes of 19 tokens (START included),
the same for all architectures. At most it is 2 per row, 36 in all; random causal maps are 4(H₂₀ − 1) − 2H₁₉ = 3.3
apart. The bars show every layer with the published value as a line; the maps show the last layer of the deepest
model for several seeds on one prefix. Quick trains the first two cells with six seeds.

**What was learnt** (2026-11-15). The order of the layers is there before training: with initial weights (the null) the
variation grows from 0.001 to 0.016 to 0.099. What training adds is its size, so a last layer that varies by less than 1
does not count.

All eight cells with 20 seeds (one H200, 2026-11-18): in each of them the layers come in the published order. First
layers vary by 0.01 to 0.18 (0.05 to 0.23), last ones by 8.5 to 13.5 with two layers (7.0 to 9.3) and by 13.8 to 18.1
with three (23.6 to 25.7); second layers of three vary more here (7.1 to 11.5 against 5.1 to 8.4).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TypeAlias

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from sandlab import figures
from sandlab.learning.experiment import Experiment, Runs, Snapshot
from sandlab.lenses.dyck.bracket_attention import random_attention_variation
from sandlab.models.transformer import TransformerConfig
from sandlab.studies.claims import Mean, NotMeasured, Order
from sandlab.studies.dyck import _shared as shared
from sandlab.studies.dyck._shared import SOURCE, training
from sandlab.studies.nulls import untrained
from sandlab.studies.study import Lab, Row, Rows, Study
from sandlab.worlds.dyck.language import Dyck

Cell: TypeAlias = tuple[int, int, int]
"""Types, depth, layers."""
PUBLISHED: dict[Cell, tuple[float, ...]] = {
    (2, 4, 2): (0.047, 7.721),
    (2, 4, 3): (0.070, 5.072, 24.063),
    (2, 8, 2): (0.087, 7.583),
    (2, 8, 3): (0.059, 5.560, 23.590),
    (3, 4, 2): (0.182, 9.313),
    (3, 4, 3): (0.225, 8.426, 25.749),
    (3, 8, 2): (0.178, 7.000),
    (3, 8, 3): (0.154, 6.280, 25.451),
}
"""Mean variation of each layer (Wen et al. 2023, extended version, table of variations)."""
QUICK: tuple[Cell, ...] = ((2, 4, 2), (2, 4, 3))
TABLE = "extended version, table of variations"
PREFIXES, TOKENS = 40, 19


def prefix_maps(now: Snapshot) -> dict[str, Tensor]:
    """Attention on random prefixes: "prefix_maps" (member, layer, prefix, query, key)."""
    assert isinstance(now.world, Dyck)
    batch = Dyck(now.world.types, now.world.depth, TOKENS - 1).sample(PREFIXES, rng=now.rng(3))
    return {"prefix_maps": shared.layer_maps(now.model, torch.cat([batch.inputs, batch.targets[:, -1:]], 1))}


def models(cell: Cell, *, steps: int, seeds: int) -> Experiment:
    """The models of one cell of the table."""
    types, depth, layers = cell
    world = Dyck(types, depth, words="bounded")
    model = shared.transformer(world, layers=layers, norm="attention-branch")
    return Experiment(world, model, training(steps), seeds, final=(shared.closing, prefix_maps))


@dataclass(frozen=True)
class Settings:
    """One experiment for each cell of the table."""

    cells: tuple[Experiment, ...]


study = Study(
    "dyck/variation-table",
    title="The higher the layer, the more its attention depends on the seed",
    source=SOURCE,
    at="extended version, table of variations and Figure on third layers",
    quick=Settings(tuple(models(cell, steps=700, seeds=6) for cell in QUICK)),
    full=Settings(tuple(models(cell, steps=2000, seeds=20) for cell in PUBLISHED)),
    null=Settings(tuple(untrained(models(cell, steps=700, seeds=6)) for cell in QUICK)),
)


@dataclass(frozen=True)
class Results:
    """The runs of each cell."""

    runs: dict[Cell, Runs]

    @cached_property
    def variation(self) -> dict[Cell, list[np.ndarray]]:
        """Per layer, ‖A₁ − A₂‖² between each seed and the others."""
        maps = {cell: runs.final["prefix_maps"] for cell, runs in self.runs.items()}
        return {cell: [shared.variation(each[:, layer]) for layer in range(cell[2])] for cell, each in maps.items()}


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    runs = lab.train(settings.cells, label="dyck table")
    return Results({_cell(experiment): found for experiment, found in zip(settings.cells, runs)})


def _cell(experiment: Experiment) -> Cell:
    world, model = experiment.world, experiment.model
    assert isinstance(world, Dyck) and isinstance(model, TransformerConfig)
    return world.types, world.largest_depth, model.layers


@study.claim(Mean(above=0.97), at="extended version", paper="above 97 %")
def accurate(results: Results) -> np.ndarray:
    """All of them close brackets correctly.

    Closing accuracy in distribution.
    """
    return np.concatenate([runs.final["accuracy"] for runs in results.runs.values()])


@study.claim(Order(above=-0.5), at=TABLE, paper="0.047 to 0.225")
def first_layer(results: Results) -> np.ndarray:
    """First-layer attention is nearly uniform, whatever the seed.

    Minus the mean variation of a first layer, smallest over cells; 1 less for models that close less than 97 %.
    """
    first = [
        shared.jackknife(np.negative, layers[0]) - (results.runs[cell].final["accuracy"] < 0.97)
        for cell, layers in results.variation.items()
    ]
    return shared.one_below_the_other(first)


@study.claim(Order(above=1.0), at=TABLE, paper="7.0 to 25.7 against 3.33")
def last_layer(results: Results) -> np.ndarray:
    """Last-layer attention varies more than random maps do.

    Mean variation of a last layer over that of random maps, smallest over cells.
    """
    random = random_attention_variation(TOKENS)
    last = [shared.jackknife(lambda mean: mean / random, layers[-1]) for layers in results.variation.values()]
    return shared.one_below_the_other(last)


def smallest_increase(*layers: np.ndarray) -> np.ndarray:
    """Ln of the smallest ratio of consecutive layers' variations; 0 when the last layer hardly varies."""
    ratios = [np.log(above / np.maximum(below, 1e-12)) for below, above in pairwise(layers)]
    return np.where(layers[-1] >= 1.0, np.min(ratios, 0), 0.0)


def increases(cell: Cell) -> Callable[[Results], np.ndarray]:
    def measure(results: Results) -> np.ndarray:
        if cell not in results.runs:
            raise NotMeasured("this cell of the table was not trained")
        return shared.jackknife(smallest_increase, *results.variation[cell])

    statement = "{} types, depth {}, {} layers: the higher the layer, the more its attention varies.".format(*cell)
    quantity = (
        "Ln of the smallest ratio of a layer's variation to that of the layer below; 0 when the last layer varies by "
        "less than 1, as with initial weights, where the order is the same."
    )
    measure.__doc__ = f"{statement}\n\n{quantity}"
    return measure


for cell, published in PUBLISHED.items():
    study.claim(
        Mean(above=0.0),
        at=TABLE,
        paper=" / ".join(f"{value:.3f}" for value in published),
        presets=("quick", "full") if cell in QUICK else ("full",),
        id="cell-{}-{}-{}".format(*cell),
    )(increases(cell))


@study.table
def variation(results: Results) -> Rows:
    rows = []
    for (types, depth, count), runs in results.runs.items():
        row: Row = {"types": types, "depth": depth, "layers": count, "accuracy": float(runs.final["accuracy"].mean())}
        values = zip(results.variation[types, depth, count], PUBLISHED.get((types, depth, count), (None,) * count))
        for layer, (found, published) in enumerate(values, start=1):
            row |= {f"layer {layer}": float(found.mean()), f"layer {layer}, published": published}
        rows.append(row)
    return rows


@study.figure
def layers(results: Results) -> Figure:
    varied, baseline = results.variation, random_attention_variation(TOKENS)
    figure, (axis,) = figures.new(width=max(4.8, 1.1 * len(varied) + 1.6), height=3.2)
    for index, (cell, each) in enumerate(varied.items()):
        for layer, values in enumerate(each):
            _bar(axis, index + (layer - 1) * 0.25, layer, values, PUBLISHED.get(cell))
    axis.axhline(baseline, color="#555555", linestyle=":")
    here = axis.get_yaxis_transform()
    axis.text(1.0, baseline, "random maps", transform=here, ha="right", va="bottom", fontsize=8)
    axis.set_yscale("log")
    names = [f"{types} types\ndepth {depth}\n{layers} layers" for types, depth, layers in varied]
    axis.set_xticks(range(len(names)), names, fontsize=8)
    axis.set(ylabel="mean ‖A₁ − A₂‖² between seeds", title="black lines: published")
    axis.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def _bar(axis: Axes, x: float, layer: int, values: np.ndarray, published: tuple[float, ...] | None) -> None:
    """One layer's bar and its published line; each layer is named once in the legend."""
    name = f"layer {layer + 1}"
    named = name in axis.get_legend_handles_labels()[1]
    axis.bar(x, values.mean(), width=0.22, color=figures.COLOURS[layer], label=None if named else name)
    if published is not None:
        axis.plot([x - 0.11, x + 0.11], [published[layer]] * 2, color="#222222", linewidth=1.6, linestyle="-")


@study.figure
def maps(results: Results) -> Figure:
    deepest = max(results.runs, key=lambda cell: cell[2])
    last = results.runs[deepest].final["prefix_maps"][:, -1, 0]
    return shared.draw_seeds(last, f"layer {deepest[2]}")
