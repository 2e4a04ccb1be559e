"""Errors of a value function: multiplied along the string without backtracking, bounded with it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy import stats

from sandlab import figures
from sandlab.decoding._session.streams import hashed_prefix, mix, to_unit
from sandlab.decoding.decoders.base import Decoder
from sandlab.decoding.decoders.walks import VGB, ValueGuided
from sandlab.decoding.exact.distributions import total_variation, value_guided_law
from sandlab.decoding.exact.trees import TableVerifier, Tree, TreeGenerator
from sandlab.decoding.exact.walks import TreeWalk, first_leaf_law
from sandlab.decoding.generators.base import Generator
from sandlab.decoding.verifiers.base import Verifier
from sandlab.random import rng
from sandlab.studies.claims import Above, Below, Claim, Equals
from sandlab.studies.study import Lab, Outcome, study
from sandlab.studies.verifier.sources import THESIS, WALKS
from sandlab.worlds.dyck.brackets import count_completions, count_words, scan_brackets


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


@dataclass(frozen=True)
class Job:
    kind: str
    horizon: int
    error: float
    runs: int
    seed: int


def solve(job: Job) -> dict[str, Any]:
    return {"bits": _bits, "dyck": _dyck, "walk": _walk}[job.kind](job)


def biased(horizon: int, error: float) -> tuple[Tree, list[np.ndarray]]:
    """Uniform bits, target uniform; V = 1+ε after a 0 and 1−ε after a 1, exact (1) at the root and at the leaves."""
    inner = [np.tile([1 + error, 1 - error], 2 ** (level - 1)) for level in range(1, horizon)]
    return Tree.uniform(2, horizon), [np.ones(1), *inner, np.ones(2**horizon)]


def _bits(job: Job) -> dict[str, Any]:
    """Exact distances to the target; for short strings, simulations of both algorithms against the exact laws."""
    tree, values = biased(job.horizon, job.error)
    uniform = tree.reach[-1]
    guided, first = value_guided_law(tree, values), first_leaf_law(tree, values)
    found = {
        "no backtracking": total_variation(guided, uniform),
        "first leaf": total_variation(first, uniform),
        "stationary": total_variation(TreeWalk(tree, values).leaf_law, uniform),
    }
    if job.runs:
        found["guided p-value"] = _p_value(ValueGuided(), tree, values, guided, job)
        found["walk p-value"] = _p_value(VGB(), tree, values, first, job)
    return found


def _p_value(decoder: Decoder, tree: Tree, values: list[np.ndarray], law: np.ndarray, job: Job) -> float:
    done = decoder.generate(
        TreeGenerator(tree),
        torch.zeros(job.runs, 0, dtype=torch.long),
        verifier=TableVerifier(values, 2),
        max_new=tree.depth,
        rng=rng(job.seed, job.horizon),
    )
    powers = 2 ** torch.arange(tree.depth - 1, -1, -1)
    counts = np.bincount((done.tokens * powers).sum(1).numpy(), minlength=len(law))
    return float(stats.chisquare(counts, law * job.runs).pvalue)


def _dyck(job: Job) -> dict[str, Any]:
    """Dyck words of two types, uniform brackets as model, values N(d, r)/4^r · e^{σξ}: exact distances to uniform."""
    tree = Tree.uniform(4, job.horizon)
    chance = np.random.default_rng((job.seed, job.horizon))
    values = []
    for level in range(job.horizon + 1):
        exact = _exact_values(level, job.horizon)
        inside = 0 < level < job.horizon
        values.append(exact * np.exp(job.error * chance.standard_normal(len(exact))) if inside else exact)
    words = values[-1] > 0
    uniform = words / words.sum()
    guided, first = value_guided_law(tree, values), first_leaf_law(tree, values)
    return {
        "no backtracking": total_variation(guided, uniform),
        "first leaf": total_variation(first, uniform),
        "chi-square, no backtracking": float((guided[words] ** 2 / uniform[words]).sum() - 1),
        "chi-square, first leaf": float((first[words] ** 2 / uniform[words]).sum() - 1),
        "validity": float(first[words].sum()),
        "words": int(words.sum()),
    }


def _exact_values(level: int, length: int) -> np.ndarray:
    """V* of every prefix of `level` brackets: completions divided by 4^(places left), 0 for what is no prefix."""
    tokens = np.stack(np.unravel_index(np.arange(4**level), (4,) * level), 1) if level else np.zeros((1, 0), dtype=int)
    depth, good = _read(torch.from_numpy(tokens), torch.full((4**level,), level))
    left = length - level
    table = np.array([count_completions(d, left) / 4.0**left for d in range(length + 2)])
    return np.where(good.numpy(), table[depth.numpy()], 0.0)


def _read(tokens: torch.Tensor, lengths: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Depth of each prefix and whether every closing bracket in it is right."""
    if tokens.shape[1] == 0:
        return torch.zeros_like(lengths), torch.ones_like(lengths, dtype=torch.bool)
    scan = scan_brackets(tokens, 2)
    place = torch.arange(tokens.shape[1])
    good = (scan.matched | (place >= lengths.unsqueeze(1))).all(1)
    depth = torch.nn.functional.pad(scan.depth, (1, 0)).gather(1, lengths.unsqueeze(1)).squeeze(1)
    return depth, good


