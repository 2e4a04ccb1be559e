"""What the studies of this chapter share: the source, the four panels of its figures, pictures of matrices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from sandlab.figures import heatmap, new
from sandlab.learning.experiment import Experiment, Runs, Training
from sandlab.learning.topics.losses import MaskedSquares, frobenius
from sandlab.lenses.topics.matrices import BlockContrast, block_contrast
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
    model: Any, rates: Mapping[str, float], *, steps: int, seeds: int, strength: float = 0.0, **options: Any
) -> tuple[Experiment, ...]:
    """One experiment per panel, in the order of `PANELS`."""
    return tuple(
        Experiment(WORLD, model, training(each, steps=steps, lr=rates[each], strength=strength), seeds, **options)
        for each in PANELS
    )


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
        heatmap(axis, matrix[1:, 1:], title=name, x="word", y=label if axis is axes[0] else "")
    return figure


def contrast_rows(matrices: Mapping[str, np.ndarray], losses: Mapping[str, np.ndarray]) -> Rows:
    """Means over seeds of the block statistics of each panel."""
    return [
        {
            "panel": name,
            "loss": float(losses[name].mean()),
            **{
                field: float(np.mean([getattr(each, field) for each in contrasts(found)]))
                for field in ("same", "different", "diagonal", "beside", "auc", "ratio")
            },
        }
        for name, found in matrices.items()
    ]
