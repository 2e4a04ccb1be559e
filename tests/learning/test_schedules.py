"""Schedules against torch's own schedulers."""

from __future__ import annotations

import pytest
import torch

import sandlab as sl
from sandlab.errors import BadInput
from sandlab.learning.schedules import Cosine, Linear, OneCycle, StepDecay, factors


def torch_rates(build, steps: int) -> list[float]:
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
def test_every_schedule_equals_torch(ours, theirs) -> None:
    assert factors(ours, 40).tolist() == pytest.approx(torch_rates(theirs, 40), abs=1e-9)


def test_one_cycle_rises_to_the_peak_and_falls_like_torch() -> None:
    # torch's cycle ends at its last step, ours would reach the end one step after it: compare on torch's grid.
    theirs = torch_rates(lambda o: SCHEDULERS.OneCycleLR(o, max_lr=1.0, total_steps=101), 101)
    shape = OneCycle()
    rise = 0.3 * 101 - 1  # torch counts the rise in steps
    ours = [
        shape(0.3 * step / rise if step <= rise else 0.3 + 0.7 * (step - rise) / (100 - rise)) for step in range(101)
    ]
    assert ours == pytest.approx(theirs, abs=1e-9)
    assert factors("one-cycle", 100).argmax() == 30


def test_warm_up_rises_in_equal_steps_and_the_shape_follows() -> None:
    table = factors("cosine", 50, warmup=10)
    assert table[:10].tolist() == pytest.approx([0.1 * step for step in range(1, 11)])
    assert table[10:].tolist() == pytest.approx(factors("cosine", 40).tolist())


def test_a_training_run_follows_its_schedule() -> None:
    seen: list[float] = []

    class Spy(torch.optim.SGD):
        def step(self, closure=None):
            seen.append(self.param_groups[0]["lr"])
            return super().step(closure)

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
