"""Backtracking with a trained verifier on Dyck words: from error-inducing prefixes and on fresh prompts."""

from __future__ import annotations

from typing import Any

import numpy as np

from sandlab import figures
from sandlab.studies.base import Lab, Outcome, study
from sandlab.studies.claims import Above, Below, Claim
from sandlab.studies.verifier.dyck_campaign import CUTS, QUOTAS, STRIDES
from sandlab.studies.verifier.dyck_settings import FULL, QUICK, Settings, pooled, run_campaigns, spread
from sandlab.studies.verifier.sources import QUERIES, THESIS

FORCED = {"nucleus 0.9": 0.331, "greedy": 0.334, "B=1": 0.366, "B=2": 0.438, "B=4": 0.591, "B=8": 0.790}
WITH_VERIFIER = {
    "1,2": 0.421, "1,4": 0.500, "1,6": 0.604, "2,2": 0.457, "2,4": 0.634, "2,6": 0.762, "4,2": 0.518, "4,4": 0.762,
    "4,6": 0.921,
}  # fmt: skip
WITHOUT = {
    "1,2": (163, 0.313, 0.344), "1,4": (163, 0.337, 0.319), "1,6": (163, 0.331, 0.288), "2,2": (311, 0.347, 0.328),
    "2,4": (297, 0.357, 0.349), "2,6": (286, 0.374, 0.373), "4,2": (600, 0.371, 0.353), "4,4": (532, 0.419, 0.404),
    "4,6": (489, 0.509, 0.523),
}  # fmt: skip


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
            "accuracy with 8 tokens erased minus with 2",
            Above(0.0),
            paper="0.790 − 0.438",
        ),
        Claim(
            "four",
            "Erasing 4 tokens is better than erasing none.",
            f"{THESIS}, Table 3.1",
            "accuracy with 4 tokens erased minus without erasing",
            Above(0.0),
            paper="0.591 − 0.331",
        ),
        Claim(
            "eight",
            "Erasing 8 tokens helps by a wide margin.",
            f"{THESIS}, Table 3.1",
            "accuracy with 8 tokens erased minus without erasing",
            Above(0.05),
            paper="0.790 − 0.331",
        ),
    ],
)
def forced_backtracking(config: Settings, lab: Lab) -> Outcome:
    """Prompts after which the model erred; the last B tokens are erased once, then sampling goes on to length 32.

    The prompts are the wrong completions of unfamiliar prompts without their first wrong token, so the model stands
    right before its error. No verifier takes part. Each setting is repeated five times with other random numbers.
    The prefixes were not used to train anything: the verifier of the other studies has its own.

    What to look for: accuracy rises with B, from what nucleus sampling reaches at the brink of an error. The published
    bars (grey) rise higher; its model errs less often, so its errors come later and erasing eight tokens undoes more.
    """
    results = run_campaigns(config, lab)
    scores = {name: pooled(results, lambda each, n=name: each["forced"][n]) for name in FORCED}
    rows = [{"setting": name, "accuracy": spread(values), "published": FORCED[name]} for name, values in scores.items()]
    figure, (axis,) = figures.new(width=5.8, height=3.2)
    with figures.style():
        place = np.arange(len(scores))
        axis.bar(place - 0.2, [values.mean() for values in scores.values()], 0.4, label="here")
        axis.bar(place + 0.2, list(FORCED.values()), 0.4, color="#b9bcc0", label="published")
        for spot, values in zip(place, scores.values()):
            axis.plot([spot - 0.2] * len(values), values, "k.", markersize=3)
        names = ["nothing\nerased", "greedy,\nnothing erased", *(f"{cut} erased" for cut in CUTS)]
        axis.set(xticks=place, ylabel="share completed right", ylim=(0, 1))
        axis.set_xticklabels(names, fontsize=8)
        axis.legend(loc="upper left")
    measurements = {
        "increases": scores["B=8"] - scores["B=2"],
        "four": scores["B=4"] - scores["nucleus 0.9"],
        "eight": scores["B=8"] - scores["nucleus 0.9"],
    }
    return Outcome(measurements, {"accuracy": figure}, {"completions of error-inducing prefixes": rows})


