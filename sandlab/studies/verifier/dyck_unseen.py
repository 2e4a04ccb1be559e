"""Fresh prompts: which errors remain, how varied the completions are, what the greedy rewriting does."""

from __future__ import annotations

from typing import Any

import numpy as np

from sandlab import figures
from sandlab.studies.base import Lab, Outcome, study
from sandlab.studies.claims import Above, Below, Between, Claim
from sandlab.studies.verifier.dyck_settings import FULL, QUICK, Settings, pooled, run_campaigns, spread
from sandlab.studies.verifier.sources import QUERIES, THESIS
from sandlab.worlds.brackets import BracketError

CLOSING = int(BracketError.INCORRECT_CLOSING_BRACKET)


@study(
    "verifier/remaining-errors",
    title="What backtracking leaves are wrong closing brackets, written with confidence after the quota is spent",
    source=f"{QUERIES}, Dyck experiments ({THESIS}, Figure 3.2)",
    quick=QUICK,
    full=FULL,
    claims=[
        Claim(
            "closing",
            "Nearly all remaining errors are closing brackets of the wrong type.",
            f"{THESIS}, Figure 3.2",
            "share among the errors of backtracking",
            Above(0.9),
            over="share",
            paper="222 of 225",
        ),
        Claim(
            "quota",
            "They are made when the quota is spent (verifier asked before each token, as in the released code).",
            f"{THESIS}, Figure 3.2",
            "share of errors with quota 0",
            Above(0.9),
            over="share",
            paper="225 of 225",
        ),
        Claim(
            "confident",
            "The wrong token is the model's most probable one.",
            f"{THESIS}, Figure 3.2",
            "share of errors whose token is the most probable",
            Above(0.5),
            over="share",
            paper="all rows shown, with probabilities 0.52 to 0.998",
        ),
    ],
)
def remaining_errors(config: Settings, lab: Lab) -> Outcome:
    """Every wrong completion of fresh prompts after backtracking (Q = B = 4, top-p 0.9), read at its first error.

    For each: the kind of error, the prefix, the token written and its probability, the most probable token, and what
    was left of the quota. Two ways of asking the verifier are compared: after each sampled token, as the algorithm is
    printed, and before each token on the string so far, as the released code does, where greedily rewritten tokens are
    checked too.

    What to look for: the left panel, kinds of error; the right panel, quota left. Asked after sampling only, the
    verifier never sees the rewritten tokens, and a share of the errors is made by them with quota to spare; the
    published figure (all errors with quota 0) belongs to the other order.
    """
    results = run_campaigns(config, lab)
    lists = {
        name: [each["unseen"]["mistakes"][name] for each in results] for name in ("trained 0.9", "checked before 0.9")
    }

    def answers(name: str, test: Any) -> list[float]:
        return [float(test(row)) for rows in lists[name] for row in rows] or [0.0]

    before = "checked before 0.9"
    measurements = {
        "closing": answers(before, lambda row: row["kind"] == CLOSING),
        "quota": answers(before, lambda row: row["quota left"] == 0),
        "confident": answers(before, lambda row: row["token"] == row["best"]),
    }
    every = [row for rows in lists[before] for row in rows]
    shown = sorted(every, key=lambda row: -row["probability"])[:: max(1, len(every) // 12)][:12]
    table = [{**row, "kind": BracketError(row["kind"]).name.lower().replace("_", " ")} for row in shown]
    figure, axes = figures.new(columns=2, width=4.6, height=3.2)
    labels = {"trained 0.9": "verifier asked after sampling", before: "asked before each token"}
    kinds = sorted({row["kind"] for rows in lists.values() for part in rows for row in part})
    with figures.style():
        for shift, (name, parts) in zip((-0.2, 0.2), lists.items()):
            rows = [row for part in parts for row in part]
            counts = [sum(row["kind"] == kind for row in rows) for kind in kinds]
            axes[0].bar(np.arange(len(kinds)) + shift, counts, 0.38, label=labels[name])
            quotas = [sum(row["quota left"] == left for row in rows) for left in range(5)]
            axes[1].bar(np.arange(5) + shift, quotas, 0.38, label=labels[name])
        axes[0].set(xticks=range(len(kinds)), ylabel="errors", title="kind of the first error")
        names = [BracketError(kind).name.lower().replace("_", " ") for kind in kinds]
        axes[0].set_xticklabels(
            [name.replace(" exceeds ", "\nexceeds ").replace("incorrect ", "incorrect\n") for name in names]
        )
        axes[0].tick_params(axis="x", labelsize=8)
        axes[1].set(xticks=range(5), xlabel="quota left", ylabel="errors", title="quota left at the end")
        axes[1].legend()
    return Outcome(measurements, {"errors": figure}, {"some remaining errors": table})


@study(
    "verifier/diversity",
    title="Backtracking with a good verifier does not make completions less varied",
    source=f"{QUERIES}, Dyck experiments ({THESIS}, Table 3.5)",
    quick=QUICK,
    full=FULL,
    claims=[
        Claim(
            "exact",
            "With the exact verifier, ten completions have about as many distinct ones as ten plain samples.",
            f"{THESIS}, Table 3.5",
            "mean number of distinct completions with backtracking minus plain sampling, both at top-p 1.0",
            Between(-1.0, 1.0),
            paper="5.52 − 5.84 (trained verifier)",
        ),
        Claim(
            "trained",
            "The same holds with the trained verifier.",
            f"{THESIS}, Table 3.5",
            "mean number of distinct completions with backtracking minus plain sampling, both at top-p 1.0",
            Between(-1.0, 1.0),
            paper="5.52 − 5.84",
            presets=("full",),
        ),
    ],
)
def diversity(config: Settings, lab: Lab) -> Outcome:
    """Ten completions of each of some fresh prompts: how many are distinct?

    60 prompts (full 100) of 16 to 31 brackets. Backtracking with Q = B = 4 at top-p 1.0 against plain sampling at 0.9
    and 1.0. Distinct wrong completions count as well, which favours plain sampling: part of its variety are errors.

    What to look for: with the exact verifier, which rejects only what is wrong, the distribution is that of sampling. A
    trained verifier with false alarms makes the model write greedily, and variety is lost: what costs variety is the
    verifier's error, not backtracking.

    Learnt on the way: for prompts of 25 to 31 brackets, the lengths given in the source, ten samples of the true law
    itself have 3.0 distinct completions on average; its 5.84 belongs to shorter prompts, such as 16 to 31 (6.3), which
    are used here. It prints "standard error" beside its means; by size (3.28 over 100 prompts) it is the standard
    deviation.
    """
    results = run_campaigns(config, lab)
    counts = {
        name: pooled(results, lambda each, n=name: each["diversity"][n])
        for name in ("trained 1.0", "exact 1.0", "baseline 0.9", "baseline 1.0")
    }
    published = {"trained 1.0": "5.52 ± 3.28", "baseline 0.9": "5.47 ± 3.06", "baseline 1.0": "5.84 ± 3.29"}
    published["exact 1.0"] = ""
    rows = [
        {
            "way": name,
            "distinct of 10, mean ± standard deviation": f"{values.mean():.2f} ± {values.std(ddof=1):.2f}",
            "published": published[name],
        }
        for name, values in counts.items()
    ]
    figure, (axis,) = figures.new(width=5.2, height=3.1)
    labels = {
        "trained 1.0": "backtracking, trained verifier",
        "exact 1.0": "backtracking, exact verifier",
        "baseline 0.9": "sampling, top-p 0.9",
        "baseline 1.0": "sampling, top-p 1.0",
    }
    with figures.style():
        for shift, (name, values) in zip((-0.3, -0.1, 0.1, 0.3), counts.items()):
            shares = [float((values == number).mean()) for number in range(1, 11)]
            axis.bar(np.arange(1, 11) + shift, shares, 0.19, label=f"{labels[name]}: mean {values.mean():.2f}")
        axis.set(xlabel="distinct completions among ten", ylabel="share of prompts", xticks=range(1, 11))
        axis.legend()
    plain = counts["baseline 1.0"]
    measurements = {"exact": counts["exact 1.0"] - plain, "trained": counts["trained 1.0"] - plain}
    return Outcome(measurements, {"diversity": figure}, {"diversity": rows})


@study(
    "verifier/dyck-no-argmax",
    title="The greedy rewriting is what makes backtracking work on Dyck words",
    source=f"{QUERIES}, ablation ({THESIS}, Table 3.16)",
    quick=QUICK,
    full=FULL,
    claims=[
        Claim(
            "argmax-nucleus",
            "Without the greedy rewriting more errors remain at top-p 0.9.",
            f"{THESIS}, Table 3.16",
            "errors with rewriting divided by errors without",
            Below(1.0),
            paper="179.4/245.8",
        ),
        Claim(
            "argmax-plain",
            "The same holds at top-p 1.0.",
            f"{QUERIES}, ablation",
            "errors with rewriting divided by errors without",
            Below(1.0),
        ),
        Claim(
            "no-better",
            "Without it, backtracking removes less than half of the errors of plain nucleus sampling.",
            f"{THESIS}, Tables 3.3 and 3.16",
            "errors without rewriting divided by errors of nucleus sampling, top-p 0.9",
            Above(0.5),
            paper="245.8/240.0",
        ),
    ],
)
def dyck_no_argmax(config: Settings, lab: Lab) -> Outcome:
    """After erasing B tokens, rewrite them greedily (the algorithm) or go on sampling (the ablation)?

    Fresh unfamiliar prompts, Q = B = 4, trained verifier; five repetitions. Sampling again from the same law after an
    error meets the same law that erred; and every new alarm spends quota until none is left.

    What to look for: the middle bars are as high as the left ones, the right ones are not.
    """
    results = run_campaigns(config, lab)

    def errors(name: str) -> np.ndarray:
        return pooled(results, lambda each: each["unseen"][name]["errors"])

    measurements = {
        "argmax-nucleus": errors("trained 0.9") / errors("no argmax 0.9"),
        "argmax-plain": errors("trained 1.0") / errors("no argmax 1.0"),
        "no-better": errors("no argmax 0.9") / errors("baseline 0.9"),
    }
    published = {"baseline 0.9": "240.0 ± 5.2", "no argmax 0.9": "245.8 ± 8.7", "trained 0.9": "179.4 ± 1.0"}
    published |= {"baseline 1.0": "461.8 ± 8.3", "no argmax 1.0": "", "trained 1.0": "200.0 ± 3.2"}
    prompts = results[0]["unseen"]["prompts"]
    rows = [
        {"way": name, f"errors of {prompts}": spread(errors(name)), "published, of 10000": text}
        for name, text in published.items()
    ]
    figure, (axis,) = figures.new(width=5.0, height=3.1)
    with figures.style():
        ways = ("baseline", "no argmax", "trained")
        for shift, top_p in ((-0.2, "0.9"), (0.2, "1.0")):
            values = [errors(f"{way} {top_p}") / prompts for way in ways]
            axis.bar(np.arange(3) + shift, [value.mean() for value in values], 0.38, label=f"top-p {top_p}")
            for place, value in enumerate(values):
                axis.plot([place + shift] * len(value), value, "k.", markersize=3)
        axis.set(xticks=range(3), ylabel="share completed wrong")
        axis.set_xticklabels(["no verifier", "erase, then sample", "erase, rewrite greedily"])
        axis.legend()
    return Outcome(measurements, {"rewriting": figure}, {"errors on fresh prompts": rows})
