"""Associative memories and the models of facts compute their formulas."""

from __future__ import annotations

import torch

import sandlab as sl
from sandlab.models.base import build, seeded
from sandlab.models.knowledge.facts import LinearAttentionFacts, fact_parameters, fact_transformer, freeze_tables
from sandlab.models.knowledge.memories import AssociativeMemory
from sandlab.worlds.knowledge.associations import Associations


def test_a_linear_memory_is_its_formula() -> None:
    model = AssociativeMemory(items=7, answers=5, width=6)
    e, u, w = model.embedding.weight, model.unembedding.weight, model.up_proj.weight
    expected = torch.stack([u @ w @ e[x] for x in range(7)])
    assert torch.allclose(model(torch.arange(7).unsqueeze(-1))[:, 0], expected, atol=1e-6)
    assert torch.allclose(e.norm(dim=-1), torch.ones(7))


def test_a_perceptron_memory_is_its_formula_and_has_2md_weights() -> None:
    model = AssociativeMemory(items=7, width=6, hidden=9)
    assert model.trained_parameters == 2 * 9 * 6
    assert model.down_proj is not None
    hidden = torch.relu(model.embedding.weight @ model.up_proj.weight.T)
    expected = hidden @ model.down_proj.weight.T @ model.unembedding.weight.T
    assert torch.allclose(model(torch.arange(7).unsqueeze(-1))[:, 0], expected, atol=1e-6)


def test_vectors_stay_as_they_were_drawn() -> None:
    world = Associations(items=6, everything=True)
    model = AssociativeMemory(items=6, width=8, zero_start=True)
    before = model.embedding.weight.clone()
    sl.learning.train(model, world, steps=60, batch_size=6, lr=0.05, rng=sl.rng(0))
    assert torch.equal(model.embedding.weight, before)
    assert sl.lenses.accuracy(model, world, examples=6, rng=sl.rng(1)) == 1.0


def test_linear_attention_sums_over_tokens() -> None:
    with seeded(0):
        model = LinearAttentionFacts(vocab=5, outputs=3)
    with torch.no_grad():
        model.key.copy_(torch.randn(5))
        model.value.copy_(torch.randn(3, 5))
    tokens = torch.tensor([[0, 2, 2, 4]])
    expected = sum(model.key[z] * model.value[:, z] for z in tokens[0].tolist())
    assert torch.allclose(model(tokens)[0, 0], expected)


def test_members_of_linear_attention_are_computed_together() -> None:
    population = sl.learning.Population(lambda seed: LinearAttentionFacts(5, 3, start=0.1 + seed), seeds=[0, 1])
    tokens = torch.tensor([[0, 2, 4], [1, 1, 4]])
    alone = torch.stack([LinearAttentionFacts(5, 3, start=0.1 + seed)(tokens) for seed in (0, 1)])
    assert torch.allclose(population(tokens), alone)


def test_the_fact_transformer_trains_the_printed_number_of_weights() -> None:
    config = fact_transformer(20, 8, 6, width=16, heads=3, head_width=4, mlp_width=10)
    model = build(config)
    freeze_tables(model)
    trained = sum(weight.numel() for weight in model.parameters() if weight.requires_grad)
    assert trained == fact_parameters(config) == 4 * 12 * 16 + 2 * 10 * 16
    attention_only = fact_transformer(20, 8, 6, width=16, heads=3, head_width=4, mlp_width=0)
    assert fact_parameters(attention_only) == 4 * 12 * 16
    assert model(torch.zeros(2, 8, dtype=torch.long)).shape == (2, 1, 6)
