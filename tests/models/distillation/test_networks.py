"""Hidden keys, averaged heads and BERT's parts against the same computation by other means; the theory's start."""

from __future__ import annotations

import pytest
import torch

from sandlab.learning.population import Population
from sandlab.models.base import build, seeded
from sandlab.models.distillation.published import bert, bert_wiki, gpt2, gpt2_parity
from sandlab.models.distillation.theory_perceptron import TheoryPerceptron, perceptron, torch_start
from sandlab.models.transformer import Transformer


def small(causal: bool = False) -> Transformer:
    with seeded(0):
        return Transformer(
            vocab=5, length=8, layers=2, heads=2, width=16, causal=causal, hidden_keys=True, init_std=0.5
        )


@pytest.mark.parametrize("causal", [False, True])
def test_tokens_with_hidden_keys_cannot_influence_others(causal: bool) -> None:
    model, tokens = small(causal), torch.randint(5, (3, 8), generator=torch.Generator().manual_seed(0))
    hidden = tokens.clone()
    hidden[:, 4] += 5
    other = hidden.clone()
    other[:, 4] = 5 + (tokens[:, 4] + 1) % 5
    seen, changed = model(hidden), model(other)
    keep = [0, 1, 2, 3, 5, 6, 7]
    assert torch.allclose(seen[:, keep], changed[:, keep], atol=1e-6)
    assert not torch.allclose(model(tokens)[:, 7], seen[:, 7], atol=1e-3)


@pytest.mark.parametrize("causal", [False, True])
def test_the_fused_kernel_hides_the_same_keys(causal: bool) -> None:
    model, tokens = small(causal), torch.randint(10, (3, 8), generator=torch.Generator().manual_seed(1))
    plain = model(tokens)
    for layer in model.layers:
        layer.attention.fused = True
    assert torch.allclose(model(tokens), plain, atol=1e-5)
    assert torch.isfinite(model(tokens * 0 + 7)).all()


def test_hidden_padding_equals_a_shorter_sentence() -> None:
    model = build(bert(8, 12, 2, layers=2)).eval()
    tokens = torch.randint(3, (2, 7), generator=torch.Generator().manual_seed(2))
    padded = torch.cat([tokens, torch.full((2, 5), 13)], 1)
    assert torch.allclose(model(padded)[:, :7], model(tokens), atol=1e-5)


def test_averaged_heads_read_the_mean_of_the_heads() -> None:
    with seeded(1):
        model = build(gpt2_parity(6, 3, head_width=8, width=8, average=True, dropout=0.0))
    attention = model.layers[0].attention
    x = torch.randn(2, 6, 8, generator=torch.Generator().manual_seed(3))
    from sandlab.models.hooks import record

    with record(model, "layers.0.attention.pattern") as cache:
        model(torch.randint(2, (2, 6), generator=torch.Generator().manual_seed(3)))
    assert cache["layers.0.attention.pattern"].shape == (2, 3, 6, 6)
    value = attention.value(x).unflatten(-1, (3, 8)).transpose(1, 2)
    query, key = (part(x).unflatten(-1, (3, 8)).transpose(1, 2) for part in (attention.query, attention.key))
    scores = (query @ key.mT / 8**0.5).masked_fill(~torch.ones(6, 6).tril().bool(), -torch.inf)
    expected = attention.output((scores.softmax(-1) @ value).mean(1))
    assert torch.allclose(attention(x), expected, atol=1e-5)


def test_published_sizes() -> None:
    assert gpt2_parity().width == 256 and gpt2_parity(heads=4).width == 32
    assert [bert(8, 512, heads).width for heads in (8, 16, 32)] == [64, 128, 256]
    assert bert_wiki(30000, 512).width == 768 and bert_wiki(30000, 512, 4).width == 256
    assert build(bert(8, 32, 2)).parameter_count() == sum(
        [8 * 16, 32 * 16, 32, 4 * (4 * (16 * 16 + 16) + 64 * 17 + 16 * 65 + 64), 16 * 17 + 32, 8 * 16 + 8]
    )
    assert build(gpt2(8, 32, 2)).config.causal


def test_members_of_a_population_hide_their_own_keys() -> None:
    population = Population(lambda seed: small(), seeds=[0, 0], strategy="native")
    tokens = torch.randint(10, (3, 8), generator=torch.Generator().manual_seed(4))
    assert torch.allclose(population(tokens)[1], small()(tokens), atol=1e-5)


def test_the_theory_network_starts_at_zero_with_the_stated_draws() -> None:
    with seeded(2):
        model = TheoryPerceptron(features=11, width=64, order=4)
    signs = torch.randint(2, (50, 11), generator=torch.Generator().manual_seed(5)) * 2.0 - 1
    assert model(signs).abs().max() < 1e-6
    assert set(model.weight.unique().tolist()) == {-1.0, 1.0}
    assert set((model.bias * 4).unique().tolist()) <= set(range(-3, 4))
    assert torch.allclose(model.output.abs(), torch.tensor(1 / 64))
    with seeded(2):
        aligned = TheoryPerceptron(features=11, width=64, order=4, aligned=-1)
    assert (aligned.weight[:, :4] == -1).all() and len(aligned.weight[:, 4:].unique()) == 2


def test_torch_start_is_uniform_within_the_fan_in() -> None:
    with seeded(3):
        model = build(perceptron(40, 200))
        torch_start(model)
    first = model.layers[0].drive
    assert 0.95 / 40**0.5 < float(first.weight.abs().max()) <= 1 / 40**0.5
    assert 0 < float(first.bias.abs().max()) <= 1 / 40**0.5
    assert float(model.unembed.weight.abs().max()) <= 1 / 200**0.5