@study(
    "verifier/dyck-backtracking",
    title="Backtracking with a linear verifier repairs errors; an exact verifier repairs more",
    source=f"{QUERIES}, Dyck experiments ({THESIS}, Tables 3.2 and 3.3)",
    quick=QUICK,
    full=FULL,
    claims=[
        Claim(
            "helps",
            "From error-inducing prefixes, backtracking with the trained verifier beats nucleus sampling.",
            f"{THESIS}, Table 3.2",
            "accuracy with quota 4 and stride 6 minus nucleus 0.9",
            Above(0.1),
            paper="0.921 − 0.331",
        ),
        Claim(
            "stride",
            "Erasing more tokens helps at every quota.",
            f"{THESIS}, Table 3.2",
            "smallest difference of accuracies between stride 6 and stride 2 over quotas 1, 2, 4",
            Above(0.0),
            paper="0.18 to 0.40",
        ),
        Claim(
            "quota",
            "Backtracking more often helps at the largest stride.",
            f"{THESIS}, Table 3.2",
            "accuracy with quota 4 minus quota 1 at stride 6",
            Above(0.0),
            paper="0.921 − 0.604",
        ),
        Claim(
            "unseen-nucleus",
            "On fresh prompts the trained verifier lowers the number of errors at top-p 0.9.",
            f"{THESIS}, Table 3.3",
            "errors with backtracking divided by errors of nucleus sampling",
            Below(1.0),
            paper="179.4/240.0",
        ),
        Claim(
            "unseen-plain",
            "It does so at top-p 1.0.",
            f"{THESIS}, Table 3.3",
            "errors with backtracking divided by errors of sampling",
            Below(1.0),
            paper="200.0/461.8",
        ),
        Claim(
            "larger-for-plain",
            "The relative reduction is larger at top-p 1.0 than at 0.9.",
            f"{THESIS}, Table 3.3",
            "reduction at 1.0 minus reduction at 0.9",
            Above(0.0),
            paper="57 % − 25 %",
        ),
        Claim(
            "exact",
            "The exact verifier leaves fewer errors than the trained one.",
            f"{QUERIES}, ground-truth verifier",
            "errors of the trained minus errors of the exact verifier at top-p 1.0, per prompt",
            Above(0.0),
        ),
        Claim(
            "accounting",
            "Queries are the tokens kept and the tokens erased: nothing is computed twice.",
            "by definition of the counters",
            "largest difference between queries and tokens written",
            Below(0.5),
            exact=True,
        ),
    ],
)
def dyck_backtracking(config: Settings, lab: Lab) -> Outcome:
    """Tokenwise rejection with backtracking: when the verifier rejects, the last B tokens are erased and rewritten.

    The verifier is a linear probe of the model's last layer at the last token, trained on wrong and correct prefixes
    (see verifier/representations). After each sampled token it is asked, and below ½ the last B tokens are erased and B
    most probable ones written, at most Q times.

    First experiment: prompts are prefixes after which the model erred; erasing may cut into them. Second: fresh
    unfamiliar prompts (800 a repetition, full 10 000), which are never cut, Q = B = 4, five repetitions. Beside the
    trained verifier stand the exact one (a stack), a random one that rejects every second token, and the variant that
    resumes sampling after erasing.

    What to look for: the table of accuracies grows to the right; in the bars the trained verifier lies between plain
    sampling and the exact verifier. The random verifier comes close to the trained one here: its constant backtracking
    makes the model write greedily, and greedy completions have few errors. The exact verifier gets there with a tenth
    of the backtracks: most alarms of the trained one are false (see verifier/representations). If erasing may cut into
    fresh prompts, false alarms make the model rewrite what it was given and the advantage is lost: the second
    experiment must leave prompts alone.
    """
    results = run_campaigns(config, lab)
    base = pooled(results, lambda each: each["forced"]["nucleus 0.9"])
    cells = {cell: pooled(results, lambda each, c=cell: each["tables"][c]["accuracy"]) for cell in WITH_VERIFIER}

    def errors(name: str) -> np.ndarray:
        return pooled(results, lambda each: each["unseen"][name]["errors"])

    gain = {top_p: 1 - errors(f"trained {top_p}") / errors(f"baseline {top_p}") for top_p in ("0.9", "1.0")}
    by_stride = np.min([cells[f"{quota},6"] - cells[f"{quota},2"] for quota in QUOTAS], axis=0)
    written = [
        abs(asked - computed)
        for each in results
        for name in ("baseline 0.9", "trained 0.9", "exact 0.9")
        for asked, computed in zip(each["unseen"][name]["queries"], each["unseen"][name]["evaluations"])
    ]
    measurements: dict[str, Any] = {
        "helps": cells["4,6"] - base,
        "stride": by_stride,
        "quota": cells["4,6"] - cells["1,6"],
        "unseen-nucleus": 1 - gain["0.9"],
        "unseen-plain": 1 - gain["1.0"],
        "larger-for-plain": gain["1.0"] - gain["0.9"],
        "exact": (errors("trained 1.0") - errors("exact 1.0")) / results[0]["unseen"]["prompts"],
        "accounting": float(max(written)),
    }
    rows = [
        {
            "quota": cell.split(",")[0],
            "stride": cell.split(",")[1],
            "accuracy": spread(values),
            "published": WITH_VERIFIER[cell],
        }
        for cell, values in cells.items()
    ]
    ways = [name for name in results[0]["unseen"] if name not in ("mistakes", "prompts")]
    fresh = [
        {
            "way": name,
            "errors": spread(errors(name)),
            "of prompts": results[0]["unseen"]["prompts"],
            "queries per prompt": float(pooled(results, lambda each, n=name: each["unseen"][n]["queries"]).mean())
            / results[0]["unseen"]["prompts"],
            "backtracks per prompt": float(pooled(results, lambda each, n=name: each["unseen"][n]["backtracks"]).mean())
            / results[0]["unseen"]["prompts"],
        }
        for name in ways
    ]
    figure = _draw(cells, base, {name: errors(name) / results[0]["unseen"]["prompts"] for name in ways})
    return Outcome(measurements, {"backtracking": figure}, {"error-inducing prefixes": rows, "fresh prompts": fresh})


