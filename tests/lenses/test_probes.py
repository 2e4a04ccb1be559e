"""Linear probes read what is linearly there, and nothing else."""

import pytest
import torch
from torch import nn

from sandlab.errors import BadInput
from sandlab.lenses import linear_probe, probe_activation
from sandlab.models import Transformer
from sandlab.random import rng


def test_a_linearly_separable_label_is_read_and_a_random_one_is_not():
    x = torch.randn(600, 5, generator=rng(0))
    label = (x @ torch.tensor([1.0, -2.0, 0.0, 0.5, 0.0]) > 0).long()
    assert linear_probe(x, label, rng=rng(1)).test > 0.95
    noise = torch.randint(2, (600,), generator=rng(2))
    assert linear_probe(x, noise, rng=rng(1)).test < 0.65


def test_the_exclusive_or_is_out_of_a_linear_probes_reach():
    x = torch.randn(800, 2, generator=rng(0))
    label = ((x[:, 0] > 0) ^ (x[:, 1] > 0)).long()
    assert linear_probe(x, label, rng=rng(1)).test < 0.65


def test_ridge_recovers_the_map_of_a_noiseless_number():
    x = torch.randn(300, 3, generator=rng(0)).double()
    probe = linear_probe(x, x @ torch.tensor([1.0, 2.0, -1.0]).double() + 4, rng=rng(0), strength=1e-9)
    assert probe.test == pytest.approx(1)
    assert probe.weights.ravel() == pytest.approx([1, 2, -1])
    assert probe.bias == pytest.approx([4])


def test_chance_is_the_share_of_the_most_frequent_class():
    x = torch.randn(1000, 2, generator=rng(0))
    label = (torch.rand(1000, generator=rng(1)) < 0.2).long()
    probe = linear_probe(x, label, rng=rng(2))
    assert probe.chance == pytest.approx(0.8, abs=0.05)


def test_whole_groups_are_held_out():
    # The label is a random bit per group and the feature is the group's own name: a probe that had seen the same
    # group in training would be right; one that has not can only guess.
    groups = torch.arange(60).repeat_interleave(10)
    bits = torch.randint(2, (60,), generator=rng(0))
    features = nn.functional.one_hot(groups, 60).double()
    leaking = linear_probe(features, bits[groups], rng=rng(1))
    honest = linear_probe(features, bits[groups], groups=groups, rng=rng(1))
    assert leaking.test > 0.95
    assert honest.test < 0.8


def test_the_current_token_can_be_read_from_the_embedding_and_marked_positions_are_left_out():
    model = Transformer(vocab=4, length=6, layers=1, width=16, positions="none", init_std=1.0)
    tokens = torch.randint(4, (80, 6), generator=rng(0))
    assert probe_activation(model, tokens, "embed", tokens, rng=rng(1)).test == 1.0
    half = torch.where(torch.arange(6) % 2 == 0, tokens, -1)
    assert probe_activation(model, tokens, "embed", half, rng=rng(1)).test == 1.0


def test_one_class_only_is_refused():
    with pytest.raises(BadInput, match="two classes"):
        linear_probe(torch.randn(10, 2), torch.zeros(10, dtype=torch.long), rng=rng(0))
