"""Schedules against torch's own schedulers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

import sandlab as sl
from sandlab.errors import BadInput
from sandlab.learning._engine.loop import Loop
from sandlab.learning.schedules import Cosine, Linear, OneCycle, ReduceLROnPlateau, Schedule, StepDecay, factors


def torch_rates(build: Callable, steps: int) -> list[float]:
    """The rate that a torch scheduler gives each step, for a base rate of 1."""
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    scheduler = build(optimizer)
    rates = []
    for _ in range(steps):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return rates


SCHEDULERS = torch.optim.lr_scheduler
CASES = [
    ("constant", lambda o: SCHEDULERS.ConstantLR(o, factor=1.0)),
    ("linear", lambda o: SCHEDULERS.LinearLR(o, 1.0, 1e-12, total_iters=40)),
    (Linear(final=0.25), lambda o: SCHEDULERS.LinearLR(o, 1.0, 0.25, total_iters=40)),
    ("cosine", lambda o: SCHEDULERS.CosineAnnealingLR(o, T_max=40)),
    (Cosine(final=0.1), lambda o: SCHEDULERS.CosineAnnealingLR(o, T_max=40, eta_min=0.1)),
    ("step", lambda o: SCHEDULERS.MultiStepLR(o, milestones=[20, 30], gamma=0.1)),
    (StepDecay(at=(0.25,), factor=0.5), lambda o: SCHEDULERS.MultiStepLR(o, milestones=[10], gamma=0.5)),
    (lambda step: 0.9**step, lambda o: SCHEDULERS.ExponentialLR(o, gamma=0.9)),
]


@pytest.mark.parametrize(("ours", "theirs"), CASES)
def test_every_schedule_equals_torch(ours: Schedule, theirs: Callable) -> None:
    assert factors(ours, 40).tolist() == pytest.approx(torch_rates(theirs, 40), abs=1e-9)


def test_one_cycle_goes_up_to_the_peak_and_down_like_torch() -> None:
    # torch's cycle ends at its last step, ours would reach the end one step after it: compare on torch's grid.
    theirs = torch_rates(lambda o: SCHEDULERS.OneCycleLR(o, max_lr=1.0, total_steps=101), 101)
    shape = OneCycle()
    peak = 0.3 * 101 - 1  # torch counts in steps
    ours = [
        shape(0.3 * step / peak if step <= peak else 0.3 + 0.7 * (step - peak) / (100 - peak)) for step in range(101)
    ]
    assert ours == pytest.approx(theirs, abs=1e-9)
    assert factors("one-cycle", 100).argmax() == 30


def test_warm_up_goes_up_in_equal_steps_and_the_shape_follows() -> None:
    table = factors("cosine", 50, warmup=10)
    assert table[:10].tolist() == pytest.approx([0.1 * step for step in range(1, 11)])
    assert table[10:].tolist() == pytest.approx(factors("cosine", 40).tolist())


def test_a_training_run_follows_its_schedule() -> None:
    seen: list[float] = []

    class Spy(torch.optim.SGD):
        def step(self, closure: None = None) -> None:
            seen.append(self.param_groups[0]["lr"])
            super().step(closure)

    world = sl.worlds.MarkovChain.binary(0.2, 0.3, length=4)
    model = sl.models.Transformer(vocab=2, length=4, layers=1, width=4)
    sl.learning.train(model, world, steps=6, rng=sl.rng(0), optimizer=Spy, lr=0.5, schedule="linear", warmup=2)
    assert seen == pytest.approx([0.25, 0.5, 0.5, 0.375, 0.25, 0.125])


def test_unknown_schedules_are_refused() -> None:
    with pytest.raises(BadInput, match="did you mean 'linear'"):
        factors("liner", 10)
    with pytest.raises(BadInput, match="schedule must be"):
        factors(3, 10)  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="at must be"):
        StepDecay(at=(2.0,))


WORLD = sl.worlds.MarkovChain.binary(0.2, 0.3, length=4)
VALUES = [1.0, 0.9, 0.95, 0.9, 0.92, 0.8, 0.81, 0.85, 0.9, 0.79999, 0.7, 0.7, 0.7, 0.7, 0.7, 0.7, 0.6]


def tiny(seed: int = 0) -> sl.models.Transformer:
    return sl.models.Transformer(vocab=2, length=4, layers=1, width=4)


@pytest.fixture
def rates(monkeypatch: pytest.MonkeyPatch) -> list[list[float]]:
    """The rates of the members after each evaluation."""
    seen: list[list[float]] = []
    evaluate = Loop._evaluate

    def spy(loop: Loop, slots: np.ndarray) -> None:
        evaluate(loop, slots)
        seen.append(loop.step.lr.tolist())

    monkeypatch.setattr(Loop, "_evaluate", spy)
    return seen


@pytest.mark.parametrize("patience", [0, 1, 3])
def test_rates_on_plateaus_are_those_of_torchs_scheduler_for_each_member(patience: int, rates: list) -> None:
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.1)
    scheduler = SCHEDULERS.ReduceLROnPlateau(optimizer, factor=0.5, patience=patience)
    values = iter(VALUES)
    sl.learning.train(
        sl.learning.Population(tiny, seeds=[0, 1]),
        WORLD,
        steps=len(VALUES) - 1,
        every=1,
        rng=sl.rng(0),
        lr=[0.1, 0.3],
        schedule=ReduceLROnPlateau(patience),
        evaluate=lambda model: {"loss": np.array([next(values), 1 / (1 + len(rates))])},
    )
    for value, (first, second) in zip(VALUES, rates, strict=True):
        scheduler.step(value)
        assert first == optimizer.param_groups[0]["lr"] and second == 0.3


@pytest.mark.parametrize("optimizer", ["adamw", "nadam", lambda weights: torch.optim.Adam(weights, lr=0.01)])
def test_a_reduced_rate_moves_the_weights_less(optimizer: str) -> None:
    def evaluate(model: sl.learning.Population) -> dict[str, np.ndarray]:
        return {"loss": np.array([-float(len(seen)), 1.0])}

    seen: list[int] = []
    population = sl.learning.Population(tiny, seeds=[0, 0])
    start = population.rows[0].detach().clone()
    options = {"optimizer": optimizer, "lr": 0.01, "schedule": ReduceLROnPlateau(patience=0), "evaluate": evaluate}
    note = lambda step, model, metrics: seen.append(step)  # noqa: E731
    sl.learning.train(population, WORLD, steps=6, every=1, rng=sl.rng(0), callbacks=[note], **options)
    moved = (population.rows[0] - start).detach().norm(dim=1)
    assert 0 < moved[1] < 0.7 * moved[0]


def test_a_run_on_plateaus_resumes_bit_by_bit(tmp_path: Path, rates: list) -> None:
    class Interrupted(Exception):
        pass

    def interrupt(step: int, _model: object, _metrics: object) -> None:
        if step == 30:
            raise Interrupted

    def run(file: str, **options: object) -> tuple[sl.learning.Population, list[sl.learning.History]]:
        population = sl.learning.Population(tiny, seeds=range(3), strategy="native")
        settings = {"lr": [0.3, 0.1, 1e-3], "evaluate": WORLD.sample(32, rng=sl.rng(5)), "every": 3}
        checkpoint = sl.learning.Checkpoint(tmp_path / file, every=7)
        schedule = ReduceLROnPlateau(patience=1, factor=0.3)
        world = sl.worlds.MarkovChain.binary(0.4, 0.3, length=4)
        return population, sl.learning.train(
            population, world, steps=50, rng=sl.rng(4), schedule=schedule, checkpoint=checkpoint, **settings, **options
        )

    whole_model, whole = run("whole.safetensors")
    expected = rates[-1]
    assert len(set(np.array(expected) / [0.3, 0.1, 1e-3])) > 1
    with pytest.raises(Interrupted):
        run("cut.safetensors", callbacks=[interrupt])
    resumed_model, resumed = run("cut.safetensors")
    assert rates[-1] == expected
    assert torch.equal(whole_model.rows[0], resumed_model.rows[0])
    for left, right in zip(whole, resumed):
        assert np.array_equal(left.loss, right.loss) and np.array_equal(left.metrics["loss"], right.metrics["loss"])
    with pytest.raises(BadInput, match="belongs to another run"):
        sl.learning.train(tiny(), WORLD, steps=50, rng=sl.rng(4), checkpoint=tmp_path / "cut.safetensors")


def test_plateaus_need_a_metric() -> None:
    with pytest.raises(BadInput, match="depend on a metric: give evaluate"):
        sl.learning.train(tiny(), WORLD, steps=2, rng=sl.rng(0), schedule=ReduceLROnPlateau(1))
    schedule, held_out = ReduceLROnPlateau(1, metric="acuracy"), WORLD.sample(4, rng=sl.rng(0))
    with pytest.raises(BadInput, match="'acuracy', which is not evaluated: did you mean 'accuracy'"):
        sl.learning.train(tiny(), WORLD, steps=2, rng=sl.rng(0), schedule=schedule, evaluate=held_out)
    with pytest.raises(BadInput, match="patience must be"):
        ReduceLROnPlateau(-1)
