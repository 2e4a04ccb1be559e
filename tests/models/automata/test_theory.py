import pytest
import torch

import sandlab as sl
from sandlab.models import TheoryTransformer, seeded


def model(**changes):
    options = {
        "vocab": 3,
        "length": 9,
        "outputs": 4,
        "width": 6,
        "heads": (2, 0, 1),
        "head_width": (3, 1, 2),
        "hidden": ((5, 7), (4,), ()),
        "activation": (("relu", "sine"), ("max:2x1",), ()),
        "prefix": 2,
    }
    with seeded(0):
        return TheoryTransformer(**{**options, **changes})


def tokens(n=5, time=9):
    return torch.randint(3, (n, time), generator=sl.rng(0))


def by_hand(net, words):
    """The formulas, one example, one head, one position at a time."""
    config = net.config
    x = torch.cat([net.anchors, net.embedding[words] + net.position[: len(words)]])
    for depth, layer in enumerate(net.layers):
        attention = layer.attention
        added = torch.zeros_like(x)
        for head in range(config.heads[depth]):
            q, k = x @ attention.query[head], x @ attention.key[head]
            for t in range(len(x)):
                weights = (q[t] @ k[: t + 1].T).softmax(0)
                added[t] += weights @ x[: t + 1] @ attention.value[head] @ attention.output[head]
        x = attention.keep * x + added
        if config.hidden[depth]:
            y = x
            for linear, kind in zip(layer.mlp.maps, config.activation[depth]):
                y = y @ linear.weight.T + linear.bias
                if kind == "relu":
                    y = y.clamp(min=0)
                elif kind == "sine":
                    y = torch.sin(y)
                else:
                    y = torch.cat([torch.maximum(y[:, :1], y[:, 1:2]), y[:, 2:]], 1)
            last = layer.mlp.maps[-1]
            x = layer.mlp.keep * x + y @ last.weight.T + last.bias
    return x[config.prefix :] @ net.readout.weight.T + net.readout.bias


def test_the_model_computes_its_formulas():
    net = model()
    net.layers[0].attention.keep[2:4] = 0
    net.layers[1].mlp.keep[0] = 0
    words = tokens()
    with torch.no_grad():
        expected = torch.stack([by_hand(net, word) for word in words])
        assert torch.allclose(net(words), expected, atol=1e-12)
        assert torch.allclose(net(words[:, :5]), expected[:, :5], atol=1e-12)
    assert torch.allclose(net(words), expected, atol=1e-12)


def test_attention_on_positions_alone_is_computed_once_with_the_same_result():
    net = model(heads=(2,), head_width=(3,), hidden=((5,),), activation=(("relu",),))
    with torch.no_grad():
        net.embedding[:, :3] = 0
        net.layers[0].attention.query[:, 3:] = 0
        net.layers[0].attention.key[:, 3:] = 0
        words = tokens(50)
        assert net.layers[0].attention._same_for_all(
            torch.cat([net.anchors.expand(50, -1, -1), net.embedding[words] + net.position], 1)
        )
        fast = net(words)
    assert torch.allclose(fast, net(words), atol=1e-12)


def test_hard_attention_takes_the_latest_of_the_largest_scores():
    net = model(heads=(1,), head_width=(1,), hidden=((),), activation=((),), attention="hard", prefix=1)
    with torch.no_grad():
        net.layers[0].attention.query.zero_()
        with sl.record(net, "layers.0.attention.pattern") as cache:
            net(tokens(2))
    assert (cache["layers.0.attention.pattern"] == torch.eye(10)).all()


def test_it_is_recorded_saved_and_trained_like_any_model(tmp_path):
    net = model()
    words = tokens()
    with sl.record(net, "layers.*.attention.pattern", "layers.0.mlp.hidden.1") as cache, torch.no_grad():
        before = net(words)
    assert cache["layers.0.attention.pattern"].shape == (5, 2, 11, 11)
    assert cache["layers.0.mlp.hidden.1"].shape == (5, 11, 7)
    twin = sl.models.load(net.save(tmp_path / "net"))
    assert twin.config == net.config and next(twin.parameters()).dtype == torch.float64
    with torch.no_grad():
        assert torch.equal(twin(words), before)
    net(words).square().sum().backward()
    assert all(p.grad.isfinite().all() for p in net.parameters() if p.numel())


def test_bad_options_are_refused():
    with pytest.raises(sl.BadInput, match="one entry for each of the 3 layers"):
        model(head_width=(1,))
    with pytest.raises(sl.BadInput, match="sequence length"):
        model()(torch.zeros(1, 10, dtype=torch.long))
