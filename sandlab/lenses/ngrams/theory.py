"""Why sub-n-grams slow training down: population gradients at the weights that compute a counting estimator.

Exact sums over all sequences where there are few, Monte Carlo estimates with error bars elsewhere, and the closed form
of the one block of the gradient that survives as the temperature grows.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.func import functional_call, jacrev, vmap

from sandlab.errors import integer, require
from sandlab.lenses.gradients import gradient_norms
from sandlab.lenses.predictions import log_predictions
from sandlab.registry import register
from sandlab.worlds.base import Batch, World
from sandlab.worlds.markov.chain import MarkovChain, context_indices
from sandlab.worlds.ngrams.estimators import CountingEstimator
from sandlab.worlds.ngrams.in_context import InContextNgrams

__all__ = [
    "GradientEstimate",
    "KeyGradient",
    "Stationarity",
    "covered",
    "enumerate_world",
    "exact_gradient",
    "exact_gradient_norm",
    "first_layer_weights",
    "key_gradient",
    "monte_carlo_gradient",
    "population_gradient",
    "random_like",
    "score_gradient",
    "second_layer_bounds",
    "stationarity_condition",
]


def enumerate_world(world: MarkovChain | InContextNgrams) -> Batch:
    """Every sequence of the world with its exact next-token distribution; truth["probability"] sums to 1.

    For in-context n-grams the kernel is integrated out: the loss is linear in the soft target, which may therefore be
    replaced by its mean given the sequence, the Bayes prediction.
    """
    states, length = world.vocab, world.length
    count = states**length
    require(count <= 2**20, "length", length, f"short enough for 2^20 sequences, not {count}")
    tokens = torch.cartesian_prod(*[torch.arange(states)] * length).reshape(count, length)
    if isinstance(world, MarkovChain):
        logs = world.oracle(Batch(tokens, tokens, torch.ones_like(tokens, dtype=torch.bool)))
        first = world.marginal() if world.start == "stationary" else torch.full((states,), 1 / states).double()
    else:
        require(world.start == "uniform", "start", world.start, "'uniform'", "only there the oracle is exact")
        logs = CountingEstimator(states, world.parents, world.concentration)(tokens)
        first = torch.full((states,), 1 / states, dtype=torch.float64)
    steps = logs[:, :-1].gather(-1, tokens[:, 1:].unsqueeze(-1)).squeeze(-1)
    probability = (first.log()[tokens[:, 0]] + steps.sum(-1)).exp()
    mask = torch.ones(count, 1, dtype=torch.bool)
    return Batch(tokens, logs[:, -1:].exp(), mask, {"probability": probability})


@register("lenses")
def exact_gradient(model: nn.Module, batch: Batch) -> dict[str, Tensor]:
    """∂L/∂θ of the population loss L = −Σ_x P(x) Σ_s p(s|x) log p_θ(s|x), by parameter, over an enumerated world."""
    names, parameters = zip(*model.named_parameters())
    gradients = torch.autograd.grad(_loss(model, batch), parameters)
    return dict(zip(names, gradients))


def exact_gradient_norm(model: nn.Module, batch: Batch) -> float:
    """‖∂L/∂θ‖ of the population loss over an enumerated world, all parameters together."""
    return math.sqrt(sum(float(gradient.square().sum()) for gradient in exact_gradient(model, batch).values()))


def score_gradient(model: nn.Module, batch: Batch) -> dict[str, Tensor]:
    """The same gradient from the score: ∂L = E⟨p_θ(x) − p(·|x), ∂ log p_θ(x)⟩.

    True for every model with values in the simplex, since Σ_s p_θ ∂ log p_θ = 0. (Lemma 3 of Varre, Yüce & Flammarion.)
    """
    names, parameters = zip(*model.named_parameters())
    logs = log_predictions(model, batch)
    gap = (logs.exp() - batch.targets).detach()
    surrogate = (_weights(batch) * torch.where(gap != 0, gap * logs, 0.0).sum((-1, -2))).sum()
    return dict(zip(names, torch.autograd.grad(surrogate, parameters)))


@dataclass(frozen=True)
class Stationarity:
    """How far a model is from the sufficient condition for a stationary point that sees only part of the past.

    score_spread    how much ∂ log p_θ(x) varies among sequences with the same tokens at the lags (0: not at all)
    prediction_gap  max |p_θ(x) − p_τ(·|those tokens)|
    gradient_norm   ‖∇L‖ of the population loss: 0 when both are 0, although p_θ differs from p_τ(·|x)
    oracle_gap      max |p_θ(x) − p_τ(·|x)|: above 0, the point is not the optimum
    """

    score_spread: float
    prediction_gap: float
    gradient_norm: float
    oracle_gap: float


@register("lenses")
def stationarity_condition(model: nn.Module, chain: MarkovChain, length: int, lags: tuple[int, ...]) -> Stationarity:
    """Whether a model that sees only the tokens at `lags` meets the sufficient condition for a stationary point.

    Computed by enumeration on one fixed chain with a stationary start.
    Source: Varre, Yüce and Flammarion 2025, Proposition 3 and Remark C.2.
    """
    world = MarkovChain(chain.kernel, length=length)
    batch = enumerate_world(world)
    rows = context_indices(batch.inputs, world.states, tuple(lags), length)[:, -1]
    limited = world.conditional(tuple(lags))[rows]
    probs = log_predictions(model, batch).exp().detach()[:, 0]
    scores = _scores(model, batch.inputs)
    spread = 0.0
    for row in rows.unique():
        same = scores[rows == row]
        spread = max(spread, float((same.amax(0) - same.amin(0)).max()))
    return Stationarity(
        score_spread=spread,
        prediction_gap=float((probs - limited).abs().max()),
        gradient_norm=exact_gradient_norm(model, batch),
        oracle_gap=float((probs - batch.targets[:, 0]).abs().max()),
    )


@dataclass(frozen=True)
class GradientEstimate:
    """A Monte Carlo estimate of a population gradient, and how much of its norm is sampling noise.

    mean     parameter → mean gradient
    norm     parameter (and "all") → ‖mean‖, which noise alone makes positive
    noise    parameter → the norm that pure noise would show, √(Σ variance / chunks)
    squared  parameter → unbiased estimate of ‖E gradient‖² (inner products of different chunks)
    error    parameter → standard error of `squared` (jackknife over chunks)
    """

    mean: dict[str, Tensor]
    norm: dict[str, float]
    noise: dict[str, float]
    squared: dict[str, float]
    error: dict[str, float]


@register("lenses")
def monte_carlo_gradient(
    model: nn.Module, world: World, examples: int, *, rng: torch.Generator, chunk: int = 1024
) -> GradientEstimate:
    """The population gradient from fresh samples of a world with soft targets, chunk by chunk, with error bars."""
    integer("examples", examples, low=2 * chunk)
    names, parameters = zip(*model.named_parameters())
    rows: dict[str, list[Tensor]] = {name: [] for name in names}
    for _ in range(examples // chunk):
        gradients = torch.autograd.grad(_loss(model, world.sample(chunk, rng=rng)), parameters)
        for name, gradient in zip(names, gradients):
            rows[name].append(gradient.double())
    stacked = {name: torch.stack(parts) for name, parts in rows.items()}
    flat = {name: value.flatten(1) for name, value in stacked.items()}
    flat["all"] = torch.cat(list(flat.values()), 1)
    norms = {name: float(value.mean(0).norm()) for name, value in flat.items()}
    noise = {name: float((value.var(0).sum() / len(value)).sqrt()) for name, value in flat.items()}
    squares = {name: _squared_norm(value) for name, value in flat.items()}
    return GradientEstimate(
        {name: value.mean(0) for name, value in stacked.items()},
        norms,
        noise,
        {name: square for name, (square, _) in squares.items()},
        {name: error for name, (_, error) in squares.items()},
    )


def population_gradient(model: nn.Module, batch: Batch) -> np.ndarray:
    """‖E gradient‖ of each member, free of the noise of the batch: √⟨g₁, g₂⟩ of the gradients of two halves (0 if < 0).

    ⟨g₁, g₂⟩ = 2 ‖(g₁ + g₂)/2‖² − (‖g₁‖² + ‖g₂‖²)/2.
    """
    half = len(batch) // 2
    parts = (batch[: 2 * half], batch[:half], batch[half : 2 * half])
    whole, first, second = (torch.as_tensor(gradient_norms(model, part)["all"]).square() for part in parts)
    return (2 * whole - (first + second) / 2).clamp(min=0.0).sqrt().cpu().numpy()


def covered(tokens: Int[Tensor, "example time"], states: int, order: int) -> Bool[Tensor, "example"]:
    """Sequences in which every symbol occurs after an earlier occurrence of the last `order` tokens."""
    counts = CountingEstimator.of_order(states, order, boundary="clamped").last_counts(tokens)
    return (counts > 0).all(-1)


@dataclass(frozen=True)
class KeyGradient:
    """The block of the gradient that survives at an n-gram point, divided by √c, averaged over sequences.

    blocks     (order, S, S): block h is E[e_{x_{T−h}} (p̂ − y)ᵀ], the gradient of K₂ at rows h, columns 0
    errors     standard errors of the entries
    norm       of all blocks; `noise`: the norm that sampling noise alone would show
    diagonal   mean diagonal entry of the first block (what is left of the norm when noise averages out), with
               `diagonal_error`
    unseen     mean true mass of symbols that the estimator has never seen after the context
    """

    blocks: Float[Tensor, "order states states"]
    errors: Float[Tensor, "order states states"]
    norm: float
    noise: float
    diagonal: float
    diagonal_error: float
    unseen: float


@register("lenses")
def key_gradient(
    world: InContextNgrams, order: int, examples: int, *, rng: torch.Generator, chunk: int = 8192
) -> KeyGradient:
    """∂L/∂K₂ at the order-k point in closed form: √c · E[e_{x_{T−h}} (p̂_k − y)ᵀ] in block (h, 0), h = 1 … k, else 0.

    Exact as c → ∞ on sequences whose every symbol occurs after a match; A₁, V₁ and Q₂ have gradient 0 there. The blocks
    fall like 1/T: the bias of counting. Averaged over `examples` fresh sequences, with sampling errors.

    Source: Varre, Yüce and Flammarion 2025, Theorem 4.2 and equation (20); the rate printed there is exponential.
    """
    integer("order", order, low=1, high=world.length)
    estimator = CountingEstimator.of_order(world.states, order, boundary="clamped")
    require(world.targets == "probs", "targets", world.targets, "'probs'")
    total = squares = torch.zeros(order, world.states, world.states, dtype=torch.float64)
    diagonal, unseen, drawn = [], 0.0, 0
    for size in _sizes(examples, chunk):
        batch = world.sample(size, rng=rng)
        counts = estimator.last_counts(batch.inputs)
        total_count = counts.sum(-1, keepdim=True)
        probs = torch.where(total_count > 0, counts / total_count.clamp(min=1), 1 / world.states)
        gap = probs - batch.targets[:, -1]
        last = F.one_hot(batch.inputs[:, -order:].flip(-1), world.states).double()
        total = total + torch.einsum("nha,nb->hab", last, gap).cpu()
        squares = squares + torch.einsum("nha,nb->hab", last, gap.square()).cpu()
        diagonal.append((last[:, 0] * gap).sum(-1).cpu() / world.states)
        unseen += float((batch.targets[:, -1] * (counts == 0)).sum())
        drawn += size
    first = torch.cat(diagonal)
    mean = total / drawn
    errors = ((squares / drawn - mean.square()) / drawn).clamp(min=0.0).sqrt()
    return KeyGradient(
        mean,
        errors,
        float(mean.norm()),
        float(errors.norm()),
        float(first.mean()),
        float(first.std() / math.sqrt(drawn)),
        unseen / drawn,
    )


def first_layer_weights(row: int, temperature: float) -> tuple[float, float]:
    """Weights of a look-back head at a position with `row` others before it: on its target, and on each of the others.

    e^c/(row + e^c) and 1/(row + e^c), rows counted from 0. (Lemma B.1, first layer.)
    """
    rest = row * math.exp(-temperature)
    return 1 / (1 + rest), math.exp(-temperature) / (1 + rest)


def second_layer_bounds(matches: int, order: int, length: int, temperature: float) -> tuple[float, float, float]:
    """Bounds on the last position's weights at the order-k point: lowest and highest on a match, highest elsewhere.

    With hard copies a match scores ck and any other key at most c(k − 1). Soft copies keep at least 1 − s of the right
    token, s = T e^{−c}: every score is off by at most ω = 2cks, so a match has weight within e^{±2ω}/|M| of hard
    attention, less (T − |M|)/|M|² e^{−c+2ω}, and another key at most e^{−c+2ω}/|M|. (Lemma B.1, second layer.)
    """
    integer("matches", matches, low=1, high=length)
    blur = 2 * temperature * order * length * math.exp(-temperature)
    elsewhere = math.exp(-temperature + 2 * blur) / matches
    high = math.exp(2 * blur) / matches
    low = math.exp(-2 * blur) / matches - (length - matches) / matches * elsewhere
    return low, high, elsewhere


def random_like(model: nn.Module, *, rng: torch.Generator) -> nn.Module:
    """A copy of the model at a random point: every parameter Gaussian, with the norm of the original's."""
    other = copy.deepcopy(model)
    with torch.no_grad():
        for parameter in other.parameters():
            drawn = torch.randn(parameter.shape, generator=rng, device=rng.device, dtype=torch.float64)
            parameter.copy_(drawn.to(parameter) * parameter.norm() / drawn.norm().clamp(min=1e-300).to(parameter))
    return other


