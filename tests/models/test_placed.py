"""Shifted and linear position codes, against what the formulas say."""

from __future__ import annotations

import pytest
import torch

import sandlab as sl
from sandlab.errors import BadInput
from sandlab.models.placed import PlacedTransformer
from sandlab.models.transformer import Transformer, sinusoids

SIZES = {"vocab": 3, "length": 40, "layers": 1, "heads": 2, "width": 8, "init_std": None}
WORDS = torch.randint(3, (4, 10), generator=sl.rng(0))


def test_without_its_own_options_it_is_the_transformer():
    with sl.models.seeded(1):
        placed = PlacedTransformer(**SIZES)
    with sl.models.seeded(1):
        plain = Transformer(**SIZES, positions="sinusoidal")
    assert torch.equal(placed(WORDS), plain(WORDS))


def test_shifted_codes_are_the_codes_of_later_positions_in_training_only():
    model = PlacedTransformer(**SIZES, shift=20)
    tokens = model.embedding(WORDS)
    codes = sinusoids(40, 8).float()
    model.eval()
    assert torch.allclose(model.embed(WORDS) - tokens, codes[:10].expand(4, -1, -1), atol=1e-6)
    model.train()
    seen = set()
    for _ in range(60):
        shifted = (model.embed(WORDS) - tokens).detach()
        matches = [start for start in range(31) if torch.allclose(shifted[0], codes[start : start + 10], atol=1e-5)]
        assert len(matches) == 1 and torch.allclose(shifted[0], shifted[3], atol=1e-6)
        seen |= set(matches)
    assert len(seen) > 10 and max(seen) <= 20


def test_a_linear_code_grows_in_proportion_to_the_position():
    model = PlacedTransformer(**SIZES, positions="none", slope=0.5).eval()
    codes = (model.embed(WORDS) - model.embedding(WORDS)).detach()
    assert torch.allclose(codes.norm(dim=-1), 0.5 * torch.arange(10.0).expand(4, -1), atol=1e-5)
    assert torch.allclose(codes[:, 4], 2 * codes[:, 2], atol=1e-5)


def test_the_same_number_on_every_coordinate_is_no_position_code_under_layer_norm():
    model = PlacedTransformer(**SIZES, positions="none").eval().double()
    plain = model(WORDS)
    before = model.embed
    ramp = torch.arange(10.0, dtype=torch.float64).view(-1, 1)
    model.embed = lambda inputs, places=None: before(inputs, places) + ramp  # type: ignore[method-assign]
    assert torch.allclose(model(WORDS), plain, atol=1e-9)
    model.embed = lambda inputs, places=None: before(inputs, places) + ramp * torch.tensor([1.0, -1.0] * 4)  # type: ignore[method-assign]
    assert not torch.allclose(model(WORDS), plain, atol=1e-3)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"slope": 1.0}, "positions"),
        ({"shift": -1}, "shift"),
        ({"shift": 3, "positions": "none"}, "shift"),
        ({"token_std": -1.0}, "token_std"),
    ],
)
def test_options_that_do_not_fit_are_refused(options, named):
    with pytest.raises(BadInput, match=named):
        PlacedTransformer(**{**SIZES, **options})
