"""Misleading function names cost neither sampling nor backtracking much.

The function that appends is called pop or max, names that the model has read with other bodies.

Set-up as in verifier/codegen. In the model's documents a name that says what a function does is used only with that
body, so here the name contradicts the body. Quick: the two misleading names among its functions, pop and max; full: the
ten names of the source (pop, add, sub, mul, div, max, min, std, avg, exp), six of which the model has read. The
verifier was trained under random names only.

What to look for: the loss from the left to the right bar of a pair, with and without verifier.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.studies.claims import Mean, Noted
from sandlab.studies.study import Lab, Rows, Study
from sandlab.studies.verifier._decoding_runs import QUERIES, THESIS, Decoding, bars, spread
from sandlab.studies.verifier.codegen import _code_runs as code
from sandlab.studies.verifier.codegen._code_runs import BOLD, MAIN, PLAIN

# Table 3.15: accuracy with random names, with misleading names.
PUBLISHED = {
    "verifier, τ = 0.1": ("0.714 ± 0.011", "0.710 ± 0.029"),
    "verifier, τ = 0.5": ("0.676 ± 0.019", "0.687 ± 0.024"),
    "sampling": ("0.660 ± 0.042", "0.606 ± 0.034"),
}
COMPARED = dict(zip(PUBLISHED, (MAIN, BOLD, PLAIN)))

study = Study(
    "verifier/codegen-names",
    title="Misleading function names cost neither sampling nor backtracking much",
    source=QUERIES,
    at=f"code generation ({THESIS}, Tables 3.14 and 3.15)",
    quick=code.QUICK,
    full=replace(code.FULL, model=replace(code.FULL.model, seeds=5)),
    null=code.PRESETS["null"],
)


def misled(decoding: Decoding) -> Decoding:
    return replace(decoding, misleading=True)


def lost(results: code.Cases, decoding: Decoding) -> np.ndarray:
    """Accuracy lost from random to misleading names."""
    return results.gap(decoding, misled(decoding))


@study.collect
def collect(settings: code.Settings, lab: Lab) -> code.Cases:
    return code.Cases.collect(settings, lab, [one for each in COMPARED.values() for one in (each, misled(each))])


@study.claim(Mean(above=0.0), source=THESIS, at="Table 3.15", paper="0.710 − 0.606")
def helps(results: code.Cases) -> np.ndarray:
    """Under misleading names backtracking still writes more distinct correct test cases than sampling.

    Accuracy with τ = 0.1 minus without verifier, misleading names.
    """
    return results.gap(misled(MAIN), misled(PLAIN))


@study.claim(Mean(above=0.0), source=THESIS, at="Table 3.15", paper="0.660 − 0.606")
def costs_sampling(results: code.Cases) -> np.ndarray:
    """Misleading names cost sampling accuracy: without that there is nothing for backtracking to repair.

    Accuracy of sampling with random names minus with misleading names.
    """
    return lost(results, PLAIN)


@study.claim(Mean(above=0.0), source=THESIS, at="Table 3.15", paper="0.054 − 0.004")
def smaller_drop(results: code.Cases) -> Noted:
    """Misleading names cost backtracking less accuracy than they cost sampling.

    Loss of sampling minus loss of backtracking (τ = 0.1) from random to misleading names.
    """
    note = (
        f"Misleading names cost sampling {lost(results, PLAIN).mean():+.3f} here (0.054 in the source): "
        "a model as small as this goes by the body, whatever the name, so there is little to repair."
    )
    return Noted(lost(results, PLAIN) - lost(results, MAIN), note)


@study.claim(Mean(above=0.0), source=THESIS, at="Table 3.15", paper="0.054 − (−0.011)")
def smaller_drop_bold(results: code.Cases) -> np.ndarray:
    """The same holds with τ = 0.5.

    Loss of sampling minus loss of backtracking (τ = 0.5) from random to misleading names.
    """
    return lost(results, PLAIN) - lost(results, BOLD)


@study.table
def names(results: code.Cases) -> Rows:
    return [
        {
            "decoding": name,
            "random names": spread(results.accuracy(decoding)),
            "misleading names": spread(results.accuracy(misled(decoding))),
            "published, random": PUBLISHED[name][0],
            "published, misleading": PUBLISHED[name][1],
        }
        for name, decoding in COMPARED.items()
    ]


@study.figure
def accuracy(results: code.Cases) -> dict[str, Figure]:
    figure, (axis,) = figures.new(width=6.2, height=3.2)
    heads = [name.removeprefix("verifier, ") for name in COMPARED]
    labels = [f"{head}\n{kind}\nnames" for head in heads for kind in ("random", "misleading")]
    published = [value for pair in PUBLISHED.values() for value in pair]
    bars(axis, labels, [results.accuracy(each) for each in results.decodings], published)
    return {"names": figure}
