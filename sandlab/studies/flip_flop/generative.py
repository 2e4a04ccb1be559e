"""The fully generative mode: every token is predicted, and the glitches stay."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sandlab import figures
from sandlab.studies.claims import Above, Below, Claim
from sandlab.studies.flip_flop.runs import SETS, SOURCE, Run, by_seed, split_seeds, train_run
from sandlab.studies.study import Lab, Outcome, study
from sandlab.worlds.flip_flop.language import FlipFlop

RUN = Run(mode="generative", length=32, steps=1500, checks=30)


@dataclass(frozen=True)
class Settings:
    """The generative run, and how many steps the clean one it is compared with is given."""

    seeds: int = 4
    run: Run = RUN
    clean_steps: int = 800


@study(
    "flip-flop/generative",
    title="Predicting every token is slower to learn and glitches all the same",
    source=f"{SOURCE}, Figure 7 (right)",
    quick=Settings(),
    full=Settings(
        seeds=8, run=Run(mode="generative", length=128, steps=5000, targets=100_000, checks=50), clean_steps=5000
    ),
    claims=[
        Claim(
            "floor",
            "The generative loss never lies below its closed form.",
            "closed form [(I−2)H(p) + (1+(I−2)(1−p_r)) ln 2]/(T−1)",
            "loss on fresh strings minus that of the true law on the same strings, nats per token, least of the seeds",
            Above(-0.005),
            exact=True,
        ),
        Claim(
            "reaches-floor",
            "Training comes close to the floor.",
            "closed form",
            "loss on fresh strings minus that of the true law on the same strings, nats per token",
            Below(0.03),
        ),
        Claim(
            "slower",
            "Reads are learnt later than when only reads count.",
            f"{SOURCE}, Figure 7 (right)",
            "ln of steps until the error in distribution is below 1 %, generative over clean (never: all steps)",
            Above(0.0),
            paper="slower convergence in distribution",
        ),
        Claim(
            "tail",
            "The larger tail error exceeds the error in distribution.",
            f"{SOURCE}, Figure 7",
            "larger tail error minus in-distribution error",
            Above(0.0),
        ),
    ],
)
def generative(config: Settings, lab: Lab) -> Outcome:
    """The same models with the loss on every next token, scored on reads as before.

    Most tokens are coin flips, so the loss is nearly all noise floor: L* = [(I−2)H(p) + (1+(I−2)(1−p_r)) ln 2]/(T−1)
    nats per token with I = T/2 pairs. The part that can be learnt is small, and so is its gradient: convergence in
    distribution takes longer than for the same model in the clean mode (dotted). The figure shows the training loss
    above its floor, and the read errors.
    """
    run = config.run
    jobs = split_seeds(run, config.seeds, lab.device)
    clean = split_seeds(replace(run, mode="clean", steps=config.clean_steps), config.seeds, lab.device)
    both = lab.map(train_run, [*jobs, *clean], label="generative runs")
    found, compared = both[: len(jobs)], both[len(jobs) :]
    floor = FlipFlop.ignoring(*run.ignore, length=run.length, mode="generative").loss_floor()
    losses = np.concatenate([result["loss"] for result in found])
    excess = np.concatenate([result["excess"] for result in found])
    tail = np.maximum(by_seed(found, "final", "sparse"), by_seed(found, "final", "dense"))
    measurements = {
        "floor": float(excess.min()),
        "reaches-floor": excess,
        "slower": np.log(_learnt_at(found) / _learnt_at(compared)),
        "tail": tail - by_seed(found, "final", "in"),
    }
    return Outcome(measurements, {"curves": _draw(found, compared, losses - floor)})


def _learnt_at(results: list[dict[str, Any]], error: float = 0.01) -> np.ndarray:
    """The first evaluated step with an error in distribution below `error`, per seed; the last step when never."""
    steps = results[0]["steps"]
    low = np.concatenate([result["curves"]["in"] for result in results]) < error
    return np.where(low.any(1), steps[low.argmax(1)], steps[-1]).astype(float)


def _draw(found: list[dict[str, Any]], clean: list[dict[str, Any]], above: np.ndarray) -> Any:
    figure, axes = figures.new(columns=2, width=4.2, height=3.0)
    width = max(1, above.shape[1] // 100)
    smooth = above[:, : above.shape[1] // width * width].reshape(len(above), -1, width).mean(-1)
    figures.band(axes[0], np.arange(smooth.shape[1]) * width, smooth)
    axes[0].axhline(0, color="#555555", linestyle=":")
    axes[0].set_yscale("symlog", linthresh=1e-2)
    axes[0].set(title="loss above its floor", xlabel="training step", ylabel="nats per token")
    for name in SETS:
        figures.band(axes[1], found[0]["steps"], np.concatenate([r["curves"][name] for r in found]), label=name)
    curve = np.median(np.concatenate([result["curves"]["in"] for result in clean]), 0)
    axes[1].plot(clean[0]["steps"], curve, color="#555555", linestyle=":", label="in, clean mode")
    axes[1].set_yscale("symlog", linthresh=1e-3)
    axes[1].set(title="read error", xlabel="training step")
    axes[1].legend()
    return figure
