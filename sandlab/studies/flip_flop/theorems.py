"""What a flip-flop needs and what a head can give: exact circuits, dilution, drift, short windows.

Four computed facts about remembering one bit with attention. Left: the circuit's read error falls from a half to
nothing as its scores are sharpened beyond c ≈ T. Second: the largest attention weight that bounded scores allow,
against length. Third: the lengths at which a head with positions i/C first prefers a wrong token, for the curvature
κ = W_Qp·W_Kp: any κ ≠ 0 fails, sooner the larger. Right: the error of the best predictor with a window of n tokens,
for the three languages.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.circuits.flip_flop.memory import flip_flop_transformer
from sandlab.lenses.flip_flop import exact_machines
from sandlab.lenses.flip_flop.attention_limits import dilution_excess, failure_gap
from sandlab.lenses.flip_flop.pictures import draw_dilution, draw_failure_lengths, draw_window_errors
from sandlab.lenses.flip_flop.tail_errors import ErrorRate, tail_error
from sandlab.models.base import build
from sandlab.random import rng
from sandlab.studies.claims import Exact, Mean
from sandlab.studies.flip_flop._shared import LSTM, SOURCE
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.automata.addition import adder_as_flip_flop
from sandlab.worlds.automata.algebra.semigroups import enumerate_semigroup
from sandlab.worlds.flip_flop.language import FlipFlop

SHARPNESS = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0, 3.0, 5.0)
FLOORS = {0.8: 0.62908, 0.98: 0.39807, 0.1: 0.66253}
READ_STRINGS = 1000
SEEDS = 8
SPARSE = FlipFlop.ignoring(0.98)
ANSWERS = (
    ("8493+2357", "10850", "10850"),
    ("84935834+23572898", "108008732", "108508732"),
    ("9991999919909993+6109199190990097", "16111199100810090", "16101199100890090"),
    ("4491+8759", "13250", "13250"),
    ("80087394+63457948", "143045342", "143545342"),
    ("5101611078665398+8969499832688802", "1.4071110911354202e+16", "14071110911354196"),
)
"""Query and the printed answers of GPT-3.5 and GPT-4 (Liu et al. 2023, tables on addition): six of twelve are wrong."""


@dataclass(frozen=True)
class Settings:
    """Strings of each language for the circuit at length 512 and at `random_length`; random heads; random sums."""

    length: int = 512
    strings: int = 12
    heads: int = 300
    sums: int = 1000
    random_length: int = 128
    random_strings: int = 1000


study = Study(
    "flip-flop/theorems",
    title="A two-layer circuit reads perfectly; bounded attention and linear positions fail at some length",
    source=SOURCE,
    at="Propositions 3, 4, 5",
    quick=Settings(),
    full=Settings(strings=400, heads=3000, sums=20000, random_length=256, random_strings=1_000_000),
)


@dataclass(frozen=True)
class CircuitJob:
    """The two-layer circuit on random strings of three languages; `sharpness` is c / T (None: the proven one)."""

    length: int
    strings: int
    sharpness: float | None = None
    device: str = "cpu"
    seed: int = 3


def circuit_errors(job: CircuitJob) -> ErrorRate:
    """Wrong reads of the circuit, and all reads."""
    sharpness = None if job.sharpness is None else job.sharpness * job.length
    model = flip_flop_transformer(job.length, sharpness=sharpness).to(job.device)
    world = FlipFlop.ignoring(0.8, 0.98, 0.1, length=job.length)
    reads, chunk = int(job.strings * world.expected_reads()), min(job.strings, 512 if job.device == "cpu" else 4096)
    return tail_error(model, world, targets=reads, rng=rng(job.seed, "strings", device=job.device), chunk=chunk)


@dataclass(frozen=True)
class Results:
    """What was counted and computed.

    by_sharpness   c / T → read error of the circuit at length 512; soft: that at c = T for several seeds of strings
    floors         p_i → least loss on sampled strings, one per seed
    window_gap     largest difference between the formula for the best predictor with a window and its enumeration
    reads          number of reads in 1000 strings of FFL(0.98), one per seed
    """

    proven: ErrorRate
    random: ErrorRate
    by_sharpness: dict[float, float]
    soft: list[float]
    wrong_on_short_strings: int
    wrong_memories: int
    wrong_parses: int
    monoid: int
    smaller_monoids: int
    strings: dict[int, int]
    floors: dict[float, list[float]]
    lstm_parameters: int
    sharpness_gap: float
    dilution_excess: float
    failure_gap: int
    window_gap: float
    reads: list[int]
    wrong_sums: int


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    sharpened = [CircuitJob(settings.length, 3 * settings.strings, each, lab.device) for each in (None, *SHARPNESS)]
    random = CircuitJob(settings.random_length, settings.random_strings, device=lab.device)
    soft = [replace(sharpened[1 + SHARPNESS.index(1.0)], seed=10 + seed) for seed in range(SEEDS)]
    found = lab.map(circuit_errors, [random, *sharpened, *soft], label="circuits")
    return Results(
        random=found[0],
        proven=found[1],
        by_sharpness=dict(zip(SHARPNESS, (each.rate for each in found[2:]))),
        soft=[each.rate for each in found[-SEEDS:]],
        wrong_on_short_strings=exact_machines.wrong_on_short_strings()[0],
        wrong_memories=exact_machines.wrong_memories(),
        wrong_parses=exact_machines.wrong_parses(3 * settings.strings, settings.length),
        monoid=len(enumerate_semigroup(np.array([(0, 0), (1, 1), (0, 1)]))),
        smaller_monoids=exact_machines.small_monoids(),
        strings={length: len(FlipFlop(length=length).enumerate()[0]) for length in range(4, 13, 2)},
        floors={share: [sampled_floor(share, seed) for seed in range(SEEDS)] for share in FLOORS},
        lstm_parameters=build(LSTM).parameter_count(),
        sharpness_gap=exact_machines.sharpness_gap(),
        dilution_excess=dilution_excess(settings.heads),
        failure_gap=failure_gap(settings.heads // 10),
        window_gap=exact_machines.window_gap(),
        reads=[int(SPARSE.sample(READ_STRINGS, rng=rng(seed, "reads")).mask.sum()) for seed in range(SEEDS)],
        wrong_sums=exact_machines.wrong_sums(settings.sums),
    )


def sampled_floor(share: float, seed: int) -> float:
    """Loss of the true distribution on 200 strings of FFL(share), nats per token."""
    world = FlipFlop.ignoring(share, mode="generative")
    return world.optimal_loss(world.sample(200, rng=rng(seed, "floor", str(share))))


@study.claim(Exact(equals=0.0, within=0.0), at="Prop. 3", paper="0")
def exact_circuit(results: Results) -> float:
    """A two-layer, one-head transformer of width 8 answers every read at length 512.

    Read error of the circuit over three languages.
    """
    return results.proven.rate


@study.claim(Exact(equals=0.0, within=0.0), at="Prop. 3", paper="0")
def every_short_string(results: Results) -> int:
    """It answers every read of every string of up to 12 tokens.

    Wrong reads over all strings of 4 to 12 tokens.
    """
    return results.wrong_on_short_strings


@study.claim(Exact(equals=0.0, within=0.0), at="Prop. 3", paper="0")
def random_strings(results: Results) -> int:
    """It answers every read of random long strings of all three languages (full: 10⁶ strings).

    Wrong reads.
    """
    return results.random.errors


@study.claim(Mean(between=(0.4, 0.6)), at="Prop. 3 asks for c = O(T log T)")
def too_soft(results: Results) -> list[float]:
    """With scores of c = T the circuit guesses.

    Read error at sharpness c = T, length 512, eight samples of strings.
    """
    return results.soft


@study.claim(Exact(equals=0.0, within=0.0), at="Prop. 3", paper="0")
def sharp_enough(results: Results) -> float:
    """With c = 2T it is right already.

    Read error at sharpness c = 2T, length 512.
    """
    return results.by_sharpness[2.0]


@study.claim(Mean(equals=0.0, within=0.003), source="closed form [(I−2)H(p) + (1+(I−2)(1−p_r)) ln 2]/(T−1)", paper="0")
def loss_floor(results: Results) -> np.ndarray:
    """The least generative loss is 0.62908, 0.39807 and 0.66253 nats per token.

    Loss of the true distribution on sampled strings minus these values, mean over p_i = 0.8, 0.98, 0.1, length 512.
    """
    return np.mean([np.array(results.floors[share]) - value for share, value in FLOORS.items()], axis=0)


@study.claim(Exact(equals=133_381.0, within=0.0), at="(R2)", paper="133K")
def lstm_size(results: Results) -> int:
    """The one-layer LSTM of width 128 has 133,381 parameters.

    Parameters of the LSTM that `flip-flop/long-tail` trains.
    """
    return results.lstm_parameters


@study.claim(Exact(below=1e-6), at="section on sharpening", paper="0")
def sharpness_ranges(results: Results) -> float:
    """Entropy, −L2 and −max of attention rows run from one-hot to uniform rows.

    Largest distance of these rows from the ends, and of random rows outside of the range.
    """
    return results.sharpness_gap


@study.claim(Exact(equals=0.0, within=0.0), at="memory unit", paper="0")
def memory_unit(results: Results) -> int:
    """One layer with one head labels each position with the latest write.

    Wrong labels at length 256, three rates of idling, two and five symbols.
    """
    return results.wrong_memories


@study.claim(Exact(equals=0.0, within=0.0), at="Figure 1(b)", paper="0")
def parser(results: Results) -> int:
    """A four-state automaton, run as a recurrent network, knows the answer to every read.

    Wrong reads at length 512, three languages.
    """
    return results.wrong_parses


@study.claim(Exact(equals=3.0, within=0.0), at="§2", paper="3")
def smallest_monoid(results: Results) -> int:
    """The flip-flop's monoid has three elements, and every monoid of two elements is commutative.

    Elements of the monoid that the three operations generate, plus non-commutative monoids of two elements.
    """
    return results.monoid + results.smaller_monoids


@study.claim(Exact(equals=0.0, within=0.0), source="counting", paper="0")
def support(results: Results) -> int:
    """There are 2·5^(T/2−2) strings of T tokens.

    Largest difference between counted and enumerated strings, T = 4 … 12.
    """
    return max(abs(count - 2 * 5 ** (length // 2 - 2)) for length, count in results.strings.items())


@study.claim(Mean(equals=3567.0, within=100.0), at="§4: reads in 10³ strings of FFL(0.98)", paper="3567")
def reads(results: Results) -> list[int]:
    """A thousand strings hold as many reads as the published test set, within two standard deviations of its count.

    Reads in 1000 sampled strings.
    """
    return results.reads


@study.claim(Exact(below=1e-9), at="Prop. 4", paper="0")
def dilution(results: Results) -> float:
    """No key gets more than e^{2σ}/(e^{2σ} + T − 1) of bounded attention.

    Largest excess over the bound among random heads.
    """
    return results.dilution_excess


@study.claim(Exact(equals=0.0, within=0.0), at="Prop. 5", paper="0")
def failure_length(results: Results) -> int:
    """With linear positions the length at which hard attention first errs follows from the weights.

    Largest difference between predicted and measured failure length of random heads.
    """
    return results.failure_gap


@study.claim(Exact(equals=0.0, within=5e-5), at="§3", paper="0")
def window(results: Results) -> float:
    """A predictor that sees n tokens errs on half of the reads beyond its window.

    Largest difference between the formula and the best predictor, by enumeration of all strings of 10 tokens, over
    windows of 1 to 9 tokens and three languages.
    """
    return results.window_gap


@study.claim(Exact(equals=0.0, within=0.0), at="section on addition", paper="0")
def carry(results: Results) -> int:
    """The carry of addition is a flip-flop: sums through its states are right.

    Wrong sums among random pairs of 20-digit numbers.
    """
    return results.wrong_sums


@study.table
def addition(results: Results) -> Rows:
    rows = []
    for query, *answers in ANSWERS:
        total, operations = adder_as_flip_flop(*map(int, query.split("+")))
        models = dict(zip(("GPT-3.5", "GPT-4"), answers))
        rows.append({"query": query, **models, "answer": str(total), "operations": " ".join(operations)})
    return rows


@study.figure
def limits(results: Results) -> Figure:
    figure, axes = figures.new(columns=4, width=3.1, height=2.9)
    axes[0].plot(list(results.by_sharpness), list(results.by_sharpness.values()), "o-")
    axes[0].set(title="the circuit needs sharp scores", xlabel="sharpness c / T", ylabel="read error, T = 512")
    draw_dilution(axes[1])
    draw_failure_lengths(axes[2])
    draw_window_errors(axes[3])
    return figure
