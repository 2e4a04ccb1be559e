"""Induction heads of any order with constant depth and one head per layer: a context packed into one vector.

The k tokens before a position become one vector with geometric weights, c_n = Σ_{i=1}^{k} B^{−(i−1)} e_{x_{n−i}}; two
contexts agree exactly when the cosine of their vectors is 1. Relative positions make the weights, layer norm the unit
length, and a large factor in front of the cosine picks the keys whose context agrees.
"""

from __future__ import annotations

import math
from typing import Any, cast

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from sandlab.errors import integer, number, require
from sandlab.models.transformer import Transformer
from sandlab.registry import register

__all__ = ["context_gap", "korder_three_layers", "korder_two_layers", "with_start_token"]

LARGE = 1e4  # how far the vector that is to be normalised outweighs the rest of the stream
NEVER = -1e4  # a relative bias that no score outweighs


def with_start_token(tokens: Int[Tensor, "example time"], states: int) -> Int[Tensor, "example time_and_one"]:
    """The sequence behind a start token, which has the number `states`."""
    return F.pad(tokens, (1, 0), value=states)


def context_gap(order: int, base: float) -> float:
    """1 − the largest cosine of two different contexts: aa…a against aa…ab, tan θ = B^{−(k−1)} / Σ_{i<k−1} B^{−i}."""
    integer("order", order, low=1)
    require(number("base", base) > 1, "base", base, "above 1")
    rest = sum(base**-i for i in range(order - 1))
    return 1.0 if order == 1 else 1 - math.cos(math.atan(base ** -(order - 1) / rest))


@register("circuits")
def korder_three_layers(
    states: int, order: int, length: int, *, base: float = 3.0, sharpness: float | None = None
) -> Transformer:
    """The order-k counting estimator with three layers of one head: relative positions and layer norm do the rest.

    Layer 1   weights ∝ B^{−i}, i = 0 … k−1:        u_n = Σ_i B^{−i} e_{x_{n−i}}
    Layer 2   weights ∝ B^{−(i−1)}, i = 1 … k:      v_n = Σ_i B^{−(i−1)} e_{x_{n−i}}
    Layer 3   scores κ ⟨u_T, v_n⟩/(‖u_T‖ ‖v_n‖) (the query's own length only adds to κ), value = the token of n

    Sequences begin with a start token (`with_start_token`), whose presence in a history tells the first positions from
    whole contexts: the limit κ → ∞ is the strict estimator. Default κ = (log T + 16)/gap (see `context_gap`).
    Layer norm acts on the whole stream; written with scales 1 : 10⁴ : 10⁸ for u, tokens and v, and with every
    coordinate mirrored so that the mean is zero, it normalises the tokens in layer 2 and v in layer 3, to 1e-8.

    Source: Rajaraman et al. 2024, "Transformers on Markov data: constant depth suffices".
    """
    model, block = _blank(states, order, length, layers=3, mlp="none", mlp_width=None)
    first, second, third = (cast(Any, layer).attention for layer in model.layers)
    width = model.config.width
    unit = math.sqrt(width / 2)  # a dominant vector of length 1, mirrored, leaves layer norm with this length
    with torch.no_grad():
        _weigh_lags(first, range(order), base)
        _write(first.value.weight, block["copied"], block["token"], 1 / unit)
        _weigh_lags(second, range(1, order + 1), base)
        _write(second.value.weight, block["context"], block["token"], LARGE**2 / unit)
        _match(model, third, block, _sharpness(order, length, base, sharpness) * math.sqrt(2))
    return model


@register("circuits")
def korder_two_layers(
    states: int, order: int, length: int, *, base: float = 3.0, sharpness: float | None = None
) -> Transformer:
    """The order-k counting estimator with two layers of one head: the feed-forward block shifts the context by one.

    Layer 1   weights ∝ B^{−(i−1)}, i = 1 … k: v_n; then, coordinate by coordinate, a piecewise linear function drops
              the last base-B digit of v_n (2^k possible values, 2^k − 1 ReLUs), u_n = e_{x_n} + (v_n − last digit)/B
    Layer 2   as layer 3 of `korder_three_layers`

    Start token, limit and default sharpness as there.

    Source: Ekbote et al. 2025 (two layers suffice); the digit extraction is ours.
    """
    values, drop = _digit_spline(order, base)
    hidden = (states + 1) * (len(values) + 2)
    model, block = _blank(states, order, length, layers=2, mlp="relu", mlp_width=hidden)
    layer = cast(Any, model.layers[0])
    unit = math.sqrt(model.config.width / 2)
    total = sum(base**-i for i in range(order))
    with torch.no_grad():
        _weigh_lags(layer.attention, range(1, order + 1), base)
        # Softmax weights sum to 1; times Σ B^{−i} the digits are whole.
        _write(layer.attention.value.weight, block["context"], block["token"], total / unit)
        _shift_contexts(layer.mlp, block, values, drop, base, unit)
        final = cast(Any, model.layers[1]).attention
        _match(model, final, block, _sharpness(order, length, base, sharpness) * 1.5)
    return model


