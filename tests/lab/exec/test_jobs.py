"""Jobs that are given more than their config: what it determines, computed once for many of them."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from toys import Toy

from sandlab.errors import BadInput
from sandlab.lab._exec.executors import Executor, Local
from sandlab.lab._exec.processes import Processes
from sandlab.lab._store.store import Store
from sandlab.lab.laboratory import Laboratory


def scaled(config: Toy, weights: torch.Tensor) -> dict[str, float]:
    return {"sum": float(config.size * weights.sum())}


@pytest.mark.parametrize("executor", [Local(), Processes(1)], ids=["local", "processes"])
def test_a_job_takes_what_is_given_with_its_config_and_its_result_is_kept_under_the_config(
    executor: Executor, tmp_path: Path
) -> None:
    configs = [Toy(seed, size=seed) for seed in (1, 2, 3)]
    given = [torch.full((2,), float(config.seed)) for config in configs]
    lab = Laboratory(Store.open(tmp_path), executor)
    try:
        assert [found["sum"] for found in lab.map(scaled, configs, given=given)] == [2.0, 8.0, 18.0]
        # The value is no part of the key: a second call computes nothing, whatever it is given.
        again = lab.map(scaled, configs, given=[torch.zeros(2)] * 3)
    finally:
        executor.close()
    assert [found["sum"] for found in again] == [2.0, 8.0, 18.0]
    assert lab.counts["computed"] == 3 and lab.counts["cached"] == 3


def test_there_must_be_one_value_for_each_config(tmp_path: Path) -> None:
    lab = Laboratory(Store.open(tmp_path), Local())
    with pytest.raises(BadInput, match="given 1 values for 2 configs"):
        lab.map(scaled, [Toy(0), Toy(1)], given=[torch.zeros(2)])