def _draw(cells: dict[str, np.ndarray], base: np.ndarray, shares: dict[str, np.ndarray]) -> Any:
    figure, axes = figures.new(columns=3, width=4.2, height=3.4)
    ours = np.array([[cells[f"{quota},{stride}"].mean() for stride in STRIDES] for quota in QUOTAS])
    published = np.array([[WITH_VERIFIER[f"{quota},{stride}"] for stride in STRIDES] for quota in QUOTAS])
    with figures.style():
        for axis, values, name, alone in (
            (axes[0], ours, "here", float(base.mean())),
            (axes[1], published, "published", 0.331),
        ):
            figures.heatmap(
                axis, values, x="stride B", y="quota Q", title=f"{name}: nucleus alone {alone:.3f}",
                low=0.3, high=0.95, numbers=True, bar=False,
            )  # fmt: skip
            axis.set(xticks=range(len(STRIDES)), yticks=range(len(QUOTAS)))
            axis.set_xticklabels(map(str, STRIDES))
            axis.set_yticklabels(map(str, QUOTAS))
        ways = ("baseline", "no argmax", "random", "trained", "exact")
        place = np.arange(len(ways))
        for shift, top_p in ((-0.2, "0.9"), (0.2, "1.0")):
            parts = [shares[f"{way} {top_p}"] for way in ways]
            axes[2].bar(place + shift, [part.mean() for part in parts], 0.38, label=f"top-p {top_p}")
            for spot, value in zip(place, parts):
                axes[2].plot([spot + shift] * len(value), value, "k.", markersize=3)
        axes[2].set(xticks=place, ylabel="share of fresh prompts completed wrong", title="fresh prompts, Q = B = 4")
        axes[2].set_xticklabels(["no\nverifier", "trained,\nno argmax", "random", "trained", "exact"], fontsize=8)
        axes[2].legend()
    return figure


