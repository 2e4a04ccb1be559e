"""How many bits a shortcut needs, how much noise it tolerates, and how a counter fails that lacks some counts.

**Bits.** Every weight and every activation x becomes ⌊x·2^c⌋/2^c; the smallest c from which on all test words come out
right is measured for the scan (D6), the modular counter (C3), the memory (four values) and the two-layer gridworld
(four positions), at lengths that double. The theory asks for c = Θ(log T): a straight line in log₂ T.

**Noise.** Every weight w becomes w(1 + ε). Attention that must point at one position has weights of order T, so small
relative errors move its scores by more than their gap; the counter's table has bumps of width 1/(2T).

**A table with holes.** A counter must know every sum that can occur. Trained on fair letters at T = 40, a network sees
counts near 20; here the exact counter is given the counts 12 to 28 only. At position t with probability p of a one it
is right with probability Σ_{m known} Bin(t, p)(m), plus the even counts among the unknown ones (they give state 0). The
curve is the failure of trained parity networks on shifted letters, made by design.

**What to look for.** Left: straight lines, the gridworld's steeper one (its scores need N³). Middle: how sharply
accuracy drops. Right: dots on the predicted line.
"""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass

import numpy as np
import torch
from matplotlib.figure import Figure
from scipy import stats

from sandlab import figures
from sandlab.circuits.automata.atoms import truncated_counter
from sandlab.circuits.automata.compiler import METHODS
from sandlab.circuits.precision import bits_needed, precision_sweep
from sandlab.random import rng
from sandlab.studies.automata._shared import SOURCE
from sandlab.studies.claims import Mean, Share
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.automata.catalogue import named_machine
from sandlab.worlds.automata.counters import Cyclic

PAIRS = (("D6", "scan"), ("C3", "modular-counter"), ("memory4", "memory"), ("Grid4", "gridworld"))
LEVELS = tuple(round(0.05 * step, 2) for step in range(1, 20))  # probabilities of a one


