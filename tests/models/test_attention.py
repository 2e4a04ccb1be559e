"""The masked core of attention, against its definition row by row."""

from __future__ import annotations

import math

import pytest
import torch

from sandlab import rng
from sandlab.models.attention import allowed_keys, attention_pattern, causal_mask


def by_hand(scores: list[float], allowed: list[bool], kind: str) -> list[float]:
    if kind == "linear":
        return [score if seen else 0.0 for score, seen in zip(scores, allowed)]
    best = max(score for score, seen in zip(scores, allowed) if seen)
    if kind == "softmax":
        parts = [math.exp(score - best) if seen else 0.0 for score, seen in zip(scores, allowed)]
    else:
        parts = [float(seen and score == best) for score, seen in zip(scores, allowed)]
    if kind == "latest":
        last = max(i for i, part in enumerate(parts) if part)
        parts = [float(i == last) for i in range(len(parts))]
    return [part / sum(parts) for part in parts]


@pytest.mark.parametrize("kind", ["softmax", "linear", "hard", "latest"])
@pytest.mark.parametrize("queries", [6, 1])
def test_every_kind_is_its_definition_on_the_allowed_keys(kind: str, queries: int) -> None:
    # Whole numbers, so that the largest score is often not the only one.
    scores = torch.randint(3, (2, 2, queries, 6), generator=rng(0)).double()
    bias = torch.randint(2, (queries, 6), generator=rng(1)).double()
    mask = causal_mask(scores)
    assert mask.tolist() == [[key <= query for key in range(6)] for query in range(6 - queries, 6)]
    found = attention_pattern(scores, mask, kind=kind, bias=bias)
    for example, head, query in torch.cartesian_prod(torch.arange(2), torch.arange(2), torch.arange(queries)).tolist():
        row = (scores + bias)[example, head, query].tolist()
        assert found[example, head, query].tolist() == pytest.approx(by_hand(row, mask[query].tolist(), kind))


def test_without_a_mask_every_key_is_allowed() -> None:
    scores = torch.randn(3, 4, 4, generator=rng(2))
    assert torch.equal(attention_pattern(scores), scores.softmax(-1))
    assert torch.equal(attention_pattern(scores, kind="linear"), scores)


def test_allowed_keys_are_those_of_the_causal_mask_when_all_positions_are_given() -> None:
    positions = torch.arange(5)
    every = allowed_keys(positions, positions, causal=True, window=None)
    assert torch.equal(every, causal_mask(torch.zeros(5, 5)))
    near = allowed_keys(positions, positions, causal=True, window=2)
    assert torch.equal(near, every & (positions.unsqueeze(-1) - positions < 2))
