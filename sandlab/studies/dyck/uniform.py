"""Uniform attention is enough: trained with frozen uniform attention, and computed exactly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from sandlab import figures
from sandlab.circuits.dyck.balanced import uniform_dyck
from sandlab.random import rng
from sandlab.studies.claims import Above, Below, Claim
from sandlab.studies.dyck.runs import SOURCE, Run, gather, split_seeds, train_run
from sandlab.studies.study import Lab, Outcome, study
from sandlab.worlds.dyck.language import Dyck

RUN = Run(frozen=True, steps=1000)
LENGTHS = (28, 100, 300, 1000)


@dataclass(frozen=True)
class Settings:
    seeds: int = 4
    run: Run = RUN


@study(
    "dyck/uniform",
    title="Two layers of uniform attention know Dyck words",
    source=f"{SOURCE}, Corollary 1",
    quick=Settings(),
    full=Settings(seeds=20, run=Run(frozen=True, steps=2000, width=200, mlp_width=200, lr=1e-3)),
    claims=[
        Claim(
            "trained",
            "A two-layer model whose attention is frozen to uniform learns to close brackets.",
            f"{SOURCE}, footnote to Corollary 1",
            "closing accuracy in distribution",
            Above(0.97),
            paper="more than 99 %",
        ),
        Claim(
            "exact",
            "The exact circuit is right at every length.",
            f"{SOURCE}, Corollary 1",
            "largest error of the law at 1000 brackets",
            Below(1e-5),
            exact=True,
        ),
    ],
)
def uniform(config: Settings, lab: Lab) -> Outcome:
    """Attention logits are fixed to zero in both layers; values, feed-forward blocks and embeddings are trained.

    The curve is the exact circuit's largest error against length; the dots are the trained models' closing errors in
    distribution and at 400 to 500 brackets. Uniform attention computes depth/(n+1) and 1/(n+1): the norm cancels n.
    """
    parts = lab.map(train_run, split_seeds(config.run, config.seeds, lab.device), label="frozen uniform attention")
    errors = [_exact_error(length) for length in LENGTHS]
    figure, axes = figures.new(columns=2, width=4.0, height=2.9)
    axes[0].plot([28] * config.seeds, 1 - gather(parts, "in_argmax"), "o", label="at most 28 brackets")
    axes[0].plot([450] * config.seeds, 1 - gather(parts, "long_argmax"), "s", label="400–500 brackets")
    axes[0].set(title="trained, attention frozen", xlabel="brackets", ylabel="closing error", ylim=(0, None))
    axes[0].legend()
    axes[1].loglog(LENGTHS, errors, "o-")
    axes[1].set(title="exact circuit", xlabel="brackets", ylabel="largest error of the law")
    measurements: dict[str, Any] = {"trained": gather(parts, "in_argmax"), "exact": errors[-1]}
    return Outcome(measurements, {"uniform": figure})


def _exact_error(length: int) -> float:
    world = Dyck(length=length)
    batch = world.sample(4, rng=rng(0, str(length)))
    with torch.no_grad():
        return float(np.abs((uniform_dyck().law(batch.inputs) - world.oracle(batch).exp()).numpy()).max())
