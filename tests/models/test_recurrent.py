"""Recurrent, state-space and hybrid models and the perceptron against torch's modules and loops."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from sandlab.errors import BadInput
from sandlab.models.base import Model, seeded
from sandlab.models.hooks import patch, record
from sandlab.models.hybrid import Hybrid, HybridConfig
from sandlab.models.mlp import MLP
from sandlab.models.recurrent import LSTM, RNN
from sandlab.models.state_space import StateSpace, StateSpaceMixer
from sandlab.registry import get

ZOO = {
    "rnn": lambda: RNN(vocab=3, width=4, layers=2),
    "rnn one-hot relu": lambda: RNN(vocab=3, width=4, embedding="one-hot", activation="relu", readout_bias=True),
    "lstm": lambda: LSTM(vocab=3, width=4, layers=2, recurrent_start="orthogonal"),
    "fixed": lambda: StateSpace(vocab=3, width=4, layers=2, selective=False, state_width=2, learned_start=True),
    "selective": lambda: StateSpace(vocab=3, width=4, state_width=2, signed=True, expand=2, mlp="relu"),
    "bare": lambda: StateSpace(vocab=3, width=4, convolution=1, gated=False, activation="identity", bias=False),
    "hybrid": lambda: Hybrid(vocab=3, length=9, width=4, layers=3, positions="relative", window=4, state_width=2),
    "hybrid lstm": lambda: Hybrid(vocab=3, length=9, width=4, layers=2, recurrent="lstm", heads=2, positions="alibi"),
    "hybrid rnn": lambda: Hybrid(vocab=3, length=9, width=4, layers=2, recurrent="rnn", positions="rotary"),
}


def build(name: str, seed: int = 0) -> Model:
    with seeded(seed):
        model = ZOO[name]().double()
        for parameter in model.parameters():
            parameter.data.add_(0.2 * torch.randn_like(parameter))
    return model


@pytest.fixture
def tokens() -> Tensor:
    with seeded(7):
        return torch.randint(3, (4, 9))


@pytest.mark.parametrize("activation", ["tanh", "relu"])
@pytest.mark.parametrize("layers", [1, 3])
def test_the_elman_network_is_torchs(activation: str, layers: int, tokens: Tensor) -> None:
    with seeded(1):
        ours = RNN(vocab=3, width=5, layers=layers, activation=activation).double()
    theirs = nn.RNN(5, 5, layers, nonlinearity=activation, batch_first=True).double()
    with torch.no_grad():
        for i, layer in enumerate(ours.layers):
            layer.drive.bias.normal_()
            getattr(theirs, f"weight_ih_l{i}").copy_(layer.drive.weight)
            getattr(theirs, f"weight_hh_l{i}").copy_(layer.weight)
            getattr(theirs, f"bias_ih_l{i}").copy_(layer.drive.bias)
            getattr(theirs, f"bias_hh_l{i}").zero_()
    hidden, last = theirs(ours.embedding.weight[tokens])
    torch.testing.assert_close(ours(tokens), hidden @ ours.unembed.weight.T)
    _, states = ours.advance(tokens)
    torch.testing.assert_close(torch.stack([state[0] for state in states]), last)


def test_the_linear_recurrence_is_a_sum_of_matrix_powers(tokens: Tensor) -> None:
    with seeded(1):
        model = RNN(vocab=3, width=5, activation="identity", bias=False).double()
    layer, x = model.layers[0], model.embedding.weight[tokens]
    powers = [torch.linalg.matrix_power(layer.weight, k) for k in range(9)]
    expected = sum(x[:, 8 - k] @ layer.drive.weight.T @ powers[k].T for k in range(9))
    torch.testing.assert_close(model(tokens)[:, -1], expected @ model.unembed.weight.T)


@pytest.mark.parametrize("layers", [1, 2])
def test_the_lstm_is_torchs(layers: int, tokens: Tensor) -> None:
    with seeded(1):
        ours = LSTM(vocab=3, width=5, layers=layers).double()
    assert (ours.layers[0].drive.bias.view(4, 5)[1] == 1).all()
    theirs = nn.LSTM(5, 5, layers, batch_first=True).double()

    def in_torchs_order(rows: Tensor) -> Tensor:
        """Ours is input, forget, output, candidate; torch's is input, forget, candidate, output."""
        return torch.cat([rows.chunk(4)[i] for i in (0, 1, 3, 2)])

    with torch.no_grad():
        for i, layer in enumerate(ours.layers):
            layer.drive.bias.normal_()
            getattr(theirs, f"weight_ih_l{i}").copy_(in_torchs_order(layer.drive.weight))
            getattr(theirs, f"weight_hh_l{i}").copy_(in_torchs_order(layer.weight))
            getattr(theirs, f"bias_ih_l{i}").copy_(in_torchs_order(layer.drive.bias))
            getattr(theirs, f"bias_hh_l{i}").zero_()
    hidden, (last, cell) = theirs(ours.embedding.weight[tokens])
    torch.testing.assert_close(ours(tokens), hidden @ ours.unembed.weight.T)
    _, states = ours.advance(tokens)
    torch.testing.assert_close(torch.stack([state[0] for state in states]), last)
    torch.testing.assert_close(torch.stack([state[1] for state in states]), cell)


