"""What a violation of balance costs: the bound of the theorem, on disturbed, random and trained models."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from sandlab import figures
from sandlab.circuits.dyck.balanced import balanced_dyck, random_balanced_scores
from sandlab.lenses.dyck.balance import balance_report
from sandlab.lenses.dyck.balance_bounds import network_lipschitz, pumped_twins, violation_bound
from sandlab.random import rng
from sandlab.studies.claims import Above, Below, Claim
from sandlab.studies.dyck.runs import SOURCE, Run, gather, split_seeds, train_run
from sandlab.studies.study import Lab, Outcome, study

NOISES = (0.01, 0.03, 0.1, 0.3, 1.0)
OPENING = 0.5
RUN = Run(model="minimal", words="prefix", steps=800, lr=1e-2, long=100, long_tests=5)


@dataclass(frozen=True)
class Settings:
    """Draws of disturbed models; training lengths, seeds and weight decays of the trained ones."""

    seeds: int = 4
    draws: int = 10
    types: int = 2
    depth: int = 4
    run: Run = RUN
    lengths: tuple[int, ...] = (8, 16, 32)
    decays: tuple[float, ...] = (0.0, 1e-3)


@dataclass(frozen=True)
class BoundJob:
    draw: int
    types: int
    depth: int


def check_bound(job: BoundJob) -> dict[str, Any]:
    """For every size of disturbance, query and type of pair: the error on pumped words against the theorem's ε."""
    rows = []
    scores = random_balanced_scores(job.types, job.depth, rng=rng(job.draw, "scores"))
    noise = torch.randn(scores.shape, generator=rng(job.draw, "noise"), dtype=torch.float64)
    for size in NOISES:
        model = balanced_dyck(job.types, job.depth, OPENING, scores=scores)
        with torch.no_grad():
            model.layers[0].score[: len(scores), : len(scores)] += size * noise  # type: ignore[index,operator]
        steepness, ratios = network_lipschitz(model), balance_report(model).ratios
        for level in range(2, job.depth + 1):
            for kind in range(job.types):
                for pair in range(job.types):
                    row = _compare(model, ratios[level - 2, kind, :, pair], (level, kind), pair, steepness)
                    rows.append([size, *row])
    return {"rows": np.array(rows)}


def _compare(
    model: Any, ratios: np.ndarray, query: tuple[int, int], pair: int, steepness: float
) -> tuple[float, float, float, float, float]:
    """N, ‖S‖/P, the theorem's ε, the larger squared error, and ln of loss over bound, at a length where ε is large.

    The length is where ε reaches half of its largest root; the pumped level is the lowest that violates ‖S‖ ≤ (C/N)P,
    as in the proof (lower levels then add little).
    """
    types, depth = model.config.types, model.config.depth
    apart = math.sqrt(2) * (1 - OPENING)
    spread = 4 / (apart / (2 * steepness)) + 1
    length = math.ceil(16 * depth * spread / ratios.max()) + 1
    level = int(np.argmax(ratios > 16 * depth * spread / length))
    twins = pumped_twins(model, length, query, (level + 1, pair), opening=OPENING)
    least = violation_bound(float(ratios[level]), length, depth, steepness, OPENING)
    bound = length * math.log(OPENING * (1 - OPENING) / types**2) + math.log(least)
    return float(length), float(ratios[level]), least, max(twins.errors) ** 2, twins.log_loss - bound