def _blank(
    states: int, order: int, length: int, *, layers: int, mlp: str, mlp_width: int | None
) -> tuple[Transformer, dict[str, Tensor]]:
    """All weights zero but the norms; blocks of states + 1 coordinates, each with its mirror image."""
    integer("states", states, low=1)
    integer("order", order, low=1)
    integer("length", length, low=order)
    symbols = states + 1
    names = ("token", "copied", "context", "found")
    width = 2 * len(names) * symbols
    model = Transformer(
        vocab=symbols, length=length + 1, outputs=states, layers=layers, heads=1, width=width, head_width=symbols,
        mlp=mlp, mlp_width=mlp_width, norm="pre", norm_kind="layer", positions="relative", scale=1.0,
        output_map=False, log_output=1e-300, bias=True,
    ).double()  # fmt: skip
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if not name.endswith("norm.weight") and name != "ln_final.weight":
                parameter.zero_()
        token = torch.arange(symbols)
        model.embedding.weight[token, token] = LARGE
        model.embedding.weight[token, token + width // 2] = -LARGE
    return model, {name: place * symbols + token for place, name in enumerate(names)}


def _weigh_lags(attention: Any, lags: range, base: float) -> None:
    """Attention by distance alone: weights ∝ B^{−(lag − first lag)} on the given lags."""
    bias = attention.distance_bias[0]
    bias.fill_(NEVER)
    for lag in lags:
        bias[attention.length - 1 + lag] = -(lag - lags.start) * math.log(base)


def _write(weight: Tensor, rows: Tensor, columns: Tensor, value: float) -> None:
    """Copy coordinates of the stream to others, and their negatives to the mirror images."""
    weight[rows, columns] = value
    weight[rows + weight.shape[0] // 2, columns] = -value


def _match(model: Transformer, attention: Any, block: dict[str, Tensor], sharpness: float) -> None:
    """Query u_T against key v_n/‖v_n‖, value the token; the readout takes what was found."""
    unit = math.sqrt(model.config.width / 2)
    symbols = block["token"]
    attention.query.weight[symbols, block["copied"]] = sharpness * LARGE**2 / unit
    attention.key.weight[symbols, block["context"]] = 1 / unit
    _write(attention.value.weight, block["found"], block["token"], LARGE / unit)
    states = model.config.outputs or 0
    model.unembed.weight[torch.arange(states), block["found"][:states]] = LARGE**2 / unit


def _sharpness(order: int, length: int, base: float, given: float | None) -> float:
    return (math.log(length) + 16) / context_gap(order, base) if given is None else number("sharpness", given, low=0.0)


def _digit_spline(order: int, base: float) -> tuple[Float[Tensor, "value"], Float[Tensor, "value"]]:
    """The values Σ b_i B^{−i}, b ∈ {0, 1}^k, in increasing order, and each without its last digit."""
    values, dropped = [0.0], [0.0]
    for place in range(order):
        digit = base**-place
        keeps = digit if place < order - 1 else 0.0
        values, dropped = values + [v + digit for v in values], dropped + [d + keeps for d in dropped]
    ordered, rank = torch.tensor(values, dtype=torch.float64).sort()
    return ordered, torch.tensor(dropped, dtype=torch.float64)[rank]


def _shift_contexts(
    mlp: Any, block: dict[str, Tensor], values: Tensor, dropped: Tensor, base: float, unit: float
) -> None:
    """u = e + spline(v)/B, and v blown up so that the next layer norm normalises it alone."""
    symbols = len(block["token"])
    slopes = F.pad(dropped.diff() / values.diff(), (1, 0))
    turns = slopes.diff()
    scale = LARGE / unit  # layer norm divided the stream by this; tokens have length LARGE, contexts about 1
    knots = values[:-1]
    for place, (knot, turn) in enumerate(zip(knots, turns)):
        rows = place * symbols + torch.arange(symbols)
        mlp.up_proj.weight[rows, block["context"]] = scale
        mlp.up_proj.bias[rows] = -knot
        _write(mlp.down_proj.weight, block["copied"], rows, float(turn) / base)
    rows = len(knots) * symbols + torch.arange(symbols)
    mlp.up_proj.weight[rows, block["token"]] = 1 / unit
    _write(mlp.down_proj.weight, block["copied"], rows, 1.0)
    rows = rows + symbols
    mlp.up_proj.weight[rows, block["context"]] = scale
    _write(mlp.down_proj.weight, block["context"], rows, LARGE**2 - 1)
