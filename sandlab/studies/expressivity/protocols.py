"""What one half of a word must tell the other: bits sent against accuracy, with the exact lower bounds.

Cut a word in two. A recurrent network is then a protocol in which Alice, who reads the first half, sends her state;
one layer of attention is a protocol in which she sends, for each head, a partial numerator and denominator. Whatever
bound holds for protocols therefore holds for width × precision: n bits for INDEX and disjointness, a count for
majority, one bit for parity.

**Set-up.** *Bounds*: exact, from the tables of the functions. *Recombination*: one-layer transformers with random
weights, the output put together from the two parties' parts against the ordinary forward pass. *Bits*: LSTMs trained
on INDEX (plain form: w₁ … w_n, then i) and on majority with n = 4 and 8 (full: up to 12, 5000 batches of 128; the
sources train nothing), their state rounded to p bits per number before the last token (INDEX) or at the half
(majority). A model's rounding is a crude code, so the bits it needs lie far above the bounds; what is asked is that
they grow with n for INDEX.

**What was learnt** (full, eight seeds, one H200, 2026-11-18). One bit of each of the state's 128 numbers is enough for
INDEX up to n = 12 in most seeds, so that the bits needed hardly grow (a factor of 2^0.25 from n = 4, open); majority
needs three bits of each, more than INDEX and not less. The bounds hold, but they are not what limits these networks.

**In the figure.** Left: lower bounds by n. Right: accuracy against bits sent, dotted lines at n bits.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.learning.experiment import Experiment, Runs, Snapshot, Training
from sandlab.lenses.expressivity.lower_bounds import communication_table
from sandlab.lenses.expressivity.protocols import attention_protocol, protocol_accuracy
from sandlab.models.base import seeded
from sandlab.models.recurrent import LSTMConfig
from sandlab.models.transformer import Transformer
from sandlab.random import rng
from sandlab.studies.claims import Exact, Mean, NotMeasured
from sandlab.studies.nulls import untrained
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.expressivity.communication import IndexProblem, Majority

PRECISIONS = (0, 1, 2, 3, 4, 6, 8, 12)


@dataclass(frozen=True)
class BitsProbe:
    """A probe: accuracy of the protocol at several precisions, "protocol" (member, precision), and "bits" likewise."""

    cut: int
    precisions: tuple[int, ...] = PRECISIONS

    def __call__(self, now: Snapshot) -> dict[str, np.ndarray]:
        found = [protocol_accuracy(member, now.batch, self.cut, self.precisions) for member in now.model.members()]
        return {
            "protocol": np.array([[accuracy for _, accuracy in row] for row in found]),
            "bits": np.array([[bits for bits, _ in row] for row in found], dtype=float),
        }


@dataclass(frozen=True)
class Settings:
    """LSTMs on INDEX and on majority, by n; recombined transformers, and the bits of the numbers they are sent."""

    sizes: tuple[int, ...]
    index: tuple[Experiment, ...]
    majority: tuple[Experiment, ...]
    random_models: int = 16
    precision: int = 64


def settings(sizes: tuple[int, ...], training: Training, *, width: int, seeds: int) -> Settings:
    index, majority = [], []
    for size in sizes:
        world = IndexProblem(size, "plain")
        model = LSTMConfig(vocab=world.vocab, width=width, outputs=2, read="last")
        index.append(Experiment(world, model, training, seeds, final=(BitsProbe(size),)))
        votes = Majority(length=2 * size, running=False)
        model = LSTMConfig(vocab=votes.vocab, width=width, outputs=2, read="last")
        majority.append(Experiment(votes, model, training, seeds, final=(BitsProbe(size),)))
    return Settings(sizes, tuple(index), tuple(majority))


QUICK = settings(
    (4, 8), Training(steps=1000, batch_size=64, lr=5e-3, schedule="cosine", clip=1.0, evals=4, eval_examples=2048),
    width=32, seeds=4,
)  # fmt: skip
study = Study(
    "expressivity/protocols",
    title="What a model passes on must grow with what is asked: n bits for INDEX, a count for majority",
    source="Sanford, Hsu & Telgarsky 2023 and 2024; Arora et al. 2024; Yao 1979",
    quick=QUICK,
    full=settings(
        (4, 8, 12),
        Training(steps=5000, batch_size=128, lr=3e-3, schedule="cosine", clip=1.0, evals=3, eval_examples=2048),
        width=64, seeds=8,
    ),
    null=replace(untrained(QUICK), precision=8),
)  # fmt: skip


@dataclass(frozen=True)
class Results:
    """Lower bounds; errors of recombination; runs on INDEX and majority by n."""

    bounds: Rows
    errors: list[float]
    sizes: list[int]
    index: list[Runs]
    majority: list[Runs]

    def needed(self, runs: Runs) -> np.ndarray:
        """Bits at which each seed first comes within 2 % of its accuracy at the highest precision."""
        accuracy, bits = runs.final["protocol"], runs.final["bits"]
        if (accuracy[:, -1] < 0.9).any():
            raise NotMeasured("a seed did not learn the task")
        return bits[np.arange(len(bits)), (accuracy >= accuracy[:, -1:] - 0.02).argmax(1)]


@dataclass(frozen=True)
class Recombined:
    """A one-layer transformer with random weights whose halves exchange numbers of so many bits."""

    seed: int
    precision: int = 64


def recombination_error(case: Recombined) -> float:
    """Largest difference between a one-layer transformer's logits and those of the protocol."""
    with seeded(case.seed):
        model = Transformer(vocab=6, length=16, layers=1, heads=2, width=16, init_std=0.5).double()
    tokens = torch.randint(0, 6, (32, 16), generator=rng(case.seed, "protocol"))
    logits, _ = attention_protocol(model, tokens, 1 + case.seed % 15, case.precision)
    with torch.no_grad():
        return float((logits - model(tokens)[:, -1:]).abs().max())


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    runs = lab.train([*settings.index, *settings.majority], label="protocols")
    count = len(settings.sizes)
    cases = [Recombined(seed, settings.precision) for seed in range(settings.random_models)]
    errors = lab.map(recombination_error, cases, label="recombination")
    bounds: Rows = [dict(row) for row in communication_table()]
    return Results(bounds, errors, list(settings.sizes), runs[:count], runs[count:])


