"""Sinusoidal or linear positions: which automata like which code."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sandlab import figures
from sandlab.studies.automata.runs import SOURCE, Probe, Run, Task, by_task
from sandlab.studies.claims import Above, Claim
from sandlab.studies.study import Lab, Outcome, study

CODES = ("sinusoidal", "linear")
GRID = Task("Grid9")
ABAB = (Task("abab", label="accept", share=1.0), Task("abab", label="accept", share=0.5))
WALK = Run(tasks=(GRID,), length=24, batch_size=32, lr=2e-3, steps=900)
LANGUAGE = Run(tasks=ABAB, length=20, batch_size=32, steps=400)
NAMES = {GRID: "Grid₉", ABAB[0]: "abab (1)", ABAB[1]: "abab (2)"}


@dataclass(frozen=True)
class Settings:
    """Seeds, the walk's run and the language's run."""

    seeds: int = 3
    grid: Run = WALK
    abab: Run = LANGUAGE


@study(
    "automata/position-codes",
    title="Sinusoids suit a language with a rhythm, and hurt a walk beyond its training length",
    source=f"{SOURCE}, Figure 22",
    quick=Settings(),
    full=Settings(
        seeds=8,
        grid=Run(tasks=(GRID,), length=40, layers=4, width=128, batch_size=32, lr=1e-3, steps=5000),
        abab=Run(tasks=ABAB, length=40, layers=4, width=128, batch_size=32, lr=5e-4, steps=3000),
    ),
    claims=[
        Claim(
            "rhythm",
            "For acceptance of abab… sinusoidal positions are better at the training length.",
            f"{SOURCE}, Figure 22",
            "mean accuracy of sinusoidal minus linear positions, abab (1) and (2), training length",
            Above(0.03),
            exact=True,
            paper="clearly better at 40",
        ),
        Claim(
            "rhythm-fades",
            "At twice the length the advantage is smaller.",
            f"{SOURCE}, Figure 22",
            "that difference minus the same at twice the training length",
            Above(0.0),
            exact=True,
            paper="gap nearly closed at 80",
        ),
        Claim(
            "walk",
            "On the walk sinusoidal positions lose more beyond the training length than linear ones.",
            f"{SOURCE}, Figure 22",
            "fall from the training length to twice that, sinusoidal minus linear, Grid₉",
            Above(0.0),
            exact=True,
            paper="equal at 40, sinusoidal much worse at 80",
        ),
    ],
)
def position_codes(config: Settings, lab: Lab) -> Outcome:
    """The same transformer with two codes of position t: sinusoids, or a vector that grows in proportion to t.

    Acceptance of abab… depends on t mod 4: sinusoids hold that, a line does not. The walk between walls needs no
    position at all beyond "later is nearer": sinusoids offer features that do not continue beyond the training length.

    Published: length 40 and 80, 25 runs. Quick: Grid₉ with 24 letters (900 batches of 32 words), abab with 20 (400), 2
    layers of width 64, 3 seeds. Full: 40 letters, 4 layers of width 128, 5000 and 3000 batches, 8 seeds.

    The source does not say which vector its linear code multiplies. The same number on every coordinate would be no
    code: layer normalisation subtracts the mean over coordinates, and such a model is exactly one without positions.
    Here the vector alternates between + and −, and reaches the norm of a token vector at the training length.

    What to look for: left of each pair is the accuracy at the training length, right at twice that.
    """
    runs = [
        replace(run, positions=code, probes=(Probe(run.length), Probe(2 * run.length)))
        for run in (config.grid, config.abab)
        for code in CODES
    ]
    found = by_task(lab, runs, config.seeds, "position codes")
    scores: dict[tuple[Task, str], np.ndarray] = {}
    for run, table in zip(runs, found):
        scores |= {(task, run.positions): values for task, values in table["probes"].items()}
    means = {key: values.mean(0) for key, values in scores.items()}
    gaps = np.mean([means[task, "sinusoidal"] - means[task, "linear"] for task in ABAB], 0)
    falls = {code: float(means[GRID, code][0] - means[GRID, code][1]) for code in CODES}
    measurements = {
        "rhythm": float(gaps[0]),
        "rhythm-fades": float(gaps[0] - gaps[1]),
        "walk": falls["sinusoidal"] - falls["linear"],
    }
    rows = [
        {
            "task": NAMES[task],
            "positions": code,
            "training length": float(means[task, code][0]),
            "twice that": float(means[task, code][1]),
        }
        for task, code in scores
    ]
    return Outcome(measurements, {"codes": _draw(scores)}, {"codes": rows})


def _draw(scores: dict[tuple[Task, str], np.ndarray]) -> Any:
    figure, axes = figures.new(columns=len(NAMES), width=2.8, height=3.2)
    for axis, (task, name) in zip(axes, NAMES.items()):
        for colour, code in enumerate(CODES):
            values = scores[task, code]
            figures.band(axis, (0, 1), values, label=code, marker="o", color=figures.COLOURS[colour])
        axis.set_xticks((0, 1), ("training\nlength", "twice\nthat"))
        axis.set(title=name, xlim=(-0.3, 1.3), ylim=(None, 1.02))
    axes[0].set_ylabel("token accuracy")
    axes[0].legend()
    return figure
