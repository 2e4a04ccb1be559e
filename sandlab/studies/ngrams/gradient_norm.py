"""Fig. 6 and Fig. 7: the gradient is small on plateaus and has a peak at the jump."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from sandlab import figures
from sandlab.lenses.ngrams.stages import plateaus
from sandlab.studies.claims import Above, Claim
from sandlab.studies.ngrams.runs import SOURCE, Run, estimator_losses, split_seeds, train_run
from sandlab.studies.study import Lab, Outcome, study

RUN = Run(states=3, length=64, heads=3, steps=1500, looks=50, gradients=16, test=1024)
MLP = Run(model="additive with feed-forward", states=3, length=32, concentration=1.0, steps=800, lr=0.005, looks=50,
          gradients=8, test=1024, weight_decay=1e-4)  # fmt: skip


@dataclass(frozen=True)
class Settings:
    seeds: int = 8
    run: Run = RUN
    mlp_seeds: int = 3
    mlp: Run = MLP


@study(
    "ngrams/gradient-norm",
    title="Little gradient on the plateau, a burst at the jump",
    source=f"{SOURCE}, Figures 6 and 7",
    quick=Settings(),
    full=Settings(
        seeds=16,
        run=replace(RUN, states=5, length=128, heads=2, steps=6000, looks=120, gradients=32, test=8192),
        mlp_seeds=16,
        mlp=replace(MLP, states=5, length=64, steps=6000, looks=120, gradients=32, test=8192),
    ),
    claims=[
        Claim(
            "burst",
            "The gradient norm near the jump is clearly above that on the plateau.",
            f"{SOURCE}, Figure 6",
            "largest norm of the population gradient around the jump over the median before it",
            Above(1.5),
            paper="0.045 against 0.025 (its smoothed version: 0.08 against 0.006)",
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
            "With feed-forward blocks one head looks at lags 1 and 2 at once.",
            f"{SOURCE}, Figure 7",
            "largest over heads of the smaller of its masses on lags 1 and 2, at the end, source's size",
            Above(0.15),
            paper="one head attends to both",
            presets=("full",),
        ),
        Claim(
            "mlp-one-plateau",
            "So there is one plateau only before the end, the unigram's.",
            f"{SOURCE}, Figure 7",
            "share of runs with exactly one level of plateaus, 0.02 nats or more above the last",
            Above(0.5),
            over="share",
            presets=("full",),
        ),
        Claim(
            "mlp-specialises",
            "With three states and 32 tokens the heads of that model take a lag each instead.",
            "this laboratory",
            "smaller of the largest masses on lag 1 and lag 2 over heads, at the end",
            Above(0.4),
            presets=("quick",),
        ),
    ],
)
def gradient_norm(config: Settings, lab: Lab) -> Outcome:
    """Trigrams in the simplified transformer (full: 5 states, length 128; quick: 3 states, length 64), and with blocks.

    The norm of the population gradient is estimated from two halves of 2048 sequences at each look, by the inner
    product of their gradients, because the noise of one batch hides the effect. The model with feed-forward blocks has
    3 states and 32 tokens, in full the source's 5 and 64. Quick gives the simplified model a third head, so that it
    leaves the bigram in time (see `ngrams/stages`). Loss (left axis) and gradient norm (right axis) are drawn together;
    the burst marks the jump.

    **What was learnt.** The burst is about twice the level before it, as in the source's own figure, and differs much
    between seeds: also on the plateau the iterates move about at this learning rate, so that the gradient where they
    are does not vanish. At three states and 32 tokens the model with feed-forward blocks learns one lag after the other
    with a head for each, like the model without; that one head may take both is the source's observation at its own
    size.
    """
    jobs = split_seeds(config.run, config.seeds, lab.device)
    more = split_seeds(config.mlp, config.mlp_seeds, lab.device)
    found = lab.map(train_run, [*jobs, *more], label="gradient norms")
    simple, mlp = _join(found[: len(jobs)]), _join(found[len(jobs) :])
    shapes = [_shape(simple["steps"], loss, norm) for loss, norm in zip(simple["loss"], simple["gradient"])]
    measurements: dict[str, Any] = {
        "burst": [burst for burst, _ in shapes],
        "jump": [share for _, share in shapes],
        "mlp-shares-a-head": mlp["mass"][:, -1, :, 1:3].min(-1).max(-1),
        "mlp-one-plateau": [float(_levels_above(mlp["steps"], loss) == 1) for loss in mlp["loss"]],
        "mlp-specialises": mlp["mass"][:, -1, :, 1:3].max(1).min(-1),
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


def _levels_above(steps: np.ndarray, loss: np.ndarray) -> int:
    """How many plateau levels, 0.02 nats apart, lie above the last plateau."""
    losses = sorted(each.loss for each in plateaus(steps, loss))
    return sum(after - before > 0.02 for before, after in pairwise(losses))


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
