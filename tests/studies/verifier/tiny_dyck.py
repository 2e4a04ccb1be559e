"""Dyck studies on models small enough to train in a second, and made-up counts for their claims."""

from __future__ import annotations

from dataclasses import replace

from sandlab.learning.experiment import Training
from sandlab.models.transformer import TransformerConfig
from sandlab.studies.verifier.dyck import _dyck_runs as dyck

MODEL = TransformerConfig(vocab=6, length=dyck.LIMIT, layers=2, heads=2, width=16)
TRAINING = Training(steps=30, batch_size=16, lr=2e-3, ema=0.9, evals=1, eval_examples=64)
TINY = dyck.Settings(
    replace(dyck.SMALL, model=MODEL, training=TRAINING, seeds=2),
    searched=120,
    for_verifier=30,
    prefixes=20,
    fresh=30,
    repetitions=2,
    rounds=2,
    diverse=4,
    points=40,
    probe_steps=20,
    splits=2,
    shuffles=5,
)