def _one_way(results: Results, function: str) -> np.ndarray:
    return np.array([[row["n"], row["one way"]] for row in results.bounds if row["function"] == function])


@study.claim(Exact(equals=0.0, within=1e-9), at="R10 of the tutorial", paper="n bits")
def index_and_disjointness_need_n_bits(results: Results) -> np.ndarray:
    """One message needs n bits for INDEX and for disjointness.

    Bits from the number of different rows of the tables minus n.
    """
    return np.concatenate([np.diff(_one_way(results, name)).ravel() for name in ("index", "disjointness")])


@study.claim(Exact(below=0.0), paper="log n bits")
def majority_needs_a_count(results: Results) -> np.ndarray:
    """Majority and parity need fewer bits than n (from n = 4 on).

    Bits from the number of different rows minus n.
    """
    tables = [_one_way(results, name) for name in ("majority", "parity")]
    return np.concatenate([np.diff(table[table[:, 0] >= 4]).ravel() for table in tables])


@study.claim(Mean(below=1e-10), paper="exact")
def recombines(results: Results) -> list[float]:
    """One attention layer is exactly a protocol with H(m + 1) numbers.

    Largest difference of the logits, over random transformers.
    """
    return results.errors


@study.claim(Mean(above=0.0), paper="width × precision = Ω(n)")
def index_needs_more_bits(results: Results) -> np.ndarray:
    """A longer INDEX problem needs more bits from the same network.

    log₂ ratio of the bits needed at the largest and the smallest n, seed by seed.
    """
    return np.log2(results.needed(results.index[-1]) / results.needed(results.index[0]))


@study.claim(Mean(above=0.0))
def index_needs_more_than_majority(results: Results) -> np.ndarray:
    """At equal length of Alice's half, INDEX needs more bits than majority.

    log₂ ratio of the bits needed at the largest n, INDEX over majority, seed by seed.
    """
    return np.log2(results.needed(results.index[-1]) / results.needed(results.majority[-1]))


@study.claim(Mean(above=0.0))
def bounds_are_kept(results: Results) -> np.ndarray:
    """No network beats the bound.

    Bits needed for INDEX at the largest n minus n.
    """
    return results.needed(results.index[-1]) - results.sizes[-1]


@study.table
def tables(results: Results) -> dict[str, Rows]:
    rows = [
        {"task": name, "n": size, "bits sent": int(bits), "accuracy": float(value)}
        for name, group in (("INDEX", results.index), ("majority", results.majority))
        for size, runs in zip(results.sizes, group)
        for bits, value in zip(runs.final["bits"][0], runs.final["protocol"].mean(0))
    ]
    return {"lower bounds": results.bounds, "bits against accuracy": rows}


@study.figure
def bits(results: Results) -> Figure:
    figure, axes = figures.new(2, width=4.8, height=3.5, title="Bits that must be sent, and bits that models send")
    for name in dict.fromkeys(str(row["function"]) for row in results.bounds):
        axes[0].plot(*_one_way(results, name).T, "o-", label=name)
    axes[0].set(xlabel="n, bits of Alice's input", ylabel="bits of one message", title="lower bounds")
    axes[0].legend(fontsize=8)
    for name, group in (("INDEX", results.index), ("majority", results.majority)):
        for size, runs in zip(results.sizes, group):
            figures.band(
                axes[1], runs.final["bits"][0] + 1, runs.final["protocol"], label=f"{name}, n = {size}", marker="o"
            )
    for size in results.sizes:
        axes[1].axvline(size + 1, color="#aaaaaa", linestyle=":", linewidth=1)
    axes[1].set(xscale="log", xlabel="bits sent + 1", ylabel="accuracy", ylim=(0.4, 1.03), title="LSTM states, rounded")
    axes[1].legend(fontsize=8)
    return figure