def _loss(model: nn.Module, batch: Batch) -> Tensor:
    logs = log_predictions(model, batch)
    # 0 · log 0 = 0: an impossible symbol costs nothing.
    each = -torch.where(batch.targets > 0, batch.targets * logs, 0.0).sum((-1, -2))
    return (_weights(batch) * each).sum()


def _weights(batch: Batch) -> Tensor:
    even = torch.full((len(batch),), 1 / len(batch), dtype=torch.float64, device=batch.inputs.device)
    return batch.truth.get("probability", even)


def _scores(model: nn.Module, tokens: Tensor) -> Float[Tensor, "example entry"]:
    """∂ log p_θ(s|x) for every sequence, the entries of all symbols and parameters in one row."""
    parameters = {name: value.detach() for name, value in model.named_parameters()}

    def one(values: dict[str, Tensor], sequence: Tensor) -> Tensor:
        return functional_call(model, values, (sequence.unsqueeze(0),))[0, -1].log_softmax(-1)

    jacobians = vmap(jacrev(one), in_dims=(None, 0))(parameters, tokens)
    return torch.cat([part.flatten(1) for part in jacobians.values()], 1)


def _squared_norm(rows: Float[Tensor, "chunk entry"]) -> tuple[float, float]:
    """Unbiased ‖mean‖² from products of different chunks, and its jackknife standard error."""
    count = len(rows)
    total, squares = rows.sum(0), rows.square().sum(-1)

    def without(index: int | None) -> float:
        kept = total if index is None else total - rows[index]
        diagonal = squares.sum() if index is None else squares.sum() - squares[index]
        size = count if index is None else count - 1
        return float((kept.square().sum() - diagonal) / (size * (size - 1)))

    if count < 3:
        return without(None), math.inf
    left_out = torch.tensor([without(index) for index in range(count)], dtype=torch.float64)
    error = math.sqrt((count - 1) / count * float((left_out - left_out.mean()).square().sum()))
    return without(None), error


def _sizes(examples: int, chunk: int) -> Iterator[int]:
    integer("examples", examples, low=2)
    whole, rest = divmod(examples, chunk)
    return itertools.chain([chunk] * whole, [rest] if rest else [])
