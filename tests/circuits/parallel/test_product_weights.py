"""Parallel decoders as weights: products are exact, and products are all there is."""

from __future__ import annotations

import numpy as np
import pytest

from sandlab.circuits.parallel.product_weights import (
    deterministic_map,
    gibbs_site_step,
    nearest_product_chain,
    product_chain,
)
from sandlab.decoding.parallel.product_steps import ParallelDecoding, decoding_matrix
from sandlab.errors import BadInput
from sandlab.lenses.parallel.dependence import total_correlation
from sandlab.models.parallel.presets import pd_transformer
from sandlab.worlds.parallel.families import Ising
from sandlab.worlds.parallel.finite import FiniteLaw, MaskLaw, enumerate_states, size_masks
from sandlab.worlds.parallel.heat_bath import block_matrix


def written_out(probs: np.ndarray) -> np.ndarray:
    states = enumerate_states(*probs.shape[1:])
    return np.prod([probs[:, j][:, states[:, j]] for j in range(probs.shape[1])], 0)


@pytest.mark.parametrize(("sites", "symbols"), [(1, 2), (2, 3), (3, 2), (4, 2)])
def test_the_weights_realise_any_product_chain(sites: int, symbols: int) -> None:
    probs = np.random.default_rng(0).dirichlet(np.ones(symbols), size=(symbols**sites, sites))
    assert np.abs(decoding_matrix(product_chain(probs), sites, symbols) - written_out(probs)).max() < 1e-14


def test_likeliest_tokens_follow_any_map_and_its_iterates() -> None:
    images = np.random.default_rng(1).integers(0, 2, size=(8, 3))
    place, argmax = np.array([4, 2, 1]), ParallelDecoding(temperature=0)
    once = images @ place
    for repeats, expected in ((1, once), (2, once[once]), (3, once[once[once]])):
        matrix = decoding_matrix(deterministic_map(images, 2, repeats=repeats), 3, 2, argmax)
        assert (matrix.argmax(1) == expected).all() and matrix.max(1).min() == 1


def test_one_gibbs_site_is_a_product_and_random_sites_are_not() -> None:
    law = Ising(3, 0.6, 0.1).law
    steps = [decoding_matrix(gibbs_site_step(law, site), 3, 2) for site in range(3)]
    for site, matrix in enumerate(steps):
        alone = MaskLaw(np.array([np.arange(3) == site, np.ones(3, dtype=bool)]), np.array([1.0, 0.0]))
        assert np.abs(matrix - block_matrix(law, alone)).max() < 1e-12
    mixed = np.mean(steps, 0)
    assert np.allclose(mixed, block_matrix(law, size_masks(3, 1)))
    assert total_correlation(FiniteLaw(2, mixed[0])) > 0.001


@pytest.mark.parametrize("seed", range(3))
def test_transitions_of_any_parallel_decoder_factorise(seed: int) -> None:
    from sandlab.models.base import seeded

    with seeded(seed):
        model = pd_transformer(3, 3, width=16, heads=2, init_std=0.5).double()
    for row in decoding_matrix(model, 3, 3)[::5]:
        assert abs(total_correlation(FiniteLaw(3, row / row.sum()))) < 1e-9


def test_a_block_of_two_is_not_expressible_and_the_nearest_product_is_the_marginals() -> None:
    matrix = block_matrix(Ising(3, 1.0).law, size_masks(3, 3))
    probs = nearest_product_chain(matrix, 2)
    product = decoding_matrix(product_chain(probs), 3, 2)
    gap = (matrix * np.log(matrix / product)).sum(1)
    assert gap == pytest.approx([total_correlation(FiniteLaw(2, row)) for row in matrix])
    assert gap.min() > 1


def test_truncated_sampling_drops_unlikely_tokens() -> None:
    probs = np.tile([0.7, 0.2, 0.1], (9, 2, 1))
    kept = decoding_matrix(product_chain(probs), 2, 3, ParallelDecoding(top_p=0.8))
    assert kept[0, -1] == 0 and kept[0, 0] == pytest.approx((7 / 9) ** 2)


def test_chains_with_zeros_are_refused() -> None:
    with pytest.raises(BadInput, match="positive"):
        product_chain(np.tile([1.0, 0.0], (4, 2, 1)))
