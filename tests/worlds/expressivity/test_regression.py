"""In-context regression: the oracle is ridge regression and beats the others."""

from __future__ import annotations

import pytest
import torch
from sklearn.linear_model import Ridge

import sandlab as sl
from sandlab.worlds.expressivity.regression import InContextRegression


def test_the_oracle_is_ridge_regression() -> None:
    world = InContextRegression(dim=3, pairs=6, noise=0.4, spread=1.5)
    batch = world.sample(3, rng=sl.rng(0))
    x, y = batch.inputs[:, ::2, :3].double().numpy(), batch.inputs[:, 1::2, 3].double().numpy()
    predicted = world.oracle(batch)[:, ::2, 0].numpy()
    for row in range(3):
        assert predicted[row, 0] == pytest.approx(0.0)
        for k in range(1, 6):
            model = Ridge(alpha=3 * 0.4**2 / 1.5**2, fit_intercept=False).fit(x[row, :k], y[row, :k])
            assert predicted[row, k] == pytest.approx(float(model.predict(x[row, k : k + 1])[0]), abs=1e-7)


def test_the_oracle_has_the_smallest_error_at_every_number_of_examples() -> None:
    world = InContextRegression(dim=4, pairs=10, noise=0.3)
    batch = world.sample(20_000, rng=sl.rng(1))
    best = world.errors(world.oracle(batch), batch)
    for predictor in world.baselines().values():
        assert (world.errors(predictor(batch), batch) >= best - 0.01).all()
    assert float(best[0]) == pytest.approx(1.0 + 0.3**2, rel=0.05)
    assert (best.diff() < 0).all() and float(best[-1]) > 0.09


def test_the_predictions_count_at_the_questions_only() -> None:
    world = InContextRegression(dim=2, pairs=3)
    batch = world.sample(4, rng=sl.rng(2))
    assert batch.mask[0].tolist() == [True, False] * 3
    assert torch.equal(batch.targets[batch.mask], batch.inputs[:, 1::2, 2].flatten())
    assert world.optimal_loss(batch) == pytest.approx(world.half_error(world.oracle(batch), batch))
