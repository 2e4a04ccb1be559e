"""How far constructed n-gram points and counts are from what the lemmas about them say: 0 up to rounding, or a rate.

A point is a `SimplifiedTransformer` whose head h looks lags[h − 1] tokens back (`ngram_estimator`, `all_heads_bigram`).
Source: Varre, Yüce and Flammarion 2025, §4.1, Lemma B.1, Theorem 4.2, Lemma H.5.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Int
from torch import Tensor, nn

from sandlab.lenses.ngrams.theory import exact_gradient, first_layer_weights, score_gradient, second_layer_bounds
from sandlab.models.hooks import record
from sandlab.models.ngrams.simplified import SimplifiedTransformer
from sandlab.worlds.base import Batch, cross_entropy
from sandlab.worlds.markov.chain import MarkovChain
from sandlab.worlds.ngrams.estimators import CountingEstimator

__all__ = [
    "count_errors",
    "counting_error",
    "key_gradient_errors",
    "look_back_error",
    "matching_excess",
    "score_form_error",
]


def score_form_error(model: nn.Module, batch: Batch) -> float:
    """Largest difference of `score_gradient` from automatic differentiation over an enumerated world."""
    direct, scored = exact_gradient(model, batch), score_gradient(model, batch)
    return max(float((direct[name] - scored[name]).abs().max()) for name in direct)


def counting_error(model: SimplifiedTransformer, order: int, tokens: Int[Tensor, "example time"]) -> float:
    """Largest |p_θ − p̂| at the end, p̂ the clamped estimator, over the sequences in which something matches."""
    estimator = CountingEstimator.of_order(model.config.vocab, order, boundary="clamped")
    matched = estimator.last_counts(tokens).sum(-1) > 0
    with torch.no_grad():
        error = (model(tokens)[:, -1].exp() - estimator.last_probabilities(tokens)).abs().amax(-1)
    return float(error[matched].max())


def look_back_error(model: SimplifiedTransformer, lags: Sequence[int], temperature: float) -> float:
    """Largest difference of the first layer's attention from e^c/(i + e^c) on its target, 1/(i + e^c) elsewhere."""
    length = model.config.length
    pattern = _patterns(model, torch.zeros(1, length, dtype=torch.int64))[0][0]
    worst = 0.0
    for head, lag in zip(pattern, lags):
        for row in range(lag, length):
            on, off = first_layer_weights(row, temperature)
            expected = torch.full((row + 1,), off, dtype=torch.float64)
            expected[row - lag] = on
            worst = max(worst, float((head[row, : row + 1] - expected).abs().max()))
    return worst


def matching_excess(
    model: SimplifiedTransformer, order: int, tokens: Int[Tensor, "example time"], temperature: float
) -> float:
    """How far the last position's attention in layer 2 exceeds `second_layer_bounds` (0: nowhere)."""
    contexts = CountingEstimator.of_order(model.config.vocab, order, boundary="clamped").contexts(tokens)
    match = contexts[:, :-1] == contexts[:, -1:]
    worst = 0.0
    for row, hit in zip(_patterns(model, tokens)[1][:, 0, -1], match):
        if hit.any():
            low, high, elsewhere = second_layer_bounds(int(hit.sum()), order, tokens.shape[1], temperature)
            on, off = row[hit], row[~hit]
            worst = max(worst, low - float(on.min()), float(on.max()) - high, float(off.max()) - elsewhere)
    return worst


def key_gradient_errors(
    model: SimplifiedTransformer, batch: Batch, lags: Sequence[int], temperature: float
) -> tuple[float, float]:
    """Automatic differentiation at a point against its closed form, on sequences that show every symbol (`covered`).

    Only ∂L/∂K₂[h, 0] = √c E[e_{x_{T−lag(h)}}(p̂ − y)ᵀ] survives. Returns the largest difference from it, and the largest
    norm of the gradients of A₁, V₁ and Q₂, which should vanish.
    """
    states = model.config.vocab
    names, parameters = zip(*model.named_parameters())
    loss = cross_entropy(model(batch.inputs), batch)
    gradients = dict(zip(names, torch.autograd.grad(loss, parameters)))
    key = gradients.pop("layers.1.attention.key.weight")
    estimator = CountingEstimator.of_order(states, max(lags), boundary="clamped")
    gap = estimator.last_probabilities(batch.inputs) - batch.targets[:, 0]
    expected = torch.zeros_like(key)
    for head, lag in enumerate(lags, start=1):
        token = F.one_hot(batch.inputs[:, -lag], states).double()
        expected[head * states : (head + 1) * states, :states] = temperature**0.5 * token.T @ gap / len(batch)
    return float((key - expected).abs().max()), max(float(gradient.norm()) for gradient in gradients.values())


def count_errors(
    chain: MarkovChain, lags: tuple[int, ...], lengths: Sequence[int], *, rng: torch.Generator
) -> list[float]:
    """Difference of the counts from their limit, the chain's distribution given the tokens at the lags, by length.

    One long sequence is drawn and read up to each length. The largest difference of the frequencies of what followed is
    taken in each context and averaged over its occurrences.
    """
    tokens = chain.sample(1, rng=rng).inputs[0]
    limit = chain.conditional(lags)
    return [_count_error(tokens[:length], lags, limit) for length in lengths]


def _count_error(tokens: Tensor, lags: tuple[int, ...], limit: Tensor) -> float:
    states = limit.shape[-1]
    position = torch.arange(max(lags, default=0), len(tokens))
    code = sum((tokens[position - lag] * states**power for power, lag in enumerate(lags)), torch.zeros_like(position))
    counts = torch.bincount(code * states + tokens[position], minlength=limit.numel()).reshape(limit.shape).double()
    total = counts.sum(-1)
    error = (counts / total.clamp(min=1).unsqueeze(-1) - limit).abs().amax(-1)
    return float((total * error).sum() / total.sum())


def _patterns(model: SimplifiedTransformer, tokens: Tensor) -> list[Tensor]:
    """Attention of both layers (example, head, query, key)."""
    with torch.no_grad(), record(model, "layers.*.attention.pattern") as cache:
        model(tokens)
    return [cache[f"layers.{layer}.attention.pattern"] for layer in (0, 1)]
