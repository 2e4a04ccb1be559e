"""The disentangled transformer against loops written from its definition and against ordinary attention."""

from __future__ import annotations

import itertools

import pytest
import torch

from sandlab.errors import BadInput
from sandlab.models.base import seeded
from sandlab.models.markov.disentangled import DisentangledTransformer
from sandlab.models.ngrams.presets import cat_tf, tf_additive, tf_additive_mlp
from sandlab.models.transformer import Transformer


def stream_by_loops(model: DisentangledTransformer, row: list[int]) -> torch.Tensor:
    """r_L of one sequence: every position and head by itself, blocks appended."""
    config = model.config
    r = [torch.eye(config.vocab, dtype=torch.float64)[token] for token in row]
    if config.positions == "one-hot":
        positions = torch.eye(config.length, dtype=torch.float64)
        r = [torch.cat([x, positions[i]]) for i, x in enumerate(r)]
    for layer in model.layers:
        attention = layer.attention
        grown = []
        for i, x in enumerate(r):
            keys = r[: i + 1] if config.causal else r
            blocks = [x]
            for h in range(attention.heads):
                if config.merged:
                    matrix = attention.weight[h]
                else:
                    rows = slice(h * config.head_width, (h + 1) * config.head_width)
                    matrix = attention.query.weight[rows].T @ attention.key.weight[rows]
                weights = torch.stack([x @ matrix @ key for key in keys]).softmax(0)
                mixed = sum(w * key for w, key in zip(weights, keys))
                blocks.append(attention.value[h] @ mixed if config.value else mixed)
            x = torch.cat(blocks)
            if config.mlp != "none":
                up, down = layer.mlp.up_proj, layer.mlp.down_proj
                x = torch.cat([x, down.weight @ torch.relu(up.weight @ x + up.bias) + down.bias])
            grown.append(x)
        r = grown
    return torch.stack(r)


OPTIONS = [
    {},
    {"heads": (2, 1)},
    {"heads": (2, 2), "value": True, "positions": "none"},
    {"heads": (2, 1), "merged": False, "head_width": 4},
    {"causal": False},
    {"mlp": "relu", "mlp_width": 5, "value": True},
]


def drawn(seed: int, **options) -> DisentangledTransformer:
    with seeded(seed):
        return DisentangledTransformer(vocab=3, length=5, init_std=0.5, readout_std=0.5, **options).double()


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_every_option_computes_its_definition(options: dict) -> None:
    model = drawn(1, read="all", **options)
    with seeded(2):
        tokens = torch.randint(3, (4, 5))
    logits = model(tokens)
    for row, got in zip(tokens.tolist(), logits):
        expected = stream_by_loops(model, row) @ model.unembed.weight.T
        torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_reading_the_last_position_alone_changes_nothing_about_it(options: dict) -> None:
    whole, short = drawn(1, read="all", **options), drawn(1, read="last", **options)
    with seeded(2):
        tokens = torch.randint(3, (4, 5))
    torch.testing.assert_close(short(tokens), whole(tokens)[:, -1:], rtol=1e-12, atol=1e-12)


def test_probabilities_come_out_as_their_logarithms() -> None:
    raw = drawn(1, read="last")
    smooth = drawn(1, read="last", output="probabilities", floor=1e-3)
    tokens = torch.randint(3, (4, 5))
    assert smooth(tokens).shape == (4, 1, 3)
    torch.testing.assert_close(smooth(tokens), (raw(tokens).abs() + 1e-3).log())


def test_the_first_prediction_is_uniform() -> None:
    model = DisentangledTransformer(vocab=3, length=5)
    assert torch.equal(model(torch.tensor([[0, 2, 1]])), torch.zeros(1, 1, 3))


def test_it_represents_any_attention_only_transformer() -> None:
    """Nichani et al. 2024, Theorem 3: pull every added vector back onto the blocks that produced it.

    If the additive stream is x = r Bᵀ for the disentangled stream r, a head's scores are r (Bᵀ Qᵀ K B) rᵀ and it adds
    (block of r) (O V B)ᵀ, so the next B is [B, O₁V₁B, …, O_HV_HB].
    """
    vocab, length, heads = 3, 6, (2, 1)
    with seeded(3):
        options = {"mlp": "none", "norm": "none", "bias": False, "init_std": 0.6, "positions": "learned"}
        additive = Transformer(vocab=vocab, length=length, heads=heads, width=8, **options).double()
    twin = DisentangledTransformer(vocab=vocab, length=length, heads=heads, read="all").double()
    back = torch.cat([additive.embedding.weight.T, additive.position.weight.T], -1)
    with torch.no_grad():
        for layer, target in zip(additive.layers, twin.layers):
            attention, blocks = layer.attention, [back]
            for h in range(attention.heads):
                rows = slice(h * attention.head_width, (h + 1) * attention.head_width)
                query, key, value = (part.weight[rows] for part in (attention.query, attention.key, attention.value))
                target.attention.weight[h] = attention.scale * back.T @ query.T @ key @ back
                blocks.append(attention.output.weight[:, rows] @ value @ back)
            back = torch.cat(blocks, -1)
        twin.unembed.weight.copy_(additive.unembed.weight @ back)
    tokens = torch.randint(vocab, (50, length))
    torch.testing.assert_close(twin(tokens), additive(tokens), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_members_compute_what_each_computes_alone(options: dict, run_members, run_vmapped) -> None:
    models = [drawn(seed, **options) for seed in range(3)]
    tokens = torch.randint(3, (3, 4, 5))
    alone = torch.stack([model(x) for model, x in zip(models, tokens)])
    torch.testing.assert_close(run_members(models, tokens), alone)
    torch.testing.assert_close(run_vmapped(models, tokens), alone)


@pytest.mark.parametrize("embedding", ["one-hot", "learned"])
@pytest.mark.parametrize("mlp", [False, True])
def test_the_additive_transformer_computes_its_formula(embedding: str, mlp: bool) -> None:
    vocab, length, order = 3, 6, 2
    width = vocab + length
    with seeded(4):
        model = (tf_additive_mlp if mlp else tf_additive)(vocab, length, order, embedding=embedding)
        model.double()
        model.unembed.weight.data.normal_()
        if mlp:
            for layer in model.layers:
                assert not layer.mlp.down_proj.weight.any()
                layer.mlp.down_proj.weight.data.normal_()
        tokens = torch.randint(vocab, (length,))
    if embedding == "one-hot":
        x = torch.cat([torch.eye(vocab)[tokens], torch.eye(length)], -1).double()
    else:
        x = model.embedding.weight[tokens] + model.position.weight
    future = torch.ones(length, length).triu(1).bool()
    assert [layer.attention.heads for layer in model.layers] == [order, 1]
    for layer in model.layers:
        attention, added = layer.attention, 0
        for h in range(attention.heads):
            rows = slice(h * width, (h + 1) * width)
            query, key, value = (x @ part.weight[rows].T for part in (attention.query, attention.key, attention.value))
            added = added + (query @ key.T).masked_fill(future, -torch.inf).softmax(-1) @ value
        x = x + added
        if mlp:
            x = x + torch.relu(x @ layer.mlp.up_proj.weight.T) @ layer.mlp.down_proj.weight.T
    expected = x[-1:] @ model.unembed.weight.T
    torch.testing.assert_close(model(tokens[None])[0], expected, rtol=1e-9, atol=1e-9)


def test_the_presets_start_at_the_uniform_law_with_the_stated_scale() -> None:
    with seeded(5):
        models = [tf_additive(3, 32, 2), tf_additive(3, 32, 2, embedding="learned"), cat_tf(3, 32, 2)]
    for model in models:
        assert not model(torch.randint(3, (4, 32))).any()
    for model, part in itertools.product(models[:2], ("query", "key", "value")):
        weight = model.get_parameter(f"layers.0.attention.{part}.weight")
        assert weight.shape == (70, 35)
        assert weight.std().item() == pytest.approx(35**-0.5, rel=0.1)


def test_the_log_output_smooths_by_its_constant() -> None:
    plain = tf_additive(3, 4, 1, zero_readout=False)
    smooth = tf_additive(3, 4, 1, zero_readout=False, log_output=1e-3)
    smooth.load_state_dict(plain.state_dict())
    tokens = torch.tensor([[0, 1, 2, 0]])
    torch.testing.assert_close(smooth(tokens).exp(), plain(tokens).abs() + 1e-3)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"heads": 2}, "heads must be one number per layer"),
        ({"heads": (2, 0)}, "heads must be a whole number"),
        ({"merged": False, "init_std": 0.0}, "init_std must be above 0 unless merged"),
        ({"output": "logit"}, "did you mean 'logits'"),
        ({"mlp": "rellu"}, "did you mean 'relu'"),
    ],
)
def test_bad_options_are_refused_in_one_sentence(options: dict, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        DisentangledTransformer(vocab=3, length=5, **options)
