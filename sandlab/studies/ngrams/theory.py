"""The lemmas behind the stages, one by one.

Statements of the source that can be checked to rounding, and the few that need samples.

Exact parts: the gradient in score form and the stationarity of suffix predictors (all sequences of 4 to 6 binary
tokens), attention weights of both layers of the constructed points, derivatives of a head, the stationary distribution
of the lifted chain, the gradient at the bigram with all heads on one lag.

**In the figure.** Left: counts approach the distribution given their lags like 1/√T. Middle: loss of the constructed
points against temperature (3 states, length 64, Dirichlet(½)); dotted: add-α estimators. Sharp attention makes the
model sure of what it counted, and the loss increases; the best temperature is finite, and lower for longer contexts.
Right: spectrum of the Hessian at the bigram point of a trigram task (2 states, length 12, c = 5): besides the many
zeros of directions without effect there are negative eigenvalues, products of the second head's value with its key.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass

import numpy as np
import torch
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.circuits.markov.suffix_tables import suffix_table
from sandlab.circuits.ngrams.counting import all_heads_bigram, ngram_estimator
from sandlab.lenses.curvature import hessian_spectrum
from sandlab.lenses.ngrams import jacobians, lemmas, theory
from sandlab.models.base import seeded
from sandlab.models.ngrams.simplified import SimplifiedTransformer
from sandlab.models.transformer import Transformer
from sandlab.random import rng
from sandlab.studies.claims import Exact, Mean
from sandlab.studies.ngrams._shared import SOURCE, Lemmas, estimator_losses
from sandlab.studies.study import Lab, Study
from sandlab.worlds.base import Batch, cross_entropy
from sandlab.worlds.markov.chain import MarkovChain
from sandlab.worlds.markov.lifted import lifted_chain, stationary_distribution
from sandlab.worlds.ngrams.estimators import CountingEstimator, ngram_name
from sandlab.worlds.ngrams.in_context import InContextNgrams

LAG_SETS = ((), (1,), (2,), (1, 2))
POINTS = InContextNgrams(states=3, order=2, length=64, concentration=0.5)  # the task of the points' losses


@dataclass(frozen=True)
class Settings:
    """Lengths at which counts are compared with their limits; temperatures of the points; sampled sequences."""

    seeds: int = 6
    lengths: tuple[int, ...] = (100, 1000, 10_000, 100_000)
    temperatures: tuple[float, ...] = (1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0)
    sequences: int = 4096
    hessian_sequences: int = 512


study = Study(
    "ngrams/theory",
    title="The lemmas behind the stages, one by one",
    source=SOURCE,
    quick=Settings(),
    full=Settings(seeds=8, lengths=(100, 1000, 10_000, 100_000, 1_000_000), hessian_sequences=4096),
)
lemma = Lemmas(study)


@dataclass(frozen=True)
class Sampled:
    """What needs samples, of one seed.

    limits     differences of the counts from the distribution given the same tokens (set of lags, length)
    losses     of the constructed points (order, temperature)
    spectrum   of the Hessian at the bigram point
    """

    limits: np.ndarray
    losses: np.ndarray
    spectrum: np.ndarray


@dataclass(frozen=True)
class Results:
    """What was sampled (seed, …), the losses of the estimators, and the numbers of the exact lemmas."""

    settings: Settings
    limits: np.ndarray
    losses: np.ndarray
    spectra: np.ndarray
    levels: dict[str, float]
    exact: dict[str, float]


@dataclass(frozen=True)
class SampledJob:
    seed: int
    settings: Settings


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    jobs = [SampledJob(seed, settings) for seed in range(settings.seeds)]
    sampled = lab.map(sample, jobs, label="sampled parts")
    limits, losses, spectra = (np.stack(arrays) for arrays in zip(*map(astuple, sampled)))
    return Results(settings, limits, losses, spectra, estimator_losses(POINTS), lemma.numbers())


def sample(job: SampledJob) -> Sampled:
    settings, seed = job.settings, job.seed
    chain = MarkovChain.random(3, 2, seed=seed, length=settings.lengths[-1])
    limits = [lemmas.count_errors(chain, lags, settings.lengths, rng=rng(seed, "long")) for lags in LAG_SETS]
    batch = POINTS.sample(settings.sequences, rng=rng(seed, "losses"))
    with torch.no_grad():
        losses = [[point_loss(order, c, batch) for c in settings.temperatures] for order in range(3)]
    task = InContextNgrams(2, 2, 12, 1.0).sample(settings.hessian_sequences, rng=rng(seed, "curvature"))
    bigram = ngram_estimator(2, 1, 12, heads=2, temperature=5.0, floor=1e-8)
    spectrum = hessian_spectrum(bigram, lambda made: cross_entropy(made(task.inputs), task), method="exact")
    return Sampled(np.array(limits), np.array(losses), spectrum.values)


def point_loss(order: int, temperature: float, batch: Batch) -> float:
    model = ngram_estimator(3, order, POINTS.length, heads=2, temperature=temperature, floor=1e-8)
    return float(cross_entropy(model(batch.inputs), batch))


def stationarity(lags: tuple[int, ...]) -> theory.Stationarity:
    """Of the predictor that sees the tokens at `lags` of a binary chain of order 2, by enumeration."""
    chain = MarkovChain.random(2, 2, seed=1)
    return theory.stationarity_condition(suffix_table(chain, lags), chain, 4, lags)


@lemma(Exact(below=1e-10), at="Lemma 3", paper="0")
def score_form() -> float:
    """For a model whose outputs are distributions the gradient is E⟨p_θ − p, ∂ log p_θ⟩.

    Largest difference from automatic differentiation, over all sequences, with and without softmax.
    """
    batch = theory.enumerate_world(InContextNgrams(2, 2, 6, 1.0))
    with seeded(0):
        simplified = SimplifiedTransformer(vocab=2, length=6, floor=1e-300).double()
        softmax = Transformer(vocab=2, length=6, width=8, layers=1, read="last", init_std=0.5).double()
    return max(lemmas.score_form_error(model, batch) for model in (simplified, softmax))


@lemma(Exact(below=1e-12), at="Proposition 3", paper="0")
def suffix_stationary() -> float:
    """A predictor that sees a suffix and outputs its exact distribution is a stationary point.

    Gradient norm by enumeration, one lag, binary chain of order 2.
    """
    return stationarity((1,)).gradient_norm


@lemma(Exact(below=1e-12), at="Remark C.2", paper="0")
def subset_stationary() -> float:
    """So is one that sees any other set of positions.

    Gradient norm by enumeration, lag 2 alone.
    """
    return stationarity((2,)).gradient_norm


@lemma(Exact(above=0.05), at="§3")
def not_optimal() -> float:
    """Neither is the optimum.

    Smaller of their largest differences from the distribution given the whole past.
    """
    return min(stationarity(lags).oracle_gap for lags in ((1,), (2,)))


@lemma(Exact(below=1e-12), at="Lemma B.1", paper="0")
def first_layer() -> float:
    """A look-back head has weight e^c/(i − 1 + e^c) on its target and 1/(i − 1 + e^c) elsewhere.

    Largest difference from the model's attention.
    """
    return lemmas.look_back_error(ngram_estimator(3, 2, 12, temperature=3.0), (1, 2), 3.0)


@lemma(Exact(equals=0.0, within=0.0), at="Lemma B.1, with the softness of the first layer")
def second_layer() -> float:
    """The matching head's weights lie within e^{−c} of uniform attention to the matches.

    Largest violation of the bounds, c = 12 and 16, orders 1 and 2.
    """
    tokens = InContextNgrams(3, 2, 64, 1.0).sample(64, rng=rng(0, "bounds")).inputs
    cases = [(order, c) for order in (1, 2) for c in (12.0, 16.0)]
    return max(lemmas.matching_excess(ngram_estimator(3, k, 64, temperature=c), k, tokens, c) for k, c in cases)


@lemma(Exact(below=1e-10), at="Appendix G", paper="0")
def attention_derivatives() -> float:
    """The derivatives of one attention head have the printed closed form.

    Largest difference from automatic differentiation.
    """
    generator, shapes = rng(0, "head"), ((3, 4), (3, 4), (5, 4), (6, 4))
    query, key, value, stream = (torch.randn(shape, dtype=torch.float64, generator=generator) for shape in shapes)
    return jacobians.attention_jacobian_error(stream, query, key, value)


@lemma(Exact(below=1e-12), at="Appendix H", paper="0")
def stationary_law() -> float:
    """The distribution of the lifted chain is stationary and its windows are shift invariant.

    Largest |πᵀT − πᵀ|, 30 random kernels of order 2.
    """
    kernels = InContextNgrams(3, 2, 8, 0.5).sample(30, rng=rng(0, "kernels")).truth["kernels"]
    probs = stationary_distribution(kernels)
    return float(((probs.unsqueeze(1) @ lifted_chain(kernels)).squeeze(1) - probs).abs().max())


@study.claim(Mean(below=0.02), at="Lemma H.5")
def counts_converge(results: Results) -> np.ndarray:
    """Counts of any set of lags converge to the chain's distribution given those lags.

    Largest entry of |counts − limit| averaged over visited contexts, longest length, worst set of lags up to 2.
    """
    return results.limits[:, :, -1].max(1)


@lemma(Exact(below=1e-9), at="Appendix F", paper="0")
def all_heads_stationary() -> float:
    """The bigram point with all heads on one lag is near-stationary in the same way.

    Largest difference of its gradient from the closed form, on sequences that show every symbol.
    """
    batch = InContextNgrams(3, 2, 200, 1.0).sample(150, rng=rng(2, "all heads"))
    batch = batch[theory.covered(batch.inputs, 3, 1)]
    return max(lemmas.key_gradient_errors(all_heads_bigram(3, 2, 200, temperature=30.0), batch, (1, 1), 30.0))


@study.claim(Mean(above=0.0), at="§4.1")
def points_in_order(results: Results) -> np.ndarray:
    """At their best temperature the points' losses fall with the order.

    Smallest difference between the losses of one order and the next.
    """
    return -np.diff(results.losses.min(-1)).max(-1)


@study.claim(Mean(below=0.0), source="this laboratory; the source conjectures saddles")
def saddle(results: Results) -> np.ndarray:
    """The bigram point of the trigram task has a direction of negative curvature.

    Smallest eigenvalue of the Hessian over the largest.
    """
    return results.spectra[:, 0] / results.spectra[:, -1]


@study.figure
def theory_figure(results: Results) -> dict[str, Figure]:
    lengths, temperatures = np.array(results.settings.lengths), results.settings.temperatures
    figure, (left, middle, right) = figures.new(3, width=3.7, height=3.2, title="Counts, points and curvature")
    for index, lags in enumerate(LAG_SETS):
        figures.band(left, lengths, results.limits[:, index], label=CountingEstimator(3, lags).name, marker="o")
    guide = results.limits[:, -1, 0].mean() * np.sqrt(lengths[0] / lengths)
    left.loglog(lengths, guide, linestyle=":", color="#555555", label="1/√T")
    left.set(title="counts → limit given the lags", xlabel="length T", ylabel="mean of largest difference")
    left.legend(fontsize=7)
    for order in range(3):
        figures.band(middle, temperatures, results.losses[:, order], label=ngram_name(order), marker="o")
        middle.axhline(results.levels[ngram_name(order)], color="#555555", linestyle=":")
    middle.set(title="loss of the points", xlabel="temperature c", ylabel="nats", ylim=(0.65, 1.1))
    middle.legend(fontsize=7)
    right.plot(results.spectra[0], ".", markersize=3)
    right.axhline(0.0, color="#555555", linewidth=0.8)
    right.set(title="Hessian at the bigram point", xlabel="eigenvalue, in increasing order", ylabel="value")
    right.set_yscale("symlog", linthresh=1e-4)
    return {"theory": figure}
