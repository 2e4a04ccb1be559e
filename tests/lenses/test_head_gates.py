"""Gates over heads: redundant heads close one by one, needed ones stay, and weights adapt only when they may."""

from __future__ import annotations

import math

import pytest
import torch

import sandlab as sl
from sandlab.circuits.flip_flop.memory import memory_transformer
from sandlab.lenses.head_gates import HIGH, LOW, TEMPERATURE, _draw, gate_heads
from sandlab.worlds.flip_flop.language import FlipFlopTransduction

WORLD = FlipFlopTransduction(length=8, idle=0.5)


class Copies(torch.nn.Module):
    """Logits of the token that the heads show: the first two carry all of it, the third nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.attention = torch.nn.Module()
        self.attention.pattern = sl.models.HookPoint()
        self.strength = torch.nn.Parameter(torch.tensor([20.0, 20.0, 0.0]))

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        pattern = torch.eye(tokens.shape[1]).expand(len(tokens), 3, -1, -1)
        seen = self.attention.pattern(pattern) @ torch.nn.functional.one_hot(tokens, 3).float().unsqueeze(1)
        return (seen * self.strength.view(3, 1, 1)).amax(1)


class CopyTask(sl.worlds.World):
    """Say the token that is seen."""

    vocab = 3

    def sample(self, n: int, *, rng: torch.Generator) -> sl.worlds.Batch:
        tokens = torch.randint(0, 3, (n, 6), generator=rng)
        return sl.worlds.Batch(tokens, tokens, torch.ones_like(tokens, dtype=torch.bool))


def test_of_two_heads_that_do_the_same_one_is_kept_and_idle_ones_close() -> None:
    found = gate_heads(Copies(), CopyTask(), rng=sl.rng(0), strength=0.2, steps=150, lr=0.1, names="attention.pattern")
    assert len(found.kept) == 1 and found.kept[0][1] in (0, 1)
    tokens = torch.tensor([[0, 1, 2]])
    assert torch.equal(found(tokens).argmax(-1), tokens)


def test_without_a_price_the_needed_head_of_a_circuit_stays_and_at_a_high_one_it_closes() -> None:
    model = memory_transformer(8)
    kept = gate_heads(model, WORLD, rng=sl.rng(1), strength=0.0, steps=60)
    assert kept.kept == [("layers.0.attention.pattern", 0)]
    assert gate_heads(model, WORLD, rng=sl.rng(1), strength=1e4, steps=80, lr=0.1).kept == []


def test_weights_change_only_when_they_may_adapt_and_never_in_the_model_given() -> None:
    given = sl.models.Transformer(vocab=3, length=8, layers=1, heads=2, width=8, outputs=2)
    before = {name: value.clone() for name, value in given.state_dict().items()}
    for adapt in (0.0, 0.01):
        found = gate_heads(given, WORLD, rng=sl.rng(2), steps=3, adapt=adapt)
        changed = any(not torch.equal(before[name], value) for name, value in found.model.state_dict().items())
        assert changed == (adapt > 0)
    assert all(torch.equal(before[name], value) for name, value in given.state_dict().items())


def test_a_gate_is_open_as_often_as_the_penalty_says() -> None:
    log_alpha = torch.tensor([-1.0, 0.0, 1.5])
    drawn = torch.stack([_draw(log_alpha, sl.rng(seed)) for seed in range(2000)])
    said = torch.sigmoid(log_alpha - TEMPERATURE * math.log(-LOW / HIGH))
    assert torch.allclose((drawn > 0).float().mean(0), said, atol=0.04)


def test_options_out_of_range_are_refused() -> None:
    with pytest.raises(sl.BadInput, match="steps"):
        gate_heads(Copies(), CopyTask(), rng=sl.rng(0), steps=0, names="attention.pattern")
    with pytest.raises(sl.BadInput, match="lr must be above 0"):
        gate_heads(Copies(), CopyTask(), rng=sl.rng(0), lr=0.0, names="attention.pattern")
