"""Trained embeddings have larger inner products for words of one topic.

**Set-up.** LDA documents as in `topics/value-blocks`; embeddings of width 101 from N(0, 0.1²), so that structure is
learnt and not inherited from a Gram matrix that starts near a multiple of the identity; the head is tied. Two
conditions: all weights are trained (the published figure), or the embeddings alone, with uniform attention, the
identity as value matrix and the output bias of Theorem 2.1.1.

SGD: learning rate 0.1 in the quick preset; `full` takes the published 0.01 for all panels.

**What to look for.** Blocks of topics; a diagonal besides them is allowed. For embeddings alone and the squared loss
Theorem 2.1.1 fixes the sum of a row over its own topic at 1/k = 1.156 and over any other topic at 0.

**What was learnt** (full, 10 seeds, one H200, 2026-11-16). All eight panels have blocks; the squared loss leaves a
strong diagonal beside them. With it, Adam and all weights trained, the blocks are faint: pairs of different topics have
the larger entry in 40 of 100 comparisons, and in one seed the smallest of the four separations is 2.8. Rows of the
Gram matrix sum to 1.143 over their own topic where the theorem has 1.156.

A Gram matrix holds every pair of words twice. The standard errors below treat its entries as independent and are too
small by √2: counted once, the smallest separations are 4.9 in full (all weights) and 4.7 in quick (embeddings alone),
where 7.0 and 6.6 are shown.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import nn

from sandlab.circuits.topics.optima import embedding_optimum
from sandlab.circuits.topics.prescribed import set_value
from sandlab.learning.experiment import Experiment
from sandlab.lenses.topics.matrices import block_sums
from sandlab.models.topics.one_layer import OneLayerTopics, OneLayerTopicsConfig
from sandlab.studies.claims import Mean
from sandlab.studies.nulls import untrained
from sandlab.studies.study import Lab, Rows, Study
from sandlab.studies.topics import _shared as shared
from sandlab.worlds.topics.masking import MaskedStatistics

ALL = OneLayerTopicsConfig(vocab=shared.VOCAB, read=shared.LAST, width=shared.VOCAB)
ALONE = OneLayerTopicsConfig(
    vocab=shared.VOCAB, read=shared.LAST, width=shared.VOCAB, attention="uniform", trained=("embedding",)
)
RATES = {"cross-entropy, SGD": 0.1, "cross-entropy, Adam": 0.01, "squared, SGD": 0.1, "squared, Adam": 0.01}
PUBLISHED = dict.fromkeys(shared.PANELS, 0.01)


def theorem_surroundings(model: nn.Module) -> None:
    """The identity as value matrix and the output bias of Theorem 2.1.1."""
    assert isinstance(model, OneLayerTopics)
    set_value(model, np.eye(shared.VOCAB))
    with torch.no_grad():
        model.output_bias.copy_(torch.from_numpy(embedding_optimum(MaskedStatistics())[1]))


@dataclass(frozen=True)
class Settings:
    """One experiment per panel, all weights trained, and one per panel for the embeddings alone."""

    together: tuple[Experiment, ...]
    alone: tuple[Experiment, ...]


def settings(rates: dict[str, float], steps: int | dict[str, int], seeds: int) -> Settings:
    together = shared.panels(ALL, rates, steps=steps, seeds=seeds)
    return Settings(together, shared.panels(ALONE, rates, steps=steps, seeds=seeds, prepare=theorem_surroundings))


QUICK = settings(RATES, steps=1000, seeds=6)
study = Study(
    "topics/embedding-blocks",
    title="Trained embeddings have larger inner products for words of one topic",
    source=shared.SOURCE,
    at="Figure 2.1",
    quick=QUICK,
    full=settings(PUBLISHED, steps=shared.published_steps(50_000, 10_000), seeds=10),
    null=untrained(QUICK),
)


@dataclass(frozen=True)
class Results:
    """Gram matrices (seed, word, word) and final losses of each panel; the embeddings alone end with ", alone"."""

    grams: dict[str, np.ndarray]
    losses: dict[str, np.ndarray]

    def separations(self, *panels: str) -> list[float]:
        """For each seed the smallest over panels of (beside − different)/its standard error."""
        each = [[(c.beside - c.different) / c.error for c in shared.contrasts(self.grams[name])] for name in panels]
        return [float(value) for value in np.min(each, axis=0)]

    def sums(self, panel: str) -> np.ndarray:
        """(seed, 2): row sums over the own topic and over another one."""
        return np.array([block_sums(each, shared.WORDS) for each in self.grams[panel]])


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    names = [*shared.PANELS, *(f"{name}, alone" for name in shared.PANELS)]
    runs = dict(zip(names, lab.train([*settings.together, *settings.alone], label="embeddings", weights=True)))
    tables = {name: shared.weights(each, "embedding") for name, each in runs.items()}
    grams = {name: table.transpose(0, 2, 1) @ table for name, table in tables.items()}
    return Results(grams, {name: each.metrics["loss"][:, -1] for name, each in runs.items()})


@study.claim(Mean(above=5.0), at="Figure 2.1", paper="blocks in all four panels")
def blocks_together(results: Results) -> list[float]:
    """With all weights trained, words of one topic have larger inner products, in all four panels.

    (Mean over pairs of different words of one topic − mean over pairs of two topics)/its standard error; the
    smallest of the four panels.
    """
    return results.separations(*shared.PANELS)


@study.claim(Mean(above=5.0), at="Theorem 2.1.1")
def blocks_alone(results: Results) -> list[float]:
    """So they have when only the embeddings are trained.

    (Mean over pairs of different words of one topic − mean over pairs of two topics)/its standard error; the
    smallest of the four panels.
    """
    return results.separations(*(f"{name}, alone" for name in shared.PANELS))


@study.claim(Mean(equals=1.156, within=0.058), at="Theorem 2.1.1", paper="1/k = 1.156")
def own_topic_sum(results: Results) -> np.ndarray:
    """Embeddings alone, squared loss and Adam: rows of the Gram matrix sum to 1/k over their own topic.

    Mean over words of the sum over their topic.
    """
    return results.sums("squared, Adam, alone")[:, 0]


@study.claim(Mean(below=1.0), at="Theorem 2.1.1", paper="1/k and 0, up to a common shift")
def both_sums(results: Results) -> np.ndarray:
    """They sum to 1/k over their own topic and to nothing over others.

    Larger of |own sum − 1.156|/0.058 and |other sum|/0.05: below 1 when both lie within their tolerance.
    """
    sums = results.sums("squared, Adam, alone")
    return np.maximum(np.abs(sums[:, 0] - 1.156) / 0.058, np.abs(sums[:, 1]) / 0.05)


@study.table
def gram_matrices(results: Results) -> Rows:
    return shared.contrast_rows(results.grams, results.losses)


@study.figure
def grams(results: Results) -> dict[str, Figure]:
    first = {name: found[0] for name, found in results.grams.items()}
    alone = {name: matrix for name, matrix in first.items() if name.endswith("alone")}
    together = {name: matrix for name, matrix in first.items() if name not in alone}
    return {
        "all weights trained": shared.draw_matrices(
            together, "Inner products of embeddings, all weights trained", "word"
        ),
        "embeddings alone": shared.draw_matrices(alone, "Inner products of embeddings, trained alone", "word"),
    }
