"""The scalar-embedding transformer and the three-parameter model."""

import pytest
import torch

from sandlab.errors import BadInput
from sandlab.learning.population import Population
from sandlab.models import OneLayerMarkov, ThreeParameterMarkov
from sandlab.models.base import seeded
from sandlab.random import rng


def test_the_output_is_the_formula_written_out():
    with seeded(0):
        model = OneLayerMarkov(length=6, width=4, tied=False, init_std=0.6).double()
    words = torch.randint(2, (3, 6), generator=rng(0))
    x = words[..., None].double() * model.token + model.position.weight
    attention = model.attention
    scores = (x @ attention.query.weight.T) @ (x @ attention.key.weight.T).mT / 2
    weights = scores.masked_fill(torch.ones(6, 6).triu(1).bool(), -torch.inf).softmax(-1)
    y = x + weights @ (x @ attention.value.weight.T) @ attention.output.weight.T
    z = y + (y @ model.mlp.up_proj.weight.T).relu() @ model.mlp.down_proj.weight.T
    odds = z @ model.readout + model.bias
    torch.testing.assert_close(model(words), torch.stack([torch.zeros_like(odds), odds], -1))


def test_tying_uses_the_embedding_vector_as_readout():
    with seeded(0):
        model = OneLayerMarkov(length=4, width=3, attention="none", mlp="none", positions=False, init_std=1.0)
    odds = model(torch.tensor([[1]]))[0, 0, 1]
    torch.testing.assert_close(odds, model.token.square().sum())


@pytest.mark.parametrize("tied", [True, False])
def test_members_of_a_population_compute_what_they_compute_alone(tied):
    population = Population(lambda seed: OneLayerMarkov(length=6, width=4, tied=tied, init_std=0.5), seeds=range(3))
    words = torch.randint(2, (5, 6), generator=rng(0))
    together = population(words)
    for member in range(3):
        torch.testing.assert_close(together[member], population.member(member)(words))


def test_members_of_the_three_parameter_model_keep_their_own_numbers():
    starts = [(0.5, -1.0), (1.0, 0.3)]

    def factory(seed):
        return ThreeParameterMarkov(embedding=starts[seed][0], feedforward=starts[seed][1], attention=0.4)

    population = Population(factory, seeds=range(2))
    words = torch.randint(2, (5, 6), generator=rng(0))
    for member in range(2):
        torch.testing.assert_close(population(words)[member], population.member(member)(words))


def test_a_number_that_is_not_given_is_drawn():
    with seeded(1):
        first = ThreeParameterMarkov(init_std=1.0)
    with seeded(2):
        second = ThreeParameterMarkov(init_std=1.0)
    assert first.embedding.item() != second.embedding.item()
    assert first.attention.item() == first.bias.item() == 0


def test_unknown_options_are_refused():
    with pytest.raises(BadInput, match="attention"):
        OneLayerMarkov(length=4, attention="hard")
