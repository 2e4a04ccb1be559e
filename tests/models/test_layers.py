"""Layers with a member axis compute what each member computes alone."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state

from sandlab.errors import BadInput
from sandlab.models.layers import Embedding, LayerNorm, Linear, Positions, RMSNorm, align, contract, linear, one_hot


def shake(module: nn.Module) -> nn.Module:
    for parameter in module.parameters():
        nn.init.normal_(parameter)
    return module.double()


@pytest.mark.parametrize("shape", [(2,), (2, 5), (2, 4, 5), (2, 3, 4, 5)])
def test_linear_norms_and_embedding_carry_members(shape: tuple[int, ...]) -> None:
    for make in (lambda: Linear(6, 3), lambda: LayerNorm(6), lambda: LayerNorm(6, bias=False), lambda: RMSNorm(6)):
        parts = [shake(make()) for _ in range(2)]
        x = torch.randn(*shape, 6, dtype=torch.float64)
        together = functional_call(parts[0], stack_module_state(parts)[0], (x,))
        torch.testing.assert_close(together, torch.stack([part(rows) for part, rows in zip(parts, x)]))
    tables = [shake(Embedding(7, 3)) for _ in range(2)]
    index = torch.randint(7, shape)
    together = functional_call(tables[0], stack_module_state(tables)[0], (index,))
    torch.testing.assert_close(together, torch.stack([table(rows) for table, rows in zip(tables, index)]))


def test_one_model_agrees_with_torchs_own_layers() -> None:
    x = torch.randn(2, 4, 6, dtype=torch.float64)
    ours = shake(Linear(6, 3))
    torch.testing.assert_close(ours(x), x @ ours.weight.T + ours.bias)
    norm, theirs = shake(LayerNorm(6)), nn.LayerNorm(6).double()
    theirs.load_state_dict(norm.state_dict())
    torch.testing.assert_close(norm(x), theirs(x))
    root, theirs_root = shake(RMSNorm(6)), nn.RMSNorm(6, eps=1e-6).double()
    theirs_root.load_state_dict(root.state_dict())
    torch.testing.assert_close(root(x), theirs_root(x))
    torch.testing.assert_close(Positions(5, 3)(4).shape, torch.Size([4, 3]))


def test_weights_and_biases_may_each_be_shared_by_all_members() -> None:
    x = torch.randn(2, 4, 6)
    weight, bias = torch.randn(2, 3, 6), torch.randn(2, 3)
    for shared_weight, shared_bias in ((True, False), (False, True), (True, True)):
        one, other = weight[0] if shared_weight else weight, bias[0] if shared_bias else bias
        expected = torch.stack(
            [F.linear(x[i], one if shared_weight else one[i], other if shared_bias else other[i]) for i in range(2)]
        )
        torch.testing.assert_close(linear(x, one, other), expected)


@pytest.mark.parametrize("examples", [(), (5,), (5, 2)])
def test_contract_is_einsum_member_by_member(examples: tuple[int, ...]) -> None:
    x, weight = torch.randn(3, *examples, 4, 2), torch.randn(3, 6, 7, 4)
    expected = torch.stack([torch.einsum("...jd,hij->...ihd", x[i], weight[i]) for i in range(3)])
    torch.testing.assert_close(contract("jd,hij->ihd", x, weight), expected)
    torch.testing.assert_close(contract("jd,hij->ihd", x, weight[0]), torch.einsum("...jd,hij->...ihd", x, weight[0]))


def test_align_puts_members_first_and_fills_the_gap() -> None:
    value = torch.zeros(3, 4, 5, 2)
    assert align(torch.zeros(2), value, 1).shape == (2,)
    assert align(torch.zeros(3, 2), value, 1).shape == (3, 1, 1, 2)
    assert align(torch.zeros(3, 5, 2), value, 2).shape == (3, 1, 5, 2)


def test_one_hot_is_torchs() -> None:
    index = torch.randint(4, (3, 5))
    assert torch.equal(one_hot(index, 4, torch.float64), F.one_hot(index, 4).double())


def test_initial_scale_is_one_over_root_inputs_unless_given() -> None:
    assert Linear(400, 300).weight.std().item() == pytest.approx(0.05, rel=0.02)
    assert Linear(400, 300, std=0.3).weight.std().item() == pytest.approx(0.3, rel=0.02)


def bad_tokens() -> list[Tensor]:
    return [torch.tensor([[0, 7]]), torch.tensor([[-1, 2]]), torch.tensor([[0.0, 1.0]])]


@pytest.mark.parametrize("tokens", bad_tokens(), ids=["too large", "negative", "real"])
def test_tokens_outside_the_table_are_refused_also_in_a_population(tokens: Tensor) -> None:
    table = Embedding(7, 3)
    with pytest.raises(BadInput, match="tokens must be"):
        table(tokens)
    with pytest.raises(BadInput, match="tokens must be"):
        functional_call(table, {"weight": torch.stack([table.weight] * 2)}, (torch.stack([tokens] * 2),))
