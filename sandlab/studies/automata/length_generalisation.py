"""Longer words than those of training: positions, shifts, scratchpads and recurrence."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sandlab import figures
from sandlab.studies.automata.runs import SOURCE, Probe, Run, Task, by_task, measured
from sandlab.studies.claims import Above, Below, Claim
from sandlab.studies.study import Lab, Outcome, study

SINE, NONE, SHIFT, LSTM, PAD, RECENT = (
    "sinusoidal positions", "no positions", "random shifts", "LSTM", "scratchpad", "scratchpad + recency",
)  # fmt: skip
BASE = Run(length=20, batch_size=32, lr=2e-3, steps=1000, tests=256)
LARGE = Run(length=24, layers=4, width=128, batch_size=48, lr=1e-3, steps=6000, tests=512)
DYCK, PARITY = Task("Dyck4_2", label="state"), Task("C2")
CHANGES: dict[str, dict[str, Any]] = {
    SINE: {},
    NONE: {"positions": "none"},
    SHIFT: {"shift": 60},
    LSTM: {"model": "lstm", "lr": 3e-3, "layers": 1, "batch_size": 64},
    PAD: {"scratchpad": True, "positions": "none", "lr": 1e-3, "layers": 2},
    RECENT: {"scratchpad": True, "positions": "alibi", "lr": 1e-3, "layers": 2},
}
"""Name → changes to the plain run. The two scratchpads differ in the recency bias only."""


@dataclass(frozen=True)
class Settings:
    """Seeds, the plain run, automata, tested lengths, and steps of the LSTM and the scratchpads."""

    seeds: int = 2
    run: Run = BASE
    tasks: tuple[Task, ...] = (DYCK,)
    lengths: tuple[int, ...] = (20, 24, 32, 40, 64)
    easy_steps: int = 500


@study(
    "automata/length-generalisation",
    title="Beyond the training length only recurrence, or a scratchpad that looks at recent tokens, is right",
    source=f"{SOURCE}, Figures 9 and 21",
    quick=Settings(),
    full=Settings(
        seeds=5, run=LARGE, tasks=(DYCK, PARITY), lengths=(8, 16, 24, 32, 40, 48, 64, 80, 96), easy_steps=2000
    ),
    claims=[
        Claim(
            "learnt",
            "The plain transformer solves brackets of the training length.",
            f"{SOURCE}, Figure 9",
            "best accuracy with sinusoidal positions at the training length, Dyck",
            Above(0.97),
            exact=True,
            paper="100 %",
        ),
        Claim(
            "cliff",
            "At twice the length it has fallen off a cliff.",
            f"{SOURCE}, Figure 9",
            "mean accuracy with sinusoidal positions at twice the training length, Dyck",
            Below(0.85),
            exact=True,
        ),
        Claim(
            "lstm",
            "An LSTM goes on without a loss.",
            f"{SOURCE}, Figure 9",
            "mean accuracy of the LSTM at twice the training length, Dyck",
            Above(0.99),
            exact=True,
            paper="100 %",
        ),
        Claim(
            "recency",
            "So does a transformer that writes the states down and prefers recent positions.",
            f"{SOURCE}, Figure 9",
            "mean accuracy of the scratchpad with recency bias at twice the training length, Dyck",
            Above(0.99),
            exact=True,
            paper="100 %",
        ),
        Claim(
            "scratchpad-alone",
            "The scratchpad alone is not enough: the recency bias makes the difference.",
            f"{SOURCE}, Figure 9",
            "mean accuracy at the longest test of the scratchpad with recency bias minus without, Dyck",
            Above(0.05),
            exact=True,
            paper="no improvement without the bias",
        ),
        Claim(
            "shifts",
            "Random shifts of the positions in training help.",
            f"{SOURCE}, Figure 9",
            "mean accuracy with shifts minus with plain sinusoids at twice the training length, Dyck",
            Above(0.0),
            exact=True,
            paper="clearly better, not perfect",
        ),
        Claim(
            "no-positions",
            "So does leaving the positions out.",
            f"{SOURCE}, Figure 9",
            "mean accuracy without positions minus with sinusoids at twice the training length, Dyck",
            Above(0.0),
            exact=True,
            paper="better, not perfect",
        ),
    ],
)
def length_generalisation(config: Settings, lab: Lab) -> Outcome:
    """Trained on short words, tested on words of up to several times the length.

    Six models per automaton: a transformer with sinusoidal positions; one without any; one whose positions are shifted
    by a random number from 0 to 60 in each training batch, so that it has met every code of the longer words; an LSTM;
    and two that write the state after each letter, with and without a recency bias (ALiBi), tested with the states they
    wrote themselves, without other position codes.

    Published: Dyck (4 deep, 2 types) and C₂, training length 40, tests from 8 to 128, 25 runs. Quick: Dyck,
    training length 20, tests up to 64, 2 layers of width 64, 1000 batches of 32 words (500 for LSTM and scratchpads), 2
    seeds. Full: both automata, training length 24, 4 layers of width 128, 6000 batches of 48 words (2000), tests up to
    96, 5 seeds.

    What to look for: the dotted line is the training length. Right of it the sinusoidal line falls at once, shifts and
    no positions fall later, the scratchpad without recency falls with the length, LSTM and recency stay at the top.
    With a scratchpad and no bias the model must still find "the latest state" among ever more tokens: the bias
    tells it where to look, and then one step of the automaton is all it has to compute.
    """
    probes = tuple(Probe(length) for length in config.lengths)
    results: dict[str, dict[Task, np.ndarray]] = {}
    settings, names = [], []
    for name, changes in CHANGES.items():
        run = replace(config.run, probes=probes, **changes)
        if name in (LSTM, PAD, RECENT):
            run = replace(run, steps=config.easy_steps)
        if run.scratchpad:  # written letter by letter: fewer words will do
            run = replace(run, tests=min(64, run.tests))
        # A scratchpad's tokens differ from automaton to automaton: these do not share a population.
        groups = [(task,) for task in config.tasks] if run.scratchpad else [config.tasks]
        settings += [replace(run, tasks=group) for group in groups]
        names += [name] * len(groups)
    for name, table in zip(names, by_task(lab, settings, config.seeds, "longer words")):
        results.setdefault(name, {}).update(table["probes"])
    rows = [
        {"automaton": task.machine, "model": name} | _row(config.lengths, values.mean(0))
        for name, tables in results.items()
        for task, values in tables.items()
    ]
    found, lacking = _measure(config, results)
    return Outcome(found, {"lengths": _draw(config, results)}, {"lengths": rows}, unmeasured=lacking)


def _measure(config: Settings, results: dict[str, dict[Task, np.ndarray]]) -> tuple[dict[str, float], dict[str, str]]:
    brackets = {name: tables[config.tasks[0]] for name, tables in results.items()}
    place = {length: index for index, length in enumerate(config.lengths)}
    usual, double, last = config.run.length, 2 * config.run.length, config.lengths[-1]

    def mean(name: str, length: int) -> float:
        return float(brackets[name][:, place[length]].mean())

    return measured(
        {
            "learnt": lambda: float(brackets[SINE][:, place[usual]].max()),
            "cliff": lambda: mean(SINE, double),
            "lstm": lambda: mean(LSTM, double),
            "recency": lambda: mean(RECENT, double),
            "scratchpad-alone": lambda: mean(RECENT, last) - mean(PAD, last),
            "shifts": lambda: mean(SHIFT, double) - mean(SINE, double),
            "no-positions": lambda: mean(NONE, double) - mean(SINE, double),
        }
    )


def _row(lengths: tuple[int, ...], means: np.ndarray) -> dict[str, float]:
    return {f"length {length}": float(mean) for length, mean in zip(lengths, means)}


def _draw(config: Settings, results: dict[str, dict[Task, np.ndarray]]) -> Any:
    figure, axes = figures.new(columns=len(config.tasks), width=5.2, height=3.4)
    for axis, task in zip(axes, config.tasks):
        for name, tables in results.items():
            figures.band(axis, config.lengths, tables[task], label=name, marker="o", markersize=3)
        axis.axvline(config.run.length, color="#555555", linestyle=":")
        axis.set(title=task.machine, xlabel="length of the tested words", ylabel="token accuracy", ylim=(None, 1.02))
    axes[-1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure
