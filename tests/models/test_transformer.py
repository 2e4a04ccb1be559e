"""The configurable transformer against torch's encoder layer and formulas written out."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sandlab.errors import BadInput
from sandlab.models.attention import Attention, allowed_keys, rotate
from sandlab.models.base import seeded
from sandlab.models.hooks import record
from sandlab.models.transformer import Transformer, sinusoids


def build(seed: int = 0, **options) -> Transformer:
    with seeded(seed):
        settings = {"vocab": 5, "length": 7, "width": 8, "heads": 2, "init_std": 0.4} | options
        model = Transformer(**settings).double()
        for name, parameter in model.named_parameters():
            if "norm" in name or "bias" in name or name.startswith("ln_final"):
                parameter.data.add_(0.3 * torch.randn_like(parameter))
    return model


@pytest.fixture
def tokens() -> Tensor:
    with seeded(9):
        return torch.randint(5, (3, 7))


def torch_layer(layer, norm: str, activation: str) -> nn.TransformerEncoderLayer:
    """torch's own layer with the weights of ours."""
    attention = layer.attention
    width, heads = attention.query.weight.shape[1], attention.heads
    twin = nn.TransformerEncoderLayer(
        width, heads, 4 * width, 0.0, activation, batch_first=True, norm_first=norm == "pre", dtype=torch.float64
    )
    parts = (attention.query, attention.key, attention.value)
    with torch.no_grad():
        twin.self_attn.in_proj_weight.copy_(torch.cat([part.weight for part in parts]))
        twin.self_attn.in_proj_bias.copy_(torch.cat([part.bias for part in parts]))
    twin.self_attn.out_proj.load_state_dict(attention.output.state_dict())
    twin.linear1.load_state_dict(layer.mlp.up_proj.state_dict())
    twin.linear2.load_state_dict(layer.mlp.down_proj.state_dict())
    twin.norm1.load_state_dict(layer.attention_norm.state_dict())
    twin.norm2.load_state_dict(layer.mlp_norm.state_dict())
    return twin


@pytest.mark.parametrize("norm", ["pre", "post"])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("fused", [True, False])
def test_it_equals_torchs_encoder_layers(norm: str, activation: str, causal: bool, fused: bool, tokens: Tensor) -> None:
    model = build(norm=norm, mlp=activation, causal=causal)
    for layer in model.layers:
        layer.attention.fused = fused
    x = model.embedding.weight[tokens] + model.position.weight
    future = torch.ones(7, 7, dtype=torch.bool).triu(1)
    for layer in model.layers:
        x = torch_layer(layer, norm, activation)(x, src_mask=future if causal else None)
    if norm == "pre":
        x = F.layer_norm(x, (8,), model.ln_final.weight, model.ln_final.bias)
    torch.testing.assert_close(model(tokens), x @ model.unembed.weight.T)


def attention_by_loops(module: Attention, x: Tensor, allowed) -> Tensor:
    """One query, key and head at a time."""
    time = len(x)
    out = torch.zeros(time, module.heads * module.head_width, dtype=x.dtype)
    for h in range(module.heads):
        rows = slice(h * module.head_width, (h + 1) * module.head_width)
        query, key, value = (
            x @ part.weight[rows].T + part.bias[rows] for part in (module.query, module.key, module.value)
        )
        for i in range(time):
            keys = [j for j in range(time) if allowed(i, j)]
            scores = []
            for j in keys:
                score = (
                    _turned(query[i], i) @ _turned(key[j], j)
                    if module.position_kind == "rotary"
                    else (query[i] @ key[j])
                )
                score = score * module.scale
                if module.position_kind == "alibi":
                    score = score - 2 ** (-8 * (h + 1) / module.heads) * abs(i - j)
                if module.position_kind == "relative":
                    score = score + module.distance_bias[h, i - j + module.length - 1]
                scores.append(score)
            scores = torch.stack(scores)
            if module.kind == "softmax":
                weights = scores.softmax(0)
            elif module.kind == "linear":
                weights = scores
            else:
                weights = (scores == scores.max()).to(scores) / (scores == scores.max()).sum()
            out[i, rows] = sum(w * value[j] for w, j in zip(weights, keys))
    return out @ module.output.weight.T + module.output.bias


def _turned(vector: Tensor, position: int) -> Tensor:
    """Rotary encoding as a product of complex numbers."""
    half = len(vector) // 2
    pairs = torch.complex(vector[:half], vector[half:])
    speed = torch.tensor([10000.0 ** (-i / half) for i in range(half)], dtype=torch.float64)
    pairs = pairs * torch.polar(torch.ones_like(speed), position * speed)
    return torch.cat([pairs.real, pairs.imag])


@pytest.mark.parametrize("kind", ["softmax", "linear", "hard"])
@pytest.mark.parametrize("positions", ["none", "rotary", "alibi", "relative"])
@pytest.mark.parametrize(("causal", "window"), [(True, None), (False, None), (True, 3), (False, 2)])
def test_every_kind_of_attention_is_its_formula(kind: str, positions: str, causal: bool, window: int | None) -> None:
    with seeded(1):
        module = Attention(6, 3, 4, 6, kind=kind, positions=positions, causal=causal, window=window).double()
        for parameter in module.parameters():
            nn.init.normal_(parameter)
        x = torch.randn(2, 5, 6, dtype=torch.float64)
    got = module(x)
    module.requires_grad_(False)

    def allowed(i: int, j: int) -> bool:
        return (not causal or j <= i) and (window is None or abs(i - j) < window)

    for rows, expected in zip(x, got):
        torch.testing.assert_close(attention_by_loops(module, rows, allowed), expected)


def test_hard_attention_shares_ties() -> None:
    module = Attention(2, 1, 2, 4, kind="hard").double()
    for part in (module.query, module.key):
        nn.init.zeros_(part.weight)
    with record(module, "pattern") as cache:
        module(torch.randn(4, 2, dtype=torch.float64))
    expected = torch.ones(4, 4, dtype=torch.float64).tril() / torch.arange(1, 5).view(-1, 1)
    torch.testing.assert_close(cache["pattern"][0], expected)


def test_allowed_keys_by_enumeration() -> None:
    for causal, window in itertools.product((True, False), (None, 1, 3)):
        got = allowed_keys(torch.arange(5), torch.arange(7), causal=causal, window=window)
        for i, j in itertools.product(range(5), range(7)):
            assert got[i, j] == ((not causal or j <= i) and (window is None or abs(i - j) < window))


def test_rotary_scores_depend_on_the_distance_alone_and_odd_widths_keep_the_last_coordinate() -> None:
    x, y = torch.randn(2, 1, 7, dtype=torch.float64)
    scores = [
        rotate(x, torch.tensor([i + 5]), 100.0) @ rotate(y, torch.tensor([i]), 100.0).mT for i in range(0, 3000, 500)
    ]
    torch.testing.assert_close(torch.stack(scores), scores[0].expand(6, 1, 1))
    assert torch.equal(rotate(x, torch.tensor([3]), 100.0)[..., -1], x[..., -1])
    half = rotate(x.to(torch.bfloat16), torch.tensor([1001]), 1e4).double()
    torch.testing.assert_close(half, rotate(x, torch.tensor([1001]), 1e4), atol=0.05, rtol=0)


def test_sinusoids_are_vaswanis() -> None:
    table = sinusoids(50, 6)
    for t, i in itertools.product((0, 1, 7, 49), range(3)):
        angle = t / 10000 ** (2 * i / 6)
        assert table[t, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-12)
        assert table[t, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-12)
    assert sinusoids(4, 5).shape == (4, 5)


def test_positions_enter_the_stream_as_stated(tokens: Tensor) -> None:
    plain = build(positions="none").embed_tokens(tokens)
    for positions, table in (("sinusoidal", sinusoids(7, 8)), ("learned", None)):
        model = build(positions=positions)
        table = model.position.weight if table is None else table
        torch.testing.assert_close(model.embed_tokens(tokens), model.embedding.weight[tokens] + table)
    torch.testing.assert_close(plain, build(positions="none").embedding.weight[tokens])
    one_hot = build(positions="one-hot", embedding="one-hot", width=12)
    expected = torch.cat([F.one_hot(tokens, 5), torch.eye(7, dtype=torch.long).expand(3, 7, 7)], -1)
    assert torch.equal(one_hot.embed_tokens(tokens).long(), expected)


def test_a_causal_model_does_not_see_the_future_and_an_encoder_does(tokens: Tensor) -> None:
    changed = tokens.clone()
    changed[:, 4] = (changed[:, 4] + 1) % 5
    for positions in ("none", "learned", "rotary", "relative", "alibi", "sinusoidal"):
        model = build(positions=positions)
        torch.testing.assert_close(model(tokens)[:, :4], model(changed)[:, :4], rtol=0, atol=0)
        encoder = build(positions=positions, causal=False)
        assert not torch.allclose(encoder(tokens)[:, :4], encoder(changed)[:, :4])


def test_shorter_sequences_are_prefixes(tokens: Tensor) -> None:
    for positions in ("none", "learned", "rotary", "relative", "alibi", "sinusoidal"):
        model = build(positions=positions)
        torch.testing.assert_close(model(tokens[:, :4]), model(tokens)[:, :4])


def test_loops_repeat_the_stack_with_the_same_weights(tokens: Tensor) -> None:
    looped, deep = build(layers=2, loops=3), build(layers=6)
    unrolled = {}
    for name, value in looped.state_dict().items():
        if name.startswith("layers."):
            _, depth, rest = name.split(".", 2)
            unrolled |= {f"layers.{2 * i + int(depth)}.{rest}": value for i in range(3)}
        else:
            unrolled[name] = value
    deep.load_state_dict(unrolled)
    torch.testing.assert_close(looped(tokens), deep(tokens))
    assert looped.parameter_count() < deep.parameter_count()


def test_tied_weights_read_out_with_the_embedding(tokens: Tensor) -> None:
    model = build(tied=True, readout_bias=True)
    with record(model, "ln_final") as cache:
        logits = model(tokens)
    torch.testing.assert_close(logits, cache["ln_final"] @ model.embedding.weight.T + model.readout_bias)


def test_heads_and_residuals_can_differ_by_layer(tokens: Tensor) -> None:
    model = build(layers=2, heads=(4, 1), residual=(True, False), norm="none", mlp="none")
    with record(model, "layers.*.attention", "layers.*.attention.pattern", "embed", "layers.*.resid_post") as cache:
        model(tokens)
    assert [cache[f"layers.{i}.attention.pattern"].shape[1] for i in (0, 1)] == [4, 1]
    torch.testing.assert_close(cache["layers.0.resid_post"], cache["embed"] + cache["layers.0.attention"])
    torch.testing.assert_close(cache["layers.1.resid_post"], cache["layers.1.attention"])


def test_reading_the_last_position_equals_the_last_of_all(tokens: Tensor) -> None:
    torch.testing.assert_close(build(read="last")(tokens), build()(tokens)[:, -1:])


def test_dropout_acts_in_training_only(tokens: Tensor) -> None:
    for name in ("dropout", "attention_dropout", "embedding_dropout"):
        model = build(**{name: 0.5})
        assert not torch.equal(model(tokens), model(tokens))
        model.eval()
        torch.testing.assert_close(model(tokens), build()(tokens))


MEMBER_OPTIONS = [
    {},
    {"positions": "relative", "norm": "post", "norm_kind": "rms"},
    {"positions": "rotary", "attention": "linear", "window": 3},
    {"positions": "alibi", "tied": True, "readout_bias": True, "loops": 2},
    {"positions": "sinusoidal", "attention": "hard", "mlp": "none", "norm": "none"},
    {"positions": "one-hot", "embedding": "one-hot", "width": 12, "output_map": False, "head_width": 12},
]


