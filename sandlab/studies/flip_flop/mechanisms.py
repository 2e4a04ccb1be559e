"""Many mechanisms for one bit: attention of deeper models, plain and sharpened, and what its maxima do not say.

Deeper transformers on the flip-flop automaton: plain, sharpened, and with only the first layer sharpened. The maps show
the first layers and all heads on the input σ1 ⊥ σ0 ⊥ ⊥ σ0 σ1 ⊥ for one seed of the plain and one of the sharpened
model. The curves show how far apart the heads of a layer are (Frobenius distance of all pairs) during training.

A maximum of attention is not an explanation: rows exist whose maximum is on a wrong token while the answer is right;
weighting attention by the norm of what it transfers repairs some of them. This is measured in the first layer, where a
token carries nothing but itself: in the last one most tokens carry the answer already, maxima are anywhere (see the
table) and importance repairs next to nothing.

**What was learnt** (quick, 2026-11-15). Sharpening lowers the entropy of rows to a tenth and gives a head that points
at the latest write. Two statements of the source were not found at this size: with only the first layer sharpened,
later layers are about as diffuse as in a plain model (ratio 1.06), and sharpening makes the weight vector a little
longer, not shorter (1.06).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.learning.experiment import Experiment, Runs
from sandlab.lenses.flip_flop.pictures import draw_operations
from sandlab.lenses.flip_flop.probes import HeadDistances, misleading_maxima, weight_norm
from sandlab.studies.claims import Mean
from sandlab.studies.flip_flop._shared import IDLE, PROBE, SOURCE, labelling, sharpened
from sandlab.studies.nulls import untrained
from sandlab.studies.study import Lab, Rows, Study

SHOWN = 3  # layers of the maps that are drawn


@dataclass(frozen=True)
class Settings:
    """The plain model, and the strength of the penalty on the rows of the other two."""

    plain: Experiment
    strength: float


def plain_model(**options: Any) -> Experiment:
    """A deeper model with the probes of this study."""
    plain = labelling(**options)
    return replace(plain, probes=(weight_norm, HeadDistances(PROBE)), final=(*plain.final, misleading_maxima))


QUICK = Settings(plain_model(layers=2, heads=4, steps=500, seeds=6), 0.1)
PUBLISHED = plain_model(layers=6, heads=8, width=512, steps=2500, lr=3e-4, precision="tf32", seeds=5)
study = Study(
    "flip-flop/mechanisms",
    title="Sharpening gives a head that points at the latest write; later layers and weight norms do not follow",
    source=SOURCE,
    at="Figures 4 and 15–18",
    quick=QUICK,
    full=Settings(PUBLISHED, 0.01),
    null=replace(QUICK, plain=untrained(QUICK.plain)),
)


@dataclass(frozen=True)
class Results:
    plain: Runs
    sharpened: Runs
    first_layer: Runs

    @property
    def models(self) -> dict[str, Runs]:
        return {"plain": self.plain, "sharpened": self.sharpened, "first layer sharpened": self.first_layer}


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    plain, strength = settings.plain, settings.strength
    models = [plain, sharpened(plain, strength), sharpened(plain, strength, layers="0")]
    return Results(*lab.train(models, label="deeper models"))


@study.claim(Mean(below=0.5), at="Figure 4")
def sharper(results: Results) -> np.ndarray:
    """Sharpening lowers the entropy of attention rows.

    Mean row entropy, sharpened over plain.
    """
    return results.sharpened.final["entropy"].mean(1) / results.plain.final["entropy"].mean(1)


@study.claim(Mean(above=0.9), at="Figure 4(c)", paper="at least one head equals the ideal pattern")
def ideal_head(results: Results) -> np.ndarray:
    """A sharpened model has a first-layer head whose maximum is the latest write.

    Best head's share of no-op rows with the maximum on the latest write, sharpened models.
    """
    return results.sharpened.final["scores"]["hit_idle"].max(1)


@study.claim(Mean(below=1.0), at="Figure 18")
def sharpness_spreads(results: Results) -> np.ndarray:
    """With only the first layer sharpened, later layers are sharper than in a plain model too.

    Entropy of later layers, first layer sharpened over plain.
    """
    return results.first_layer.final["entropy"][:, 1:].mean(1) / results.plain.final["entropy"][:, 1:].mean(1)


@study.claim(Mean(above=0.01), at="Figure 15", id="misleading-maxima")
def misleading_share(results: Results) -> np.ndarray:
    """The largest attention weight can sit on a wrong token although the answer is right.

    Share of first-layer rows that are right with a misplaced maximum, plain models with less than 1 % error at
    p(⊥) = 0.9 (0 for others).
    """
    learnt = results.plain.final["errors"][:, IDLE.index(0.9)] < 0.01
    return np.where(learnt, results.plain.final["misleading first"][:, 0], 0.0)


@study.claim(Mean(above=0.0), at="Figure 15")
def importance(results: Results) -> np.ndarray:
    """Weight times value norm points at a right token more often than weight alone.

    Share of first-layer rows with a right answer whose largest importance is on a right token, minus that of rows whose
    largest weight is, plain models.
    """
    return results.plain.final["misleading first"][:, 2]


@study.claim(Mean(below=1.0), at="Figure 16")
def smaller_weights(results: Results) -> np.ndarray:
    """Sharpening keeps the weights smaller.

    Length of the weight vector, sharpened over plain, at the end.
    """
    return results.sharpened.metrics["norm"][:, -1] / results.plain.metrics["norm"][:, -1]


@study.claim(Mean(above=1.1), at="Figure 16", paper="different dynamics")
def dynamics(results: Results) -> np.ndarray:
    """Sharpening changes how the heads of a layer come apart during training.

    Mean over training and layers of the distance between heads, sharpened over plain.
    """
    sharp, plain = (runs.metrics["distances"].mean((1, 2, 3)) for runs in (results.sharpened, results.plain))
    return sharp / plain


@study.table
def errors(results: Results) -> Rows:
    return [
        {
            "model": kind,
            **{f"error at {idle}": float(error) for idle, error in zip(IDLE, runs.final["errors"].mean(0))},
            "row entropy": float(runs.final["entropy"].mean()),
            "misleading rows, first layer": float(runs.final["misleading first"][:, 0].mean()),
            "misleading rows, last layer": float(runs.final["misleading last"][:, 0].mean()),
        }
        for kind, runs in results.models.items()
    ]


@study.figure
def maps(results: Results) -> Figure:
    """Heads side by side, the first layers of one plain and one sharpened model below each other."""
    both = [(kind, results.models[kind].final["maps"][0, :SHOWN]) for kind in ("plain", "sharpened")]
    layers, heads = both[0][1].shape[:2]
    figure, axes = figures.new(columns=heads, rows=2 * layers, width=1.7, height=1.75)
    rows = [(f"{kind}, layer {layer + 1}", pattern) for kind, maps in both for layer, pattern in enumerate(maps)]
    for row, (title, pattern) in enumerate(rows):
        for head in range(heads):
            first = head == 0
            axis, text = axes[row * heads + head], title if first else ""
            draw_operations(axis, pattern[head], PROBE, title=text, queries=first, size=6)
    return figure


@study.figure
def head_differences_in_training(results: Results) -> dict[str, Figure]:
    figure, axes = figures.new(columns=3, width=3.2, height=2.8)
    for axis, (kind, runs) in zip(axes, results.models.items()):
        distances = runs.metrics["distances"].mean(-1)
        for layer in range(distances.shape[-1]):
            figures.band(axis, runs.eval_steps, distances[..., layer], label=f"layer {layer + 1}")
        axis.set(title=kind, xlabel="training step")
    axes[0].set_ylabel("distance between heads")
    axes[0].legend()
    return {"head-differences": figure}
