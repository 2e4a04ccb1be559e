"""What a violation of balance costs: the bound of the theorem, on disturbed, random and trained models.

Theorem 2 backwards: a model that violates balance cannot have a small loss at length N.

With C = 16·D·R, R = 4/η + 1 and η = (√2(1−q) − 2√ε)/γ, where γ is the Lipschitz constant of the network behind
the norm: if ‖S‖ > (C/N)·P for some query and matched pair, the squared loss at length N exceeds (q(1−q)/k²)ᴺ·ε. The
proof shows two words that the model confuses, and so does this study: exact constructions are disturbed, N is chosen
so that ε is a quarter of its largest value, the two words of about N brackets (up to millions; the output is computed
from its parts) are put to the model, and the error on the worse one is compared with √ε, their share of the loss with
the bound. √2(1−q), the exact distance of the two distributions, replaces the printed lower bound. The left panel shows
the measured error against the length that the theorem needs; the middle one how many orders of magnitude the bound
gives away. The threshold is far below anything that can be trained, so for trained models (right) the theorem's shape
is checked instead: max ‖S‖/P decreases as the training length grows, with and without weight decay (Corollary 2: for a
small enough decay the bound holds for minimisers of the regularised loss too).

**What was learnt** (quick, 2026-11-15). The theorem bounds max ‖S‖/P by C/N; of models trained at N = 8, 16, 32 it
falls like N^−0.28 (with decay N^−0.36), and N·max ‖S‖/P rises: 8.5, 14.1, 23.0 (with decay 5.6, 6.3, 14.1).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any, cast

import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.learning.experiment import Experiment
from sandlab.lenses.dyck.balance import balance_report
from sandlab.lenses.dyck.balance_bounds import network_lipschitz, pumped_twins, violation_bound
from sandlab.models.dyck.codes import BalanceTransformer
from sandlab.studies.claims import Exact, Mean
from sandlab.studies.dyck import _shared as shared
from sandlab.studies.dyck._exact_models import DrawJob, disturbed
from sandlab.studies.dyck._shared import SOURCE, training
from sandlab.studies.nulls import untrained
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.dyck.language import Dyck

NOISES = (0.01, 0.03, 0.1, 0.3, 1.0)
DECAYS = (0.0, 1e-3)


def minimal_models(lengths: tuple[int, ...], *, steps: int, seeds: int) -> tuple[Experiment, ...]:
    """Models with a minimal first layer, trained on prefixes of each length, without and with weight decay."""

    def models(decay: float, length: int) -> Experiment:
        world, how = Dyck(length=length), training(steps, lr=1e-2, weight_decay=decay)
        return Experiment(world, shared.minimal(world), how, seeds, final=(shared.balance,))

    return tuple(models(decay, length) for decay, length in product(DECAYS, lengths))


@dataclass(frozen=True)
class Settings:
    """Draws of disturbed models of a language; trained models by weight decay and training length."""

    draws: int
    world: Dyck
    trained: tuple[Experiment, ...]


QUICK = Settings(10, Dyck(), minimal_models((8, 16, 32), steps=800, seeds=4))
study = Study(
    "dyck/violation-bound",
    title="The bound holds on disturbed models; trained ones approach balance, far more slowly than 1/N",
    source=SOURCE,
    at="Theorem 2 and Corollary 2",
    quick=QUICK,
    full=Settings(100, Dyck(), minimal_models((8, 16, 32, 64, 128), steps=1500, seeds=20)),
    null=replace(QUICK, trained=tuple(untrained(each) for each in QUICK.trained)),
)


@dataclass(frozen=True)
class Comparison:
    """A disturbed model on the two words of one query and pair.

    noise, length   size of the disturbance; N, where ε reaches a quarter of its largest value
    bound, error    ε of the theorem, and the larger squared error on the two words
    spare           log10 of the two words' share of the loss over the theorem's bound
    """

    noise: float
    length: int
    bound: float
    error: float
    spare: float


@dataclass(frozen=True)
class Results:
    """Comparisons of all disturbed models; max ‖S‖/P of trained ones by (weight decay, training length) and seed."""

    comparisons: list[Comparison]
    trained: dict[tuple[float, int], np.ndarray]

    def curves(self, decay: float) -> tuple[list[int], Float[np.ndarray, "length seed"]]:
        """Training lengths, and max ‖S‖/P at each of them."""
        found = {length: ratios for (each, length), ratios in self.trained.items() if each == decay}
        return list(found), np.stack(list(found.values()))


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    jobs = [DrawJob(settings.world, draw) for draw in range(settings.draws)]
    comparisons = [each for found in lab.map(compare, jobs, label="pumped words") for each in found]
    keys = [(each.training.weight_decay, cast(Dyck, each.world).length) for each in settings.trained]
    runs = lab.train(settings.trained, label="training lengths")
    return Results(comparisons, {key: each.final["largest_ratio"] for key, each in zip(keys, runs)})


def compare(job: DrawJob) -> list[Comparison]:
    """For every size of disturbance, query and type of pair: the error on pumped words against the theorem's ε."""
    return [each for noise in NOISES for each in _compare(disturbed(job.world, job.seed, noise), job.world, noise)]


