"""Alias tables hold exactly the laws they were made from."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sandlab import rng
from sandlab.worlds.alias import AliasTable
from sandlab.worlds.chains import alias_walk, dirichlet_rows, walk


@settings(max_examples=60, deadline=None)
@given(
    weights=st.lists(st.sampled_from([0.0, 1e-9, 0.1, 1.0, 7.0]), min_size=1, max_size=9).filter(lambda w: sum(w) > 0)
)
def test_columns_add_up_to_the_law(weights):
    law = torch.tensor([weights], dtype=torch.float64)
    law = law / law.sum()
    table = AliasTable(law)
    states = len(weights)
    mass = [0.0] * states
    for column in range(states):
        mass[column] += max(table.keep[column], 0.0) / states
        mass[table.alias[column]] += (1 - max(table.keep[column], 0.0)) / states
    assert mass == pytest.approx(law[0].tolist(), abs=1e-12)
    for state, weight in enumerate(weights):
        if weight == 0.0:
            assert mass[state] <= 1e-15


def test_draws_have_the_frequencies_of_their_rows():
    laws = dirichlet_rows((4, 20), 0.3, rng=rng(0))
    table = AliasTable(laws)
    columns, rests = table.numbers(1, 200_000, rng(1))
    for row in range(4):
        drawn = torch.from_numpy(table.draw(row, columns[0], rests[0]))
        frequency = torch.bincount(drawn, minlength=20).double() / 200_000
        assert float((frequency - laws[row]).abs().max()) < 0.006


@pytest.mark.parametrize("lags", [(1,), (1, 2), (1, 3)])
def test_walks_by_alias_and_by_thresholds_have_the_same_law(lags):
    kernel = dirichlet_rows((3 ** len(lags), 3), 1.0, rng=rng(2))
    start = torch.randint(0, 3, (60_000, max(lags)), generator=rng(3))
    one = alias_walk(AliasTable(kernel), start, 6, lags, rng=rng(4))
    two = walk(kernel.unsqueeze(0), start, 6, lags, rng=rng(5))
    codes = [(tokens[:, -3:] * torch.tensor([9, 3, 1])).sum(-1) for tokens in (one, two)]
    frequencies = [torch.bincount(code, minlength=27).double() / 60_000 for code in codes]
    assert float((frequencies[0] - frequencies[1]).abs().max()) < 0.01
    assert torch.equal(one[:, : max(lags)], start)
