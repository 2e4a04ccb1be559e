"""More layers, more types, deeper brackets: how attention varies between seeds, layer by layer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from sandlab import figures
from sandlab.lenses.dyck.bracket_attention import random_attention_variation
from sandlab.studies.claims import Above, Below, Claim
from sandlab.studies.dyck.runs import SOURCE, Run, apart, gather, layer_maps, split_seeds, train_run
from sandlab.studies.study import Lab, Outcome, study

Cell = tuple[int, int, int]
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
"""(types, depth, layers) → mean variation of each layer (Wen et al. 2023, extended version, table of variations)."""
TOKENS = 19
RUN = Run(arrangement="theory", steps=700, sentences=40, long=100, long_tests=10)


@dataclass(frozen=True)
class Settings:
    """Seeds of each cell, the run, the cells as (types, depth, layers)."""

    seeds: int = 3
    run: Run = RUN
    cells: tuple[Cell, ...] = ((2, 4, 2), (2, 4, 3))


def _name(cell: Cell) -> str:
    return "cell-{}-{}-{}".format(*cell)


def _cell_claim(cell: Cell) -> Claim:
    types, depth, layers = cell
    return Claim(
        _name(cell),
        f"{types} types, depth {depth}, {layers} layers: the higher the layer, the more its attention varies.",
        f"{SOURCE}, extended version, table of variations",
        "ln of the smallest ratio of a layer's variation to that of the layer below, one value per seed",
        Above(0.0),
        paper=" / ".join(f"{value:.3f}" for value in PUBLISHED[cell]),
        presets=("quick", "full") if cell in Settings().cells else ("full",),
    )


@study(
    "dyck/variation-table",
    title="The higher the layer, the more its attention depends on the seed",
    source=f"{SOURCE}, extended version, table of variations and Figure on third layers",
    quick=Settings(),
    full=Settings(seeds=20, run=replace(RUN, steps=2000), cells=tuple(PUBLISHED)),
    claims=[
        Claim(
            "accurate",
            "All of them close brackets rightly.",
            f"{SOURCE}, extended version",
            "closing accuracy in distribution",
            Above(0.97),
            paper="above 97 %",
        ),
        Claim(
            "first-layer",
            "First-layer attention is nearly uniform, whatever the seed.",
            f"{SOURCE}, extended version, table of variations",
            "largest mean variation of a first layer, over cells",
            Below(0.5),
            exact=True,
            paper="0.047 to 0.225",
        ),
        Claim(
            "last-layer",
            "Last-layer attention varies more than random maps do.",
            f"{SOURCE}, extended version, table of variations",
            "smallest mean variation of a last layer over that of random maps, over cells",
            Above(1.0),
            exact=True,
            paper="7.0 to 25.7 against 3.33",
        ),
        *(_cell_claim(cell) for cell in PUBLISHED),
    ],
)
def variation_table(config: Settings, lab: Lab) -> Outcome:
    """Transformers of two and three layers on brackets of two and three types, depth four and eight.

    Layers are those of the theory: the norm sees the attention's output alone and the stream is added after it. For
    each cell, ‖A₁ − A₂‖²_F is averaged over pairs of seeds and over 40 random prefixes of 19 tokens (START included),
    the same for all architectures. At most it is 2 per row, 36 in all; random causal maps are 4(H₂₀ − 1) − 2H₁₉ = 3.3
    apart. The bars show every layer with the published value as a line; the maps show the last layer of the deepest
    model for several seeds on one prefix. Quick trains the first two cells with three seeds.
    """
    runs = {cell: replace(config.run, types=cell[0], depth=cell[1], layers=cell[2]) for cell in config.cells}
    jobs = [(cell, part) for cell, run in runs.items() for part in split_seeds(run, config.seeds, lab.device, size=1)]
    results: dict[Cell, list[dict[str, Any]]] = {cell: [] for cell in runs}
    for (cell, _), found in zip(jobs, lab.map(train_run, [part for _, part in jobs], label="dyck table")):
        results[cell].append(found)
    varied = {cell: [apart(maps) for maps in layer_maps(parts, "sentence_maps")] for cell, parts in results.items()}
    baseline = random_attention_variation(TOKENS)
    measurements: dict[str, Any] = {
        "accurate": np.concatenate([gather(parts, "in_argmax") for parts in results.values()]),
        "first-layer": max(float(layers[0].mean()) for layers in varied.values()),
        "last-layer": min(float(layers[-1].mean()) for layers in varied.values()) / baseline,
    }
    for cell, layers in varied.items():
        ratios = [np.log(above / np.maximum(below, 1e-12)) for below, above in pairwise(layers)]
        measurements[_name(cell)] = np.min(ratios, 0)
    rows = [_row(cell, results[cell], varied[cell]) for cell in config.cells]
    pictures = {"layers": _bars(varied, baseline), "maps": _maps(results, config)}
    return Outcome(measurements, pictures, {"variation": rows})


def _row(cell: Cell, parts: list[dict[str, Any]], layers: list[np.ndarray]) -> dict[str, Any]:
    row: dict[str, Any] = dict(zip(("types", "depth", "layers"), cell))
    row["accuracy"] = float(gather(parts, "in_argmax").mean())
    for place, values in enumerate(layers):
        row[f"layer {place + 1}"] = float(values.mean())
        row[f"layer {place + 1}, published"] = PUBLISHED[cell][place]
    return row


def _bars(varied: dict[Cell, list[np.ndarray]], baseline: float) -> Any:
    figure, (axis,) = figures.new(width=max(4.8, 1.1 * len(varied) + 1.6), height=3.2)
    for place, (cell, layers) in enumerate(varied.items()):
        for layer, values in enumerate(layers):
            x = place + (layer - 1) * 0.25
            axis.bar(x, values.mean(), width=0.22, color=figures.COLOURS[layer], label=_label(place, cell, layer))
            axis.plot([x - 0.11, x + 0.11], [PUBLISHED[cell][layer]] * 2, color="#222222", linewidth=1.6, linestyle="-")
    axis.axhline(baseline, color="#555555", linestyle=":")
    axis.annotate(
        "random maps", (1.0, baseline), xycoords=("axes fraction", "data"), ha="right", va="bottom", fontsize=8
    )
    axis.set_yscale("log")
    names = [f"{types} types\ndepth {depth}\n{layers} layers" for types, depth, layers in varied]
    axis.set_xticks(range(len(names)), names, fontsize=8)
    axis.set(ylabel="mean ‖A₁ − A₂‖² between seeds", title="black lines: published")
    axis.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure


def _label(place: int, cell: Cell, layer: int) -> str | None:
    """Each layer is named once: the first two by the first cell, the third by the second."""
    named = place == 0 if layer < 2 else place == 1
    return f"layer {layer + 1}" if named else None


def _maps(results: dict[Cell, list[dict[str, Any]]], config: Settings) -> Any:
    deepest = max(config.cells, key=lambda cell: cell[2])
    maps = layer_maps(results[deepest], "sentence_maps")[-1]
    shown = min(4, len(maps))
    figure, axes = figures.new(columns=shown, width=2.5, height=2.6)
    for seed, axis in enumerate(axes):
        figures.heatmap(axis, maps[seed, 0], title=f"layer {deepest[2]}, seed {seed}", low=0.0, high=1.0, bar=False)
        axis.set(xlabel="key", ylabel="query" if seed == 0 else "")
    return figure
