"""Experiments: what differs between seeds, what survives an interruption, how groups of seeds are joined."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import sandlab as sl
from sandlab.learning import experiment as experiments
from sandlab.learning._engine.scratch import scratch_folder
from sandlab.learning.experiment import (
    Experiment,
    Members,
    Runs,
    Snapshot,
    Training,
    join,
    member_groups,
    train_members,
)
from sandlab.learning.objectives import LastLabel
from sandlab.models.transformer import TransformerConfig
from sandlab.worlds.base import Batch, World
from sandlab.worlds.markov.chain import InContextMarkov

WORLD = InContextMarkov(states=3, order=1, length=8)
CONFIG = TransformerConfig(vocab=3, length=8, layers=1, width=8)


def attention(snapshot: Snapshot) -> dict[str, torch.Tensor]:
    """The mean attention pattern of each member: a matrix at each evaluation."""
    with sl.record(snapshot.model, "layers.0.attention.pattern") as cache:
        snapshot.model(snapshot.batch.inputs)
    return {"attention": cache["layers.0.attention.pattern"].mean((1, 2)).detach()}


def better_half(snapshot: Snapshot) -> dict[str, np.ndarray]:
    """A word per example."""
    logits = snapshot.model(snapshot.batch.inputs[:4])[..., -1, :]
    return {"choice": np.array(["zero", "one", "two"])[logits.argmax(-1).cpu().numpy()]}


EXPERIMENT = Experiment(
    world=WORLD,
    model=CONFIG,
    training=Training(steps=12, batch_size=4, lr=0.01, evals=6, eval_examples=16),
    seeds=2,
    probes=(attention, better_half),
    final=(attention,),
)


def run(experiment: Experiment, *, weights: bool = True) -> Runs:
    """As the laboratory does it on a CPU."""
    groups = member_groups(experiment, "cpu")
    return join([train_members(Members(experiment, seeds, weights=weights)) for seeds in groups])


def check_equal(left: Runs, right: Runs) -> None:
    """Bit by bit."""
    assert left.seeds == right.seeds and left.parameters == right.parameters
    for name in ("eval_steps", "loss"):
        np.testing.assert_array_equal(getattr(left, name), getattr(right, name))
    for name in ("metrics", "final", "weights"):
        ours, theirs = getattr(left, name) or {}, getattr(right, name) or {}
        assert set(ours) == set(theirs)
        for key, value in ours.items():
            np.testing.assert_array_equal(np.asarray(value), np.asarray(theirs[key]))
    assert (left.then is None) == (right.then is None)
    if left.then is not None and right.then is not None:
        check_equal(left.then, right.then)


@dataclass(frozen=True)
class Noted(World):
    """Keeps the batches that are drawn from it."""

    drawn: list[Batch]
    vocab = 3

    def sample(self, n: int, *, rng: torch.Generator) -> Batch:
        self.drawn.append(WORLD.sample(n, rng=rng))
        return self.drawn[-1]


def test_seeds_have_their_own_weights_and_their_own_batches_but_one_held_out_set() -> None:
    drawn: list[Batch] = []
    untrained = replace(EXPERIMENT, world=Noted(drawn), training=replace(EXPERIMENT.training, lr=0.0), probes=())
    runs = run(replace(untrained, final=()))
    assert runs.weights is not None
    first, second = runs.weights["embedding.weight"]
    assert not torch.equal(first, second)
    held_out, batches = drawn[:: len(drawn) // 2], drawn[1 :: len(drawn) // 2]
    assert torch.equal(held_out[0].inputs, held_out[1].inputs)
    assert not torch.equal(batches[0].inputs, batches[1].inputs)


def test_seeds_trained_together_have_their_own_weights_and_batches_too() -> None:
    drawn: list[Batch] = []
    experiment = replace(EXPERIMENT, world=Noted(drawn), probes=(), final=())
    runs = train_members(Members(experiment, (0, 1), weights=True))
    assert drawn[0].inputs.shape == (16, 8) and drawn[1].inputs.shape == (2 * 4, 8)
    assert runs.loss.shape == (2, 12) and not np.array_equal(runs.loss[0], runs.loss[1])


def test_probes_keep_their_shapes() -> None:
    runs = run(EXPERIMENT)
    assert runs.eval_steps.tolist() == [0, 2, 4, 6, 8, 10, 12]
    assert runs.metrics["loss"].shape == (2, 7) and runs.metrics["attention"].shape == (2, 7, 8, 8)
    assert runs.metrics["choice"].shape == (2, 7, 4) and runs.metrics["choice"].dtype.kind == "U"
    np.testing.assert_array_equal(runs.final["attention"], runs.metrics["attention"][:, -1])
    assert runs.parameters == sum(weight.numel() for weight in runs.model(CONFIG, 0).parameters())


@dataclass(frozen=True)
class Interrupting:
    """Raises once, at its nth call, as a machine that is switched off would."""

    calls: list[int]
    at: int

    def __call__(self, snapshot: Snapshot) -> Mapping[str, Any]:
        self.calls.append(len(self.calls))
        if len(self.calls) == self.at:
            raise KeyboardInterrupt
        return {}


STAGES = replace(EXPERIMENT, final=(), then=replace(EXPERIMENT, world=InContextMarkov(states=3, order=2, length=8)))


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"ema": 0.9, "keep": "ema/loss", "clip": 1.0, "schedule": "cosine"},
        {"stop": sl.learning.EarlyStop(patience=2), "schedule": sl.learning.ReduceLROnPlateau(0)},
    ],
)
@pytest.mark.parametrize("at", [pytest.param(4, marks=pytest.mark.slow), 11])
def test_an_interrupted_job_that_is_run_again_gives_the_same_runs_bit_by_bit(
    change: dict[str, Any], at: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(experiments, "CHECKPOINT_SECONDS", 0.0)
    training = replace(EXPERIMENT.training, **change)
    whole = replace(STAGES, training=training)
    probe = Interrupting([], at)
    probes = (attention, better_half, probe)
    assert whole.then is not None
    cut = replace(whole, probes=probes, then=replace(whole.then, probes=probes))
    with scratch_folder(tmp_path / "whole"):
        expected = train_members(Members(whole, (0, 1), weights=True))
    with scratch_folder(tmp_path / "cut"):
        with pytest.raises(KeyboardInterrupt):
            train_members(Members(cut, (0, 1), weights=True))
        assert list((tmp_path / "cut").iterdir())
        found = train_members(Members(cut, (0, 1), weights=True))
    check_equal(found, expected)
    check_equal(train_members(Members(whole, (0, 1), weights=True)), expected)  # without any checkpoint
    evaluations = (2 if training.ema is not None else 1) * (len(expected.eval_steps) + 7)
    assert len(probe.calls) <= evaluations + 2  # what was done before the interruption is not done again


def test_joined_runs_of_single_seeds_are_what_was_put_in() -> None:
    parts = [train_members(Members(STAGES, (seed,), weights=True)) for seed in (3, 7, 5)]
    whole = join(parts)
    assert whole.seeds == (3, 7, 5) and len(whole) == 3
    for index, part in enumerate(parts):
        for mine, given in ((whole, part), (whole.then, part.then)):
            assert mine is not None and given is not None
            assert mine.weights is not None and given.weights is not None
            np.testing.assert_array_equal(mine.loss[index], given.loss[0])
            for name, values in given.metrics.items():
                np.testing.assert_array_equal(mine.metrics[name][index], values[0])
            for name, values in given.final.items():
                np.testing.assert_array_equal(mine.final[name][index], values[0])
            for name, weight in given.weights.items():
                assert torch.equal(mine.weights[name][index], weight[0])


def test_seeds_that_stop_early_are_filled_up() -> None:
    stop = sl.learning.EarlyStop(metric="stops", below=1.0)
    training = replace(EXPERIMENT.training, stop=stop)

    def stops(snapshot: Snapshot) -> dict[str, np.ndarray]:
        done = len(seen)
        seen.append(done)
        return {"stops": np.array([0.0 if done == 2 else 2.0])}

    seen: list[int] = []
    runs = run(replace(EXPERIMENT, training=training, probes=(stops, attention, better_half)))
    assert runs.eval_steps.tolist() == [0, 2, 4, 6, 8, 10, 12]
    assert np.isfinite(runs.loss[0, :4]).all() and np.isnan(runs.loss[0, 4:]).all() and np.isfinite(runs.loss[1]).all()
    assert np.isnan(runs.metrics["attention"][0, 3:]).all() and runs.metrics["attention"].shape == (2, 7, 8, 8)
    assert (runs.metrics["choice"][0, 3:] == "").all() and (runs.metrics["choice"][1] != "").all()


def test_then_continues_with_the_same_members() -> None:
    runs = run(STAGES)
    assert runs.then is not None and runs.weights is not None and runs.then.weights is not None
    held_out = InContextMarkov(states=3, order=2, length=8).sample(16, rng=sl.rng(1, "held out"))
    for index in range(2):
        with torch.no_grad():
            loss = sl.learning.member_loss(runs.model(CONFIG, index)(held_out.inputs), held_out)
        assert runs.then.metrics["loss"][index, 0] == pytest.approx(float(loss), abs=1e-6)
    assert not torch.equal(runs.weights["unembed.weight"], runs.then.weights["unembed.weight"])
    assert not np.array_equal(runs.loss, runs.then.loss)


def freeze_table(model: nn.Module) -> None:
    """A frozen embedding, drawn for each seed."""
    for name, weight in model.named_parameters():
        if name == "embedding.weight":
            weight.requires_grad_(False)
            nn.init.uniform_(weight)


def test_a_prepared_model_comes_back_with_its_frozen_weights() -> None:
    runs = run(replace(EXPERIMENT, prepare=freeze_table))
    tables = [runs.model(CONFIG, index).state_dict()["embedding.weight"] for index in range(2)]
    assert all(float(table.min()) >= 0 and float(table.max()) > 0.5 for table in tables)
    assert not torch.equal(tables[0], tables[1])
    patterns = attention(
        Snapshot(sl.learning.Population(lambda seed: runs.model(CONFIG, 1), seeds=[0]), WORLD, HELD_OUT)
    )
    np.testing.assert_allclose(patterns["attention"][0], runs.final["attention"][1], atol=1e-6)


HELD_OUT = WORLD.sample(16, rng=sl.rng(1, "held out"))


def test_held_out_examples_are_prepared_by_the_objective() -> None:
    training = replace(EXPERIMENT.training, objective=LastLabel())
    runs = run(replace(EXPERIMENT, training=training))
    with torch.no_grad():
        logits = runs.model(CONFIG, 0)(HELD_OUT.inputs)[:, -1]
    expected = nn.functional.cross_entropy(logits, HELD_OUT.targets[:, -1])
    assert runs.metrics["loss"][0, -1] == pytest.approx(float(expected), abs=1e-6)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: replace(EXPERIMENT, seeds=0), "seeds must be at least one"),
        (lambda: Training(steps=-1), "steps must be"),
        (lambda: run(replace(EXPERIMENT, probes=(attention, attention))), "measurements of different names"),
        (lambda: run(EXPERIMENT, weights=False).model(CONFIG, 0), "hold no weights"),
    ],
)
def test_bad_input_is_refused_with_a_sentence(make: Callable[[], object], message: str) -> None:
    with pytest.raises(sl.BadInput, match=message):
        make()
