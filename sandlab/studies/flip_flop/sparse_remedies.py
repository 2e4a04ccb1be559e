"""Remedies where long waits are what breaks: dropout, sharpening, positions, data.

Strings of 64 tokens with p_i = 0.4: a wait of half a string has probability 0.7³¹ ≈ 2·10⁻⁵ in training. That is about
as rare as in the published setting (512 tokens, p_i = 0.8), and this time it is the sparse tail, FFL(0.98), that
breaks. The violins and the scatter are those of `flip-flop/mitigations`. Quick compares the baseline with the same
models after 400 more steps on strings of p_i in {0.8, 0.9, 0.98, 0.1}. Errors are compared as there: as differences of
means, the best of several settings chosen on the even seeds and measured on the odd ones.
"""

from __future__ import annotations

import numpy as np

from sandlab.studies.claims import Mean, Share
from sandlab.studies.flip_flop import _remedies
from sandlab.studies.flip_flop._remedies import FIXED_POSITIONS, Results, Settings
from sandlab.studies.flip_flop._shared import SOURCE, language_model
from sandlab.studies.nulls import untrained
from sandlab.studies.study import Study
from sandlab.worlds.flip_flop.language import FlipFlop

DROPOUTS = ("embedding dropout 0.1", "embedding dropout 0.3", "embedding dropout 0.5")
SHARPENED = ("entropy 0.01", "entropy 0.1", "entropy 1", "−L2 0.1", "−max 0.1")
COMPARED = ("baseline", "resume on tails", "3 × steps", *DROPOUTS, *SHARPENED, *FIXED_POSITIONS, "no positions", "LSTM")
WORLD = FlipFlop.ignoring(0.4, length=64)
QUICK = language_model(WORLD, steps=900, seeds=4)
study = Study(
    "flip-flop/sparse-remedies",
    title="Waits longer than any in training break the transformer, and data from the tails mends it",
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

    Mean error on FFL(0.98) (0 for seeds that err on more than 1 % in distribution).
    """
    return results.glitches("sparse")


@study.claim(Mean(below=0.1), at="(R4)")
def tails_in_training(results: Results) -> np.ndarray:
    """Going on with strings from the tails removes most of the errors there.

    Mean error on FFL(0.98) after resuming on tail data, over that before.
    """
    return results.errors("resume on tails", "sparse") / np.maximum(results.errors("baseline", "sparse"), 1e-6)


@study.claim(Mean(below=0.0), at="(R6)", paper="about −2 at dropout 0.5", presets=("full",))
def dropout(results: Results) -> np.ndarray:
    """Dropout on the embedding lowers the sparse error.

    Sparse error with the best of three dropouts minus the baseline's.
    """
    return results.best_excess(DROPOUTS, "sparse")


@study.claim(Mean(below=0.0), at="(R6)", paper="about 2 orders of magnitude", presets=("full",))
def dropout_two_orders(results: Results) -> np.ndarray:
    """Dropout of half of the embedding lowers the sparse error by two orders of magnitude.

    Sparse error with embedding dropout 0.5 minus a hundredth of the baseline's.
    """
    return results.excess("embedding dropout 0.5", "sparse", orders=-2.0)


@study.claim(Mean(below=0.0), at="(R6)", paper="about −1", presets=("full",))
def sharpening(results: Results) -> np.ndarray:
    """Sharpening attention lowers the sparse error.

    Sparse error with the best of five sharpenings minus the baseline's.
    """
    return results.best_excess(SHARPENED, "sparse")


@study.claim(Mean(below=0.0), at="(R6)", paper="by a factor of about 10", presets=("full",))
def sharpening_order(results: Results) -> np.ndarray:
    """Sharpening attention lowers the sparse error by an order of magnitude.

    Sparse error with the best of five sharpenings minus a tenth of the baseline's.
    """
    return results.best_excess(SHARPENED, "sparse", orders=-1.0)


@study.claim(Mean(below=0.0), at="(R5)", paper="better on the sparse tail", presets=("full",))
def steps_sparse(results: Results) -> np.ndarray:
    """More steps help on the sparse tail.

    Sparse error after three times the steps minus the baseline's.
    """
    return results.excess("3 × steps", "sparse")


@study.claim(Mean(above=0.0), at="(R6)", paper="no clear benefit", presets=("full",))
def positions_sparse(results: Results) -> np.ndarray:
    """Positions that are not trained do not lower the sparse error by half an order of magnitude.

    Sparse error with fixed positions minus 10^−0.5 times the baseline's (median of three kinds).
    """
    return results.median_excess(FIXED_POSITIONS, "sparse", orders=-0.5)


@study.claim(Mean(above=0.0), at="(R6)", paper="no clear benefit", presets=("full",))
def positions_no_benefit(results: Results) -> np.ndarray:
    """Positions that are not trained do not lower the sparse error at all.

    Sparse error with fixed positions minus the baseline's (median of three kinds).
    """
    return results.median_excess(FIXED_POSITIONS, "sparse")


@study.claim(Share(above=0.5), at="(R2)", presets=("full",))
def recurrent(results: Results) -> np.ndarray:
    """The LSTM makes no error on the sparse tail.

    Share of LSTM seeds with zero errors on the sparse tail.
    """
    return results.errors("LSTM", "sparse") == 0
