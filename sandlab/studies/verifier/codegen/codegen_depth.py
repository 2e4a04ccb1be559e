"""A deeper verifier is hardly more accurate and writes no better test cases.

Verifiers of 1, 2, 4 and 8 linear maps with ReLU between them on the last layer's activation.

Set-up as in verifier/codegen; hidden width 256 (quick 64). Validation accuracy is on a tenth of the labelled strings,
the tenth that also chose the weights.

What to look for: bars of equal height, whatever the depth. Unlike in the source, deeper probes of this small model are
more accurate than the linear one (0.93 against 0.89), perhaps because two layers do not lay out along a line whether
two digits agree. What is written gains at most 0.02 by it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.studies.claims import Mean
from sandlab.studies.study import Lab, Rows, Study
from sandlab.studies.verifier._decoding_runs import QUERIES, THESIS, bars, spread
from sandlab.studies.verifier.codegen import _code_runs as code
from sandlab.studies.verifier.codegen._code_runs import MAIN, PLAIN, RANDOM
from sandlab.studies.verifier.codegen._published import NO_VERIFIER, RANDOM_VERIFIER
from sandlab.studies.verifier.codegen._writers import of_writers

DEPTHS = {1: MAIN} | {depth: replace(MAIN, verifier=f"depth {depth}") for depth in code.DEPTHS[1:]}
# Table 3.11: linear maps of the verifier → validation accuracy, accuracy of what is written.
PUBLISHED = {
    1: ("0.96", "0.714 ± 0.011"), 2: ("0.97", "0.687 ± 0.035"), 4: ("0.97", "0.699 ± 0.038"),
    8: ("0.97", "0.684 ± 0.015"),
}  # fmt: skip

study = Study(
    "verifier/codegen-depth",
    title="Whether a deeper verifier is more accurate, or writes better test cases, stays open with three models",
    source=QUERIES,
    at=f"code generation ({THESIS}, Table 3.11)",
    **code.PRESETS,
)


@study.collect
def collect(settings: code.Settings, lab: Lab) -> code.Cases:
    return code.Cases.collect(settings, lab, [*DEPTHS.values(), RANDOM, PLAIN])


def validation(results: code.Cases, depth: int) -> np.ndarray:
    return np.array(results.validation[DEPTHS[depth].verifier])


@study.claim(Mean(above=0.85), source=THESIS, at="Table 3.11", paper="0.96")
def accurate(results: code.Cases) -> np.ndarray:
    """The linear verifier tells wrong from correct prefixes.

    Validation accuracy of the linear verifier; 0 for models that write less than a tenth of the test cases.
    """
    return of_writers(results, validation(results, 1), 0.0)


@study.claim(Mean(between=(-0.05, 0.05)), source=THESIS, at="Table 3.11", paper="0.97 − 0.96")
def hardly_more(results: code.Cases) -> np.ndarray:
    """Deeper verifiers are hardly more accurate.

    Highest validation accuracy of 2, 4, 8 layers minus the linear one's; 1 for models that write less than a tenth of
    the test cases.
    """
    gain = np.max([validation(results, depth) for depth in (2, 4, 8)], axis=0) - validation(results, 1)
    return of_writers(results, gain, 1.0)


@study.claim(Mean(above=0.0), source=THESIS, at="Table 3.11", paper="0.714 − 0.699")
def no_better(results: code.Cases) -> np.ndarray:
    """The linear verifier writes better test cases than deeper ones.

    Accuracy with the linear verifier minus the best of 2, 4, 8 layers.
    """
    return results.gap(MAIN, results.best([DEPTHS[depth] for depth in (2, 4, 8)]))


@study.table
def depths(results: code.Cases) -> Rows:
    rows: Rows = [
        {
            "linear maps": str(depth),
            "validation accuracy": spread(validation(results, depth)),
            "published validation": PUBLISHED[depth][0],
            "accuracy": spread(results.accuracy(decoding)),
            "published": PUBLISHED[depth][1],
        }
        for depth, decoding in DEPTHS.items()
    ]
    others = (("random verifier", RANDOM, RANDOM_VERIFIER), ("no verifier", PLAIN, NO_VERIFIER))
    for name, decoding, value in others:
        rows.append({"linear maps": name, "accuracy": spread(results.accuracy(decoding)), "published": f"{value}"})
    return rows


@study.figure
def depth(results: code.Cases) -> Figure:
    figure, (axis,) = figures.new(width=6.0, height=3.2)
    names = ["1 layer\n(linear)", "2 layers", "4 layers", "8 layers", "random\nverifier", "no\nverifier"]
    published: list[float | str] = [*(written for _, written in PUBLISHED.values()), RANDOM_VERIFIER, NO_VERIFIER]
    bars(axis, names, [results.accuracy(each) for each in results.decodings], published)
    return figure
