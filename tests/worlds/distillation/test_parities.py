"""Parities: labels against products written out, and the tree against its own class formula."""

from __future__ import annotations

import itertools

import pytest
import torch

from sandlab.errors import BadInput
from sandlab.random import rng
from sandlab.worlds.distillation.parities import HierarchicalParity, SparseParity


def test_labels_are_products_over_the_support() -> None:
    world = SparseParity(7, (1, 4, 5))
    every = torch.tensor(list(itertools.product([1.0, -1.0], repeat=7)))
    products = every[:, 1] * every[:, 4] * every[:, 5]
    assert torch.equal(world.label(every), (products < 0).long())


def test_tokens_and_signs_carry_the_same_labels() -> None:
    signs = SparseParity(12, 3).sample(64, rng=rng(0))
    tokens = SparseParity(12, 3, form="tokens").sample(64, rng=rng(0))
    assert torch.equal(tokens.inputs, ((1 - signs.inputs) / 2).long())
    assert torch.equal(tokens.targets, signs.targets)


@pytest.mark.parametrize("form", ["signs", "tokens"])
def test_the_oracle_is_certain_and_right(form: str) -> None:
    for world in (SparseParity(9, 4, form), HierarchicalParity(9, 1, 3, form)):
        batch = world.sample(50, rng=rng(1))
        assert world.optimal_loss(batch) == 0.0
        assert torch.equal(world.oracle(batch).argmax(-1), batch.targets)


def test_paths_of_the_published_tree_use_the_stated_coordinates() -> None:
    world = HierarchicalParity()
    assert world.path(0) == (1, 2, 4)
    assert [world.group(node)[0] + 1 for node in world.path(0)] == [1, 6, 16]
    assert world.relevant == 35


@pytest.mark.parametrize("flipped", [False, True])
def test_class_membership_is_the_product_along_the_path(flipped: bool) -> None:
    world = HierarchicalParity(9, 1, 3, flipped=flipped)
    every = torch.tensor(list(itertools.product([1.0, -1.0], repeat=7)))
    signs = torch.cat([every, torch.ones(len(every), 2)], 1)
    for leaf in range(8):
        assert torch.equal(world.member(signs, leaf), world.label(signs) == leaf)
    assert world.label(signs).bincount().tolist() == [16] * 8


def test_the_printed_sign_rule_is_wrong_beyond_depth_one() -> None:
    """c = 1 iff i ≥ 2^{D−j} (i from 1) would send leaf 3 of depth 2 to the right twice."""
    printed = [[1 if leaf + 1 >= 2 ** (2 - level) else -1 for level in (1, 2)] for leaf in range(4)]
    true = [[1 if (leaf >> (2 - level)) & 1 else -1 for level in (1, 2)] for leaf in range(4)]
    assert printed != true and len({tuple(turns) for turns in printed}) < 4


def test_coordinates_that_do_not_exist_are_refused() -> None:
    with pytest.raises(BadInput, match="support"):
        SparseParity(4, (1, 1))
    with pytest.raises(BadInput, match="dimension"):
        HierarchicalParity(10, 2, 3)
