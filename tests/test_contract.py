"""The names that users rely on: the contract's block of Python is run."""

from __future__ import annotations

import textwrap

import pytest
import torch

import sandlab as sl

# Smaller numbers than a user would take; every name and every keyword is the contract's own.
WORLD_AND_MODEL = """
import sandlab as sl

world = sl.worlds.InContextMarkov(states=3, order=1, length=64, concentration=1.0)
batch = world.sample(32, rng=sl.rng(0))
best  = world.oracle(batch)
loss = world.optimal_loss(batch)

model = sl.models.Transformer(vocab=3, length=64, layers=2, heads=1, width=32, positions="learned")
history = sl.learning.train(model, world, steps=STEPS, batch_size=64, rng=sl.rng(1))
options = dict(vocab=3, length=64, layers=2, heads=1, width=32)
population = sl.learning.Population(lambda seed: sl.models.Transformer(**options), seeds=range(MEMBERS))
histories = sl.learning.train(population, world, steps=STEPS, batch_size=64, rng=sl.rng(1))

with sl.record(model, "layers.*.attention.pattern") as cache:
    model(batch.inputs)
pattern = cache["layers.0.attention.pattern"]
"""
CIRCUIT = """
import sandlab as sl

machine = sl.worlds.Automaton(transitions=[[0, 1], [1, 0]], start=0)
shortcut = sl.circuits.compile(machine, length=128, method="scan")
agreement = sl.lenses.agreement(shortcut, machine, examples=256, rng=sl.rng(2))
"""


def run(block: str, **numbers: int) -> dict:
    names: dict = {}
    for word, number in numbers.items():
        block = block.replace(word, str(number))
    exec(compile(textwrap.dedent(block), "contract", "exec"), names)
    return names


def test_world_oracle_training_population_and_recording_are_as_the_contract_says():
    names = run(WORLD_AND_MODEL, STEPS=20, MEMBERS=3)
    assert names["best"].shape == (32, 64, 3)
    assert torch.allclose(names["best"].exp().sum(-1), torch.ones(32, 64, dtype=torch.float64))
    assert 0 < names["loss"] < torch.log(torch.tensor(3.0))
    assert len(names["history"].loss) == 20
    assert len(names["histories"]) == 3
    assert names["pattern"].shape == (32, 1, 64, 64)
    assert torch.allclose(names["pattern"].sum(-1), torch.ones(32, 1, 64), atol=1e-5)


def test_a_compiled_automaton_agrees_with_its_machine_everywhere():
    assert run(CIRCUIT)["agreement"] == 1.0


def test_registries_answer_by_name():
    assert sl.get("worlds", "dyck") is sl.worlds.Dyck
    assert "markov/induction-heads" in sl.names("studies")


@pytest.mark.slow
def test_a_study_runs_by_name_and_reports_findings_figures_metrics_and_path(tmp_path):
    report = sl.run("markov/induction-heads", preset="quick", store=tmp_path)
    assert report.findings
    assert all(path.is_file() for path in report.figures.values())
    assert set(report.metrics) == {finding.claim for finding in report.findings}
    assert (report.path / "findings.json").is_file()
