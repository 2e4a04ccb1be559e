from dataclasses import replace

import numpy as np
import torch
from stand_in import LAB

import sandlab as sl
from sandlab.studies.flip_flop import exact_machines, generative, long_tail, mitigations, runs, sizes, sparse_remedies
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


def test_every_kind_of_remedy_is_a_run_that_trains() -> None:
    seen = set()
    for label, (_, changes) in mitigations.FAMILIES.items():
        run = replace(mitigations.setting(replace(TINY, width=16), label), seeds=(0,))
        assert runs.build(run) is not None, label
        kind = (*sorted(changes), changes.get("positions"), changes.get("sharpen"), changes.get("sharpen_schedule"))
        if kind not in seen:  # one of several values of the same option is enough
            seen.add(kind)
            run = replace(run, length=12, steps=2, checks=1, targets=20, extra_steps=min(run.extra_steps, 1))
            assert set(runs.train_run(run)["final"]) >= set(runs.SETS), label


def test_scaled_settings_are_multiples_of_the_baseline() -> None:
    assert mitigations.setting(runs.Run(steps=100), "3 × steps").steps == 300
    assert mitigations.setting(runs.Run(steps=100), "LSTM").steps == 25


def test_the_circuit_errs_below_the_threshold_and_not_above() -> None:
    found = exact_machines.circuit_errors(exact_machines.SharpnessJob(64, 10, (0.25, 5.0)))
    assert found["errors"][0] > 0.1 and found["errors"][1] == 0.0 and found["proven"] == 0.0


def test_the_head_of_a_linear_position_model_has_its_scores() -> None:
    model = sl.models.LinearPositionMemory(width=8, scale=DriftSettings().scale).double()
    tokens = torch.tensor([1, 0, 2, 0, 0])
    with sl.record(model, "pattern") as cache, torch.no_grad():
        model(tokens.unsqueeze(0))
    expected = head_of(model).scores(tokens).softmax(0)
    assert torch.allclose(cache["pattern"][0, -1], expected, atol=1e-9)


def test_a_run_can_tell_errors_by_distance_and_its_shortest_failing_input() -> None:
    found = runs.train_run(replace(TINY, distances=True, glitches=True, seeds=(0, 1)))
    for curve in found["distances"].values():
        assert curve["errors"].shape == (2, len(curve["edges"]) - 1) and curve["counts"].sum() >= 50
    glitch = found["glitch"]
    assert len(glitch["tokens"]) == glitch["place"] + 1 and glitch["answer"] != glitch["truth"]
    for pattern in glitch["maps"].values():
        assert pattern.shape[-1] == len(glitch["tokens"])


class Knows(torch.nn.Module):
    """The true law of the next token, as a population of one."""

    world = sl.worlds.FlipFlop.ignoring(0.8, length=16, mode="generative")

    def __len__(self) -> int:
        return 1

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        batch = sl.worlds.Batch(inputs, inputs, inputs >= 0)
        return self.world.oracle(batch).clamp(min=-1e9).unsqueeze(0)


def test_the_true_law_has_no_loss_above_the_floor() -> None:
    assert abs(runs._excess(Knows(), replace(TINY, mode="generative"))[0]) < 1e-9
    assert runs.train_run(replace(TINY, mode="generative"))["excess"][0] > 0.1


def test_learning_time_is_the_first_step_with_a_small_error() -> None:
    result = {"steps": np.array([0, 10, 20, 30]), "curves": {"in": np.array([[1, 0.5, 0.001, 0.2], [1, 1, 1, 1]])}}
    assert generative._learnt_at([result]).tolist() == [20, 30]


def test_the_long_tail_study_draws_a_glitch_and_judges_every_claim() -> None:
    tiny = replace(TINY, distances=True, glitches=True)
    lstm = replace(TINY, model="lstm")
    config = long_tail.long_tail.config("full", seeds=2, lstm_seeds=2, transformer=tiny, lstm=lstm)
    outcome, findings = long_tail.long_tail.measure(config, LAB, "full")
    assert {"curves", "distances", "glitch"} <= set(outcome.figures)
    assert len(findings) == len(long_tail.long_tail.claims)


def test_every_sparse_remedy_is_a_known_setting() -> None:
    assert set(sparse_remedies.COMPARED) <= set(mitigations.FAMILIES)
    values = {"sparse": np.array([0.1, 0.3]), "dense": np.array([0.0, 0.0])}
    errors = {"baseline": values, "other": {name: 0.1 * error for name, error in values.items()}}
    assert abs(mitigations.gain(errors, "other", "sparse") + 1) < 1e-4


def test_the_circuit_is_right_on_every_short_string_and_on_random_ones() -> None:
    assert exact_machines.short_strings(10) == (0, 2 + 10 + 50 + 250)
    found = exact_machines.random_strings(exact_machines.StringsJob(64, 100, chunk=40))
    assert found["wrong"] == 0 and found["reads"] > 100


def test_every_size_gets_its_curves_and_a_row() -> None:
    config = sizes.sizes.config("quick", seeds=2, run=TINY, sizes=((1, 8, 1), (2, 16, 2)))
    outcome, findings = sizes.sizes.measure(config, LAB)
    assert [row["layers"] for row in outcome.tables["sizes"]] == [1, 2]
    assert outcome.tables["sizes"][0]["parameters"] < outcome.tables["sizes"][1]["parameters"]
    assert len(findings) == 3
