"""Prefixes of nested pairs: balanced, of every number of pairs, and the word stays as it was."""

import pytest
import torch

import sandlab as sl
from sandlab.worlds.dyck.language import Dyck
from sandlab.worlds.dyck.nested_prefix import NestedPrefix


def test_the_prefix_is_balanced_and_keeps_the_word() -> None:
    batch = Dyck(words="bounded").sample(20, rng=sl.rng(0))
    lengths = set()
    for seed in range(20):
        inputs, kept = NestedPrefix(2, 4)(batch, sl.rng(seed))
        assert torch.equal(inputs[:, -kept + 1 :], batch.inputs[:, 1:])
        prefix = inputs[:, 1 : inputs.shape[1] - kept + 1]
        assert bool(Dyck(words="complete", length=prefix.shape[1]).accepts(prefix).all())
        lengths.add(prefix.shape[1])
    assert lengths == {2, 4, 6, 8}


def test_a_depth_of_zero_is_refused() -> None:
    with pytest.raises(sl.BadInput, match="depth must be"):
        NestedPrefix(2, 0)
