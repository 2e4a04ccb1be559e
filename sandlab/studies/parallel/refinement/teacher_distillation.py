"""Distillation by a teacher: an autoregressive model's own translations make ambiguous data clear for a refining one.

§4.2.3 trains on translations that an autoregressive system wrote. Here the teacher is the autoregressive model of
`parallel/translation`, trained on ambiguous pairs; it translates fresh sources with beam search, one way each; a
refining model is trained on these pairs and compared with one trained on the ambiguous pairs themselves. How
ambiguous data are is measured by the share of valid translations and of repeats after one pass. The null is an
untrained student of an untrained teacher. Full: the models of `parallel/translation`, 20 000 pairs of the teacher for
each seed (first planned: 200 000, factor 0.1) and 500 test sentences (first planned: 2000).

**What was learnt** (quick, 2026-11-18). The gain is small, if there is one: 0.02 ± 0.03 more valid translations after
one pass over six seeds, as many repeats. How much of the ambiguity the teacher's beam search removes was not measured.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from matplotlib.figure import Figure
from torch import nn

from sandlab import figures
from sandlab.decoding.parallel.beam import distil
from sandlab.decoding.parallel.refine import IterativeRefinement
from sandlab.learning.experiment import Experiment
from sandlab.learning.training import train
from sandlab.models.base import build, seeded
from sandlab.models.parallel.encoder_decoder import EncoderDecoder
from sandlab.random import rng
from sandlab.studies.claims import Mean
from sandlab.studies.nulls import untrained
from sandlab.studies.parallel import _shared as shared
from sandlab.studies.parallel import translation
from sandlab.studies.parallel._translation_runs import METRICS, Judged, judge_decoders, judged, prepared
from sandlab.studies.study import Lab, Rows, Study

STEPS = (1, 4)
DECODERS = tuple(IterativeRefinement(steps) for steps in STEPS)


@dataclass(frozen=True)
class Settings:
    """The refining model, the teacher, pairs that the teacher writes for each seed, test sentences."""

    student: Experiment
    teacher: Experiment
    pairs: int = 4000
    sentences: int = 500


QUICK = Settings(translation.QUICK.raw, translation.QUICK.autoregressive)
study = Study(
    "parallel/teacher-distillation",
    title="What an autoregressive teacher wrote, as data for decoding in one pass",
    source=shared.SOURCE,
    at="§4.2.3",
    quick=QUICK,
    full=Settings(translation.FULL.raw, translation.FULL.autoregressive, pairs=20_000),
    null=untrained(replace(QUICK, pairs=256)),
)


@dataclass(frozen=True)
class Lesson:
    """One seed: the teacher (given) writes pairs, a student of the same seed learns them."""

    settings: Settings
    seed: int
    device: str


@dataclass(frozen=True)
class Results:
    """(seed, T, metric) of students of the raw data and of the teacher, T = 1 and 4."""

    raw: np.ndarray
    taught: np.ndarray


def learn_from(job: Lesson, teacher: nn.Module) -> np.ndarray:
    """(T, metric) of a student of the teacher's translations, judged on the true world."""
    student, how = job.settings.student, job.settings.student.training
    world = student.world
    stream = rng(job.seed, "distilled", device=job.device)
    pairs = distil(prepared(teacher, job.device), world, job.settings.pairs, rng=stream)  # type: ignore[arg-type]
    with seeded(job.seed):
        model = build(student.model).to(job.device)
    train(
        model, pairs, steps=how.steps, batch_size=how.batch_size, lr=how.lr, warmup=how.warmup, schedule=how.schedule,
        clip=how.clip, objective=how.objective, rng=stream, progress=False,
        precision=how.precision if job.device != "cpu" else "float32",
    )  # fmt: skip
    assert isinstance(model, EncoderDecoder)
    return judge_decoders(Judged(student, job.seed, DECODERS, job.settings.sentences, job.device), model)


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    raw, teachers = lab.train([settings.student, settings.teacher], label="teachers", weights=True)
    jobs = [Lesson(settings, seed, lab.device) for seed in teachers.seeds]
    models = [teachers.model(settings.teacher.model, place) for place in range(len(teachers))]
    taught = np.stack(lab.map(learn_from, jobs, given=models, label="students"))
    return Results(judged(lab, settings.student, raw, DECODERS, settings.sentences), taught)


@study.claim(Mean(above=0.0), at="§4.2.3", paper="distillation is critical")
def teacher_helps(results: Results) -> np.ndarray:
    """The teacher's translations are learnt better than the ambiguous ones.

    valid(taught) − valid(raw) after one pass.
    """
    return results.taught[:, 0, 0] - results.raw[:, 0, 0]


@study.claim(Mean(below=0.0), at="§4.2.3")
def fewer_repeats(results: Results) -> np.ndarray:
    """And with fewer repeats.

    stutter(taught) − stutter(raw) after one pass, share of sentences.
    """
    return results.taught[:, 0, 1] - results.raw[:, 0, 1]


@study.table
def students(results: Results) -> Rows:
    return [
        {"data": name, "T": steps, **dict(zip(METRICS, getattr(results, name)[:, place].mean(0).tolist()))}
        for name in ("raw", "taught")
        for place, steps in enumerate(STEPS)
    ]


@study.figure
def one_pass(results: Results) -> Figure:
    figure, axes = figures.new(columns=2, width=3.6, height=3.2, title=study.title)
    for axis, metric, label in zip(axes, (0, 1), ("valid translations", "sentences with a repeat")):
        for place, (name, values) in enumerate((("raw data", results.raw), ("teacher's data", results.taught))):
            axis.bar(place, values[:, 0, metric].mean(), 0.6, color=figures.COLOURS[5 - place])
            axis.plot([place] * len(values), values[:, 0, metric], "o", color=figures.COLOURS[0])
            axis.annotate(name, (place, -0.02), ha="center", va="top", fontsize=9, annotation_clip=False)
        axis.set(xticks=[], ylabel="share after one pass", title=label, ylim=(0, 1))
    return figure
