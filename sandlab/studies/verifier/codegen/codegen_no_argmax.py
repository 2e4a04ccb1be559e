"""For test cases the greedy rewriting matters little.

After erasing four tokens: rewrite them greedily, as the algorithm says, or go on sampling?

Set-up as in verifier/codegen, top-p 0.95. Greedy rewriting makes the text correct more often and less varied; sampling
again keeps the variety and may repeat the error, for which quota is left.

What to look for: pairs of nearly equal bars, unlike on Dyck words (verifier/dyck-no-argmax).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.studies.claims import Mean
from sandlab.studies.study import Lab, Rows, Study
from sandlab.studies.verifier._decoding_runs import QUERIES, THESIS, Decoding, bars, spread
from sandlab.studies.verifier.codegen import _code_runs as code
from sandlab.studies.verifier.codegen._code_runs import BOLD, MAIN

# Table 3.17: accuracy with greedy rewriting, without.
PUBLISHED = {MAIN: ("0.714 ± 0.011", "0.711 ± 0.032"), BOLD: ("0.676 ± 0.019", "0.663 ± 0.023")}

study = Study(
    "verifier/codegen-no-argmax",
    title="For test cases the greedy rewriting matters little",
    source=QUERIES,
    at=f"ablation ({THESIS}, Table 3.17)",
    quick=code.QUICK,
    full=replace(code.FULL, model=replace(code.FULL.model, seeds=5)),
    null=code.PRESETS["null"],
)


def resampled(decoding: Decoding) -> Decoding:
    return replace(decoding, redo="none")


@study.collect
def collect(settings: code.Settings, lab: Lab) -> code.Cases:
    return code.Cases.collect(settings, lab, [one for each in PUBLISHED for one in (each, resampled(each))])


@study.claim(Mean(above=0.0), source=THESIS, at="Table 3.17", paper="0.714 − 0.711")
def cautious(results: code.Cases) -> np.ndarray:
    """With τ = 0.1, rewriting greedily is better than sampling again.

    Accuracy with greedy rewriting minus without, τ = 0.1.
    """
    return results.gap(MAIN, resampled(MAIN))


@study.claim(Mean(above=0.0), source=THESIS, at="Table 3.17", paper="0.676 − 0.663")
def bold(results: code.Cases) -> np.ndarray:
    """The same holds with τ = 0.5.

    Accuracy with greedy rewriting minus without, τ = 0.5.
    """
    return results.gap(BOLD, resampled(BOLD))


@study.table
def rewriting(results: code.Cases) -> Rows:
    return [
        {
            "τ": decoding.threshold,
            "greedy rewriting": spread(results.accuracy(decoding)),
            "sampling again": spread(results.accuracy(resampled(decoding))),
            "published, greedy rewriting": greedy,
            "published, sampling again": sampled,
        }
        for decoding, (greedy, sampled) in PUBLISHED.items()
    ]


@study.figure
def accuracy(results: code.Cases) -> dict[str, Figure]:
    figure, (axis,) = figures.new(width=5.4, height=3.2)
    names = [f"{how}\nτ = {each.threshold}" for each in PUBLISHED for how in ("rewrite greedily", "sample again")]
    published = [value for pair in PUBLISHED.values() for value in pair]
    bars(axis, names, [results.accuracy(each) for each in results.decodings], published)
    return {"rewriting": figure}
