from dataclasses import replace

import numpy as np

import sandlab as sl
from sandlab.studies.flip_flop import mitigations, runs, theorems
from sandlab.studies.flip_flop.drift import Settings as DriftSettings
from sandlab.studies.flip_flop.drift import head_of

TINY = runs.Run(length=16, layers=1, width=16, heads=2, steps=4, batch_size=8, targets=50, checks=2)


def test_the_lstm_has_the_published_size_but_for_a_redundant_bias() -> None:
    model = sl.models.LSTM(vocab=5, width=128, layers=1, readout_bias=True)
    assert model.parameter_count() + 4 * 128 == 133_381


def test_a_run_reports_errors_of_every_seed_on_every_set() -> None:
    found = runs.train_run(replace(TINY, seeds=(0, 1), extra_ignore=(0.5,), extra_steps=2))
    for name in runs.SETS:
        assert found["curves"][name].shape == (2, len(found["steps"]))
        assert found["final"][name].shape == (2,) and (found["final"][name] <= 1).all()
    assert not np.array_equal(found["first"]["in"], found["final"]["in"])


def test_every_remedy_is_a_run_that_trains() -> None:
    for label in mitigations.FAMILIES:
        run = replace(mitigations.setting(replace(TINY, width=16), label), seeds=(0,))
        run = replace(run, steps=2, extra_steps=min(run.extra_steps, 1))
        assert set(runs.train_run(run)["final"]) >= set(runs.SETS), label


def test_scaled_settings_are_multiples_of_the_baseline() -> None:
    assert mitigations.setting(runs.Run(steps=100), "3 × steps").steps == 300
    assert mitigations.setting(runs.Run(steps=100), "LSTM").steps == 25


def test_the_circuit_errs_below_the_threshold_and_not_above() -> None:
    found = theorems.circuit_errors(theorems.SharpnessJob(64, 10, (0.25, 5.0)))
    assert found["errors"][0] > 0.1 and found["errors"][1] == 0.0 and found["proven"] == 0.0


def test_the_head_of_a_linear_position_model_has_its_scores() -> None:
    import torch

    model = sl.models.LinearPositionMemory(width=8, scale=DriftSettings().scale).double()
    tokens = torch.tensor([1, 0, 2, 0, 0])
    with sl.record(model, "pattern") as tape, torch.no_grad():
        model(tokens.unsqueeze(0))
    expected = head_of(model).scores(tokens).softmax(0)
    assert torch.allclose(tape["pattern"][0, -1], expected, atol=1e-9)