@pytest.mark.parametrize("name", ["fixed", "selective", "bare"])
def test_the_state_space_layer_is_its_recurrence_step_by_step(name: str, tokens: Tensor) -> None:
    model = build(name)
    mixer: StateSpaceMixer = model.layers[0].recurrence
    with record(model, "layers.0.mixer_norm", "layers.0.recurrence") as cache:
        model(tokens)
    x, config = cache["layers.0.mixer_norm"], model.config
    rows, time, _ = x.shape
    channels, states = config.expand * config.width, config.state_width
    inner = mixer.in_proj(x)
    u = inner
    if config.convolution > 1:
        kernel = mixer.convolution.weight.T.flip(-1).unsqueeze(1)  # torch's order: the oldest input first
        padded = F.pad(inner.mT, (config.convolution - 1, 0))
        u = F.conv1d(padded, kernel, mixer.convolution.bias, groups=channels).mT
    u = F.silu(u) if config.activation == "silu" else u
    hidden = torch.zeros(rows, channels, states, dtype=torch.float64)
    if mixer.start is not None:
        hidden = hidden + mixer.start
    shown = []
    for t in range(time):
        level = mixer.gate_bias
        write, show = (None, None) if config.selective else (mixer.written, mixer.shown)
        if config.selective:
            level = level + (u[:, t] @ mixer.shift.weight.T).unsqueeze(-1)
            write, show = ((u[:, t] @ part.weight.T).unsqueeze(1) for part in (mixer.write, mixer.show))
        gate = torch.tanh(level / 2) if config.signed else torch.sigmoid(level)  # 2σ(z) − 1 = tanh(z/2)
        hidden = gate * hidden + write * u[:, t].unsqueeze(-1)
        shown.append((show * hidden).sum(-1) + mixer.skip * u[:, t])
    y = torch.stack(shown, 1)
    if config.gated:
        y = y * F.silu(mixer.gate(x))
    torch.testing.assert_close(cache["layers.0.recurrence"], mixer.out_proj(y))


def test_gates_start_in_their_range() -> None:
    with seeded(0):
        plain, signed = StateSpace(vocab=3, width=32), StateSpace(vocab=3, width=32, signed=True)
    kept = plain.layers[0].recurrence.gate_bias.sigmoid()
    assert kept.min() >= 0.5 - 1e-6 and kept.max() <= 0.99 + 1e-6
    kept = 2 * signed.layers[0].recurrence.gate_bias.sigmoid() - 1
    assert (kept < 0).any() and (kept > 0).any() and kept.abs().max() <= 0.99 + 1e-6


