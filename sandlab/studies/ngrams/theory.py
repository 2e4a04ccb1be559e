"""Lemmas behind the stages: scores, suffixes, attention weights, derivatives, limits of counting, curvature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch.func import jacrev

from sandlab import figures
from sandlab.circuits.markov.suffix_tables import suffix_table
from sandlab.circuits.ngrams.counting import all_heads_bigram, ngram_estimator
from sandlab.lenses.curvature import hessian_spectrum
from sandlab.lenses.ngrams.jacobians import attention_jacobians
from sandlab.lenses.ngrams.theory import (
    covered,
    enumerate_world,
    exact_gradient,
    first_layer_weights,
    score_gradient,
    second_layer_bounds,
    stationarity_condition,
)
from sandlab.models.base import seeded
from sandlab.models.hooks import record
from sandlab.models.ngrams.simplified import SimplifiedTransformer
from sandlab.models.transformer import Transformer
from sandlab.random import rng
from sandlab.studies.claims import Above, Below, Claim, Equals
from sandlab.studies.ngrams.runs import SOURCE
from sandlab.studies.study import Lab, Outcome, study
from sandlab.worlds.base import Batch
from sandlab.worlds.markov.chain import MarkovChain
from sandlab.worlds.markov.lifted import lifted_chain, stationary_law
from sandlab.worlds.ngrams.estimators import CountingEstimator, ngram_name
from sandlab.worlds.ngrams.in_context import InContextNgrams


@dataclass(frozen=True)
class Settings:
    """Lengths at which counts are compared with their limits; temperatures of the points; seeds of sampled parts."""

    seeds: int = 6
    lengths: tuple[int, ...] = (100, 1000, 10_000, 100_000)
    temperatures: tuple[float, ...] = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0)
    sequences: int = 4096
    hessian_sequences: int = 512


@dataclass(frozen=True)
class SampledJob:
    seed: int
    settings: Settings


def sampled(job: SampledJob) -> dict[str, Any]:
    """What needs samples: errors of counts against their limits, losses of the points, curvature at the bigram."""
    return {
        "limits": _count_errors(job.settings.lengths, job.seed),
        "losses": _point_losses(job.settings, job.seed),
        "spectrum": _spectrum(job.settings.hessian_sequences, job.seed),
    }


@study(
    "ngrams/theory",
    title="The lemmas behind the stages, one by one",
    source=SOURCE,
    quick=Settings(),
    full=Settings(seeds=8, lengths=(100, 1000, 10_000, 100_000, 1_000_000), hessian_sequences=4096),
    claims=[
        Claim(
            "score-form",
            "For a model whose outputs are laws the gradient is E⟨p_θ − p, ∂ log p_θ⟩.",
            f"{SOURCE}, Lemma 3",
            "largest difference from automatic differentiation, over all sequences, with and without softmax",
            Below(1e-10),
            exact=True,
        ),
        Claim(
            "suffix-stationary",
            "A predictor that sees a suffix and says its exact law is a stationary point.",
            f"{SOURCE}, Proposition 3",
            "gradient norm by enumeration, one lag, binary chain of order 2",
            Below(1e-12),
            exact=True,
        ),
        Claim(
            "subset-stationary",
            "So is one that sees any other set of positions.",
            f"{SOURCE}, Remark C.2",
            "gradient norm by enumeration, lag 2 alone",
            Below(1e-12),
            exact=True,
        ),
        Claim(
            "not-optimal",
            "Neither is the optimum.",
            f"{SOURCE}, §3",
            "smaller of their largest differences from the law given the whole past",
            Above(0.05),
            exact=True,
        ),
        Claim(
            "first-layer",
            "A look-back head has weight e^c/(i − 1 + e^c) on its target and 1/(i − 1 + e^c) elsewhere.",
            f"{SOURCE}, Lemma B.1",
            "largest difference from the model's attention",
            Below(1e-12),
            exact=True,
        ),
        Claim(
            "second-layer",
            "The matching head's weights lie within e^{−c} of uniform attention to the matches.",
            f"{SOURCE}, Lemma B.1, with the softness of the first layer",
            "largest violation of the bounds, c = 12 and 16, orders 1 and 2",
            Equals(0.0, 0.0),
            exact=True,
        ),
        Claim(
            "attention-derivatives",
            "The derivatives of one attention head have the printed closed form.",
            f"{SOURCE}, Appendix G",
            "largest difference from automatic differentiation",
            Below(1e-10),
            exact=True,
        ),
        Claim(
            "stationary-law",
            "The lifted chain's law is stationary and its windows are shift invariant.",
            f"{SOURCE}, Appendix H",
            "largest |πᵀT − πᵀ|, 30 random kernels of order 2",
            Below(1e-12),
            exact=True,
        ),
        Claim(
            "counts-converge",
            "Counts of any set of lags converge to the chain's law given those lags.",
            f"{SOURCE}, Lemma H.5",
            "largest entry of |counts − law| averaged over visited contexts, longest length, worst set of lags up to 2",
            Below(0.02),
        ),
        Claim(
            "all-heads-stationary",
            "The bigram point with all heads on one lag is near-stationary in the same way.",
            f"{SOURCE}, Appendix F",
            "largest difference of its gradient from the closed form, on sequences that show every symbol",
            Below(1e-9),
            exact=True,
        ),
        Claim(
            "points-in-order",
            "At their best temperature the points' losses fall with the order.",
            f"{SOURCE}, §4.1",
            "smallest difference between the losses of one order and the next",
            Above(0.0),
        ),
        Claim(
            "saddle",
            "The bigram point of the trigram task has a direction of negative curvature.",
            "this laboratory; the source conjectures saddles",
            "smallest eigenvalue of the Hessian over the largest",
            Below(0.0),
        ),
    ],
)
def theory(settings: Settings, lab: Lab) -> Outcome:
    """Statements of the source that can be checked to rounding, and the few that need samples.

    Exact parts: the gradient in score form and the stationarity of suffix predictors (all sequences of 4 to 6 binary
    tokens), attention weights of both layers of the constructed points, derivatives of a head, the stationary law of
    the lifted chain, the gradient at the bigram with all heads on one lag.

    **In the figure.** Left: counts approach the law given their lags like 1/√T. Middle: loss of the constructed points
    against temperature (3 states, length 64, Dirichlet(½)); dotted: add-α estimators. Sharp attention makes the model
    sure of what it counted, and the loss rises; the best temperature is finite, and lower for longer contexts. Right:
    spectrum of the Hessian at the bigram point of a trigram task (2 states, length 12, c = 5): besides the many zeros
    of directions without effect there are negative eigenvalues, products of the second head's value with its key.
    """
    found = lab.map(sampled, [SampledJob(seed, settings) for seed in range(settings.seeds)], label="sampled parts")
    limits = np.stack([part["limits"] for part in found])
    losses = np.stack([part["losses"] for part in found])
    spectra = [part["spectrum"] for part in found]
    chain = MarkovChain.random(2, 2, seed=1)
    suffix, subset = (stationarity_condition(suffix_table(chain, lags), chain, 4, lags) for lags in ((1,), (2,)))
    best = losses.min(-1)
    measurements: dict[str, Any] = {
        "score-form": _score_form(),
        "suffix-stationary": suffix["gradient_norm"],
        "subset-stationary": subset["gradient_norm"],
        "not-optimal": min(suffix["oracle_gap"], subset["oracle_gap"]),
        "first-layer": _first_layer(),
        "second-layer": _second_layer(),
        "attention-derivatives": _head_derivatives(),
        "stationary-law": _stationary_residual(),
        "counts-converge": limits[:, :, -1].max(1),
        "all-heads-stationary": _all_heads(),
        "points-in-order": (best[:, :-1] - best[:, 1:]).min(-1),
        "saddle": [float(values[0] / values[-1]) for values in spectra],
    }
    return Outcome(measurements, {"theory": _draw(settings, limits, losses, spectra[0])})


LAG_SETS = ((), (1,), (2,), (1, 2))


def _score_form() -> float:
    batch = enumerate_world(InContextNgrams(2, 2, 6, 1.0))
    with seeded(0):
        models = [
            SimplifiedTransformer(vocab=2, length=6, floor=1e-300).double(),
            Transformer(vocab=2, length=6, width=8, layers=1, read="last", init_std=0.5).double(),
        ]
    pairs = [(exact_gradient(model, batch), score_gradient(model, batch)) for model in models]
    return max(float((direct[name] - scored[name]).abs().max()) for direct, scored in pairs for name in direct)


def _patterns(order: int, length: int, c: float, tokens: torch.Tensor) -> list[torch.Tensor]:
    model = ngram_estimator(3, order, length, temperature=c)
    with torch.no_grad(), record(model, "layers.*.attention.pattern") as cache:
        model(tokens)
    return [cache[f"layers.{layer}.attention.pattern"] for layer in (0, 1)]


def _first_layer(length: int = 12, c: float = 3.0) -> float:
    pattern = _patterns(2, length, c, torch.zeros(1, length, dtype=torch.int64))[0][0]
    worst = 0.0
    for lag in (1, 2):
        for row in range(lag, length):
            on, off = first_layer_weights(row, c)
            expected = torch.full((row + 1,), off, dtype=torch.float64)
            expected[row - lag] = on
            worst = max(worst, float((pattern[lag - 1, row, : row + 1] - expected).abs().max()))
    return worst


def _second_layer(length: int = 64) -> float:
    tokens = InContextNgrams(3, 2, length, 1.0).sample(64, rng=rng(0, "bounds")).inputs
    worst = 0.0
    for order in (1, 2):
        contexts = CountingEstimator.of_order(3, order, boundary="clamped").contexts(tokens)
        match = contexts[:, :-1] == contexts[:, -1:]
        for c in (12.0, 16.0):
            for row, hit in zip(_patterns(order, length, c, tokens)[1][:, 0, -1], match):
                if not hit.any():
                    continue
                low, high, elsewhere = second_layer_bounds(int(hit.sum()), order, length, c)
                beyond = (low - float(row[hit].min()), float(row[hit].max()) - high, float(row[~hit].max()) - elsewhere)
                worst = max(worst, *beyond)
    return worst


def _head_derivatives() -> float:
    generator = rng(0, "head")
    parts = [torch.randn(shape, dtype=torch.float64, generator=generator) for shape in ((3, 4), (3, 4), (5, 4), (6, 4))]

    def head(query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, stream: torch.Tensor) -> torch.Tensor:
        return value @ ((stream @ key.T @ (query @ stream[-1])).softmax(-1) @ stream)

    query, key, value, stream = parts
    found = attention_jacobians(stream, query, key, value)
    truth = jacrev(head, argnums=(0, 1, 2, 3))(*parts)
    names = ("query", "key", "value", "stream")
    return max(float((found[name] - part).abs().max()) for name, part in zip(names, truth))


def _stationary_residual() -> float:
    kernels = InContextNgrams(3, 2, 8, 0.5).sample(30, rng=rng(0, "kernels")).truth["kernels"]
    law = stationary_law(kernels)
    return float(((law.unsqueeze(1) @ lifted_chain(kernels)).squeeze(1) - law).abs().max())


def _count_errors(lengths: tuple[int, ...], seed: int) -> np.ndarray:
    """(set of lags, length): differences of the counts from the law given the same tokens."""
    chain = MarkovChain.random(3, 2, seed=seed, length=lengths[-1])
    tokens = chain.sample(1, rng=rng(seed, "long")).inputs
    table = np.zeros((len(LAG_SETS), len(lengths)))
    for place, lags in enumerate(LAG_SETS):
        limit = chain.conditional(lags)
        for column, length in enumerate(lengths):
            table[place, column] = _mean_error(tokens[0, :length], lags, limit)
    return table


def _mean_error(tokens: torch.Tensor, lags: tuple[int, ...], limit: torch.Tensor) -> float:
    """Largest difference of followers' frequencies from the limit in each context, averaged over its occurrences."""
    states, first = limit.shape[-1], max(lags, default=0)
    place = torch.arange(first, len(tokens))
    code = sum((tokens[place - lag] * states**power for power, lag in enumerate(lags)), torch.zeros_like(place))
    counts = torch.bincount(code * states + tokens[place], minlength=limit.numel()).reshape(limit.shape).double()
    total = counts.sum(-1)
    apart = (counts / total.clamp(min=1).unsqueeze(-1) - limit).abs().amax(-1)
    return float((total * apart).sum() / total.sum())


