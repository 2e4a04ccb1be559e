"""What helps against attention glitches: data, scale, regularisers, positions, sharpening, and recurrence.

Every remedy of the paper, each as a change of one experiment. The violins show, for each setting, the read error of its
seeds on the sparse and on the dense tail, with exact zeros on the axis at the left; the scatter puts each trained model
at (dense error, sparse error). What the paper says: data from the tails is the only remedy that reaches the corner;
scale does not help reliably; embedding dropout and attention sharpening are the strongest of the others; recurrence
solves the task.

Quick compares the baseline (2 layers, width 64, 32 tokens, 800 steps on FFL(0.8)) with the same models after 400 more
steps on strings of p_i in {0.8, 0.9, 0.98, 0.1}. Full trains 6 seeds of every setting (24 of the mixture) at the
source's length of 512 tokens, with its batch of 16, for 2500 steps; its baseline has 2 layers of width 64, the
source's 6 of width 512. `flip-flop/sparse-remedies` compares the same at a size where the sparse tail breaks.
Mixtures are trained with the loss averaged per string: otherwise dense strings, which hold many more reads, would
dominate it.

Errors are compared as differences of means over seeds: "an order of magnitude" means that the error minus a tenth of
the baseline's is below 0. Where the source takes the best of several settings, ours is chosen on the even seeds and
measured on the odd ones.

**What was learnt** (at 64 tokens, 16 seeds of 25 settings, 2026-11-15). A model that loses half of its embedding does
not converge in 1200 steps: dropout 0.5 raises the tail error fivefold. Sharpening leaves it as it is: at this size the
sparse tail is solved already, and the dense one is not helped. Three times the steps lower the dense error (0.026
against 0.045), where the source says that it gets worse. In that run feed-forward dropout also acted on the attention
branch, and sinusoidal positions drowned the tokens (26 % error in distribution); both are mended since.
"""

from __future__ import annotations

import numpy as np

from sandlab.studies.claims import Mean, Order, Share
from sandlab.studies.flip_flop import _remedies
from sandlab.studies.flip_flop._remedies import (
    FAMILIES,
    FAMILY,
    FIXED_POSITIONS,
    Results,
    Settings,
    one_below_the_other,
)
from sandlab.studies.flip_flop._shared import SOURCE, language_model
from sandlab.studies.nulls import untrained
from sandlab.studies.study import Study
from sandlab.worlds.flip_flop.language import FlipFlop

SIZES = {
    "layers": ("1 layer", "baseline", "4 layers", "6 layers"),
    "width": ("width 32", "baseline", "width 128", "width 256"),
    "heads": ("2 heads", "baseline", "8 heads", "16 heads"),
}
LONG = FlipFlop.ignoring(0.8, length=512)
QUICK = language_model(FlipFlop.ignoring(0.8, length=32), steps=800, seeds=6)
study = Study(
    "flip-flop/mitigations",
    title="Data from the tails removes the glitches; no other remedy does, and dropout and sharpening do not help here",
    source=SOURCE,
    at="Figures 3 and 9–11 (results R4–R7)",
    quick=Settings(QUICK),
    full=Settings(
        language_model(LONG, steps=2500, batch_size=16, precision="bf16", reads=30_000, seeds=6), tuple(FAMILY)
    ),
    null=Settings(untrained(QUICK)),
)
study.collect(_remedies.compare)
study.table(_remedies.settings)
study.figure(_remedies.comparison)


@study.claim(Mean(above=0.002), at="(R1)")
def before(results: Results) -> np.ndarray:
    """The baseline errs on a tail although it answers its training distribution.

    Mean of the larger tail error of the baseline (0 for seeds that err on more than 1 % in distribution).
    """
    return results.glitches()


@study.claim(Mean(below=0.002), at="(R4)", paper="improvement by a wide margin; 6 of 25 mixture runs without any error")
def tails_in_training(results: Results) -> np.ndarray:
    """Going on with strings from the tails removes the errors there.

    Mean of the larger tail error after resuming on tail data.
    """
    return results.errors("resume on tails")


WITHOUT_TAILS = tuple(label for label, family in FAMILY.items() if family not in ("data", "recurrent"))
"""Attention settings that are not trained on the tails."""


@study.claim(Order(above=0.0), at="(R7)", paper="none of about 10,000 runs", presets=("full",))
def no_corner(results: Results) -> np.ndarray:
    """No setting trained without tail data is perfect on both tails for most seeds.

    0.5 minus the share of seeds with zero errors on both tails, smallest over attention settings without tail data.
    """
    return one_below_the_other([0.5 - results.perfect(label) for label in WITHOUT_TAILS])


