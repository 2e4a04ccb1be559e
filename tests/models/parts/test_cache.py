"""Decoding with a cache gives what recomputing from scratch gives."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from sandlab.errors import BadInput
from sandlab.models.base import seeded
from sandlab.models.hooks import record
from sandlab.models.transformer import Transformer

OPTIONS = [
    {"positions": "none"},
    {"positions": "learned", "norm": "post"},
    {"positions": "sinusoidal", "loops": 2},
    {"positions": "rotary"},
    {"positions": "rotary", "window": 3},
    {"positions": "relative", "heads": (4, 1)},
    {"positions": "alibi", "tied": True},
    {"positions": "one-hot", "width": 24},
    {"positions": "learned", "attention": "linear"},
    {"positions": "rotary", "attention": "hard"},
    {"positions": "learned", "output_map": False, "head_width": 8},
]


def build(**options) -> Transformer:
    with seeded(0):
        settings = {"vocab": 5, "length": 16, "width": 8, "heads": 2, "init_std": 0.5} | options
        model = Transformer(**settings)
        for name, parameter in model.named_parameters():
            if "distance_bias" in name:
                torch.nn.init.normal_(parameter)
        return model


@pytest.fixture
def tokens() -> Tensor:
    with seeded(1):
        return torch.randint(5, (3, 16))


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_any_cut_into_pieces_gives_the_logits_of_the_whole(options: dict, tokens: Tensor) -> None:
    model = build(**options)
    whole = model(tokens)
    for pieces in ([16], [1] * 16, [5, 1, 7, 3]):
        cache = model.start_cache(3)
        got = torch.cat([model(piece, cache=cache) for piece in tokens.split(pieces, -1)], 1)
        torch.testing.assert_close(got, whole, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_rows_of_different_lengths_continue_after_a_rollback(options: dict, tokens: Tensor) -> None:
    model = build(**options)
    cache = model.start_cache(3, capacity=12)
    model(tokens[:, :9], cache=cache)
    lengths = [4, 9, 0]
    cache.rollback(torch.tensor(lengths))
    new = tokens[:, 10:13]
    got = model(new, cache=cache)
    for row, length in enumerate(lengths):
        fresh = torch.cat([tokens[row, :length], new[row]])
        torch.testing.assert_close(got[row], model(fresh[None])[0, length:], rtol=1e-5, atol=1e-5)
    assert cache.lengths.tolist() == [7, 12, 3]
    # Rows keep growing apart: the longest is full, the others still have room after it is rolled back.
    with pytest.raises(BadInput, match="1 more do not fit"):
        model(tokens[:, :1], cache=cache)
    cache.rollback([7, 5, 3])
    got = model(tokens[:, :1], cache=cache)
    histories = [
        torch.cat([tokens[0, :4], new[0]]),
        tokens[1, :5],
        new[2],
    ]
    for row, history in enumerate(histories):
        fresh = torch.cat([history, tokens[row, :1]])
        torch.testing.assert_close(got[row], model(fresh[None])[0, -1:], rtol=1e-5, atol=1e-5)


def test_selected_rows_are_independent_copies(tokens: Tensor) -> None:
    model = build(positions="rotary")
    cache = model.start_cache(3)
    model(tokens[:, :6], cache=cache)
    branched = cache.select([2, 0, 2, 2])
    got = model(tokens[[0, 1, 2, 0], 6:8], cache=branched)
    for row, (source, new) in enumerate(zip([2, 0, 2, 2], [0, 1, 2, 0])):
        fresh = torch.cat([tokens[source, :6], tokens[new, 6:8]])
        torch.testing.assert_close(got[row], model(fresh[None])[0, 6:], rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(model(tokens[:, 6:7], cache=cache), model(tokens[:, :7])[:, 6:], rtol=1e-5, atol=1e-5)


def test_reading_the_last_position_and_recording_work_with_a_cache(tokens: Tensor) -> None:
    model = build(read="last")
    cache = model.start_cache(3)
    model(tokens[:, :6], cache=cache)
    with record(model, "layers.0.attention.pattern") as activations:
        got = model(tokens[:, 6:8], cache=cache)
    assert activations["layers.0.attention.pattern"].shape == (3, 2, 2, 8)
    torch.testing.assert_close(got, model(tokens[:, :8]), rtol=1e-5, atol=1e-5)
    assert not got.requires_grad


def test_a_single_token_costs_less_than_the_whole_sequence(tokens: Tensor) -> None:
    """Counted, not timed: with a cache the query of one token is computed, not of sixteen."""
    model = build()
    cache = model.start_cache(3)
    model(tokens[:, :15], cache=cache)
    with record(model, "layers.*.attention.query") as activations:
        model(tokens[:, 15:], cache=cache)
    assert {value.shape[1] for value in activations.values()} == {1}


def test_misuse_is_refused_in_one_sentence(tokens: Tensor) -> None:
    model = build()
    with pytest.raises(BadInput, match="causal must be True for a cache"):
        build(causal=False).start_cache(1)
    with pytest.raises(BadInput, match="capacity must be a whole number between 1 and 16"):
        model.start_cache(1, capacity=17)
    cache = model.start_cache(2)
    with pytest.raises(BadInput, match=r"inputs must be \(2, new tokens\)"):
        model(tokens, cache=cache)
    model(tokens[:2, :4], cache=cache)
    with pytest.raises(BadInput, match="lengths must be between 0 and the rows' lengths"):
        cache.rollback([5, 0])
    with pytest.raises(BadInput, match="lengths must be 2 numbers"):
        cache.rollback([1])
    assert repr(cache) == "KeyValueCache(lengths=[4, 4], capacity=16, layers=2)"
