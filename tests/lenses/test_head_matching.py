"""Matching of heads to parents."""

import itertools

import numpy as np
import pytest
import torch

from sandlab.circuits import parent_heads_estimator
from sandlab.errors import BadInput
from sandlab.lenses import attention_maps, attention_on_parents, match_heads
from sandlab.random import rng
from sandlab.worlds.markov.causal_graphs import skip_parents

PARENTS = [(), (), (1, 0), (2, 0), (3, 1)]


def test_attention_on_parents_is_the_mean_over_children_read_off_by_hand():
    pattern = torch.rand(2, 5, 5, generator=rng(0), dtype=torch.float64)
    found = attention_on_parents(pattern, PARENTS)
    for head, slot in itertools.product(range(2), range(2)):
        expected = np.mean([pattern[head, child, PARENTS[child][slot]] for child in (2, 3, 4)])
        assert float(found[head, slot]) == pytest.approx(expected)


def test_the_matching_is_the_best_of_all_assignments():
    families = [(), (), (), (2, 1, 0), (3, 1, 0), (4, 2, 0)]
    for seed in range(20):
        pattern = torch.rand(4, 6, 6, generator=rng(seed), dtype=torch.float64)
        table = attention_on_parents(pattern, families).numpy()
        best = max(
            np.mean([table[heads[slot], slot] for slot in range(3)]) for heads in itertools.permutations(range(4), 3)
        )
        found = match_heads(pattern, families)
        assert found.score == pytest.approx(best)
        assert np.mean([table[found.heads[slot], slot] for slot in range(3)]) == pytest.approx(best)


def test_heads_that_copy_one_parent_each_score_one_whatever_their_order():
    pattern = torch.zeros(2, 5, 5)
    for child in (2, 3, 4):
        pattern[1, child, PARENTS[child][0]] = 1
        pattern[0, child, PARENTS[child][1]] = 1
    found = match_heads(pattern, PARENTS)
    assert found.heads == (1, 0)
    assert found.score == 1


def test_the_construction_with_a_head_per_parent_is_matched_perfectly():
    families = skip_parents(10)
    model = parent_heads_estimator(3, families)
    tokens = torch.randint(3, (4, 10), generator=rng(0))
    # The last position looks at the parents of the token to come, not at its own.
    pattern = attention_maps(model, tokens)["layers.0.attention.pattern"][:, :-1, :-1]
    found = match_heads(pattern, families)
    assert found.heads == (0, 1)
    assert found.score == pytest.approx(1, abs=1e-9)


def test_fewer_heads_than_parents_are_refused():
    with pytest.raises(BadInput, match="at least as many"):
        match_heads(torch.rand(1, 5, 5), PARENTS)
