"""Counting estimators as weights of the simplified transformer: every order, every set of lags.

First-layer head h copies the token h positions back; the second layer scores how many of the query's previous tokens
agree with those before a key, c · #{h : x_{l−h} = x_{T−h}}, and averages the tokens of the best keys. Orders count
previous tokens: order k is the "(k + 1)-gram" of Varre, Yüce and Flammarion, and a "k-gram" by previous tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from sandlab.circuits._matching import look_back_keys, matching_circuit
from sandlab.circuits.targets import SimplifiedOptions, to_simplified
from sandlab.errors import choice, integer, number, require
from sandlab.models.ngrams.simplified import SimplifiedTransformer
from sandlab.registry import register

__all__ = ["all_heads_bigram", "heads_for_lags", "lag_set_estimator", "ngram_estimator"]


@register("circuits")
def ngram_estimator(
    states: int,
    order: int,
    length: int,
    *,
    heads: int | None = None,
    temperature: float = 40.0,
    boundary: str = "clamp",
    **options: Unpack[SimplifiedOptions],
) -> SimplifiedTransformer:
    """The order-k counting estimator: as c → ∞ the output is the distribution of what followed the last k tokens.

    For h = 1 … k: A₁^(h)[l, max(l−h, 0)] = c and V₁^(h) = I; the remaining heads have A = 0 and V = 0.
    Q₂ = √c Σ_h (block h ← block h−1) and K₂ = √c Σ_h (block h ← block h), so a key l scores
    c · #{h ≤ k : x_{l−h} = x_{T−h}}. k = 0 has all weights zero: the unigram.

    Heads at positions l < h attend to position 0, so histories are clamped: the limit is
    `CountingEstimator(states, (1 … k), boundary="clamped")`, within c · T · e^{−c} wherever something matches; with
    `boundary="bos"` a reserved token precedes the sequence and the limit is the strict estimator. Without any
    match the output averages the keys with the most partial matches.

    Source: Varre, Yüce and Flammarion 2025, §4.1, equations (8) and (10).
    """
    integer("order", order, low=0, high=256)
    integer("length", length, low=1)
    heads = max(order, 1) if heads is None else integer("heads", heads, low=max(order, 0))
    lags = range(1, order + 1)
    return heads_for_lags(states, length, lags, heads=heads, temperature=temperature, boundary=boundary, **options)


@register("circuits")
def all_heads_bigram(
    states: int,
    heads: int,
    length: int,
    *,
    temperature: float = 40.0,
    boundary: str = "clamp",
    **options: Unpack[SimplifiedOptions],
) -> SimplifiedTransformer:
    """The bigram with every head on the previous token: another point of parameter space that computes it.

    A₁^(h)[l, max(l−1, 0)] = c, V₁^(h) = I for all heads, Q₂ = √c Σ_h (block h ← block 0), K₂ = √c Σ_h (block h ←
    block h): score c · heads · 1[x_{l−1} = x_{T−1}].

    Source: Varre, Yüce and Flammarion 2025, Appendix F, equation (30) (printed with A transposed).
    """
    integer("heads", heads, low=1)
    return heads_for_lags(states, length, (1,) * heads, temperature=temperature, boundary=boundary, **options)


@register("circuits")
def heads_for_lags(
    states: int,
    length: int,
    lags: Sequence[int],
    *,
    heads: int | None = None,
    temperature: float = 40.0,
    boundary: str = "clamp",
    **options: Unpack[SimplifiedOptions],
) -> SimplifiedTransformer:
    """A contiguous history with any assignment of heads to lags: head g copies the token lags[g] positions back.

    The lags used must be 1 … k, each by at least one head. Head g compares its block with the query's block that holds
    lag lags[g] − 1: the token itself for lag 1, else the first head with that lag. A lag carried by several heads
    counts once per head in the score; the matches are the same.

    Source: Varre, Yüce and Flammarion 2025, Appendix F.
    """
    number("temperature", temperature, low=0.0)
    used = tuple(integer("lag", lag, low=1) for lag in lags)
    whole = set(used) == set(range(1, len(set(used)) + 1))
    require(whole, "lags", used, "1 … k, each at least once", "for a set with gaps use lag_set_estimator")
    holder = {0: 0} | {lag: block for block, lag in reversed(list(enumerate(used, start=1)))}
    anchors = _anchors(boundary)
    keys = [look_back_keys(anchors + length, lag) for lag in used]
    circuit = matching_circuit(states, length, keys, [holder[lag - 1] for lag in used], temperature, anchors=anchors)
    return to_simplified(circuit, heads=heads, **options)


@register("circuits")
def lag_set_estimator(
    states: int,
    lags: Sequence[int],
    length: int,
    *,
    heads: int | None = None,
    temperature: float = 40.0,
    boundary: str = "clamp",
    **options: Unpack[SimplifiedOptions],
) -> SimplifiedTransformer:
    """The estimator that compares any set N of lags, for sequences of exactly `length` tokens.

    For each h in N one head with A₁[l, max(l−h, 0)] = c for l < T−1 and A₁[T−1, T−h] = c: as a query the last position
    looks one step less far back. V₁ = I and Q₂ = K₂ = √c Σ (block h ← block h).

    The last position is a key too, and there the query matches by construction: the limit is the clamped estimator
    with the last position always counted (`count_self=True`). `mask_self=True` keeps the last position from attending
    to itself; the limit is then the clamped estimator that leaves it out.

    Source: Varre, Yüce and Flammarion 2025, Appendix F.2, equation (36) (printed with A transposed and a factor
    missing); the self-match is not mentioned there.
    """
    number("temperature", temperature, low=0.0)
    used = tuple(sorted({integer("lag", lag, low=1, high=length) for lag in lags}))
    anchors = _anchors(boundary)
    tokens = anchors + length
    keys = [[*look_back_keys(tokens, lag)[:-1], tokens - lag] for lag in used]
    circuit = matching_circuit(states, length, keys, range(1, len(used) + 1), temperature, anchors=anchors)
    return to_simplified(circuit, heads=heads, **options)


def _anchors(boundary: str) -> int:
    """A reserved token before the sequence is an anchor of the circuit."""
    return int(choice("boundary", boundary, ("clamp", "bos")) == "bos")
