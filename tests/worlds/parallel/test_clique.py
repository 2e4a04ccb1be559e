"""Ising cliques through their magnetisation, their modes, and the assumptions of the theory."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import sandlab as sl
from sandlab.worlds.parallel.clique import IsingClique, IsingConditions, mode_of, separating_clique

SMALL = IsingClique(6, 4, 0.4, 0.15, (0.3, -0.2), hidden=3)


def test_the_magnetisation_is_that_of_the_enumerated_model() -> None:
    law = SMALL.as_ising().law
    plus = law.states[:, :4].sum(1)
    assert np.bincount(plus, weights=law.probs) == pytest.approx(SMALL.magnetisation)


def test_marginals_are_those_of_the_enumerated_model() -> None:
    batch = SMALL.sample(50, rng=sl.rng(0))
    assert torch.allclose(SMALL.oracle(batch).exp(), SMALL.as_ising().oracle(batch).exp(), atol=1e-9)


def test_draws_have_the_law_of_the_enumerated_model() -> None:
    tokens = SMALL.draw(40_000, rng=sl.rng(1))
    index = (tokens * 2 ** torch.arange(5, -1, -1)).sum(1)
    seen = torch.bincount(index, minlength=64).numpy() / len(tokens)
    assert 0.5 * np.abs(seen - SMALL.as_ising().law.probs).sum() < 0.03


def test_redrawn_spins_leave_the_visible_ones_alone() -> None:
    batch = SMALL.sample(200, rng=sl.rng(2))
    again = SMALL.redraw(batch.targets, batch.mask, rng=sl.rng(3))
    assert bool((again[~batch.mask] == batch.targets[~batch.mask]).all())


@pytest.mark.parametrize("outside", [0.0, (0.02, -0.01, 0.02, 0.0)])
def test_modes_are_ordered_as_in_proposition_4_3_3(outside: float | tuple[float, ...]) -> None:
    world = IsingClique(8, 4, 1.4, 0.1, outside)
    conditions = IsingConditions(world)
    assert conditions.strong
    law = world.as_ising().law
    mode = mode_of(law.states, 4)
    up, down, rest = (law.probs[mode == value] for value in (1, -1, 0))
    assert up.min() > down.max()
    assert down.min() >= np.exp(2 * conditions.slack) * rest.max() * (1 - 1e-9)
    # Turning all spins of the clique maps R₁ onto R₋₁ and costs e^{2h_G}.
    turned = law.states[mode == 1].copy()
    turned[:, :4] = 0
    index = turned @ (2 ** np.arange(7, -1, -1))
    assert up == pytest.approx(np.exp(2 * world.total_field) * law.probs[index])


@pytest.mark.parametrize(
    ("delta", "steps", "clique", "field", "slack", "sites"),
    [(0.2, 100, 69, 1.8188, 23.914, 1311), (0.1, 1000, 93, 2.1784, 32.231, 3627)],
)
def test_the_separating_clique_has_the_known_sizes(delta, steps, clique, field, slack, sites) -> None:
    world = separating_clique(delta, steps)
    conditions = IsingConditions(world, delta, steps)
    assert (world.clique, conditions.sites_needed) == (clique, sites)
    assert world.total_field == pytest.approx(field, abs=1e-4)
    assert conditions.slack == pytest.approx(slack, abs=1e-3)
    assert conditions.strong and conditions.large and conditions.block_needed == clique
    assert IsingConditions(IsingClique(sites, clique), delta, steps).block_needed == sites - 1
    assert IsingConditions(IsingClique(sites - 1, clique), delta, steps).block_needed == sites - 1


def test_the_parameters_of_figure_4_3_violate_assumption_4_1_5() -> None:
    assert not IsingConditions(IsingClique(10, 4, 50.0, 5.0, 5.0)).strong
