"""Exact constructions are never wrong."""

from __future__ import annotations

from sandlab.lenses.flip_flop import exact_machines


def test_the_circuit_is_right_on_every_short_string() -> None:
    assert exact_machines.wrong_on_short_strings(10) == (0, 2 + 10 + 50 + 250)


def test_memories_parses_and_sums_are_right() -> None:
    assert exact_machines.wrong_memories(64) == 0
    assert exact_machines.wrong_parses(20, 64) == 0
    assert exact_machines.wrong_sums(50) == 0


def test_every_monoid_of_two_elements_is_commutative() -> None:
    assert exact_machines.small_monoids() == 0


def test_penalties_have_the_stated_ranges() -> None:
    assert exact_machines.sharpness_gap() < 1e-6
