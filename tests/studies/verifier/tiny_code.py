"""Code studies on models small enough to train in a second, and made-up texts for their claims."""

from __future__ import annotations

from sandlab.learning.experiment import Training
from sandlab.studies.verifier.codegen import _code_runs as code
from sandlab.worlds.verifier.append_cases import AppendCases

WORLD = AppendCases(cases=1, longest=1, functions=("append", "pop"), examples=1)
TRAINING = Training(steps=60, batch_size=8, lr=1e-2, ema=0.99, evals=1, eval_examples=16)
TINY = code.Settings(
    code.experiment(WORLD, layers=2, width=16, mlp_width=16, seeds=2, training=TRAINING),
    names=2,
    misleading=("pop",),
    completions=2,
    searched=30,
    probe_steps=5,
    hidden=8,
)
