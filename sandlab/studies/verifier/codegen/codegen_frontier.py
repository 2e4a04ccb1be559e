"""Query for query, backtracking writes about as many distinct correct test cases as sampling.

Distinct correct test cases against queries, completion by completion, until the table's numbers are reached.

Set-up as in verifier/codegen. Each curve adds up the completions of one repetition: first one for each name, then the
second, … A later completion adds fewer new cases, hence the bend. Right panel: the same without block best-of-n,
enlarged.

What to look for: for the same distribution, the curve with the verifier (solid) lies above the one without (dashed):
its dot is higher by more than it is further right. The price of a backtrack is four queries whatever the text's
length, so it weighs more on short texts than on the source's 384 tokens; the exact verifier pays it rarely. The source
does not say how the several dots of a curve arise; here a curve is cumulative progress.

**What was learnt** (quick, 2026-11-16). With three small models the slopes with and without a verifier cannot be told
apart (0.95 to 1.01, intervals around 1; published 1.05 to 1.44). Best of 8 gives 0.07 of sampling's distinct cases per
query, less than the published 0.26.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.studies.claims import Mean, Noted
from sandlab.studies.study import Lab, Rows, Study
from sandlab.studies.verifier._decoding_runs import QUERIES, THESIS, Decoding
from sandlab.studies.verifier.codegen import _code_runs as code
from sandlab.studies.verifier.codegen._code_runs import BLOCKS, EXACT, HOT, MAIN, PLAIN, WIDE, alone

study = Study(
    "verifier/codegen-frontier",
    title="Query for query, backtracking writes about as many distinct correct test cases as sampling",
    source=QUERIES,
    at=f"code generation ({THESIS}, Figures 3.3 and 3.4)",
    quick=code.QUICK,
    full=replace(code.FULL, model=replace(code.FULL.model, seeds=5)),
    null=code.PRESETS["null"],
)
PAIRS = {"top-p 0.95": MAIN, "top-p 1.0": WIDE, "top-p 1.0, T 1.2": HOT}


@study.collect
def collect(settings: code.Settings, lab: Lab) -> code.Cases:
    return code.Cases.collect(settings, lab, [*PAIRS.values(), EXACT, *map(alone, PAIRS.values()), *BLOCKS])


def cases_per_query(results: code.Cases, decoding: Decoding) -> np.ndarray:
    """Distinct correct cases per query, for each model."""
    return np.array([each.accuracy * each.requested / each.queries for each in results[decoding]])


def ratio(results: code.Cases, decoding: Decoding, other: Decoding) -> np.ndarray:
    """A model that writes nothing correct has no slope to compare with: not a number, and not measured."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return cases_per_query(results, decoding) / cases_per_query(results, other)


def slope(results: code.Cases, decoding: Decoding) -> Noted:
    """Cases per query with backtracking relative to without; noted, what backtracking costs in texts of this length."""
    before, after = results.length(alone(decoding)), results.length(decoding)
    return Noted(
        ratio(results, decoding, alone(decoding)),
        f"A completion takes {before:.0f} queries without and {after:.0f} with backtracking, "
        f"{after / before - 1:+.0%}; in the source, whose completions are 384 tokens long, 16 erased tokens add 4 %.",
    )


@study.claim(Mean(above=1.0), source=THESIS, at="Figure 3.3 and Table 3.13", paper="1.05")
def slope_nucleus(results: code.Cases) -> Noted:
    """Distinct correct test cases per query are more with backtracking (top-p 0.95).

    Distinct correct cases per query with backtracking divided by without.
    """
    return slope(results, MAIN)


@study.claim(Mean(above=1.0), source=THESIS, at="Figure 3.3 and Table 3.13", paper="1.25")
def slope_plain(results: code.Cases) -> Noted:
    """Distinct correct test cases per query are more with backtracking (top-p 1.0).

    Distinct correct cases per query with backtracking divided by without.
    """
    return slope(results, WIDE)


@study.claim(Mean(above=1.0), source=THESIS, at="Figure 3.3 and Table 3.13", paper="1.44")
def slope_hot(results: code.Cases) -> Noted:
    """Distinct correct test cases per query are more with backtracking (top-p 1.0, temperature 1.2).

    Distinct correct cases per query with backtracking divided by without.
    """
    return slope(results, HOT)


@study.claim(Mean(between=(0.13, 0.52)), source=THESIS, at="Figure 3.3 and Table 3.13", paper="0.26")
def blocks(results: code.Cases) -> np.ndarray:
    """Best of eight candidates per line gets a quarter of what plain sampling gets out of a query, to a factor of two.

    Distinct correct cases per query, best of 8 divided by sampling.
    """
    return ratio(results, BLOCKS[-1], PLAIN)


@study.table
def ends_of_the_curves(results: code.Cases) -> Rows:
    return [
        {"verifier": decoding.consulted or "none"}
        | results.row(decoding)
        | {"distinct correct per 1000 queries": float(1000 * cases_per_query(results, decoding).mean())}
        for decoding in results.decodings
    ]


@study.figure
def frontier(results: code.Cases) -> Figure:
    figure, axes = figures.new(columns=2, width=5.0, height=3.6)
    for axis in axes:
        for colour, (name, decoding) in zip(figures.COLOURS, PAIRS.items()):
            curve(axis, results, decoding, f"verifier, {name}", colour, "-")
            curve(axis, results, alone(decoding), f"alone, {name}", colour, "--")
        curve(axis, results, EXACT, "exact verifier, top-p 0.95", figures.COLOURS[4], "-")
        axis.set(xlabel="queries to the language model", ylabel="distinct correct test cases")
    for decoding in BLOCKS:
        curve(axes[0], results, decoding, f"best of {decoding.candidates} per line", "#8a8d91", ":")
    axes[0].legend(fontsize=7.5)
    axes[1].set_title("without best of n")
    return figure


def curve(axis: Axes, results: code.Cases, decoding: Decoding, label: str, colour: str, style: str) -> None:
    """Cumulative progress, the mean over models and repetitions."""
    paid = np.mean([each.paid.mean(0) for each in results[decoding]], axis=0)
    found = np.mean([each.curve.mean(0) for each in results[decoding]], axis=0)
    axis.plot([0, *paid], [0, *found], linestyle=style, color=colour, label=label)
    axis.plot(paid[-1], found[-1], "o", color=colour, markersize=4)
