"""Averages of attention must be corrected for the lengths of documents: even a random model seems to see topics.

**Set-up.** No training. Documents of 20 to 200 words whose number of topics grows with their length, from one to ten;
one-layer models with random weights, uniform ±1/√width. Attention to each position is about 1/N. Pairs of different
topics come mostly from long documents, so their average is lower, though the model knows nothing of topics. Multiplying
attention by N/100 removes this. The published averages of pretrained encoders are corrected in this way.

**What was learnt** (full, 32 models, 2000 documents each). A random model attends 1.34 times as much within topics as
between them; after the correction the ratio is 1.0000 with a spread of 0.0001.

The null has documents of one length, 110 words, where there is nothing to correct.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from matplotlib.figure import Figure

from sandlab.figures import new
from sandlab.lenses.topics.attention import attention_by_topic
from sandlab.models.base import seeded
from sandlab.models.topics.one_layer import OneLayerTopics
from sandlab.random import rng
from sandlab.studies.claims import Mean, Ratio
from sandlab.studies.study import Lab, Rows, Study
from sandlab.studies.topics import _shared as shared
from sandlab.worlds.topics.documents import DisjointTopics, TopicWorld
from sandlab.worlds.topics.growing import GrowingTopics


@dataclass(frozen=True)
class Settings:
    """Documents, how many, and random models."""

    world: TopicWorld
    documents: int = 300
    seeds: int = 8


QUICK = Settings(GrowingTopics())
study = Study(
    "topics/length-bias",
    title="Without a correction for length even a random model seems to attend to topics",
    source=shared.SOURCE,
    at="§2.1.5.4",
    quick=QUICK,
    full=replace(QUICK, documents=2000, seeds=32),
    null=Settings(DisjointTopics(lengths=(110, 110), present=5)),
)


@dataclass(frozen=True)
class BiasJob:
    world: TopicWorld
    documents: int
    seed: int


@dataclass(frozen=True)
class Results:
    """Of each seed: attention within the topic / to other topics, as it is and corrected."""

    raw: np.ndarray
    corrected: np.ndarray


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    jobs = [BiasJob(settings.world, settings.documents, seed) for seed in range(settings.seeds)]
    found = np.array(lab.map(ratios, jobs, label="random models"))
    return Results(found[:, 0], found[:, 1])


def ratios(job: BiasJob) -> tuple[float, float]:
    """Attention to other words of the topic / to other topics, raw and multiplied by N/100."""
    with seeded(job.seed):
        model = OneLayerTopics(vocab=job.world.outputs, init="torch")
    words = job.world.sample(job.documents, rng=rng(job.seed, "length bias")).truth["words"]
    raw, corrected = (attention_by_topic(model, words, job.world.words, reference=each) for each in (None, 100.0))
    return raw.same_topic / raw.different, corrected.same_topic / corrected.different


@study.claim(
    Ratio(above=1.001),
    at="§2.1.5.4",
    paper="larger within topics even for a random model",
    note="the bound is ours, chosen with quick results and the null at hand",
)
def random_models_seem_topical(results: Results) -> np.ndarray:
    """A random model attends more within topics than between them, because of the lengths of documents.

    Attention to other words of the topic / to other topics.
    """
    return results.raw


@study.claim(Mean(below=1.0), at="§2.1.5.4", paper="0.9994 to 1.0001 after the correction")
def the_correction_removes_it(results: Results) -> np.ndarray:
    """Multiplied by the length, its attention is the same within topics and between them.

    Larger of |corrected ratio − 1|/0.01 and of ten times |corrected ratio − 1| / |raw ratio − 1|: below 1 when the
    ratio is 1 within 0.01 and nine tenths of the bias are gone.
    """
    left = np.abs(results.corrected - 1)
    return np.maximum(left / 0.01, 10 * left / np.abs(results.raw - 1))


@study.table
def attention_ratios(results: Results) -> Rows:
    return [
        {"attention": name, "same topic / different topics": float(each.mean()), "std": float(each.std())}
        for name, each in (("as it is", results.raw), ("times N/100", results.corrected))
    ]


@study.figure
def points(results: Results) -> Figure:
    figure, (axis,) = new(title="Random models: topical attention that is none")
    for place, each in enumerate((results.raw, results.corrected)):
        axis.plot(place + np.linspace(-0.1, 0.1, len(each)), each, "o")
    axis.axhline(1.0, color="#555555", linestyle=":")
    axis.set_xticks([0, 1], ["attention", "attention · N/100"])
    axis.set(ylabel="same topic / different topics", xlim=(-0.5, 1.5))
    return figure
