"""Fig. 6 and Fig. 7: the gradient is small on plateaus and has a peak at the jump."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sandlab import figures
from sandlab.studies.base import Lab, Outcome, study
from sandlab.studies.claims import Above, Claim
from sandlab.studies.ngrams.runs import SOURCE, Run, estimator_losses, split_seeds, train_run

RUN = Run(states=3, length=64, steps=1500, looks=60, gradients=24, test=2048)
MLP = Run(model="additive with feed-forward", states=3, length=32, concentration=1.0, steps=1500, lr=0.005, looks=50,
          gradients=8, test=1024, weight_decay=1e-4)  # fmt: skip


@dataclass(frozen=True)
class Settings:
    seeds: int = 5
    run: Run = RUN
    mlp_seeds: int = 2
    mlp: Run = MLP


@study(
    "ngrams/gradient-norm",
    title="Little gradient on the plateau, a burst at the jump",
    source=f"{SOURCE}, Figures 6 and 7",
    quick=Settings(),
    full=Settings(
        seeds=16,
        run=replace(RUN, states=5, length=128, steps=6000, looks=120, gradients=32, test=8192),
        mlp_seeds=16,
        mlp=replace(MLP, states=5, length=64, steps=6000, looks=120, gradients=32, test=8192),
    ),
    claims=[
        Claim(
            "burst",
            "The gradient norm near the jump is clearly above that on the plateau.",
            f"{SOURCE}, Figure 6",
            "largest averaged norm around the jump over the median on the plateau before it",
            Above(1.2),
            paper="0.08 against 0.006 (smoothed figure)",
        ),
        Claim(
            "jump",
            "The loss falls in a jump.",
            f"{SOURCE}, Figure 6",
            "share of the fall after the first tenth that happens in the steepest tenth of the steps",
            Above(0.35),
        ),
        Claim(
            "mlp-shares-a-head",
            "With feed-forward blocks one head may look at lags 1 and 2 at once.",
            f"{SOURCE}, Figure 7",
            "largest sum over heads of the masses on lags 1 and 2, at the end",
            Above(0.5),
            paper="one head attends to both",
        ),
    ],
)
def gradient_norm(config: Settings, lab: Lab) -> Outcome:
    """Trigrams in the simplified transformer (full: 5 states, length 128; quick: 3 states, length 64), and with blocks.

    The norm of the gradient is averaged over many batches at each look, because the noise of one batch hides the
    effect. Loss (left axis) and gradient norm (right axis) are drawn together; the burst marks the jump.
    """
    jobs = split_seeds(config.run, config.seeds, lab.device)
    more = split_seeds(config.mlp, config.mlp_seeds, lab.device)
    found = lab.map(train_run, [*jobs, *more], label="gradient norms")
    simple, mlp = _join(found[: len(jobs)]), _join(found[len(jobs) :])
    shapes = [_shape(simple["steps"], loss, norm) for loss, norm in zip(simple["loss"], simple["gradient"])]
    measurements: dict[str, Any] = {
        "burst": [burst for burst, _ in shapes],
        "jump": [share for _, share in shapes],
        "mlp-shares-a-head": mlp["mass"][:, -1, :, 1:3].sum(-1).max(-1),
    }
    figure, axes = figures.new(columns=2, width=4.8, height=3.2)
    panels = ((axes[0], simple, config.run, "simplified"), (axes[1], mlp, config.mlp, "with feed-forward"))
    for axis, run, settings, title in panels:
        axis.plot(run["steps"], run["loss"][0], color=figures.COLOURS[0])
        levels = {name: value for name, value in estimator_losses(settings).items() if name != "uniform"}
        figures.levels(axis, levels)
        twin = axis.twinx()
        twin.plot(run["steps"], run["gradient"][0], color=figures.COLOURS[1], linestyle="--")
        twin.set_ylabel("gradient norm (dashed)")
        twin.grid(False)
        axis.set(title=title, xlabel="training step", ylabel="test loss")
    return Outcome(measurements, {"gradient": figure})


def _join(results: list[dict[str, Any]]) -> dict[str, Any]:
    joined = {name: np.concatenate([result[name] for result in results]) for name in ("loss", "gradient", "mass")}
    return joined | {"steps": results[0]["steps"]}


def _shape(steps: np.ndarray, loss: np.ndarray, norm: np.ndarray) -> tuple[float, float]:
    """Gradient at the steepest fall over the median before it, and the share of the fall in that tenth of the steps."""
    window = max(2, len(steps) // 10)
    late = len(steps) // 10
    falls = np.array([loss[place] - loss[place + window] for place in range(late, len(loss) - window)])
    start = late + int(falls.argmax())
    around = norm[max(start - 1, 0) : start + window + 1].max()
    before = norm[late : max(start, late + 2)]
    total = max(float(loss[late] - loss[-1]), 1e-9)
    return float(around / np.median(before)), float(falls.max() / total)
