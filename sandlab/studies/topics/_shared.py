"""What the studies of this chapter share: the source, the four panels of its figures, pictures of matrices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure

from sandlab.circuits.topics.optima import ridge_fit
from sandlab.figures import new
from sandlab.learning.experiment import Experiment, Runs, Training
from sandlab.learning.topics.losses import MaskedSquares, frobenius
from sandlab.lenses.topics.attention import TopicAttention, attention_by_topic, word_counts
from sandlab.lenses.topics.matrices import BlockContrast, block_contrast
from sandlab.lenses.topics.pictures import draw_topic_matrix
from sandlab.models.topics.one_layer import OneLayerTopics
from sandlab.random import rng
from sandlab.studies.study import Rows
from sandlab.worlds.topics.documents import LDATopics

SOURCE = "Li 2024 (thesis, data–training–inference)"
LAST = 48  # predicted positions of a document; more occur about once in 10⁷ documents
WORLD = LDATopics(last=LAST)
WORDS, VOCAB = WORLD.words, WORLD.outputs
PANELS = ("cross-entropy, SGD", "cross-entropy, Adam", "squared, SGD", "squared, Adam")


def training(panel: str, *, steps: int, lr: float, strength: float = 0.0) -> Training:
    """Batches of 40 documents; `strength` is λ of the squared norm of the weights."""
    return Training(
        steps=steps,
        batch_size=40,
        lr=lr,
        optimizer="sgd" if panel.endswith("SGD") else "adam",
        weight_decay=frobenius(strength),
        objective=MaskedSquares() if panel.startswith("squared") else None,
        evals=4,
        eval_examples=400,
    )


def panels(
    model: Any,
    rates: Mapping[str, float],
    *,
    steps: int | Mapping[str, int],
    seeds: int,
    strength: float = 0.0,
    **options: Any,
) -> tuple[Experiment, ...]:
    """One experiment per panel, in the order of `PANELS`; `steps` for all or for each."""
    count = dict.fromkeys(PANELS, steps) if isinstance(steps, int) else steps
    return tuple(
        Experiment(WORLD, model, training(each, steps=count[each], lr=rates[each], strength=strength), seeds, **options)
        for each in PANELS
    )


def published_steps(sgd: int, adam: int) -> dict[str, int]:
    """Steps of each panel: SGD with the published rate 0.01 needs many more than Adam."""
    return {each: sgd if each.endswith("SGD") else adam for each in PANELS}


def weights(runs: Runs, name: str) -> np.ndarray:
    """A weight of all seeds at the end of their training."""
    assert runs.weights is not None
    return runs.weights[name].double().numpy()


def contrasts(matrices: np.ndarray) -> list[BlockContrast]:
    """Block statistics of each seed's matrix."""
    return [block_contrast(each, WORDS) for each in matrices]


def draw_matrices(matrices: Mapping[str, np.ndarray], title: str, label: str) -> Figure:
    """Matrices over words side by side, without the row and column of [MASK]; each has its own colours."""
    figure, axes = new(columns=len(matrices), width=3.3, height=3.0, title=title)
    for axis, (name, matrix) in zip(axes, matrices.items()):
        draw_topic_matrix(axis, matrix, WORDS, title=name, y=label if axis is axes[0] else "")
    return figure


def topic_averages(experiment: Experiment, runs: Runs, documents: int, shift: int = 0) -> list[TopicAttention]:
    """Average attention of every seed on the same unmasked documents."""
    words = WORLD.sample(documents, rng=rng(2, "attention")).truth["words"]
    models = [runs.model(experiment.model, index) for index in range(len(runs))]
    asked = [model for model in models if isinstance(model, OneLayerTopics)]
    return [attention_by_topic(model, words, WORDS, label_shift=shift) for model in asked]


def classes(found: list[TopicAttention]) -> np.ndarray:
    """(seed, kind of pair): same word, other word of the topic, other topics."""
    return np.array([(each.same_word, each.same_topic, each.different) for each in found])


@dataclass(frozen=True)
class Ridge:
    """How many documents, and λ."""

    documents: int
    strength: float


def ridge_on_documents(job: Ridge) -> np.ndarray:
    """The value matrix that minimises the penalised squared loss on sampled documents, under uniform attention."""
    batch = WORLD.sample(job.documents, rng=rng(3, "ridge"))
    true = torch.where(batch.mask, batch.targets, VOCAB)  # beyond the vocabulary: not counted
    seen, wanted = (word_counts(tokens, VOCAB).numpy() for tokens in (batch.inputs, true))
    seen, wanted = (counts / np.maximum(counts.sum(1, keepdims=True), 1) for counts in (seen, wanted))
    return ridge_fit(seen, wanted, job.strength)


def contrast_rows(matrices: Mapping[str, np.ndarray], losses: Mapping[str, np.ndarray]) -> Rows:
    """Means over seeds of the block statistics of each panel."""
    return [
        {
            "panel": name,
            "loss": float(losses[name].mean()),
            **{
                field: float(np.mean([getattr(each, field) for each in contrasts(found)]))
                for field in ("same", "different", "diagonal", "beside", "auc", "ratio", "diagonality")
            },
        }
        for name, found in matrices.items()
    ]
