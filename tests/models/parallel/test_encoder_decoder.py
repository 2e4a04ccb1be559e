"""The encoder-decoder: what it may see, its cache, and members."""

from __future__ import annotations

import pytest
import torch

import sandlab as sl
from sandlab.errors import BadInput
from sandlab.learning.population import Population
from sandlab.models.base import seeded
from sandlab.models.parallel.encoder_decoder import CrossAttention, EncoderDecoder


def model(**options: object) -> EncoderDecoder:
    with seeded(0):
        made = EncoderDecoder(vocab=20, source_length=4, target_length=6, width=16, heads=2, **options)  # type: ignore
    return made.double().eval()


INPUTS = torch.randint(4, 20, (3, 10), generator=sl.rng(0))


def test_a_causal_decoder_does_not_see_what_follows_and_a_refining_one_does() -> None:
    changed = INPUTS.clone()
    changed[:, -1] = 4 + (changed[:, -1] - 3) % 16
    for causal in (True, False):
        net = model(causal=causal)
        same = torch.allclose(net(INPUTS)[:, 1:6], net(changed)[:, 1:6])
        assert same == causal


def test_padding_is_never_attended_to() -> None:
    net, inputs = model(), INPUTS.clone()
    inputs[:, 3] = 0
    inputs[:, 8:] = 0
    longer = net(inputs)
    with torch.no_grad():
        net.source_position.weight[3] += 1
        net.position.weight[4:] += 1
    assert torch.allclose(longer[:, :5], net(inputs)[:, :5])


def test_reading_step_by_step_gives_the_same_logits() -> None:
    net = model(causal=True)
    cache = net.encode(INPUTS[:, :4], remember=True)
    steps = torch.cat([net.decode(cache, INPUTS[:, 4 + place : 5 + place]) for place in range(6)], 1)
    assert torch.allclose(steps, net(INPUTS)[:, 1:])


@pytest.mark.parametrize("causal", [False, True])
def test_the_fused_kernel_gives_the_same_logits(causal: bool) -> None:
    net, inputs = model(causal=causal), INPUTS.clone()
    inputs[:, 3] = 0
    inputs[:, 8:] = 0
    plain = net(inputs)
    for part in net.modules():
        if isinstance(part, CrossAttention):
            part.fused = True
    assert torch.allclose(net(inputs), plain)
    assert torch.allclose(net(inputs.expand(2, 3, 10)), plain.expand(2, 3, 7, 20))


def test_the_first_row_is_the_length() -> None:
    net = model()
    logits = net(INPUTS)
    assert logits.shape == (3, 7, 20)
    assert torch.allclose(logits[:, 0, :6], net.encode(INPUTS[:, :4]).length_logits)
    assert float(logits[:, 0, 6:].softmax(-1).max()) <= 1 and float(logits[:, 0].softmax(-1)[:, 6:].sum()) < 1e-12


def test_members_are_computed_together() -> None:
    def member(seed: int) -> EncoderDecoder:
        return EncoderDecoder(vocab=20, source_length=4, target_length=6, width=16, heads=2).double()

    population = Population(member, seeds=range(2), strategy="native")
    assert population.carries_members
    for place, seed in enumerate(range(2)):
        with seeded(seed):
            alone = member(seed)
        assert torch.allclose(population(INPUTS)[place], alone(INPUTS))


def test_positional_attention_and_sizes_are_options() -> None:
    assert model(positional_attention=False).parameter_count() < model().parameter_count()
    with pytest.raises(BadInput, match="target_length"):
        EncoderDecoder(vocab=5, source_length=4, target_length=6)
