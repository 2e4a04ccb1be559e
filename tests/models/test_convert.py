"""Converted models give the same logits in the real libraries."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from torch import Tensor

import sandlab as sl
from sandlab.errors import BadInput
from sandlab.models.base import seeded
from sandlab.models.convert import from_hugging_face, to_hugging_face, to_transformer_lens
from sandlab.models.hooks import record
from sandlab.models.transformer import Transformer


def build(**options) -> Transformer:
    with seeded(0):
        settings = {"vocab": 7, "length": 10, "width": 12, "heads": 2, "init_std": 0.4} | options
        model = Transformer(**settings)
        for parameter in model.parameters():
            parameter.data.add_(0.2 * torch.randn_like(parameter))
    return model.eval()


@pytest.fixture
def tokens() -> Tensor:
    with seeded(1):
        return torch.randint(7, (4, 10))


BOTH = [
    {"positions": "linear", "position_slope": 0.3},
    {"positions": "learned-linear", "position_slope": 0.2, "position_shift": 2},
    {},
    {"tied": True, "mlp": "relu", "mlp_width": 20, "heads": 3},
    {"mlp": "gelu-tanh", "bias": False, "scale": 0.7, "norm_eps": 1e-3},
    {"mlp": "none", "positions": "sinusoidal"},
    {"mlp": "silu", "positions": "none", "layers": 1, "loops": 3},
    {"embedding": "one-hot", "positions": "one-hot", "width": 17, "heads": 1, "scale": 1.0},
    {"dropout": 0.1, "attention_dropout": 0.2, "embedding_dropout": 0.3},
]
GPT2_ONLY = [{"mlp": "tanh"}, {"mlp": "identity"}]
LENS_ONLY = [
    {"positions": "rotary", "rotary_base": 100.0},
    {"positions": "rotary", "head_width": 5},
    {"norm": "none", "mlp": "none", "head_width": 9, "outputs": 3},
    {"norm_kind": "rms", "causal": False},
    {"output_map": False, "head_width": 12, "heads": 3, "bias": False, "norm": "none", "init_std": 0.1},
]


@pytest.mark.parametrize("options", BOTH + GPT2_ONLY, ids=str)
def test_hugging_face_computes_the_same_logits(options: dict, tokens: Tensor) -> None:
    model = build(**options)
    twin = to_hugging_face(model)
    with torch.no_grad():
        torch.testing.assert_close(twin(tokens).logits, model(tokens), rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(twin(tokens[:, :4]).logits, model(tokens[:, :4]), rtol=1e-5, atol=1e-5)
        back = from_hugging_face(twin)
        torch.testing.assert_close(back(tokens), model(tokens), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("tie", [True, False])
@pytest.mark.parametrize("activation", ["gelu_new", "relu", "gelu"])
def test_a_gpt2_of_theirs_becomes_a_transformer_of_ours(dtype, tie: bool, activation: str, tokens: Tensor) -> None:
    from transformers import GPT2Config, GPT2LMHeadModel

    settings = GPT2Config(
        vocab_size=7,
        n_positions=10,
        n_embd=12,
        n_layer=3,
        n_head=4,
        activation_function=activation,
        tie_word_embeddings=tie,
        scale_attn_weights=activation != "relu",
        layer_norm_epsilon=1e-4,
        bos_token_id=None,
        eos_token_id=None,
    )
    with seeded(3):
        gpt2 = GPT2LMHeadModel(settings).to(dtype).eval()
        for parameter in gpt2.parameters():
            parameter.data.add_(0.3 * torch.randn_like(parameter))
    model = from_hugging_face(gpt2)
    assert model.dtype == dtype
    assert not model.training
    with torch.no_grad():
        torch.testing.assert_close(model(tokens), gpt2(tokens).logits, rtol=1e-5, atol=1e-5)
    with record(model, "layers.*.resid_post") as activations, torch.no_grad():
        model(tokens)
        hidden = gpt2(tokens, output_hidden_states=True).hidden_states
    torch.testing.assert_close(activations["layers.0.resid_post"], hidden[1], rtol=1e-5, atol=1e-5)


@pytest.mark.gate(5)
@pytest.mark.parametrize("options", BOTH + LENS_ONLY, ids=str)
def test_transformer_lens_computes_the_same_logits(options: dict, tokens: Tensor) -> None:
    model = build(**options)
    bridge = to_transformer_lens(model)
    with torch.no_grad():
        torch.testing.assert_close(bridge(tokens), model(tokens), rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(bridge(tokens[:, :4]), model(tokens[:, :4]), rtol=1e-5, atol=1e-5)


def test_transformer_lens_sees_the_same_patterns(tokens: Tensor) -> None:
    model = build()
    _, cache = to_transformer_lens(model).run_with_cache(tokens)
    with record(model, "layers.*.attention.pattern", "layers.*.resid_post") as activations:
        model(tokens)
    for i in range(2):
        pattern = cache[f"blocks.{i}.attn.hook_pattern"]
        torch.testing.assert_close(pattern, activations[f"layers.{i}.attention.pattern"], rtol=1e-5, atol=1e-5)
        stream = cache[f"blocks.{i}.hook_resid_post"]
        torch.testing.assert_close(stream, activations[f"layers.{i}.resid_post"], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"norm": "post"}, "post"),
        ({"norm": "attention-branch"}, "attention-branch"),
        ({"attention": "linear"}, "other than softmax"),
        ({"window": 3}, "a window"),
        ({"heads": (2, 1)}, "heads that differ by layer"),
        ({"residual": False}, "without a residual"),
        ({"readout_bias": True}, "a readout bias"),
        ({"log_output": 1e-3}, "log_output"),
        ({"gated": True}, "a gated feed-forward block"),
        ({"positions": "alibi"}, "alibi"),
        ({"positions": "relative"}, "relative"),
    ],
)
def test_options_that_neither_library_has_are_named(options: dict, words: str) -> None:
    model = build(**options)
    for convert in (to_hugging_face, to_transformer_lens):
        with pytest.raises(BadInput, match=f"has no equivalent of .*{words}"):
            convert(model)


@pytest.mark.parametrize("options", LENS_ONLY, ids=str)
def test_what_gpt2_alone_lacks_is_named(options: dict) -> None:
    with pytest.raises(BadInput, match="a GPT-2 of Hugging Face has no equivalent of"):
        to_hugging_face(build(**options))


@pytest.mark.parametrize("options", GPT2_ONLY, ids=str)
def test_what_transformer_lens_alone_lacks_is_named(options: dict) -> None:
    with pytest.raises(BadInput, match="a TransformerLens model has no equivalent of mlp="):
        to_transformer_lens(build(**options))


def test_other_models_are_refused() -> None:
    from transformers import GPT2Config, GPT2LMHeadModel

    for convert in (to_hugging_face, to_transformer_lens):
        with pytest.raises(BadInput, match="model must be a Transformer, got TheoryTransformer"):
            convert(sl.circuits.compile("(abab)*", 4))

    with pytest.raises(BadInput, match="takes a GPT2LMHeadModel, got Linear"):
        from_hugging_face(torch.nn.Linear(2, 2))
    small = {"vocab_size": 7, "n_positions": 4, "n_embd": 4, "n_layer": 1, "n_head": 1}
    small |= {"bos_token_id": None, "eos_token_id": None}
    with pytest.raises(BadInput, match="activation_function must be one of"):
        from_hugging_face(GPT2LMHeadModel(GPT2Config(**small, activation_function="mish")))
    with pytest.raises(BadInput, match="scale_attn_by_inverse_layer_idx must be False"):
        from_hugging_face(GPT2LMHeadModel(GPT2Config(**small, scale_attn_by_inverse_layer_idx=True)))


def test_a_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(BadInput, match=r"transformers is not installed: pip install 'sandlab\[hf\]'"):
        to_hugging_face(build())


def test_converting_leaves_the_global_generator_where_it_was() -> None:
    model, before = build(), torch.get_rng_state()
    from_hugging_face(to_hugging_face(model))
    to_transformer_lens(model)
    assert torch.equal(torch.get_rng_state(), before)


def test_the_libraries_are_imported_only_when_used() -> None:
    script = (
        "import sys, sandlab.models.convert; "
        "print([name for name in ('transformers', 'transformer_lens') if name in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"
