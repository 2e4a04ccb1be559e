"""The one-layer topic model against its formula written out position by position."""

from __future__ import annotations

import copy
import math

import pytest
import torch
from torch import Tensor

from sandlab.models.base import seeded
from sandlab.models.topics.one_layer import OneLayerTopics
from sandlab.random import rng
from sandlab.worlds.topics.documents import LDATopics

EVERY = ("embedding", "key", "query", "value", "key_bias", "query_bias", "value_bias", "output_bias", "head")


def model(**options: object) -> OneLayerTopics:
    """Large random weights, biases too, so that attention is far from uniform."""
    with seeded(0):
        found = OneLayerTopics(vocab=13, std=1.0, trained=EVERY, **options).double()  # type: ignore[arg-type]
        for weight in found.parameters():
            weight.data.normal_()
    return found


def by_hand(given: OneLayerTopics, tokens: list[int]) -> Tensor:
    """Outputs of one document whose tokens may be marked, matrices on columns as in the source."""
    table = given.table()
    words = torch.tensor([token % 14 for token in tokens])
    z = table[:, words]
    keys, queries = given.key @ z + given.key_bias[:, None], given.query @ z + given.query_bias[:, None]
    scores = keys.T @ queries / math.sqrt(len(keys))
    scores[torch.tensor(tokens) > 13] = -math.inf
    attention = scores.softmax(0)
    head = given.head if hasattr(given, "head") else table.T
    mixed = given.value @ z @ attention + given.value_bias[:, None]
    return (head @ mixed + given.output_bias[:, None]).T


@pytest.mark.parametrize("path", ["fast", "full"])
@pytest.mark.parametrize("options", [{}, {"width": 5}, {"width": 5, "key_width": 3, "tied": False}])
def test_the_output_is_the_formula_written_out(path: str, options: dict[str, object]) -> None:
    given = model(path=path, **options)
    tokens = [3, 0, 3, 12, 7, 0, 1, 3, 26, 14]  # 26 and 14 are the words 12 and 0 at positions nothing attends to
    outputs = given(torch.tensor([[*tokens, 13, 13]]))[0, : len(tokens)]
    torch.testing.assert_close(outputs, by_hand(given, tokens), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("attend", [True, False])
@pytest.mark.parametrize("options", [{}, {"width": 6}, {"attention": "uniform"}])
def test_both_paths_agree_in_outputs_loss_and_gradients(attend: bool, options: dict[str, object]) -> None:
    world = LDATopics(topics=4, words=3, lengths=(10, 30), attend_to_masked=attend)
    batch = world.sample(8, rng=rng(1))
    fast = model(path="fast", **options)
    full = copy.deepcopy(fast)
    full.path = "full"
    real = world.shown(batch.inputs) < world.filler
    torch.testing.assert_close(fast(batch.inputs)[real], full(batch.inputs)[real], rtol=1e-10, atol=1e-10)
    losses = [each(batch.inputs)[batch.mask].square().sum() for each in (fast, full)]
    for loss in losses:
        loss.backward()
    for (name, one), other in zip(fast.named_parameters(), full.parameters()):
        assert one.grad is not None and other.grad is not None, name
        torch.testing.assert_close(one.grad, other.grad, rtol=1e-9, atol=1e-9)
    single, again = fast.float(), full.float()
    single.value.data /= 10
    again.value.data /= 10
    torch.testing.assert_close(single(batch.inputs)[real], again(batch.inputs)[real], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("path", ["fast", "full"])
@pytest.mark.parametrize("options", [{}, {"width": 6}, {"attention": "uniform"}])
def test_the_last_positions_alone_have_the_outputs_they_have_among_all(path: str, options: dict[str, object]) -> None:
    inputs = LDATopics(topics=4, words=3, lengths=(10, 30)).sample(8, rng=rng(1)).inputs
    inputs = inputs.flip(1)  # the filler stands first
    for count in (5, 20):
        every, some = model(path=path, **options), model(path=path, read=count, **options)
        torch.testing.assert_close(every(inputs)[:, -count:], some(inputs), rtol=1e-10, atol=1e-10)


def test_uniform_attention_is_a_linear_map_of_the_bag_of_words() -> None:
    given = model(attention="uniform")
    tokens = torch.tensor([[1, 1, 5, 0, 13, 13]])
    bag = torch.zeros(13, dtype=torch.float64)
    bag[torch.tensor([0, 1, 5])] = torch.tensor([0.25, 0.5, 0.25], dtype=torch.float64)
    expected = given.value @ bag + given.value_bias + given.output_bias
    torch.testing.assert_close(given(tokens)[0, 2], expected)


def test_only_the_chosen_weights_are_trained() -> None:
    given = OneLayerTopics(vocab=13, trained=("value",))
    assert [name for name, weight in given.named_parameters() if weight.requires_grad] == ["value"]


def test_keys_have_no_gradient_while_queries_are_zero_and_small_ones_have_small_gradients() -> None:
    batch = LDATopics(topics=4, words=3).sample(16, rng=rng(2))

    def gradients(std: float, queries: float = 1.0) -> tuple[float, float]:
        with seeded(0):
            given = OneLayerTopics(vocab=13, std=std).double()
        given.query.data *= queries
        torch.nn.functional.cross_entropy(given(batch.inputs)[batch.mask], batch.targets[batch.mask]).backward()
        assert given.key.grad is not None and given.value.grad is not None
        return float(given.key.grad.norm()), float(given.value.grad.norm())

    assert gradients(0.1, queries=0.0)[0] == 0.0
    small, smaller = gradients(1e-2), gradients(1e-3)
    assert small[0] / smaller[0] == pytest.approx(100, rel=0.2)  # ‖∇K‖ ∝ ε · ‖W_V‖
    assert small[1] / smaller[1] == pytest.approx(1, rel=0.05)


@pytest.mark.parametrize("init", ["normal", "torch", "noise"])
def test_initial_weights_have_the_scale_of_their_kind(init: str) -> None:
    with seeded(0):
        value = OneLayerTopics(vocab=101, init=init, std=0.02).value.detach()
    scale = {"normal": 0.02, "torch": 1 / math.sqrt(3 * 101), "noise": 0.02 / math.sqrt(12)}[init]
    assert float(value.std()) == pytest.approx(scale, rel=0.05)
    assert (float(value.min()) >= 0) == (init == "noise")
