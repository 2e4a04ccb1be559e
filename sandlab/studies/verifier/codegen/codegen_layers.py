"""Verifiers of different layers serve about equally well.

A linear verifier on each layer's residual stream in turn; τ = 0.1, quota 4, stride 4, top-p 0.95.

Set-up as in verifier/codegen, with a deeper model in full. The source reads layers 3 to 31 of 32; here there are two
(full: six).

What to look for: accuracy differs little from layer to layer, and more from model to model (small dots). The horizontal
lines are the random verifier and sampling alone. (The published value of layer 31 is the one that Table 3.13 lists at
τ = 0.5; at 0.1 it has 0.677.)
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.models.transformer import TransformerConfig
from sandlab.studies.claims import Mean
from sandlab.studies.study import Lab, Rows, Study
from sandlab.studies.verifier._decoding_runs import QUERIES, THESIS, Decoding, spread
from sandlab.studies.verifier.codegen import _code_runs as code
from sandlab.studies.verifier.codegen._code_runs import MAIN, PLAIN, RANDOM
from sandlab.studies.verifier.codegen._published import NO_VERIFIER, RANDOM_VERIFIER

# Table 3.9: layer of 0 to 31 → accuracy. Layer 31 is printed with the value that Table 3.13 has at τ = 0.5.
LAYERS = {
    3: 0.700, 7: 0.691, 11: 0.650, 15: 0.700, 19: 0.692, 23: 0.709, 24: 0.701, 25: 0.672, 26: 0.708, 27: 0.714,
    28: 0.711, 29: 0.676, 30: 0.706, 31: 0.688,
}  # fmt: skip

DEEPER: Any = code.FULL.model.model
SIX_LAYERS = replace(code.FULL, model=replace(code.FULL.model, model=replace(DEEPER, layers=6)))

study = Study(
    "verifier/codegen-layers",
    title="Verifiers of different layers serve about equally well",
    source=QUERIES,
    at=f"code generation ({THESIS}, Table 3.9)",
    quick=code.QUICK,
    full=SIX_LAYERS,
    null=code.PRESETS["null"],
)


@study.collect
def collect(settings: code.Settings, lab: Lab) -> code.Cases:
    assert isinstance(settings.model.model, TransformerConfig)
    earlier = [replace(MAIN, verifier=f"layer {layer}") for layer in range(settings.model.model.layers - 1)]
    return code.Cases.collect(settings, lab, [*earlier, MAIN, RANDOM, PLAIN])


def by_layer(results: code.Cases) -> list[Decoding]:
    """Backtracking with the verifier of each layer, the last one last."""
    return [each for each in results.decodings if each not in (RANDOM, PLAIN)]


@study.claim(Mean(above=0.0), source=THESIS, at="Table 3.9", paper="0.694 − 0.663")
def beat_random(results: code.Cases) -> np.ndarray:
    """Averaged over layers, trained verifiers beat a random one.

    Mean accuracy over layers minus the random verifier's.
    """
    return np.mean([results.accuracy(each) for each in by_layer(results)], axis=0) - results.accuracy(RANDOM)


@study.claim(
    Mean(above=0.0), source=THESIS, at="Table 3.9", paper="0.650 − 0.660 (layer 11), the others 0.012 and more"
)
def every_layer(results: code.Cases) -> np.ndarray:
    """The verifier of every layer writes more than sampling alone.

    Accuracy with the layer that is worst on average minus that of sampling.
    """
    worst = min(by_layer(results), key=lambda each: float(results.accuracy(each).mean()))
    return results.gap(worst, PLAIN)


@study.claim(Mean(above=0.0), source=THESIS, at="Table 3.9", paper="0.714 − 0.688")
def earlier(results: code.Cases) -> np.ndarray:
    """A layer before the last serves better than the last.

    Accuracy with the best earlier layer minus with the last.
    """
    return results.gap(results.best(by_layer(results)[:-1]), MAIN)


@study.table
def layers(results: code.Cases) -> dict[str, Rows]:
    every = by_layer(results)
    rows: Rows = [
        {
            "layer": f"{layer + 1} of {len(every)}",
            "validation accuracy": float(np.mean(results.validation[decoding.verifier])),
            "accuracy": spread(results.accuracy(decoding)),
        }
        for layer, decoding in enumerate(every)
    ]
    rows += [{"layer": "random verifier", "validation accuracy": 0.5, "accuracy": spread(results.accuracy(RANDOM))}]
    rows += [{"layer": "no verifier", "validation accuracy": None, "accuracy": spread(results.accuracy(PLAIN))}]
    return {
        "layers": rows,
        "published": [{"layer": f"{layer + 1} of 32", "accuracy": value} for layer, value in LAYERS.items()],
    }


@study.figure
def accuracy_by_layer(results: code.Cases) -> dict[str, Figure]:
    figure, axes = figures.new(columns=2, width=4.4, height=3.2)
    scores = [results.accuracy(each) for each in by_layer(results)]
    index = range(1, len(scores) + 1)
    for layer, score in zip(index, scores):
        axes[0].plot([layer] * len(score), score, "k.", markersize=4)
    axes[0].plot(index, [score.mean() for score in scores], "o-", label="trained verifier")
    axes[1].plot([layer + 1 for layer in LAYERS], list(LAYERS.values()), "o-", label="trained verifier")
    here = (results.accuracy(RANDOM).mean(), results.accuracy(PLAIN).mean())
    lines = (here, (RANDOM_VERIFIER, NO_VERIFIER))
    for axis, (chance, alone), name in zip(axes, lines, ("here", "published")):
        axis.axhline(chance, color="#d1495b", linestyle="--", label="random verifier")
        axis.axhline(alone, color="#555555", linestyle=":", label="no verifier")
        axis.set(xlabel="layer the verifier reads", ylabel="distinct correct / requested", title=name)
        low, high = axis.get_ylim()
        axis.set_ylim(low - 0.35 * (high - low), high)
        axis.legend(loc="lower right")
    axes[0].set(xticks=index, xlim=(0.5, len(scores) + 0.5))
    return {"layers": figure}