@pytest.mark.parametrize("name", ZOO)
def test_a_sequence_read_in_pieces_gives_what_it_gives_at_once(name: str, tokens: Tensor) -> None:
    model = build(name)
    whole = model(tokens)
    assert whole.shape == (4, 9, 3)
    for pieces in ([9], [1] * 9, [2, 6, 1]):
        states, got = None, []
        for piece in tokens.split(pieces, -1):
            logits, states = model.advance(piece, states)
            got.append(logits)
        torch.testing.assert_close(torch.cat(got, 1), whole)


@pytest.mark.parametrize("name", ZOO)
def test_no_model_sees_the_future(name: str, tokens: Tensor) -> None:
    model, changed = build(name), tokens.clone()
    changed[:, 5] = (changed[:, 5] + 1) % 3
    torch.testing.assert_close(model(tokens)[:, :5], model(changed)[:, :5], rtol=0, atol=1e-12)
    assert not torch.allclose(model(tokens)[:, 5:], model(changed)[:, 5:])


@pytest.mark.parametrize("name", ZOO)
def test_members_compute_what_each_computes_alone(name: str, run_members, run_vmapped) -> None:
    models = [build(name, seed) for seed in range(3)]
    tokens = torch.randint(3, (3, 2, 9))
    alone = torch.stack([model(x) for model, x in zip(models, tokens)])
    assert models[0].carries_members
    torch.testing.assert_close(run_members(models, tokens), alone)
    torch.testing.assert_close(run_vmapped(models, tokens), alone)
    torch.testing.assert_close(models[0](tokens), torch.stack([models[0](x) for x in tokens]))  # any leading axes


@pytest.mark.parametrize("name", ZOO)
def test_every_activation_is_recorded_and_can_be_written(name: str, tokens: Tensor) -> None:
    model = build(name)
    names = model.activations()
    with record(model, *names, gradients=True) as cache:
        plain = model(tokens)
        plain.square().sum().backward()
    assert set(names) <= set(cache)
    for activation in names:
        assert activation in cache.gradients, activation
        if f"{activation}#1" not in cache:
            with patch(model, {activation: cache[activation].detach()}):
                torch.testing.assert_close(model(tokens), plain)
        with patch(model, {activation: lambda x: 0.5 * x + 0.3 * torch.arange(x.shape[-1])}):
            assert not torch.allclose(model(tokens), plain), activation


def test_a_state_written_at_one_step_flows_on(tokens: Tensor) -> None:
    """Set h₄ to zero on the way: what follows is what a network started there computes."""
    model = build("rnn one-hot relu")
    count = iter(range(9))
    with patch(model, {"layers.0.state": lambda h: h * 0 if next(count) == 4 else h}):
        cut = model(tokens)
    torch.testing.assert_close(cut[:, 5:], model(tokens[:, 5:]))
    torch.testing.assert_close(cut[:, :4], model(tokens)[:, :4])


@pytest.mark.parametrize("name", ZOO)
def test_saved_models_come_back(name: str, tokens: Tensor, tmp_path) -> None:
    model = build(name)
    from sandlab.models.io import load

    assert torch.equal(load(model.save(tmp_path))(tokens), model(tokens))


def test_hybrid_depths_follow_the_ratio_or_the_list() -> None:
    def depths(**options) -> tuple[int, ...]:
        return HybridConfig(vocab=3, length=9, width=4, **options).attention_depths

    assert depths(layers=24, ratio=(1, 7)) == (4, 12, 20)
    assert depths(layers=4, ratio=(1, 1)) == (1, 3)
    assert depths(layers=4, ratio=(1, 0)) == (0, 1, 2, 3)
    assert depths(layers=4, ratio=(0, 1)) == ()
    assert depths(layers=6, ratio=(2, 1)) == (1, 2, 4, 5)
    assert depths(layers=4) == (2,)
    assert depths(layers=4, attention_at=(3, 0)) == (0, 3)
    assert depths(layers=4, attention_at=()) == ()
    model = Hybrid(vocab=3, length=9, width=4, layers=4, attention_at=(1,))
    assert [layer.attention is not None for layer in model.layers] == [False, True, False, False]


