"""Three embeddings of a minimal first layer: equal accuracy, different attention."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from sandlab import figures
from sandlab.studies.claims import Above, Claim
from sandlab.studies.dyck.runs import SOURCE, Run, gather, layer_maps, split_seeds, train_run
from sandlab.studies.study import Lab, Outcome, study

RUN = Run(model="minimal", steps=900)
PANELS: dict[str, tuple[str, dict[str, Any]]] = {
    "a": ("type and depth one-hot, attention only", {"embedding": "type-depth", "lr": 1e-2, "residual": False}),
    "b": ("type and depth one-hot", {"embedding": "type-depth", "lr": 3e-3, "residual": True}),
    "c": ("type beside an angle", {"embedding": "type-angle", "lr": 3e-3, "residual": True}),
    "d": ("type beside depth", {"embedding": "type+depth", "lr": 3e-3, "residual": True}),
}
"""Panel → what it shows, and the changes to the run."""


@dataclass(frozen=True)
class Settings:
    seeds: int = 3
    run: Run = RUN


def _accuracy_claim(panel: str) -> Claim:
    return Claim(
        f"accurate-{panel}",
        f"Panel ({panel}), {PANELS[panel][0]}: the model closes brackets rightly.",
        f"{SOURCE}, Figure 3({panel})",
        "closing accuracy in distribution",
        Above(0.97),
        paper="at least 97 %",
    )


@study(
    "dyck/embeddings",
    title="The embedding decides how attention looks, not how well it works",
    source=f"{SOURCE}, Figure 3",
    quick=Settings(),
    full=Settings(seeds=10, run=replace(RUN, width=500, mlp_width=500, steps=1000)),
    claims=[
        *(_accuracy_claim(panel) for panel in PANELS),
        Claim(
            "panels-differ",
            "The maps of any two panels differ.",
            f"{SOURCE}, Figure 3",
            "smallest mean ‖A₁ − A₂‖² between models of two panels",
            Above(0.1),
            exact=True,
            paper="visibly different",
        ),
    ],
)
def embeddings(config: Settings, lab: Lab) -> Outcome:
    """A first layer that has done its work perfectly gives each bracket an embedding of its type and depth.

    (a) one coordinate per (type, depth), one attention layer without residual link or feed-forward block, rate 1e-2;
    (b) the same embedding with residual link and ReLU block, rate 3e-3; (c) a one-hot bracket beside (cos θ_d, sin θ_d)
    with θ_d = arctan(d/(D + 2 − d)); (d) a one-hot bracket beside a one-hot depth. Full has width 500 as published,
    quick 50. One map per panel on START (((())))[[[[]]]]; all of them close brackets rightly.
    """
    jobs = [
        (panel, part)
        for panel, (_, changes) in PANELS.items()
        for part in split_seeds(replace(config.run, **changes), config.seeds, lab.device, size=config.seeds)
    ]
    results: dict[str, list[dict[str, Any]]] = {panel: [] for panel in PANELS}
    for (panel, _), found in zip(jobs, lab.map(train_run, [part for _, part in jobs], label="embeddings")):
        results[panel].append(found)
    maps = {panel: layer_maps(parts)[-1] for panel, parts in results.items()}
    gaps = {pair: between(maps[pair[0]], maps[pair[1]]) for pair in combinations(PANELS, 2)}
    measurements: dict[str, Any] = {f"accurate-{panel}": gather(parts, "in_argmax") for panel, parts in results.items()}
    measurements["panels-differ"] = min(gaps.values())
    rows = [
        {
            "panel": panel,
            "embedding": PANELS[panel][0],
            "accuracy": float(gather(parts, "in_argmax").mean()),
            "long accuracy": float(gather(parts, "long_argmax").mean()),
            "violation": float(gather(parts, "balance").mean()),
        }
        for panel, parts in results.items()
    ]
    distances = [{"panels": "".join(pair), "mean squared distance": gap} for pair, gap in gaps.items()]
    return Outcome(measurements, {"maps": _draw(maps)}, {"models": rows, "distances": distances})


def between(first: np.ndarray, second: np.ndarray) -> float:
    """Mean squared Frobenius distance between maps of two groups (seed, query, key)."""
    return float(((first[:, None] - second[None]) ** 2).sum((-1, -2)).mean())


def _draw(maps: dict[str, np.ndarray]) -> Any:
    figure, axes = figures.new(columns=len(maps), width=2.7, height=2.9)
    for axis, (panel, patterns) in zip(axes, maps.items()):
        words = PANELS[panel][0].replace(", ", ",\n")
        figures.heatmap(axis, patterns[0], title=f"({panel}) {words}", low=0.0, high=1.0, bar=False)
        axis.title.set_fontsize(9)
        axis.set(xlabel="key", ylabel="query" if panel == "a" else "")
    return figure
