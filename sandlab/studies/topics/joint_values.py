"""Trained together with attention, the value matrix has blocks with cross-entropy and a diagonal with the squared loss.

**Set-up.** LDA documents as in `topics/value-blocks`; one-hot embeddings; keys, queries, values and their biases are
trained together from N(0, 0.01²), without a penalty. SGD: learning rate 1 for the cross-entropy and 0.3 for the squared
loss in the quick preset; `full` takes the published 0.01 everywhere and many more steps.

**What to look for.** Blocks in the first three panels. The fourth, squared loss with Adam, is the diagonal pattern of
Figure 2.10: attention learns to look at the same word, and the value matrix copies it. The source found diagonals with
the cross-entropy too, in seven of ten runs; how often that happens within these steps is in the table (diagonality 0
is a uniform block, 1 a diagonal).

**What was learnt** (full, 10 seeds, one H200, 2026-11-16). All four patterns are those of the source: same-topic
entries are 9 times as large as the others with SGD under either loss (the source's squared-loss panel: 10), and the
squared loss with Adam ends at diagonality 0.88. With the cross-entropy and Adam blocks remain, with a
diagonality of 0.22. The diagonal is one up to exchanges within topics, the points beside it in the second picture: in
the first seed of quick, 29 of 100 words look at another word of their topic, which no other word looks at, and the
value matrix leads back from it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from sandlab.learning.experiment import Experiment, Snapshot
from sandlab.models.topics.one_layer import OneLayerTopicsConfig
from sandlab.studies.claims import Mean, Ratio
from sandlab.studies.nulls import untrained
from sandlab.studies.study import Lab, Rows, Study
from sandlab.studies.topics import _shared as shared

MODEL = OneLayerTopicsConfig(vocab=shared.VOCAB, read=shared.LAST)
RATES = {"cross-entropy, SGD": 1.0, "cross-entropy, Adam": 0.01, "squared, SGD": 0.3, "squared, Adam": 0.01}
PUBLISHED = dict.fromkeys(shared.PANELS, 0.01)
DIAGONAL = "squared, Adam"
STEPS = shared.published_steps(100_000, 10_000)


def value_matrices_along(snapshot: Snapshot) -> dict[str, np.ndarray]:
    """The value matrix itself, at every evaluation."""
    return {"value": snapshot.model.stacked["value"].detach().cpu().numpy().copy()}  # training goes on in place


@dataclass(frozen=True)
class Settings:
    """One experiment per panel: cross-entropy with SGD and Adam, squared loss with SGD and Adam."""

    panels: tuple[Experiment, ...]


QUICK = Settings(shared.panels(MODEL, RATES, steps=1500, seeds=3, probes=(value_matrices_along,)))
study = Study(
    "topics/joint-values",
    title="Trained with attention, values have blocks with cross-entropy and a diagonal with the squared loss and Adam",
    source=shared.SOURCE,
    at="Figures 2.6 and 2.10",
    quick=QUICK,
    full=Settings(shared.panels(MODEL, PUBLISHED, steps=STEPS, seeds=10, probes=(value_matrices_along,))),
    null=untrained(QUICK),
)


@dataclass(frozen=True)
class Results:
    """Value matrices (seed, evaluation, word, word) and final losses of each panel; steps of the diagonal one."""

    eval_steps: np.ndarray
    values: dict[str, np.ndarray]
    losses: dict[str, np.ndarray]

    @property
    def last(self) -> dict[str, np.ndarray]:
        return {name: each[:, -1] for name, each in self.values.items()}

    def measured(self, panel: str, name: str) -> list[float]:
        return [float(getattr(each, name)) for each in shared.contrasts(self.last[panel])]


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    runs = dict(zip(shared.PANELS, lab.train(settings.panels, label="value matrices")))
    values = {name: each.metrics["value"] for name, each in runs.items()}
    losses = {name: each.metrics["loss"][:, -1] for name, each in runs.items()}
    return Results(runs[DIAGONAL].eval_steps, values, losses)


@study.claim(Mean(above=0.9), at="Figure 2.6, second panel", paper="blocks")
def blocks_cross_entropy_adam(results: Results) -> list[float]:
    """Cross-entropy with Adam gives larger entries to pairs of one topic than to pairs of two.

    Probability that the entry of a same-topic pair exceeds that of a different-topic pair.
    """
    return results.measured("cross-entropy, Adam", "auc")


@study.claim(Mean(above=0.95), at="Figure 2.6, first panel", paper="blocks")
def blocks_cross_entropy_sgd(results: Results) -> list[float]:
    """So does cross-entropy with SGD.

    Probability that the entry of a same-topic pair exceeds that of a different-topic pair.
    """
    return results.measured("cross-entropy, SGD", "auc")


@study.claim(Mean(above=0.95), at="Figure 2.6, third panel", paper="blocks")
def blocks_squared_sgd(results: Results) -> list[float]:
    """So does the squared loss with SGD.

    Probability that the entry of a same-topic pair exceeds that of a different-topic pair.
    """
    return results.measured("squared, SGD", "auc")


@study.claim(Ratio(above=5.0), at="Figure 2.6, third panel", paper="10 (0.00655 against −0.00065)")
def squared_sgd_ratio(results: Results) -> list[float]:
    """There the entries of same-topic pairs are many times as large as the others.

    |mean entry of same-topic pairs| / |mean entry of different-topic pairs|.
    """
    return results.measured("squared, SGD", "ratio")


@study.claim(Mean(above=0.5), at="Figure 2.10", paper="a visible diagonal")
def diagonal_squared_adam(results: Results) -> list[float]:
    """The squared loss with Adam gives a diagonal instead of blocks.

    (mean of the diagonal − mean of other same-topic entries)/(mean of the diagonal − mean of different-topic entries).
    """
    return results.measured(DIAGONAL, "diagonality")


@study.table
def value_matrices(results: Results) -> Rows:
    return shared.contrast_rows(results.last, results.losses)


@study.figure
def matrices(results: Results) -> dict[str, Figure]:
    shown = {name: found[0] for name, found in results.last.items()}
    film = results.values[DIAGONAL][0]
    along = {f"step {int(step)}": value for step, value in zip(results.eval_steps, film)}
    return {
        "panels": shared.draw_matrices(shown, "Values trained with attention, first seed", "predicted word"),
        "along training": shared.draw_matrices(along, "Squared loss, Adam: the diagonal appears", "predicted word"),
    }
