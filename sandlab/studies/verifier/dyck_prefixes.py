"""At the brink of an error: erasing tokens without a verifier, and what would happen without erasing."""

from __future__ import annotations

from typing import Any

import numpy as np

from sandlab import figures
from sandlab.studies.claims import Above, Below, Claim
from sandlab.studies.study import Lab, Outcome, study
from sandlab.studies.verifier.dyck_campaign import CUTS, QUOTAS
from sandlab.studies.verifier.dyck_published import FORCED, WITH_VERIFIER, WITHOUT
from sandlab.studies.verifier.dyck_settings import FULL, QUICK, Settings, by_model, run_campaigns, spread
from sandlab.studies.verifier.sources import QUERIES, THESIS


@study(
    "verifier/forced-backtracking",
    title="Erasing some tokens before an error, without any verifier, already helps",
    source=f"{QUERIES}, Dyck experiments ({THESIS}, Table 3.1)",
    quick=QUICK,
    full=FULL,
    claims=[
        Claim(
            "increases",
            "The more tokens are erased before the error, the more completions are right.",
            f"{THESIS}, Table 3.1",
            "smaller of the accuracy's differences between 2 and 4, and between 4 and 8 tokens erased",
            Above(0.0),
            paper="0.153 (0.591 − 0.438) and 0.199 (0.790 − 0.591)",
        ),
        Claim(
            "two",
            "Erasing 2 tokens does no harm.",
            f"{THESIS}, Table 3.1",
            "accuracy with 2 tokens erased minus without erasing",
            Above(-0.02),
            paper="0.438 − 0.331",
        ),
        Claim(
            "eight",
            "Erasing 8 tokens helps by a wide margin.",
            f"{THESIS}, Table 3.1",
            "accuracy with 8 tokens erased minus without erasing",
            Above(0.08),
            paper="0.790 − 0.331",
        ),
    ],
)
def forced_backtracking(config: Settings, lab: Lab) -> Outcome:
    """Prompts after which the model erred; the last B tokens are erased once, then sampling goes on to length 32.

    The prompts are the wrong completions of unfamiliar prompts without their first wrong token, so the model stands
    right before its error. No verifier takes part. Each setting is repeated five times with other random numbers. The
    prefixes (at most 164 a model) were not used to train anything: the verifier of the other studies has its own.
    Intervals are over models.

    What to look for: accuracy rises with B, from what nucleus sampling reaches at the brink of an error; the published
    values are the grey bars. Greedy writing beside nucleus sampling says how confident the errors are: as good as
    sampling when the wrong token is the most probable one, better when errors are accidents of sampling.

    Learnt with small models: they differ among each other by more than the strides do. The one that has learnt least
    (99.4 % of familiar brackets, the others 99.8 to 99.9 %) gains nothing from erasing, since it errs again; the other
    three gain 0.09 to 0.20 from erasing eight tokens. With four models the verdicts stay open.

    Learnt at the published size (eight models, 164 prefixes each): 0.43 without erasing, 0.45, 0.48, 0.57 and 0.74
    after erasing 1, 2, 4 and 8 tokens, against 0.33 and 0.37, 0.44, 0.59, 0.79 published. Models differ more than
    strides do: without erasing from 0.06 to 0.65.
    """
    results = run_campaigns(config, lab)
    scores = {name: by_model(results, lambda each, n=name: each["forced"][n]) for name in FORCED}
    rows = [
        {"setting": name, "accuracy": spread(values), "published": f"{FORCED[name]:.3f}"}
        for name, values in scores.items()
    ]
    figure, (axis,) = figures.new(width=5.8, height=3.2)
    with figures.style():
        place = np.arange(len(scores))
        axis.bar(place - 0.2, [values.mean() for values in scores.values()], 0.4, label="here (dots: models)")
        axis.bar(place + 0.2, list(FORCED.values()), 0.4, color="#b9bcc0", label="published")
        for spot, values in zip(place, scores.values()):
            axis.plot([spot - 0.2] * len(values), values, "k.", markersize=3)
        names = ["nothing\nerased", "greedy,\nnothing erased", *(f"{cut} erased" for cut in CUTS)]
        axis.set(xticks=place, ylabel="share completed right", ylim=(0, 1))
        axis.set_xticklabels(names, fontsize=8)
        axis.legend(loc="upper left")
    measurements = {
        "increases": np.minimum(scores["B=8"] - scores["B=4"], scores["B=4"] - scores["B=2"]),
        "two": scores["B=2"] - scores["nucleus 0.9"],
        "eight": scores["B=8"] - scores["nucleus 0.9"],
    }
    return Outcome(measurements, {"accuracy": figure}, {"completions of error-inducing prefixes": rows})


