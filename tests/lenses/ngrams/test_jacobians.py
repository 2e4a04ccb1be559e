"""Closed-form derivatives of attention against autograd."""

from __future__ import annotations

import pytest
import torch
from torch.func import functional_call, jacrev

from sandlab import BadInput, rng
from sandlab.circuits.ngrams.counting import ngram_estimator
from sandlab.lenses.ngrams.jacobians import attention_jacobians, simplified_jacobians
from sandlab.models.base import seeded
from sandlab.models.ngrams.simplified import SimplifiedTransformer


def test_derivatives_of_one_head_equal_autograd():
    generator = rng(0)
    stream, query, key, value = (
        torch.randn(shape, dtype=torch.float64, generator=generator) for shape in ((6, 4), (3, 4), (3, 4), (5, 4))
    )

    def head(query, key, value, stream):
        weights = (stream @ key.T @ (query @ stream[-1])).softmax(-1)
        return value @ (weights @ stream)

    found = attention_jacobians(stream, query, key, value)
    truth = jacrev(head, argnums=(0, 1, 2, 3))(query, key, value, stream)
    for name, part in zip(("query", "key", "value", "stream"), truth):
        assert found[name].shape == part.shape
        assert torch.allclose(found[name], part, atol=1e-12)


@pytest.mark.parametrize(("states", "heads", "length"), [(3, 2, 9), (2, 3, 6), (4, 1, 12)])
def test_derivatives_of_the_simplified_transformer_equal_autograd(states, heads, length):
    with seeded(1):
        model = SimplifiedTransformer(vocab=states, length=length, heads=heads, floor=0.0).double()
        torch.nn.init.normal_(model.layers[0].attention.weight)
    tokens = torch.randint(0, states, (length,), generator=rng(2))
    parameters = {name: value.detach() for name, value in model.named_parameters()}
    truth = jacrev(lambda values: functional_call(model, values, (tokens.unsqueeze(0),))[0, -1].exp())(parameters)
    found = simplified_jacobians(model, tokens)
    assert set(found) == set(truth)
    for name, part in truth.items():
        assert float((found[name] - part).abs().max()) < 1e-14
        assert float(part.abs().max()) > 1e-6


def test_printed_derivatives_are_wrong_where_they_differ():
    """r₁[t] − r̄ for r₁[i] − r̄ in the query's derivative makes it a multiple of the mean value: not the truth."""
    with seeded(1):
        model = SimplifiedTransformer(vocab=3, length=8, heads=2, floor=0.0).double()
        torch.nn.init.normal_(model.layers[0].attention.weight)
    tokens = torch.randint(0, 3, (8,), generator=rng(3))
    found = simplified_jacobians(model, tokens)["layers.1.attention.query.weight"]
    with torch.no_grad():
        stream = model.layers[0](model.embed(model._embed(tokens.unsqueeze(0))))[0]
        query, key = (getattr(model.layers[1].attention, part).weight for part in ("query", "key"))
        weights = (stream @ key.T @ (query @ stream[-1])).softmax(-1)
        mean_value = weights @ torch.nn.functional.one_hot(tokens, 3).double()
        apart = stream[-1] - weights @ stream
        printed = torch.einsum("a,b,c->abc", mean_value, key @ apart, stream[-1])
    assert float((printed - found).abs().max()) > 0.05


def test_models_with_other_options_are_refused():
    with pytest.raises(BadInput, match="plain"):
        simplified_jacobians(ngram_estimator(3, 1, 6, boundary="bos"), torch.zeros(6, dtype=torch.int64))
