"""Distributions that are written out: conditionals, masks, heat-bath chains."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from sandlab.errors import BadInput
from sandlab.worlds.parallel.finite import FiniteLaw, MaskLaw, enumerate_states, size_masks
from sandlab.worlds.parallel.heat_bath import block_matrix, parallel_matrix


def random_law(sites: int, symbols: int = 2, seed: int = 0) -> FiniteLaw:
    return FiniteLaw(symbols, np.random.default_rng(seed).dirichlet(np.ones(symbols**sites)))


def random_adaptive(law: FiniteLaw, size: int, seed: int = 0) -> MaskLaw:
    masks = size_masks(law.sites, size).masks
    return MaskLaw(masks, np.random.default_rng(seed).dirichlet(np.ones(len(masks)), size=len(law)))


def test_states_are_in_lexicographic_order() -> None:
    assert enumerate_states(3, 2).tolist() == [list(state) for state in itertools.product((0, 1), repeat=3)]


def test_groups_share_their_visible_sites_and_conditionals_sum_to_one() -> None:
    law = random_law(3, 3)
    for mask in size_masks(3, 2).masks:
        for group, given in zip(law.groups(mask), law.conditional(mask)):
            assert len({tuple(law.states[state][~mask]) for state in group}) == 1
            assert given == pytest.approx(law.probs[group] / law.probs[group].sum())


def test_marginals_keep_the_order_that_is_asked_for() -> None:
    law = random_law(3)
    table = law.probs.reshape(2, 2, 2)
    assert law.marginal([2, 0]) == pytest.approx(table.sum(1).T.reshape(-1))


def test_conditioning_on_the_mask_matters_as_in_lemma_4_3_1() -> None:
    law = FiniteLaw(2, np.array([1 / 2, 1 / 3, 1 / 6, 0]))
    masks = MaskLaw(np.eye(2, dtype=bool), np.array([[1 / 2, 1 / 2], [1 / 3, 2 / 3], [1 / 4, 3 / 4], [1 / 2, 1 / 2]]))
    hides_second = np.array([False, True])
    assert law.conditional(hides_second)[0, 0] == pytest.approx(3 / 5)
    given = [law.conditional(hides_second, law.weights(masks, place))[0, 0] for place in (0, 1)]
    assert given == pytest.approx([9 / 13, 9 / 17])
    # Lemma 4.3.2: averaging over the mask given the visible site gives back the plain conditional.
    weights = [law.weights(masks, place)[:2].sum() for place in (0, 1)]
    assert np.average(given, weights=weights) == pytest.approx(0.6)


@pytest.mark.parametrize("seed", range(5))
def test_block_dynamics_are_reversible_also_with_masks_that_depend_on_the_state(seed: int) -> None:
    law = random_law(3, 2, seed)
    for masks in (size_masks(3, 2), random_adaptive(law, 2, seed), random_adaptive(law, 1, seed)):
        matrix = block_matrix(law, masks)
        flow = law.probs[:, None] * matrix
        assert matrix.sum(1) == pytest.approx(np.ones(8))
        assert np.abs(flow - flow.T).max() < 1e-12


def test_independent_parallel_is_the_product_of_site_conditionals() -> None:
    law = random_law(2, 3)
    matrix, given = parallel_matrix(law), law.site_conditionals()
    for old, new in itertools.product(range(9), repeat=2):
        a, b = law.states[new]
        assert matrix[old, new] == pytest.approx(given[old, 0, a] * given[old, 1, b])
    assert matrix.sum(1) == pytest.approx(np.ones(9))


def test_what_is_no_law_is_refused() -> None:
    with pytest.raises(BadInput, match="distribution"):
        FiniteLaw(2, np.array([0.5, 0.6]))
    with pytest.raises(BadInput, match="cover"):
        MaskLaw(np.array([[True, False]]), np.ones(1))
    with pytest.raises(BadInput, match="sites"):
        enumerate_states(20)
