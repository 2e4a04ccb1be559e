"""Samplers against the transition matrices of the chains they claim to be."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import sandlab as sl
from sandlab.decoding.parallel.samplers import (
    AdaptiveBlockDynamics,
    BlockDynamics,
    Checkerboard,
    IndependentParallel,
    KGibbs,
    uncertain_sites,
)
from sandlab.decoding.parallel.site_models import CliqueSites, LawSites, MaskedModelSites, PairwiseSpins
from sandlab.errors import BadInput
from sandlab.worlds.parallel.clique import IsingClique, mode_of
from sandlab.worlds.parallel.families import Ising
from sandlab.worlds.parallel.finite import MaskLaw, size_masks
from sandlab.worlds.parallel.heat_bath import block_matrix, parallel_matrix

LAW = Ising(3, 0.5, 0.2).law
MASKS = MaskLaw(size_masks(3, 2).masks, np.array([0.6, 0.3, 0.1]))
ADAPTIVE = MaskLaw(size_masks(3, 2).masks, np.random.default_rng(0).dirichlet(np.ones(3), size=8))


def one_step(sampler, model, start: int, chains: int = 40_000) -> np.ndarray:
    """Frequencies of states after one step from one state."""
    states = torch.as_tensor(LAW.states)[start].expand(chains, -1)
    after = sampler.run(model, states, 1, rng=sl.rng(0)).states[-1]
    return np.bincount((after @ torch.tensor([4, 2, 1])).numpy(), minlength=8) / chains


@pytest.mark.parametrize(
    ("sampler", "matrix"),
    [
        (KGibbs(1), block_matrix(LAW, size_masks(3, 1))),
        (KGibbs(2), block_matrix(LAW, size_masks(3, 2))),
        (BlockDynamics(MASKS), block_matrix(LAW, MASKS)),
        (AdaptiveBlockDynamics(ADAPTIVE), block_matrix(LAW, ADAPTIVE)),
        (IndependentParallel(), parallel_matrix(LAW)),
    ],
    ids=["1-gibbs", "2-gibbs", "blocks", "adaptive", "parallel"],
)
def test_one_step_has_the_law_of_its_matrix(sampler, matrix: np.ndarray) -> None:
    for start in (0, 5):
        assert 0.5 * np.abs(one_step(sampler, LawSites(LAW), start) - matrix[start]).sum() < 0.02


def test_cliques_and_pairwise_spins_agree_with_the_enumerated_model() -> None:
    world = IsingClique(3, 3, 0.5, 0.2)
    pairwise = PairwiseSpins(torch.as_tensor(world.as_ising().matrix), torch.as_tensor(world.fields))
    states = torch.as_tensor(LAW.states)
    expected = LawSites(LAW).site_probs(states)
    assert torch.allclose(CliqueSites(world).site_probs(states), expected)
    assert torch.allclose(pairwise.site_probs(states), expected)
    assert (
        0.5 * np.abs(one_step(KGibbs(2), CliqueSites(world), 0) - block_matrix(LAW, size_masks(3, 2))[0]).sum() < 0.02
    )


def test_a_checkerboard_step_on_a_lattice_is_a_gibbs_step_of_each_colour() -> None:
    lattice, sampler = PairwiseSpins.lattice(4, 0.3), Checkerboard.lattice(4)
    start = torch.zeros(10, 16, dtype=torch.long)
    trace = sampler.run(lattice, start, 2, rng=sl.rng(0))
    first = trace.hidden[0][0]
    assert int(first.sum()) == 8 and bool((trace.hidden[1][0] == ~first).all())
    assert bool((trace.states[1][:, ~first] == 0).all())
    with pytest.raises(BadInput, match="neighbours"):
        lattice.redraw(start, torch.ones_like(start, dtype=torch.bool), sl.rng(0))


def test_a_trace_knows_when_a_set_was_first_reached() -> None:
    world = IsingClique(10, 4, 8.0, 5.0, 5.0)
    trace = KGibbs(10).run(CliqueSites(world), torch.zeros(20, 10, dtype=torch.long), 3, rng=sl.rng(0))
    times = trace.first(lambda states: torch.as_tensor(mode_of(states, 4) == 1))
    assert bool((times == 1).all()) and trace.passes == 3


class Marginal(nn.Module):
    """A masked model that ignores what it sees: P(+) = 0.8 everywhere."""

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        return torch.tensor([0.2, 0.8]).log().expand(*inputs.shape, 2)


def test_a_masked_model_redraws_hidden_sites_and_counts_passes() -> None:
    for together in (True, False):
        model = MaskedModelSites(Marginal(), 3, 2, 2, one_by_one=not together)
        start = torch.zeros(4000, 3, dtype=torch.long)
        trace = KGibbs(2).run(model, start, 1, rng=sl.rng(0))
        assert trace.passes == (1 if together else 2)
        assert float(trace.states[1][trace.hidden[0]].double().mean()) == pytest.approx(0.8, abs=0.02)
        assert bool((trace.states[1][~trace.hidden[0]] == 0).all())
    assert torch.allclose(model.site_probs(start[:2]), torch.tensor([0.2, 0.8], dtype=torch.float64).expand(2, 3, 2))


def test_an_adaptive_rule_hides_the_least_likely_tokens() -> None:
    model = MaskedModelSites(Marginal(), 3, 2, 2, temperature=0.0)
    start = torch.tensor([[1, 0, 1]])
    trace = AdaptiveBlockDynamics(uncertain_sites(1)).run(model, start, 1, rng=sl.rng(0))
    assert trace.hidden[0].tolist() == [[False, True, False]] and trace.states[1].tolist() == [[1, 1, 1]]