@dataclass(frozen=True)
class Settings:
    """Lengths of the sweep, test words, noise levels, and the counts that the truncated counter knows.

    seeds   draws of the test words (bits and counts); noise has draws of the weights
    """

    lengths: tuple[int, ...] = (8, 16, 32, 64, 128)
    words: int = 12
    noise: tuple[float, ...] = (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
    noise_length: int = 32
    noise_draws: int = 6
    known: tuple[int, int] = (12, 28)
    count_length: int = 40
    count_words: int = 400
    seeds: int = 4


study = Study(
    "automata/precision",
    title="Shortcuts need about log T bits, and break like trained ones",
    source=SOURCE,
    at="Sections 2 and 5, Figure 8",
    quick=Settings(),
    full=Settings(lengths=(8, 16, 32, 64, 128, 256), words=16, noise_length=64, noise_draws=20, count_words=4000),
)


@dataclass(frozen=True)
class Construction:
    """One construction of a named automaton at one length, on `words` random words."""

    name: str
    method: str
    length: int
    words: int
    seed: int = 0


@dataclass(frozen=True)
class Noise:
    """A construction with relative noise of these standard deviations on its weights, drawn several times."""

    construction: Construction
    levels: tuple[float, ...]
    draws: int


@dataclass(frozen=True)
class Truncated:
    """The parity counter that knows the counts from `low` to `high` only, at one probability of a one."""

    probability: float
    low: int
    high: int
    length: int
    words: int
    seed: int = 0


@dataclass(frozen=True)
class CountAccuracy:
    """Accuracy of the truncated counter, what the binomial distribution predicts, and accuracy at the last letter."""

    measured: float
    predicted: float
    last: float


@dataclass(frozen=True)
class Results:
    """Bits by construction (seed, length); accuracy under noise by construction (level, draw); counters.

    counts   probability of a one → accuracy on each seed's words
    """

    settings: Settings
    bits: dict[str, np.ndarray]
    noise: dict[str, np.ndarray]
    counts: dict[float, list[CountAccuracy]]

    @property
    def fits(self) -> dict[str, np.ndarray]:
        """Bits per doubling, and R², of each construction (seed, 2)."""
        lengths = np.log2(self.settings.lengths)
        lines = {name: [stats.linregress(lengths, each) for each in bits] for name, bits in self.bits.items()}
        return {name: np.array([(line.slope, line.rvalue**2) for line in each]) for name, each in lines.items()}

    def last(self, probability: float) -> np.ndarray:
        """Accuracy of the truncated counter at the last letter, for each seed."""
        return np.array([each.last for each in self.counts[probability]])


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    seeds = range(settings.seeds)
    cells = [(pair, seed, length) for pair in PAIRS for seed in seeds for length in settings.lengths]
    sweep = [Construction(*pair, length, settings.words, seed) for pair, seed, length in cells]
    bits = np.reshape(lab.map(measure_bits, sweep, label="bits"), (len(PAIRS), len(seeds), -1))
    fixed = [Construction(*pair, settings.noise_length, settings.words) for pair in PAIRS]
    noisy = [Noise(each, settings.noise, settings.noise_draws) for each in fixed]
    noise = lab.map(measure_noise, noisy, label="noise")
    size = (*settings.known, settings.count_length, settings.count_words)
    found = iter(lab.map(measure_counts, [Truncated(p, *size, seed) for p in LEVELS for seed in seeds], label="counts"))
    counts = {level: [next(found) for _ in seeds] for level in LEVELS}
    methods = [method for _, method in PAIRS]
    return Results(settings, dict(zip(methods, bits)), dict(zip(methods, noise)), counts)


def measure_bits(job: Construction) -> float:
    """Fewest bits behind the point with which the circuit is exact, and still is with one to four bits more."""
    machine = named_machine(job.name, length=job.length)
    batch = machine.sample(job.words, rng=rng(job.seed, "precision", job.length))
    model = METHODS[job.method](machine, job.length)
    needed = bits_needed(model, batch.inputs, batch.targets)
    if needed is not None:
        # Bisection assumes that more bits are no worse; a few more are tried.
        needed = precision_sweep(model, batch.inputs, batch.targets, bits=range(needed, needed + 5)).needed
    return math.nan if needed is None else float(needed)


def measure_noise(job: Noise) -> np.ndarray:
    """Accuracy when every weight w becomes w(1 + ε), ε normal with the given standard deviation."""
    what = job.construction
    machine = named_machine(what.name, length=what.length)
    batch = machine.sample(what.words, rng=rng(0, "noise"))
    model = METHODS[what.method](machine, what.length)
    shares = np.zeros((len(job.levels), job.draws))
    for (row, draw), _ in np.ndenumerate(shares):
        noisy, generator = copy.deepcopy(model), rng(draw, "weights")
        with torch.no_grad():
            for weight in noisy.parameters():
                weight.mul_(1 + job.levels[row] * torch.randn(weight.shape, generator=generator, dtype=weight.dtype))
            shares[row, draw] = float((noisy(batch.inputs).argmax(-1) == batch.targets).double().mean())
    return shares


def measure_counts(job: Truncated) -> CountAccuracy:
    """At position t the answer is right when the count is known, and else when it is even: unknown counts give 0."""
    machine = Cyclic(size=2, length=job.length, probs=(1 - job.probability, job.probability))
    batch = machine.sample(job.words, rng=rng(job.seed, "counts", round(1000 * job.probability)))
    model = truncated_counter(machine, job.length, range(job.low, job.high + 1))
    with torch.no_grad():
        correct = (model(batch.inputs).argmax(-1) == batch.targets).double()
    times, counts = np.arange(1, job.length + 1), np.arange(job.length + 1)
    probs = stats.binom.pmf(counts[None], times[:, None], job.probability)
    good = ((counts >= job.low) & (counts <= job.high)) | (counts % 2 == 0)
    return CountAccuracy(float(correct.mean()), float((probs * good).sum(1).mean()), float(correct[:, -1].mean()))


@study.claim(Mean(above=0.9), at="Section 2 (precision O(log T))")
def logarithmic(results: Results) -> np.ndarray:
    """The bits behind the point grow like log T for every construction.

    Smallest R² of a straight line in log₂ T over the constructions, mean over draws of the test words.
    """
    return np.min([fits[:, 1] for fits in results.fits.values()], axis=0)


@study.claim(Mean(below=4.5), at="Section 2 (precision O(log T))")
def few(results: Results) -> np.ndarray:
    """They grow by a few bits for each doubling of the length.

    Largest slope in bits per doubling over the constructions, mean over draws of the test words.
    """
    return np.max([fits[:, 0] for fits in results.fits.values()], axis=0)


@study.claim(Mean(below=0.9), at="Section 5 (shortcuts are brittle), measured on exact weights")
def brittle(results: Results) -> np.ndarray:
    """A relative error of 1 % on the weights costs every construction a tenth of its answers and more.

    Largest accuracy over constructions at the largest noise, mean over draws of the noise.
    """
    return np.max([accuracy[-1] for accuracy in results.noise.values()], axis=0)


@study.claim(Share(above=0.5), source="measured here")
def small_noise(results: Results) -> np.ndarray:
    """A relative error of 10⁻⁸ leaves every construction exact.

    Share of draws of the noise, at the smallest level, with which all constructions are right on all test words.
    """
    return np.min([accuracy[0] for accuracy in results.noise.values()], axis=0) == 1.0


@study.claim(Mean(below=0.03), at="Figure 8 (why parity fails at shifted counts)")
def counts(results: Results) -> np.ndarray:
    """A counter that knows only some counts is right exactly as often as these counts occur.

    Largest difference between measured and predicted accuracy over probabilities, mean over draws of the test words.
    """
    differences = [[abs(each.measured - each.predicted) for each in row] for row in results.counts.values()]
    return np.max(differences, axis=0)


@study.claim(Mean(above=0.3), at="Figure 8")
def shift(results: Results) -> np.ndarray:
    """So it is near-perfect at probability ½ of a one, and fails at shifted ones, on the last letter.

    Accuracy of the last letter at ½ minus the mean at 0.1 and 0.9, mean over draws of the test words.
    """
    return results.last(0.5) - (results.last(0.1) + results.last(0.9)) / 2


@study.table
def tables(results: Results) -> dict[str, Rows]:
    bits = [
        {"construction": name, "length": length, "bits": float(needed)}
        for name, row in results.bits.items()
        for length, needed in zip(results.settings.lengths, row.mean(0))
    ]
    slopes = [
        {"construction": name, "bits per doubling": float(fits[:, 0].mean()), "R²": float(fits[:, 1].mean())}
        for name, fits in results.fits.items()
    ]
    return {"bits": bits, "slopes": slopes}


@study.figure
def precision(results: Results) -> Figure:
    settings = results.settings
    figure, (left, middle, right) = figures.new(3, width=4.4, height=3.5)
    for name, bits in results.bits.items():
        left.plot(settings.lengths, bits.mean(0), marker="o", label=name)
        middle.plot(settings.noise, results.noise[name].mean(1), marker=".", label=name)
    left.set(xscale="log", xlabel="length T", ylabel="bits behind the point", title="needed for exactness")
    left.set_xticks(settings.lengths, [str(length) for length in settings.lengths])
    left.minorticks_off()
    title = f"noise, T = {settings.noise_length}"
    middle.set(xscale="log", xlabel="relative noise on weights", ylabel="accuracy", title=title)
    levels, found = list(results.counts), list(results.counts.values())
    measured = [np.mean([each.measured for each in row]) for row in found]
    last = [float(results.last(level).mean()) for level in levels]
    right.plot(levels, [row[0].predicted for row in found], label="predicted, all letters")
    right.plot(levels, measured, "o", color="#0b3954", markersize=4, label="measured")
    right.plot(levels, last, "s", color="#d1495b", markersize=3.5, label="last letter")
    low, high = settings.known
    right.set(xlabel="probability of a one", ylabel="accuracy", title=f"a counter that knows {low} to {high}")
    for axis in (left, right):
        axis.legend()
    return figure
