"""What could make self-training reach further: more data, longer stages, certain labels.

The chain of `reasoning/self-training` stops where its labels are wrong. Three variants from the same supervised models:
five times the chains per stage, three times the updates per stage, and labels that are kept only where the teacher's
least certain value had a probability of at least 0.99. The last is a stated variant, not the source's recipe. Full:
stages of 1500 updates, of the specification's 8000 (factor 0.19), the longer ones of 4500; five seeds of eight, and
supervised models of 15 000 steps instead of 40 000 (factor 0.38).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from matplotlib.figure import Figure

from sandlab.studies.claims import Mean, NotMeasured
from sandlab.studies.nulls import untrained
from sandlab.studies.reasoning import _shared as shared
from sandlab.studies.reasoning.self_training import (
    BRIEF_START,
    CYCLIC,
    DOUBLINGS,
    LONG,
    SHORT,
    Chain,
    Results,
    Settings,
    draw_chains,
    stage_rows,
    stages,
)
from sandlab.studies.reasoning.self_training import collect as collect_chains
from sandlab.studies.study import Lab, Rows, Study

QUICK = Settings(
    shared.QUICK.symmetric,
    (
        Chain("published", stages((10,), SHORT, 2000)),
        Chain("more data", stages((10,), SHORT, 6000)),
        Chain("certain labels", stages((10,), SHORT, 2000, confidence=0.99)),
    ),
    CYCLIC,
)
STAGE = replace(LONG, steps=1500)

study = Study(
    "reasoning/self-training-variants",
    title="More data, longer stages or certain labels in self-training",
    source="Variants of " + shared.SOURCE,
    at="Figure 1b",
    quick=QUICK,
    full=Settings(
        BRIEF_START,
        (
            Chain("published", stages(DOUBLINGS, STAGE, 20_000)),
            Chain("more data", stages(DOUBLINGS, STAGE, 100_000)),
            Chain("longer stages", stages(DOUBLINGS, replace(STAGE, steps=3 * STAGE.steps), 20_000)),
            Chain("certain labels", stages(DOUBLINGS, STAGE, 20_000, confidence=0.99)),
        ),
        shared.full_experiment("C6", seeds=shared.FULL_SEEDS[:5], training={"steps": 15_000}),
    ),
    null=untrained(QUICK),
)


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    return collect_chains(settings, lab)


def gain(results: Results, name: str) -> np.ndarray:
    """Accuracy after the last stage minus that before the first, mean over the tested lengths."""
    if name not in results.chains:
        raise NotMeasured(f"no chain with {name} was run")
    accuracy = results.chains[name].accuracy.mean(-1)
    return accuracy[:, -1] - accuracy[:, 0]


@study.claim(Mean(above=0.0))
def more_data_extends(results: Results) -> np.ndarray:
    """With more data per stage self-training extends the solved lengths.

    Accuracy after the last stage minus that before the first, mean over the tested lengths.
    """
    return gain(results, "more data")


@study.claim(Mean(above=0.0))
def certain_labels_extend(results: Results) -> np.ndarray:
    """With certain labels only, too.

    Accuracy after the last stage minus that before the first, mean over the tested lengths.
    """
    return gain(results, "certain labels")


@study.claim(Mean(above=0.9), presets=("full",), paper="nearly perfect up to 160")
def one_variant_reaches_160(results: Results) -> np.ndarray:
    """The best of the variants solves chains of length 160.

    Share of solved chains of length 160 after the last stage, of the variant with the largest mean.
    """
    ends = [
        runs.accuracy[:, -1, runs.lengths.index(160)] for name, runs in results.chains.items() if name != "published"
    ]
    return max(ends, key=lambda values: float(values.mean()))


@study.table
def stage_table(results: Results) -> dict[str, Rows]:
    return {"stages": stage_rows(results)}


@study.figure
def curves(results: Results) -> Figure:
    return draw_chains(results)
