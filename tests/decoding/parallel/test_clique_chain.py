"""Chains of the magnetisation against enumerated chains, and the bounds of the theory."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import sandlab as sl
from sandlab.decoding.parallel.clique_chain import (
    clique_gibbs_matrix,
    clique_parallel_matrix,
    hidden_clique_chance,
    stuck_bound,
    stuck_exponent,
    visit_bound,
    visit_steps,
    walk_magnetisation,
)
from sandlab.decoding.parallel.hitting import expected_hitting_time, survival
from sandlab.worlds.parallel.clique import IsingClique, separating_clique
from sandlab.worlds.parallel.finite import size_masks
from sandlab.worlds.parallel.heat_bath import block_matrix, parallel_matrix

SMALL = IsingClique(5, 3, 0.5, 0.2, (0.1, -0.3))
TABLE = {
    2.0: ([45.5, 13.3, 7.4, 5.1, 3.7, 2.9, 2.3, 1.9, 1.4, 1.0], 4.2),
    2.5: ([447, 22.3, 10.1, 6.2, 4.3, 3.2, 2.4, 1.9, 1.4, 1.0], 39.7),
    3.0: ([954, 382, 29.5, 10.4, 5.6, 3.6, 2.6, 1.9, 1.4, 1.0], 552),
    4.0: ([1000, 999, 33.4, 10.8, 5.6, 3.6, 2.6, 1.9, 1.4, 1.0], 998),
    5.0: ([1000, 1000, 64.2, 19.0, 9.0, 5.2, 3.4, 2.3, 1.5, 1.0], 1000),
    6.0: ([1000, 1000, 961, 198, 41.1, 13.9, 6.0, 3.0, 1.7, 1.0], 1000),
    8.0: ([1000, 1000, 1000, 208, 42.0, 14.0, 6.0, 3.0, 1.7, 1.0], 1000),
}


def lumped(matrix: np.ndarray) -> np.ndarray:
    """The enumerated chain seen through the number of plus spins in the clique."""
    law = SMALL.as_ising().law
    plus = np.eye(4)[law.states[:, :3].sum(1)]
    return np.linalg.lstsq(plus, matrix @ plus, rcond=None)[0]


@pytest.mark.parametrize("k", [1, 2, 3, 4, 5])
def test_k_gibbs_on_the_magnetisation_is_the_lumped_chain(k: int) -> None:
    full = block_matrix(SMALL.as_ising().law, size_masks(5, k))
    assert np.allclose(clique_gibbs_matrix(SMALL, k), lumped(full))


def test_independent_parallel_on_the_magnetisation_is_the_lumped_chain() -> None:
    assert np.allclose(clique_parallel_matrix(SMALL), lumped(parallel_matrix(SMALL.as_ising().law)))


@pytest.mark.parametrize("coupling", TABLE)
def test_hitting_times_of_figure_4_3_have_the_known_digits(coupling: float) -> None:
    world = IsingClique(10, 4, coupling, 5.0, 5.0)
    start, inside = np.eye(5)[0], np.arange(5) == 4
    gibbs, parallel = TABLE[coupling]
    found = [expected_hitting_time(clique_gibbs_matrix(world, k), start, inside, 1000) for k in range(1, 11)]
    assert found == pytest.approx(gibbs, rel=0.005, abs=0.06)
    assert expected_hitting_time(clique_parallel_matrix(world), start, inside, 1000) == pytest.approx(
        parallel, rel=0.005, abs=0.06
    )


def test_with_strong_couplings_only_blocks_that_hold_the_clique_help() -> None:
    world = IsingClique(10, 4, 30.0, 5.0, 5.0)
    start, inside = np.eye(5)[0], np.arange(5) == 4
    found = [expected_hitting_time(clique_gibbs_matrix(world, k), start, inside) for k in range(4, 11)]
    assert found == pytest.approx([210, 42, 14, 6, 3, 5 / 3, 1], rel=1e-3)
    assert [1 / hidden_clique_chance(10, 4, k) for k in range(4, 11)] == pytest.approx([210, 42, 14, 6, 3, 5 / 3, 1])


def test_the_visit_bound_has_the_known_digits_and_holds() -> None:
    world = IsingClique(10, 4, 1.5, 0.125)
    exact = {10: (0.7307, 0.4843), 6: (0.05219, 0.03459), 4: (0.003480, 0.002306)}
    for k, (probability, bound) in exact.items():
        found = clique_gibbs_matrix(world, k)[:, 4].min()
        assert found == pytest.approx(probability, rel=1e-3)
        assert 1 - visit_bound(10, 4, k, 1.0, 0.5) == pytest.approx(bound, rel=1e-3)
    assert visit_bound(10, 4, 10, 1.0, 0.5) == pytest.approx(0.51571, abs=1e-5)
    assert visit_bound(10, 4, 6, 1.0, 0.5) == pytest.approx(0.96541, abs=1e-5)
    for k, steps in ((10, 4), (6, 66)):
        assert visit_steps(visit_bound(10, 4, k, 1.0, 0.5), 0.1) == steps
        missed = survival(clique_gibbs_matrix(world, k), np.eye(5)[0], np.arange(5) == 4, steps + 1)[-1]
        assert missed <= 0.1


@pytest.mark.parametrize(
    ("clique", "slack", "exponent", "steps"), [(20, 1, 4.3771, 19), (30, 1, 7.2439, 349), (12, 2, 3.8147, 11)]
)
def test_the_stuck_bound_has_the_known_digits_and_holds(clique: int, slack: float, exponent: float, steps: int) -> None:
    assert stuck_exponent(clique, slack) == pytest.approx(exponent, abs=1e-4)
    assert stuck_bound(clique, slack, 0.5) == steps
    world = IsingClique(clique, clique, slack + clique * 0.01, 0.01)
    above = np.arange(clique + 1) > clique // 2 - 1
    start = np.eye(clique + 1)[clique // 2 - 1]
    kept = survival(clique_parallel_matrix(world), start, above, steps + 1)[-1]
    assert kept >= 0.5


@pytest.mark.parametrize(("delta", "steps", "bound", "exact"), [(0.2, 100, 0.95, 0.9744), (0.1, 1000, 0.975, 0.9873)])
def test_the_corollary_separates_the_samplers(delta: float, steps: int, bound: float, exact: float) -> None:
    world = separating_clique(delta, steps)
    c = world.clique
    slack = world.strength - world.total_field
    assert 1 - visit_bound(c, c, c, slack, world.total_field) == pytest.approx(bound, abs=1e-4)
    assert clique_gibbs_matrix(world, c)[0, c] == pytest.approx(exact, abs=1e-4)
    start = np.eye(c + 1)[c // 2 - 1]
    assert survival(clique_parallel_matrix(world), start, np.arange(c + 1) == c, steps + 1)[-1] > 1 - delta


def test_simulated_walks_have_the_exact_hitting_time() -> None:
    world = IsingClique(10, 4, 2.0, 5.0, 5.0)
    walk = walk_magnetisation(world, 0, 2000, 60, k=3, rng=sl.rng(0))
    times = torch.where((walk == 4).any(0), (walk == 4).int().argmax(0), 60).double()
    expected = expected_hitting_time(clique_gibbs_matrix(world, 3), np.eye(5)[0], np.arange(5) == 4, 60)
    assert float(times.mean()) == pytest.approx(expected, abs=4 * float(times.std()) / 2000**0.5)
