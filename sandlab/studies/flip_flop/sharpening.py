"""Sharpening makes one head the ideal memory head, and does not repair what was never seen.

One attention layer with one head on the flip-flop automaton, with and without an entropy penalty. Models are trained at
p(⊥) = 0.9 (long waits are common) and at 0.5 (they are not), with penalty strengths 0, 0.01, 0.1 (full: also 1) on the
mean row entropy, and tested at p(⊥) = 0.5, 0.9 and 0.98. The maps show the probe σ1 ⊥ σ0 ⊥ ⊥ σ0 σ1 ⊥; writes are marked
on the axis. A plain head is right but diffuse; a sharpened one is nearly one-hot on the latest write; trained at 0.5
both fail on long waits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.learning.experiment import Experiment, Runs
from sandlab.lenses.flip_flop.pictures import draw_operations
from sandlab.studies.claims import Best, Mean, NotMeasured
from sandlab.studies.flip_flop._shared import IDLE, PROBE, SOURCE, labelling, sharpened
from sandlab.studies.nulls import untrained
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.flip_flop.language import FlipFlopTransduction


@dataclass(frozen=True)
class Settings:
    """One layer with one head, trained at several p(⊥) and strengths of the entropy penalty."""

    head: Experiment
    idles: tuple[float, ...] = (0.9, 0.5)
    strengths: tuple[float, ...] = (0.0, 0.01, 0.1)


QUICK = Settings(labelling(steps=1000, seeds=4))
study = Study(
    "flip-flop/sharpening",
    title="A sharpened head puts 0.99 of its mass on the latest write, and still errs on a fifth of unseen gaps",
    source=SOURCE,
    at="Figure 14 (result R8)",
    quick=QUICK,
    full=Settings(labelling(steps=3000, width=256, precision="tf32", seeds=25), strengths=(0.0, 0.01, 0.1, 1.0)),
    null=replace(QUICK, head=untrained(QUICK.head)),
)


@dataclass(frozen=True)
class Results:
    """(p(⊥) in training, strength) → runs."""

    heads: dict[tuple[float, float], Runs]

    def head(self, idle: float, strength: float) -> Runs:
        if (idle, strength) not in self.heads:
            raise NotMeasured(f"no head was trained at p(⊥) = {idle} with strength {strength}")
        return self.heads[idle, strength]

    def penalised(self, idle: float) -> list[Runs]:
        """The heads trained at p(⊥) = `idle` with a penalty."""
        return [runs for (trained, strength), runs in self.heads.items() if trained == idle and strength > 0]


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    grid = [(idle, strength) for idle in settings.idles for strength in settings.strengths]
    plain = settings.head.world
    assert isinstance(plain, FlipFlopTransduction)
    heads = [sharpened(replace(settings.head, world=replace(plain, idle=idle)), strength) for idle, strength in grid]
    return Results(dict(zip(grid, lab.train(heads, label="one-layer heads"))))


def error(runs: Runs, idle: float) -> np.ndarray:
    """Error of each seed at p(⊥) = `idle`."""
    return runs.final["errors"][:, IDLE.index(idle)]


def score(runs: Runs, name: str) -> np.ndarray:
    """Memory score of the only head of each seed."""
    return runs.final["scores"][name][:, 0]


@study.claim(Mean(below=0.5), at="§5")
def entropy_falls(results: Results) -> np.ndarray:
    """An entropy penalty makes attention rows much sharper.

    Row entropy at strength 0.1 over that at 0, trained at p(⊥) = 0.9.
    """
    return (results.head(0.9, 0.1).final["entropy"] / results.head(0.9, 0.0).final["entropy"])[:, 0]


@study.claim(Mean(above=0.0), at="Figure 14")
def mass_grows(results: Results) -> np.ndarray:
    """The sharpened head puts more of its mass on the latest write.

    Mass on the latest write at no-ops, strength 0.1 minus strength 0.
    """
    return score(results.head(0.9, 0.1), "mass_idle") - score(results.head(0.9, 0.0), "mass_idle")


@study.claim(Mean(below=0.01), at="Figure 14")
def good_in_distribution(results: Results) -> np.ndarray:
    """Both the plain and the sharpened head answer their training distribution.

    Largest mean error at p(⊥) = 0.9 of models trained there.
    """
    return np.maximum(error(results.head(0.9, 0.1), 0.9), error(results.head(0.9, 0.0), 0.9))


@study.claim(Mean(above=0.1), at="(R8)")
def no_repair(results: Results) -> np.ndarray:
    """Sharpening does not repair reads over gaps that training never showed.

    Error at p(⊥) = 0.98 of models trained at 0.5 with strength 0.1 (0 for those with more than 1 % error at 0.5).
    """
    return unseen_gaps(results.head(0.5, 0.1))


def unseen_gaps(runs: Runs) -> np.ndarray:
    """Error at p(⊥) = 0.98 of heads that err on less than 1 % at 0.5; 0 for the others, which have learnt nothing."""
    return np.where(error(runs, 0.5) < 0.01, error(runs, 0.98), 0.0)


@study.claim(Mean(above=0.1), at="(R8)")
def plain_fails_too(results: Results) -> np.ndarray:
    """The plain head trained on short waits fails on long ones as well.

    Error at p(⊥) = 0.98 of models trained at 0.5 without penalty (0 for those with more than 1 % error at 0.5).
    """
    return unseen_gaps(results.head(0.5, 0.0))


@study.claim(Mean(above=0.0), at="Figure 14(a)")
def right_kind(results: Results) -> np.ndarray:
    """The plain head spreads over all writes of the right kind, more than the sharpened one.

    Mass on older writes of the stored symbol at no-ops, strength 0 minus strength 0.1, trained at 0.9.
    """
    older = [
        score(results.head(0.9, each), "type_mass") - score(results.head(0.9, each), "mass_idle") for each in (0.0, 0.1)
    ]
    return older[0] - older[1]


@study.claim(Best(below=0.5, of=25, lowest=True), at="Figure 14(c)", presets=("full",))
def writes_look_away(results: Results) -> np.ndarray:
    """A sharp head need not attend to a write at the write itself: the residual stream carries it.

    Share of writes whose largest weight is on themselves, smallest of a seed's sharpened heads; best of 25 seeds.
    """
    penalised = [runs for (_, strength), runs in results.heads.items() if strength > 0]
    return np.min([score(runs, "hit_write") for runs in penalised], axis=0)


@study.claim(Mean(above=0.0), at="Figure 14(d)", presets=("full",))
def sharp_and_wrong(results: Results) -> np.ndarray:
    """Some sharpened runs end in a sharp and wrong minimum, more often where waits are short.

    Share of a seed's sharpened heads with more than 1 % error where they were trained, at p(⊥) = 0.5 minus at 0.9.
    """
    rare, common = ([error(runs, idle) > 0.01 for runs in results.penalised(idle)] for idle in (0.5, 0.9))
    return np.mean(rare, axis=0) - np.mean(common, axis=0)


@study.table
def heads(results: Results) -> Rows:
    return [
        {
            "trained at p(⊥)": idle,
            "strength": strength,
            **{f"error at {test}": float(error(runs, test).mean()) for test in IDLE},
            "mass on latest write": float(score(runs, "mass_idle").mean()),
            "mass on writes of its kind": float(score(runs, "type_mass").mean()),
            "writes that attend to themselves": float(score(runs, "hit_write").mean()),
            "row entropy": float(runs.final["entropy"].mean()),
            "failed seeds (error > 1 % where trained)": int((error(runs, idle) > 0.01).sum()),
        }
        for (idle, strength), runs in results.heads.items()
    ]


@study.figure
def maps(results: Results) -> Figure:
    rows = len({idle for idle, _ in results.heads})
    figure, axes = figures.new(columns=len(results.heads) // rows, rows=rows, width=2.7, height=2.6)
    for axis, ((idle, strength), runs) in zip(axes, results.heads.items()):
        title = f"p(⊥) = {idle:g}, λ = {strength:g}\nerror at 0.98: {error(runs, 0.98).mean():.2g}"
        draw_operations(axis, runs.final["maps"][0, 0, 0], PROBE, title=title)
    axes[0].set_ylabel("query")
    return figure
