"""Layer-wise training on causal trees: the starting point, its gradient, and what a hundred steps find."""

from __future__ import annotations

import pytest
import torch

from sandlab.errors import BadInput
from sandlab.learning.markov.layerwise import TokenMatching, first_layer_descent, token_matching_config
from sandlab.learning.training import train
from sandlab.lenses.markov.attention import tree_attention
from sandlab.lenses.markov.dependence import points_at_parent
from sandlab.models.markov.disentangled import DisentangledTransformer
from sandlab.random import rng
from sandlab.worlds.markov.causal_graphs import InContextTree, chain_parents, random_parents


def prepared(states: int, length: int, temperature: float = 1.0) -> DisentangledTransformer:
    model = DisentangledTransformer.from_config(token_matching_config(states, length))
    TokenMatching(temperature)(model)
    return model


def test_only_the_first_layer_is_trained_and_the_output_is_a_distribution() -> None:
    model = prepared(3, 6)
    assert [name for name, weight in model.named_parameters() if weight.requires_grad] == ["layers.0.attention.weight"]
    tokens = torch.randint(0, 3, (4, 6), generator=rng(0))
    assert model(tokens).exp().sum(-1).flatten().tolist() == pytest.approx([1.003] * 4, abs=1e-5)


def test_the_descent_direction_is_minus_the_derivative_of_the_loss() -> None:
    world = InContextTree(3, chain_parents(5), concentration=0.5)
    descent = first_layer_descent(world, 0.1, 512, rng=rng(0, "gradient"))
    batch = world.sample(512, rng=rng(0, "gradient"))
    model = prepared(3, 5, temperature=0.1).double()
    weight = model.get_parameter("layers.0.attention.weight")

    def loss(change: float) -> float:
        with torch.no_grad():
            weight[0, 3 + 3, 3 + 2] = change
            log_probs = model(batch.inputs).log_softmax(-1)
            return float(-(batch.targets * log_probs).sum(-1).mean())

    slope = (loss(1e-3) - loss(-1e-3)) / 2e-3
    assert float(descent[3, 2]) == pytest.approx(-slope, rel=1e-3)


def test_without_the_second_layer_there_is_no_gradient() -> None:
    world = InContextTree(3, chain_parents(5), concentration=0.5)
    assert float(first_layer_descent(world, 0.0, 256, rng=rng(0)).abs().max()) == 0


@pytest.mark.parametrize("parents", [chain_parents(10), random_parents(10, 1)], ids=["chain", "tree"])
def test_the_first_layers_gradient_is_largest_at_the_parent(parents: list[int]) -> None:
    world = InContextTree(3, parents, concentration=0.5)
    descent = first_layer_descent(world, 0.1, 2**17, rng=rng(0))
    assert all(points_at_parent(descent, parents))


def test_the_first_layer_alone_finds_a_small_tree_within_a_hundred_steps() -> None:
    world = InContextTree(3, random_parents(8, 1))
    model = prepared(3, 8)
    train(model, world, steps=120, batch_size=64, lr=50.0, optimizer="sgd", rng=rng(0))
    found = tree_attention(model, world.sample(128, rng=rng(1)).inputs, world.parents)
    assert float(found.match) > 0.8 and bool(found.edges.all())


def test_other_models_are_refused() -> None:
    with pytest.raises(BadInput, match="heads=\\(1, 1\\)"):
        TokenMatching()(torch.nn.Linear(2, 2))
