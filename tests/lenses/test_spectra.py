"""Singular values of weights."""

import numpy as np
import pytest
import torch
from torch import nn

from sandlab.errors import BadInput
from sandlab.learning.population import Population
from sandlab.lenses import SpectraOverTraining, effective_rank, singular_values, stable_rank, top_share
from sandlab.models import Transformer


def test_singular_values_are_numpys():
    model = nn.Sequential(nn.Linear(5, 3), nn.Linear(3, 4))
    found = singular_values(model)
    assert list(found) == ["0.weight", "1.weight"], "biases have no spectrum"
    for name, values in found.items():
        weight = dict(model.named_parameters())[name].detach().double().numpy()
        np.testing.assert_allclose(values, np.linalg.svd(weight, compute_uv=False))


def test_names_choose_matrices_and_a_wrong_name_is_refused():
    model = nn.ModuleDict({"up": nn.Linear(2, 3), "down": nn.Linear(3, 2)})
    assert list(singular_values(model, "up*")) == ["up.weight"]
    with pytest.raises(BadInput, match=r"up\.weight"):
        singular_values(model, "upp.weight")


@pytest.mark.parametrize("rank", [1, 3, 6])
def test_a_projection_of_rank_r_has_every_rank_equal_to_r(rank):
    values = torch.cat([torch.ones(rank), torch.zeros(6 - rank)]).double()
    assert float(effective_rank(values)) == pytest.approx(rank)
    assert float(stable_rank(values)) == pytest.approx(rank)
    assert float(top_share(values)) == pytest.approx(1 / rank)


def test_ranks_do_not_depend_on_scale_and_shares_count_energy_or_size():
    values = torch.tensor([4.0, 2.0, 1.0]).double()
    assert float(effective_rank(7 * values)) == pytest.approx(float(effective_rank(values)))
    assert float(top_share(values)) == pytest.approx(16 / 21)
    assert float(top_share(values, power=1)) == pytest.approx(4 / 7)


def test_the_snapshots_keeps_a_spectrum_every_so_many_steps():
    model = nn.Linear(2, 2, bias=False)
    snapshots = SpectraOverTraining("weight", every=10)
    for step in range(0, 31, 5):
        with torch.no_grad():
            model.weight.copy_(torch.diag(torch.tensor([1.0 + step, 1.0])))
        snapshots(step, model, {})
    assert snapshots.steps == [0, 10, 20, 30]
    np.testing.assert_allclose(snapshots.spectra["weight"][:, 0], [1, 11, 21, 31])


def test_a_population_has_one_spectrum_per_member():
    population = Population(lambda seed: Transformer(vocab=3, length=4, layers=1, width=6, init_std=1.0), seeds=[3, 5])
    found = singular_values(population, "*.mlp.up_proj.weight")["layers.0.mlp.up_proj.weight"]
    for index in range(2):
        alone = singular_values(population.member(index), "*.mlp.up_proj.weight")["layers.0.mlp.up_proj.weight"]
        np.testing.assert_allclose(found[index], alone)