@study.claim(Share(below=0.015), at="(R7)", paper="none of about 10,000 runs", presets=("full",))
def empty_corner(results: Results) -> np.ndarray:
    """No model trained without tail data is perfect on both tails.

    Share of models with zero errors on both tails, all attention settings without tail data together.
    """
    return np.concatenate([results.perfect(label) for label in WITHOUT_TAILS])


@study.claim(Mean(below=0.0), at="(R6)", paper="about 2 orders of magnitude on the sparse set", presets=("full",))
def dropout_sparse(results: Results) -> np.ndarray:
    """Dropout on the embedding lowers the tail error.

    Tail error with embedding dropout 0.5 minus that of the baseline.
    """
    return results.excess("embedding dropout 0.5")


@study.claim(Mean(below=0.0), at="(R6)", paper="by a factor of about 10", presets=("full",))
def sharpening_helps(results: Results) -> np.ndarray:
    """Sharpening attention lowers the tail error.

    Tail error of the best sharpened setting minus the baseline's.
    """
    return results.best_excess(tuple(FAMILIES["sharpening"]))


@study.claim(Mean(below=0.0), at="(R6)", paper="by a factor of about 10", presets=("full",))
def sharpening_order(results: Results) -> np.ndarray:
    """Sharpening attention lowers the tail error by an order of magnitude.

    Tail error of the best sharpened setting minus a tenth of the baseline's.
    """
    return results.best_excess(tuple(FAMILIES["sharpening"]), orders=-1.0)


@study.claim(Mean(below=0.0), at="(R4)", paper="by a wide margin", presets=("full",))
def mixture_better(results: Results) -> np.ndarray:
    """Training on a mixture that holds both tails lowers the tail error.

    Tail error of the mixture minus the baseline's.
    """
    return results.excess("mixture")


@study.claim(Mean(below=0.0), at="(R4)", paper="by a wide margin", presets=("full",))
def mixture_wide_margin(results: Results) -> np.ndarray:
    """Training on a mixture that holds both tails lowers the tail error by an order of magnitude.

    Tail error of the mixture minus a tenth of the baseline's.
    """
    return results.excess("mixture", orders=-1.0)


@study.claim(Mean(below=0.0), at="(R4) and (R5)", paper="data helps far more than resources", presets=("full",))
def data_before_scale(results: Results) -> np.ndarray:
    """Data from the tails lowers the tail error by an order of magnitude more than longer training, larger batches or
    any other size of the model.

    Tail error of the mixture minus a tenth of that of the best setting of scale or size, which is chosen on the even
    seeds; both measured on the odd ones.
    """
    resources = (*FAMILIES["scale"], *FAMILIES["size"])
    best = min(resources, key=lambda label: float(results.errors(label)[::2].mean()))
    others = results.errors(best)
    return (results.errors("mixture")[: len(others)] - 0.1 * others)[1::2]


@study.claim(Share(above=0.1), at="(R4)", paper="6 of 25", presets=("full",))
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


@study.claim(Mean(above=0.0), at="(R5)", paper="worse on the dense tail", presets=("full",))
def steps_dense_worse(results: Results) -> np.ndarray:
    """Three times the steps make the dense tail worse.

    Dense error after three times the steps minus the baseline's.
    """
    return results.excess("3 × steps", "dense")


@study.claim(Mean(below=0.5), at="(R5)", paper="no monotone relation", presets=("full",))
def size_not_monotone(results: Results) -> np.ndarray:
    """The error falls steadily with none of depth, width and number of heads.

    Factors along which a seed's tail error falls at every step (without any relation: 1/8 on average).
    """
    steps = [np.diff([results.errors(label) for label in labels], axis=0) for labels in SIZES.values()]
    return np.sum([(each < 0).all(0) for each in steps], axis=0)


@study.claim(Order(above=0.0), at="section on the optimiser", paper="no significant effect", presets=("full",))
def optimiser(results: Results) -> np.ndarray:
    """Learning rate and moment decays do not change the picture.

    Margin of a setting's mean tail error inside 10^±0.5 times the baseline's, smallest over settings and ends.
    """
    within = [
        (results.excess(label, orders=-0.5), -results.excess(label, orders=0.5)) for label in FAMILIES["optimiser"]
    ]
    return one_below_the_other([margin for both in within for margin in both])


@study.claim(Mean(below=0.0), at="(R6)", paper="they help", presets=("full",))
def positions_dense(results: Results) -> np.ndarray:
    """Positions that are not trained help on the dense tail.

    Dense error with fixed positions (median of three kinds) minus the baseline's.
    """
    return results.median_excess(FIXED_POSITIONS, "dense")


@study.claim(Share(above=0.5), at="(R2)", presets=("full",))
def recurrent(results: Results) -> np.ndarray:
    """The LSTM makes no error on either tail.

    Share of LSTM seeds with zero errors on both tails.
    """
    return results.perfect("LSTM")
