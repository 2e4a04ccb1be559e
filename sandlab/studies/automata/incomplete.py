"""Labels at a few positions only: what is lost when most states are not revealed.

Each label counts in the loss with probability p, drawn independently for every word. The test is on all positions. The
expected gradient is the same for every p; a smaller p makes it noisier. The transformer must find the automaton from
scattered states; the LSTM's recurrence has the shape of the automaton.

Published: length 100, S₅ with 16 layers and C₂, 25 runs. Quick: D₆ with 10 letters, 2 layers of width 64, 600 batches
of 64 words, p in {1, 0.1, 0.02}, 4 seeds. Full: S₅ and C₂ with 12 letters, 6 layers of width 128, 6000 batches of 64
words, p from 1 to 0.01, 4 seeds.

What to look for: the transformer's line goes down to the right, the LSTM's does not. In the small study the
transformer has not converged even with all labels, and rarer labels mean fewer of them in the same number of steps: it
shows the price of a label, not a limit that training cannot pass.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.learning.experiment import Experiment, Runs
from sandlab.studies.automata._shared import SOURCE, accuracy, automaton, best, lstm, recipe, transformer
from sandlab.studies.claims import Best, Mean, NotMeasured, Order
from sandlab.studies.nulls import untrained
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.automata.catalogue import named_machine


@dataclass(frozen=True)
class Settings:
    """Shares of labels that count; a transformer and an LSTM on a hard automaton, and on an easy one (full)."""

    reveal: tuple[float, ...]
    hard_name: str
    hard: tuple[Experiment, Experiment]
    easy_name: str = ""
    easy: tuple[Experiment, ...] = ()


def large(name: str) -> tuple[Experiment, Experiment]:
    """The models of the full study."""
    world = named_machine(name, length=12)
    return (
        transformer(world, recipe(6000), seeds=4, layers=6, width=128, words=1024),
        lstm(world, recipe(4000, lr=3e-3), seeds=2, width=128, words=1024),
    )


SMALL = named_machine("D6", length=10)
MODELS = transformer(SMALL, recipe(600), seeds=4), lstm(SMALL, recipe(500, lr=3e-3), seeds=2)
QUICK = Settings(reveal=(1.0, 0.1, 0.02), hard_name="D6", hard=MODELS)
study = Study(
    "automata/incomplete",
    title="With few labels a transformer learns less of D₆, an LSTM everything",
    source=SOURCE,
    at="Figures 7b and 19",
    quick=QUICK,
    full=Settings((1.0, 0.25, 0.1, 0.05, 0.025, 0.01), "S5", large("S5"), "C2", large("C2")),
    null=untrained(QUICK),
)


@dataclass(frozen=True)
class Scores:
    """The runs on one automaton, by share of labels."""

    name: str
    transformer: dict[float, Runs]
    lstm: dict[float, Runs]


@dataclass(frozen=True)
class Results:
    """The hard automaton, then the easy one."""

    machines: list[Scores]

    @property
    def hard(self) -> Scores:
        return self.machines[0]


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    models = (*settings.hard, *settings.easy)
    jobs = [replace(model, world=automaton(model).task(reveal=share)) for model in models for share in settings.reveal]
    runs = iter(lab.train(jobs, label="rare labels"))
    names = (settings.hard_name, settings.easy_name)[: len(models) // 2]
    return Results([Scores(name, dict(zip(settings.reveal, runs)), dict(zip(settings.reveal, runs))) for name in names])


@study.claim(Mean(above=0.1), at="Figure 7b", paper="a strong decline on S₅")
def degrades(results: Results) -> np.ndarray:
    """On the hard automaton a transformer loses accuracy when labels become rare.

    Accuracy with every label minus accuracy with the smallest share of labels, mean over seeds.
    """
    found = [accuracy(runs) for runs in results.hard.transformer.values()]
    return found[0] - found[-1]


@study.claim(Order(above=0.0), at="Figure 7b")
def decreasing(results: Results) -> np.ndarray:
    """The fewer labels, the lower the accuracy.

    Smallest step of the accuracy from one share of labels to the next larger, paired by seed.
    """
    shares = sorted(results.hard.transformer)
    if len(shares) < 2:
        raise NotMeasured("needs two shares of labels")
    return np.stack([accuracy(results.hard.transformer[share]) for share in shares])


@study.claim(Best(of=25, above=0.97), at="Figure 7b", paper="100 %", id="lstm")
def lstm_learns(results: Results) -> np.ndarray:
    """An LSTM learns the automaton from however few labels.

    Smallest accuracy of an LSTM over shares of labels on the hard automaton, best seed.
    """
    return np.min([accuracy(runs) for runs in results.hard.lstm.values()], axis=0)


@study.claim(Mean(below=0.1), at="Figure 19", paper="about 0", presets=("full",), id="easy")
def easy_automaton(results: Results) -> np.ndarray:
    """On parity few labels cost little.

    Accuracy on C₂ with every label minus accuracy with a tenth of them, mean over seeds.
    """
    easy = results.machines[-1].transformer
    if len(results.machines) < 2 or not {1.0, 0.1} <= set(easy):
        raise NotMeasured("the easy automaton with all labels and with a tenth of them")
    return accuracy(easy[1.0]) - accuracy(easy[0.1])


@study.table
def labels(results: Results) -> Rows:
    return [
        {"automaton": each.name, "labels shown": share, "transformer, mean": float(accuracy(runs).mean()),
         "transformer, best": best(runs), "LSTM, mean": float(accuracy(each.lstm[share]).mean())}
        for each in results.machines
        for share, runs in each.transformer.items()
    ]  # fmt: skip


@study.figure
def curves(results: Results) -> dict[str, Figure]:
    figure, axes = figures.new(columns=len(results.machines), width=4.4, height=3.2)
    for axis, each in zip(axes, results.machines):
        for label, runs in (("transformer", each.transformer), ("LSTM", each.lstm)):
            values = np.stack([accuracy(cell) for cell in runs.values()], 1)
            figures.band(axis, list(runs), values, label=label, marker="o")
        axis.set_xscale("log")
        axis.invert_xaxis()
        axis.set(title=each.name, xlabel="share of labels that count", ylabel="token accuracy", ylim=(None, 1.02))
        axis.legend()
    return {"labels": figure}