@study(
    "verifier/backtracks-needed",
    title="Where the verifier rejected, going on without backtracking would mostly have failed",
    source=f"{QUERIES}, Dyck experiments ({THESIS}, Table 3.4)",
    quick=QUICK,
    full=FULL,
    claims=[
        Claim(
            "needed",
            "From the rejected strings, sampling without backtracking is right less often than with it, at every quota "
            "and stride.",
            f"{THESIS}, Tables 3.2 and 3.4",
            "accuracy with minus without backtracking (nucleus 0.9), smallest over quotas and strides",
            Above(0.0),
            paper="0.108 to 0.412",
        ),
        Claim(
            "fewer",
            "Longer strides need fewer backtracks.",
            f"{THESIS}, Table 3.4",
            "backtracks at stride 6 divided by backtracks at stride 2, larger of quotas 2 and 4",
            Below(1.0),
            paper="286/311 and 489/600",
        ),
    ],
)
def backtracks_needed(config: Settings, lab: Lab) -> Outcome:
    """Every string at which the verifier rejected is completed once more, this time without backtracking.

    The strings come from backtracking on error-inducing prefixes (verifier/dyck-backtracking), for each quota and
    stride; they are completed by nucleus sampling and greedily; a rejected string that had ended is its own completion.
    If the verifier's alarms were false, nothing would be lost by ignoring them.

    What to look for: all points lie above the diagonal, accuracy with backtracking against accuracy without. The
    published model errs with more confidence, so that its points lie further to the left.

    Learnt at the published size (eight models, 164 prefixes each): backtracking is better than going on in every cell
    and every model. The number of backtracks falls with the stride as published, from a lower level: 136 at quota 1,
    200 to 195 at quota 2, 243 to 229 at quota 4 (published 163, 311 to 286, 600 to 489).
    """
    results = run_campaigns(config, lab)

    def cell(name: str, key: str) -> np.ndarray:
        return by_model(results, lambda each: each["tables"][name][key])

    prefixes = by_model(results, lambda each: each["prefixes"])
    rows = [
        {
            "quota": name.split(",")[0],
            "stride": name.split(",")[1],
            "backtracks of 164 prefixes": spread(164 * cell(name, "backtracks") / prefixes, 0),
            "published": published[0],
            "with": spread(cell(name, "accuracy")),
            "published, with": f"{WITH_VERIFIER[name]:.3f}",
            "without, nucleus 0.9": spread(cell(name, "without")),
            "published, nucleus": f"{published[1]:.3f}",
            "without, greedy": spread(cell(name, "without, greedy")),
            "published, greedy": f"{published[2]:.3f}",
        }
        for name, published in WITHOUT.items()
    ]
    gaps = np.array([cell(name, "accuracy") - cell(name, "without") for name in WITHOUT])
    ratios = [cell(f"{quota},6", "backtracks") / cell(f"{quota},2", "backtracks") for quota in QUOTAS if quota > 1]
    measurements: dict[str, Any] = {"needed": gaps.min(0), "fewer": np.max(ratios, axis=0)}
    points = [(cell(name, "without").mean(), cell(name, "accuracy").mean()) for name in WITHOUT]
    return Outcome(measurements, {"needed": _scatter(points)}, {"rejected strings": rows})


def _scatter(ours: list[tuple[float, float]]) -> Any:
    theirs = [(WITHOUT[name][1], WITH_VERIFIER[name]) for name in WITHOUT]
    figure, (axis,) = figures.new(width=4.4, height=3.8)
    with figures.style():
        axis.plot([0, 1], [0, 1], color="#999999", linewidth=1)
        for points, label, colour, marker in (
            (ours, "here", figures.COLOURS[0], "o"),
            (theirs, "published", "#8a8d91", "s"),
        ):
            axis.scatter(*zip(*points), s=26, label=label, color=colour, marker=marker)
        low = min(0.2, *(value for point in ours for value in point if np.isfinite(value)))
        axis.set(
            xlim=(low - 0.02, 1), ylim=(low - 0.02, 1), xlabel="right without backtracking",
            ylabel="right with backtracking", title="each point: a quota and a stride",
        )  # fmt: skip
        axis.legend(loc="lower right")
    return figure
