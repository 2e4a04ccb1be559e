"""Averaging and picking out, against counting and sorting by hand."""

from __future__ import annotations

import math

import pytest
import torch

from sandlab import BadInput, rng
from sandlab.circuits.attention_primitives import running_average, select_largest


def test_uniform_attention_counts_every_token_so_far():
    tokens = torch.randint(0, 4, (10, 17), generator=rng(0))
    shares = running_average(4, 17)(tokens).detach()
    counts = shares * torch.arange(1, 18).view(-1, 1)
    for row, found in zip(tokens.tolist(), counts):
        for i in range(17):
            assert found[i].tolist() == pytest.approx([row[: i + 1].count(token) for token in range(4)], abs=1e-12)


def test_sparse_attention_picks_the_token_of_largest_score():
    scores, length = (0.3, 0.1, 0.9, 0.6, 0.6), 40
    tokens = torch.randint(0, 5, (20, length), generator=rng(1))
    found = select_largest(scores, length, temperature=200.0)(tokens).detach()
    for row, probs in zip(tokens.tolist(), found):
        for i in range(length):
            best = max(scores[token] for token in row[: i + 1])
            kept = [token for token in row[: i + 1] if scores[token] == best]
            truth = [kept.count(token) / len(kept) for token in range(5)]
            assert probs[i].tolist() == pytest.approx(truth, abs=length * math.exp(-20))


def test_a_layer_without_tokens_is_refused():
    with pytest.raises(BadInput, match="scores"):
        select_largest((), 5)
