"""Attention on Markov data: read off circuits whose attention is known."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from sandlab.circuits import causal_graph_estimator, induction_head
from sandlab.learning.population import Population
from sandlab.lenses import attention_on_start, induction_match, sharpened_attention, tree_attention
from sandlab.models.markov.disentangled import DisentangledTransformer
from sandlab.models.transformer import Transformer
from sandlab.random import rng
from sandlab.worlds.markov.bigram_text import BigramBackcopy
from sandlab.worlds.markov.causal_graphs import InContextTree, chain_parents, pair_parents, random_parents


@pytest.mark.parametrize("parents", [chain_parents(8), pair_parents(8), random_parents(8, 1)])
def test_the_construction_by_hand_is_read_as_the_graph_it_was_made_for(parents: tuple[int, ...]) -> None:
    batch = InContextTree(3, parents).sample(16, rng=rng(0))
    found = tree_attention(causal_graph_estimator(3, parents), batch.inputs, parents)
    assert bool(found.edges.all()) and found.edges.shape == (sum(parent >= 0 for parent in parents[:-1]),)
    assert float(found.match) > 0.99 and found.pattern.shape == (7, 7)


def test_uniform_attention_matches_by_its_share_of_the_parent() -> None:
    world = InContextTree(3, chain_parents(6))
    population = Population(lambda seed: DisentangledTransformer(vocab=3, length=6, heads=(1, 1)), seeds=(0, 1))
    found = tree_attention(population, world.sample(4, rng=rng(0)).inputs, world.parents)
    expected = np.mean([1 / (position + 1) for position in range(1, 5)])
    assert found.match.tolist() == pytest.approx([expected] * 2, abs=1e-6)
    assert found.edges.shape == (2, 4)


def test_attention_is_one_hot_once_it_is_sharpened_by_hand_and_the_model_stays_as_it_was() -> None:
    world = InContextTree(3, chain_parents(8))
    model = DisentangledTransformer(vocab=3, length=8, heads=(1, 1))
    found = sharpened_attention(model, world, world.sample(32, rng=rng(0)))
    assert found["sharp match"] > 0.85 > found["match"]
    assert found["loss"] == pytest.approx(np.log(3)) == found["sharp loss"], "a readout of zeros predicts the uniform"
    assert all(float(weight.detach().abs().max()) == 0 for weight in model.parameters())


def test_the_induction_circuit_matches_both_parts_of_an_induction_head() -> None:
    tokens = torch.randint(0, 3, (8, 24), generator=rng(0))
    found = induction_match(induction_head(3, 24), tokens)
    # The circuit's first position copies itself, so that it counts as a successor of its own token.
    assert float(found["previous"]) > 0.99 and float(found["successor"]) > 0.9


def test_untrained_attention_rests_on_the_start_by_its_share_alone() -> None:
    world = BigramBackcopy(8, 2, length=10)
    batch = world.sample(64, rng=rng(0))
    model = Transformer(vocab=world.vocab, length=10, layers=1, width=8, init_std=1e-4)
    found = attention_on_start(model, batch.inputs, batch.truth["is_trigger"])
    busy = batch.truth["is_trigger"][:, 2:]
    share = (1 / torch.arange(3, 11)).expand(64, -1)
    assert float(found.dormant) == pytest.approx(float(share[~busy].mean()), abs=1e-3)
    assert float(found.active) == pytest.approx(float(share[busy].mean()), abs=1e-3)
    assert found.pattern.shape == (64, 10, 10) and float(found.value) > 0
