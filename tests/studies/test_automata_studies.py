"""Training studies on automata in miniature: shapes, members of different automata, claims that can fail."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
import torch
from stand_in import LAB

import sandlab as sl
from sandlab.errors import BadInput
from sandlab.registry import get
from sandlab.studies.automata.grid_attention import attend
from sandlab.studies.automata.runs import Probe, Run, Task, per_task, split, train_run
from sandlab.studies.automata.side_by_side import SideBySide
from sandlab.studies.automata.training_curves import jump_shares
from sandlab.studies.claims import judge
from sandlab.worlds.automata.catalogue import named_machine

STUDIES = (
    "depth-table",
    "training-curves",
    "grid-attention",
    "indirect",
    "incomplete",
    "ood-parity",
    "length-generalisation",
    "position-codes",
    "stabilisers",
)
TINY = {"steps": 4, "batch_size": 2, "looks": 4, "looked_at": 4, "tests": 4, "width": 8, "heads": 2}
FEWER = {
    "indirect": {"lstm_seeds": 1},
    "length-generalisation": {"easy_steps": 4, "lengths": (20, 40)},
    "ood-parity": {"ones": (0.05, 0.5, 0.95), "counts": (6, 12)},
    "incomplete": {"lstm_seeds": 1, "reveal": (1.0, 0.1)},
}


LONGER = {"cliff", "lstm", "recency", "shifts", "no-positions"}


def tiny(value: Any) -> Any:
    """The same settings with hardly any training."""
    if isinstance(value, Run):
        return dataclasses.replace(value, **TINY)
    if isinstance(value, tuple):
        return tuple(tiny(part) for part in value)
    if dataclasses.is_dataclass(value) and not isinstance(value, Task):
        return dataclasses.replace(value, **{f.name: tiny(getattr(value, f.name)) for f in dataclasses.fields(value)})
    return value


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_measures_its_claims_and_draws(name):
    made = get("studies", f"automata/{name}")
    config = dataclasses.replace(tiny(made.presets["quick"]), seeds=2, **FEWER.get(name, {}))
    outcome, findings = made.measure(config, LAB)
    assert {finding.claim for finding in findings} == {claim.id for claim in made.claims if "quick" in claim.presets}
    assert outcome.figures and all(outcome.tables.values())
    # Four steps teach nothing: what the source says of trained models must not hold of these.
    assert any(finding.verdict != "holds" for finding in findings)


@pytest.mark.parametrize("name", STUDIES)
def test_the_large_preset_fits_together(name):
    made = get("studies", f"automata/{name}")
    assert len(made.text) > 600 and "What to look for" in made.text
    for run in runs_of(made.presets["full"]):
        worlds = tuple(task.world(run.length) for task in run.tasks)
        assert run.width % run.heads == 0 and run.tokens >= run.length
        if len(worlds) > 1:
            assert SideBySide(worlds).sample(len(worlds), rng=sl.rng(0)).inputs.shape == (len(worlds), run.length)


def test_a_part_of_the_depth_table_says_which_claims_it_leaves_out():
    made = get("studies", "automata/depth-table")
    part = dataclasses.replace(
        tiny(made.presets["full"]), seeds=2, machines=("C2", "D8", "Q8"), depths=(1, 3), together=2
    )
    outcome, findings = made.measure(part, LAB, "full")
    measured = {finding.claim.split(".")[1] for finding in findings}
    assert measured == {"parity-shallow", "quaternion-harder", "unstable"}
    absent = {row["claim"].split(".")[1]: row["why"] for row in outcome.tables["not measured"]}
    assert measured | set(absent) == {claim.id.split(".")[1] for claim in made.claims}
    assert absent["s5-deep"] == "automata left out: S5"
    assert {(row["automaton"], row["layers"]) for row in outcome.tables["accuracy"]} == {
        (name, depth) for name in ("C2", "D8", "Q8") for depth in (1, 3)
    }


@pytest.mark.parametrize(
    ("name", "chosen", "left_out"),
    [
        ("ood-parity", {"ones": (0.5,), "counts": (6, 12)}, {"more-ones"}),
        ("ood-parity", {"ones": (0.05, 0.95), "counts": ()}, {"in-distribution", "more-ones", "counts"}),
        ("length-generalisation", {"lengths": (20, 30), "easy_steps": 4}, LONGER),
        ("indirect", {"parts": 1}, {"by-position", "by-letters", "counter"}),
    ],
)
def test_claims_whose_runs_were_not_chosen_are_left_out(name, chosen, left_out):
    made = get("studies", f"automata/{name}")
    config = tiny(made.presets["quick"])
    if "parts" in chosen:
        chosen = {"parts": config.parts[: chosen["parts"]]}
    outcome, findings = made.measure(dataclasses.replace(config, seeds=2, **chosen), LAB)
    assert {row["claim"].split(".")[1] for row in outcome.tables["not measured"]} == left_out
    assert left_out.isdisjoint(finding.claim.split(".")[1] for finding in findings)


def runs_of(value: Any) -> list[Run]:
    if isinstance(value, Run):
        return [value]
    if isinstance(value, tuple):
        return [run for part in value for run in runs_of(part)]
    if dataclasses.is_dataclass(value) and not isinstance(value, Task):
        return [run for field in dataclasses.fields(value) for run in runs_of(getattr(value, field.name))]
    return []


def test_members_of_different_automata_share_a_population():
    tasks = (Task("C2"), Task("S5"), Task("Dyck4_2"), Task("abab", label="accept", share=1.0))
    run = Run(tasks=tasks, seeds=(0, 1), probes=(Probe(14), Probe(9)), ema=0.9, **TINY)
    found = train_run(run)
    assert found["token"].shape == found["sequence"].shape == (4, 2)
    assert found["accuracy curve"].shape == found["ema/loss curve"].shape == (4, 2, 5)
    assert found["probes"].shape == (4, 2, 2)
    assert (found["sequence"] <= found["token"]).all()


def test_a_small_run_learns_the_flip_flop_and_beats_its_start():
    found = train_run(Run(tasks=(Task("flip-flop"),), length=6, width=16, steps=120, lr=1e-2, looks=3, tests=200))
    assert found["token"][0, 0] > 0.95 > found["accuracy curve"][0, 0, 0]


def test_jobs_are_one_per_task_and_seed_on_a_cpu_and_one_population_on_a_gpu():
    run = Run(tasks=(Task("C2"), Task("C3")))
    apart = split(run, 3, "cpu")
    assert [(job.tasks[0].machine, job.seeds) for job in apart] == [(n, (s,)) for n in ("C2", "C3") for s in range(3)]
    (together,) = split(run, 3, "cuda")
    assert together.tasks == run.tasks and together.seeds == (0, 1, 2) and together.device == "cuda"
    results = [{"token": np.array([[place]])} for place in range(6)]
    found = per_task(apart, results, "token")
    assert found[Task("C2")].tolist() == [0, 1, 2] and found[Task("C3")].tolist() == [3, 4, 5]


def test_machines_side_by_side_follow_their_own_tables():
    names = ("C5", "Grid9", "flip-flop", "Dyck4_2", "S5", "D8")
    worlds = tuple(named_machine(name, length=40) for name in names)
    batch = SideBySide(worlds).sample(600 * len(names), rng=sl.rng(1))
    for place, world in enumerate(worlds):
        part = batch[slice(600 * place, 600 * (place + 1))]
        assert int(part.inputs.max()) < world.alphabet
        states = world.run(part.inputs)
        assert torch.equal(part.targets, torch.as_tensor(world.labels)[states])
        law = world.label_law(40).mean(0).numpy()
        drawn = np.bincount(part.targets.flatten().numpy(), minlength=len(law)) / part.targets.numel()
        assert np.abs(drawn - law).max() < 0.02
    brackets = batch[slice(1800, 2400)]
    assert int(worlds[3].run(brackets.inputs).max()) < worlds[3].states - 1


def test_patterns_and_hidden_labels_are_each_machines_own():
    worlds = (
        named_machine("abab", length=12, pattern_share=1.0),
        named_machine("abab", length=12, pattern_share=0.5),
        named_machine("C2", length=12, reveal=0.1),
    )
    batch = SideBySide(worlds).sample(3000, rng=sl.rng(2))
    follows = (batch.inputs == torch.tensor([0, 1] * 6)).all(1)
    assert follows[:1000].all() and float(follows[1000:2000].float().mean()) == pytest.approx(0.5, abs=0.06)
    assert batch.mask[:2000].all() and float(batch.mask[2000:].float().mean()) == pytest.approx(0.1, abs=0.02)


def test_machines_of_different_lengths_do_not_go_side_by_side():
    with pytest.raises(BadInput, match="one length"):
        SideBySide((named_machine("C2", length=3), named_machine("C2", length=4)))
    with pytest.raises(BadInput, match="scratchpad"):
        SideBySide((named_machine("C2", length=3, scratchpad=True),))


def test_heads_of_untrained_and_trained_models_are_measured():
    found = attend(Run(tasks=(Task("Grid4"),), seeds=(0, 1), **TINY))
    assert found["score"].shape == (2, 2, 2, 2) and found["before"].shape == (2,)
    assert found["maps"].shape == (2, 2, 12, 12) and np.allclose(found["maps"].sum(-1), 1, atol=1e-5)


def test_the_share_of_a_jump_is_one_for_a_step_and_a_tenth_for_a_ramp():
    step = np.repeat([0.5, 1.0], [20, 21])
    ramp = np.linspace(0.5, 1.0, 41)
    assert jump_shares(np.stack([step, ramp])) == pytest.approx([1.0, 0.1])


def test_a_model_that_is_right_everywhere_would_refute_the_failure_of_parity():
    claim = next(c for c in get("studies", "automata/ood-parity").claims if c.id.endswith(".more-ones"))
    assert judge(claim, [0.0, 0.001, -0.001]).verdict == "fails"
    assert judge(claim, [0.1, 0.12, 0.11]).verdict == "holds"
