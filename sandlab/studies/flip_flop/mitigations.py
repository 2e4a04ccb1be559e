"""What helps against attention glitches: data, scale, regularisers, positions, sharpening, and recurrence.

Every remedy of the paper, each as a change of one experiment. The violins show, for each setting, the read error of its
seeds on the sparse and on the dense tail, with exact zeros on the axis at the left; the scatter puts each trained model
at (dense error, sparse error). What the paper says: data from the tails is the only remedy that reaches the corner;
scale does not help reliably; embedding dropout and attention sharpening are the strongest of the others; recurrence
solves the task.

Quick compares the baseline (2 layers, width 64, 64 tokens, 1200 steps on FFL(0.8)) with the same models after 400 more
steps on strings of p_i in {0.8, 0.9, 0.98, 0.1}. Full trains 12 seeds of every setting at the same length, where only
the dense tail breaks; `flip-flop/sparse-remedies` is the same for the sparse one. Mixtures are trained with the loss
averaged per string: otherwise dense strings, which hold many more reads, would dominate it.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from sandlab.studies.claims import Exact, Mean, Share
from sandlab.studies.flip_flop import _remedies
from sandlab.studies.flip_flop._remedies import (
    FAMILIES,
    FAMILY,
    FIXED_POSITIONS,
    Results,
    Settings,
)
from sandlab.studies.flip_flop._shared import SOURCE, language_model, untrained
from sandlab.studies.study import Study
from sandlab.worlds.flip_flop.language import FlipFlop

SIZES = {
    "layers": ("1 layer", "baseline", "4 layers", "6 layers"),
    "width": ("width 32", "baseline", "width 128", "width 256"),
    "heads": ("2 heads", "baseline", "8 heads", "16 heads"),
}
WORLD = FlipFlop.ignoring(0.8, length=64)
QUICK = language_model(WORLD, steps=1200, seeds=3)
study = Study(
    "flip-flop/mitigations",
    title="Only data from the tails removes the glitches; sharpening and dropout soften them",
    source=SOURCE,
    at="Figures 3 and 9–11 (results R4–R7)",
    quick=Settings(QUICK),
    full=Settings(language_model(WORLD, steps=1200, reads=30_000, seeds=12), tuple(FAMILY)),
    null=Settings(untrained(QUICK)),
)
study.collect(_remedies.compare)
study.table(_remedies.settings)
study.figure(_remedies.comparison)


@study.claim(Mean(above=0.002), at="(R1)")
def before(results: Results) -> np.ndarray:
    """The baseline errs on a tail although it answers its training distribution.

    Mean of the larger tail error of the baseline.
    """
    return results.errors("baseline")


@study.claim(Mean(below=0.002), at="(R4)", paper="improvement by a wide margin; 6 of 25 mixture runs without any error")
def tails_in_training(results: Results) -> np.ndarray:
    """Going on with strings from the tails removes the errors there.

    Mean of the larger tail error after resuming on tail data.
    """
    return results.errors("resume on tails")


@study.claim(Exact(below=0.5), at="(R7)", paper="none of about 10,000 runs", presets=("full",))
def no_corner(results: Results) -> float:
    """No setting trained without tail data is perfect on both tails for most seeds.

    Largest share, over attention settings without tail data, of seeds with zero errors on both tails.
    """
    plain = [label for label, family in FAMILY.items() if family not in ("data", "recurrent")]
    return max(float(results.perfect(label).mean()) for label in plain)


@study.claim(
    Exact(below=0.0),
    at="(R6)",
    paper="about 2 orders of magnitude on the sparse set",
    presets=("full",),
    note="in 1200 steps a model that loses half of its embedding does not converge",
)
def dropout_sparse(results: Results) -> float:
    """Dropout on the embedding lowers the tail error.

    log10 of tail error with embedding dropout 0.5 minus that of the baseline, means over seeds.
    """
    return results.gain("embedding dropout 0.5")


@study.claim(
    Exact(below=0.0),
    at="(R6)",
    paper="an order of magnitude",
    presets=("full",),
    note="at this size the sparse tail is solved already, and the dense one is not helped",
)
def sharpening_helps(results: Results) -> float:
    """Sharpening attention lowers the tail error.

    log10 of the best sharpened setting's tail error minus the baseline's, means over seeds.
    """
    return min(results.gain(label) for label in FAMILIES["sharpening"])


@study.claim(Exact(below=0.0), at="(R4)", paper="by a wide margin", presets=("full",))
def mixture_better(results: Results) -> float:
    """Training on a mixture that holds both tails lowers the tail error.

    log10 of the mixture's tail error minus the baseline's, means over seeds.
    """
    return results.gain("mixture")


@study.claim(Share(above=0.0), at="(R4)", paper="6 of 25", presets=("full",))
def mixture_zero(results: Results) -> np.ndarray:
    """Some runs on the mixture make no error at all.

    Share of mixture runs with zero errors on both tails.
    """
    return results.perfect("mixture")


@study.claim(Share(below=0.5), at="(R5)", paper="worse on the dense tail", presets=("full",))
def steps_no_cure(results: Results) -> np.ndarray:
    """Three times the steps do not remove the errors on the dense tail.

    Share of seeds with zero errors on the dense tail after three times the steps.
    """
    return results.errors("3 × steps", "dense") == 0


@study.claim(Exact(below=0.5), at="(R5)", paper="no monotone relation", presets=("full",))
def size_not_monotone(results: Results) -> int:
    """The error falls steadily with none of depth, width and number of heads.

    Factors along which the mean tail error falls at every step.
    """
    means = [[results.errors(label).mean() for label in labels] for labels in SIZES.values()]
    return sum(all(larger < smaller for smaller, larger in pairwise(each)) for each in means)


@study.claim(Exact(below=0.5), at="section on the optimiser", paper="no significant effect", presets=("full",))
def optimiser(results: Results) -> float:
    """Learning rate and moment decays do not change the picture.

    Largest ∣log10∣ of a setting's mean tail error over the baseline's.
    """
    return max(abs(results.gain(label)) for label in FAMILIES["optimiser"])


@study.claim(Exact(below=0.0), at="(R6)", paper="they help", presets=("full",))
def positions_dense(results: Results) -> float:
    """Positions that are not trained help on the dense tail.

    log10 of the mean dense error with fixed positions (median of three kinds) minus the baseline's.
    """
    return float(np.median([results.gain(label, "dense") for label in FIXED_POSITIONS]))


@study.claim(Share(above=0.5), at="(R2)", presets=("full",))
def recurrent(results: Results) -> np.ndarray:
    """The LSTM makes no error on either tail.

    Share of LSTM seeds with zero errors on both tails.
    """
    return results.perfect("LSTM")
