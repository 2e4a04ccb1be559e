"""The pulled-back weights compute the same logits."""

from __future__ import annotations

import pytest
import torch

from sandlab import BadInput, rng
from sandlab.circuits.markov.pull_back import disentangle
from sandlab.circuits.ngrams.additive import additive_ngram_estimator
from sandlab.models.base import seeded
from sandlab.models.transformer import Transformer

CASES = [
    {"layers": 1, "heads": 1, "width": 6},
    {"layers": 2, "heads": (3, 1), "width": 6, "head_width": 4},
    {"layers": 3, "heads": (2, 1, 2), "width": 8},
    {"layers": 2, "heads": 2, "width": 6, "positions": "sinusoidal", "tied": True},
    {"layers": 2, "heads": 1, "width": 12, "embedding": "one-hot", "positions": "one-hot"},
    {"layers": 2, "heads": 2, "width": 6, "output_map": False, "residual": (True, False), "outputs": 5},
    {"layers": 1, "heads": 2, "width": 6, "loops": 2, "positions": "none", "read": "last"},
    {"layers": 2, "heads": 1, "width": 6, "causal": False, "readout_bias": True},
    {"layers": 1, "heads": 2, "width": 6, "residual": False, "output_map": False},
]


@pytest.mark.parametrize("options", CASES)
@pytest.mark.parametrize("bias", [True, False])
def test_any_attention_only_transformer_has_a_disentangled_equal(options, bias):
    with seeded(3):
        model = Transformer(vocab=4, length=8, mlp="none", norm="none", bias=bias, init_std=0.6, **options).double()
        if bias:
            for name, parameter in model.named_parameters():
                if "bias" in name:
                    torch.nn.init.normal_(parameter)
    tokens = torch.randint(0, 4, (20, 8), generator=rng(0))
    twin = disentangle(model)
    assert twin.config.heads == model.config.heads_per_layer * model.config.loops
    assert torch.allclose(model(tokens), twin(tokens), atol=1e-8)
    assert torch.allclose(model(tokens[:, :5]), twin(tokens[:, :5]), atol=1e-8)


def test_a_construction_stays_itself_when_disentangled():
    model = additive_ngram_estimator(3, 1, 10, temperature=20.0)
    tokens = torch.randint(0, 3, (16, 10), generator=rng(1))
    assert torch.allclose(model(tokens), disentangle(model)(tokens), atol=1e-8)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"mlp": "relu", "norm": "none"}, "mlp"),
        ({"mlp": "none", "norm": "pre"}, "norm"),
        ({"mlp": "none", "norm": "none", "positions": "rotary"}, "positions"),
        ({"mlp": "none", "norm": "none", "attention": "hard"}, "attention"),
        ({"mlp": "none", "norm": "none", "window": 3}, "window"),
    ],
)
def test_what_is_not_linear_in_the_stream_is_refused(options, named):
    with pytest.raises(BadInput, match=named):
        disentangle(Transformer(vocab=4, length=8, width=8, **options))