class UniformGenerator(Generator):
    """Every token equally likely."""

    def __init__(self, vocab: int) -> None:
        super().__init__()
        self.vocab = vocab

    def _law(self, tokens: torch.Tensor, lengths: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        return torch.full((len(lengths), self.vocab), 1 / self.vocab, dtype=torch.float64).log()


class NoisyDyckValue(Verifier):
    """N(d, r)/4^r · e^{σξ(y)} with a standard normal ξ for every inner node, found again from the prefix itself."""

    def __init__(self, length: int, noise: float, seed: int) -> None:
        self.length, self.noise, self.seed = length, noise, seed
        table = [[count_completions(d, r) / 4.0**r for d in range(length + 2)] for r in range(length + 1)]
        self.table = torch.tensor(table, dtype=torch.float64)

    def value(self, tokens: torch.Tensor, lengths: torch.Tensor, rows: torch.Tensor) -> torch.Tensor:
        depth, good = _read(tokens, lengths)
        exact = torch.where(good, self.table[self.length - lengths, depth], 0.0)
        # Box–Muller from two numbers that belong to the prefix.
        print_ = hashed_prefix(tokens, lengths, self.seed)
        radius = (-2 * (1 - to_unit(mix(print_))).log()).sqrt()
        normal = radius * torch.cos(2 * torch.pi * to_unit(mix(print_ + 1)))
        inner = (lengths > 0) & (lengths < self.length)
        return torch.where(inner, exact * (self.noise * normal).exp(), exact)


def _walk(job: Job) -> dict[str, Any]:
    """Simulated walks on a tree too large to enumerate: are the words valid, and how long does it take?"""
    results = {}
    for name, noise in (("exact", 0.0), ("noisy", job.error)):
        done = VGB().generate(
            UniformGenerator(4),
            torch.zeros(job.runs, 0, dtype=torch.long),
            verifier=NoisyDyckValue(job.horizon, noise, job.seed),
            max_new=job.horizon,
            rng=rng(job.seed, "dyck walk"),
        )
        depth, good = _read(done.tokens, done.lengths)
        results[f"{name} validity"] = float((good & (depth == 0) & done.done).double().mean())
        results[f"{name} steps"] = float(done.counters["steps"].double().mean())
    return results


@study(
    "verifier/error-amplification",
    title="Without backtracking the distance to the target grows with the length; with it, it stays bounded",
    source=f"{WALKS} ({THESIS}, §3.3)",
    quick=Settings(),
    full=Settings(seeds=10, horizons=(2, 4, 6, 8, 10, 12, 14, 16), runs=2000),
    claims=[
        Claim(
            "grows",
            "Without backtracking the distance to the target grows with the horizon.",
            f"{WALKS} ({THESIS}, §3.3)",
            "smallest increase of the distance from one horizon to the next, over all ε",
            Above(0.0),
            exact=True,
        ),
        Claim(
            "bounded",
            "The distance of the walk's first leaf stays bounded.",
            f"{WALKS} ({THESIS}, §3.3); instance of our own",
            "largest increase of the distance from H = 8 to the longest horizon, over all ε",
            Below(0.01),
            exact=True,
        ),
        Claim(
            "stationary",
            "The stationary law on leaves is the target exactly, for every ε and H.",
            f"{WALKS}, property 3 ({THESIS}, §3.3.1)",
            "largest distance",
            Below(1e-10),
            exact=True,
        ),
        Claim(
            "factor",
            "At H = 14 and ε = 0.5 sampling without backtracking is several times as far from the target as the walk.",
            "exact computation on an instance of our own",
            "ratio of the two distances",
            Above(3.0),
            exact=True,
        ),
        Claim(
            "simulation",
            "Simulated strings of both algorithms have the computed laws.",
            "chi-square test",
            "smallest probability of the observed counts, times the number of tests (Bonferroni)",
            Above(1e-3),
            exact=True,
        ),
        Claim(
            "dyck",
            "On Dyck words with log-normal errors of the values, too, the first leaf is closer to uniform.",
            f"{WALKS} ({THESIS}, §3.3); instance of our own",
            "distance without backtracking minus that of the first leaf at the largest length",
            Above(0.0),
        ),
        Claim(
            "dyck-valid",
            "Values of 0 on wrong prefixes make every returned word valid.",
            "by construction of the walk",
            "smallest share of valid words, enumerated and simulated",
            Equals(1.0, 1e-9),
            exact=True,
        ),
        Claim(
            "dyck-steps",
            "With exact values a Dyck word of length H takes 2H² steps.",
            "a reflecting walk on 0..H; derived here",
            "mean steps of the simulated walk with exact values, divided by 2H²",
            Equals(1.0, 0.1),
        ),
    ],
)
def error_amplification(config: Settings, lab: Lab) -> Outcome:
    """Values that are wrong by a constant factor at every step: how far from the target are the strings?

    Bits, uniform model, uniform target; V(y) = 1+ε if y ends in 0, else 1−ε, exact at the leaves. Drawing each token in
    proportion to π·V multiplies the errors: after H−1 steps the string's law is a product of biased coins, and its
    distance to uniform grows like √H until it fills everything. The walk that may go back is at most a constant away at
    its first leaf, and not at all in its stationary law. Exact: products, and series-parallel reduction of the tree as
    an electrical network, C(y) = Σ_a c·C/(c + C) with c = 2^(−h)V.

    Second instance: Dyck words of two bracket types with uniform brackets as model; the exact value of a prefix of
    depth d with r places left is N(d, r)/4^r, N = 2^((r−d)/2)[C(r, (r−d)/2) − C(r, (r−d)/2 − 1)]. It is multiplied by
    e^(σξ), σ = 0.5, ξ normal at every node. Lengths up to 8 are enumerated, length 12 is simulated.

    What to look for: dashed lines (no backtracking) climb, full lines (first leaf) are flat from H = 6 on.
    """
    short = [h for h in config.horizons if h <= 6]
    jobs = [Job("bits", h, e, 40 * config.runs if h in short else 0, 0) for h in config.horizons for e in config.errors]
    jobs += [Job("dyck", h, config.noise, 0, seed) for h in config.dyck_lengths for seed in range(config.seeds)]
    jobs += [Job("walk", config.simulated, config.noise, config.runs, seed) for seed in range(config.seeds)]
    found = dict(zip(jobs, lab.map(solve, jobs, label="error amplification")))

    def bits(name: str) -> np.ndarray:
        """Error first, then horizon."""
        table = {(job.error, job.horizon): each for job, each in found.items() if job.kind == "bits"}
        return np.array([[table[e, h][name] for h in config.horizons] for e in config.errors])

    def dyck(name: str) -> np.ndarray:
        """Seed first, then length."""
        table = {(job.seed, job.horizon): each for job, each in found.items() if job.kind == "dyck"}
        return np.array([[table[seed, h][name] for h in config.dyck_lengths] for seed in range(config.seeds)])

    walks = [each for job, each in found.items() if job.kind == "walk"]
    tests = [value for each in found.values() for name, value in each.items() if name.endswith("p-value")]
    guided, first = bits("no backtracking"), bits("first leaf")
    eight = config.horizons.index(8)
    measurements: dict[str, Any] = {
        "grows": float(np.diff(guided, axis=1).min()),
        "bounded": float((first[:, -1] - first[:, eight]).max()),
        "stationary": float(bits("stationary").max()),
        "factor": float(guided[-1, config.horizons.index(14)] / first[-1, config.horizons.index(14)]),
        "simulation": float(min(tests) * len(tests)),
        "dyck": dyck("no backtracking")[:, -1] - dyck("first leaf")[:, -1],
        "dyck-valid": float(
            min(dyck("validity").min(), *(each[f"{n} validity"] for each in walks for n in ("exact", "noisy")))
        ),
        "dyck-steps": [each["exact steps"] / (2 * config.simulated**2) for each in walks],
    }
    rows = [
        {
            "H": h,
            **{f"no backtracking, ε={e}": float(guided[i, j]) for i, e in enumerate(config.errors)},
            **{f"first leaf, ε={e}": float(first[i, j]) for i, e in enumerate(config.errors)},
        }
        for j, h in enumerate(config.horizons)
    ]
    words = [
        {
            "length": h,
            "words": count_words(h),
            **{name: float(dyck(name)[:, j].mean()) for name in ("no backtracking", "first leaf")},
            **{
                name: float(dyck(name)[:, j].mean())
                for name in ("chi-square, no backtracking", "chi-square, first leaf")
            },
        }
        for j, h in enumerate(config.dyck_lengths)
    ]
    figure = _draw(config, guided, first, dyck)
    return Outcome(measurements, {"distance": figure}, {"bits: distance to the target": rows, "Dyck words": words})


def _draw(config: Settings, guided: np.ndarray, first: np.ndarray, dyck: Any) -> Any:
    figure, axes = figures.new(columns=2, width=4.8, height=3.5)
    with figures.style():
        for place, error in enumerate(config.errors):
            colour = figures.COLOURS[place]
            axes[0].plot(config.horizons, guided[place], "--", color=colour, marker="o", markersize=3)
            axes[0].plot(
                config.horizons, first[place], "-", color=colour, marker="o", markersize=3, label=f"ε = {error}"
            )
        axes[0].plot([], [], "--", color="#555555", label="without backtracking")
        axes[0].plot([], [], "-", color="#555555", label="the walk's first leaf")
        axes[0].set(xlabel="horizon H", ylabel="total variation to the target", title="bits with biased values")
        axes[0].set_ylim(0, 0.95)
        axes[0].legend(ncols=2, loc="upper left", fontsize=8)
        for name, colour, line in (
            ("no backtracking", figures.COLOURS[1], "--"),
            ("first leaf", figures.COLOURS[0], "-"),
        ):
            label = "without backtracking" if name == "no backtracking" else "the walk's first leaf"
            figures.band(
                axes[1], config.dyck_lengths, dyck(name), label=label, color=colour, linestyle=line, marker="o"
            )
        axes[1].set(
            xlabel="length of the words",
            ylabel="total variation to uniform",
            title=f"Dyck words, log-normal errors σ = {config.noise}",
            xticks=list(config.dyck_lengths),
            ylim=(0, None),
        )
        axes[1].legend()
    return figure
