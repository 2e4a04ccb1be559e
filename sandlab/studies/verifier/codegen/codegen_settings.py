"""Cold sampling repeats itself, a wide nucleus errs; whether backtracking leads is open with three models.

Every nucleus with every temperature, block best-of-n, and backtracking at several distributions, strides, thresholds.

Set-up as in verifier/codegen. The published grid: top-p 0, 0.7, 0.8, 0.9, 0.95, 1 and temperatures 0.2 to 1.2; quick
takes top-p 0, 0.8, 0.95, 1 and temperatures 0.2, 0.6, 1, 1.2.

What to look for: accuracy counts distinct cases, so it is low at both ends: cold or narrow distributions repeat
themselves, hot and wide ones make errors. The table is sorted by accuracy like the published one. The coldest
distributions may do no more than repeat the greedy text and then tie with it.

**What was learnt** (quick, 2026-11-16). The order of the grid is the published one where it is wide (cold against warm,
narrow against wide at temperature 1.2); the lead of backtracking (0.05) is within the spread of three models. Queries
of block best-of-n grow in proportion to n here (slope 1.00); published is 0.82.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.studies.claims import Mean, Share
from sandlab.studies.study import Lab, Rows, Study
from sandlab.studies.verifier._decoding_runs import QUERIES, THESIS, Decoding, published_mean
from sandlab.studies.verifier.codegen import _code_runs as code
from sandlab.studies.verifier.codegen._code_runs import BLOCKS, GREEDY, HOT, MAIN, PLAIN, WIDE
from sandlab.studies.verifier.codegen._published import published

GUIDED = [
    replace(decoding, threshold=threshold)
    for decoding in (MAIN, WIDE, replace(WIDE, stride=10), HOT)
    for threshold in (0.1, 0.5)
]

study = Study(
    "verifier/codegen-settings",
    title="Cold sampling repeats itself, a wide nucleus errs; whether backtracking leads is open with three models",
    source=QUERIES,
    at=f"code generation ({THESIS}, Table 3.13)",
    quick=code.QUICK,
    full=replace(code.FULL, model=replace(code.FULL.model, seeds=5)),
    null=code.PRESETS["null"],
)


def sampling(top_p: float, temperature: float) -> Decoding:
    return replace(PLAIN, top_p=top_p, temperature=temperature)


@study.collect
def collect(settings: code.Settings, lab: Lab) -> code.Cases:
    grid = [sampling(top_p, heat) for top_p in settings.nuclei for heat in settings.temperatures]
    return code.Cases.collect(settings, lab, [*grid, GREEDY, *BLOCKS, *GUIDED])


@study.claim(Mean(above=0.0), source=THESIS, at="Table 3.13", paper="0.714 − 0.684")
def best(results: code.Cases) -> np.ndarray:
    """The best setting of all uses the verifier.

    Accuracy of the best setting with backtracking minus the best without, each the best on average.
    """
    return results.gap(results.best(GUIDED), results.best([each for each in results.decodings if not each.quota]))


@study.claim(Share(above=0.5), source=THESIS, at="Table 3.13", paper="0.013, the next 0.018")
def greedy_lowest(results: code.Cases) -> np.ndarray:
    """Greedy decoding, always the same text, is the worst of all settings.

    Share of models for which every other setting has a higher accuracy.
    """
    others = [results.accuracy(decoding) for decoding in results.decodings if decoding != GREEDY]
    return results.accuracy(GREEDY) < np.min(others, axis=0)


@study.claim(Mean(above=0.0), source=THESIS, at="Table 3.13", paper="0.660 − 0.057")
def cold(results: code.Cases) -> np.ndarray:
    """Low temperatures repeat themselves.

    Accuracy at temperature 1.0 minus 0.2, top-p 0.95.
    """
    return results.gap(PLAIN, sampling(0.95, 0.2))


@study.claim(Mean(above=0.0), source=THESIS, at="Table 3.13", paper="0.627 − 0.269")
def nucleus(results: code.Cases) -> np.ndarray:
    """At a high temperature the nucleus removes errors.

    Accuracy at top-p 0.8 minus 1.0, temperature 1.2.
    """
    return results.gap(sampling(0.8, 1.2), sampling(1.0, 1.2))


@study.claim(Mean(equals=0.82, within=0.1), source=THESIS, at="Table 3.13", paper="0.82")
def blocks_cost(results: code.Cases) -> np.ndarray:
    """The queries of block best-of-n grow like n to the power 0.82.

    Slope of log queries against log n between n = 2 and 8.
    """
    return np.log2(results.queries(BLOCKS[-1]) / results.queries(BLOCKS[0])) / 2


@study.table
def all_settings(results: code.Cases) -> Rows:
    return [results.row(each) for each in sorted(results.decodings, key=lambda each: -results.accuracy(each).mean())]


@study.figure
def distributions(results: code.Cases) -> dict[str, Figure]:
    grid = [each for each in results.decodings if not each.quota and not each.candidates and each != GREEDY]
    nuclei, heats = sorted({each.top_p for each in grid}), sorted({each.temperature for each in grid})
    cells = [[sampling(top_p, heat) for heat in heats] for top_p in nuclei]
    ours = np.array([[results.accuracy(each).mean() for each in row] for row in cells])
    theirs = np.array([[published_mean(published(each)[0]) for each in row] for row in cells])
    figure, axes = figures.new(columns=2, width=4.8, height=3.3)
    for axis, values, name in ((axes[0], ours, "here"), (axes[1], theirs, "published")):
        title = f"sampling, {name}"
        figures.heatmap(axis, values, x="temperature", y="top-p", title=title, numbers=True, bar=False)
        axis.set(xticks=range(len(heats)), yticks=range(len(nuclei)))
        axis.set_xticklabels(map(str, heats))
        axis.set_yticklabels(map(str, nuclei))
    return {"laws": figure}
