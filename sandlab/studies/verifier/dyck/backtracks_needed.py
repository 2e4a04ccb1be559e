"""Where the verifier rejected a string, continuing without backtracking would mostly have failed.

Every string at which the verifier rejected is completed once more, this time without backtracking.

The strings come from backtracking on error-inducing prefixes (verifier/dyck-backtracking), for each quota and stride;
they are completed by nucleus sampling and greedily; a rejected string that had ended is its own completion. If the
verifier's alarms were false, nothing would be lost by ignoring them.

What to look for: all points lie above the diagonal, accuracy with backtracking against accuracy without. The published
model makes its errors with more confidence, so that its points lie further to the left.

**What was learnt.** At the published size (eight models, 164 prefixes each), backtracking is better than continuing in
every cell and every model. The number of backtracks decreases with the stride as published, from a lower level: 136 at
quota 1, 200 to 195 at quota 2, 243 to 229 at quota 4 (published 163, 311 to 286, 600 to 489).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.studies.claims import Mean
from sandlab.studies.study import Lab, Rows, Study
from sandlab.studies.verifier._decoding_runs import QUERIES, THESIS, spread, table
from sandlab.studies.verifier.dyck import _dyck_runs as dyck

# Table 3.4: "quota,stride" → backtracks, share of the rejected strings completed correctly (nucleus 0.9, greedy).
WITHOUT = {
    "1,2": (163, 0.313, 0.344), "1,4": (163, 0.337, 0.319), "1,6": (163, 0.331, 0.288), "2,2": (311, 0.347, 0.328),
    "2,4": (297, 0.357, 0.349), "2,6": (286, 0.374, 0.373), "4,2": (600, 0.371, 0.353), "4,4": (532, 0.419, 0.404),
    "4,6": (489, 0.509, 0.523),
}  # fmt: skip

study = Study(
    "verifier/backtracks-needed",
    title="Where the verifier rejected, going on without backtracking would mostly have failed",
    source=QUERIES,
    at=f"Dyck experiments ({THESIS}, Table 3.4)",
    **dyck.PRESETS,
)


@dataclass(frozen=True)
class Results:
    """For each model, the number of its error-inducing prefixes, and what backtracking from them did."""

    prefixes: np.ndarray
    quota: dict[str, np.ndarray]


@study.collect
def collect(settings: dyck.Settings, lab: Lab) -> Results:
    models = dyck.train_models(settings, lab)
    prefixes = np.array([len(writer.errors.prefixes) for writer in models.writers])
    return Results(prefixes, table(models.measure(dyck.vary_quota, "backtracking from error-inducing prefixes")))


@study.claim(Mean(above=0.1), source=THESIS, at="Tables 3.2 and 3.4", paper="0.108 to 0.412")
def needed(results: Results) -> np.ndarray:
    """From the rejected strings, sampling without backtracking is right clearly less often than with it, at every
    quota and stride.

    Accuracy with minus without backtracking (nucleus 0.9), smallest over quotas and strides.
    """
    return np.min([results.quota[f"accuracy {cell}"] - results.quota[f"without {cell}"] for cell in WITHOUT], axis=0)


@study.claim(Mean(below=1.0), source=THESIS, at="Table 3.4", paper="286/311 and 489/600")
def fewer(results: Results) -> np.ndarray:
    """Longer strides need fewer backtracks.

    Backtracks at stride 6 divided by backtracks at stride 2, larger of quotas 2 and 4.
    """
    fewer, more = (np.array([results.quota[f"backtracks {q},{stride}"] for q in (2, 4)]) for stride in (6, 2))
    return np.max(fewer / more, axis=0)


@study.table
def rejected_strings(results: Results) -> Rows:
    return [
        {
            "quota": cell.split(",")[0],
            "stride": cell.split(",")[1],
            "backtracks of 164 prefixes": spread(164 * results.quota[f"backtracks {cell}"] / results.prefixes, 0),
            "published": backtracks,
            "with": spread(results.quota[f"accuracy {cell}"]),
            "published, with": f"{dyck.WITH_VERIFIER[cell]:.3f}",
            "without, nucleus 0.9": spread(results.quota[f"without {cell}"]),
            "published, nucleus": f"{nucleus:.3f}",
            "without, greedy": spread(results.quota[f"greedy {cell}"]),
            "published, greedy": f"{greedy:.3f}",
        }
        for cell, (backtracks, nucleus, greedy) in WITHOUT.items()
    ]


@study.figure
def scatter(results: Results) -> dict[str, Figure]:
    ours = [tuple(results.quota[f"{name} {cell}"].mean() for name in ("without", "accuracy")) for cell in WITHOUT]
    theirs = [(nucleus, dyck.WITH_VERIFIER[cell]) for cell, (_, nucleus, _) in WITHOUT.items()]
    figure, (axis,) = figures.new(width=4.4, height=3.8)
    axis.plot([0, 1], [0, 1], color="#999999", linewidth=1)
    axis.scatter(*zip(*ours), s=26, label="here", color=figures.COLOURS[0])
    axis.scatter(*zip(*theirs), s=26, label="published", color="#8a8d91", marker="s")
    low = min(0.2, *(value for point in ours for value in point if np.isfinite(value))) - 0.02
    axis.set(xlim=(low, 1), ylim=(low, 1), xlabel="right without backtracking", ylabel="right with backtracking")
    axis.set_title("each point: a quota and a stride")
    axis.legend(loc="lower right")
    return {"needed": figure}
