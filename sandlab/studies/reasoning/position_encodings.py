"""Position encodings do not help a chain to grow, and unrelated clauses wear attention out.

The source argues that length generalisation works because retrieval is by content, and that position encodings hurt
it; it gives no data. The cyclic task with no positions, learned ones, rotary ones and ALiBi, tested on longer chains;
learned positions beyond the training length were never trained. Below: the model without positions on chains of
length 10 with clauses about another chain added to the text (context rot): accuracy, and the attention ε that misses
the two needed clauses. Full: five seeds and 15 000 steps (of eight and 40 000 first planned, factors 0.63 and 0.38).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.learning.experiment import Experiment, Runs
from sandlab.lenses.reasoning.concentration import ContextRot
from sandlab.studies.claims import Mean
from sandlab.studies.nulls import untrained
from sandlab.studies.reasoning import _shared as shared
from sandlab.studies.study import Lab, Study

KINDS = ("none", "learned", "rotary", "alibi")


@dataclass(frozen=True)
class Settings:
    """One experiment per kind of position."""

    kinds: tuple[Experiment, ...]


QUICK = Settings(tuple(shared.brief_experiment("C6", positions=kind) for kind in KINDS))

study = Study(
    "reasoning/position-encodings",
    title="Without positions chains grow at least as far as with any encoding",
    source=shared.SOURCE,
    at="section 8",
    quick=QUICK,
    full=Settings(
        tuple(
            shared.full_experiment("C6", seeds=shared.FULL_SEEDS[:5], training={"steps": 15_000}, positions=kind)
            for kind in KINDS
        )
    ),
    null=untrained(QUICK),
)


@dataclass(frozen=True)
class Results:
    runs: dict[str, Runs]
    lengths: tuple[int, ...]
    unrelated: tuple[int, ...]

    def at(self, kind: str, length: int) -> np.ndarray:
        return shared.accuracy_at(self.runs[kind], self.lengths, length)


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    found = lab.train(list(settings.kinds), label="position encodings", weights=True)
    rot = next(each for each in settings.kinds[0].final if isinstance(each, ContextRot))
    runs = [replace(each, weights=None) for each in found]
    return Results(dict(zip(KINDS, runs)), shared.tested_lengths(settings.kinds[0]), rot.unrelated)


@study.claim(Mean(above=-0.02), at="section 8", paper="position encodings hurt extrapolation")
def none_beats_learned(results: Results) -> np.ndarray:
    """At four times the training length the model without positions is not behind learned positions.

    Accuracy at length 20 without positions minus that with learned ones.
    """
    shared.learnt(results.runs["none"], results.lengths)
    return results.at("none", 20) - results.at("learned", 20)


@study.claim(Mean(above=-0.02), at="section 8", paper="position encodings hurt extrapolation")
def none_beats_relative(results: Results) -> np.ndarray:
    """Nor behind rotary positions and ALiBi.

    Accuracy at length 20 without positions minus the better of the two.
    """
    shared.learnt(results.runs["none"], results.lengths)
    return results.at("none", 20) - np.maximum(results.at("rotary", 20), results.at("alibi", 20))


@study.claim(Mean(above=0.0), at="section 8")
def clauses_wear_attention_out(results: Results) -> np.ndarray:
    """Clauses about other variables draw attention away.

    ε with the most unrelated clauses minus ε without any, chains of length 10.
    """
    shared.learnt(results.runs["none"], results.lengths)
    left = results.runs["none"].final["rot left over"]
    return left[:, -1] - left[:, 0]


@study.figure
def by_length(results: Results) -> Figure:
    figure, axes = figures.new(columns=3, title="Accuracy by position encoding; unrelated clauses at chain length 10")
    shared.draw_lengths(
        axes[0], {kind: runs.final["all steps"] for kind, runs in results.runs.items()}, results.lengths
    )
    for kind, runs in results.runs.items():
        figures.band(axes[1], results.unrelated, runs.final["rot accuracy"], label=kind, marker="o")
        figures.band(axes[2], results.unrelated, runs.final["rot left over"], label=kind, marker="o")
    axes[1].set(xlabel="unrelated clauses", ylabel="all steps right", ylim=(-0.03, 1.05))
    axes[2].set(xlabel="unrelated clauses", ylabel="attention off the two clauses", ylim=(0, 1))
    axes[2].legend()
    return figure
