"""How many questions to the model does a constraint cost, with and without a verifier of prefixes?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from sandlab import figures
from sandlab.decoding.decoders.base import Decoder
from sandlab.decoding.decoders.prefix_search import search_prefixes
from sandlab.decoding.decoders.rejection import EarlyAbort, ExhaustiveSearch, Rejection, TokenwiseRejection
from sandlab.decoding.exact.distributions import restricted_law, tokenwise_law, total_variation
from sandlab.decoding.exact.trees import Tree
from sandlab.decoding.generators.base import WorldGenerator
from sandlab.decoding.verifiers.base import LanguageVerifier
from sandlab.random import rng
from sandlab.studies.claims import Above, Below, Claim, Equals
from sandlab.studies.study import Lab, Outcome, study
from sandlab.studies.verifier.sources import QUERIES, THESIS
from sandlab.worlds.verifier.constrained import AllZeros, BitTask, HiddenParity, SomeZero
from sandlab.worlds.verifier.knapsack import Knapsack, knapsack_table

ALGORITHMS: dict[str, Decoder] = {
    "rejection": Rejection(max_tries=10**9),
    "early abort": EarlyAbort(max_tries=10**9),
    "tokenwise": TokenwiseRejection(),
    "exhaustive": ExhaustiveSearch(),
}
BLIND = 7  # longest hidden parity that is left to rejection: its cost doubles with every bit
CLOSED_FORMS = {
    "rejection": lambda length: length * 2.0**length,
    "early abort": lambda length: 2.0 ** (length + 1) - 2,
    "tokenwise": lambda length: 2.0 * length,
}


@dataclass(frozen=True)
class Settings:
    """Lengths D of the all-zeros task and of hidden parity, runs per length and seed, knapsack instances."""

    seeds: int = 5
    lengths: tuple[int, ...] = (2, 3, 4, 5, 6)
    runs: int = 1500
    secret_lengths: tuple[int, ...] = (5, 6, 7, 8, 9)
    secrets: int = 800
    instances: int = 20


@dataclass(frozen=True)
class Job:
    kind: str
    length: int
    runs: int
    seed: int


def measure(job: Job) -> dict[str, Any]:
    """Mean numbers of calls of one seed at one length."""
    return {"zeros": _zeros, "parity": _parity, "knapsack": _knapsack}[job.kind](job)


def _run(decoder: Decoder, world: BitTask, runs: int, seed: int, **options: Any) -> Any:
    return decoder.generate(
        WorldGenerator(world),
        torch.zeros(runs, 0, dtype=torch.long),
        verifier=LanguageVerifier(world),
        max_new=world.length,
        rng=rng(seed),
        **options,
    )


def _zeros(job: Job) -> dict[str, Any]:
    world = AllZeros(length=job.length)
    found: dict[str, Any] = {}
    for place, (name, decoder) in enumerate(ALGORITHMS.items()):
        done = _run(decoder, world, job.runs, 1000 * job.seed + place)
        counter = "verifier_calls" if name == "exhaustive" else "oracle_calls"
        calls = done.counters[counter].double()
        found[name] = float(calls.max() if name == "exhaustive" else calls.mean())
        found[f"{name} solved"] = float(done.done.double().mean())
    return found


def _parity(job: Job) -> dict[str, Any]:
    source = rng(job.seed, "secrets", job.length)
    size = 2 ** (job.length - 1)
    secrets = torch.randint(size, (job.runs,), generator=source).tolist()
    worlds = [HiddenParity(length=job.length, secret=secret) for secret in secrets]
    search, strings = search_prefixes(worlds, rng=source)
    guesses, _ = search_prefixes(worlds, rng=source, repeat=True)
    plain = _run(Rejection(max_tries=10**9), worlds[0], 2 * job.runs, job.seed) if job.length <= BLIND else None
    right = all(string.tolist() == world.answer.tolist() for string, world in zip(strings, worlds))
    aware = HiddenParity(length=job.length, secret=secrets[0], support_aware=True)
    tokenwise = _run(TokenwiseRejection(), aware, job.runs, job.seed)
    blind = _run(TokenwiseRejection(max_draws=20), worlds[0], job.runs, job.seed)
    return {
        "search": float(search.double().mean()),
        "guesses": float(guesses.double().mean()),
        "rejection": np.nan if plain is None else float(plain.counters["oracle_calls"].double().mean()),
        "right": float(right),
        "support-aware": float(tokenwise.counters["oracle_calls"].double().mean()),
        "blind success": float(blind.done.double().mean()),
    }


def _knapsack(job: Job) -> dict[str, Any]:
    """Random solvable instances: tokenwise rejection with the table as verifier; rejection with the same budget."""
    chance = np.random.default_rng(job.seed)
    calls, solved, blind = [], [], []
    for instance in range(job.runs):
        weights = tuple(int(weight) for weight in chance.integers(5, 60, size=job.length))
        reachable = np.flatnonzero(knapsack_table(weights, sum(weights))[0])
        world = Knapsack(weights=weights, capacity=int(chance.choice(reachable[1:])))
        done = _run(TokenwiseRejection(), world, 20, 7 * instance + job.seed)
        calls.append(float(done.counters["oracle_calls"].double().mean()) / job.length)
        solved.append(float(done.done.double().mean()))
        budget = 2 * job.length
        plain = _run(Rejection(), world, 200, 7 * instance + job.seed, budget=budget)
        blind.append(float(plain.done.double().mean()))
    return {"calls per token": float(np.mean(calls)), "solved": float(np.mean(solved)), "blind": float(np.mean(blind))}


@study(
    "verifier/query-complexity",
    title="A verifier of prefixes turns exponentially many queries into a few per token",
    source=f"{QUERIES}, §2–3 ({THESIS}, §3.1)",
    quick=Settings(),
    full=Settings(
        lengths=(2, 3, 4, 5, 6, 7, 8), runs=4000, secret_lengths=(5, 6, 7, 8, 9, 10), secrets=2000, instances=60
    ),
    claims=[
        Claim(
            "rejection",
            "Rejection sampling needs D·2^D queries for the string of all zeros.",
            f"{QUERIES}, proposition on process verifiers ({THESIS}, Proposition 3.1.1)",
            "mean over D of (mean number of queries)/(D·2^D)",
            Equals(1.0, 0.05),
            paper="D·2^D",
        ),
        Claim(
            "early-abort",
            "Rejection that stops at the first wrong prefix needs 2^(D+1) − 2 queries: still exponential.",
            "closed form, the sum of a geometric series",
            "mean over D of (mean number of queries)/(2^(D+1) − 2)",
            Equals(1.0, 0.05),
        ),
        Claim(
            "tokenwise",
            "Tokenwise rejection with the exact verifier needs 2D queries.",
            f"{QUERIES}, proposition on process verifiers ({THESIS}, Proposition 3.1.1)",
            "mean over D of (mean number of queries)/(2D)",
            Equals(1.0, 0.03),
            paper="2D",
        ),
        Claim(
            "exhaustive",
            "With a perfect verifier, |Σ|·D verifier calls always find a solution.",
            f"{QUERIES}, §3 ({THESIS}, §3.1.3)",
            "largest number of verifier calls divided by 2D, over all runs (1 run that finds nothing counts as 9)",
            Below(1.0 + 1e-9),
            exact=True,
        ),
        Claim(
            "not-restricted",
            "Tokenwise rejection does not sample the restricted law: on strings with some zero it errs by "
            "(2^D − 2)/(2^D(2^D − 1)) in total variation.",
            f"{QUERIES}, proposition on the output law ({THESIS}, Proposition 3.1.2)",
            "largest difference between the enumerated distance and the formula, D = 2 … 12",
            Below(1e-12),
            exact=True,
            paper="1^(D−1)0 has twice the probability of every other string",
        ),
        Claim(
            "hidden-parity",
            "Finding the hidden prefix takes exponentially many queries: each bit doubles their number.",
            f"{QUERIES}, lower-bound theorem ({THESIS}, Theorem 3.1.1)",
            "slope of log₂(mean queries of the best search) against D",
            Equals(1.0, 0.05),
            paper="2^(D−1)",
        ),
        Claim(
            "hidden-parity-mean",
            "The best search without repetition needs (2^(D−1) + 1)/2 queries on average for a uniform secret.",
            "closed form, a uniform rank",
            "mean over D of (mean queries)/((2^(D−1) + 1)/2)",
            Equals(1.0, 0.05),
        ),
        Claim(
            "hidden-parity-guessing",
            "Guessing prefixes with repetition needs 2^(D−1) queries on average.",
            f"{QUERIES}, lower-bound theorem ({THESIS}, Theorem 3.1.1)",
            "mean over D of (mean queries)/2^(D−1)",
            Equals(1.0, 0.05),
            paper="2^(D−1)",
        ),
        Claim(
            "hidden-parity-rejection",
            "Rejection sampling, which pays for every token, needs D·2^(D−1) queries for the hidden string.",
            "closed form, a geometric number of tries of D queries",
            f"mean over D ≤ {BLIND} of (mean number of queries)/(D·2^(D−1))",
            Equals(1.0, 0.05),
        ),
        Claim(
            "hidden-parity-printed",
            "For a uniform secret the expected number of queries is at least 2^(D−1).",
            f"{THESIS}, proof of Theorem 3.1.1, as printed",
            "mean over D of (mean queries of the best search)/2^(D−1)",
            Above(1.0),
            paper="at least 2^(D−1); true in the worst case only",
            held=False,
        ),
        Claim(
            "support",
            "A verifier that knows only the target set lets tokenwise rejection walk into dead ends of the hidden "
            "parity task; one that also knows the oracle's support needs 2(D−1) + 1 queries.",
            "closed form; the definition of a process verifier speaks about the target set only",
            "mean over D of (mean queries with the support-aware verifier)/(2D − 1)",
            Equals(1.0, 0.05),
        ),
        Claim(
            "knapsack",
            "With the table over remainders as verifier every solvable knapsack costs two queries a bit at most.",
            f"{QUERIES}, theorem on NP-hardness ({THESIS}, Theorem 3.1.2)",
            "queries per bit of tokenwise rejection (9 if an instance was not solved)",
            Below(2.0),
        ),
        Claim(
            "knapsack-blind",
            "With the same number of queries and no verifier of prefixes, hardly any is solved.",
            f"{QUERIES}, theorem on NP-hardness ({THESIS}, Theorem 3.1.2)",
            "share of runs solved by rejection with a budget of 2D queries",
            Below(0.1),
        ),
    ],
    tour=True,
)
def query_complexity(config: Settings, lab: Lab) -> Outcome:
    """One token from the model is one query; how many does it take to get a string of a given set?

    Four tasks with uniform bits as the model. *All zeros*: only 0^D is wanted. Rejection of whole strings pays D
    queries for each of 2^D tries on average, stopping at the first wrong bit 2^(D+1) − 2, tokenwise rejection two per
    bit; trying every token in order needs no query at all, only at most 2D verifier calls. *Some zero*: tokenwise
    rejection is fast but does not sample the model given the constraint: 1^(D−1)0 comes out twice as often as every
    other string. *Hidden parity*: the last bit makes the string even only after one secret prefix; the verifier of the
    target set knows nothing about it, so that every algorithm must search. *Knapsack*: Σ s_i X_i = c is NP-hard to hit
    with a uniform model, and easy with the pseudo-polynomial table of reachable remainders as verifier.

    Quick: D = 2 … 6, 5 seeds of 1500 runs, hidden parity D = 5 … 9 with 800 secrets a seed; full: D up to 8 and 10,
    4000 runs, 2000 secrets. Knapsack: 12 weights between 5 and 59.

    What to look for: on the logarithmic axis the algorithms without a verifier are straight lines, the others flat; the
    dotted lines of the second panel are the closed forms.
    Learnt on the way: the lower-bound theorem's 2^(D−1) is the worst case; for a uniform secret the best search needs
    half of it on average. And a verifier that ignores what the model can write never lets tokenwise rejection finish
    on this task: after a wrong prefix every last bit is refused.
    """
    jobs = [Job("zeros", length, config.runs, seed) for seed in range(config.seeds) for length in config.lengths]
    jobs += [
        Job("parity", length, config.secrets, seed) for seed in range(config.seeds) for length in config.secret_lengths
    ]
    jobs += [Job("knapsack", 12, config.instances, seed) for seed in range(config.seeds)]
    results = dict(zip(jobs, lab.map(measure, jobs, label="query complexity")))

    def of(kind: str, name: str) -> np.ndarray:
        """Seed first, then length."""
        lengths = config.lengths if kind == "zeros" else config.secret_lengths
        runs = config.runs if kind == "zeros" else config.secrets
        return np.array(
            [[results[Job(kind, length, runs, seed)][name] for length in lengths] for seed in range(config.seeds)]
        )

    lengths = np.array(config.lengths)
    distances = np.array([_distance(length) for length in range(2, 13)])
    formula = np.array([(2.0**d - 2) / (2.0**d * (2.0**d - 1)) for d in range(2, 13)])
    longer = np.array(config.secret_lengths)
    search = of("parity", "search")
    solved = np.minimum(of("zeros", "exhaustive solved").min(), 1.0)
    knapsack = [results[Job("knapsack", 12, config.instances, seed)] for seed in range(config.seeds)]
    measurements: dict[str, Any] = {
        name.replace(" ", "-"): (of("zeros", name) / form(lengths)).mean(1) for name, form in CLOSED_FORMS.items()
    }
    measurements |= {
        "exhaustive": float((of("zeros", "exhaustive") / (2 * lengths)).max()) if solved == 1 else 9.0,
        "not-restricted": float(np.abs(distances - formula).max()),
        "hidden-parity": [float(np.polyfit(longer, np.log2(row), 1)[0]) for row in search],
        "hidden-parity-mean": (search / ((2.0 ** (longer - 1) + 1) / 2)).mean(1),
        "hidden-parity-guessing": (of("parity", "guesses") / 2.0 ** (longer - 1)).mean(1),
        "hidden-parity-rejection": np.nanmean(of("parity", "rejection") / (longer * 2.0 ** (longer - 1)), axis=1),
        "hidden-parity-printed": (search / 2.0 ** (longer - 1)).mean(1),
        "support": (of("parity", "support-aware") / (2 * longer - 1)).mean(1),
        "knapsack": [each["calls per token"] if each["solved"] == 1 else 9.0 for each in knapsack],
        "knapsack-blind": [each["blind"] for each in knapsack],
    }
    rows = [
        {"D": int(length), **{name: float(of("zeros", name)[:, place].mean()) for name in ALGORITHMS}}
        for place, length in enumerate(lengths)
    ]
    parity_rows = [
        {
            "D": int(length),
            "best search": float(search[:, place].mean()),
            "(2^(D−1)+1)/2": float((2.0 ** (length - 1) + 1) / 2),
            "guessing": float(of("parity", "guesses")[:, place].mean()),
            "rejection": float(of("parity", "rejection")[:, place].mean()),
            "D·2^(D−1)": float(length * 2.0 ** (length - 1)),
            "tokenwise, support-aware verifier": float(of("parity", "support-aware")[:, place].mean()),
            "tokenwise, verifier of the set only: solved": float(of("parity", "blind success")[:, place].mean()),
        }
        for place, length in enumerate(longer)
    ]
    hidden = {name: of("parity", name) for name in ("search", "guesses", "rejection")}
    figure = _draw(lengths, {name: of("zeros", name) for name in ALGORITHMS}, longer, hidden, distances, knapsack)
    return Outcome(
        measurements, {"queries": figure}, {"all zeros: mean calls": rows, "hidden parity: mean queries": parity_rows}
    )


def _distance(length: int) -> float:
    """Total variation between tokenwise rejection and the restricted law on "some zero", by enumeration."""
    tree = Tree.uniform(2, length)
    accepted = torch.as_tensor(SomeZero(length=length).accepts(torch.from_numpy(tree.strings()))).numpy().astype(float)
    return total_variation(tokenwise_law(tree, tree.verdicts(accepted)), restricted_law(tree, accepted))


def _draw(
    lengths: np.ndarray,
    zeros: dict[str, np.ndarray],
    longer: np.ndarray,
    hidden: dict[str, np.ndarray],
    distances: np.ndarray,
    knapsack: list[dict[str, Any]],
) -> Any:
    figure, axes = figures.new(columns=4, width=3.5, height=3.3)
    labels = {
        "rejection": "rejection, D·2^D",
        "early abort": "early abort, 2^(D+1)−2",
        "tokenwise": "tokenwise, 2D",
        "exhaustive": "exhaustive (verifier calls)",
    }
    with figures.style():
        for name, values in zeros.items():
            figures.band(axes[0], lengths, values, label=labels[name], marker="o", markersize=3)
        axes[0].set(yscale="log", xlabel="length D", ylabel="mean number of calls", title="all zeros")
        axes[0].legend(fontsize=7.5)
        forms = {
            "search": ("best search, (2^(D−1)+1)/2", (2.0 ** (longer - 1) + 1) / 2),
            "guesses": ("guessing, 2^(D−1)", 2.0 ** (longer - 1)),
            "rejection": ("rejection, D·2^(D−1)", longer * 2.0 ** (longer - 1)),
        }
        for name, (label, form) in forms.items():
            known = ~np.isnan(hidden[name][0])
            figures.band(axes[1], longer[known], hidden[name][:, known], label=label, marker="o", markersize=3)
            axes[1].plot(longer[known], form[known], ":", color="#555555", linewidth=1.2, zorder=3)
        axes[1].set(yscale="log", xlabel="length D", ylabel="mean queries", title="hidden parity")
        axes[1].legend(fontsize=7.5)
        axes[2].plot(range(2, 13), distances, marker="o", markersize=3)
        axes[2].set(yscale="log", xlabel="length D", ylabel="total variation", title="some zero: distance to target")
        shares = [
            float(np.mean([each["solved"] for each in knapsack])),
            float(np.mean([each["blind"] for each in knapsack])),
        ]
        axes[3].bar(["tokenwise,\ntable verifier", "rejection,\nsame budget"], shares, color=figures.COLOURS[:2])
        for place, share in enumerate(shares):
            axes[3].text(place, share + 0.02, f"{share:.3f}", ha="center", fontsize=9)
        axes[3].set(ylabel="share of runs solved", ylim=(0, 1.12), title="knapsack, 12 weights")
    return figure
