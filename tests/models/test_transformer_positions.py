"""Shifted and linear position codes, against what the formulas say."""

from __future__ import annotations

import pytest
import torch

import sandlab as sl
from sandlab.errors import BadInput
from sandlab.models.transformer import Transformer, sinusoids

SIZES = {"vocab": 3, "length": 40, "layers": 1, "heads": 2, "width": 8, "init_std": None}
WORDS = torch.randint(3, (4, 10), generator=sl.rng(0))


def test_shifted_codes_are_the_codes_of_later_positions_in_training_only():
    model = Transformer(**SIZES, positions="sinusoidal", position_shift=20)
    tokens = model.embedding(WORDS)
    codes = sinusoids(40, 8).float()
    model.eval()
    assert torch.allclose(model.embed_tokens(WORDS) - tokens, codes[:10].expand(4, -1, -1), atol=1e-6)
    model.train()
    seen = set()
    for _ in range(60):
        shifted = (model.embed_tokens(WORDS) - tokens).detach()
        matches = [start for start in range(31) if torch.allclose(shifted[0], codes[start : start + 10], atol=1e-5)]
        assert len(matches) == 1 and torch.allclose(shifted[0], shifted[3], atol=1e-6)
        seen |= set(matches)
    assert len(seen) > 10 and max(seen) <= 20


def test_a_linear_code_grows_in_proportion_to_the_position():
    model = Transformer(**SIZES, positions="linear", position_slope=0.5).eval()
    codes = (model.embed_tokens(WORDS) - model.embedding(WORDS)).detach()
    assert torch.allclose(codes.norm(dim=-1), 0.5 * torch.arange(10.0).expand(4, -1), atol=1e-5)
    assert torch.allclose(codes[:, 4], 2 * codes[:, 2], atol=1e-5)


def test_the_same_number_on_every_coordinate_is_no_position_code_under_layer_norm():
    model = Transformer(**SIZES, positions="none").eval().double()
    plain = model(WORDS)
    before = model.embed_tokens
    ramp = torch.arange(10.0, dtype=torch.float64).view(-1, 1)
    model.embed_tokens = lambda inputs, positions=None: before(inputs, positions) + ramp  # type: ignore[method-assign]
    assert torch.allclose(model(WORDS), plain, atol=1e-9)
    model.embed_tokens = lambda inputs, positions=None: before(inputs, positions) + ramp * torch.tensor([1.0, -1.0] * 4)  # type: ignore[method-assign]
    assert not torch.allclose(model(WORDS), plain, atol=1e-3)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"position_slope": 1.0}, "position_slope"),
        ({"positions": "linear"}, "position_slope"),
        ({"position_shift": -1}, "position_shift"),
        ({"position_shift": 3, "positions": "none"}, "position_shift"),
        ({"norm": "middle"}, "norm"),
        ({"token_std": -1.0}, "token_std"),
    ],
)
def test_options_that_do_not_fit_are_refused(options, named):
    with pytest.raises(BadInput, match=named):
        Transformer(**{**SIZES, **options})


def test_with_attention_branch_the_norm_sees_the_attention_alone():
    with sl.models.seeded(1):
        model = Transformer(vocab=5, length=12, layers=1, width=10, mlp="relu", norm="attention-branch", init_std=0.5)
    with torch.no_grad(), sl.record(model, "embed", "layers.0.attention", "layers.0.resid_post") as cache:
        model(WORDS)
    found = cache["layers.0.attention"]
    normed = (found - found.mean(-1, keepdim=True)) / (found.var(-1, unbiased=False, keepdim=True) + 1e-5).sqrt()
    middle = normed + cache["embed"]
    with torch.no_grad():
        assert torch.allclose(cache["layers.0.resid_post"], middle + model.layers[0].mlp(middle), atol=1e-5)


def test_with_attention_post_only_the_sum_after_attention_is_normed():
    with sl.models.seeded(1):
        model = Transformer(vocab=5, length=12, layers=1, width=10, mlp="relu", norm="attention-post", init_std=0.5)
    with torch.no_grad(), sl.record(model, "embed", "layers.0.attention", "layers.0.resid_post") as cache:
        model(WORDS)
    layer, total = model.layers[0], cache["layers.0.attention"] + cache["embed"]
    middle = torch.nn.functional.layer_norm(total, (10,))
    with torch.no_grad():
        assert torch.allclose(cache["layers.0.resid_post"], middle + layer.mlp(middle), atol=1e-5)


@pytest.mark.parametrize("positions", ["linear", "learned-linear"])
def test_a_population_with_linear_positions_is_its_members(positions):
    options = {**SIZES, "positions": positions, "position_slope": 0.1}
    population = sl.learning.Population(lambda seed: Transformer(**options), seeds=range(3))
    with torch.no_grad():
        together = population(WORDS)
        for index in range(3):
            assert torch.allclose(together[index], population.member(index)(WORDS), atol=1e-6)
