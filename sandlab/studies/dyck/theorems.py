"""Perfect balance and nothing else: many attention maps, one exact function; and what imbalance costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from sandlab import figures
from sandlab.circuits.dyck.balanced import uniform_dyck
from sandlab.random import rng
from sandlab.studies.claims import Above, Below, Between, Claim, Equals
from sandlab.studies.dyck.exact_models import NOISES, PUMPS, BalanceJob, examine, excess_loss, kinds_of_attention
from sandlab.studies.dyck.runs import SOURCE
from sandlab.studies.study import Lab, Outcome, study
from sandlab.worlds.dyck.language import Dyck

DEPTHS, LENGTHS = (1, 2, 3, 4, 6), (28, 1000)


@dataclass(frozen=True)
class Settings:
    """Random balanced attentions tried (`seeds`), length of the test words, types and depth."""

    seeds: int = 20
    length: int = 400
    types: int = 2
    depth: int = 4


@study(
    "dyck/theorems",
    title="Attention may look like anything, as long as matched brackets cancel",
    source=f"{SOURCE}, Theorems 1 and 2, Corollary 1",
    quick=Settings(),
    full=Settings(seeds=40, length=1500),
    claims=[
        Claim(
            "sufficiency",
            "Any attention that satisfies the balance condition can be completed to an exact generator.",
            f"{SOURCE}, Theorem 1",
            "largest error of the output over all prefixes, random balanced attentions",
            Below(1e-6),
            exact=True,
        ),
        Claim(
            "necessity",
            "Without balance the model cannot stay exact: its output forgets the top of the stack under pumping.",
            f"{SOURCE}, Theorem 1",
            "distance of streams after 1000 pumped pairs over that after 100, disturbed attention",
            Between(0.02, 0.35),
            paper="goes to 0 like 1/n",
        ),
        Claim(
            "balanced-remembers",
            "With balance pumping changes nothing.",
            f"{SOURCE}, Theorem 1",
            "distance of streams after 1000 pumped pairs over that after none",
            Above(0.99),
            exact=True,
        ),
        Claim(
            "uniform",
            "Uniform attention in both layers, without positions, generates Dyck prefixes exactly.",
            f"{SOURCE}, Corollary 1",
            "largest error of the output over all prefixes",
            Below(1e-5),
            exact=True,
        ),
        Claim(
            "all-optimal",
            "Uniform, stack-like and random attention can all be exact.",
            f"{SOURCE}, Theorem 1 and Corollary 1",
            "largest error of the output over all prefixes, the three kinds of attention",
            Below(1e-6),
            exact=True,
        ),
        Claim(
            "oracle-loss",
            "The exact models have the oracle's loss at every depth and length.",
            f"{SOURCE}, Theorem 1 and Corollary 1",
            "largest ∣loss − optimal loss∣ in nats, two and three types, depths 1 to 6, up to 1000 brackets",
            Below(1e-6),
            exact=True,
        ),
        Claim(
            "any-embedding",
            "Linearly independent embeddings are all that the construction needs.",
            f"{SOURCE}, Theorem 1",
            "largest error of the output over all prefixes, random balanced attentions on random embeddings",
            Below(1e-6),
            exact=True,
        ),
        Claim(
            "cancelling-values",
            "Values that let all matched pairs cancel exist when the scores are balanced …",
            f"{SOURCE}, Theorem 1",
            "largest sine of the angle between a pair's columns e^score over closing queries, balanced scores",
            Below(1e-9),
            exact=True,
        ),
        Claim(
            "no-cancelling-values",
            "… and do not exist when they are not.",
            f"{SOURCE}, Theorem 1",
            "the same for disturbed scores, smallest over draws",
            Above(0.01),
            exact=True,
        ),
        Claim(
            "random-parameters",
            "With all weights drawn at random, pumping makes two words alike whose next brackets differ.",
            f"{SOURCE}, Theorem 1 (necessity)",
            "distance of the normed outputs on two words of 10⁶ brackets, worst query and pair, largest over draws",
            Below(1e-3),
            exact=True,
        ),
        Claim(
            "equivalence",
            "Balanced and exact at every length are the same, on random models of both kinds.",
            f"{SOURCE}, Theorem 1",
            "share of random models for which the two agree",
            Equals(1.0, 0.0),
            exact=True,
        ),
        Claim(
            "gpt-fades",
            "Where the stream is added before the norm, balance does not suffice: the attention's part fades like 1/n.",
            f"{SOURCE}, on the GPT-like layer",
            "length of the attention's output after 1000 pairs over that after 100, balanced models",
            Below(0.15),
            exact=True,
            paper="∝ 1/n",
        ),
        Claim(
            "violation-costs",
            "The larger the violation, the larger the loss.",
            f"{SOURCE}, Theorem 2",
            "rank correlation of violation and loss over disturbances of growing size",
            Above(0.8),
        ),
        Claim(
            "different-maps",
            "Exact models have attention maps as different as random ones.",
            f"{SOURCE}, Figure 1",
            "mean total variation between rows of two exact models' maps",
            Above(0.2),
        ),
    ],
)
def theorems(config: Settings, lab: Lab) -> Outcome:
    """Random attention scores that satisfy the balance condition, each completed to an exact Dyck generator.

    The maps show uniform, stack-like and random balanced attention on one word; all three models generate bounded Dyck
    prefixes with an error below 1e-6 at every position. Fourth panel: when matched pairs are pumped in between, a
    balanced model keeps the top of the stack, one with disturbed attention forgets it like 1/n. Last panel: loss above
    the best against the balance violation, for disturbances from 0 to 1.

    Both directions of the theorem are checked on random draws: balanced scores on random linearly independent
    embeddings are completed to exact models; models with all weights drawn at random are wrong on one of two words
    that pumping makes indistinguishable (see `pumped_twins`). What a violation of a given size costs is measured in
    `dyck/violation-bound`.
    """
    jobs = [BalanceJob(seed, config.length, config.types, config.depth) for seed in range(config.seeds)]
    found = lab.map(examine, jobs, label="balanced attentions")
    world = Dyck(config.types, config.depth, config.length)
    batch = world.sample(4, rng=rng(0, "uniform"))
    with torch.no_grad():
        uniform = (uniform_dyck(config.types, config.depth).law(batch.inputs) - world.oracle(batch).exp()).abs().max()
    looks = kinds_of_attention(config.types, config.depth, config.length)
    maps = np.stack([result["map"] for result in found])
    apart = [0.5 * np.abs(maps[place] - maps[place - 1]).sum(-1).mean() for place in range(len(maps))]
    pumps = np.stack([result["unbalanced_pump"] for result in found])
    kept = np.stack([result["balanced_pump"] for result in found])
    measurements: dict[str, Any] = {
        "sufficiency": max(float(result["errors"][0]) for result in found),
        "necessity": pumps[:, -1] / pumps[:, PUMPS.index(100)],
        "balanced-remembers": float((kept[:, -1] / kept[:, 0]).min()),
        "uniform": float(uniform),
        "all-optimal": max(error for _, error in looks.values()),
        "oracle-loss": max(
            excess_loss(types, depth, length) for types in (2, 3) for depth in DEPTHS for length in LENGTHS
        ),
        "any-embedding": max(result["elsewhere"] for result in found),
        "cancelling-values": max(result["cancelling"] for result in found),
        "no-cancelling-values": min(result["not_cancelling"] for result in found),
        "random-parameters": max(result["random"] for result in found),
        "equivalence": float(np.mean([result["equivalence"] for result in found])),
        "gpt-fades": max(result["faded"] for result in found),
        "violation-costs": [_rank_correlation(result) for result in found],
        "different-maps": apart,
    }
    columns = ("violations", "errors", "losses", "ratios")
    rows = [
        {"noise": noise, **{name: float(np.mean([result[name][place] for result in found])) for name in columns}}
        for place, noise in enumerate(NOISES)
    ]
    return Outcome(measurements, {"balance": _draw(found, looks)}, {"disturbance": rows})


def _rank_correlation(result: dict[str, Any]) -> float:
    from scipy import stats

    return float(stats.spearmanr(result["violations"], result["losses"]).statistic)


def _draw(found: list[dict[str, Any]], looks: dict[str, tuple[np.ndarray, float]]) -> Any:
    figure, axes = figures.new(columns=5, width=2.9, height=2.9)
    for axis, (name, (pattern, error)) in zip(axes, looks.items()):
        figures.heatmap(axis, pattern, title=f"{name}, error {error:.0e}", low=0.0, high=0.6, bar=False)
        axis.set(xlabel="key", ylabel="query")
    kept = np.stack([result["balanced_pump"] for result in found])
    lost = np.stack([result["unbalanced_pump"] for result in found])
    figures.band(axes[3], PUMPS, kept, label="balanced")
    figures.band(axes[3], PUMPS, lost, label="disturbed")
    axes[3].set_xscale("symlog", linthresh=1)
    axes[3].set_yscale("log")
    axes[3].set(title="pumping", xlabel="matched pairs put in", ylabel="memory of the top bracket")
    axes[3].legend()
    for result in found:
        axes[4].plot(
            result["violations"], result["losses"], "o-", markersize=3, linewidth=0.8, color=figures.COLOURS[0]
        )
    axes[4].set_xscale("symlog", linthresh=1e-3)
    axes[4].set_yscale("symlog", linthresh=1e-6)
    axes[4].set(title="violation costs loss", xlabel="balance violation β", ylabel="squared loss above the best")
    return figure