@study(
    "dyck/violation-bound",
    title="Imbalance has a price: what the theorem promises, and what is measured",
    source=f"{SOURCE}, Theorem 2 and Corollary 2",
    quick=Settings(),
    full=Settings(seeds=20, draws=100, run=replace(RUN, steps=1500), lengths=(8, 16, 32, 64, 128)),
    claims=[
        Claim(
            "bounds-error",
            "With ‖S‖ > (C/N)P some word of N brackets is answered wrongly by at least √ε.",
            f"{SOURCE}, Theorem 2",
            "squared error on the pumped words over ε, smallest over disturbed models, queries and pairs",
            Above(1.0),
            exact=True,
        ),
        Claim(
            "bounds-loss",
            "So the loss is at least (q(1−q)/k²)ᴺ ε.",
            f"{SOURCE}, Theorem 2",
            "log10 of the two words' share of the loss over that bound, smallest over models, queries and pairs",
            Above(0.0),
            exact=True,
        ),
        Claim(
            "longer-is-better",
            "Trained on longer prefixes, models are closer to balance.",
            f"{SOURCE}, Theorem 2: ‖S‖ ≤ (C/N)P",
            "slope of ln max ‖S‖/P against ln N of trained models, no weight decay",
            Below(0.0),
        ),
        Claim(
            "weight-decay",
            "The same with a little weight decay.",
            f"{SOURCE}, Corollary 2",
            "slope of ln max ‖S‖/P against ln N of trained models, with weight decay",
            Below(0.0),
        ),
    ],
)
def violation_bound_study(config: Settings, lab: Lab) -> Outcome:
    """Theorem 2 backwards: a model that violates balance cannot have a small loss at length N.

    With C = 16·D·R, R = 4/η + 1 and η = (√2(1−q) − 2√ε)/γ, where γ is the Lipschitz constant of the network behind
    the norm: if ‖S‖ > (C/N)·P for some query and matched pair, the squared loss at length N exceeds
    (q(1−q)/k²)ᴺ·ε. The proof shows two words that the model confuses, and so does this study: exact constructions are
    disturbed, N is chosen so that ε is a quarter of its largest value, the two words of about N brackets (up to
    millions; the output is computed from its parts) are put to the model, and the error on the worse one is compared
    with √ε, their share of the loss with the bound. √2(1−q), the exact distance of the two laws, replaces the printed
    lower bound. The left panel shows the measured error against the length that the theorem needs; the middle one how
    many orders of magnitude the bound gives away. The threshold is far below anything that can be trained, so for
    trained models (right) the theorem's shape is checked instead: max ‖S‖/P falls as the training length grows, with
    and without weight decay (Corollary 2: for a small enough decay the bound holds for minimisers of the regularised
    loss too).
    """
    jobs = [BoundJob(draw, config.types, config.depth) for draw in range(config.draws)]
    rows = np.concatenate([found["rows"] for found in lab.map(check_bound, jobs, label="pumped words")])
    trained = _train(config, lab)
    slopes = {
        decay: np.polyfit(np.log(config.lengths), np.log([trained[decay, n] for n in config.lengths]), 1)[0]
        for decay in config.decays
    }
    measurements: dict[str, Any] = {
        "bounds-error": float((rows[:, 4] / rows[:, 3]).min()),
        "bounds-loss": float(rows[:, 5].min() / math.log(10)),
        "longer-is-better": slopes[config.decays[0]],
        "weight-decay": slopes[config.decays[-1]],
    }
    table = [
        {
            "training length": n,
            "weight decay": decay,
            "max ‖S‖/P": float(values.mean()),
            "N · max ‖S‖/P": float(n * values.mean()),
        }
        for (decay, n), values in trained.items()
    ]
    return Outcome(measurements, {"bound": _draw(rows, trained, config)}, {"trained": table})


def _train(config: Settings, lab: Lab) -> dict[tuple[float, int], np.ndarray]:
    """max ‖S‖/P of trained models by (weight decay, training length), one value per seed."""
    jobs = [
        ((decay, length), part)
        for decay in config.decays
        for length in config.lengths
        for part in split_seeds(
            replace(config.run, length=length, weight_decay=decay), config.seeds, lab.device, size=config.seeds
        )
    ]
    found: dict[tuple[float, int], list[dict[str, Any]]] = {key: [] for key, _ in jobs}
    for (key, _), result in zip(jobs, lab.map(train_run, [part for _, part in jobs], label="training lengths")):
        found[key].append(result)
    return {key: gather(parts, "balance_largest") for key, parts in found.items()}


def _draw(rows: np.ndarray, trained: dict[tuple[float, int], np.ndarray], config: Settings) -> Any:
    figure, axes = figures.new(columns=3, width=3.6, height=3.0)
    for place, size in enumerate(NOISES):
        chosen = rows[rows[:, 0] == size]
        colour = figures.COLOURS[place]
        dots: dict[str, Any] = {"color": colour, "markersize": 3, "alpha": 0.6, "rasterized": True}
        axes[0].loglog(chosen[:, 1], chosen[:, 4], "o", label=f"noise {size:g}", **dots)
        axes[1].loglog(chosen[:, 1], chosen[:, 5] / math.log(10), "o", **dots)
    axes[0].axhline(float(np.median(rows[:, 3])), color="#555555", linestyle=":")
    axes[0].set(title="error on the worse word (dotted: ε)", xlabel="length N", ylabel="squared error")
    axes[0].legend(fontsize=7, loc="lower right")
    axes[1].set(title="what the bound gives away", xlabel="length N", ylabel="orders of magnitude")
    for decay in config.decays:
        curves = np.stack([trained[decay, n] for n in config.lengths], 1)
        figures.band(axes[2], config.lengths, curves, label=f"weight decay {decay:g}")
    axes[2].set_xscale("log")
    axes[2].set_yscale("log")
    axes[2].set(title="trained models", xlabel="training length N", ylabel="max ‖S‖/P")
    axes[2].legend()
    return figure