def _all_heads(states: int = 3, length: int = 200, c: float = 30.0, heads: int = 2) -> float:
    batch = InContextNgrams(states, 2, length, 1.0).sample(150, rng=rng(2, "all heads"))
    batch = batch[covered(batch.inputs, states, 1)]
    model = all_heads_bigram(states, heads, length, temperature=c)
    gradients = dict(
        zip(dict(model.named_parameters()), torch.autograd.grad(_loss(model, batch), [*model.parameters()]))
    )
    law = CountingEstimator.of_order(states, 1, boundary="clamped").last_probabilities(batch.inputs)
    token = F.one_hot(batch.inputs[:, -1], states).double()
    expected = torch.zeros_like(gradients["layers.1.attention.key.weight"])
    for h in range(1, heads + 1):
        block = c**0.5 * token.T @ (law - batch.targets[:, 0]) / len(batch)
        expected[h * states : (h + 1) * states, :states] = block
    gradients["layers.1.attention.key.weight"] = gradients["layers.1.attention.key.weight"] - expected
    return max(float(gradient.abs().max()) for gradient in gradients.values())


def _loss(model: torch.nn.Module, batch: Batch) -> torch.Tensor:
    return -(batch.targets * model(batch.inputs)).sum((-1, -2)).mean()


def _point_losses(settings: Settings, seed: int) -> np.ndarray:
    """(order, temperature): loss of the constructed points on three states, length 64."""
    batch = InContextNgrams(3, 2, 64, 0.5).sample(settings.sequences, rng=rng(seed, "losses"))
    rows = []
    for order in range(3):
        models = [ngram_estimator(3, order, 64, heads=2, temperature=c, floor=1e-8) for c in settings.temperatures]
        with torch.no_grad():
            rows.append([float(_loss(model, batch)) for model in models])
    return np.array(rows)


