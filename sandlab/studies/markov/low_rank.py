"""Weights of a one-layer transformer become rank one while it learns a binary chain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from sandlab import figures
from sandlab.lenses.spectra import effective_rank, top_share
from sandlab.studies.claims import Above, Below, Claim
from sandlab.studies.markov.one_layer_runs import BinaryRun, train_on_chain
from sandlab.studies.study import Lab, Outcome, study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SOURCE = "Makkuva et al. 2024, Local to Global: learning dynamics and effect of initialization for transformers"
MATRICES = {
    "layers.0.attention.value.weight": "values W_V",
    "layers.0.mlp.up_proj.weight": "feed-forward W₁",
    "layers.0.mlp.down_proj.weight": "feed-forward W₂",
}


@dataclass(frozen=True)
class Settings:
    """One chain that is learnt with tied weights; the weights' spectra are kept at `looks` moments of training."""

    seeds: int = 6
    chain: tuple[float, float] = (0.2, 0.3)
    steps: int = 400
    length: int = 64
    batch: int = 64
    looks: int = 20


@study(
    "markov/low-rank",
    title="Learning a chain drives the weights to rank one",
    source=SOURCE,
    quick=Settings(),
    full=Settings(seeds=16, length=512, batch=16, looks=40),
    claims=[
        Claim(
            "feed-forward",
            "At the end of training the first feed-forward matrix is nearly rank one.",
            SOURCE,
            "share of the energy of W₁ in its largest singular value, σ₁²/Σσ²",
            Above(0.9),
        ),
        Claim(
            "second-map",
            "So is the second feed-forward matrix.",
            SOURCE,
            "share of the energy of W₂ in its largest singular value",
            Above(0.9),
        ),
        Claim(
            "from-full-rank",
            "The matrices do not begin that way.",
            SOURCE,
            "share of the energy of W₁ in its largest singular value before training",
            Below(0.5),
        ),
    ],
)
def low_rank(settings: Settings, lab: Lab) -> Outcome:
    """The matrices of a one-layer transformer on a binary chain start at full rank and end at rank one.

    This is the observation behind the reduction to three numbers (`markov/flow-portrait`): the two token vectors span
    one direction that matters, and the feed-forward maps align with it.

    **Set-up.** As in `markov/weight-tying`: one layer, one head, width 8, feed-forward 32, AdamW, 400 steps, tied
    weights, chain (p, q) = (0.2, 0.3). At 20 moments the singular values of the value map W_V and of the feed-forward
    maps W₁ and W₂ are kept. The share σ₁²/Σσ² is 1 for a rank-one matrix; the effective rank is exp of the entropy of
    σ/Σσ (Roy & Vetterli 2007).

    **In the figure.** The singular values of one seed over training, one line each: one leaves the bundle. Right: the
    leading share over all seeds.

    **What was learnt.** With the settings of the public code only the feed-forward maps become rank one; the value map,
    which the solution does not need, stays near its initialisation.
    """
    run = BinaryRun(
        *settings.chain, tied=True, seeds=tuple(range(settings.seeds)), device=lab.device, steps=settings.steps,
        batch=settings.batch, length=settings.length, looks=settings.looks, spectra=tuple(MATRICES),
    )  # fmt: skip
    (result,) = lab.map(train_on_chain, [run], label="training")
    spectra = {name: torch.from_numpy(result[f"spectrum {name}"]) for name in MATRICES}
    shares = {name: top_share(values).numpy() for name, values in spectra.items()}
    _, rise, fall = MATRICES
    return Outcome(
        measurements={
            "feed-forward": shares[rise][-1].tolist(),
            "second-map": shares[fall][-1].tolist(),
            "from-full-rank": shares[rise][0].tolist(),
        },
        figures={"spectra": spectra_figure(result["steps"], spectra, shares)},
        tables={
            "ranks": [
                {
                    "matrix": MATRICES[name],
                    "leading share, start": float(shares[name][0].mean()),
                    "leading share, end": float(shares[name][-1].mean()),
                    "effective rank, start": float(effective_rank(values[0]).mean()),
                    "effective rank, end": float(effective_rank(values[-1]).mean()),
                }
                for name, values in spectra.items()
            ]
        },
    )


def spectra_figure(steps: np.ndarray, spectra: dict[str, Any], shares: dict[str, np.ndarray]) -> Figure:
    """Singular values of one seed over training, and the leading share over all seeds."""
    figure, axes = figures.new(4, width=3.7, height=3.2, title="The feed-forward maps become rank one")
    with figures.style():
        for axis, (name, values) in zip(axes, spectra.items()):
            rows = values[:, 0].numpy()
            for rank in range(rows.shape[1]):
                colour = figures.COLOURS[1] if rank == 0 else figures.COLOURS[0]
                axis.plot(steps, rows[:, rank], "-", color=colour, linewidth=1.8 if rank == 0 else 0.9)
            axis.set(
                title=MATRICES[name], xlabel="step", ylabel="singular value" if axis is axes[0] else "", ylim=(0, None)
            )
        for name, curves in shares.items():
            figures.band(axes[3], steps, curves.T, label=MATRICES[name])
        axes[3].axhline(0.9, color="#555555", linestyle=":", linewidth=1)
        axes[3].set(title="leading share σ₁²/Σσ²", xlabel="step", ylim=(0, 1.02))
        axes[3].legend(fontsize=8, loc="lower right")
    return figure
