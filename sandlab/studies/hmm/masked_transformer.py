"""How much of a string is masked, and how the answer is read, decides whether a trained network holds the HMM.

A small bidirectional transformer learns strings of three tokens of `hmm-canon` with one or two of them masked (mask
ratio 1/3 or 2/3), by cross-entropy. What it says about P(x₂, x₃ | x₁) is decomposed by Jennrich's algorithm. With one
masked token its two conditionals determine this law (Brook's lemma); with two masked tokens and one head for the pair
it is the prediction itself. With two masked tokens and a head for each, as masked language models have it, only P(x₂ |
x₁) and P(x₃ | x₁) are there: one-token tasks, which do not identify the model.

Chosen after a look at results: the 1000 training steps of the quick preset. A first run with 1500 took longer than the
three minutes a quick preset may take; claims and thresholds stayed as they were.

Full has the specification's network (two layers, width 64) and 1.2 · 10⁷ strings for each of eight seeds.

The null does not train the networks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from matplotlib.figure import Figure
from torch import nn

from sandlab import figures
from sandlab.errors import BadInput
from sandlab.learning.experiment import Experiment, Snapshot, Training
from sandlab.learning.hmm.networks import conditionals_table, joint_head_table, separate_heads_table
from sandlab.learning.hmm.recovery import parameter_error, recover_hmm
from sandlab.models.transformer import TransformerConfig
from sandlab.studies.claims import Mean, Ratio
from sandlab.studies.hmm import _shared as shared
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.hmm.instances import random_hmm
from sandlab.worlds.hmm.masked import MaskedStrings
from sandlab.worlds.hmm.models import HMM

ARMS = ("one masked, conditionals", "two masked, one head", "two masked, two heads")
NOTHING_FOUND = 1.0
"""Error entered for a table that has no decomposition: the largest that a probability can have."""


@dataclass(frozen=True)
class Settings:
    """Width and depth of the network, training, seeds; d, k of a random model when they are not 4 and 3."""

    width: int = 32
    layers: int = 2
    training: Training = field(
        default_factory=lambda: Training(steps=1000, batch_size=256, lr=2e-3, schedule="cosine", warmup=50, evals=3)
    )
    seeds: int = 4
    d: int = 4
    k: int = 3


@dataclass(frozen=True)
class Results:
    """By (arm, seed): largest error of the table P(x₂, x₃ | x₁), largest parameter error, held-out loss."""

    table: np.ndarray
    error: np.ndarray
    loss: np.ndarray


QUICK = Settings()
study = Study(
    "hmm/masked-transformer",
    title="A masked transformer holds the HMM when two tokens are predicted together, not one by one",
    source=shared.SOURCE,
    at="Theorems 6 and 7",
    quick=QUICK,
    full=Settings(width=64, training=replace(QUICK.training, steps=3000, batch_size=4096, precision="tf32"), seeds=8),
    null=replace(QUICK, training=replace(QUICK.training, steps=1, lr=0.0, warmup=0)),
)


@dataclass(frozen=True)
class TableError:
    """Final probe: error of the table that the arm reads off each member, and of (O, T) decomposed from it."""

    arm: str

    def __call__(self, snapshot: Snapshot) -> dict[str, np.ndarray]:
        assert isinstance(snapshot.world, MaskedStrings)
        hmm = snapshot.world.model
        tables = [READ[self.arm](each, hmm.vocab) for each in snapshot.model.members()]
        truth = hmm.predictor("2x3|1")
        return {
            "table": np.array([np.abs(table - truth).max() for table in tables]),
            "error": np.array([decomposed(table, hmm) for table in tables]),
        }


READ: dict[str, Callable[[nn.Module, int], np.ndarray]] = dict(
    zip(ARMS, (conditionals_table, joint_head_table, separate_heads_table))
)


def decomposed(table: np.ndarray, hmm: HMM) -> float:
    """Largest parameter error of the HMM that Jennrich's algorithm finds in a table."""
    try:
        found = recover_hmm(table, "2x3|1", hmm.hidden, clean=True)
    except (BadInput, np.linalg.LinAlgError):
        return NOTHING_FOUND
    return parameter_error(hmm, *found).largest


def experiment(settings: Settings, arm: str) -> Experiment:
    d, k = settings.d, settings.k
    hmm = HMM() if (d, k) == (4, 3) else random_hmm(d, k, np.random.default_rng(0))
    joint, masked = arm == ARMS[1], 1 if arm == ARMS[0] else 2
    world = MaskedStrings(hmm, masked, joint)
    model = TransformerConfig(
        vocab=d + 1,
        length=3,
        layers=settings.layers,
        heads=2,
        width=settings.width,
        causal=False,
        positions="learned",
        outputs=world.outputs,
        read="last" if joint else "all",
    )
    return Experiment(world, model, settings.training, seeds=settings.seeds, final=(TableError(arm),))


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    runs = lab.train([experiment(settings, arm) for arm in ARMS], label="transformers")
    return Results(
        np.stack([run.final["table"] for run in runs]),
        np.stack([run.final["error"] for run in runs]),
        np.stack([run.metrics["loss"][:, -1] for run in runs]),
    )


@study.claim(Mean(below=0.1), at="Theorem 7", paper="identifiable")
def one_masked_token_identifies(results: Results) -> np.ndarray:
    """A network that fills in one masked token holds the parameters.

    Largest error of (O, T) from its conditionals, by seed.
    """
    return results.error[0]


@study.claim(Mean(below=0.1), at="Theorem 7", paper="identifiable")
def a_head_for_the_pair_identifies(results: Results) -> np.ndarray:
    """So does one that predicts two masked tokens together.

    Largest error of (O, T) from its table of pairs, by seed.
    """
    return results.error[1]


@study.claim(Ratio(above=3.0), at="Theorem 6", paper="not identifiable")
def separate_heads_do_not(results: Results) -> np.ndarray:
    """One that predicts two masked tokens one by one does not.

    Its error of (O, T) divided by that with a head for the pair, by seed.
    """
    return results.error[2] / results.error[1]


@study.table
def networks(results: Results) -> Rows:
    return [
        {
            "network": arm,
            "error of P(x₂, x₃ | x₁)": float(np.median(results.table[row])),
            "error of (O, T)": float(np.median(results.error[row])),
            "held-out loss": float(np.median(results.loss[row])),
        }
        for row, arm in enumerate(ARMS)
    ]


@study.figure
def errors(results: Results) -> Figure:
    figure, (axis,) = figures.new(width=6, title="Only a network that knows pairs of tokens holds the HMM")
    for row, values in enumerate(results.error):
        axis.semilogy(np.full(len(values), row), values, "o", color=figures.COLOURS[row])
    axis.set_xticks(range(len(ARMS)), [arm.replace(", ", ",\n") for arm in ARMS])
    axis.set(ylabel="largest error of (O, T)", xlim=(-0.5, 2.5))
    return figure
