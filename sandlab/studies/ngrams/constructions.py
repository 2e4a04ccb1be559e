"""Exact weights for every n-gram, how fast they become exact, and the way out of them.

Constructed weights of the simplified transformer for every order, compared with counting.

Left: error against temperature c for several orders with the bound c T e^{−c} (dotted). Middle: the worked example:
layer-2 attention of the last position on a short sequence that ends in 0 2, for the trigram (both heads on) and the
bigram (second head off); bars stand exactly on the positions preceded by the same tokens. Right: loss when training
starts at the bigram point plus noise (3 states, Dirichlet(½), Adam 0.01, batches of 64). The first drop makes attention
softer, which costs nothing but norm; then comes the plateau, and the second head.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import nn

from sandlab import figures
from sandlab.circuits.ngrams.counting import ngram_estimator
from sandlab.learning.experiment import Experiment, Runs, Training
from sandlab.lenses.ngrams.jacobians import simplified_jacobian_error
from sandlab.lenses.ngrams.lemmas import counting_error
from sandlab.lenses.ngrams.stages import half_way
from sandlab.models.base import seeded
from sandlab.models.hooks import record
from sandlab.models.ngrams.simplified import SimplifiedTransformer
from sandlab.random import rng
from sandlab.studies.claims import Exact, Mean
from sandlab.studies.ngrams._shared import SOURCE, Lemmas, estimator_losses, simplified
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.ngrams.estimators import CountingEstimator
from sandlab.worlds.ngrams.in_context import InContextNgrams

TEMPERATURES = np.array([2.0, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0])
STATES, ORDERS, LENGTHS = (2, 3, 4, 5), (0, 1, 2, 3, 4, 5), (16, 32)
SEQUENCE = (2, 0, 1, 1, 2, 0, 2, 1, 0, 1, 0, 2)  # ends in 0 2, for the table of matches


@dataclass(frozen=True)
class NearBigram:
    """Start at the bigram point of this temperature, plus Gaussian noise."""

    temperature: float = 6.0
    noise: float = 0.02

    def __call__(self, model: nn.Module) -> None:
        assert isinstance(model, SimplifiedTransformer)
        point = ngram_estimator(3, 1, model.config.length, heads=2, temperature=self.temperature)
        model.load_state_dict(point.float().state_dict())
        with torch.no_grad():
            for weight in model.parameters():
                weight += self.noise * torch.randn_like(weight)


@dataclass(frozen=True)
class Settings:
    """Sequences on which the constructions are checked; trainings from the bigram point, in pairs."""

    length: int
    examples: int
    by_length: tuple[Experiment, Experiment]
    by_noise: tuple[Experiment, Experiment]
    by_temperature: tuple[Experiment, Experiment]


def settings(length: int, examples: int, steps: int, seeds: int, lr: float = 0.01) -> Settings:
    training = Training(steps=steps, batch_size=64, lr=lr, optimizer="adam", evals=40, eval_examples=1024)

    def escape(start: NearBigram, length: int = LENGTHS[1]) -> Experiment:
        world = InContextNgrams(states=3, order=2, length=length, concentration=0.5)
        return Experiment(world, simplified(world, heads=2), training, seeds, prepare=start)

    return Settings(
        length,
        examples,
        by_length=(escape(NearBigram(), LENGTHS[0]), escape(NearBigram())),
        by_noise=(escape(NearBigram(noise=0.005)), escape(NearBigram(noise=0.3))),
        by_temperature=(escape(NearBigram(temperature=4.0)), escape(NearBigram(temperature=12.0))),
    )


study = Study(
    "ngrams/constructions",
    title="Weights by hand are exact for every n-gram; sharper points hold training up longer",
    source=SOURCE,
    at="§4.1, Lemma B.1, Appendices D, F, G",
    quick=settings(length=64, examples=64, steps=600, seeds=3),
    full=settings(length=128, examples=512, steps=2000, seeds=8),
    null=settings(length=64, examples=64, steps=600, seeds=3, lr=0.0),
)
lemma = Lemmas(study)


@dataclass(frozen=True)
class Results:
    """Errors of the constructions, and trainings from the bigram point by length, by noise and by temperature.

    errors      largest error of each construction (states, order, temperature); length: of the sequences
    attention   of the last position of the worked example, by order
    bigram      loss of the add-α bigram on the worlds of `by_length`
    """

    length: int
    errors: np.ndarray
    attention: dict[int, np.ndarray]
    exact: dict[str, float]
    bigram: list[float]
    by_length: list[Runs]
    by_noise: list[Runs]
    by_temperature: list[Runs]

    @property
    def bounds(self) -> np.ndarray:
        return TEMPERATURES * self.length * np.exp(-TEMPERATURES)


@dataclass(frozen=True)
class Construction:
    states: int
    order: int
    length: int
    examples: int


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    jobs = [Construction(states, k, settings.length, settings.examples) for states in STATES for k in ORDERS]
    errors = lab.map(construction_errors, jobs, label="construction errors")
    escapes = [*settings.by_length, *settings.by_noise, *settings.by_temperature]
    runs = lab.train(escapes, label="escape from the bigram")
    return Results(
        length=settings.length,
        errors=np.array(errors).reshape(len(STATES), len(ORDERS), -1),
        attention={order: last_attention(order) for order in (1, 2)},
        exact=lemma.numbers(),
        bigram=[estimator_losses(each.world)["bigram"] for each in settings.by_length],
        by_length=runs[:2],
        by_noise=runs[2:4],
        by_temperature=runs[4:],
    )


def construction_errors(job: Construction) -> list[float]:
    """Largest error against the clamped estimator where something matches, for each temperature."""
    world = InContextNgrams(job.states, max(job.order, 1), job.length, 1.0)
    tokens = world.sample(job.examples, rng=rng(0, "construction")).inputs
    models = (ngram_estimator(job.states, job.order, job.length, temperature=c, floor=0.0) for c in TEMPERATURES)
    return [counting_error(model, job.order, tokens) for model in models]


def last_attention(order: int) -> np.ndarray:
    model = ngram_estimator(3, order, len(SEQUENCE), heads=2)
    with record(model, "layers.1.attention.pattern") as cache, torch.no_grad():
        model(torch.tensor([SEQUENCE]))
    return cache["layers.1.attention.pattern"][0, 0, -1].numpy()


@study.claim(Exact(below=1e-6), at="§4.1", paper="0")
def exact(results: Results) -> float:
    """Every k-gram construction equals its counting estimator.

    Largest error at c = 40 over alphabets and orders.
    """
    return float(results.errors[..., -1].max())


@study.claim(Exact(below=1.0), at="Lemma B.1", paper="≤ 1")
def rate(results: Results) -> float:
    """The error shrinks with the temperature as c T e^{−c}.

    Largest ratio of error to c T e^{−c} for c between 10 and 30.
    """
    inside = (TEMPERATURES >= 10) & (TEMPERATURES <= 30)
    return float((results.errors / results.bounds)[..., inside].max())


@study.claim(Exact(below=1e-9), at="Figure 2", id="matches", paper="0")
def attends_to_matches(results: Results) -> float:
    """The last query attends exactly to the positions with the same history.

    Attention mass outside the match set in the worked example.
    """
    return max(float(each[~matches(order)].sum()) for order, each in results.attention.items())


def matches(order: int) -> np.ndarray:
    """Which positions of the worked example have the same history as the token to be predicted."""
    estimator = CountingEstimator.of_order(3, order, boundary="clamped")
    contexts = estimator.contexts(torch.tensor(SEQUENCE)).numpy()
    return contexts[:-1] == contexts[-1]


@lemma(Exact(below=1e-8), at="Appendix D, corrected")
def jacobians() -> float:
    """The corrected closed-form Jacobians equal automatic differentiation.

    Largest difference over the four parameter blocks.
    """
    with seeded(3):
        model = SimplifiedTransformer(vocab=3, length=7, heads=2, floor=0.0).double()
    with torch.no_grad():
        for weight in model.parameters():
            weight += 0.5 * torch.randn(weight.shape, generator=rng(4), dtype=torch.float64)
    return simplified_jacobian_error(model, torch.tensor([0, 2, 1, 1, 0, 2, 1]))


@study.claim(Mean(above=0.0), source="this laboratory")
def escape(results: Results) -> np.ndarray:
    """Training from the bigram point with a little noise leaves it: it ends below what the bigram can reach.

    Loss of the add-α bigram minus loss at the end, mean over the two lengths and over seeds.
    """
    losses = [bigram - runs.metrics["loss"][:, -1] for bigram, runs in zip(results.bigram, results.by_length)]
    return np.mean(losses, axis=0)


@study.claim(Mean(above=1.0), source="this laboratory")
def sharper_holds_longer(results: Results) -> np.ndarray:
    """The larger the norm of the point, the longer it holds training up.

    Steps to half of the way down at the larger temperature over those at the smaller, seed by seed.
    """
    low, high = (half_way(runs.eval_steps, runs.metrics["loss"]) for runs in results.by_temperature)
    return high / low


@study.claim(Mean(between=(0.5, 2.0)), source="this laboratory")
def noise_hardly_matters(results: Results) -> np.ndarray:
    """With Adam the size of the noise hardly matters: it follows gradients of any size at the same speed.

    Steps to half of the way down with little noise over those with sixty times as much, seed by seed.
    """
    little, much = (half_way(runs.eval_steps, runs.metrics["loss"]) for runs in results.by_noise)
    return little / much


@study.table
def match_table(_: Results) -> dict[str, Rows]:
    rows = [
        {"position": position, "token": token}
        | {f"{lag} back": SEQUENCE[max(position - lag, 0)] for lag in (1, 2)}
        | {f"match, order {order}": bool(matches(order)[position]) for order in (1, 2)}
        for position, token in enumerate(SEQUENCE)
    ]
    return {"matches": rows}


@study.figure
def constructions(results: Results) -> Figure:
    figure, axes = figures.new(columns=4, width=3.2, height=3.0)
    for order, errors in zip(ORDERS[1:], results.errors[-1, 1:]):
        axes[0].semilogy(TEMPERATURES, np.maximum(errors, 1e-17), "o-", markersize=3, label=f"order {order}")
    axes[0].semilogy(TEMPERATURES, results.bounds, linestyle=":", color="#555555", label="c T exp(−c)")
    axes[0].set(title=f"error, {STATES[-1]} states", xlabel="temperature c", ylabel="largest error")
    axes[0].legend(fontsize=7)
    for axis, order in ((axes[1], 2), (axes[2], 1)):
        axis.bar(range(len(SEQUENCE)), results.attention[order], color=figures.COLOURS[order])
        axis.set_xticks(range(len(SEQUENCE)), [str(token) for token in SEQUENCE])
        axis.set(title=f"order {order}: what is attended to", xlabel="the sequence", ylabel="attention at the end")
    for colour, length, runs in zip(figures.COLOURS, LENGTHS, results.by_length):
        lines = axes[3].plot(runs.eval_steps, runs.metrics["loss"].T, color=colour, linewidth=1.2, linestyle="-")
        lines[0].set_label(f"T = {length}")
    axes[3].set(title="out of the bigram point", xlabel="training step", ylabel="test loss")
    axes[3].legend()
    return figure
