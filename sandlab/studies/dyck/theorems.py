"""Perfect balance and nothing else: many attention maps, one exact function; and what imbalance costs.

Random attention scores that satisfy the balance condition, each completed to an exact Dyck generator.

The maps show uniform, stack-like and random balanced attention on one word; all three models generate bounded Dyck
prefixes with an error below 1e-6 at every position. Fourth panel: when matched pairs are pumped in between, a
balanced model keeps the top of the stack, one with disturbed attention forgets it like 1/n. Last panel: loss above
the best against the balance violation, for disturbances from 0 to 1.

Both directions of the theorem are checked on random draws: balanced scores on random linearly independent
embeddings are completed to exact models; models with all weights drawn at random are wrong on one of two words
that pumping makes indistinguishable (see `pumped_twins`). What a violation of a given size costs is measured in
`dyck/violation-bound`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from scipy import stats

from sandlab import figures
from sandlab.studies.claims import Exact, Mean
from sandlab.studies.dyck import _exact_models as exact
from sandlab.studies.dyck._exact_models import NOISES, PUMPS, Draw, DrawJob
from sandlab.studies.dyck._shared import SOURCE
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.dyck.language import Dyck

DEPTHS, LENGTHS = (1, 2, 3, 4, 6), (28, 1000)


@dataclass(frozen=True)
class Settings:
    """Random balanced attentions (`seeds`), and the language on which they are tried."""

    seeds: int
    world: Dyck


study = Study(
    "dyck/theorems",
    title="Attention may look like anything, as long as matched brackets cancel",
    source=SOURCE,
    at="Theorems 1 and 2, Corollary 1",
    quick=Settings(seeds=20, world=Dyck(length=400)),
    full=Settings(seeds=40, world=Dyck(length=1500)),
)


@dataclass(frozen=True)
class Results:
    """Random draws; error with uniform attention; map and error of three kinds of attention; losses above the best."""

    draws: list[Draw]
    uniform: float
    kinds: dict[str, tuple[np.ndarray, float]]
    excess: list[float]

    @property
    def balanced_pump(self) -> np.ndarray:
        return np.stack([draw.balanced_pump for draw in self.draws])

    @property
    def disturbed_pump(self) -> np.ndarray:
        return np.stack([draw.disturbed_pump for draw in self.draws])


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    jobs = [DrawJob(settings.world, seed) for seed in range(settings.seeds)]
    languages = [Dyck(types, depth, length) for types in (2, 3) for depth in DEPTHS for length in LENGTHS]
    return Results(
        draws=lab.map(exact.examine, jobs, label="balanced attentions"),
        uniform=lab.map(exact.uniform_error, [settings.world], label="uniform attention")[0],
        kinds=lab.map(exact.kinds_of_attention, [settings.world], label="kinds of attention")[0],
        excess=lab.map(exact.excess_loss, languages, label="losses"),
    )


@study.claim(Exact(below=1e-6), at="Theorem 1", paper="0")
def sufficiency(results: Results) -> float:
    """Any attention that satisfies the balance condition can be completed to an exact generator.

    Largest error of the output over all prefixes, random balanced attentions.
    """
    return max(float(draw.errors[0]) for draw in results.draws)


@study.claim(Mean(between=(0.02, 0.35)), at="Theorem 1", paper="goes to 0 like 1/n")
def necessity(results: Results) -> np.ndarray:
    """Without balance the model cannot stay exact: its output forgets the top of the stack under pumping.

    Distance of streams after 1000 pumped pairs over that after 100, disturbed attention.
    """
    return results.disturbed_pump[:, -1] / results.disturbed_pump[:, PUMPS.index(100)]


@study.claim(Mean(between=(0.05, 0.2)), at="Theorem 1", paper="goes to 0 like 1/n: 0.1")
def necessity_rate(results: Results) -> np.ndarray:
    """It forgets like 1/n.

    Distance of streams after 1000 pumped pairs over that after 100, disturbed attention.
    """
    return necessity(results)


@study.claim(Exact(above=0.99), at="Theorem 1")
def balanced_remembers(results: Results) -> float:
    """With balance pumping changes nothing.

    Distance of streams after 1000 pumped pairs over that after none.
    """
    return float((results.balanced_pump[:, -1] / results.balanced_pump[:, 0]).min())


@study.claim(Exact(below=1e-5), at="Corollary 1", paper="0")
def uniform(results: Results) -> float:
    """Uniform attention in both layers, without positions, generates Dyck prefixes exactly.

    Largest error of the output over all prefixes.
    """
    return results.uniform


@study.claim(Exact(below=1e-6), at="Theorem 1 and Corollary 1", paper="0")
def all_optimal(results: Results) -> float:
    """Uniform, stack-like and random attention can all be exact.

    Largest error of the output over all prefixes, the three kinds of attention.
    """
    return max(error for _, error in results.kinds.values())


@study.claim(Exact(below=1e-6), at="Theorem 1 and Corollary 1", paper="0")
def oracle_loss(results: Results) -> float:
    """The exact models have the oracle's loss at every depth and length.

    Largest ∣loss − optimal loss∣ in nats, two and three types, depths 1 to 6, up to 1000 brackets.
    """
    return max(results.excess)


@study.claim(Exact(below=1e-6), at="Theorem 1", paper="0")
def any_embedding(results: Results) -> float:
    """Linearly independent embeddings are all that the construction needs.

    Largest error of the output over all prefixes, random balanced attentions on random embeddings.
    """
    return max(draw.any_embedding for draw in results.draws)


@study.claim(Exact(below=1e-9), at="Theorem 1", paper="0")
def cancelling_values(results: Results) -> float:
    """Values that let all matched pairs cancel exist when the scores are balanced …

    Largest sine of the angle between a pair's columns e^score over closing queries, balanced scores.
    """
    return max(draw.cancelling for draw in results.draws)


@study.claim(Exact(above=0.01), at="Theorem 1")
def no_cancelling_values(results: Results) -> float:
    """… and do not exist when they are not.

    The same for disturbed scores, smallest over draws.
    """
    return min(draw.not_cancelling for draw in results.draws)


@study.claim(Exact(below=1e-3), at="Theorem 1 (necessity)", paper="0")
def random_parameters(results: Results) -> float:
    """With all weights drawn at random, pumping makes two words alike whose next brackets differ.

    Distance of the normed outputs on two words of 10⁶ brackets, worst query and pair, largest over draws.
    """
    return max(draw.random_apart for draw in results.draws)


@study.claim(Exact(below=0.15), at="on the GPT-like layer", paper="∝ 1/n")
def gpt_fades(results: Results) -> float:
    """Where the stream is added before the norm, balance does not suffice: the attention's part fades like 1/n.

    Length of the attention's output after 1000 pairs over that after 100, balanced models.
    """
    return max(draw.faded for draw in results.draws)


@study.claim(Mean(above=0.8), at="Theorem 2")
def violation_costs(results: Results) -> list[float]:
    """The larger the violation, the larger the loss.

    Rank correlation of violation and loss over disturbances of growing size.
    """
    return [float(stats.spearmanr(draw.violations, draw.losses).statistic) for draw in results.draws]


@study.claim(Mean(above=0.2), at="Figure 1")
def different_maps(results: Results) -> list[float]:
    """Exact models have attention maps as different as random ones.

    Mean total variation between rows of two exact models' maps.
    """
    maps = [draw.map for draw in results.draws]
    return [float(0.5 * np.abs(one - other).sum(-1).mean()) for one, other in zip(maps, [maps[-1], *maps])]


@study.table
def disturbance(results: Results) -> Rows:
    columns = ("violations", "errors", "losses", "ratios")
    means = {name: np.mean([getattr(draw, name) for draw in results.draws], 0) for name in columns}
    return [
        {"noise": noise, **{name: float(means[name][index]) for name in columns}} for index, noise in enumerate(NOISES)
    ]


@study.figure
def balance(results: Results) -> Figure:
    figure, axes = figures.new(columns=5, width=2.9, height=2.9)
    for axis, (name, (pattern, error)) in zip(axes, results.kinds.items()):
        figures.heatmap(axis, pattern, title=f"{name}, error {error:.0e}", low=0.0, high=0.6, bar=False)
        axis.set(xlabel="key", ylabel="query")
    figures.band(axes[3], PUMPS, results.balanced_pump, label="balanced")
    figures.band(axes[3], PUMPS, results.disturbed_pump, label="disturbed")
    axes[3].set_xscale("symlog", linthresh=1)
    axes[3].set_yscale("log")
    axes[3].set(title="pumping", xlabel="matched pairs put in", ylabel="memory of the top bracket")
    axes[3].legend()
    for draw in results.draws:
        axes[4].plot(draw.violations, draw.losses, "o-", markersize=3, linewidth=0.8, color=figures.COLOURS[0])
    axes[4].set_xscale("symlog", linthresh=1e-3)
    axes[4].set_yscale("symlog", linthresh=1e-6)
    axes[4].set(title="violation costs loss", xlabel="balance violation β", ylabel="squared loss above the best")
    return figure
