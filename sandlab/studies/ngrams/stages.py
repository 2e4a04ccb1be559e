"""One n-gram after the other: the loss falls in steps, and each step is a longer n-gram.

The simplified transformer (Adam, learning rate 0.01, batch 128, fresh sequences) on in-context n-grams.

Trigram, quick: 3 states, length 64, Dirichlet(½) rows, where the losses of the unigram (1.00), the bigram (0.90) and
the trigram (0.72) lie well apart; three heads, one more than needed, because with two some seeds have both on lag 1
for more than 2000 steps. Full: the source's 5 states, length 32 and two heads, where the unigram, the bigram and the
uniform distribution differ by 0.02 nats only. 4-gram: 3 states, length 128, three heads. The target is the true
distribution of the next token.

Plateaus are found by segmenting the curve alone; only then are they named, by the counting estimator (any set of
lags, with and without smoothing) nearest to the predictions made on them. Dotted lines are the losses of the add-α
estimators. Above the curves stand the first-layer attention maps of the first seed at the start, on its plateaus and
at the end (the first 24 positions): uniform, then one token back, then one and two.

**What was learnt.** The unigram is a stage of some fifty steps, too short to be a plateau of the curve, but the
predictions name it. The bigram's plateau lies within 0.01 of its line. With five states and 32 tokens its predictions
were nearer to the unigram in total variation in all 22 runs with a plateau, because the head that looks one token back
holds only half of its mass. The end stays above the add-α trigram: the output is an average of tokens that occurred and
cannot be smoothed. In the 4-gram task the third stage often uses lags {1, 3} instead of {1, 2}, and in 2600 steps not
every seed leaves it. A detector that took the rounded ends of a stage for part of it found two plateaus or more of the
4-gram task in eleven of sixteen seeds; it has been trimmed since.

The time of the jump varies by a factor of three between seeds and is never asserted. The printed value α = 0.5 of the
source does not fit its own figure (α = 1 does); see the errata.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from matplotlib.figure import Figure

from sandlab.learning.experiment import Experiment, Runs, Training
from sandlab.lenses.ngrams.pictures import draw_stages
from sandlab.lenses.ngrams.probes import LagMass, first_layer_maps, nearest_estimator
from sandlab.lenses.ngrams.stages import Plateau, Stages, named_stages
from sandlab.studies.claims import Mean, NotMeasured, Share
from sandlab.studies.ngrams import _shared as shared
from sandlab.studies.nulls import untrained
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.ngrams.in_context import InContextNgrams


def experiment(
    world: InContextNgrams, *, heads: int, steps: int, evals: int, seeds: int, examples: int = 1024
) -> Experiment:
    """The simplified transformer on in-context n-grams."""
    return Experiment(
        world=world,
        model=shared.simplified(world, heads=heads),
        training=Training(steps=steps, batch_size=128, lr=0.01, evals=evals, eval_examples=examples),
        seeds=seeds,
        probes=(LagMass(world.order), first_layer_maps, nearest_estimator),
    )


@dataclass(frozen=True)
class Settings:
    """A trigram task (quick: three states, length 64; full: five states, length 32) and a 4-gram task (length 128)."""

    trigram: Experiment
    fourgram: Experiment


APART = InContextNgrams(states=3, order=2, length=64, concentration=0.5)
PUBLISHED = InContextNgrams(states=5, order=2, length=32, concentration=0.5)
FOURGRAM = InContextNgrams(states=3, order=3, length=128, concentration=0.5)
QUICK = Settings(
    trigram=experiment(APART, heads=3, steps=2000, evals=80, seeds=12),
    fourgram=experiment(FOURGRAM, heads=3, steps=2600, evals=65, seeds=6),
)
study = Study(
    "ngrams/stages",
    title="The loss pauses at the bigram's level; the predictions there are the bigram's where the levels lie apart",
    source=shared.SOURCE,
    at="Figures 1 and 3",
    quick=QUICK,
    full=Settings(
        trigram=experiment(PUBLISHED, heads=2, steps=16384, evals=200, seeds=32, examples=4096),
        fourgram=experiment(FOURGRAM, heads=3, steps=2600, evals=130, seeds=16, examples=4096),
    ),
    null=untrained(QUICK),
)


@dataclass(frozen=True)
class Task:
    """The runs of all seeds on one task, and the losses of the estimators."""

    runs: Runs
    levels: dict[str, float]

    @property
    def loss(self) -> np.ndarray:
        return self.runs.metrics["loss"]

    @property
    def mass(self) -> np.ndarray:
        """(seed, evaluation, head, lag)"""
        return self.runs.metrics["mass"]

    @cached_property
    def stages(self) -> list[Stages]:
        curves = zip(self.loss, self.runs.metrics["nearest"])
        return [named_stages(self.runs.eval_steps, loss, names) for loss, names in curves]

    @property
    def early(self) -> list[tuple[int, Plateau]]:
        """(seed, plateau clearly above the last one) of every seed that has one."""
        found = [(seed, each.early) for seed, each in enumerate(self.stages) if each.early is not None]
        if not found:
            raise NotMeasured("a plateau clearly above the last one")
        return found


@dataclass(frozen=True)
class Results:
    trigram: Task
    fourgram: Task


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    trigram, fourgram = lab.train([settings.trigram, settings.fourgram], label="n-gram runs")
    levels = [shared.estimator_losses(each.world) for each in (settings.trigram, settings.fourgram)]
    return Results(Task(trigram, levels[0]), Task(fourgram, levels[1]))


@study.claim(Share(above=0.5), at="Figures 1 and 3", presets=("quick",))
def order_of_stages(results: Results) -> list[bool]:
    """The model is first nearest to the unigram, then to the bigram, then to the trigram.

    Share of trigram runs whose nearest counting estimators first appear in this order, and no other does.
    """
    nearest = results.trigram.runs.metrics["nearest"]
    return [list(dict.fromkeys(names.tolist())) == ["unigram", "bigram", "trigram"] for names in nearest]


@study.claim(Share(above=0.5), at="Figure 3")
def two_stages(results: Results) -> list[bool]:
    """The loss pauses on a plateau clearly above the last one.

    Share of trigram runs with such a plateau.
    """
    return [each.early is not None for each in results.trigram.stages]


@study.claim(Mean(equals=0.0, within=0.03), at="Figure 3", paper="plateaus at the losses of sub-n-grams")
def plateau_level(results: Results) -> list[float]:
    """That plateau lies at the bigram's loss.

    Loss of the plateau minus the bigram's (add-α).
    """
    return [plateau.loss - results.trigram.levels["bigram"] for _, plateau in results.trigram.early]


@study.claim(Share(above=0.5), at="Figure 3")
def plateau_is_sub_trigram(results: Results) -> list[bool]:
    """On it the predictions are nearest to a sub-trigram, of all counting estimators.

    Share of those plateaus whose nearest estimator is the unigram or the bigram.
    """
    return [plateau.name in ("unigram", "bigram") for _, plateau in results.trigram.early]


@study.claim(Share(above=0.5), at="Figure 3")
def plateau_is_bigram(results: Results) -> list[bool]:
    """They are nearest to the bigram.

    Share of those plateaus whose nearest estimator is the bigram.
    """
    return [plateau.name == "bigram" for _, plateau in results.trigram.early]


@study.claim(Share(above=0.5), at="Figure 3")
def end_is_trigram(results: Results) -> list[bool]:
    """At the end they are nearest to the trigram.

    Share of runs whose last plateau's nearest estimator is the trigram.
    """
    return [each.last.name == "trigram" for each in results.trigram.stages]


@study.claim(Mean(between=(0.75, 1.05)), at="Figure 3", presets=("quick",))
def end_level(results: Results) -> np.ndarray:
    """By then most of the way from the bigram's loss to the trigram's is gone.

    (bigram's loss − final loss)/(bigram's − trigram's), add-α.
    """
    bigram, trigram = results.trigram.levels["bigram"], results.trigram.levels["trigram"]
    return (bigram - results.trigram.loss[:, -1]) / (bigram - trigram)


@study.claim(Mean(below=-0.15), at="Figure 3")
def lag_1_first(results: Results) -> list[float]:
    """On the plateau a head looks one token back and none looks two back.

    Largest mass on lag 2 over heads minus largest mass on lag 1, in the middle of the plateau.
    """
    steps, best = results.trigram.runs.eval_steps, results.trigram.mass.max(2)
    middles = [(seed, np.abs(steps - (each.start + each.stop) / 2).argmin()) for seed, each in results.trigram.early]
    return [float(best[seed, index, 2] - best[seed, index, 1]) for seed, index in middles]


@study.claim(Mean(above=0.35), at="Figure 3")
def then_lag_2(results: Results) -> np.ndarray:
    """After the jump a head looks two tokens back.

    Largest mass on lag 2 over heads, at the end.
    """
    return results.trigram.mass[:, -1, :, 2].max(-1)


@study.claim(Mean(below=-0.04), at="Figure 3", paper="own runs of the task at α = 0.5: 1.546 against 1.619")
def final_level(results: Results) -> np.ndarray:
    """The end is well below the bigram.

    Final loss minus the bigram's (add-α).
    """
    return results.trigram.loss[:, -1] - results.trigram.levels["bigram"]


@study.claim(Share(above=0.5), at="Figure 1")
def stages_of_4_gram(results: Results) -> list[bool]:
    """The 4-gram task goes through at least two plateaus.

    Share of runs with two or more plateaus.
    """
    return [len(each.found) >= 2 for each in results.fourgram.stages]


@study.claim(Mean(below=-0.05), at="Figure 1", id="4-gram-end")
def end_of_4_gram(results: Results) -> np.ndarray:
    """It ends well below the trigram's loss.

    Final loss minus the trigram's (add-α).
    """
    return results.fourgram.loss[:, -1] - results.fourgram.levels["trigram"]


@study.table
def plateau_table(results: Results) -> dict[str, Rows]:
    rows = [
        {"task": name, "seed": seed, "from": each.start, "to": each.stop, "loss": each.loss, "nearest": each.name}
        for name, task in (("trigram", results.trigram), ("4-gram", results.fourgram))
        for seed, stages in enumerate(task.stages)
        for each in stages.found
    ]
    return {"plateaus": rows}


@study.figure
def curves(results: Results) -> dict[str, Figure]:
    return {"trigram": draw("trigram", results.trigram), "4-gram": draw("4-gram", results.fourgram)}


def draw(name: str, task: Task) -> Figure:
    levels = {estimator: loss for estimator, loss in task.levels.items() if estimator != "uniform"}
    maps, title = task.runs.metrics["maps"][0], f"{name}: plateaus found in the first seed are shaded"
    return draw_stages(task.runs.eval_steps, task.loss[:8], maps, task.stages[0], levels, title=title)