def test_the_perceptron_is_torchs_on_tokens_and_on_numbers(run_members) -> None:
    with seeded(2):
        tokens, numbers = torch.randint(3, (5, 4)), torch.randn(5, 6)
        cases = [
            (MLP(vocab=3, length=4, hidden=(7, 5)), tokens, F.one_hot(tokens, 3).float().flatten(1), 3),
            (MLP(features=6, hidden=(7, 5), outputs=2, activation="tanh"), numbers, numbers, 2),
        ]
    for model, inputs, flat, outputs in cases:
        phi = nn.ReLU() if model.config.activation == "relu" else nn.Tanh()
        widths = (flat.shape[1], 7, 5, outputs)
        maps = [nn.Linear(a, b) for a, b in zip(widths, widths[1:])]  # noqa: RUF007
        twin = nn.Sequential(maps[0], phi, maps[1], phi, maps[2])
        for ours, theirs in zip([*(layer.drive for layer in model.layers), model.unembed], maps):
            theirs.load_state_dict(ours.state_dict())
        assert model(inputs).shape == (5, 1, outputs)
        torch.testing.assert_close(model(inputs).squeeze(1), twin(flat))
        twice = torch.stack([inputs, inputs.flip(0)])
        torch.testing.assert_close(run_members([model, model], twice), torch.stack([model(x) for x in twice]))


def test_registered_names_lead_to_the_models() -> None:
    found = {name: get("models", name) for name in ("rnn", "lstm", "state-space", "hybrid", "mlp")}
    assert list(found.values()) == [RNN, LSTM, StateSpace, Hybrid, MLP]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: RNN(vocab=3, activation="tan"), "did you mean 'tanh'"),
        (lambda: LSTM(vocab=3, recurrent_start="eye"), "recurrent_start must be one of"),
        (lambda: StateSpace(vocab=3, width=4, embedding="one-hot"), "width must be 3"),
        (lambda: StateSpace(vocab=3, convolution=0), "convolution must be"),
        (lambda: Hybrid(vocab=3, length=4, layers=2, attention_at=(2,)), "attention_at must be .* between 0 and 1"),
        (lambda: Hybrid(vocab=3, length=4, attention_at=(0,), ratio=(1, 1)), "ratio must be None"),
        (lambda: Hybrid(vocab=3, length=4, ratio=(1, 2, 3)), "ratio must be two numbers"),
        (lambda: Hybrid(vocab=3, length=4, width=5, heads=2), "width must be a multiple of heads"),
        (lambda: MLP(vocab=3), "either vocab and length"),
        (lambda: MLP(features=3), "outputs must be given"),
        (lambda: MLP(vocab=3, length=4, hidden=7), "hidden must be one width per"),
        (lambda: MLP(vocab=3, length=4)(torch.zeros(1, 5, dtype=torch.long)), "last axis of the inputs must be 4"),
        (lambda: Hybrid(vocab=3, length=4)(torch.zeros(1, 5, dtype=torch.long)), "sequence length must be 1 to 4"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(make, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        make()


def test_the_torch_start_has_the_size_and_the_function_of_torch_lstm() -> None:
    model = LSTM(vocab=5, width=8, layers=1, torch_start=True)
    reference = torch.nn.LSTM(8, 8, batch_first=True)
    layer = model.layers[0]
    order = torch.cat([torch.arange(0, 16), torch.arange(24, 32), torch.arange(16, 24)])  # torch: i, f, g, o
    with torch.no_grad():
        reference.weight_ih_l0.copy_(layer.drive.weight[order])
        reference.weight_hh_l0.copy_(layer.weight[order])
        reference.bias_ih_l0.copy_(layer.drive.bias[order])
        reference.bias_hh_l0.copy_(layer.second_bias[order])
        x = torch.randn(3, 6, 8, generator=torch.Generator().manual_seed(0))
        assert torch.allclose(layer(x), reference(x)[0], atol=1e-6)
    assert sum(each.numel() for each in layer.parameters()) == sum(each.numel() for each in reference.parameters())
    assert all(float(each.detach().abs().max()) <= 8**-0.5 for each in layer.parameters())
