"""What the studies of parallel generation share."""

from __future__ import annotations

import numpy as np

from sandlab.learning.experiment import Experiment, Training
from sandlab.learning.objectives import Objective
from sandlab.learning.parallel.refinement import RefinementLoss, TeacherForcing
from sandlab.models.parallel.encoder_decoder import EncoderDecoderConfig
from sandlab.worlds.parallel.translation import ToyTranslation

SOURCE = "Li 2024, Mathematical and algorithmic foundations of structured language modelling (thesis), chapter 4"
SPEC = "Own derivation"
"""Source of closed forms that the thesis does not print."""

QUICK_WORLD = ToyTranslation(longest=6)
FULL_WORLD = ToyTranslation(words=(80, 40, 40, 20, 20), shortest=8, longest=24, clauses=2)


def translator(
    world: ToyTranslation, *, full: bool = False, causal: bool = False, placed: bool = True
) -> EncoderDecoderConfig:
    """The encoder-decoder for a world: 2 + 2 layers of width 64, or the source's 6 + 6 of width 512."""
    size = {"layers": 6, "heads": 8, "width": 512, "mlp_width": 2048, "dropout": 0.1} if full else {"width": 64}
    return EncoderDecoderConfig(
        world.vocab, world.source_length, world.target_length, causal=causal, positional_attention=placed, **size
    )


def refining(
    world: ToyTranslation, seeds: int, *, full: bool = False, loss: RefinementLoss | None = None, placed: bool = True,
    steps: int = 0,
) -> Experiment:  # fmt: skip
    """A model trained to refine answers."""
    objective = loss or RefinementLoss(world.vocab)
    return Experiment(world, translator(world, full=full, placed=placed), recipe(objective, full, steps), seeds)


def writing(world: ToyTranslation, seeds: int, *, full: bool = False, steps: int = 0) -> Experiment:
    """The autoregressive model of the same size."""
    return Experiment(world, translator(world, full=full, causal=True), recipe(TeacherForcing(), full, steps), seeds)


def recipe(objective: Objective, full: bool, steps: int) -> Training:
    """AdamW with a warm-up; in full a cosine and clipping, 3000 steps of 256 pairs (the source: 500 000 of 2048)."""
    if full:
        return Training(
            steps=steps or 3000, batch_size=256, lr=5e-4, warmup=300, schedule="cosine", clip=1.0, evals=6,
            objective=objective, precision="bf16", eval_examples=128,
        )  # fmt: skip
    return Training(
        steps=steps or 300, batch_size=32, lr=3e-3, warmup=50, schedule="linear", evals=6, objective=objective,
        eval_examples=256,
    )  # fmt: skip


def spread(values: np.ndarray) -> np.ndarray:
    """Half a standard deviation over repetitions (first axis): the source's error bars."""
    return 0.5 * values.std(0, ddof=1) if len(values) > 1 else np.zeros(values.shape[1:])
