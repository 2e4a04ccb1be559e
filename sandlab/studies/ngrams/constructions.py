"""The k-gram constructions: exact in the limit, and how fast; the match table of Fig. 2; Jacobians and escape."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from sandlab import figures
from sandlab.circuits.ngrams.counting import ngram_estimator
from sandlab.learning.training import train
from sandlab.lenses.ngrams.jacobians import simplified_jacobians
from sandlab.models.hooks import record
from sandlab.random import rng
from sandlab.studies.claims import Above, Below, Between, Claim
from sandlab.studies.ngrams.runs import SOURCE
from sandlab.studies.study import Lab, Outcome, study
from sandlab.worlds.ngrams.estimators import CountingEstimator
from sandlab.worlds.ngrams.in_context import InContextNgrams

TEMPERATURES = (2.0, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0)
SEQUENCE = (2, 0, 1, 1, 2, 0, 2, 1, 0, 1, 0, 2)
"""A short sequence over {0, 1, 2} that ends in 0 2, for the table of matches."""


@dataclass(frozen=True)
class Settings:
    seeds: int = 3
    states: tuple[int, ...] = (2, 3, 4, 5)
    orders: tuple[int, ...] = (0, 1, 2, 3, 4, 5)
    length: int = 64
    examples: int = 64
    escape_lengths: tuple[int, ...] = (16, 32)
    escape_steps: int = 600
    escape_noises: tuple[float, float] = (0.005, 0.3)
    escape_temperatures: tuple[float, float] = (4.0, 12.0)


@dataclass(frozen=True)
class ErrorJob:
    states: int
    order: int
    length: int
    examples: int


@dataclass(frozen=True)
class EscapeJob:
    seed: int
    length: int
    steps: int
    noise: float
    temperature: float = 6.0


def construction_error(job: ErrorJob) -> dict[str, Any]:
    """Largest error against the clamped estimator where something matches, for each temperature, and its bound."""
    world = InContextNgrams(job.states, max(job.order, 1), job.length, 1.0)
    tokens = world.sample(job.examples, rng=rng(0, "construction")).inputs
    estimator = CountingEstimator.of_order(job.states, job.order, boundary="clamped")
    matched = estimator.counts(tokens)[:, -1].sum(-1) > 0
    truth = estimator.probabilities(tokens)[:, -1]
    errors = []
    for c in TEMPERATURES:
        model = ngram_estimator(job.states, job.order, job.length, temperature=c, floor=0.0)
        with torch.no_grad():
            apart = (model(tokens)[:, -1].exp() - truth).abs().amax(-1)
        errors.append(float(apart[matched].max()))
    bound = [c * job.length * np.exp(-c) for c in TEMPERATURES]
    return {"errors": np.array(errors), "bounds": np.array(bound)}


def escape(job: EscapeJob) -> dict[str, Any]:
    """Training from the bigram point with a little noise: the loss over steps."""
    world = InContextNgrams(3, 2, job.length, 0.5)
    model = ngram_estimator(3, 1, job.length, heads=2, temperature=job.temperature, floor=1e-8).float()
    generator = rng(job.seed, "noise")
    with torch.no_grad():
        for weight in model.parameters():
            weight += job.noise * torch.randn(weight.shape, generator=generator)
    test = world.sample(1024, rng=rng(1, "test"))
    history = train(
        model, world, steps=job.steps, batch_size=64, rng=rng(job.seed, "data"), lr=0.01, optimizer="adam",
        evaluate=test, every=max(1, job.steps // 40),
    )  # fmt: skip
    return {"steps": history.eval_steps, "loss": history.metrics["loss"]}


@study(
    "ngrams/constructions",
    title="Exact weights for every n-gram, and the way out of them",
    source=f"{SOURCE}, §4.1, Lemma B.1, Appendices D, F, G",
    quick=Settings(),
    full=Settings(seeds=8, length=128, examples=512, escape_steps=2000),
    claims=[
        Claim(
            "exact",
            "Every k-gram construction equals its counting estimator.",
            f"{SOURCE}, §4.1",
            "largest error at c = 40 over alphabets and orders",
            Below(1e-6),
            exact=True,
        ),
        Claim(
            "rate",
            "The error shrinks with the temperature as c T e^{−c}.",
            f"{SOURCE}, Lemma B.1",
            "largest ratio of error to c T e^{−c} for c between 10 and 30",
            Below(1.0),
            exact=True,
        ),
        Claim(
            "matches",
            "The last query attends exactly to the positions with the same history.",
            f"{SOURCE}, Figure 2",
            "attention mass outside the match set in the worked example",
            Below(1e-9),
            exact=True,
        ),
        Claim(
            "jacobians",
            "The corrected closed-form Jacobians equal automatic differentiation.",
            f"{SOURCE}, Appendix D, corrected",
            "largest difference over the four parameter blocks",
            Below(1e-8),
            exact=True,
        ),
        Claim(
            "escape",
            "Training from the bigram point with a little noise leaves it.",
            "this laboratory",
            "loss at the start minus loss at the end",
            Above(0.0),
        ),
        Claim(
            "sharper-holds-longer",
            "The larger the norm of the point, the longer it holds training up.",
            "this laboratory",
            "steps to half of the way down at the larger temperature over those at the smaller, seed by seed",
            Above(1.0),
        ),
        Claim(
            "noise-hardly-matters",
            "With Adam the size of the noise hardly matters: it follows gradients of any size at the same speed.",
            "this laboratory",
            "steps to half of the way down with little noise over those with sixty times as much, seed by seed",
            Between(0.5, 2.0),
        ),
    ],
)
def constructions(config: Settings, lab: Lab) -> Outcome:
    """Constructed weights of the simplified transformer for every order, compared with counting.

    Left: error against temperature c for several alphabets and orders with the bound c T e^{−c} (dotted). Middle: the
    worked example: layer-2 attention of the last position on a short sequence that ends in 0 2, for the trigram (both
    heads on) and the bigram (second head off); bars stand exactly on the positions preceded by the same tokens. Right:
    loss when training starts at the bigram point plus noise (3 states, Dirichlet(½), Adam 0.01, batches of 64). The
    first drop makes attention softer, which costs nothing but norm; then comes the plateau, and the second head.
    """
    jobs = [ErrorJob(s, k, config.length, config.examples) for s in config.states for k in config.orders]
    errors = dict(zip(jobs, lab.map(construction_error, jobs, label="construction errors")))
    seeds, steps, length = range(config.seeds), config.escape_steps, config.escape_lengths[-1]
    runs = [EscapeJob(seed, t, steps, 0.02) for seed in seeds for t in config.escape_lengths]
    noisy = [EscapeJob(seed, length, steps, noise) for noise in config.escape_noises for seed in seeds]
    sharp = [EscapeJob(seed, length, steps, 0.02, c) for c in config.escape_temperatures for seed in seeds]
    found = lab.map(escape, [*runs, *noisy, *sharp], label="escape from the bigram")
    escapes = dict(zip(runs, found))
    times = np.array([_half_way(result) for result in found[len(runs) :]]).reshape(2, 2, config.seeds)
    inside = slice(TEMPERATURES.index(10.0), TEMPERATURES.index(30.0) + 1)
    ratio = max(float((r["errors"][inside] / r["bounds"][inside]).max()) for r in errors.values())
    measurements: dict[str, Any] = {
        "exact": max(float(result["errors"][-1]) for result in errors.values()),
        "rate": ratio,
        "matches": _outside_matches(),
        "jacobians": _jacobian_gap(),
        "escape": [float(result["loss"][0] - result["loss"][-1]) for result in escapes.values()],
        "noise-hardly-matters": times[0, 0] / times[0, 1],
        "sharper-holds-longer": times[1, 1] / times[1, 0],
    }
    return Outcome(measurements, {"constructions": _draw(errors, escapes, config)}, {"matches": _table()})


def _half_way(result: dict[str, Any]) -> float:
    """First step at which half of the fall after the first tenth of training is done."""
    steps, loss = result["steps"], result["loss"]
    begun = len(steps) // 10
    goal = (loss[begun] + loss[-1]) / 2
    return float(steps[begun + int(np.argmax(loss[begun:] <= goal))])


def _last_attention(order: int) -> np.ndarray:
    tokens = torch.tensor([SEQUENCE])
    model = ngram_estimator(3, order, len(SEQUENCE), heads=2)
    with record(model, "layers.1.attention.pattern") as cache, torch.no_grad():
        model(tokens)
    return cache["layers.1.attention.pattern"][0, 0, -1].numpy()


def _matches(order: int) -> list[int]:
    length = len(SEQUENCE)
    history = [SEQUENCE[length - h] for h in range(1, order + 1)]
    return [p for p in range(length) if [SEQUENCE[max(p - h, 0)] for h in range(1, order + 1)] == history]


def _outside_matches() -> float:
    stray = 0.0
    for order in (1, 2):
        attention = _last_attention(order)
        stray = max(stray, float(np.delete(attention, _matches(order)).sum()))
    return stray


def _table() -> list[dict[str, Any]]:
    rows = []
    for place, token in enumerate(SEQUENCE):
        row: dict[str, Any] = {"position": place, "token": token}
        row |= {f"{lag} back": SEQUENCE[max(place - lag, 0)] for lag in (1, 2)}
        row |= {f"match, order {order}": place in _matches(order) for order in (1, 2)}
        rows.append(row)
    return rows


def _jacobian_gap() -> float:
    """Largest difference between the closed forms and automatic differentiation at a random point."""
    from sandlab.models.base import seeded
    from sandlab.models.ngrams.simplified import SimplifiedTransformer

    with seeded(3):
        model = SimplifiedTransformer(vocab=3, length=7, heads=2, floor=0.0).double()
    with torch.no_grad():
        for weight in model.parameters():
            weight += 0.5 * torch.randn(weight.shape, generator=rng(4), dtype=torch.float64)
    tokens = torch.tensor([0, 2, 1, 1, 0, 2, 1])
    closed = simplified_jacobians(model, tokens)
    worst = 0.0
    for name, weight in model.named_parameters():
        rows = []
        law = model(tokens.unsqueeze(0))[0, -1].exp()
        for state in range(3):
            rows.append(torch.autograd.grad(law[state], weight, retain_graph=True)[0])
        worst = max(worst, float((torch.stack(rows) - closed[name]).abs().max()))
    return worst


def _draw(errors: dict[ErrorJob, Any], escapes: dict[EscapeJob, Any], config: Settings) -> Any:
    figure, axes = figures.new(columns=4, width=3.2, height=3.0)
    largest = max(config.states)
    for order in config.orders[1:]:
        result = next(value for job, value in errors.items() if (job.states, job.order) == (largest, order))
        axes[0].semilogy(TEMPERATURES, np.maximum(result["errors"], 1e-17), "o-", markersize=3, label=f"order {order}")
    bound = next(iter(errors.values()))["bounds"]
    axes[0].semilogy(TEMPERATURES, bound, linestyle=":", color="#555555", label="c T exp(−c)")
    axes[0].set(title=f"error, {largest} states", xlabel="temperature c", ylabel="largest error")
    axes[0].legend(fontsize=7)
    for axis, order in ((axes[1], 2), (axes[2], 1)):
        axis.bar(range(len(SEQUENCE)), _last_attention(order), color=figures.COLOURS[order])
        axis.set_xticks(range(len(SEQUENCE)), [str(token) for token in SEQUENCE])
        axis.set(
            title=f"order {order}: who is attended", xlabel="the sequence", ylabel="attention of the last position"
        )
    for job, result in escapes.items():
        colour = figures.COLOURS[config.escape_lengths.index(job.length)]
        label = f"T = {job.length}" if job.seed == 0 else None
        axes[3].plot(result["steps"], result["loss"], color=colour, linewidth=1.2, label=label)
    axes[3].set(title="out of the bigram point", xlabel="training step", ylabel="test loss")
    axes[3].legend()
    return figure
