"""Attention patterns and their match to a target."""

import numpy as np
import pytest
import torch

from sandlab.errors import BadInput
from sandlab.lenses import attention_maps, attention_match, look_back, parent_pattern, same_token_successor
from sandlab.models import Transformer
from sandlab.models.base import seeded


def test_maps_are_causal_laws_with_one_entry_per_layer_and_head():
    with seeded(0):
        model = Transformer(vocab=4, length=7, layers=2, heads=2, width=8, init_std=0.5)
    tokens = torch.randint(4, (6, 7), generator=torch.Generator().manual_seed(1))
    maps = attention_maps(model, tokens)
    assert list(maps) == ["layers.0.attention.pattern", "layers.1.attention.pattern"]
    for pattern in maps.values():
        assert pattern.shape == (2, 7, 7)
        torch.testing.assert_close(pattern.sum(-1), torch.ones(2, 7))
        assert (pattern.triu(1) == 0).all()
    each = attention_maps(model, tokens, average=False)["layers.1.attention.pattern"]
    torch.testing.assert_close(each.mean(0), maps["layers.1.attention.pattern"])


def test_a_looped_layer_shows_one_map_per_turn():
    model = Transformer(vocab=4, length=5, layers=1, width=8, loops=3)
    maps = attention_maps(model, torch.zeros(2, 5, dtype=torch.long))
    assert list(maps) == [f"layers.0.attention.pattern#{turn}" for turn in range(3)]


def test_a_model_without_attention_is_refused():
    with pytest.raises(BadInput, match="pattern"):
        attention_maps(torch.nn.Sequential(torch.nn.Embedding(2, 2)), torch.zeros(1, 2, dtype=torch.long))


def test_match_is_one_for_the_target_itself_and_the_mean_attention_on_single_keys():
    target = look_back(6)
    shifted = torch.eye(6, dtype=torch.float64)
    assert float(attention_match(target, target)) == 1
    assert float(attention_match(shifted, target)) == 0
    generator = torch.Generator().manual_seed(0)
    pattern = torch.rand(3, 6, 6, generator=generator, dtype=torch.float64).tril()
    pattern = pattern / pattern.sum(-1, keepdim=True)
    on_target = pattern[:, torch.arange(1, 6), torch.arange(0, 5)].mean(-1)
    torch.testing.assert_close(attention_match(pattern, target), on_target)
    later = pattern[:, torch.arange(3, 6), torch.arange(2, 5)].mean(-1)
    torch.testing.assert_close(attention_match(pattern, target, skip=3), later)


def test_the_induction_pattern_is_what_a_loop_over_positions_finds():
    tokens = torch.randint(3, (4, 9), generator=torch.Generator().manual_seed(2))
    expected = np.zeros((4, 9, 9))
    for example, row in enumerate(tokens.tolist()):
        for i in range(9):
            keys = [j for j in range(1, i + 1) if row[j - 1] == row[i]]
            for j in keys:
                expected[example, i, j] = 1 / len(keys)
    np.testing.assert_allclose(same_token_successor(tokens), expected)


def test_parent_patterns_leave_roots_empty_and_refuse_a_parent_after_its_child():
    pattern = parent_pattern([-1, 0, 0, 2])
    assert pattern.nonzero().tolist() == [[1, 0], [2, 0], [3, 2]]
    with pytest.raises(BadInput, match="before their children"):
        parent_pattern([-1, 1])


def test_a_target_of_another_size_is_refused():
    with pytest.raises(BadInput, match="target"):
        attention_match(torch.eye(4), look_back(5))
