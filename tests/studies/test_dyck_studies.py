from dataclasses import replace

import numpy as np
import pytest
import torch

import sandlab as sl
from sandlab.studies.dyck import copying, pruning, runs, theorems
from sandlab.worlds.dyck import Dyck

TINY = runs.Run(steps=3, batch_size=8, tests=10, long=40, long_tests=4, width=12, mlp_width=8)


@pytest.mark.parametrize("model", ["standard", "minimal"])
@pytest.mark.parametrize("contrast", [0.0, 0.3])
def test_a_run_reports_accuracy_attention_and_balance(model: str, contrast: float) -> None:
    found = runs.train_run(replace(TINY, model=model, seeds=(0, 1), contrast=contrast))
    assert found["in_argmax"].shape == (2,) and found["long_argmax"].shape == (2,)
    assert ("balance" in found) == (model == "minimal")
    for pattern in found["maps"].values():
        assert np.allclose(pattern.sum(-1), 1, atol=1e-5)


def test_frozen_attention_stays_uniform() -> None:
    found = runs.train_run(replace(TINY, frozen=True))
    for pattern in found["maps"].values():
        rows = np.tril(np.ones(pattern.shape[-2:]))
        assert np.allclose(pattern[0, 0], rows / rows.sum(-1, keepdims=True), atol=1e-6)


def test_the_nested_prefix_is_balanced_and_keeps_the_word() -> None:
    batch = Dyck(words="bounded").sample(20, rng=sl.rng(0))
    inputs, kept = runs.Nested(2, 4)(batch, sl.rng(1))
    assert torch.equal(inputs[:, -kept + 1 :], batch.inputs[:, 1:])
    prefix = inputs[:, 1 : inputs.shape[1] - kept + 1]
    assert bool(Dyck(words="complete", length=prefix.shape[1]).accepts(prefix).all())


def test_the_distance_of_a_seed_to_the_others_is_brute_force() -> None:
    maps = np.random.default_rng(0).random((3, 4, 4))
    found = runs.apart(maps)
    expected = [np.mean([((maps[a] - maps[b]) ** 2).sum() for b in range(3) if b != a]) for a in range(3)]
    assert found == pytest.approx(expected)


def test_copying_targets_are_the_inputs() -> None:
    batch = copying.DyckCopy().sample(5, rng=sl.rng(2))
    assert torch.equal(batch.inputs, batch.targets)
    found = copying.copy_run(copying.CopyJob((0, 1), "cpu", 1, 2, 16, 3))
    assert found["accuracy"].shape == (2,) and len(found["maps"]) == 1


def test_exact_models_stay_exact_and_disturbed_ones_do_not() -> None:
    found = theorems.examine(theorems.BalanceJob(0, 60, 2, 3))
    assert found["errors"][0] < 1e-9 and found["errors"][-1] > 0.1
    assert found["gap"] < 1e-12


def test_pruning_jobs_report_falling_errors() -> None:
    found = pruning.prune(pruning.PruneJob(0, 3, 96))
    assert found["linear"][-1] < 1e-2 * found["linear"][0]
