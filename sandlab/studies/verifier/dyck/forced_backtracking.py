"""Erasing a few tokens before an error, without any verifier, already helps.

Prompts after which the model made an error; the last B tokens are erased once, then sampling goes on to length 32.

The prompts are the wrong completions of unfamiliar prompts without their first wrong token, so the model is right
before its error. No verifier takes part. Each setting is repeated five times with other random numbers. The prefixes
(at most 164 per model) were not used to train anything: the verifier of the other studies has its own. Intervals are
over models.

What to look for: accuracy increases with B, starting from what nucleus sampling reaches right before an error; the
published values are the grey bars. Greedy decoding next to nucleus sampling says how confident the errors are: as good
as sampling when the wrong token is the most probable one, better when errors are accidents of sampling.

**What was learnt.** With small models: they differ from each other by more than the strides do. The one that has
learnt least (99.4 % of familiar brackets, the others 99.8 to 99.9 %) gains nothing from erasing, since it repeats its
error; the other three gain 0.09 to 0.20 from erasing eight tokens. With four models the verdicts stay open.

At the published size (eight models, 164 prefixes each): 0.43 without erasing, 0.45, 0.48, 0.57 and 0.74 after erasing
1, 2, 4 and 8 tokens, against 0.33 and 0.37, 0.44, 0.59, 0.79 published. Models differ more than strides do: without
erasing from 0.06 to 0.65.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.studies.claims import Mean
from sandlab.studies.study import Lab, Rows, Study
from sandlab.studies.verifier._decoding_runs import QUERIES, THESIS, bars, spread, table
from sandlab.studies.verifier.dyck import _dyck_runs as dyck

study = Study(
    "verifier/forced-backtracking",
    title="Erasing some tokens before an error, without any verifier, already helps",
    source=QUERIES,
    at=f"Dyck experiments ({THESIS}, Table 3.1)",
    **dyck.PRESETS,
)


@dataclass(frozen=True)
class Results:
    """Setting → share of error-inducing prefixes completed correctly, for each model."""

    accuracy: dict[str, np.ndarray]


@study.collect
def collect(settings: dyck.Settings, lab: Lab) -> Results:
    return Results(table(dyck.train_models(settings, lab).measure(dyck.force_backtracking, "forced backtracking")))


@study.claim(Mean(above=0.0), source=THESIS, at="Table 3.1", paper="0.153 (0.591 − 0.438) and 0.199 (0.790 − 0.591)")
def increases(results: Results) -> np.ndarray:
    """The more tokens are erased before the error, the more completions are correct.

    Smaller of the accuracy's differences between 2 and 4, and between 4 and 8 tokens erased.
    """
    two, four, eight = (results.accuracy[f"B={erased}"] for erased in (2, 4, 8))
    return np.minimum(eight - four, four - two)


@study.claim(Mean(above=0.0), source=THESIS, at="Table 3.1", paper="0.438 − 0.331")
def two(results: Results) -> np.ndarray:
    """Erasing 2 tokens already helps.

    Accuracy with 2 tokens erased minus without erasing.
    """
    return results.accuracy["B=2"] - results.accuracy["nucleus 0.9"]


@study.claim(Mean(above=0.08), source=THESIS, at="Table 3.1", paper="0.790 − 0.331")
def eight(results: Results) -> np.ndarray:
    """Erasing 8 tokens helps by a wide margin.

    Accuracy with 8 tokens erased minus without erasing.
    """
    return results.accuracy["B=8"] - results.accuracy["nucleus 0.9"]


@study.table
def completions(results: Results) -> dict[str, Rows]:
    rows = [
        {"setting": name, "accuracy": spread(results.accuracy[name]), "published": f"{dyck.FORCED[name]:.3f}"}
        for name in dyck.FORCED
    ]
    return {"completions of error-inducing prefixes": rows}


@study.figure
def accuracy(results: Results) -> Figure:
    figure, (axis,) = figures.new(width=5.8, height=3.2)
    names = ["nothing\nerased", "greedy,\nnothing erased", *(f"{count} erased" for count in dyck.ERASED)]
    bars(
        axis,
        names,
        [results.accuracy[name] for name in dyck.FORCED],
        list(dyck.FORCED.values()),
        "share completed correctly",
    )
    return figure