def _spectrum(sequences: int, seed: int) -> np.ndarray:
    batch = InContextNgrams(2, 2, 12, 1.0).sample(sequences, rng=rng(seed, "curvature"))
    model = ngram_estimator(2, 1, 12, heads=2, temperature=5.0, floor=1e-8)
    return hessian_spectrum(model, lambda made: _loss(made, batch), method="exact").values


def _draw(settings: Settings, limits: np.ndarray, losses: np.ndarray, spectrum: np.ndarray) -> Any:
    figure, axes = figures.new(columns=3, width=3.7, height=3.2, title="Counts, points and curvature")
    for place, lags in enumerate(LAG_SETS):
        figures.band(axes[0], settings.lengths, limits[:, place], label=CountingEstimator(3, lags).name, marker="o")
    guide = limits[:, -1, 0].mean() * np.sqrt(settings.lengths[0] / np.array(settings.lengths))
    axes[0].loglog(settings.lengths, guide, linestyle=":", color="#555555", label="1/√T")
    axes[0].set(title="counts → law given the lags", xlabel="length T", ylabel="mean of largest difference")
    axes[0].legend(fontsize=7)
    batch = InContextNgrams(3, 2, 64, 0.5).sample(settings.sequences, rng=rng(0, "losses"))
    for order in range(3):
        figures.band(axes[1], settings.temperatures, losses[:, order], label=ngram_name(order), marker="o")
        law = CountingEstimator.of_order(3, order, 0.5).last_probabilities(batch.inputs)
        axes[1].axhline(float(-(batch.targets[:, 0] * law.log()).sum(-1).mean()), color="#555555", linestyle=":")
    axes[1].set(title="loss of the points", xlabel="temperature c", ylabel="nats", ylim=(0.65, 1.1))
    axes[1].legend(fontsize=7)
    axes[2].plot(np.arange(len(spectrum)), spectrum, ".", markersize=3)
    axes[2].axhline(0.0, color="#555555", linewidth=0.8)
    axes[2].set(title="Hessian at the bigram point", xlabel="eigenvalue, in rising order", ylabel="value")
    axes[2].set_yscale("symlog", linthresh=1e-4)
    return figure