def _compare(model: BalanceTransformer, world: Dyck, noise: float) -> Iterator[Comparison]:
    """N is the length at which √ε reaches half of its largest value."""
    types, depth, q = world.types, world.largest_depth, world.opening
    steepness, ratios = network_lipschitz(model), balance_report(model).ratios
    constant = 16 * depth * (8 * steepness / (math.sqrt(2) * (1 - q)) + 1)
    for query, kind, pair in product(range(depth - 1), range(types), range(types)):
        row = ratios[query, kind, :, pair]
        length = math.ceil(constant / row.max()) + 1
        # The lowest level that violates ‖S‖ ≤ (C/N)P is pumped, as in the proof: lower levels then add little.
        level = int(np.argmax(row > constant / length))
        twins = pumped_twins(model, length, (query + 2, kind), (level + 1, pair), opening=q)
        bound = violation_bound(float(row[level]), length, depth, steepness, q)
        log_bound = length * math.log(q * (1 - q) / types**2) + math.log(bound)
        spare = (twins.log_loss - log_bound) / math.log(10)
        yield Comparison(noise, length, bound, max(twins.errors) ** 2, spare)


@study.claim(Exact(above=1.0), at="Theorem 2")
def bounds_error(results: Results) -> float:
    """With ‖S‖ > (C/N)P some word of N brackets is answered wrongly by at least √ε.

    Squared error on the pumped words over ε, smallest over disturbed models, queries and pairs.
    """
    return min(each.error / each.bound for each in results.comparisons)


@study.claim(Exact(above=0.0), at="Theorem 2")
def bounds_loss(results: Results) -> float:
    """So the loss is at least (q(1−q)/k²)ᴺ ε.

    Log10 of the two words' share of the loss over that bound, smallest over models, queries and pairs.
    """
    return min(each.spare for each in results.comparisons)


@study.claim(Mean(below=0.0), at="Theorem 2: ‖S‖ ≤ (C/N)P")
def longer_is_better(results: Results) -> np.ndarray:
    """Trained on longer prefixes, models are closer to balance.

    Slope of ln max ‖S‖/P against ln N of trained models, no weight decay.
    """
    return slopes(*results.curves(DECAYS[0]))


@study.claim(Mean(below=-0.9), at="Theorem 2: ‖S‖ ≤ (C/N)P", paper="−1")
def rate(results: Results) -> np.ndarray:
    """They come closer to balance like 1/N.

    Slope of ln max ‖S‖/P against ln N of trained models, no weight decay.
    """
    return longer_is_better(results)


@study.claim(Mean(below=0.0), at="Corollary 2")
def weight_decay(results: Results) -> np.ndarray:
    """The same with a little weight decay.

    Slope of ln max ‖S‖/P against ln N of trained models, with weight decay.
    """
    return slopes(*results.curves(DECAYS[-1]))


@study.claim(Mean(below=-0.9), at="Corollary 2", paper="−1")
def weight_decay_rate(results: Results) -> np.ndarray:
    """With a little weight decay they come closer to balance like 1/N.

    Slope of ln max ‖S‖/P against ln N of trained models, with weight decay.
    """
    return weight_decay(results)


def slopes(lengths: list[int], ratios: Float[np.ndarray, "length seed"]) -> Float[np.ndarray, "seed"]:
    return np.polyfit(np.log(lengths), np.log(ratios), 1)[0]


@study.table
def trained(results: Results) -> Rows:
    means = {key: float(ratios.mean()) for key, ratios in results.trained.items()}
    return [
        {"training length": n, "weight decay": decay, "max ‖S‖/P": mean, "N · max ‖S‖/P": n * mean}
        for (decay, n), mean in means.items()
    ]


@study.figure
def bound(results: Results) -> Figure:
    figure, axes = figures.new(columns=3, width=3.6, height=3.0)
    for noise, colour in zip(NOISES, figures.COLOURS):
        chosen = [each for each in results.comparisons if each.noise == noise]
        lengths = [each.length for each in chosen]
        dots: dict[str, Any] = {"color": colour, "markersize": 3, "alpha": 0.6, "rasterized": True}
        axes[0].loglog(lengths, [each.error for each in chosen], "o", label=f"noise {noise:g}", **dots)
        axes[1].loglog(lengths, [each.spare for each in chosen], "o", **dots)
    axes[0].axhline(float(np.median([each.bound for each in results.comparisons])), color="#555555", linestyle=":")
    axes[0].set(title="error on the worse word (dotted: ε)", xlabel="length N", ylabel="squared error")
    axes[0].legend(fontsize=7, loc="lower right")
    axes[1].set(title="what the bound gives away", xlabel="length N", ylabel="orders of magnitude")
    for decay in DECAYS:
        lengths, ratios = results.curves(decay)
        figures.band(axes[2], lengths, ratios.T, label=f"weight decay {decay:g}")
    axes[2].set_xscale("log")
    axes[2].set_yscale("log")
    axes[2].set(title="trained models", xlabel="training length N", ylabel="max ‖S‖/P")
    axes[2].legend()
    return figure