@study(
    "verifier/backtracks-needed",
    title="Where the verifier rejected, going on without backtracking would mostly have failed",
    source=f"{QUERIES}, Dyck experiments ({THESIS}, Table 3.4)",
    quick=QUICK,
    full=FULL,
    claims=[
        Claim(
            "needed",
            "From the rejected strings, sampling without backtracking is right less often than with it.",
            f"{THESIS}, Tables 3.2 and 3.4",
            "accuracy with minus without backtracking, over quotas and strides, nucleus 0.9",
            Above(0.0),
            paper="0.11 to 0.41",
        ),
        Claim(
            "fewer",
            "Longer strides need fewer backtracks.",
            f"{THESIS}, Table 3.4",
            "backtracks at quota 4 with stride 6 divided by stride 2",
            Below(1.0),
            paper="489/600",
            presets=("full",),
        ),
    ],
)
def backtracks_needed(config: Settings, lab: Lab) -> Outcome:
    """Every string at which the verifier rejected is completed once more, this time without backtracking.

    The strings come from backtracking on error-inducing prefixes (verifier/dyck-backtracking), for each quota and
    stride; they are completed by nucleus sampling and greedily. If the verifier's alarms were false, nothing would be
    lost by ignoring them.

    What to look for: all points lie above the diagonal, accuracy with backtracking against accuracy without.
    """
    results = run_campaigns(config, lab)

    def cell(name: str, key: str) -> np.ndarray:
        return pooled(results, lambda each: np.mean(each["tables"][name][key]))

    rows = [
        {
            "quota": name.split(",")[0],
            "stride": name.split(",")[1],
            "backtracks": float(cell(name, "backtracks").mean()),
            "accuracy with": float(cell(name, "accuracy").mean()),
            "without, nucleus 0.9": float(cell(name, "without").mean()),
            "without, greedy": float(cell(name, "without, greedy").mean()),
            "published backtracks": published[0],
            "published without, nucleus 0.9": published[1],
            "published without, greedy": published[2],
        }
        for name, published in WITHOUT.items()
    ]
    gaps = np.array([cell(name, "accuracy") - cell(name, "without") for name in WITHOUT])
    figure, (axis,) = figures.new(width=4.4, height=3.8)
    with figures.style():
        axis.plot([0, 1], [0, 1], color="#999999", linewidth=1)
        ours = [(row["without, nucleus 0.9"], row["accuracy with"]) for row in rows]
        theirs = [(WITHOUT[name][1], WITH_VERIFIER[name]) for name in WITHOUT]
        for points, label, colour, marker in (
            (ours, "here", figures.COLOURS[0], "o"),
            (theirs, "published", "#8a8d91", "s"),
        ):
            axis.scatter(*zip(*points), s=26, label=label, color=colour, marker=marker)
        axis.set(
            xlim=(0.2, 1), ylim=(0.2, 1), xlabel="right without backtracking", ylabel="right with backtracking",
            title="from strings the verifier rejected",
        )  # fmt: skip
        axis.legend(loc="lower right")
    fewer = pooled(
        results, lambda e: np.array(e["tables"]["4,6"]["backtracks"]) / np.array(e["tables"]["4,2"]["backtracks"])
    )
    measurements: dict[str, Any] = {"needed": gaps.ravel(), "fewer": fewer}
    return Outcome(measurements, {"needed": figure}, {"rejected strings": rows})
