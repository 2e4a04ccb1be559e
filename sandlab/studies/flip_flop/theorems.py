"""What a flip-flop needs and what a head can give: exact circuits, dilution, drift, short windows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from sandlab import figures
from sandlab.lenses.flip_flop.attention_limits import LinearPositionHead, dilution_bound, largest_attention
from sandlab.random import rng
from sandlab.studies.claims import Below, Between, Claim, Equals
from sandlab.studies.flip_flop.exact_machines import (
    SharpnessJob,
    StringsJob,
    circuit_errors,
    floors_off,
    lstm_size,
    random_strings,
    reads_off,
    sharpness_off,
    short_strings,
    small_monoids,
    wrong_memories,
    wrong_parses,
)
from sandlab.studies.flip_flop.runs import SOURCE
from sandlab.studies.study import Lab, Outcome, study
from sandlab.worlds.automata.addition import adder_as_flip_flop
from sandlab.worlds.automata.algebra.semigroups import enumerate_semigroup
from sandlab.worlds.flip_flop.language import FlipFlop

SHARPNESS = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0, 5.0)
TABLE = (
    ("8493+2357", "10850", "10850"),
    ("84935834+23572898", "108008732", "108508732"),
    ("9991999919909993+6109199190990097", "16111199100810090", "16101199100890090"),
    ("4491+8759", "13250", "13250"),
    ("80087394+63457948", "143045342", "143545342"),
    ("5101611078665398+8969499832688802", "1.4071110911354202e+16", "14071110911354196"),
)
"""Query and the printed answers of GPT-3.5 and GPT-4 (Liu et al. 2023, tables on addition)."""


@dataclass(frozen=True)
class Settings:
    seeds: int = 1
    length: int = 512
    strings: int = 12
    heads: int = 300
    sums: int = 1000
    random_length: int = 128
    random_strings: int = 1000


@study(
    "flip-flop/theorems",
    title="A two-layer circuit reads perfectly; bounded or linearly placed attention cannot do so for ever",
    source=f"{SOURCE}, Propositions 3, 4, 5",
    quick=Settings(),
    full=Settings(strings=400, heads=3000, sums=20000, random_length=256, random_strings=1_000_000),
    claims=[
        Claim(
            "exact-circuit",
            "A two-layer, one-head transformer of width 8 answers every read at length 512.",
            f"{SOURCE}, Prop. 3",
            "read error of the circuit over three languages",
            Equals(0.0, 0.0),
            paper="0",
            exact=True,
        ),
        Claim(
            "every-short-string",
            "It answers every read of every string of up to 12 tokens.",
            f"{SOURCE}, Prop. 3",
            "wrong reads over all strings of 4 to 12 tokens",
            Equals(0.0, 0.0),
            exact=True,
        ),
        Claim(
            "random-strings",
            "It answers every read of random long strings of all three languages (full: 10⁶ strings).",
            f"{SOURCE}, Prop. 3",
            "wrong reads",
            Equals(0.0, 0.0),
            exact=True,
        ),
        Claim(
            "too-soft",
            "With scores of c = T the circuit guesses.",
            f"{SOURCE}, Prop. 3 asks for c = O(T log T)",
            "read error at sharpness c = T, length 512",
            Between(0.4, 0.6),
            exact=True,
        ),
        Claim(
            "sharp-enough",
            "With c = 2T it is right already.",
            f"{SOURCE}, Prop. 3",
            "read error at sharpness c = 2T, length 512",
            Equals(0.0, 0.0),
            exact=True,
        ),
        Claim(
            "loss-floor",
            "The generative loss cannot fall below 0.62908, 0.39807 and 0.66253 nats per token.",
            "closed form [(I−2)H(p) + (1+(I−2)(1−p_r)) ln 2]/(T−1)",
            "largest difference between formula and these values, p_i = 0.8, 0.98, 0.1, length 512",
            Below(5e-6),
            exact=True,
        ),
        Claim(
            "lstm-size",
            "The one-layer LSTM of width 128 has 133,381 parameters.",
            f"{SOURCE}, (R2)",
            "parameters, with the two biases per gate unit of common libraries",
            Equals(133_381.0, 0.0),
            exact=True,
            paper="133K",
        ),
        Claim(
            "sharpness-ranges",
            "Entropy, −L2 and −max of attention rows run from one-hot to uniform rows.",
            f"{SOURCE}, section on sharpening",
            "largest distance of these rows from the ends, and of random rows outside of the range",
            Below(1e-6),
            exact=True,
        ),
        Claim(
            "memory-unit",
            "One layer with one head labels each position with the latest write.",
            f"{SOURCE}, memory unit",
            "wrong labels at length 256, three rates of idling, two and five symbols",
            Equals(0.0, 0.0),
            exact=True,
        ),
        Claim(
            "parser",
            "A four-state automaton, run as a recurrent network, knows the answer to every read.",
            f"{SOURCE}, Figure 1(b)",
            "wrong reads at length 512, three languages",
            Equals(0.0, 0.0),
            exact=True,
        ),
        Claim(
            "smallest-monoid",
            "The flip-flop's monoid has three elements, and every monoid of two elements is commutative.",
            f"{SOURCE}, §2",
            "elements of the monoid that the three operations generate, plus non-commutative monoids of two elements",
            Equals(3.0, 0.0),
            exact=True,
            paper="3",
        ),
        Claim(
            "support",
            "There are 2·5^(T/2−2) strings of T tokens.",
            "counting",
            "largest difference between counted and enumerated strings, T = 4 … 12",
            Equals(0.0, 0.0),
            exact=True,
        ),
        Claim(
            "reads",
            "The published test sets hold as many reads as 1 + (T/2 − 2)p_r per string gives.",
            f"{SOURCE}, §4: 3567 reads in 10³ strings, 353875 in 10⁵, FFL(0.98)",
            "largest difference from the expected number, in standard deviations",
            Below(2.0),
            exact=True,
            paper="3567; 353875",
        ),
        Claim(
            "dilution",
            "No key gets more than e^{2σ}/(e^{2σ} + T − 1) of bounded attention.",
            f"{SOURCE}, Prop. 4",
            "largest excess over the bound among random heads",
            Below(1e-9),
            exact=True,
        ),
        Claim(
            "failure-length",
            "With linear positions the length at which hard attention first errs follows from the weights.",
            f"{SOURCE}, Prop. 5",
            "largest difference between predicted and measured failure length of random heads",
            Equals(0.0, 0.0),
            exact=True,
        ),
        Claim(
            "window",
            "A predictor that sees n tokens errs on half of the reads beyond its window.",
            f"{SOURCE}, §3",
            "difference between the formula at p_i = 0.98, n = 21 and 0.3970",
            Equals(0.0, 5e-5),
            exact=True,
        ),
        Claim(
            "carry",
            "The carry of addition is a flip-flop: sums through its states are right.",
            f"{SOURCE}, section on addition",
            "wrong sums among random pairs of 20-digit numbers",
            Equals(0.0, 0.0),
            exact=True,
        ),
        Claim(
            "published-sums",
            "Large language models add short numbers and fail on long ones.",
            f"{SOURCE}, tables on addition",
            "wrong answers among the twelve printed ones",
            Equals(6.0, 0.0),
            exact=True,
            paper="6 of 12",
        ),
    ],
)
def theorems(config: Settings, lab: Lab) -> Outcome:
    """Four computed facts about remembering one bit with attention.

    Left: the circuit's read error falls from a half to nothing as its scores are sharpened beyond c ≈ T. Second: the
    largest attention weight that bounded scores allow, against length. Third: the lengths at which a head with
    positions i/C first prefers a wrong token, for the curvature κ = W_Qp·W_Kp: any κ ≠ 0 fails, sooner the larger.
    Right: the error of the best predictor with a window of n tokens, for the three languages.
    """
    job = SharpnessJob(config.length, config.strings, SHARPNESS, lab.device)
    (sharpness,) = lab.map(circuit_errors, [job], label="circuit")
    many = StringsJob(config.random_length, config.random_strings, lab.device, 512 if lab.device == "cpu" else 4096)
    (random,) = lab.map(random_strings, [many], label="random strings")
    wrong_sums, names = _sums(config.sums)
    printed = [_wrong_answers(query, answers) for query, *answers in TABLE]
    measurements = {
        "exact-circuit": sharpness["proven"],
        "every-short-string": short_strings()[0],
        "random-strings": random["wrong"],
        "too-soft": float(sharpness["errors"][SHARPNESS.index(1.0)]),
        "sharp-enough": float(sharpness["errors"][SHARPNESS.index(2.0)]),
        "loss-floor": floors_off(),
        "lstm-size": lstm_size(),
        "sharpness-ranges": sharpness_off(),
        "memory-unit": wrong_memories(),
        "parser": wrong_parses(config.strings, config.length),
        "smallest-monoid": len(enumerate_semigroup(np.array([(0, 0), (1, 1), (0, 1)]))) + small_monoids(),
        "support": max(abs(len(FlipFlop(length=t).enumerate()[0]) - 2 * 5 ** (t // 2 - 2)) for t in range(4, 13, 2)),
        "reads": reads_off(),
        "dilution": _largest_excess(config.heads),
        "failure-length": _failure_gap(config.heads // 10),
        "window": FlipFlop.ignoring(0.98).ngram_error(21) - 0.3970,
        "carry": wrong_sums,
        "published-sums": sum(printed),
    }
    table = [
        {"query": query, "GPT-3.5": first, "GPT-4": second, "answer": str(_sum(query)), "operations": names[query]}
        for query, first, second in TABLE
    ]
    return Outcome(measurements, {"limits": _draw(sharpness["errors"])}, {"addition": table})


def _largest_excess(heads: int) -> float:
    generator, worst = rng(1), -np.inf
    for place in range(heads):
        length, norm = 8 + place % 200, 0.5 + (place % 40) / 8
        vectors = torch.randn(length, 6, generator=generator, dtype=torch.float64)
        matrix = torch.randn(6, 6, generator=generator, dtype=torch.float64)
        matrix = matrix * norm / torch.linalg.matrix_norm(matrix, 2)
        weight = largest_attention(vectors / vectors.norm(dim=1, keepdim=True), matrix)
        worst = max(worst, weight - dilution_bound(norm, length))
    return worst


def _failure_gap(heads: int) -> float:
    worst = 0
    for seed in range(heads):
        generator = rng(seed, "head")
        parts = [
            torch.randn(*shape, generator=generator, dtype=torch.float64) for shape in ((3, 4), (3, 4), (4,), (4,))
        ]
        head = LinearPositionHead(parts[0], parts[1], parts[2], parts[3], scale=16.0)
        for predicted, seen in zip(head.failure_lengths(100), head.measured_failure_lengths(100)):
            worst = max(worst, abs((predicted or 101) - (seen or 101)))
    return float(worst)


def _sums(count: int) -> tuple[float, dict[str, str]]:
    digits = torch.randint(10, (count, 2, 20), generator=rng(2)).tolist()
    wrong = 0
    for first, second in digits:
        a, b = int("".join(map(str, first))), int("".join(map(str, second)))
        wrong += adder_as_flip_flop(a, b)[0] != a + b
    names = {query: " ".join(adder_as_flip_flop(*map(int, query.split("+")))[1]) for query, *_ in TABLE}
    return float(wrong), names


def _sum(query: str) -> int:
    return sum(int(part) for part in query.split("+"))


def _wrong_answers(query: str, answers: list[str]) -> int:
    return sum(answer != str(_sum(query)) for answer in answers)


def memory_head(curvature: float, scale: float = 64.0) -> LinearPositionHead:
    """score(T→j) = −2·1[no-op] + j/C + κTj/C²: the memory unit with a tunable curvature κ."""
    query = torch.tensor([[1.0, 1.0, 0.0]] * 3, dtype=torch.float64)
    key = torch.tensor([[-2.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]], dtype=torch.float64)
    turn = torch.tensor([0.0, 0.0, curvature], dtype=torch.float64)
    return LinearPositionHead(query, key, turn, torch.tensor([0.0, 1.0, 1.0], dtype=torch.float64), scale)


def _draw(errors: np.ndarray) -> Any:
    figure, axes = figures.new(columns=4, width=3.1, height=2.9)
    axes[0].plot(SHARPNESS, errors, "o-")
    axes[0].set(title="the circuit needs sharp scores", xlabel="sharpness c / T", ylabel="read error, T = 512")
    lengths = np.unique(np.logspace(0.5, 4, 60).astype(int))
    for norm in (1, 2, 4, 6):
        axes[1].semilogx(lengths, [dilution_bound(norm, int(t)) for t in lengths], label=f"σ = {norm}")
    axes[1].set(title="bounded attention dilutes", xlabel="length", ylabel="largest possible weight")
    axes[1].set_ylim(-0.03, 1.35)
    axes[1].legend(ncols=2, loc="upper right")
    curvatures = np.linspace(-2, 2, 81)
    ends = np.array([memory_head(k).failure_lengths(4000) for k in curvatures], dtype=float)
    axes[2].semilogy(curvatures, ends[:, 0], label="forgets the only write")
    axes[2].semilogy(curvatures, ends[:, 1], label="prefers the older write")
    axes[2].set(title="linear positions drift", xlabel="curvature κ", ylabel="first failing length")
    axes[2].legend(loc="upper right")
    windows = np.arange(1, 200)
    for share in (0.98, 0.8, 0.1):
        world = FlipFlop.ignoring(share)
        axes[3].plot(windows, [world.ngram_error(int(n)) for n in windows], label=f"p_i = {share:g}")
    axes[3].set(title="a short window is not enough", xlabel="window (tokens)", ylabel="read error")
    axes[3].legend()
    return figure
