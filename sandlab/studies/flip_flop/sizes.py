"""Depth, width and heads: training curves of small and large transformers on the same memory task."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sandlab import figures
from sandlab.lenses.flip_flop.tail_errors import best_so_far
from sandlab.studies.claims import Above, Below, Claim
from sandlab.studies.flip_flop.runs import SETS, SOURCE, Run, by_seed, split_seeds, train_run
from sandlab.studies.study import Lab, Outcome, study

Size = tuple[int, int, int]
RUN = Run(length=32, steps=800, checks=16)


@dataclass(frozen=True)
class Settings:
    """Sizes as (layers, width, heads), from small to large; the run they share."""

    seeds: int = 3
    sizes: tuple[Size, ...] = ((1, 32, 2), (2, 32, 2), (2, 64, 4))
    run: Run = RUN


@study(
    "flip-flop/sizes",
    title="No size is perfect: training curves from small to large",
    source=f"{SOURCE}, Figure 6",
    quick=Settings(),
    full=Settings(
        seeds=3,
        sizes=((1, 64, 4), (2, 64, 2), (2, 64, 4), (2, 128, 4), (4, 128, 4), (4, 256, 8), (6, 256, 8)),
        run=replace(RUN, length=128, steps=2500, checks=30, targets=50_000),
    ),
    claims=[
        Claim(
            "shallow",
            "The shallowest model does not converge even in distribution.",
            f"{SOURCE}, Figure 6",
            "read error in distribution of the smallest size",
            Above(0.01),
            paper="shallow models fail to converge",
        ),
        Claim(
            "learnt",
            "Some size answers its training distribution.",
            f"{SOURCE}, Figure 6",
            "smallest mean read error in distribution, over sizes",
            Below(0.005),
            exact=True,
        ),
        Claim(
            "no-size-perfect",
            "No size is free of errors in the tails.",
            f"{SOURCE}, Figure 6",
            "smallest mean of the larger tail error, over sizes",
            Above(0.0),
            exact=True,
            paper="all transformers err",
        ),
    ],
)
def sizes(config: Settings, lab: Lab) -> Outcome:
    """The same language, FFL(0.8), and the same schedule for transformers of growing depth, width and number of heads.

    Each panel is one size: thin lines are the seeds' errors on the worse tail, the thick line the median of the best so
    far, the dotted one the error in distribution. Two layers suffice in principle (`flip-flop/theorems`); one does not.
    Quick has strings of 32 tokens, full of 128. The published sweep runs from 2 layers of width 128 to 8 layers of
    width 1024 at 512 tokens; `--set sizes=…` takes any size.
    """
    runs = {
        size: replace(config.run, layers=size[0], width=size[1], heads=size[2], label=str(size))
        for size in config.sizes
    }
    jobs = [(size, part) for size, run in runs.items() for part in split_seeds(run, config.seeds, lab.device)]
    results: dict[Size, list[dict[str, Any]]] = {size: [] for size in runs}
    for (size, _), found in zip(jobs, lab.map(train_run, [part for _, part in jobs], label="sizes")):
        results[size].append(found)
    errors = {size: {name: by_seed(parts, "final", name) for name in SETS} for size, parts in results.items()}
    tails = {size: np.maximum(values["sparse"], values["dense"]) for size, values in errors.items()}
    measurements: dict[str, Any] = {
        "shallow": errors[config.sizes[0]]["in"],
        "learnt": min(float(values["in"].mean()) for values in errors.values()),
        "no-size-perfect": min(float(tail.mean()) for tail in tails.values()),
    }
    rows = [
        {
            **dict(zip(("layers", "width", "heads"), size)),
            "parameters": results[size][0]["parameters"],
            **{name: float(errors[size][name].mean()) for name in SETS},
        }
        for size in config.sizes
    ]
    return Outcome(measurements, {"curves": _draw(results)}, {"sizes": rows})


def _draw(results: dict[Size, list[dict[str, Any]]]) -> Any:
    columns = min(4, len(results))
    rows = -(-len(results) // columns)
    figure, axes = figures.new(columns=columns, rows=rows, width=2.7, height=2.3)
    for axis, (size, parts) in zip(axes, results.items()):
        curves = {name: np.concatenate([part["curves"][name] for part in parts]) for name in SETS}
        steps, worse = parts[0]["steps"], np.maximum(curves["sparse"], curves["dense"])
        for curve in worse:
            axis.plot(steps, curve, color=figures.COLOURS[0], linewidth=0.6, alpha=0.6, linestyle="-")
        axis.plot(steps, np.median(best_so_far(worse), 0), color=figures.COLOURS[0], linestyle="-", label="tail, best")
        axis.plot(steps, np.median(curves["in"], 0), color="#555555", linestyle=":", label="in distribution")
        axis.set_yscale("symlog", linthresh=1e-3)
        axis.set_ylim(0, 1)
        axis.set_title(f"depth {size[0]}, width {size[1]}, heads {size[2]}", fontsize=8.5)
        axis.tick_params(labelsize=7)
    for axis in axes[len(results) :]:
        axis.set_visible(False)
    axes[0].legend(fontsize=7)
    axes[0].set_ylabel("read error")
    return figure
