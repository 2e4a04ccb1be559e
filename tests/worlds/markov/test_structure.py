"""Information between positions against scikit-learn, Chow–Liu against all trees."""

from __future__ import annotations

import itertools

import networkx as nx
import numpy as np
import pytest
import torch
from sklearn.metrics import mutual_info_score

from sandlab import BadInput, rng
from sandlab.worlds.markov._walk import dirichlet_rows, walk_graph
from sandlab.worlds.markov.causal_graphs import chain_parents, pair_parents, random_parents
from sandlab.worlds.markov.structure import chow_liu, position_information


def tree_samples(parents: tuple[int, ...], states: int, n: int, seed: int) -> torch.Tensor:
    """Many sequences of one tree with one kernel."""
    kernel = dirichlet_rows((1, states, states), 0.5, rng=rng(seed))
    tokens = torch.randint(0, states, (n, len(parents)), generator=rng(seed, "roots"))
    plan = [(child, (parent,)) for child, parent in enumerate(parents) if parent >= 0]
    return walk_graph(kernel, tokens, plan, rng=rng(seed, "walk"))


def test_shannon_information_equals_scikit_learn():
    tokens = tree_samples(chain_parents(5), 3, 400, 0)
    information = position_information(tokens, 3)
    for i, j in itertools.product(range(5), repeat=2):
        assert float(information[i, j]) == pytest.approx(mutual_info_score(tokens[:, i], tokens[:, j]), abs=1e-12)


def test_chi_square_information_is_the_pearson_statistic_over_n():
    from scipy.stats import chi2_contingency

    tokens = tree_samples(chain_parents(4), 3, 500, 1)
    information = position_information(tokens, 3, "chi-square")
    for i, j in itertools.combinations(range(4), 2):
        table = np.zeros((3, 3))
        np.add.at(table, (tokens[:, i].numpy(), tokens[:, j].numpy()), 1)
        statistic = chi2_contingency(table, correction=False).statistic
        assert float(information[i, j]) == pytest.approx(statistic / 500, abs=1e-10)


@pytest.mark.parametrize("parents", [chain_parents(9), pair_parents(10), random_parents(10, 1), random_parents(10, 5)])
def test_chow_liu_recovers_the_tree_that_made_the_data(parents):
    tokens = tree_samples(parents, 3, 60_000, 4)
    found = chow_liu(position_information(tokens, 3), threshold=1e-3)
    edges = {frozenset((child, parent)) for child, parent in enumerate(parents) if parent >= 0}
    assert {frozenset((child, parent)) for child, parent in enumerate(found) if parent >= 0} == edges


def test_chow_liu_tree_keeps_most_information_of_all_trees():
    generator = np.random.default_rng(0)
    for _ in range(5):
        weights = generator.random((5, 5))
        weights = torch.tensor(weights + weights.T)
        parents = chow_liu(weights)
        kept = sum(float(weights[child, parent]) for child, parent in enumerate(parents) if parent >= 0)
        best = 0.0
        for edges in itertools.combinations(itertools.combinations(range(5), 2), 4):
            if nx.is_tree(nx.Graph(edges)):
                best = max(best, sum(float(weights[i, j]) for i, j in edges))
        assert kept == pytest.approx(best, abs=1e-12)
        assert parents.count(-1) == 1


def test_weak_links_are_left_out_and_odd_shapes_refused():
    assert chow_liu(torch.eye(3) + 0.01, threshold=0.05) == (-1, -1, -1)
    with pytest.raises(BadInput, match="square"):
        chow_liu(torch.zeros(2, 3))
    with pytest.raises(BadInput, match="kind"):
        position_information(torch.zeros(2, 2, dtype=torch.int64), 2, "renyi")
