"""Trainings and probes of the studies keep to their device: on a pretended GPU nothing meets a tensor of the CPU."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import replace

import pytest
from pretended_gpu import pretended_gpu

import sandlab as sl
from sandlab.learning.experiment import Experiment, Members, train_members


def experiments(settings: object) -> Iterator[Experiment]:
    """Every experiment inside settings."""
    if isinstance(settings, Experiment):
        yield settings
    elif isinstance(settings, tuple):
        for each in settings:
            yield from experiments(each)
    elif dataclasses.is_dataclass(settings) and not isinstance(settings, type):
        for each in dataclasses.fields(settings):
            yield from experiments(getattr(settings, each.name))


def kinds(study: str) -> list[Experiment]:
    """One experiment of each kind of world, model and probes that a study trains."""
    found = experiments(sl.get("studies", study).presets["quick"])
    return list({(type(each.world), type(each.model), each.probes, each.final): each for each in found}.values())


def brief(experiment: Experiment) -> Experiment:
    """Two updates of two members."""
    short = {"steps": 2, "batch_size": 2, "evals": 1, "eval_examples": 4, "warmup": 0, "precision": "float32"}
    then = None if experiment.then is None else brief(experiment.then)
    return replace(experiment, training=replace(experiment.training, **short), seeds=2, then=then)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize("study", sl.names("studies"))
def test_what_a_study_trains_keeps_to_its_device(study: str) -> None:
    for experiment in kinds(study):
        with pretended_gpu():
            runs = train_members(Members(brief(experiment), (0, 1), "cuda", weights=True))
        assert len(runs) == 2
