"""Bounds on communication have their known values."""

from __future__ import annotations

import math

import pytest

from sandlab.errors import BadInput
from sandlab.lenses.expressivity.lower_bounds import bounds_of, communication_table, model_sizes


@pytest.mark.parametrize("size", [1, 2, 5, 8])
def test_disjointness_needs_n_bits_by_every_bound(size: int) -> None:
    found = bounds_of("disjointness", size)
    assert (found.one_way, found.rank, found.fooling) == pytest.approx((size, size, size))


@pytest.mark.parametrize("size", [2, 5, 8])
def test_index_needs_n_bits_in_one_message_and_few_in_two(size: int) -> None:
    found = bounds_of("index", size)
    assert found.one_way == size
    assert found.rank == pytest.approx(math.log2(size))


@pytest.mark.parametrize("size", [2, 4, 8])
def test_majority_needs_a_count_and_parity_a_bit(size: int) -> None:
    assert bounds_of("majority", size).one_way == math.ceil(math.log2(size + 1))
    assert bounds_of("parity", size).one_way == 1
    assert bounds_of("equality", size).fooling == size


def test_the_table_has_a_row_for_each_function_and_size() -> None:
    rows = communication_table((2, 3))
    assert len(rows) == 10 and {row["n"] for row in rows} == {2, 3}


def test_bits_become_widths() -> None:
    assert model_sizes(100, 16) == {"recurrent state": 7, "attention": 7, "two-layer transformer": 0}


def test_an_unknown_function_is_refused() -> None:
    with pytest.raises(BadInput, match="disjointness"):
        bounds_of("disjointnes", 3)
