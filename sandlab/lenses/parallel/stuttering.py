"""Repeats in translations, and what attention does where they happen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from sandlab.learning.parallel.refinement import stutters
from sandlab.models.hooks import record
from sandlab.models.parallel.encoder_decoder import EncoderDecoder
from sandlab.registry import register
from sandlab.worlds.parallel.translation import RESERVED

__all__ = ["StutterRate", "attention_dependence", "decoder_patterns", "stutter_rate"]


@dataclass(frozen=True)
class StutterRate:
    """Share of outputs, and of adjacent word pairs, with a repeat that the reference does not have."""

    sequences: float
    pairs: float


@register("lenses")
def stutter_rate(outputs: Int[Tensor, "n time"], references: Int[Tensor, "n other"]) -> StutterRate:
    """How often two consecutive words repeat in the output but not in the reference (Li 2024, §4.2.3)."""
    legitimate = torch.where(stutters(references), references, -1)
    known = (outputs.unsqueeze(-1) == legitimate.unsqueeze(1)).any(-1)
    wrong = stutters(outputs) & ~known
    adjacent = (outputs[:, 1:] >= RESERVED) & (outputs[:, :-1] >= RESERVED)
    pairs = float(wrong.sum()) / max(1, int(adjacent.sum()))
    return StutterRate(float(wrong.any(1).double().mean()), pairs)


def decoder_patterns(
    model: EncoderDecoder, source: Int[Tensor, "n source"], fed: Int[Tensor, "n target"]
) -> dict[str, Float[Tensor, "n head query _key"]]:
    """Self- and cross-attention of the last decoder layer when `fed` is refined; key 0 of cross is the length token."""
    last = len(model.decoder) - 1
    names = {"self": f"decoder.{last}.attention.pattern", "cross": f"decoder.{last}.cross.pattern"}
    with torch.no_grad(), record(model, *names.values()) as cache:
        model.decode(model.encode(source), fed)
    return {short: cache[name] for short, name in names.items()}


@register("lenses")
def attention_dependence(
    patterns: Mapping[str, Float[Tensor, "n head query _key"]], outputs: Int[Tensor, "n target"]
) -> dict[str, dict[str, float]]:
    """Attention between adjacent output positions, apart for stuttering pairs ("yes") and others ("no").

    self/{min,avg,max}     over heads, attention of each to the other, mean of both directions
    self/top-k             share of pairs of which one has the other among its k largest keys (k = 1, 2), any head
    cross/tv-…, cos-…      distance of the two positions' distributions over source tokens: ½‖a − b‖₁, 1 − cosine
    cross/top-k            share of pairs whose k largest source tokens intersect, mean over heads

    Source: Li 2024, §4.2.4, Tables 4.4 and 4.5.
    """
    adjacent = (outputs[:, 1:] >= RESERVED) & (outputs[:, :-1] >= RESERVED)
    repeats = stutters(outputs)[:, 1:]
    measured = {**_self_statistics(patterns["self"]), **_cross_statistics(patterns["cross"])}
    groups = {"yes": adjacent & repeats, "no": adjacent & ~repeats}
    return {name: _means(measured, chosen) for name, chosen in groups.items()}


def _means(measured: Mapping[str, Tensor], chosen: Bool[Tensor, "n pair"]) -> dict[str, float]:
    found = {name: float(value[chosen].double().mean()) for name, value in measured.items()}
    spread = {
        f"{name} sd": float(value[chosen].double().std(correction=0))
        for name, value in measured.items()
        if "top" not in name
    }
    return {**found, **spread, "pairs": float(chosen.sum())}


def _over_heads(name: str, values: Float[Tensor, "n head pair"]) -> dict[str, Tensor]:
    return {f"{name}min": values.amin(1), f"{name}avg": values.mean(1), f"{name}max": values.amax(1)}


def _self_statistics(pattern: Float[Tensor, "n head query key"]) -> dict[str, Float[Tensor, "n pair"]]:
    ahead, back = pattern.diagonal(1, -2, -1), pattern.diagonal(-1, -2, -1)
    found = _over_heads("self/", (ahead + back) / 2)
    rank = pattern.argsort(-1, descending=True).argsort(-1)
    nearest = torch.minimum(rank.diagonal(1, -2, -1), rank.diagonal(-1, -2, -1))
    return {**found, **{f"self/top-{k}": (nearest < k).double().mean(1) for k in (1, 2)}}


def _cross_statistics(pattern: Float[Tensor, "n head query source"]) -> dict[str, Float[Tensor, "n pair"]]:
    left, right = pattern[..., :-1, :], pattern[..., 1:, :]
    apart = 0.5 * (left - right).abs().sum(-1)
    cosine = 1 - torch.nn.functional.cosine_similarity(left, right, dim=-1)
    found = {**_over_heads("cross/tv-", apart), **_over_heads("cross/cos-", cosine)}
    for k in (1, 2):
        first, second = (each.topk(k, -1).indices for each in (left, right))
        shared = (first.unsqueeze(-1) == second.unsqueeze(-2)).flatten(-2).any(-1)
        found[f"cross/top-{k}"] = shared.double().mean(1)
    return found
