"""What products lose, and conditionals that have no joint law."""

from __future__ import annotations

import numpy as np
import pytest

from sandlab.decoding.parallel.site_models import LawSites
from sandlab.lenses.parallel.dependence import (
    conditional_consistency,
    dependency_gap,
    gibbs_of_conditionals,
    site_table,
    total_correlation,
)
from sandlab.worlds.parallel.families import Ising
from sandlab.worlds.parallel.finite import FiniteLaw, size_masks
from sandlab.worlds.parallel.heat_bath import block_matrix


@pytest.mark.parametrize(("coupling", "nats"), [(0.05, 0.0085), (0.3, 0.4668), (1.0, 2.0018), (5.0, 2.0794)])
def test_total_correlation_of_the_clique_has_the_known_digits(coupling: float, nats: float) -> None:
    assert total_correlation(Ising(4, coupling).law) == pytest.approx(nats, abs=1e-4)
    assert nats <= 3 * np.log(2) + 1e-4


def test_no_product_is_nearer_than_the_product_of_marginals() -> None:
    law = Ising(3, 0.6, 0.2).law
    draws = np.random.default_rng(0)
    for _ in range(50):
        sites = draws.dirichlet(np.ones(2), size=3)
        product = np.prod([sites[i][law.states[:, i]] for i in range(3)], 0)
        assert (law.probs * np.log(law.probs / product)).sum() >= total_correlation(law)


def test_a_hidden_block_of_one_site_loses_nothing_and_of_all_sites_the_total_correlation() -> None:
    law = Ising(4, 0.5).law
    assert dependency_gap(law, np.array([True, False, False, False])) == 0
    assert dependency_gap(law, np.ones(4, dtype=bool)) == pytest.approx(total_correlation(law))
    assert 0 < dependency_gap(law, np.array([True, True, False, False])) < total_correlation(law)


def test_conditionals_of_a_law_are_consistent_and_lead_back_to_it() -> None:
    law = FiniteLaw(3, np.random.default_rng(0).dirichlet(np.ones(27)))
    table = site_table(LawSites(law))
    assert np.allclose(gibbs_of_conditionals(table), block_matrix(law, size_masks(3, 1)))
    report = conditional_consistency(table, law)
    assert report.cycle < 1e-9 and report.error < 1e-12
    assert report.stationary == pytest.approx(law.probs)


def test_perturbed_conditionals_have_no_joint_law_and_gibbs_amplifies_their_error() -> None:
    law = Ising(4, 0.8).law
    draws = np.random.default_rng(1)
    noise = np.exp(0.1 * draws.normal(size=(16, 4, 2)))
    table = law.site_conditionals() * noise
    # A conditional may not depend on the site's own present token: average over it.
    for site, mask in enumerate(np.eye(4, dtype=bool)):
        groups = law.groups(mask)
        table[groups, site] = table[groups, site].mean(1, keepdims=True)
    table /= table.sum(-1, keepdims=True)
    report = conditional_consistency(table, law)
    assert report.cycle > 0.05
    assert report.amplified > 1
