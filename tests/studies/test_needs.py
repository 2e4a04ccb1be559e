"""Jobs say what they need."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from sandlab.errors import BadInput
from sandlab.lab.jobs import Needs
from sandlab.studies.wishes import needs


@needs(cpus=2, gpus=0.25, memory=4e9)
def small(config):
    return {}


def test_a_share_of_a_gpu_is_asked_for_on_a_gpu_only():
    assert Needs.of(small, SimpleNamespace(device="cuda")) == Needs(2, 0.25, 4e9)
    assert Needs.of(small, SimpleNamespace(device="cpu")) == Needs(2, 0, 4e9)


def test_without_a_wish_a_job_takes_a_whole_gpu():
    @needs(cpus=3)
    def job(config):
        return {}

    assert Needs.of(job, SimpleNamespace(device="cuda:1")) == Needs(3, 1, 0)


def test_negative_wishes_are_refused():
    with pytest.raises(BadInput, match="gpus must be"):
        needs(gpus=-1)
