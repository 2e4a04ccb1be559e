"""Fig. 4 and Fig. 5: the same stages in ordinary attention-only transformers, and which lag comes first."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sandlab import figures
from sandlab.studies.claims import Above, Below, Claim
from sandlab.studies.ngrams.runs import SOURCE, Run, estimator_losses, split_seeds, train_run
from sandlab.studies.study import Lab, Outcome, study

ADDITIVE = Run(
    model="additive one-hot", states=3, length=32, concentration=1.0, steps=900, lr=0.005, weight_decay=1e-4, looks=60
)
FIRST = Run(steps=1600, looks=80, test=1024)


@dataclass(frozen=True)
class Settings:
    """Seeds per architecture and the run that they share."""

    seeds: int = 3
    run: Run = ADDITIVE
    models: tuple[str, ...] = ("additive one-hot",)


@study(
    "ngrams/architectures",
    title="Ordinary transformers take the same stairs",
    source=f"{SOURCE}, Figure 4",
    quick=Settings(),
    full=Settings(
        seeds=16,
        run=replace(ADDITIVE, steps=4096, looks=128, test=16384),
        models=("additive one-hot", "additive learned", "disentangled", "simplified", "additive with feed-forward"),
    ),
    claims=[
        Claim(
            "learns-trigram",
            "An attention-only transformer with residual addition learns the in-context trigram.",
            f"{SOURCE}, Figure 4",
            "final test loss, one-hot embeddings (Bayes 0.953)",
            Below(0.99),
            paper="0.970",
        ),
        Claim(
            "two-heads",
            "Its two first-layer heads look one and two tokens back.",
            f"{SOURCE}, Figure 4",
            "smaller of the largest masses on lag 1 and lag 2 over heads, at the end",
            Above(0.6),
            paper="own runs: 0.92 and 0.90",
        ),
        Claim(
            "one-hot-faster",
            "One-hot embeddings are not slower than learned ones.",
            f"{SOURCE}, Figure 4",
            "step at which the loss passes 1.0, one-hot minus learned",
            Below(0.0),
            presets=("full",),
        ),
    ],
)
def architectures(config: Settings, lab: Lab) -> Outcome:
    """Three states, length 32, Dirichlet(1) rows, width S + T = 35, two heads then one, Adam with rate 0.005.

    The loss starts at log 3 (zero readout), pauses at the unigram, then at the bigram, then falls to the trigram; the
    right panels show the mass of the first-layer heads on each lag.
    """
    runs = {model: replace(config.run, model=model) for model in config.models}
    jobs = [(model, part) for model, run in runs.items() for part in split_seeds(run, config.seeds, lab.device)]
    results: dict[str, list[dict[str, Any]]] = {model: [] for model in runs}
    for (model, _), found in zip(jobs, lab.map(train_run, [part for _, part in jobs], label="architectures")):
        results[model].append(found)
    joined = {model: _join(parts) for model, parts in results.items()}
    main = joined["additive one-hot"]
    last = main["mass"][:, -1]
    measurements: dict[str, Any] = {
        "learns-trigram": main["loss"][:, -1],
        "two-heads": np.minimum(last[:, :, 1].max(1), last[:, :, 2].max(1)),
    }
    if "additive learned" in joined:
        measurements["one-hot-faster"] = _passes(main) - _passes(joined["additive learned"])
    return Outcome(measurements, {"loss": _draw(joined, estimator_losses(config.run))})


def _join(results: list[dict[str, Any]]) -> dict[str, Any]:
    joined = {name: np.concatenate([result[name] for result in results]) for name in ("loss", "mass")}
    return joined | {"steps": results[0]["steps"]}


def _passes(run: dict[str, Any], level: float = 1.0) -> np.ndarray:
    below = run["loss"] < level
    first = np.where(below.any(1), below.argmax(1), below.shape[1] - 1)
    return run["steps"][first]


def _draw(joined: dict[str, dict[str, Any]], levels: dict[str, float]) -> Any:
    figure, axes = figures.new(columns=2, width=4.6, height=3.2)
    for model, run in joined.items():
        figures.band(axes[0], run["steps"], run["loss"], label=model)
    figures.levels(axes[0], levels)
    axes[0].set(title="test loss", xlabel="training step", ylabel="nats")
    axes[0].legend(loc="upper right")
    run = joined["additive one-hot"]
    for lag in (1, 2):
        figures.band(axes[1], run["steps"], run["mass"][:, :, :, lag].max(2), label=f"lag {lag}")
    axes[1].set(title="one-hot: best head on each lag", xlabel="training step", ylabel="attention mass", ylim=(0, 1))
    axes[1].legend()
    return figure


@dataclass(frozen=True)
class LagSettings:
    """Seeds of the ordinary model, and of the one whose query cannot see its own token."""

    seeds: int = 5
    run: Run = FIRST


@study(
    "ngrams/first-lag",
    title="The previous token always comes first",
    source=f"{SOURCE}, Figure 5",
    quick=LagSettings(),
    full=LagSettings(seeds=32, run=replace(FIRST, steps=6000, looks=200, test=8192)),
    claims=[
        Claim(
            "lag-1-first",
            "In every seed the first lag that a head settles on is 1.",
            f"{SOURCE}, Figure 5",
            "share of seeds in which lag 1 passes a mass of 0.3 before lag 2 does",
            Above(0.5),
            over="share",
            paper="always",
        ),
        Claim(
            "no-lag-2-yet",
            "At step 1600 no head looks two tokens back.",
            f"{SOURCE}, Figure 5",
            "largest mass on lag 2 at step 1600",
            Below(0.2),
        ),
        Claim(
            "skip-matters",
            "Without the skip connection on the query side the head start of lag 1 is smaller.",
            "conjecture of the source, tested here",
            "largest mass on lag 1 at step 400, with minus without the query's own token",
            Above(0.0),
        ),
    ],
)
def first_lag(config: LagSettings, lab: Lab) -> Outcome:
    """Five states, length 32, Dirichlet(½), two heads, over seeds; plus the same without the query's own token.

    Matching x_T with x_{j−1} needs one head, because x_T itself is in the stream; matching x_{T−1} with x_{j−2} needs
    two. The source conjectures that this is why lag 1 comes first. Taking block 0 from the query removes the
    difference: lag 1 then needs two heads as well.
    """
    plain = split_seeds(config.run, config.seeds, lab.device)
    cut = split_seeds(replace(config.run, query_skip=False), config.seeds, lab.device)
    found = lab.map(train_run, [*plain, *cut], label="seeds")
    first, second = _join(found[: len(plain)]), _join(found[len(plain) :])
    steps = first["steps"]
    masses = {lag: first["mass"][:, :, :, lag].max(2) for lag in (1, 2)}
    arrival = {lag: _arrival(mass, steps) for lag, mass in masses.items()}
    early, late = int(np.abs(steps - 400).argmin()), int(np.abs(steps - 1600).argmin())
    measurements: dict[str, Any] = {
        "lag-1-first": (arrival[1] < arrival[2]).astype(float),
        "no-lag-2-yet": masses[2][:, late],
        "skip-matters": masses[1][:, early] - second["mass"][:, early, :, 1].max(1),
    }
    figure, axes = figures.new(columns=2, width=4.2, height=3.0)
    for axis, run, title in ((axes[0], first, "query sees its token"), (axes[1], second, "query does not")):
        for lag in (1, 2):
            figures.band(axis, steps, run["mass"][:, :, :, lag].max(2), label=f"lag {lag}")
        axis.set(title=title, xlabel="training step", ylabel="mass of the best head", ylim=(0, 1))
    axes[0].legend()
    return Outcome(measurements, {"lags": figure})


def _arrival(mass: np.ndarray, steps: np.ndarray, level: float = 0.3) -> np.ndarray:
    """First step at which the mass passes the level (after the end, if it never does)."""
    above = mass > level
    return np.where(above.any(1), steps[above.argmax(1)], steps[-1] + 1)
