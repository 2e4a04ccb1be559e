"""Balance and length: models whose matched brackets cancel generalise to longer words."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import stats

from sandlab import figures
from sandlab.studies.claims import Above, Below, Claim
from sandlab.studies.dyck.runs import SOURCE, Run, gather, split_seeds, train_run
from sandlab.studies.study import Lab, Outcome, study

RUN = Run(model="minimal", steps=1000, lr=1e-2)


NARROW = (
    "seeds of one objective differ little in violation, and the mean over all pairs hides the few that long words "
    "repeat; the worst pair's violation and the contrast between the two objectives carry the effect"
)


@dataclass(frozen=True)
class Settings:
    """Seeds of each objective, the run, the strength of the contrastive penalty."""

    seeds: int = 8
    run: Run = RUN
    contrast: float = 0.3


CLAIMS = [
    Claim(
        "lower-violation",
        "The contrastive penalty lowers the balance violation.",
        f"{SOURCE}, Figure 4",
        "balance violation with the penalty over that without, same seed",
        Below(0.85),
        paper="clearly lower",
    ),
    Claim(
        "longer-words",
        "Models trained with the penalty close brackets more rightly in words many times longer.",
        f"{SOURCE}, Figure 4",
        "closing accuracy at 400–500 brackets, with the penalty minus without",
        Above(0.0),
    ),
    Claim(
        "in-distribution",
        "Both are accurate in distribution.",
        f"{SOURCE}, §4.2",
        "closing accuracy in distribution, both objectives",
        Above(0.97),
        paper="at least 97 %",
    ),
]


@study(
    "dyck/balance",
    title="Balanced attention carries over to longer words",
    source=f"{SOURCE}, §4.2 and Figure 4",
    quick=Settings(),
    full=Settings(seeds=40, run=replace(RUN, long_tests=200)),
    claims=[
        *CLAIMS,
        Claim(
            "correlation",
            "Among models trained without the penalty, more violation goes with less accuracy on long words.",
            f"{SOURCE}, Figure 4",
            "Spearman correlation of violation and long accuracy",
            Below(0.0),
            exact=True,
            paper="negative",
            presets=("full",),
        ),
        Claim(
            "correlation-worst-pair",
            "The same with each query's largest residue over its smallest output as the violation.",
            f"{SOURCE}, Figure 4, with the violation of the released code",
            "Spearman correlation of the worst pair's violation and long accuracy, without the penalty",
            Below(0.0),
            exact=True,
            paper="negative",
            presets=("full",),
        ),
        Claim(
            "correlation-all",
            "Over all models, with and without the penalty, more violation goes with less accuracy on long words.",
            f"{SOURCE}, Figure 4",
            "Spearman correlation of violation and long accuracy, all models",
            Below(0.0),
            exact=True,
            paper="negative",
        ),
    ],
)
def balance(config: Settings, lab: Lab) -> Outcome:
    """One attention layer over (type, depth) embeddings, trained on complete words of at most 28 brackets.

    Balance violation β is computed from the weights alone: the mean over closing queries and matched pairs of
    ‖u(open) + u(close)‖ over the scale of what has to be told apart. The contrastive penalty asks the logits not to
    change when nested pairs are put before the word. Each dot is a model; the vertical axis is its closing accuracy on
    prefixes of 400 to 500 brackets.

    What was learnt: β tells the two objectives apart (rank correlation with long accuracy −0.7 over all models), but
    does not rank seeds of one objective. Without the penalty 40 seeds have β = 0.240 ± 0.015 and long accuracies from
    0.79 to 0.96; their rank correlation is +0.3 on 200 test positions (p = 0.06), and +0.06 for 20 seeds on 1000: no
    correlation, where the source reports a negative one. Neither more test words nor smaller initial weights change
    that (weights √3 times smaller give β = 0.16 at the same long accuracy, so β also measures the scale of
    initialisation). The violation as the released code computes it, each query's largest residue over its smallest
    output, does correlate as published: −0.33 (p = 0.04) over the same 40 seeds. What decides in long words is a
    smaller thing: the part of the residues that the read-out sees, averaged with the frequencies of pairs in a long
    word (`seen_drift`, a column of the table). It ranks 20 seeds without the penalty at −0.47 (p = 0.04), the length of
    the same averaged residue in all directions at −0.03.
    """
    return compare(config, lab, "complete words")[0]


def compare(config: Settings, lab: Lab, title: str) -> tuple[Outcome, dict[str, list[dict[str, Any]]]]:
    """Train with and without the penalty, measure balance and length generalisation, draw one against the other.

    Returns the outcome and the runs of each objective.
    """
    plain = split_seeds(config.run, config.seeds, lab.device)
    pushed = split_seeds(replace(config.run, contrast=config.contrast), config.seeds, lab.device)
    found = lab.map(train_run, [*plain, *pushed], label=f"minimal models, {title}")
    results = {"standard": found[: len(plain)], "contrastive": found[len(plain) :]}
    violation = {name: gather(parts, "balance") for name, parts in results.items()}
    accuracy = {name: gather(parts, "long_argmax") for name, parts in results.items()}
    measurements: dict[str, Any] = {
        "lower-violation": violation["contrastive"] / violation["standard"],
        "longer-words": accuracy["contrastive"] - accuracy["standard"],
        "in-distribution": np.concatenate([gather(parts, "in_argmax") for parts in results.values()]),
    }
    notes = {"correlation": NARROW}
    every = (np.concatenate(list(values.values())) for values in (violation, accuracy))
    measurements["correlation-all"] = _rank_correlation(*every)
    measurements["correlation"] = _rank_correlation(violation["standard"], accuracy["standard"])
    worst = gather(results["standard"], "balance_max")
    measurements["correlation-worst-pair"] = _rank_correlation(worst, accuracy["standard"])
    rows = [
        {
            "objective": name,
            "seed": seed,
            "violation": float(violation[name][seed]),
            "violation, worst pair": float(gather(parts, "balance_max")[seed]),
            "drift seen by the read-out": float(gather(parts, "seen_drift")[seed]),
            "accuracy": float(gather(parts, "in_argmax")[seed]),
            "long accuracy": float(accuracy[name][seed]),
            "long accuracy, threshold": float(gather(parts, "long_threshold")[seed]),
        }
        for name, parts in results.items()
        for seed in range(config.seeds)
    ]
    picture = {"balance": _draw(violation, accuracy, title)}
    return Outcome(measurements, picture, {"models": rows}, notes), results


def _rank_correlation(first: np.ndarray, second: np.ndarray) -> float:
    """Spearman's; 0 when one of the two does not vary at all."""
    if np.ptp(first) == 0 or np.ptp(second) == 0:
        return 0.0
    return float(stats.spearmanr(first, second).statistic)


def _draw(violation: dict[str, np.ndarray], accuracy: dict[str, np.ndarray], title: str) -> Any:
    figure, (axis,) = figures.new(width=4.6, height=3.4)
    for name, marker in (("standard", "o"), ("contrastive", "s")):
        axis.plot(violation[name], accuracy[name], marker, label=name, markersize=5, alpha=0.8, linestyle="none")
    axis.set(xlabel="balance violation β", ylabel="closing accuracy, 400–500 brackets", title=title)
    axis.legend()
    return figure
