"""Reading and writing activations of one model, of a native population and of a vmapped one."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state

import sandlab as sl
from sandlab.errors import BadInput
from sandlab.models.base import seeded
from sandlab.models.hooks import VmapRecording, patch, record
from sandlab.models.layers import HookPoint, Linear
from sandlab.models.ngrams.simplified import SimplifiedTransformer
from sandlab.models.transformer import Transformer


class Members(VmapRecording, nn.Module):
    """A population in miniature: stacked parameters, run natively or under vmap."""

    def __init__(self, models: list[nn.Module], native: bool) -> None:
        super().__init__()
        self.native = native
        vars(self)["template"] = models[0]
        self.state = {name: value.detach().requires_grad_() for name, value in stack_module_state(models)[0].items()}

    def forward(self, inputs: Tensor) -> Tensor:
        if self.native:
            return functional_call(self.template, self.state, (inputs,))
        return self.run_members(self.state, inputs)


def small(seed: int, **options) -> Transformer:
    with seeded(seed):
        settings = {"vocab": 3, "length": 6, "width": 8, "heads": 2, "init_std": 0.5} | options
        return Transformer(**settings).double()


@pytest.fixture
def tokens() -> Tensor:
    return torch.randint(3, (3, 4, 6), generator=sl.rng(0))


def test_recorded_values_are_what_the_formula_gives(tokens: Tensor) -> None:
    model = small(0)
    with record(model, "layers.0.attention.*", "embed", "layers.0.attention_norm") as cache:
        model(tokens[0])
    attention, x = model.layers[0].attention, cache["layers.0.attention_norm"]
    embedded = model.embedding.weight[tokens[0]] + model.position.weight
    torch.testing.assert_close(cache["embed"], embedded)
    query = (x @ attention.query.weight.T + attention.query.bias).view(4, 6, 2, 4)
    key = (x @ attention.key.weight.T + attention.key.bias).view(4, 6, 2, 4)
    scores = torch.einsum("bihd,bjhd->bhij", query, key) / 2
    torch.testing.assert_close(cache["layers.0.attention.scores"], scores)
    future = torch.ones(6, 6).triu(1).bool()
    torch.testing.assert_close(cache["layers.0.attention.pattern"], scores.masked_fill(future, -torch.inf).softmax(-1))


def test_a_recorded_activation_written_back_changes_nothing_and_another_one_does(tokens: Tensor) -> None:
    model = small(0)
    names = model.activations()
    with record(model, *names) as cache:
        plain = model(tokens[0])
    for name in names:
        with patch(model, {name: cache[name].detach()}):
            torch.testing.assert_close(model(tokens[0]), plain)
        with patch(model, {name: lambda value: value * 0.5 + 0.3 * torch.arange(value.shape[-1])}):
            assert not torch.allclose(model(tokens[0]), plain), name
    torch.testing.assert_close(model(tokens[0]), plain)


def test_gradients_of_activations_agree_with_finite_differences(tokens: Tensor) -> None:
    step = 1e-5
    model = small(1, norm="none", embedding="one-hot", positions="none", width=3, heads=1)

    def loss() -> Tensor:
        return F.cross_entropy(model(tokens[0])[:, :-1].flatten(0, 1), tokens[0][:, 1:].flatten())

    # attention_norm is an identity next to the skip connection, embed depends on no parameter.
    for name in ("layers.1.attention_norm", "embed", "layers.0.attention.pattern", "layers.1.resid_post"):
        with record(model, name, gradients=True) as cache:
            loss().backward()
        direction = torch.randn(cache[name].shape, dtype=torch.float64, generator=sl.rng(3))
        sides = []
        for sign in (1, -1):
            with patch(model, {name: lambda value, sign=sign, by=direction: value + sign * step * by}):
                sides.append(loss().item())
        slope = (cache.gradients[name] * direction).sum().item()
        assert slope == pytest.approx((sides[0] - sides[1]) / (2 * step), rel=1e-6, abs=1e-9)


def test_each_loop_of_a_looped_transformer_is_kept_with_its_gradient(tokens: Tensor) -> None:
    model = small(2, layers=1, loops=3)
    with record(model, "layers.0.resid_post", gradients=True) as cache:
        model(tokens[0]).square().sum().backward()
    assert list(cache) == ["layers.0.resid_post", *(f"layers.0.resid_post#{i}" for i in range(3))]
    assert set(cache.gradients) == set(cache)
    x = model.embed_tokens(tokens[0])
    passes = []
    for _ in range(3):
        x = model.layers[0](x)
        x.retain_grad()
        passes.append(x)
    model.read_out(model.ln_final(x)).square().sum().backward()
    for i, x in enumerate(passes):
        torch.testing.assert_close(cache[f"layers.0.resid_post#{i}"], x)
        torch.testing.assert_close(cache.gradients[f"layers.0.resid_post#{i}"], x.grad)
    torch.testing.assert_close(cache["layers.0.resid_post"], passes[-1])
    torch.testing.assert_close(cache.gradients["layers.0.resid_post"], passes[-1].grad)


def test_what_is_read_is_what_was_written_and_the_inner_writer_wins(tokens: Tensor) -> None:
    model = small(0)
    name = "layers.0.mlp.hidden"
    with record(model, name) as cache, patch(model, {name: lambda x: x * 0 + 1}):
        model(tokens[0])
        assert (cache[name] == 1).all()
        with patch(model, {name: lambda x: x + 1}):
            model(tokens[0])
            assert (cache[name] == 2).all()
        with patch(model, {name: torch.tensor(7.0)}):
            model(tokens[0])
            assert (cache[name] == 7).all()


def test_a_new_pass_replaces_the_last_ones_values(tokens: Tensor) -> None:
    model = small(0)
    with record(model, "logits", gradients=True) as cache:
        first = model(tokens[0])
        second = model(tokens[1])
        first.sum().backward()
        assert not cache.gradients
        assert torch.equal(cache["logits"], second)


@pytest.mark.parametrize("native", [True, False])
def test_a_population_records_what_its_members_record_alone(native: bool, tokens: Tensor) -> None:
    models = [small(seed) for seed in range(3)]
    names = ("embed", "layers.*.attention.*", "layers.*.mlp.hidden", "logits")
    population = Members(models, native)
    weight = torch.randn(4, 6, 3, dtype=torch.float64, generator=sl.rng(5))
    with record(population, *names, gradients=True) as cache:
        (population(tokens) * weight).sum().backward()
    for i, model in enumerate(models):
        with record(model, *names, gradients=True) as alone:
            (model(tokens[i]) * weight).sum().backward()
        assert list(cache) == list(alone)
        for name in alone:
            torch.testing.assert_close(cache[name][i], alone[name])
            torch.testing.assert_close(cache.gradients[name][i], alone.gradients[name])
        for name, parameter in model.named_parameters():
            torch.testing.assert_close(population.state[name].grad[i], parameter.grad)


@pytest.mark.parametrize("native", [True, False])
def test_gradients_are_kept_when_only_those_of_parameters_are_asked_for(native: bool, tokens: Tensor) -> None:
    population = Members([small(seed) for seed in range(3)], native)
    with record(population, "layers.0.resid_post", gradients=True) as cache:
        torch.autograd.grad(population(tokens).sum(), [population.state["layers.0.mlp.up_proj.weight"]])
    assert cache.gradients["layers.0.resid_post"].shape == (3, 4, 6, 8)


@pytest.mark.parametrize("native", [True, False])
def test_writing_into_a_population_equals_writing_into_each_member(native: bool, tokens: Tensor) -> None:
    models = [small(seed) for seed in range(3)]
    population = Members(models, native)
    values = torch.randn(3, 4, 6, 8, dtype=torch.float64, generator=sl.rng(6))
    shift = torch.arange(3.0, dtype=torch.float64).view(3, 1, 1, 1)
    changes = {"layers.0.resid_mid": values, "layers.1.mlp.hidden": lambda x: x + shift}
    with patch(population, changes):
        together = population(tokens)
    for i, model in enumerate(models):
        with patch(model, {"layers.0.resid_mid": values[i], "layers.1.mlp.hidden": lambda x, i=i: x + i}):
            torch.testing.assert_close(together[i], model(tokens[i]))
    with patch(population, {"layers.0.resid_mid": values[0]}):  # one for all members
        together = population(tokens)
    for i, model in enumerate(models):
        with patch(model, {"layers.0.resid_mid": values[0]}):
            torch.testing.assert_close(together[i], model(tokens[i]))


def test_under_vmap_an_activation_without_members_gets_the_member_axis(tokens: Tensor) -> None:
    model = small(0, embedding="one-hot", positions="none", width=3, heads=1)
    population = Members([model] * 3, native=False)
    population.forward = lambda x: population.run_members(population.state, x, input_dim=None)  # type: ignore
    with record(population, "embed", gradients=True) as cache:
        population(tokens[0]).square().sum().backward()
    assert cache["embed"].shape == cache.gradients["embed"].shape == (3, 4, 6, 3)
    with patch(population, {"embed": lambda x: x * torch.arange(3.0).view(3, 1, 1, 1)}):
        outputs = population(tokens[0])
    for i in range(3):
        with patch(model, {"embed": lambda x, i=i: x * i}):
            torch.testing.assert_close(outputs[i], model(tokens[0]))


@pytest.mark.parametrize("native", [True, False])
def test_the_simplified_transformers_positional_pattern_has_a_batch_axis_of_one(native: bool, tokens: Tensor) -> None:
    models = [SimplifiedTransformer(vocab=3, length=6, heads=2) for _ in range(3)]
    name = "layers.0.attention.pattern"
    with record(models[0], name) as cache:
        models[0](tokens[0])
    assert cache[name].shape == (1, 2, 6, 6)
    with record(Members(models, native), name) as cache:
        Members(models, native)  # nothing has run yet
        population = Members(models, native)
    with record(population, name) as cache:
        population(tokens)
    assert cache[name].shape == (3, 1, 2, 6, 6)


def test_hooks_are_gone_after_the_block_even_when_it_fails(tokens: Tensor) -> None:
    model = small(0)
    with pytest.raises(ZeroDivisionError), record(model, "*"), patch(model, {"logits": lambda x: x / 0}):
        _ = 1 / 0
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


def test_a_wrong_name_suggests_the_nearest() -> None:
    model = small(0)
    with (
        pytest.raises(BadInput, match=r"did you mean .layers.0.attention.pattern"),
        record(model, "layers.0.atention.pattern"),
    ):
        pass
    with record(model, "logits") as cache, pytest.raises(KeyError, match="nothing yet"):
        cache["logits"]
    with patch(model, {"logits": torch.zeros(5)}), pytest.raises(BadInput, match=r"must broadcast to \(1, 2, 3\)"):
        model(torch.tensor([[0, 1]]))


def test_anything_that_is_a_module_can_be_recorded() -> None:
    class Tiny(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.seen = Linear(2, 3), HookPoint()

        def forward(self, x: Tensor) -> Tensor:
            return self.seen(self.first(x).relu())

    model = Tiny()
    with sl.record(model, "*") as cache:
        model(torch.ones(1, 2))
    assert torch.equal(cache["seen"], cache["first"].relu())


def test_words_among_outputs_are_left_alone_and_integers_have_no_gradient() -> None:
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.pair, self.number, self.last = nn.Identity(), HookPoint(), Linear(2, 2)

        def forward(self, x: Tensor) -> Tensor:
            first, _ = self.pair((x, "word"))
            return self.last(first) + self.number(torch.ones(2, dtype=torch.long))

    model = Odd()
    with record(model, "*", gradients=True) as cache:
        model(torch.ones(1, 2)).sum().backward()
    assert set(cache) == {"number", "last", "pair"}
    assert set(cache.gradients) == {"last", "pair"}


def test_nothing_is_differentiated_without_grad_mode(tokens: Tensor) -> None:
    model = small(0)
    with torch.no_grad(), record(model, "embed", gradients=True) as cache:
        model(tokens[0])
    assert not cache["embed"].requires_grad


def test_modules_that_return_several_tensors_are_recorded_and_patched_whole() -> None:
    torch.manual_seed(0)

    class Both(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gru, self.lstm = nn.GRU(4, 4, batch_first=True), nn.LSTM(4, 4, batch_first=True)
            self.attention = nn.MultiheadAttention(4, 2, batch_first=True)

        def forward(self, x: Tensor) -> Tensor:
            x, last = self.gru(x)
            y, (_, cell) = self.lstm(x)
            z, weights = self.attention(y, y, y)
            return z + last[0].unsqueeze(1) + cell[0].unsqueeze(1) + weights.mean()

    model, x = Both(), torch.randn(2, 5, 4)
    with record(model, "gru", "lstm", "attention", gradients=True) as cache:
        plain = model(x)
        plain.sum().backward()
    assert set(cache) == {"gru", "gru[1]", "lstm", "lstm[1]", "lstm[1][1]", "attention", "attention[1]"}
    assert cache["gru[1]"].shape == (1, 2, 4) and cache["attention[1]"].shape == (2, 5, 5)
    assert cache.gradients["gru[1]"].abs().sum() > 0
    with patch(model, {"gru[1]": torch.zeros(())}):
        changed = model(x)
    torch.testing.assert_close(plain - changed, cache["gru[1]"][0].unsqueeze(1).expand_as(plain))
    with patch(model, {"attention": torch.zeros(())}), record(model, "attention") as cache:
        model(x)
    assert not cache["attention"].any() and cache["attention[1]"].any()