@pytest.mark.parametrize("options", MEMBER_OPTIONS, ids=str)
@pytest.mark.parametrize("fused", [True, False])
def test_members_compute_what_each_computes_alone(options: dict, fused: bool, run_members, run_vmapped) -> None:
    models = [build(seed, **options) for seed in range(3)]
    for model in models:
        for layer in model.layers:
            layer.attention.fused = fused
    tokens = torch.randint(5, (3, 2, 7))
    alone = torch.stack([model(x) for model, x in zip(models, tokens)])
    torch.testing.assert_close(run_members(models, tokens), alone)
    torch.testing.assert_close(run_vmapped(models, tokens), alone)


def test_the_fused_kernel_steps_aside_when_its_inside_is_recorded(tokens: Tensor) -> None:
    model = build()
    plain = model(tokens)
    for layer in model.layers:
        layer.attention.fused = True
    torch.testing.assert_close(model(tokens), plain)
    with record(model, "layers.*.attention.pattern") as cache:
        torch.testing.assert_close(model(tokens), plain)
    assert cache["layers.1.attention.pattern"].shape == (3, 2, 7, 7)
    torch.testing.assert_close(cache["layers.1.attention.pattern"].sum(-1), torch.ones(3, 2, 7, dtype=torch.float64))


@pytest.mark.gate(2)
@pytest.mark.parametrize("options", MEMBER_OPTIONS[:4], ids=str)
def test_gradients_agree_with_finite_differences(options: dict) -> None:
    model = build(length=3, vocab=3, width=4, layers=1, **options)
    names, values = zip(*model.named_parameters())
    tokens = torch.tensor([[0, 2, 1]])

    def loss(*values: Tensor) -> Tensor:
        return torch.func.functional_call(model, dict(zip(names, values)), (tokens,)).square().sum()

    assert torch.autograd.gradcheck(loss, values)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"heads": 3}, "width must be a multiple of heads"),
        ({"heads": (1, 2, 1)}, "heads must be one number or 2 of them"),
        ({"heads": 2.0}, "heads must be a whole number"),
        ({"residual": (True,)}, "residual must be True, False or 2 of them"),
        ({"tied": True, "embedding": "one-hot", "width": 5, "heads": 1}, "tied must be False"),
        ({"tied": True, "outputs": 2}, "tied must be False"),
        ({"positions": "one-hot", "width": 6}, "width must be above length"),
        ({"embedding": "one-hot"}, "width must be 5 with one-hot tokens"),
        ({"norm": "both"}, "norm must be one of"),
        ({"dropout": 1.5}, "dropout must be a number between 0.0 and 1.0"),
        ({"rotary_base": 0.0}, "rotary_base must be above 0"),
        ({"init_std": -1.0}, "init_std must be"),
        ({"attention": "sofmax"}, "did you mean 'softmax'"),
        ({"layrs": 1}, "did you mean 'layers'"),
    ],
)
def test_bad_options_are_refused_in_one_sentence(options: dict, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        build(**options)


def test_sequences_that_are_too_long_are_refused() -> None:
    with pytest.raises(BadInput, match="sequence length must be 1 to 7, got 8"):
        build()(torch.zeros(1, 8, dtype=torch.long))


def test_dropout_of_the_feed_forward_block_leaves_the_attention_branch_alone() -> None:
    model = Transformer(vocab=3, length=8, layers=1, mlp_dropout=0.9).train()
    tokens = torch.arange(32).reshape(4, 8) % 3
    with record(model, "layers.0.resid_mid", "layers.0.resid_post") as first:
        model(tokens)
    with record(model, "layers.0.resid_mid", "layers.0.resid_post") as second:
        model(tokens)
    assert torch.equal(first["layers.0.resid_mid"], second["layers.0.resid_mid"])
    assert not torch.equal(first["layers.0.resid_post"], second["layers.0.resid_post"])
