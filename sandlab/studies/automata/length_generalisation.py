"""Words longer than those of training: positions, shifts, scratchpads and recurrence.

Trained on short words, tested on words of up to several times the length. Six models per automaton: a transformer with
sinusoidal positions; one without any; one whose positions are shifted by a random number from 0 to 60 in each training
batch, so that it has met every code of the longer words; an LSTM; and two that write the state after each letter, with
and without a recency bias (ALiBi), tested with the states they wrote themselves, without other position codes.

Published: Dyck (4 deep, 2 types) and C₂, training length 40, tests from 8 to 128, 25 runs. Quick: Dyck, training
length 20, tests up to 64, 2 layers of width 64, 1000 batches of 32 words (500 for LSTM and scratchpads), 3 seeds. Full:
both automata, training length 24, 4 layers of width 128, 6000 batches of 48 words (2000), tests up to 96, 5 seeds.

What to look for: the dotted line is the training length. Right of it the sinusoidal line drops at once, shifts and no
positions drop later, the scratchpad without recency declines with the length, LSTM and recency stay at the top. With a
scratchpad and no bias the model must still find "the latest state" among ever more tokens: the bias tells it where to
look, and then one step of the automaton is all it has to compute.

**What was learnt** (full, one H200, 2026-11-18). Every claim about brackets holds: plain sinusoids lose 31 points at
twice the training length, a scratchpad without recency 46 at four times; LSTM and recency lose nothing. On C₂ random
shifts hurt (11 points below plain sinusoids at twice the length): in 6000 batches neither they nor a model without
positions learn parity, with 76 and 77 % at the training length itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.learning.experiment import Experiment, Runs, Training
from sandlab.studies.automata._shared import SOURCE, letters, lstm, recipe, transformer, variants, with_tests
from sandlab.studies.claims import Best, Mean, NotMeasured
from sandlab.studies.nulls import untrained
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.automata.counters import Cyclic
from sandlab.worlds.automata.machine import Automaton
from sandlab.worlds.automata.stacks import DyckStack

SINE, NONE, SHIFT, LSTM, PAD, RECENT = NAMES = (
    "sinusoidal positions", "no positions", "random shifts", "LSTM", "scratchpad", "scratchpad + recency",
)  # fmt: skip


@dataclass(frozen=True)
class Settings:
    """Lengths of the tested words; six models (`NAMES`) on brackets, and on parity in the full study."""

    lengths: tuple[int, ...]
    dyck: tuple[Experiment, ...]
    parity: tuple[Experiment, ...] = ()


def models(
    world: Automaton, training: Training, easy: int, seeds: int, words: int, **shape: int
) -> tuple[Experiment, ...]:
    """The six models of an automaton; the LSTM and the scratchpads take `easy` steps.

    The two scratchpads differ in the recency bias only. They are written letter by letter: 64 test words will do.
    """
    plain = transformer(world, training, seeds, words=words, **shape)
    blind = transformer(world, training, seeds, words=words, positions="none", **shape)
    shifted = transformer(world, training, seeds, words=words, shift=60, **shape)
    recurrent = lstm(world, recipe(easy, lr=3e-3), seeds, words=words, width=shape["width"])
    pad, written = world.task(scratchpad=True), recipe(easy, batch_size=training.batch_size)
    shape = {"width": shape["width"], "words": min(64, words)}
    pads = (transformer(pad, written, seeds, positions=code, **shape) for code in ("none", "alibi"))
    return (plain, blind, shifted, recurrent, *pads)


DYCK, PARITY = DyckStack(depth=4, types=2, label="state"), Cyclic(size=2)
SMALL, LARGE = recipe(1000, batch_size=32, lr=2e-3), recipe(6000, batch_size=48)
QUICK = Settings(
    lengths=(20, 40, 64),
    dyck=models(DYCK.task(length=20), SMALL, easy=500, seeds=3, words=128, layers=2, width=64),
)
study = Study(
    "automata/length-generalisation",
    title="Beyond the training length only recurrence, or a scratchpad that looks at recent tokens, is right",
    source=SOURCE,
    at="Figures 9 and 21",
    quick=QUICK,
    full=Settings(
        lengths=(8, 16, 24, 32, 40, 48, 64, 80, 96),
        dyck=models(DYCK.task(length=24), LARGE, easy=2000, seeds=5, words=512, layers=4, width=128),
        parity=models(PARITY.task(length=24), LARGE, easy=2000, seeds=5, words=512, layers=4, width=128),
    ),
    null=untrained(QUICK),
)


@dataclass(frozen=True)
class Results:
    """Automaton → model → runs, trained on words of `length` and tested on words of `lengths`."""

    length: int
    lengths: tuple[int, ...]
    runs: dict[str, dict[str, Runs]]

    def accuracy(self, model: str, length: int, machine: str = "Dyck4_2") -> np.ndarray:
        """Accuracy of each seed on words of that length."""
        if machine not in self.runs:
            raise NotMeasured(f"automaton left out: {machine}")
        if length not in self.lengths:
            raise NotMeasured(f"words of length {length} are not tested")
        return variants(self.runs[machine][model])[:, self.lengths.index(length)]

    def doubled(self, model: str, machine: str = "Dyck4_2") -> np.ndarray:
        """Accuracy of each seed at twice the training length."""
        return self.accuracy(model, 2 * self.length, machine)


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    chosen = {"Dyck4_2": settings.dyck} | ({"C2": settings.parity} if settings.parity else {})
    jobs = [with_tests(experiment, lengths=settings.lengths) for group in chosen.values() for experiment in group]
    runs = iter(lab.train(jobs, label="longer words"))
    return Results(letters(settings.dyck[0]), settings.lengths, {name: dict(zip(NAMES, runs)) for name in chosen})


@study.claim(Best(of=25, above=0.97), at="Figure 9", paper="100 %")
def learnt(results: Results) -> np.ndarray:
    """The plain transformer solves brackets of the training length.

    Accuracy with sinusoidal positions at the training length, Dyck, best seed.
    """
    return results.accuracy(SINE, results.length)


@study.claim(Mean(above=0.15), at="Figure 9")
def cliff(results: Results) -> np.ndarray:
    """At twice the length its accuracy has collapsed.

    Accuracy with sinusoidal positions at the training length minus that at twice the length, Dyck, mean over seeds.
    """
    return results.accuracy(SINE, results.length) - results.doubled(SINE)


@study.claim(Mean(above=0.99), at="Figure 9", paper="100 %", id="lstm")
def lstm_continues(results: Results) -> np.ndarray:
    """An LSTM continues without a loss.

    Mean accuracy of the LSTM at twice the training length, Dyck.
    """
    return results.doubled(LSTM)


@study.claim(Mean(above=0.99), at="Figure 9", paper="100 %")
def recency(results: Results) -> np.ndarray:
    """So does a transformer that writes the states down and prefers recent positions.

    Mean accuracy of the scratchpad with recency bias at twice the training length, Dyck.
    """
    return results.doubled(RECENT)


@study.claim(Mean(above=0.05), at="Figure 9", paper="no improvement without the bias")
def scratchpad_alone(results: Results) -> np.ndarray:
    """The scratchpad alone is not enough: the recency bias makes the difference.

    Mean accuracy at the longest test of the scratchpad with recency bias minus without, Dyck.
    """
    return results.accuracy(RECENT, results.lengths[-1]) - results.accuracy(PAD, results.lengths[-1])


@study.claim(Mean(above=0.05), at="Figure 9", paper="no improvement without the bias")
def scratchpad_drop(results: Results) -> np.ndarray:
    """Not only is the scratchpad without bias worse from the start: it loses more with the length.

    Drop of accuracy from the training length to the longest test, scratchpad without the bias minus with it, Dyck.
    """
    alone, recent = (
        results.accuracy(model, results.length) - results.accuracy(model, results.lengths[-1])
        for model in (PAD, RECENT)
    )
    return alone - recent


@study.claim(Mean(above=0.0), at="Figure 9", paper="clearly better, not perfect")
def shifts(results: Results) -> np.ndarray:
    """Random shifts of the positions in training help.

    Mean accuracy with shifts minus with plain sinusoids at twice the training length, Dyck.
    """
    return results.doubled(SHIFT) - results.doubled(SINE)


@study.claim(Mean(above=0.0), at="Figure 9", paper="better, not perfect")
def no_positions(results: Results) -> np.ndarray:
    """So does leaving the positions out.

    Mean accuracy without positions minus with sinusoids at twice the training length, Dyck.
    """
    return results.doubled(NONE) - results.doubled(SINE)


@study.claim(Mean(above=0.15), at="Figure 9", presets=("full",))
def parity_cliff(results: Results) -> np.ndarray:
    """Parity collapses beyond the training length, too.

    Accuracy with sinusoidal positions at the training length minus that at twice the length, C₂, mean over seeds.
    """
    return results.accuracy(SINE, results.length, "C2") - results.doubled(SINE, "C2")


@study.claim(Mean(above=0.99), at="Figure 9", paper="100 %", presets=("full",))
def parity_lstm(results: Results) -> np.ndarray:
    """An LSTM continues parity without a loss.

    Mean accuracy of the LSTM at twice the training length, C₂.
    """
    return results.doubled(LSTM, "C2")


@study.claim(Mean(above=0.99), at="Figure 9", paper="100 %", presets=("full",))
def parity_recency(results: Results) -> np.ndarray:
    """So does a transformer that writes the parities down and prefers recent positions.

    Mean accuracy of the scratchpad with recency bias at twice the training length, C₂.
    """
    return results.doubled(RECENT, "C2")


@study.claim(Mean(above=0.0), at="Figure 9", paper="clearly better, not perfect", presets=("full",))
def parity_shifts(results: Results) -> np.ndarray:
    """Random shifts of the positions in training help parity, too.

    Mean accuracy with shifts minus with plain sinusoids at twice the training length, C₂.
    """
    return results.doubled(SHIFT, "C2") - results.doubled(SINE, "C2")


@study.claim(Mean(above=0.05), at="Figure 9", paper="no improvement without the bias", presets=("full",))
def parity_scratchpad_alone(results: Results) -> np.ndarray:
    """Parities that are written down do not help without the recency bias.

    Mean accuracy at the longest test of the scratchpad with recency bias minus without, C₂.
    """
    return results.accuracy(RECENT, results.lengths[-1], "C2") - results.accuracy(PAD, results.lengths[-1], "C2")


@study.table
def lengths(results: Results) -> Rows:
    return [
        {"automaton": machine, "model": name}
        | {f"length {length}": float(mean) for length, mean in zip(results.lengths, variants(runs).mean(0))}
        for machine, table in results.runs.items()
        for name, runs in table.items()
    ]


@study.figure
def curves(results: Results) -> dict[str, Figure]:
    figure, axes = figures.new(columns=len(results.runs), width=5.2, height=3.4)
    for axis, (machine, table) in zip(axes, results.runs.items()):
        for name, runs in table.items():
            figures.band(axis, results.lengths, variants(runs), label=name, marker="o", markersize=3)
        axis.axvline(results.length, color="#555555", linestyle=":")
        axis.set(title=machine, xlabel="length of the tested words", ylabel="token accuracy", ylim=(None, 1.02))
    axes[-1].legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return {"lengths": figure}
