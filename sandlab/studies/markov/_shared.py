"""What the studies of this chapter share: losses of known predictors, training on binary chains."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sandlab.learning.experiment import Runs, Snapshot, Training
from sandlab.lenses.distances import estimators
from sandlab.models.transformer import TransformerConfig
from sandlab.worlds.base import cross_entropy

ATTENTION_WITH_MARKOV = (
    "Makkuva et al. 2024, Attention with Markov: a framework for principled analysis of transformers via Markov chains"
)
LOCAL_TO_GLOBAL = (
    "Makkuva et al. 2024, Local to Global: learning dynamics and effect of initialization for transformers"
)


def cosine(steps: int, batch_size: int, lr: float, *, evals: int, eval_examples: int) -> Training:
    """AdamW with a warm-up over a twentieth of the steps, then cosine decay."""
    warmup = steps // 20
    return Training(steps, batch_size, lr, schedule="cosine", warmup=warmup, evals=evals, eval_examples=eval_examples)


@dataclass(frozen=True)
class KnownLosses:
    """Losses of known predictors on the held-out examples, by name: "oracle", or one of the world's baselines."""

    names: tuple[str, ...] = ("oracle",)

    def __call__(self, now: Snapshot) -> dict[str, np.ndarray]:
        known, batch = estimators(now.world), now.batch
        losses = {name: float(cross_entropy(known[name](batch), batch)) for name in self.names}
        return {name: np.full(len(now.model), loss) for name, loss in losses.items()}


def gap_left(runs: Runs, baseline: str, best: str = "oracle") -> np.ndarray:
    """(loss − optimum)/(loss of a baseline − optimum) at the end; needs the KnownLosses `best` and the baseline."""
    optimum = runs.final[best]
    return (runs.metrics["loss"][:, -1] - optimum) / (runs.final[baseline] - optimum)


def chain_model(length: int, tied: bool = True, *, layers: int = 1, norm: str = "none") -> TransformerConfig:
    """The transformer of Makkuva et al. for binary chains: one head, width 8, feed-forward 32 (GELU), no biases."""
    return TransformerConfig(2, length, layers, width=8, norm=norm, tied=tied, bias=False, init_std=0.02)


def chain_training(steps: int, batch_size: int, *, schedule: str = "cosine", evals: int = 20) -> Training:
    """AdamW as in the public code of Makkuva et al., with 2 % warm-up."""
    return Training(
        steps, batch_size, lr=2e-3, betas=(0.9, 0.95), weight_decay=1e-3, schedule=schedule,
        warmup=max(1, steps // 50), evals=evals, eval_examples=128,
    )  # fmt: skip
