"""Jobs say what they need."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from sandlab.errors import BadInput
from sandlab.lab._exec.jobs import Resources
from sandlab.studies.jobs import resources


@resources(cpus=2, gpus=0.25, memory=4e9)
def small(config):
    return {}


def test_a_share_of_a_gpu_is_asked_for_on_a_gpu_only():
    assert Resources.of(small, SimpleNamespace(device="cuda")) == Resources(2, 0.25, 4e9)
    assert Resources.of(small, SimpleNamespace(device="cpu")) == Resources(2, 0, 4e9)


def test_without_a_wish_a_job_takes_a_whole_gpu():
    @resources(cpus=3)
    def job(config):
        return {}

    assert Resources.of(job, SimpleNamespace(device="cuda:1")) == Resources(3, 1, 0)


def test_negative_asked_are_refused():
    with pytest.raises(BadInput, match="gpus must be"):
        resources(gpus=-1)
