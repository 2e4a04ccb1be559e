"""Without backtracking the distance to the target grows with the length; with it, it stays bounded.

Values that are wrong by a constant factor at every step: how far from the target are the strings?

Bits, uniform model, uniform target; V(y) = 1+ε if y ends in 0, else 1−ε, exact at the leaves. Drawing each token in
proportion to π·V multiplies the errors: after H−1 steps the string's distribution is a product of biased coins, and its
distance to uniform grows like √H until it fills everything. The walk that may go back is at most a constant away at its
first leaf, and not at all in its stationary distribution. Exact: products, and series-parallel reduction of the tree as
an electrical network, C(y) = Σ_a c·C/(c + C) with c = 2^(−h)V.

Second instance: Dyck words of two bracket types with uniform brackets as model; the exact value of a prefix of depth d
with r brackets left is N(d, r)/4^r, N = 2^((r−d)/2)[C(r, (r−d)/2) − C(r, (r−d)/2 − 1)]. It is multiplied by e^(σξ),
σ = 0.5, ξ normal at every node. Lengths up to 8 are enumerated, length 12 is simulated.

What to look for: dashed lines (no backtracking) climb, full lines (first leaf) are flat from H = 6 on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from sandlab import figures
from sandlab.decoding._session.streams import hashed_prefix, mix, to_unit
from sandlab.decoding.decoders.walks import VGB, ValueGuided
from sandlab.decoding.exact.distributions import total_variation, value_guided_distribution
from sandlab.decoding.exact.trees import Tree
from sandlab.decoding.exact.walks import TreeWalk, first_leaf_distribution
from sandlab.decoding.generators.base import Generator
from sandlab.decoding.verifiers.base import Verifier
from sandlab.random import rng
from sandlab.studies.claims import Exact, Mean, NotMeasured
from sandlab.studies.study import Lab, Rows, Study
from sandlab.studies.verifier._exact import THESIS, WALKS, leaf_p_value, table
from sandlab.worlds.dyck.brackets import count_completions, count_words, scan_brackets

SIMULATED = 6  # longest horizon that is simulated too, with 40 times as many runs


@dataclass(frozen=True)
class Settings:
    """Horizons H, sizes of the error ε, Dyck lengths solved exactly, noise of log V there, length that is simulated."""

    seeds: int = 5
    horizons: tuple[int, ...] = (2, 4, 6, 8, 10, 12, 14)
    errors: tuple[float, ...] = (0.1, 0.3, 0.5)
    dyck_lengths: tuple[int, ...] = (4, 6, 8)
    noise: float = 0.5
    simulated: int = 12
    runs: int = 400


study = Study(
    "verifier/error-amplification",
    title="Without backtracking the distance to the target grows with the length; with it, it stays bounded",
    source=f"{WALKS} ({THESIS}, §3.3)",
    quick=Settings(),
    full=Settings(seeds=10, horizons=(2, 4, 6, 8, 10, 12, 14, 16), runs=2000),
)


@dataclass(frozen=True)
class Bits:
    """Biased values on a tree of bits; `runs` simulated strings."""

    horizon: int
    error: float
    runs: int

    def tree(self) -> tuple[Tree, list[np.ndarray]]:
        """Uniform bits; V = 1+ε after a 0 and 1−ε after a 1, exact (1) at the root and at the leaves."""
        inner = [np.tile([1 + self.error, 1 - self.error], 2 ** (level - 1)) for level in range(1, self.horizon)]
        return Tree.uniform(2, self.horizon), [np.ones(1), *inner, np.ones(2**self.horizon)]


def solve_bits(config: Bits) -> dict[str, float]:
    """Exact distances to the target; for short strings, simulations of both algorithms (smallest p-value, or NaN)."""
    tree, values = config.tree()
    target, source = tree.reach[-1], rng(0, config.horizon)
    probs = {ValueGuided(): value_guided_distribution(tree, values), VGB(): first_leaf_distribution(tree, values)}
    tests = [leaf_p_value(each, tree, values, probs[each], config.runs, source) for each in probs if config.runs]
    return {
        **{
            name: total_variation(each, target) for name, each in zip(("no backtracking", "first leaf"), probs.values())
        },
        "stationary": total_variation(TreeWalk(tree, values).leaf_distribution, target),
        "p-value": min(tests, default=np.nan),
    }


@dataclass(frozen=True)
class DyckWords:
    """Dyck words of two types, uniform brackets as model, values N(d, r)/4^r · e^{σξ}; `runs` simulated walks."""

    length: int
    noise: float
    seed: int
    runs: int = 0


def solve_dyck(config: DyckWords) -> dict[str, float]:
    """Exact distances to uniform, by enumeration."""
    tree, length = Tree.uniform(4, config.length), config.length
    chance = np.random.default_rng((config.seed, length))
    values = [exact_values(level, length) for level in range(length + 1)]
    for level in range(1, length):
        values[level] *= np.exp(config.noise * chance.standard_normal(len(values[level])))
    words = values[-1] > 0
    uniform = words / words.sum()
    found = {"validity": float(first_leaf_distribution(tree, values)[words].sum())}
    for name, probs in (
        ("no backtracking", value_guided_distribution(tree, values)),
        ("first leaf", first_leaf_distribution(tree, values)),
    ):
        found[name] = total_variation(probs, uniform)
        found[f"chi-square, {name}"] = float((probs[words] ** 2 / uniform[words]).sum() - 1)
    return found


def exact_values(level: int, length: int) -> np.ndarray:
    """V* of every prefix of `level` brackets: completions divided by 4^(brackets left), 0 for what is no prefix."""
    tokens = np.stack(np.unravel_index(np.arange(4**level), (4,) * level), 1) if level else np.zeros((1, 0), dtype=int)
    depth, valid = read_prefixes(torch.from_numpy(tokens), torch.full((4**level,), level))
    left = length - level
    table = np.array([count_completions(d, left) / 4.0**left for d in range(length + 2)])
    return np.where(valid.numpy(), table[depth.numpy()], 0.0)


def read_prefixes(tokens: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
    """Depth of each prefix and whether every closing bracket in it matches."""
    if tokens.shape[1] == 0:
        return torch.zeros_like(lengths), torch.ones_like(lengths, dtype=torch.bool)
    scan = scan_brackets(tokens, 2)
    valid = (scan.matched | (torch.arange(tokens.shape[1]) >= lengths.unsqueeze(1))).all(1)
    depth = torch.nn.functional.pad(scan.depth, (1, 0)).gather(1, lengths.unsqueeze(1)).squeeze(1)
    return depth, valid


class UniformGenerator(Generator):
    """Every token equally likely."""

    def __init__(self, vocab: int) -> None:
        super().__init__()
        self.vocab = vocab

    def _next_log_probs(self, tokens: Tensor, lengths: Tensor, rows: Tensor) -> Tensor:
        return torch.full((len(lengths), self.vocab), 1 / self.vocab, dtype=torch.float64).log()


class NoisyDyckValue(Verifier):
    """N(d, r)/4^r · e^{σξ(y)} with a standard normal ξ for every inner node, computed from the prefix itself."""

    def __init__(self, length: int, noise: float, seed: int) -> None:
        self.length, self.noise, self.seed = length, noise, seed
        table = [[count_completions(d, r) / 4.0**r for d in range(length + 2)] for r in range(length + 1)]
        self.table = torch.tensor(table, dtype=torch.float64)

    def value(self, tokens: Tensor, lengths: Tensor, rows: Tensor) -> Tensor:
        depth, valid = read_prefixes(tokens, lengths)
        exact = torch.where(valid, self.table[self.length - lengths, depth], 0.0)
        # Box–Muller from two numbers that belong to the prefix.
        key = hashed_prefix(tokens, lengths, self.seed)
        radius = (-2 * (1 - to_unit(mix(key))).log()).sqrt()
        normal = radius * torch.cos(2 * torch.pi * to_unit(mix(key + 1)))
        inner = (lengths > 0) & (lengths < self.length)
        return torch.where(inner, exact * (self.noise * normal).exp(), exact)


def walk_dyck(config: DyckWords) -> dict[str, float]:
    """Simulated walks on a tree too large to enumerate: are the words valid, and how long does it take?"""
    done = VGB().generate(
        UniformGenerator(4),
        torch.zeros(config.runs, 0, dtype=torch.long),
        verifier=NoisyDyckValue(config.length, config.noise, config.seed),
        max_new=config.length,
        rng=rng(config.seed, "dyck walk"),
    )
    depth, valid = read_prefixes(done.tokens, done.lengths)
    words = valid & (depth == 0) & done.done
    return {"validity": float(words.double().mean()), "steps": float(done.counters["steps"].double().mean())}


@dataclass(frozen=True)
class Results:
    """Name → array. bits: (error, horizon); dyck: (seed, length); walks: (exact or noisy values, seed)."""

    settings: Settings
    bits: dict[str, np.ndarray]
    dyck: dict[str, np.ndarray]
    walks: dict[str, np.ndarray]

    def horizon(self, value: int) -> int:
        """Index of a horizon."""
        if value not in self.settings.horizons:
            raise NotMeasured(f"the horizons need {value}")
        return self.settings.horizons.index(value)


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    seeds, runs, noise = range(settings.seeds), settings.runs, settings.noise
    bits = [Bits(h, error, 40 * runs * (h <= SIMULATED)) for error in settings.errors for h in settings.horizons]
    dyck = [DyckWords(length, noise, seed) for seed in seeds for length in settings.dyck_lengths]
    walks = [DyckWords(settings.simulated, each, seed, runs) for each in (0.0, noise) for seed in seeds]
    return Results(
        settings,
        table(lab.map(solve_bits, bits, label="biased bits"), len(settings.errors), -1),
        table(lab.map(solve_dyck, dyck, label="Dyck words"), settings.seeds, -1),
        table(lab.map(walk_dyck, walks, label="walks to Dyck words"), 2, -1),
    )


@study.claim(Exact(above=0.0))
def grows(results: Results) -> float:
    """Without backtracking the distance to the target grows with the horizon.

    Smallest increase of the distance from one horizon to the next, over all ε.
    """
    return float(np.diff(results.bits["no backtracking"], axis=1).min())


@study.claim(Exact(below=0.01), source=f"{WALKS} ({THESIS}, §3.3); instance of our own")
def bounded(results: Results) -> float:
    """The distance of the walk's first leaf stays bounded.

    Largest increase of the distance from H = 8 to the longest horizon, over all ε.
    """
    distance = results.bits["first leaf"]
    return float((distance[:, -1] - distance[:, results.horizon(8)]).max())


@study.claim(Exact(below=1e-10), source=WALKS, at=f"property 3 ({THESIS}, §3.3.1)", paper="0")
def stationary(results: Results) -> float:
    """The stationary distribution on leaves is the target exactly, for every ε and H.

    Largest distance.
    """
    return float(results.bits["stationary"].max())


@study.claim(Exact(above=3.0), source="exact computation on an instance of our own")
def factor(results: Results) -> float:
    """At H = 14 and ε = 0.5 sampling without backtracking is several times as far from the target as the walk.

    Ratio of the two distances.
    """
    longest = results.horizon(14)
    return float(results.bits["no backtracking"][-1, longest] / results.bits["first leaf"][-1, longest])


@study.claim(Mean(above=0.1), source="chi-square test", note="⅓ is expected; the bound is ours")
def simulation(results: Results) -> np.ndarray:
    """Simulated strings of both algorithms have the computed distributions.

    Smaller p-value of the two algorithms' chi-square tests, mean over ε and horizons.
    """
    tests: np.ndarray = results.bits["p-value"][~np.isnan(results.bits["p-value"])]
    return tests


@study.claim(Mean(above=0.0), source=f"{WALKS} ({THESIS}, §3.3); instance of our own")
def dyck(results: Results) -> np.ndarray:
    """On Dyck words with log-normal errors of the values, too, the first leaf is closer to uniform.

    Distance without backtracking minus that of the first leaf at the largest length.
    """
    return results.dyck["no backtracking"][:, -1] - results.dyck["first leaf"][:, -1]


@study.claim(Exact(equals=1.0, within=1e-9), source="by construction of the walk", paper="1")
def dyck_valid(results: Results) -> float:
    """Values of 0 on wrong prefixes make every returned word valid.

    Smallest share of valid words, enumerated and simulated.
    """
    return float(min(results.dyck["validity"].min(), results.walks["validity"].min()))


@study.claim(Mean(equals=1.0, within=0.1), source="a reflecting walk on 0..H; derived here")
def dyck_steps(results: Results) -> np.ndarray:
    """With exact values a Dyck word of length H takes 2H² steps.

    Mean steps of the simulated walk with exact values, divided by 2H².
    """
    return results.walks["steps"][0] / (2 * results.settings.simulated**2)


@study.table
def distances(results: Results) -> dict[str, Rows]:
    bits: Rows = [
        {"H": horizon}
        | {
            f"{name}, ε={error}": float(results.bits[name][row, column])
            for name in ("no backtracking", "first leaf")
            for row, error in enumerate(results.settings.errors)
        }
        for column, horizon in enumerate(results.settings.horizons)
    ]
    names = ("no backtracking", "first leaf", "chi-square, no backtracking", "chi-square, first leaf")
    words: Rows = [
        {"length": length, "words": count_words(length)}
        | {name: float(results.dyck[name][:, column].mean()) for name in names}
        for column, length in enumerate(results.settings.dyck_lengths)
    ]
    return {"bits: distance to the target": bits, "Dyck words": words}


@study.figure
def distance(results: Results) -> Figure:
    settings, lengths = results.settings, results.settings.dyck_lengths
    figure, axes = figures.new(columns=2, width=4.8, height=3.5)
    kinds = (("no backtracking", "without backtracking", "--", 1), ("first leaf", "the walk's first leaf", "-", 0))
    for name, label, line, hue in kinds:
        for colour, error, values in zip(figures.COLOURS, settings.errors, results.bits[name]):
            text = f"ε = {error}" if name == "first leaf" else None
            axes[0].plot(settings.horizons, values, line, color=colour, marker="o", markersize=3, label=text)
        axes[0].plot([], [], line, color="#555555", label=label)
        style = {"color": figures.COLOURS[hue], "linestyle": line, "marker": "o"}
        figures.band(axes[1], lengths, results.dyck[name], label=label, **style)
    axes[0].set(xlabel="horizon H", ylabel="total variation to the target", title="bits with biased values")
    axes[0].set_ylim(0, 0.95)
    axes[0].legend(ncols=2, loc="upper left", fontsize=8)
    axes[1].set(xlabel="length of the words", ylabel="total variation to uniform", xticks=lengths)
    axes[1].set(title=f"Dyck words, log-normal errors σ = {settings.noise}", ylim=(0, None))
    axes[1].legend()
    return figure
