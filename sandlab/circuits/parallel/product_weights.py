"""What a parallel decoder can express, as weights: every chain whose transitions are products, and nothing else.

Two blocks. The stream has coordinates tok (|Ω|), pos (N), joint (N|Ω|), sum (N|Ω|) and out (|Ω|). The first network
writes joint_{(j,a)} = 1[this is position j and its token is a]; a head that attends uniformly, times N, collects
sum_{(i,a)} = 1[τ_i = a] at every position; the second network has a unit for each pair (state s, position j) that is 1
exactly when τ = s at position j, and writes log p_j(· | s) into out, which the readout shows.
"""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float, Int

from sandlab.errors import BadInput, integer, require
from sandlab.models.base import seeded
from sandlab.models.parallel.presets import pd_transformer
from sandlab.models.transformer import MLPBlock, Transformer
from sandlab.registry import register
from sandlab.worlds.parallel.finite import FiniteLaw, enumerate_states

__all__ = ["deterministic_map", "gibbs_site_step", "nearest_product_chain", "product_chain"]

SURE = 200.0
"""Logit of a token that is certain: e^(−200) is far below what float64 adds to 1."""


@register("circuits")
def product_chain(probs: Float[np.ndarray, "state site symbol"]) -> Transformer:
    """A transformer (float64) whose parallel sampling step is the chain P(s → τ) = Π_j p_j(τ_j | s).

    probs   p_j(a | s), strictly positive, for all states s of Ω^N in lexicographic order. Li 2024, Prop. 4.1.3
    """
    table = np.asarray(probs, dtype=float)
    require(table.ndim == 3, "probs", table.shape, "an array (state, site, symbol)")
    require(bool((table > 0).all()), "probs", "a zero", "strictly positive: a softmax is", "use deterministic_map")
    require(bool(np.allclose(table.sum(-1), 1)), "probs", "rows of another sum", "distributions")
    return _from_logits(np.log(table))


@register("circuits")
def deterministic_map(images: Int[np.ndarray, "state site"], symbols: int, *, repeats: int = 1) -> Transformer:
    """A transformer whose likeliest tokens are f(τ), for any f: Ω^N → Ω^N; with `repeats`, f applied so many times.

    images   f(s) of all states in lexicographic order. Li 2024, Prop. 4.1.2
    """
    table = np.asarray(images)
    integer("repeats", repeats, low=1)
    states = enumerate_states(table.shape[1], symbols)
    require(len(table) == len(states), "images", len(table), f"one row for each of the {len(states)} states")
    place = symbols ** np.arange(table.shape[1])[::-1]
    result = states
    for _ in range(repeats):
        result = table[result @ place]
    return _from_logits(SURE * np.eye(symbols)[result])


@register("circuits")
def gibbs_site_step(law: FiniteLaw, site: int) -> Transformer:
    """One Gibbs update of one site: a product, since all other sites are copied (up to probabilities of e^(−200)).

    Which site is updated must be told from outside: with a random site the transition is a mixture, and no product.
    """
    integer("site", site, low=0, high=law.sites - 1)
    given = law.site_conditionals()[:, site]
    if (given <= 0).any():
        raise BadInput("the law must be strictly positive: the logarithm of each conditional is a weight")
    logits = SURE * np.eye(law.symbols)[law.states]
    logits[:, site] = np.log(given)
    return _from_logits(logits)


def nearest_product_chain(matrix: Float[np.ndarray, "state state"], symbols: int) -> np.ndarray:
    """The product chain nearest to any chain, row by row in KL(row ‖ product): the marginals of each site.

    Its distance is the row's total correlation. Returns p_j(a | s), shape (state, site, symbol).
    """
    sites = FiniteLaw(symbols, matrix[0]).sites
    onehot = np.eye(symbols)[enumerate_states(sites, symbols)]
    return np.einsum("st,tja->sja", matrix, onehot)


def _from_logits(logits: Float[np.ndarray, "state site symbol"]) -> Transformer:
    count, sites, symbols = logits.shape
    states = enumerate_states(sites, symbols)
    require(len(states) == count, "states", count, f"{len(states)} for {sites} sites of {symbols} symbols")
    pairs = sites * symbols
    tok, pos = slice(0, symbols), slice(symbols, symbols + sites)
    joint, total = pos.stop, pos.stop + pairs
    out, width = total + pairs, total + pairs + symbols
    with seeded(0):
        model = pd_transformer(
            symbols, sites, width=width, head_width=pairs, mlp_width=max(pairs, sites * count)
        ).double()
    first, second = model.layers
    with torch.no_grad():
        for weight in model.parameters():
            weight.zero_()
        model.embedding.weight[:, tok] = torch.eye(symbols, dtype=torch.float64)
        model.position.weight[:, pos] = torch.eye(sites, dtype=torch.float64)
        unit = torch.arange(pairs)
        first.mlp.up_proj.weight[unit, symbols + unit // symbols] = 1
        first.mlp.up_proj.weight[unit, unit % symbols] = 1
        _bias(first.mlp.up_proj)[unit] = -1
        first.mlp.down_proj.weight[joint + unit, unit] = 1
        second.attention.value.weight[unit, joint + unit] = 1
        _weight(second.attention.output)[total + unit, unit] = sites
        _recognise(second.mlp, states, logits, symbols, total, out)
        model.unembed.weight[:, out:] = torch.eye(symbols, dtype=torch.float64)
    return model


def _recognise(network: MLPBlock, states: np.ndarray, logits: np.ndarray, symbols: int, total: int, out: int) -> None:
    """Units (s, j): ReLU(Σ_i sum_{(i, s_i)} + pos_j − N), written to `out` with the logits of state s at site j."""
    count, sites = states.shape
    up, unit = network.up_proj.weight, np.arange(count * sites)
    for site in range(sites):
        up[unit, total + site * symbols + states[unit // sites, site]] = 1
    up[unit, symbols + unit % sites] = 1
    _bias(network.up_proj)[: len(unit)] = -float(sites)
    table = torch.as_tensor(logits.reshape(count * sites, symbols).T.copy())
    network.down_proj.weight[out:, : count * sites] = table


def _bias(layer: torch.nn.Module) -> torch.Tensor:
    assert isinstance(layer.bias, torch.Tensor)
    return layer.bias


def _weight(layer: torch.nn.Module) -> torch.Tensor:
    assert isinstance(layer.weight, torch.Tensor)
    return layer.weight
