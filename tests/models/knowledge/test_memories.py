"""Associative memories and the models of facts compute their formulas."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

import sandlab as sl
from sandlab.errors import BadInput
from sandlab.models.base import seeded
from sandlab.models.knowledge.facts import FactTransformer, LinearAttentionFacts
from sandlab.models.knowledge.memories import AssociativeMemory
from sandlab.models.transformer import Transformer
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


def sentences(count: int) -> Tensor:
    return torch.cat([torch.randint(0, 20, (count, 8)), torch.full((count, 1), 19)], 1)


def as_transformer(model: FactTransformer, length: int) -> Transformer:
    """An ordinary transformer with the same weights."""
    config = model.config
    twin = Transformer(
        vocab=config.vocab, length=length, outputs=config.outputs, layers=1, heads=config.heads, width=config.width,
        head_width=config.head_width, mlp="relu" if config.mlp_width else "none", mlp_width=config.mlp_width or None,
        norm="none", positions="none", bias=False, read="last",
    )  # fmt: skip
    names = {"embedding": "embedding", "unembed": "unembed"}
    names |= {part: f"layers.0.attention.{part}" for part in ("query", "key", "value", "output")}
    names |= {f"{part}_proj": f"layers.0.mlp.{part}_proj" for part in ("up", "down") if config.mlp_width}
    twin.load_state_dict({f"{there}.weight": getattr(model, here).weight for here, there in names.items()})
    return twin


@pytest.mark.parametrize("mlp_width", [0, 10])
def test_the_fact_transformer_is_a_transformer(mlp_width: int) -> None:
    model = FactTransformer(vocab=20, outputs=6, width=16, heads=3, head_width=4, mlp_width=mlp_width).double()
    twin, tokens = as_transformer(model, 9).double(), sentences(50)
    torch.testing.assert_close(model(tokens), twin(tokens))
    with sl.record(model, "pattern") as cache, sl.record(twin, "layers.0.attention.pattern") as known:
        torch.testing.assert_close(model(tokens), twin(tokens))
    paid = known["layers.0.attention.pattern"][:, :, -1]
    for token in range(20):
        there = (tokens == token).unsqueeze(1)
        torch.testing.assert_close(cache["pattern"][..., token], (paid * there).sum(-1))
    for each in (model, twin):
        each(tokens).square().sum().backward()
    torch.testing.assert_close(model.key.weight.grad, twin.layers[0].attention.key.weight.grad)


def test_the_fact_transformer_trains_the_printed_number_of_weights() -> None:
    model = FactTransformer(vocab=20, outputs=6, width=16, heads=3, head_width=4, mlp_width=10)
    assert model.trained_parameters == 4 * 12 * 16 + 2 * 10 * 16
    assert FactTransformer(20, 6, width=16, heads=3, head_width=4, mlp_width=0).trained_parameters == 4 * 12 * 16
    assert model.unembed.weight.var().item() * 16 == pytest.approx(1, rel=0.5)


def test_members_of_the_fact_transformer_are_computed_together() -> None:
    population = sl.learning.Population(lambda seed: FactTransformer(20, 6, width=16), seeds=[0, 1])
    tokens = sentences(5)
    alone = torch.stack([population.member(place)(tokens) for place in (0, 1)])
    torch.testing.assert_close(population(tokens), alone)
    with sl.record(population, "pattern") as cache:
        torch.testing.assert_close(population(tokens), alone)
    torch.testing.assert_close(cache["pattern"].sum(-1), torch.ones(2, 5, 4))


def test_very_different_scores_give_no_nan() -> None:
    model = FactTransformer(20, 6)
    with torch.no_grad():
        model.query.weight.mul_(1000)
    assert model(sentences(50)).isfinite().all()


def test_a_token_that_the_fact_transformer_does_not_know_is_refused() -> None:
    with pytest.raises(BadInput, match="between 0 and 19"):
        FactTransformer(20, 6)(torch.tensor([[3, 20, 19]]))
    with pytest.raises(BadInput, match="EOS = 19 last"):
        FactTransformer(20, 6)(torch.tensor([[3, 19, 1]]))
