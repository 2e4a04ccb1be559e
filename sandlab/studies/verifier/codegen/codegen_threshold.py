"""A verifier that rejects only when it is sure (τ = 0.1) does no worse than one that rejects below ½.

τ = 0.1 against τ = 0.5 for four distributions and strides, quota 4.

Set-up as in verifier/codegen. The threshold is the value below which V, the estimated probability that the text is
correct so far, counts as a rejection. Wrong tokens are rare among those sampled and frequent among those the probe was
trained on, so it cries wolf at ½: the quota is spent on false alarms, and what was varied is rewritten greedily.

What to look for: in each pair the left bar is higher than the right one, as published. The last row of the published
table prints τ = 0.1; by Table 3.13 it is 0.5.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.studies.claims import Mean
from sandlab.studies.study import Lab, Rows, Study
from sandlab.studies.verifier._decoding_runs import QUERIES, THESIS, Decoding, bars
from sandlab.studies.verifier.codegen import _code_runs as code
from sandlab.studies.verifier.codegen._code_runs import HOT, MAIN, WIDE
from sandlab.studies.verifier.codegen._published import published

LONG_STRIDE = replace(WIDE, stride=10)
COMPARED = {"top-p 0.95": MAIN, "top-p 1.0": WIDE, "top-p 1.0\nT 1.2": HOT, "top-p 1.0\nB 10": LONG_STRIDE}

study = Study(
    "verifier/codegen-threshold",
    title="A verifier that speaks up only when it is sure (τ = 0.1) does no worse than one that rejects below ½",
    source=QUERIES,
    at=f"code generation ({THESIS}, Table 3.10)",
    quick=code.QUICK,
    full=replace(code.FULL, model=replace(code.FULL.model, seeds=5)),
    null=code.PRESETS["null"],
)


def bold(decoding: Decoding) -> Decoding:
    """The same with τ = 0.5."""
    return replace(decoding, threshold=0.5)


@study.collect
def collect(settings: code.Settings, lab: Lab) -> code.Cases:
    return code.Cases.collect(settings, lab, [one for each in COMPARED.values() for one in (each, bold(each))])


@study.claim(Mean(above=0.0), source=THESIS, at="Table 3.10", paper="0.714 − 0.676")
def nucleus(results: code.Cases) -> np.ndarray:
    """Backtracking only below 0.1 is better than below 0.5 (top-p 0.95).

    Accuracy with τ = 0.1 minus τ = 0.5.
    """
    return results.gap(MAIN, bold(MAIN))


@study.claim(Mean(above=0.0), source=THESIS, at="Table 3.10", paper="0.639 − 0.604")
def plain(results: code.Cases) -> np.ndarray:
    """Backtracking only below 0.1 is better than below 0.5 (top-p 1.0).

    Accuracy with τ = 0.1 minus τ = 0.5.
    """
    return results.gap(WIDE, bold(WIDE))


@study.claim(Mean(above=0.0), source=THESIS, at="Table 3.10", paper="0.440 − 0.334")
def hot(results: code.Cases) -> np.ndarray:
    """Backtracking only below 0.1 is better than below 0.5 (top-p 1.0, T 1.2).

    Accuracy with τ = 0.1 minus τ = 0.5.
    """
    return results.gap(HOT, bold(HOT))


@study.claim(Mean(above=0.0), source=THESIS, at="Table 3.10", paper="0.622 − 0.604")
def long_stride(results: code.Cases) -> np.ndarray:
    """Backtracking only below 0.1 is better than below 0.5 (top-p 1.0, B 10).

    Accuracy with τ = 0.1 minus τ = 0.5.
    """
    return results.gap(LONG_STRIDE, bold(LONG_STRIDE))


@study.table
def thresholds(results: code.Cases) -> Rows:
    return [results.row(each) | {"backtracks per completion": results.backtracks(each)} for each in results.decodings]


@study.figure
def threshold(results: code.Cases) -> Figure:
    figure, (axis,) = figures.new(width=7.6, height=3.3)
    names = [f"{name}\nτ = {value}" for name in COMPARED for value in (0.1, 0.5)]
    decodings = results.decodings
    bars(axis, names, [results.accuracy(each) for each in decodings], [published(each)[0] for each in decodings])
    return figure
