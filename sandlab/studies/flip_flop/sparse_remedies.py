"""Remedies where long waits are what breaks: dropout, sharpening, positions, data.

Strings of 64 tokens with p_i = 0.4: a wait of half a string has probability 0.7³¹ ≈ 2·10⁻⁵ in training. That is about
as rare as in the published setting (512 tokens, p_i = 0.8), and this time it is the sparse tail, FFL(0.98), that
breaks. The violins and the scatter are those of `flip-flop/mitigations`. Quick compares the baseline with the same
models after 400 more steps on strings of p_i in {0.8, 0.9, 0.98, 0.1}.
"""

from __future__ import annotations

import numpy as np

from sandlab.studies.claims import Exact, Mean, Share
from sandlab.studies.flip_flop import _remedies
from sandlab.studies.flip_flop._remedies import FIXED_POSITIONS, Results, Settings
from sandlab.studies.flip_flop._shared import SOURCE, language_model, untrained
from sandlab.studies.study import Study
from sandlab.worlds.flip_flop.language import FlipFlop

DROPOUTS = ("embedding dropout 0.1", "embedding dropout 0.3", "embedding dropout 0.5")
SHARPENED = ("entropy 0.01", "entropy 0.1", "entropy 1", "−L2 0.1", "−max 0.1")
COMPARED = ("baseline", "resume on tails", "3 × steps", *DROPOUTS, *SHARPENED, *FIXED_POSITIONS, "no positions", "LSTM")
WORLD = FlipFlop.ignoring(0.4, length=64)
QUICK = language_model(WORLD, steps=900, seeds=3)
study = Study(
    "flip-flop/sparse-remedies",
    title="When waits get longer than any in training",
    source=SOURCE,
    at="Figures 3 and 9–11, sparse tail",
    quick=Settings(QUICK),
    full=Settings(language_model(WORLD, steps=1200, reads=30_000, seeds=12), COMPARED),
    null=Settings(untrained(QUICK)),
)
study.collect(_remedies.compare)
study.table(_remedies.settings)
study.figure(_remedies.comparison)


@study.claim(Mean(below=0.005), at="(R1)")
def in_distribution(results: Results) -> np.ndarray:
    """The baseline answers its training distribution.

    Mean read error on FFL(0.4).
    """
    return results.errors("baseline", "in")


@study.claim(Mean(above=0.02), at="(R1)")
def before(results: Results) -> np.ndarray:
    """It errs on the sparse tail.

    Mean error on FFL(0.98).
    """
    return results.errors("baseline", "sparse")


@study.claim(Mean(below=0.1), at="(R4)")
def tails_in_training(results: Results) -> np.ndarray:
    """Going on with strings from the tails removes most of the errors there.

    Mean error on FFL(0.98) after resuming on tail data, over that before.
    """
    return results.errors("resume on tails", "sparse") / np.maximum(results.errors("baseline", "sparse"), 1e-6)


@study.claim(Exact(below=0.0), at="(R6)", paper="about −2 at dropout 0.5", presets=("full",))
def dropout(results: Results) -> float:
    """Dropout on the embedding lowers the sparse error.

    log10 of the mean sparse error with the best of three dropouts minus the baseline's.
    """
    return min(results.gain(label, "sparse") for label in DROPOUTS)


@study.claim(Exact(below=0.0), at="(R6)", paper="about −1", presets=("full",))
def sharpening(results: Results) -> float:
    """Sharpening attention lowers the sparse error.

    log10 of the mean sparse error with the best of five sharpenings minus the baseline's.
    """
    return min(results.gain(label, "sparse") for label in SHARPENED)


@study.claim(Exact(below=0.0), at="(R5)", paper="better on the sparse tail", presets=("full",))
def steps_sparse(results: Results) -> float:
    """More steps help on the sparse tail.

    log10 of the mean sparse error after three times the steps minus the baseline's.
    """
    return results.gain("3 × steps", "sparse")


@study.claim(Exact(above=-0.5), at="(R6)", paper="no clear benefit", presets=("full",))
def positions_sparse(results: Results) -> float:
    """Positions that are not trained have no clear benefit on the sparse tail.

    log10 of the mean sparse error with fixed positions (median of three kinds) minus the baseline's.
    """
    return float(np.median([results.gain(label, "sparse") for label in FIXED_POSITIONS]))


@study.claim(Share(above=0.5), at="(R2)", presets=("full",))
def recurrent(results: Results) -> np.ndarray:
    """The LSTM makes no error on the sparse tail.

    Share of LSTM seeds with zero errors on the sparse tail.
    """
    return results.errors("LSTM", "sparse") == 0
