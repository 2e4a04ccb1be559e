"""On its way to the facts a model passes a stage at which it knows the relation and invents the attribute.

A sequence mentions a subject s and a relation r among noise; the answer is the attribute a*(s, r), one of the D that
belong to r. Linear attention on one-hot tokens, logits_a = Σ_t w_KQ(z_t) W_OV(a, z_t), is trained by gradient descent
from equal small weights. Gradient flow is known to reach zero loss. The loss gets there in three stages: log DR
(nothing is known), log D (the relation is known: the model answers p(a | r), fluent and wrong with probability 1 −
1/D), 0.

**Set-up.** Structured facts (subject s has attribute ⌊sD/S⌋ in every relation), all weights 10⁻⁵, plain gradient
descent with rate 0.1 on fresh batches of 256. Quick: S = 8, R = 2, D = 4, ten noise tokens, length 16, 4096 steps.
Full: S = 16, R = 4, D = 8, twenty noise tokens, length 32, batches of 1024, 8192 steps. All seeds start from the same
weights: they differ in their data alone. The stage is the longest run of evaluations with a relation loss below 0.05
and a total loss within 5 % of log D.

**In the figure.** Total loss, the part that the relation explains (−log of the mass on the attributes of r) and the
part that the subject explains (−log of the mass on answers of the right place within their relation).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.learning.experiment import Experiment, Runs, Training
from sandlab.lenses.knowledge.stages import HallucinationStage, fact_probe, hallucination_stage
from sandlab.models.knowledge.facts import LinearAttentionFactsConfig
from sandlab.studies.claims import Mean, NotMeasured, Share
from sandlab.studies.knowledge._shared import SOURCE
from sandlab.studies.nulls import untrained
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.knowledge.facts import FactRecall


@dataclass(frozen=True)
class Settings:
    experiment: Experiment


def settings(world: FactRecall, *, batch: int, steps: int, evals: int, seeds: int) -> Settings:
    model = LinearAttentionFactsConfig(world.vocab, world.outputs)
    how = Training(steps=steps, batch_size=batch, lr=0.1, optimizer="sgd", evals=evals, eval_examples=2048)
    return Settings(Experiment(world, model, how, seeds, probes=(fact_probe,)))


QUICK = settings(
    FactRecall(subjects=8, relations=2, answers=4, noise=10, length=16, facts="structured"),
    batch=256, steps=4096, evals=64, seeds=8,
)  # fmt: skip
study = Study(
    "knowledge/hallucination-stage",
    title="Before a model knows the facts it knows their kind: the loss pauses at log D",
    source=SOURCE,
    at="training dynamics",
    quick=QUICK,
    full=settings(
        FactRecall(subjects=16, relations=4, answers=8, noise=20, length=32, facts="structured"),
        batch=1024, steps=8192, evals=128, seeds=32,
    ),
    null=untrained(QUICK),
)  # fmt: skip


@dataclass(frozen=True)
class Results:
    runs: Runs
    answers: int
    relations: int

    def curve(self, part: str) -> np.ndarray:
        """(seed, evaluation)"""
        return self.runs.metrics[f"{part} loss"]

    @property
    def stages(self) -> list[HallucinationStage]:
        steps = self.runs.eval_steps
        pairs = zip(self.curve("total"), self.curve("relation"))
        return [hallucination_stage(steps, total, relation, self.answers) for total, relation in pairs]


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    world = settings.experiment.world
    assert isinstance(world, FactRecall)
    return Results(lab.train(settings.experiment), world.answers, world.relations)


@study.claim(Share(above=0.5), paper="every run")
def guesses_of_the_right_kind(results: Results) -> list[bool]:
    """There is a stage at which the relation is known and the attribute guessed.

    Share of runs with an evaluation at which the relation loss is below 0.05 and the total within 5 % of log D.
    """
    return [stage.found for stage in results.stages]


@study.claim(Mean(equals=0.0, within=0.05), paper="log D")
def plateau_at_log_d(results: Results) -> list[float]:
    """The total loss pauses at log D.

    Mean total loss where the relation loss is below 0.05 and the subject loss above 0.9 log D, over log D, minus 1.
    """
    level = math.log(results.answers)
    where = (results.curve("relation") < 0.05) & (results.curve("subject") > 0.9 * level)
    if not where.any(1).all():
        raise NotMeasured("a seed never knows the relation alone")
    return [float(total[at].mean() / level - 1) for total, at in zip(results.curve("total"), where)]


@study.claim(Mean(below=0.02), paper="0")
def facts_in_the_end(results: Results) -> np.ndarray:
    """In the end the facts are known.

    Final total loss.
    """
    return results.curve("total")[:, -1]


@study.claim(Mean(above=0.0), paper="relation first, then subject")
def relation_before_subject(results: Results) -> np.ndarray:
    """The relation is learnt before the subject.

    Log ratio of the first evaluated steps at which the subject loss and the relation loss have fallen to half.
    """
    steps = results.runs.eval_steps
    first = [[_halved(curve, steps) for curve in results.curve(part)] for part in ("subject", "relation")]
    return np.log(np.array(first[0]) / np.array(first[1]))


def _halved(curve: np.ndarray, steps: np.ndarray) -> float:
    found = np.flatnonzero(curve <= curve[0] / 2)
    if not len(found):
        raise NotMeasured("a loss that never falls to half")
    return float(steps[found[0]])


@study.table
def stages(results: Results) -> dict[str, Rows]:
    rows = [
        {"seed": seed, "from": stage.start, "to": stage.stop, "total loss": stage.loss, "end": float(end)}
        for seed, (stage, end) in enumerate(zip(results.stages, results.curve("total")[:, -1]))
    ]
    return {"stages": rows}


@study.figure
def losses(results: Results) -> Figure:
    figure, (axis,) = figures.new(width=6.4, height=3.6, title="First the relation, then the subject: a pause at log D")
    for part, name in (("total", "total"), ("relation", "relation alone"), ("subject", "subject alone")):
        figures.band(axis, results.runs.eval_steps, results.curve(part), label=name)
    axis.set(xlabel="training step", ylabel="held-out loss (nats)", ylim=(-0.05, None))
    d, r = results.answers, results.relations
    figures.levels(axis, {"log DR": math.log(d * r), "log D": math.log(d)})
    axis.legend(loc="center right")
    return figure
