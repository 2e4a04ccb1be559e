"""Gradient norms per parameter group."""

import pytest
import torch
from torch import nn

from sandlab.errors import BadInput
from sandlab.learning.population import Population
from sandlab.lenses import gradient_norms
from sandlab.models import Transformer
from sandlab.worlds.base import Batch


def problem() -> tuple[Transformer, Batch]:
    model = Transformer(vocab=3, length=5, layers=2, width=8, init_std=0.3).double()
    tokens = torch.randint(3, (6, 6), generator=torch.Generator().manual_seed(0))
    return model, Batch(tokens[:, :-1], tokens[:, 1:], torch.ones(6, 5, dtype=torch.bool))


def test_norms_are_those_that_backward_leaves_in_the_parameters():
    model, batch = problem()
    found = gradient_norms(model, batch)
    nn.functional.cross_entropy(model(batch.inputs).flatten(0, 1), batch.targets.flatten()).backward()
    query = model.layers[0].attention.query
    expected = torch.cat([query.weight.grad.flatten(), query.bias.grad]).norm()
    assert found["layers.0.attention.query"] == pytest.approx(float(expected))
    everything = torch.cat([parameter.grad.flatten() for parameter in model.parameters()]).norm()
    assert found["all"] == pytest.approx(float(everything))


def test_groups_are_chosen_by_pattern_and_their_squares_add_up():
    model, batch = problem()
    found = gradient_norms(model, batch, groups={"attention": "*.attention.*", "first": "layers.0.*"})
    single = gradient_norms(model, batch)
    parts = [norm for name, norm in single.items() if name.startswith("layers.0.")]
    assert found["first"] == pytest.approx(sum(norm**2 for norm in parts) ** 0.5)
    assert set(found) == {"attention", "first", "all"}


def test_a_parameter_without_influence_has_gradient_zero():
    found = gradient_norms(nn.Linear(2, 2), lambda model: model.weight.square().sum(), groups={"bias": "bias"})
    assert found["bias"] == 0 and found["all"] > 0


def test_an_empty_group_is_refused():
    model, batch = problem()
    with pytest.raises(BadInput, match=r"layers\.9"):
        gradient_norms(model, batch, groups={"ninth": "layers.9.*"})


def test_a_population_gives_each_member_the_norms_it_has_alone():
    _, batch = problem()
    population = Population(
        lambda seed: Transformer(vocab=3, length=5, layers=1, width=8, init_std=0.3), seeds=range(3)
    )
    together = gradient_norms(population, batch)
    for index in range(3):
        alone = gradient_norms(population.member(index), batch)
        assert set(alone) == set(together)
        for group, norm in alone.items():
            assert float(together[group][index]) == pytest.approx(norm, rel=1e-4, abs=1e-7)
    with pytest.raises(BadInput, match="batch"):
        gradient_norms(population, lambda model: torch.tensor(0.0))
