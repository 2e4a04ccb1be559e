"""The trained verifier gains a part of what the exact one gains, and more than a random one.

The exact verifier, the trained one and a random one in the same algorithm.

Set-up as in verifier/codegen: top-p 0.95, temperature 1, τ = 0.1. The exact verifier says whether what is written can
still become the correct lines that were requested. The random one answers a uniform number, so it rejects every tenth
token until the quota is spent.

What to look for: exact ≥ trained ≥ random. The exact verifier's lead is what a better probe could still gain. The
published last row, trained (4, 10), has the value of the row at top-p 1.0 of Table 3.13.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.studies.claims import Mean, Noted
from sandlab.studies.study import Lab, Rows, Study
from sandlab.studies.verifier._decoding_runs import QUERIES, THESIS, bars, spread
from sandlab.studies.verifier.codegen import _code_runs as code
from sandlab.studies.verifier.codegen._code_runs import EXACT, MAIN, MARGIN, PLAIN, RANDOM
from sandlab.studies.verifier.codegen._published import NO_VERIFIER
from sandlab.studies.verifier.codegen._writers import of_writers

# Table 3.12. The last row repeats the one at top-p 1.0 of Table 3.13.
PUBLISHED = {
    EXACT: "0.719 ± 0.022",
    replace(EXACT, quota=10): "0.717 ± 0.015",
    MAIN: "0.714 ± 0.011",
    replace(MAIN, quota=10): "0.692 ± 0.025",
    replace(MAIN, stride=10): "0.622 ± 0.046",
    RANDOM: "0.663 ± 0.027",
}

study = Study(
    "verifier/codegen-verifiers",
    title="The trained verifier gains a part of what the exact one gains, and more than a random one",
    source=QUERIES,
    at=f"code generation ({THESIS}, Table 3.12)",
    quick=code.QUICK,
    full=replace(code.FULL, model=replace(code.FULL.model, seeds=5)),
    null=code.PRESETS["null"],
)


@study.collect
def collect(settings: code.Settings, lab: Lab) -> code.Cases:
    return code.Cases.collect(settings, lab, [*PUBLISHED, PLAIN])


@study.claim(Mean(between=(-MARGIN, MARGIN)), source=THESIS, at="Table 3.12", paper="0.719 − 0.714")
def exact(results: code.Cases) -> np.ndarray:
    """The trained verifier is as good as the exact one.

    Accuracy with the exact minus with the trained verifier; 1 for models that write less than a tenth of the test
    cases.
    """
    return of_writers(results, results.gap(EXACT, MAIN), 1.0)


@study.claim(Mean(above=0.0), source=THESIS, at="Table 3.12", paper="0.714 − 0.663")
def trained(results: code.Cases) -> np.ndarray:
    """The trained verifier writes more than a random one.

    Accuracy with the trained minus with the random verifier.
    """
    return results.gap(MAIN, RANDOM)


@study.claim(Mean(between=(-0.05, 0.05)), source=THESIS, at="Table 3.12", paper="0.663 − 0.660")
def random(results: code.Cases) -> Noted:
    """A random verifier makes no difference.

    Accuracy with the random verifier minus without any; 1 for models that write less than a tenth of the test cases.
    """
    note = (
        f"Of {results.length(PLAIN):.0f} tokens of a completion the random verifier has up to 16 rewritten greedily, "
        "which makes the text repeat itself; in the source it is 16 of 384."
    )
    return Noted(of_writers(results, results.gap(RANDOM, PLAIN), 1.0), note)


@study.claim(Mean(above=0.0), source=THESIS, at="Table 3.12", paper="0.714 − 0.692")
def larger_quota_hurts(results: code.Cases) -> np.ndarray:
    """With the trained verifier, which errs, a quota of 10 is worse than 4.

    Accuracy with quota 4 minus quota 10, trained verifier, stride 4.
    """
    return results.gap(MAIN, replace(MAIN, quota=10))


@study.claim(Mean(above=0.0), source=THESIS, at="Table 3.12", paper="0.639 − 0.622 (top-p 1.0)")
def larger_stride_hurts(results: code.Cases) -> np.ndarray:
    """Erasing ten tokens instead of four is worse: more is written greedily.

    Accuracy with stride 4 minus stride 10, trained verifier, quota 4, top-p 0.95.
    """
    return results.gap(MAIN, replace(MAIN, stride=10))


@study.claim(Mean(between=(-0.05, 0.05)), source=THESIS, at="Table 3.12", paper="0.717 − 0.719")
def quota(results: code.Cases) -> np.ndarray:
    """With the exact verifier a quota of 10 is no better than 4.

    Accuracy with quota 10 minus quota 4; 1 for models that write less than a tenth of the test cases.
    """
    return of_writers(results, results.gap(replace(EXACT, quota=10), EXACT), 1.0)


@study.table
def verifiers(results: code.Cases) -> Rows:
    rows: Rows = [
        {
            "verifier": decoding.verifier,
            "Q": decoding.quota,
            "B": decoding.stride,
            "accuracy": spread(results.accuracy(decoding)),
            "published": published,
            "queries": spread(results.queries(decoding), 0),
            "backtracks per completion": results.backtracks(decoding),
        }
        for decoding, published in PUBLISHED.items()
    ]
    return [*rows, {"verifier": "none", "accuracy": spread(results.accuracy(PLAIN)), "published": f"{NO_VERIFIER}"}]


@study.figure
def accuracy(results: code.Cases) -> dict[str, Figure]:
    figure, (axis,) = figures.new(width=6.6, height=3.2)
    names = [*(f"{each.verifier}\nQ {each.quota}, B {each.stride}" for each in PUBLISHED), "no\nverifier"]
    bars(axis, names, [results.accuracy(each) for each in results.decodings], [*PUBLISHED.values(), NO_VERIFIER])
    return {"verifiers": figure}
