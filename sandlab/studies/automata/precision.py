"""How many bits a shortcut needs, how much noise it bears, and how a counter fails that has not seen every count."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy import stats

from sandlab.circuits.automata.atoms import truncated_counter
from sandlab.circuits.automata.compiler import METHODS
from sandlab.circuits.precision import bits_needed, precision_sweep
from sandlab.figures import new, style
from sandlab.random import rng
from sandlab.studies.claims import Above, Below, Claim, Equals
from sandlab.studies.study import Lab, Outcome, study
from sandlab.worlds.automata.catalogue import named_machine
from sandlab.worlds.automata.counters import Cyclic

SOURCE = "Liu, Ash, Goel, Krishnamurthy & Zhang 2023"
PAIRS = (("D6", "scan"), ("C3", "modular-counter"), ("memory4", "memory"), ("Grid4", "gridworld"))


@dataclass(frozen=True)
class PrecisionSettings:
    """Lengths of the sweep, test words, noise levels, and the counts that the truncated counter knows."""

    lengths: tuple[int, ...] = (8, 16, 32, 64, 128)
    words: int = 12
    noise: tuple[float, ...] = (1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2)
    noise_length: int = 32
    noise_draws: int = 6
    known: tuple[int, int] = (12, 28)
    count_length: int = 40
    count_words: int = 400
    seeds: int = 1


@dataclass(frozen=True)
class BitsJob:
    """One construction at one length."""

    name: str
    method: str
    length: int
    words: int


@dataclass(frozen=True)
class NoiseJob:
    """One construction with noise on every weight that is not zero."""

    name: str
    method: str
    length: int
    words: int
    noise: tuple[float, ...]
    draws: int


@dataclass(frozen=True)
class CountJob:
    """The parity counter that knows the counts from `low` to `high` only, at one probability of a one."""

    probability: float
    low: int
    high: int
    length: int
    words: int


def measure_bits(config: BitsJob) -> dict[str, Any]:
    """Fewest bits behind the point with which the circuit is exact, and still is with one to four bits more."""
    machine = named_machine(config.name, length=config.length)
    batch = machine.sample(config.words, rng=rng(config.length, "precision"))
    model = METHODS[config.method](machine, config.length)
    needed = bits_needed(model, batch.inputs, batch.targets)
    if needed is not None:
        # Bisection takes for granted that more bits are no worse; a few more are tried.
        around = precision_sweep(model, batch.inputs, batch.targets, bits=range(needed, needed + 5))
        needed = around.needed
    return {"method": config.method, "length": config.length, "bits": math.nan if needed is None else needed}


def measure_noise(config: NoiseJob) -> dict[str, Any]:
    """Accuracy when every weight w becomes w(1 + ε), ε normal with the given standard deviation."""
    machine = named_machine(config.name, length=config.length)
    batch = machine.sample(config.words, rng=rng(0, "noise"))
    model = METHODS[config.method](machine, config.length)
    shares = []
    for level in config.noise:
        for draw in range(config.draws):
            noisy = copy.deepcopy(model)
            generator = rng(draw, "weights")
            with torch.no_grad():
                for parameter in noisy.parameters():
                    factor = torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
                    parameter.mul_(1 + level * factor)
                right = noisy(batch.inputs).argmax(-1) == batch.targets
            shares.append(float(right.double().mean()))
    return {"method": config.method, "accuracy": np.array(shares).reshape(len(config.noise), config.draws)}


def measure_counts(config: CountJob) -> dict[str, float]:
    """Accuracy of the truncated counter, and what the binomial law of counts predicts.

    At position t the answer is right when the count is known, and else when it is even, since unknown counts give 0.
    """
    law = (1 - config.probability, config.probability)
    machine = Cyclic(size=2, length=config.length, law=law)
    batch = machine.sample(config.words, rng=rng(round(1000 * config.probability), "counts"))
    model = truncated_counter(machine, config.length, range(config.low, config.high + 1))
    with torch.no_grad():
        right = model(batch.inputs).argmax(-1) == batch.targets
    times = np.arange(1, config.length + 1)
    counts = np.arange(config.length + 1)
    chance = stats.binom.pmf(counts[None], times[:, None], config.probability)
    good = ((counts >= config.low) & (counts <= config.high)) | (counts % 2 == 0)
    last = float(right[:, -1].double().mean())
    known = ((counts >= config.low) & (counts <= config.high)).astype(float)
    return {
        "probability": config.probability,
        "accuracy": float(right.double().mean()),
        "predicted": float((chance * good).sum(1).mean()),
        "last": last,
        "known_last": float((chance[-1] * known).sum()),
    }


CLAIMS = (
    Claim(
        "logarithmic",
        "The bits behind the point grow like log T for every construction.",
        f"{SOURCE}, Section 2 (precision O(log T))",
        "smallest R² of a straight line in log₂ T over the constructions",
        Above(0.9),
        exact=True,
    ),
    Claim(
        "few",
        "They grow by a few bits for each doubling of the length.",
        f"{SOURCE}, Section 2 (precision O(log T))",
        "largest slope in bits per doubling",
        Below(4.5),
        exact=True,
    ),
    Claim(
        "brittle",
        "A relative error of 1 % on the weights destroys every construction.",
        f"{SOURCE}, Section 5 (shortcuts are brittle), measured on exact weights",
        "largest accuracy at the largest noise",
        Below(0.999),
        exact=True,
    ),
    Claim(
        "small-noise",
        "A relative error of 10⁻⁸ leaves every construction exact.",
        "measured here",
        "smallest accuracy at the smallest noise",
        Equals(1.0, 0.0),
        exact=True,
    ),
    Claim(
        "counts",
        "A counter that knows only some counts is right exactly as often as these counts occur.",
        f"{SOURCE}, Figure 8 (why parity fails at shifted counts)",
        "largest difference between measured and predicted accuracy",
        Below(0.03),
        exact=True,
    ),
    Claim(
        "shift",
        "So it is near-perfect at probability ½ of a one, and fails at shifted ones, on the last letter.",
        f"{SOURCE}, Figure 8",
        "accuracy of the last letter at ½ minus the mean at 0.1 and 0.9",
        Above(0.3),
        exact=True,
    ),
)


@study(
    "automata/precision",
    title="Shortcuts need about log T bits, and break like trained ones",
    source=f"{SOURCE}, Sections 2 and 5, Figure 8",
    claims=CLAIMS,
    quick=PrecisionSettings(),
    full=PrecisionSettings(
        lengths=(8, 16, 32, 64, 128, 256), words=16, noise_length=64, noise_draws=20, count_words=4000
    ),
)
def precision(config: PrecisionSettings, lab: Lab) -> Outcome:
    """What exact weights bear: cut bits, noise, and a table with holes.

    **Bits.** Every weight and every activation x becomes ⌊x·2^c⌋/2^c; the smallest c from which on all test words
    come out right is measured for the scan (D6), the modular counter (C3), the memory (four values) and the two-layer
    gridworld (four places), at lengths that double. The theory asks for c = Θ(log T): a straight line in log₂ T.

    **Noise.** Every weight w becomes w(1 + ε). Attention that must point at one position has weights of order T, so
    small relative errors move its scores by more than their gap; the counter's table has bumps of width 1/(2T).

    **A table with holes.** A counter must know every sum that can occur. Trained on fair letters at T = 40, a network
    sees counts near 20; here the exact counter is given the counts 12 to 28 only. At position t with probability p of a
    one it is right with probability Σ_{m known} Bin(t, p)(m), plus the even counts among the unknown ones (they give
    state 0). The curve is the failure of trained parity networks on shifted letters, made by design.

    **What to look for.** Left: straight lines, the gridworld's steeper one (its scores need N³). Middle: how sharply
    accuracy falls. Right: dots on the predicted line.
    """
    bits = lab.map(
        measure_bits,
        [BitsJob(name, method, length, config.words) for name, method in PAIRS for length in config.lengths],
        label="bits",
    )
    noise = lab.map(
        measure_noise,
        [
            NoiseJob(name, method, config.noise_length, config.words, config.noise, config.noise_draws)
            for name, method in PAIRS
        ],
        label="noise",
    )
    levels = tuple(round(0.05 * step, 2) for step in range(1, 20))
    counts = lab.map(
        measure_counts,
        [CountJob(level, *config.known, config.count_length, config.count_words) for level in levels],
        label="counts",
    )
    fits = {method: _line(bits, method) for _, method in PAIRS}
    by_level = {found["probability"]: found for found in counts}
    shifted = [by_level[level]["last"] for level in (0.1, 0.9)]
    measurements = {
        "logarithmic": min(fit["r2"] for fit in fits.values()),
        "few": max(fit["slope"] for fit in fits.values()),
        "brittle": max(float(found["accuracy"][-1].mean()) for found in noise),
        "small-noise": min(float(found["accuracy"][0].min()) for found in noise),
        "counts": max(abs(found["accuracy"] - found["predicted"]) for found in counts),
        "shift": by_level[0.5]["last"] - float(np.mean(shifted)),
    }
    rows = [{"construction": found["method"], "length": found["length"], "bits": found["bits"]} for found in bits]
    slopes = [{"construction": name, "bits per doubling": fit["slope"], "R²": fit["r2"]} for name, fit in fits.items()]
    return Outcome(measurements, {"precision": _draw(config, bits, noise, counts)}, {"bits": rows, "slopes": slopes})


def _line(found: list[dict[str, Any]], method: str) -> dict[str, float]:
    points = [(math.log2(each["length"]), each["bits"]) for each in found if each["method"] == method]
    x, y = np.array(points).T
    fit = stats.linregress(x, y)
    return {"slope": float(fit.slope), "r2": float(fit.rvalue**2)}


def _draw(
    config: PrecisionSettings, bits: list[dict[str, Any]], noise: list[dict[str, Any]], counts: list[dict[str, Any]]
) -> Any:
    with style():
        figure, (left, middle, right) = new(3, width=4.4, height=3.5)
        for (_, method), found in zip(PAIRS, noise):
            mine = [each for each in bits if each["method"] == method]
            left.plot([each["length"] for each in mine], [each["bits"] for each in mine], marker="o", label=method)
            middle.plot(config.noise, found["accuracy"].mean(1), marker=".", label=method)
        left.set(xscale="log", xlabel="length T", ylabel="bits behind the point", title="needed for exactness")
        left.set_xticks(config.lengths, [str(length) for length in config.lengths])
        left.minorticks_off()
        left.legend()
        middle.set(
            xscale="log",
            xlabel="relative noise on weights",
            ylabel="accuracy",
            title=f"noise, T = {config.noise_length}",
        )
        levels = [found["probability"] for found in counts]
        right.plot(levels, [found["predicted"] for found in counts], label="predicted, all letters")
        right.plot(
            levels, [found["accuracy"] for found in counts], "o", color="#0b3954", markersize=4, label="measured"
        )
        right.plot(
            levels, [found["last"] for found in counts], "s", color="#d1495b", markersize=3.5, label="last letter"
        )
        low, high = config.known
        right.set(xlabel="probability of a one", ylabel="accuracy", title=f"a counter that knows {low} to {high}")
        right.legend()
    return figure
