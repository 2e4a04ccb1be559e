"""Parity outside its training distribution: other frequencies, other counts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sandlab import figures
from sandlab.studies.automata.runs import SOURCE, Probe, Run, Task, by_task, measured
from sandlab.studies.claims import Above, Claim
from sandlab.studies.study import Lab, Outcome, study

PLAIN, SHIFTED, RECURRENT, PAD = "transformer", "random shifts", "LSTM", "scratchpad + recency"
SMALL = {
    PLAIN: Run(steps=1000),
    RECURRENT: Run(model="lstm", steps=250, lr=3e-3),
    PAD: Run(scratchpad=True, positions="alibi", steps=300, batch_size=32, tests=200),
}
LARGE = {
    PLAIN: Run(length=24, layers=6, width=128, steps=8000, lr=5e-4),
    SHIFTED: Run(length=24, layers=6, width=128, steps=8000, lr=5e-4, shift=60),
    RECURRENT: Run(model="lstm", length=24, width=128, steps=1500, lr=3e-3),
    PAD: Run(length=24, scratchpad=True, positions="alibi", steps=1500, batch_size=32),
}


@dataclass(frozen=True)
class Settings:
    """Seeds, the compared runs by name (in order), probabilities of the letter 1, and numbers of ones."""

    seeds: int = 5
    names: tuple[str, ...] = tuple(SMALL)
    runs: tuple[Run, ...] = tuple(SMALL.values())
    ones: tuple[float, ...] = (0.05, 0.25, 0.5, 0.75, 0.95)
    counts: tuple[int, ...] = (0, 2, 4, 6, 8, 10, 12)


@study(
    "automata/ood-parity",
    title="Parity is solved at the training frequency of ones, and lost away from it",
    source=f"{SOURCE}, Figures 8 and 20",
    quick=Settings(),
    full=Settings(
        seeds=8,
        names=tuple(LARGE),
        runs=tuple(LARGE.values()),
        ones=(0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95),
        counts=tuple(range(0, 25, 2)),
    ),
    claims=[
        Claim(
            "in-distribution",
            "A transformer solves parity on words like those it was trained on.",
            f"{SOURCE}, Figure 8",
            "token accuracy at probability ½ of a one: the best seed",
            Above(0.99),
            exact=True,
            paper="100 %",
        ),
        Claim(
            "more-ones",
            "It fails when ones are more frequent.",
            f"{SOURCE}, Figure 8",
            "accuracy at probability ½ minus accuracy at 0.95, mean over the seeds that solve parity in distribution",
            Above(0.02),
            paper="sharp falls on both sides",
        ),
        Claim(
            "counts",
            "Accuracy falls with the number of ones beyond the usual one.",
            f"{SOURCE}, Figure 20",
            "accuracy on words with half ones minus accuracy on words of ones only, mean over the same seeds",
            Above(0.02),
        ),
        Claim(
            "lstm-flat",
            "An LSTM keeps its accuracy at every frequency and count.",
            f"{SOURCE}, Figure 8",
            "smallest accuracy of the LSTM over frequencies and counts, mean over seeds",
            Above(0.99),
            paper="100 %",
        ),
        Claim(
            "scratchpad-flat",
            "So does a transformer that writes the states down and prefers recent positions.",
            f"{SOURCE}, Figure 8",
            "smallest accuracy of the scratchpad with recency bias over frequencies and counts, mean over seeds",
            Above(0.99),
            paper="100 %",
        ),
        Claim(
            "fewer-ones",
            "It also fails when ones are rarer.",
            f"{SOURCE}, Figure 8",
            "accuracy at probability ½ minus accuracy at 0.05, mean over the seeds that solve parity in distribution",
            Above(0.01),
            paper="worse at low counts than at high ones",
            presets=("full",),
        ),
    ],
)
def ood_parity(config: Settings, lab: Lab) -> Outcome:
    """Does the model compute parity, or count and look the parity up?

    Training words have independent letters with Pr[σ = 1] = ½. A circuit that counts the ones and reads the parity off
    a table solves them with a table of the usual counts, and nothing forces it to be right for unusual ones. If the
    table holds the counts M, accuracy at position t is Σ_{m ∈ M} Bin(t, p)(m) plus chance on the rest. A model that
    follows the state letter by letter does not care.

    Tested on fresh words with other probabilities of a one, and on words with a given number of ones at random places;
    all positions count. Compared: the transformer, the same with random shifts of its positions (full), an LSTM, and a
    transformer that writes the states between the letters, has no position code but a recency bias (ALiBi), and is
    tested with the states it wrote itself.

    Published: length 40, 8 layers of width 512, 25 runs. Quick: 12 letters, 2 layers of width 64, 1000 batches of 64
    words, 5 seeds; only the side of many ones fails there: a position at most has 12 ones before it, and few ones occur
    at early positions of every training word. Full: 24 letters, 6 layers of width 128, 8000 batches, 8 seeds.

    What to look for: the dark line falls to the right of the training point (dotted), the other lines stay on top.
    """
    probes = (
        *(Probe(config.runs[0].length, ones=share) for share in config.ones),
        *(Probe(config.runs[0].length, count=count) for count in config.counts),
    )
    settings = [replace(run, probes=probes) for run in config.runs]
    found = by_task(lab, settings, config.seeds, "parity elsewhere")
    scores = {name: table["probes"][Task()] for name, table in zip(config.names, found)}
    shares = len(config.ones)
    rows = [
        {"model": name, "test": _name(probe), "mean": float(column.mean()), "worst": float(column.min())}
        for name, values in scores.items()
        for probe, column in zip(probes, values.T)
    ]
    figure = _draw(config, {name: (values[:, :shares], values[:, shares:]) for name, values in scores.items()})
    found_here, lacking = _measure(config, scores)
    return Outcome(found_here, {"frequencies and counts": figure}, {"accuracy": rows}, unmeasured=lacking)


def _name(probe: Probe) -> str:
    return f"{probe.count} ones" if probe.count is not None else f"Pr[1] = {probe.ones:g}"


def _measure(config: Settings, scores: dict[str, np.ndarray]) -> tuple[dict[str, Any], dict[str, str]]:
    places = {share: place for place, share in enumerate(config.ones)}
    counts = {count: len(config.ones) + place for place, count in enumerate(config.counts)}
    length = config.runs[0].length
    middle = min(counts, key=lambda count: abs(count - length / 2), default=length // 2)

    def solved(one: int, other: int) -> np.ndarray:
        usual = scores[PLAIN][:, places[0.5]]
        chosen = scores[PLAIN][usual >= min(0.95, usual.max())]
        return chosen[:, one] - chosen[:, other]

    return measured(
        {
            "in-distribution": lambda: float(scores[PLAIN][:, places[0.5]].max()),
            "more-ones": lambda: solved(places[0.5], places[0.95]),
            "fewer-ones": lambda: solved(places[0.5], places[0.05]),
            "counts": lambda: solved(counts[middle], counts[max(counts, default=length)]),
            "lstm-flat": lambda: scores[RECURRENT].min(1),
            "scratchpad-flat": lambda: scores[PAD].min(1),
        }
    )


def _draw(config: Settings, scores: dict[str, tuple[np.ndarray, np.ndarray]]) -> Any:
    figure, axes = figures.new(columns=2, width=4.6, height=3.2)
    for colour, (name, (shares, counts)) in enumerate(scores.items()):
        style: dict[str, Any] = {"color": figures.COLOURS[colour], "linestyle": "-" if colour == 0 else "--"}
        # Open marks of different sizes: lines that lie on each other are told apart.
        style |= {"marker": "o", "markersize": 4 + 3 * (len(scores) - colour - 1), "fillstyle": "none"}
        figures.band(axes[0], config.ones, shares, label=name, **style)
        figures.band(axes[1], config.counts, counts, label=name, **style)
    axes[0].axvline(0.5, color="#555555", linestyle=":")
    axes[0].set(xlabel="probability of a one", ylabel="token accuracy", title="other frequencies", ylim=(None, 1.02))
    axes[1].set(xlabel="number of ones in the word", title="other counts", ylim=(None, 1.02))
    axes[0].legend()
    return figure
