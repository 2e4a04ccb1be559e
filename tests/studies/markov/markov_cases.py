"""Made-up runs for claims, and settings small enough for a test."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np

from sandlab.learning.experiment import Experiment, Runs
from sandlab.studies.study import Study


def made_up(metrics: dict[str, Any] | None = None, final: dict[str, Any] | None = None, seeds: int = 4) -> Runs:
    """Runs whose seeds all have the same curves (evaluation, …) and the same final values."""
    curves = {name: np.stack([np.asarray(value)] * seeds) for name, value in (metrics or {}).items()}
    ends = {name: np.stack([np.asarray(value)] * seeds) for name, value in (final or {}).items()}
    evals = max((curve.shape[1] for curve in curves.values()), default=2)
    return Runs(tuple(range(seeds)), np.arange(evals) * 10, np.zeros((seeds, 10)), curves, ends, parameters=7)


def tiny(settings: Any, *, steps: int = 2, seeds: int = 2) -> Any:
    """The same settings with a few steps and seeds in every experiment."""
    if isinstance(settings, Experiment):
        training = replace(settings.training, steps=steps, batch_size=4, evals=2, eval_examples=16)
        return replace(settings, training=training, seeds=seeds)
    if isinstance(settings, tuple):
        return tuple(tiny(each, steps=steps, seeds=seeds) for each in settings)
    if is_dataclass(settings):
        changed = {each.name: tiny(getattr(settings, each.name), steps=steps, seeds=seeds) for each in fields(settings)}
        return replace(settings, **changed)
    return settings


def measured(study: Study[Any], settings: Any, lab: Any) -> tuple[dict[str, str], Any]:
    """Verdicts of all claims of the quick preset, every one of which must be measured, and the outcome."""
    outcome = study.run(settings, lab, "quick")
    verdicts = {finding.claim.rpartition(".")[2]: finding.verdict for finding in outcome.findings}
    assert outcome.unmeasured == {}
    assert set(verdicts) == {claim.id.rpartition(".")[2] for claim in study.claims if "quick" in claim.presets}
    assert outcome.figures
    return verdicts, outcome
