"""A verifier of prefixes turns exponentially many queries into a few per token.

One token from the model is one query; how many does it take to get a string of a given set?

Four tasks with uniform bits as the model. *All zeros*: only 0^D is in the target set. Rejection of whole strings pays D
queries for each of 2^D tries on average, stopping at the first wrong bit 2^(D+1) − 2, tokenwise rejection two per bit;
trying every token in order needs no query at all, only at most 2D verifier calls. *Some zero*: tokenwise rejection is
fast but does not sample the model given the constraint: 1^(D−1)0 comes out twice as often as every other string.
*Hidden parity*: the last bit makes the string even only after one secret prefix; the verifier of the target set knows
nothing about it, so that every algorithm must search. *Knapsack*: Σ s_i X_i = c is NP-hard to hit with a uniform model,
and easy with the pseudo-polynomial table of reachable remainders as verifier.

Quick: D = 2 … 6, 5 seeds of 1500 runs, hidden parity D = 5 … 9 with 800 secrets per seed; full: D up to 8 and 10, 4000
runs, 2000 secrets. Knapsack: 12 weights between 5 and 59; all solutions of each are found by enumeration, and what the
algorithms cost is compared with what follows from them.

What to look for: on the logarithmic axis the algorithms without a verifier are straight lines, the others flat; the
dotted lines of the second panel are the closed forms.

**What was learnt.** The lower-bound theorem's 2^(D−1) is the worst case; for a uniform secret the best search needs
half of it on average. And a verifier that ignores what the model can write never lets tokenwise rejection finish on
this task: after a wrong prefix every last bit is rejected.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from sandlab import figures
from sandlab.decoding._session.session import Generations
from sandlab.decoding.decoders.base import Decoder
from sandlab.decoding.decoders.prefix_search import search_prefixes
from sandlab.decoding.decoders.rejection import EarlyAbort, ExhaustiveSearch, Rejection, TokenwiseRejection
from sandlab.decoding.exact.distributions import restricted_distribution, tokenwise_distribution, total_variation
from sandlab.decoding.exact.trees import Tree
from sandlab.decoding.generators.base import WorldGenerator
from sandlab.decoding.verifiers.base import LanguageVerifier
from sandlab.random import rng
from sandlab.studies.claims import Exact, Mean, NotMeasured
from sandlab.studies.study import Lab, Rows, Study
from sandlab.studies.verifier._exact import QUERIES, THESIS, table
from sandlab.worlds.verifier.constrained import AllZeros, BitTask, HiddenParity, SomeZero
from sandlab.worlds.verifier.knapsack import Knapsack, knapsack_table

ALGORITHMS: dict[str, Decoder] = {
    "rejection": Rejection(max_tries=10**9),
    "early abort": EarlyAbort(max_tries=10**9),
    "tokenwise": TokenwiseRejection(),
    "exhaustive": ExhaustiveSearch(),
}
LONGEST = 7  # hidden parity that is left to rejection: its cost doubles with every bit
WEIGHTS = 12  # of a knapsack
BLIND_RUNS = 2000  # of rejection for each knapsack: one in a hundred or two finds a solution
NOTHING = 99.0  # stands for a search that found nothing, or something else
PROPOSITION = f"proposition on process verifiers ({THESIS}, Proposition 3.1.1)"
LOWER_BOUND = f"lower-bound theorem ({THESIS}, Theorem 3.1.1)"
HARDNESS = f"theorem on NP-hardness ({THESIS}, Theorem 3.1.2)"


@dataclass(frozen=True)
class Settings:
    """Lengths D of the all-zeros task and of hidden parity, runs per length and seed, knapsack instances."""

    seeds: int = 5
    lengths: tuple[int, ...] = (2, 3, 4, 5, 6)
    runs: int = 1500
    secret_lengths: tuple[int, ...] = (5, 6, 7, 8, 9)
    secrets: int = 800
    instances: int = 20


study = Study(
    "verifier/query-complexity",
    title="A verifier of prefixes turns exponentially many queries into a few per token",
    source=QUERIES,
    at=f"§2–3 ({THESIS}, §3.1)",
    quick=Settings(),
    full=Settings(
        lengths=(2, 3, 4, 5, 6, 7, 8), runs=4000, secret_lengths=(5, 6, 7, 8, 9, 10), secrets=2000, instances=60
    ),
    tour=True,
)


@dataclass(frozen=True)
class Task:
    """One seed of a task: the length D (or number of weights), and how many runs, secrets or instances."""

    length: int
    runs: int
    seed: int


def generate(decoder: Decoder, world: BitTask, runs: int, seed: int, budget: int | None = None) -> Generations:
    return decoder.generate(
        WorldGenerator(world),
        torch.zeros(runs, 0, dtype=torch.long),
        verifier=LanguageVerifier(world),
        max_new=world.length,
        rng=rng(seed),
        budget=budget,
    )


def mean(values: Tensor) -> float:
    return float(values.double().mean())


def find_zeros(task: Task) -> dict[str, float]:
    """Mean queries of each algorithm for the string of all zeros; of exhaustive search, the most verifier calls."""
    world, found = AllZeros(length=task.length), {}
    for index, (name, decoder) in enumerate(ALGORITHMS.items()):
        done = generate(decoder, world, task.runs, 1000 * task.seed + index)
        found[name] = mean(done.counters["oracle_calls"])
    return found | {"exhaustive": float(done.counters["verifier_calls"].max()), "exhaustive solved": mean(done.done)}


def find_secrets(task: Task) -> dict[str, float]:
    """Mean queries until the hidden string is found.

    search, guesses   of prefixes in random order, without and with repetition
    rejection         of whole strings; not a number where it would take too long
    support-aware     tokenwise rejection whose verifier knows what the oracle can write
    blind             share solved by tokenwise rejection whose verifier knows the target set only
    """
    source = rng(task.seed, "secrets", task.length)
    secrets = torch.randint(2 ** (task.length - 1), (task.runs,), generator=source).tolist()
    worlds = [HiddenParity(length=task.length, secret=secret) for secret in secrets]
    aware = HiddenParity(length=task.length, secret=secrets[0], support_aware=True)
    found = {
        "search": mean(search_prefixes(worlds, rng=source)[0]),
        "guesses": mean(search_prefixes(worlds, rng=source, repeat=True)[0]),
        "support-aware": mean(generate(TokenwiseRejection(), aware, task.runs, task.seed).counters["oracle_calls"]),
        "blind": mean(generate(TokenwiseRejection(max_draws=20), worlds[0], task.runs, task.seed).done),
        "rejection": np.nan,
    }
    if task.length <= LONGEST:
        done = generate(ALGORITHMS["rejection"], worlds[0], 2 * task.runs, task.seed)
        found["rejection"] = mean(done.counters["oracle_calls"])
    return found


def all_solutions(weights: tuple[int, ...], capacity: int) -> np.ndarray:
    """All solutions of a knapsack in lexicographic order, among all 2^D strings, which are read as binary numbers."""
    strings = np.arange(2 ** len(weights))
    bits = (strings[:, None] >> np.arange(len(weights))[::-1]) & 1
    return strings[bits @ np.array(weights) == capacity]


def expected_queries(solutions: np.ndarray, length: int) -> float:
    """Mean queries of tokenwise rejection with fair bits and an exact verifier: 1 for a free bit, 2 for a forced one.

    A bit is free where both values lead to solutions; a solution with f free bits comes out with probability 2^−f.
    """
    free = sum(np.isin((solutions >> place) ^ 1, solutions >> place).astype(int) for place in range(length))
    return float((0.5**free * (2 * length - free)).sum())  # type: ignore[union-attr]


def surplus_calls(world: Knapsack, solutions: np.ndarray) -> float:
    """How far the verifier calls of exhaustive search are from one per 0 and two per 1 of the first solution.

    `NOTHING` where it found another string, or none.
    """
    done = generate(ExhaustiveSearch(), world, 1, 0)
    first = f"{solutions[0]:0{world.length}b}"
    if not bool(done.done[0]) or "".join(map(str, done.tokens[0].tolist())) != first:
        return NOTHING
    return abs(float(done.counters["verifier_calls"][0]) - world.length - first.count("1"))


def pack_knapsacks(task: Task) -> dict[str, float]:
    """Random solvable instances, and what enumeration of all strings says about them.

    queries per bit, solved   of tokenwise rejection with the table as verifier; expected queries per bit
    blind, guesses            share solved by rejection with 2D queries, and by two uniform strings
    surplus                   the largest difference of `surplus_calls`
    """
    chance = np.random.default_rng(task.seed)
    found = []
    for instance in range(task.runs):
        weights = tuple(int(weight) for weight in chance.integers(5, 60, size=task.length))
        reachable = np.flatnonzero(knapsack_table(weights, sum(weights))[0])
        world = Knapsack(weights=weights, capacity=int(chance.choice(reachable[1:])))
        solutions = all_solutions(weights, world.capacity)
        done = generate(TokenwiseRejection(), world, 20, 7 * instance + task.seed)
        blind = generate(Rejection(), world, BLIND_RUNS, 7 * instance + task.seed, 2 * task.length)
        found.append({
            "queries per bit": mean(done.counters["oracle_calls"]) / task.length,
            "expected queries per bit": expected_queries(solutions, task.length) / task.length,
            "solved": mean(done.done),
            "blind": mean(blind.done),
            "guesses": 1 - (1 - len(solutions) / 2**task.length) ** 2,
            "surplus": surplus_calls(world, solutions),
        })  # fmt: skip
    means = {name: float(np.mean([each[name] for each in found])) for name in found[0]}
    return means | {"surplus": max(each["surplus"] for each in found)}


def distance_to_restricted(length: int) -> float:
    """Total variation between tokenwise rejection and the restricted distribution on "some zero", by enumeration."""
    tree = Tree.uniform(2, length)
    accepted = torch.as_tensor(SomeZero(length=length).accepts(torch.from_numpy(tree.strings()))).numpy().astype(float)
    return total_variation(
        tokenwise_distribution(tree, tree.verdicts(accepted)), restricted_distribution(tree, accepted)
    )


@dataclass(frozen=True)
class Results:
    """Name → array. zeros and parity: (seed, length); knapsacks: (seed); distances: "some zero" of D = 2 … 12."""

    lengths: np.ndarray
    zeros: dict[str, np.ndarray]
    secret_lengths: np.ndarray
    parity: dict[str, np.ndarray]
    knapsacks: dict[str, np.ndarray]
    distances: np.ndarray

    @property
    def prefixes(self) -> np.ndarray:
        """2^(D−1) for each length of hidden parity."""
        return 2.0 ** (self.secret_lengths - 1)


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    count, seeds = settings.seeds, range(settings.seeds)
    zeros = [Task(length, settings.runs, seed) for seed in seeds for length in settings.lengths]
    parity = [Task(length, settings.secrets, seed) for seed in seeds for length in settings.secret_lengths]
    knapsacks = [Task(WEIGHTS, settings.instances, seed) for seed in seeds]
    return Results(
        np.array(settings.lengths),
        table(lab.map(find_zeros, zeros, label="all zeros"), count, -1),
        np.array(settings.secret_lengths),
        table(lab.map(find_secrets, parity, label="hidden parity"), count, -1),
        table(lab.map(pack_knapsacks, knapsacks, label="knapsacks")),
        np.array(lab.map(distance_to_restricted, range(2, 13), label="some zero")),
    )


@study.claim(Mean(equals=1.0, within=0.05), at=PROPOSITION, paper="D·2^D")
def rejection(results: Results) -> np.ndarray:
    """Rejection sampling needs D·2^D queries for the string of all zeros.

    Mean over D of (mean number of queries)/(D·2^D).
    """
    return (results.zeros["rejection"] / (results.lengths * 2.0**results.lengths)).mean(1)


@study.claim(Mean(equals=1.0, within=0.05), source="closed form, the sum of a geometric series")
def early_abort(results: Results) -> np.ndarray:
    """Rejection that stops at the first wrong prefix needs 2^(D+1) − 2 queries: still exponential.

    Mean over D of (mean number of queries)/(2^(D+1) − 2).
    """
    return (results.zeros["early abort"] / (2.0 ** (results.lengths + 1) - 2)).mean(1)


@study.claim(Mean(equals=1.0, within=0.03), at=PROPOSITION, paper="2D")
def tokenwise(results: Results) -> np.ndarray:
    """Tokenwise rejection with the exact verifier needs 2D queries.

    Mean over D of (mean number of queries)/(2D).
    """
    return (results.zeros["tokenwise"] / (2 * results.lengths)).mean(1)


@study.claim(Exact(equals=0.0, within=0.0), at=f"§3 ({THESIS}, §3.1.3)", paper="at most 2D calls")
def exhaustive(results: Results) -> float:
    """With a perfect verifier, exhaustive search finds the first solution of every task, with one verifier call for
    each 0 and two for each 1 in it: at most |Σ|·D.

    Largest difference between its calls and these, over all zeros and random knapsacks, whose first solution is found
    by enumeration (99 where it finds nothing or another string).
    """
    zeros = np.where(results.zeros["exhaustive solved"] == 1, results.zeros["exhaustive"], NOTHING + results.lengths)
    return float(max(np.abs(zeros - results.lengths).max(), results.knapsacks["surplus"].max()))


@study.claim(
    Exact(below=1e-12),
    at=f"proposition on the output law ({THESIS}, Proposition 3.1.2)",
    paper="1^(D−1)0 has twice the probability of every other string",
)
def not_restricted(results: Results) -> float:
    """Tokenwise rejection does not sample the restricted distribution: on strings with some zero it errs by
    (2^D − 2)/(2^D(2^D − 1)) in total variation.

    Largest difference between the enumerated distance and the formula, D = 2 … 12.
    """
    formula = [(2.0**d - 2) / (2.0**d * (2.0**d - 1)) for d in range(2, 2 + len(results.distances))]
    return float(np.abs(results.distances - formula).max())


@study.claim(Mean(equals=1.0, within=0.05), at=LOWER_BOUND, paper="2^(D−1)")
def hidden_parity(results: Results) -> list[float]:
    """Finding the hidden prefix takes exponentially many queries: each bit doubles their number.

    Slope of log₂(mean queries of the best search) against D.
    """
    return [float(np.polyfit(results.secret_lengths, np.log2(row), 1)[0]) for row in results.parity["search"]]


@study.claim(Mean(equals=1.0, within=0.05), source="closed form, a uniform rank")
def hidden_parity_mean(results: Results) -> np.ndarray:
    """The best search without repetition needs (2^(D−1) + 1)/2 queries on average for a uniform secret.

    Mean over D of (mean queries)/((2^(D−1) + 1)/2).
    """
    return (results.parity["search"] / ((results.prefixes + 1) / 2)).mean(1)


@study.claim(Mean(equals=1.0, within=0.05), at=LOWER_BOUND, paper="2^(D−1)")
def hidden_parity_guessing(results: Results) -> np.ndarray:
    """Guessing prefixes with repetition needs 2^(D−1) queries on average.

    Mean over D of (mean queries)/2^(D−1).
    """
    return (results.parity["guesses"] / results.prefixes).mean(1)


@study.claim(Mean(equals=1.0, within=0.05), source="closed form, a geometric number of tries of D queries")
def hidden_parity_rejection(results: Results) -> np.ndarray:
    """Rejection sampling, which pays for every token, needs D·2^(D−1) queries for the hidden string.

    Mean over D ≤ 7 of (mean number of queries)/(D·2^(D−1)).
    """
    tried = results.secret_lengths <= LONGEST
    if not tried.any():
        raise NotMeasured(f"hidden parity needs lengths up to {LONGEST}")
    return (results.parity["rejection"] / (results.secret_lengths * results.prefixes))[:, tried].mean(1)


@study.claim(
    Mean(above=1.0),
    source=THESIS,
    at="proof of Theorem 3.1.1, as printed",
    paper="at least 2^(D−1); true in the worst case only",
    held=False,
)
def hidden_parity_printed(results: Results) -> np.ndarray:
    """For a uniform secret the expected number of queries is at least 2^(D−1).

    Mean over D of (mean queries of the best search)/2^(D−1).
    """
    return (results.parity["search"] / results.prefixes).mean(1)


@study.claim(
    Mean(equals=1.0, within=0.05),
    source="closed form; the definition of a process verifier speaks about the target set only",
    paper="1",
)
def support(results: Results) -> np.ndarray:
    """A verifier that knows only the target set lets tokenwise rejection walk into dead ends of the hidden parity task;
    one that also knows the oracle's support needs 2(D−1) + 1 queries.

    Mean over D of (mean queries with the support-aware verifier)/(2D − 1).
    """
    return (results.parity["support-aware"] / (2 * results.secret_lengths - 1)).mean(1)


@study.claim(Mean(equals=1.0, within=0.05), at=HARDNESS)
def knapsack(results: Results) -> np.ndarray:
    """With the table over remainders as verifier every solvable knapsack is solved, at two queries for a bit that is
    forced and one for a bit that is free.

    Queries of tokenwise rejection divided by their exact mean, by enumeration of all solutions (9 if an instance was
    not solved).
    """
    ratio = results.knapsacks["queries per bit"] / results.knapsacks["expected queries per bit"]
    return np.where(results.knapsacks["solved"] == 1, ratio, 9.0)


@study.claim(Mean(equals=1.0, within=0.15), at=HARDNESS)
def knapsack_blind(results: Results) -> np.ndarray:
    """With 2D queries and no verifier of prefixes, a knapsack is solved as often as by two guesses, 1 − (1 − N/2^D)²
    for N solutions: about once in a hundred runs.

    Share of runs solved by rejection with a budget of 2D queries, divided by this formula's mean over instances.
    """
    return results.knapsacks["blind"] / results.knapsacks["guesses"]


@study.table
def mean_calls(results: Results) -> dict[str, Rows]:
    zeros: Rows = [
        {"D": int(length)} | {name: float(results.zeros[name][:, column].mean()) for name in ALGORITHMS}
        for column, length in enumerate(results.lengths)
    ]
    means = {name: values.mean(0).tolist() for name, values in results.parity.items()}
    parity: Rows = [
        {
            "D": int(length),
            "best search": means["search"][column],
            "(2^(D−1)+1)/2": float((prefixes + 1) / 2),
            "guessing": means["guesses"][column],
            "rejection": means["rejection"][column],
            "D·2^(D−1)": float(length * prefixes),
            "tokenwise, support-aware verifier": means["support-aware"][column],
            "tokenwise, verifier of the set only: solved": means["blind"][column],
        }
        for column, (length, prefixes) in enumerate(zip(results.secret_lengths, results.prefixes))
    ]
    return {"all zeros: mean calls": zeros, "hidden parity: mean queries": parity}


@study.figure
def queries(results: Results) -> Figure:
    figure, axes = figures.new(columns=4, width=3.5, height=3.3)
    labels = ("rejection, D·2^D", "early abort, 2^(D+1)−2", "tokenwise, 2D", "exhaustive (verifier calls)")
    for label, name in zip(labels, ALGORITHMS):
        figures.band(axes[0], results.lengths, results.zeros[name], label=label, marker="o", markersize=3)
    axes[0].set(yscale="log", xlabel="length D", ylabel="mean number of calls", title="all zeros")
    curves = (
        ("search", "best search, (2^(D−1)+1)/2", (results.prefixes + 1) / 2),
        ("guesses", "guessing, 2^(D−1)", results.prefixes),
        ("rejection", "rejection, D·2^(D−1)", results.secret_lengths * results.prefixes),
    )
    for name, label, formula in curves:
        known = ~np.isnan(results.parity[name][0])
        lengths = results.secret_lengths[known]
        figures.band(axes[1], lengths, results.parity[name][:, known], label=label, marker="o", markersize=3)
        axes[1].plot(lengths, formula[known], ":", color="#555555", linewidth=1.2, zorder=3)
    axes[1].set(yscale="log", xlabel="length D", ylabel="mean queries", title="hidden parity")
    axes[2].plot(range(2, 2 + len(results.distances)), results.distances, marker="o", markersize=3)
    axes[2].set(yscale="log", xlabel="length D", ylabel="total variation", title="some zero: distance to target")
    shares = [float(results.knapsacks[name].mean()) for name in ("solved", "blind")]
    axes[3].bar(["tokenwise,\ntable verifier", "rejection,\nsame budget"], shares, color=figures.COLOURS[:2])
    for index, share in enumerate(shares):
        axes[3].text(index, share + 0.02, f"{share:.3f}", ha="center", fontsize=9)
    axes[3].set(ylabel="share of runs solved", ylim=(0, 1.12), title=f"knapsack, {WEIGHTS} weights")
    for axis in axes[:2]:
        axis.legend(fontsize=7.5)
    return figure
