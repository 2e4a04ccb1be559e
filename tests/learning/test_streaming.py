"""A queue of members through a population of fixed size: each result is that of the member trained alone."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from torch import nn

import sandlab as sl
from sandlab.errors import BadInput
from sandlab.learning.streaming import Finished, Member

WORLD = sl.worlds.InContextMarkov(states=2, order=1, length=6)
HELD_OUT = WORLD.sample(16, rng=sl.rng(99))


def tiny(seed: int = 0) -> nn.Module:
    # In float64, so that "equal" means equal: rounding grows with every step, fastest at the highest rates.
    return sl.models.Transformer(vocab=2, length=6, layers=1, width=4, mlp_width=8, init_std=None, bias=False).double()


def alone(member: Member, steps: int, **options: object) -> tuple[nn.Module, sl.learning.History]:
    """The same member trained by itself."""
    with sl.models.seeded(member.seed):
        model = tiny()
    sl.learning.scale_weights(model, member.init_scale)
    settings = {"lr": member.lr, "weight_decay": member.weight_decay, "batch_size": 4, "evaluate": HELD_OUT}
    return model, sl.learning.train(model, WORLD, steps=member.steps or steps, rng=sl.rng(5), **settings, **options)


def check(results: Sequence[Finished], queue: Sequence[Member], steps: int, **options: object) -> None:
    assert [result.member for result in results] == list(queue)
    for result in results:
        model, history = alone(result.member, steps, **options)
        np.testing.assert_allclose(result.history.loss, history.loss, atol=1e-8)
        assert list(result.history.eval_steps) == list(history.eval_steps)
        np.testing.assert_allclose(result.history.metrics["loss"], history.metrics["loss"], atol=1e-8)
        assert result.history.stopped_at == history.stopped_at
        if result.model is not None:
            logits = result.model(HELD_OUT.inputs), model(HELD_OUT.inputs)
            torch.testing.assert_close(*logits, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("slots", [3, 8])
def test_members_of_different_lengths_and_rates_equal_members_trained_alone(slots: int) -> None:
    rates, lengths = [1e-3, 1e-2], [12, 20, 7]
    queue = [
        Member(seed, lr, weight_decay=0.1 * seed, init_scale=1.0 + seed / 4, steps=length)
        for seed, (lr, length) in enumerate(itertools.product(rates, lengths))
    ]
    results = sl.learning.stream(
        tiny, queue, WORLD, steps=20, slots=slots, batch_size=4, rng=sl.rng(5), evaluate=HELD_OUT, every=5, keep=True
    )
    check(results, queue, steps=20, every=5)


def test_early_stopping_frees_a_slot_and_changes_no_other_member() -> None:
    queue = [Member(seed, lr=0.03) for seed in range(10)]
    rule = sl.learning.EarlyStop(below=0.66, patience=3)
    results = sl.learning.stream(
        tiny, queue, WORLD, steps=40, slots=4, batch_size=4, rng=sl.rng(5), evaluate=HELD_OUT, every=4, stop=rule
    )
    assert len({result.history.stopped_at for result in results}) > 1
    check(results, queue, steps=40, every=4, stop=rule)


def test_waves_give_the_same_as_a_pool_of_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    queue = [Member(seed, steps=4 + 3 * seed) for seed in range(5)]
    options = {"steps": 16, "slots": 2, "batch_size": 4, "evaluate": HELD_OUT, "every": 4}
    pooled = sl.learning.stream(tiny, queue, WORLD, rng=sl.rng(5), **options)
    monkeypatch.setattr("sandlab.learning.streaming.available_bytes", lambda device: 100)
    waves = sl.learning.stream(tiny, queue, WORLD, rng=sl.rng(5), **options)
    for left, right in zip(pooled, waves):
        np.testing.assert_allclose(left.history.loss, right.history.loss, atol=1e-6)
        np.testing.assert_allclose(left.history.metrics["loss"], right.history.metrics["loss"], atol=1e-6)


def test_a_sweep_of_rates_and_seeds_streams_through_a_small_population() -> None:
    queue = [Member(seed, lr) for lr, seed in itertools.product([1e-4, 1e-3, 3e-3, 1e-2, 3e-2], range(12))]
    seen: list[Member] = []
    results = sl.learning.stream(
        tiny,
        queue,
        WORLD,
        steps=20,
        slots=16,
        batch_size=4,
        rng=sl.rng(5),
        evaluate=HELD_OUT,
        every=10,
        finished=lambda done: seen.append(done.member),
    )
    assert sorted(seen, key=queue.index) == queue and all(result.model is None for result in results)
    check(results[::5], queue[::5], steps=20, every=10)


@pytest.mark.slow
def test_five_hundred_members_through_sixty_four_slots_equal_separate_runs() -> None:
    queue = [Member(seed, lr) for lr, seed in itertools.product([1e-4, 1e-3, 3e-3, 1e-2, 3e-2], range(100))]
    results = sl.learning.stream(
        tiny, queue, WORLD, steps=20, slots=64, batch_size=4, rng=sl.rng(5), evaluate=HELD_OUT, every=10
    )
    check(results, queue, steps=20, every=10)


def test_the_number_of_members_that_fit_is_counted_from_what_a_step_keeps() -> None:
    from sandlab.learning.objectives import CrossEntropy
    from sandlab.learning.streaming import bytes_per_member, fitting_members

    small, large = WORLD.sample(4, rng=sl.rng(0)), WORLD.sample(400, rng=sl.rng(0))
    each = bytes_per_member(tiny, small, CrossEntropy())
    weights = sum(weight.nbytes for weight in tiny().parameters())
    assert each > 5 * weights
    grown = bytes_per_member(tiny, large, CrossEntropy())
    assert 50 < (grown - 5 * weights) / (each - 5 * weights) < 110
    assert fitting_members(tiny, small, CrossEntropy(), most=7) == 7
    results = sl.learning.stream(tiny, [Member(0), Member(1)], WORLD, steps=2, slots="auto", rng=sl.rng(5))
    assert len(results) == 2


def test_bad_queues_are_refused() -> None:
    assert sl.learning.stream(tiny, [], WORLD, steps=2, rng=sl.rng(0)) == []
    with pytest.raises(BadInput, match="to stream members"):
        sl.learning.stream(tiny, [Member(0)], WORLD, steps=2, rng=sl.rng(0), optimizer="nadam")
    with pytest.raises(BadInput, match="slots must be"):
        sl.learning.stream(tiny, [Member(0)], WORLD, steps=2, rng=sl.rng(0), slots=0)
    with pytest.raises(BadInput, match="lr must be"):
        Member(0, lr=-1.0)
