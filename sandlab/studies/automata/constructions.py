"""Every construction of the chapter, exact and measured; what is printed wrongly, shown to fail.

Weights that are computed, not trained: each construction is built for many automata and checked on words.

**What is built.** *Scan* (Theorem 10 of the thesis version): every position carries a map of the n states; layer l
composes it with the map 2^{l−1} positions before; ⌈log₂ T⌉ layers. *Atoms*: a counter modulo n in one layer (uniform
attention and a table of sums), a memory in one layer (attention to the last write). *Groups*: products of counters in
parallel (depth 1), semidirect products (L_N + L_H + 2), and any solvable group by its composition series, each step
inside a wreath product (+3 layers). *Permutation-reset*: the group since the last reset. *Krohn–Rhodes*: the holonomy
decomposition, level after level, each a permutation-reset machine; the depth does not depend on T. *Gridworld*: two
layers. *Sequential* and *recurrent*: no shortcut, T layers or T steps.

**What is checked.** Random automata of 2 to 5 states with 2 or 3 letters, from every start: all words up to a length,
and long random words. Named automata likewise; where there are too many words of eight letters, fewer letters must do
(the table says how many). Named automata with every construction that applies, from a few starts. Zero wrong states is
the claim, in float64 with softmax attention. Sizes are compared with the stated bounds. Full: 300 random automata and
all named ones, words of up to 8 letters and 1000 words of 256, plus a quarter as many words that avoid sinks, since
uniform letters soon lead there: three minutes of an H200 (`--on processes:4`), hours of one core. In the recorded run
46 pairs of named automaton and construction, 530 starts in all, and the 300 random automata are without a wrong state.
`--set most=2100000000` takes all words of eight letters for every named one.

**As printed.** Four statements of the source fail when taken literally, and are measured to fail: the wiring of a
cascade must look back by one position; "no reset yet" must find an anchor that counts as a reset to q_0; the keys of
the scan must be turned the other way; and the separation of points on a circle is 1 − 8/T², not 1 − 2π²/T².

**What to look for.** In "scan", every box is a map of the four positions (where 0, 1, 2, 3 lead), and the coloured
lines are the tree that composes them for the last letter; in "levels", the positions still possible after each layer,
and the earlier position (the last reset) from which each was read; in "cascade", which channels each layer reads and
writes, next to the tower of levels; in "depth", straight lines for what reads letter by letter, a logarithm for the
scan, horizontal lines for the rest.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.circuits.automata.compiler import METHODS
from sandlab.circuits.sizes import Complexity
from sandlab.studies.automata._constructions import jobs
from sandlab.studies.automata._constructions.figures import draw_constructions
from sandlab.studies.automata._shared import SOURCE
from sandlab.studies.claims import Exact, NotMeasured
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.automata.catalogue import machine_names, named_machine

FEW = ("C2", "C3", "C2^3", "flip-flop", "memory4", "Grid4", "Grid9", "D6", "D8", "Q8", "A4", "S4", "A5", "S5", "abab")
MORE = (*FEW, *(f"C{n}" for n in range(4, 9)), "C2^2", "Grid3x4", "Dyck2_1", "Dyck4_2")
GROWING = (
    ("D6", "sequential"), ("S5", "scan"), ("S4", "solvable-group"), ("abab", "krohn-rhodes"), ("Grid9", "krohn-rhodes"),
    ("Grid9", "gridworld"), ("C4", "modular-counter"), ("flip-flop", "memory"),
)  # fmt: skip
"""Automata and constructions whose sizes are measured at several lengths."""
CONSTANT = ("solvable-group", "krohn-rhodes", "gridworld", "modular-counter", "memory")
NONE_WRONG = Exact(equals=0, within=0)


@dataclass(frozen=True)
class Settings:
    """`machines` random automata on all words of `exhaustive` letters and on `words` words of `length`.

    named       automata on which every construction is tried, from a few starts, on `named_words` of `named_length`
    everywhere  automata whose scan and Krohn–Rhodes circuits are tried from every start, as the random ones are; all
                words of fewer letters where words times states are more than `most`
    """

    machines: int = 12
    length: int = 64
    words: int = 10
    exhaustive: int = 6
    named: tuple[str, ...] = FEW
    named_words: int = 8
    named_length: int = 64
    everywhere: tuple[str, ...] = ("C3", "flip-flop", "Grid4", "D6", "S4", "abab")
    most: int = 20_000
    lengths: tuple[int, ...] = (4, 8, 16, 32, 64, 128, 256)


study = Study(
    "automata/constructions",
    title="Every shortcut is exact, and as shallow as stated",
    source=SOURCE,
    at="Figures 4 and 10 to 14, Theorems 1 to 3, appendix",
    quick=Settings(),
    full=Settings(
        machines=300,
        length=256,
        words=1000,
        exhaustive=8,
        named=MORE,
        named_words=16,
        named_length=100,
        everywhere=tuple(machine_names()),
        most=4_000_000,
    ),
)


@dataclass(frozen=True)
class Results:
    """Checks of random and named automata; (automaton, construction) → its checks, and its sizes at each length.

    grid_levels   number of positions of a gridworld → levels of its decomposition
    """

    settings: Settings
    random: list[jobs.RandomCheck]
    starts: dict[tuple[str, str], list[jobs.StartsCheck]]
    named: dict[tuple[str, str], jobs.NamedCheck]
    growth: dict[tuple[str, str], list[Complexity]]
    grid_levels: dict[int, int]

    @property
    def shares(self) -> list[jobs.Shares]:
        """Sizes of all Krohn–Rhodes circuits over their bounds."""
        named = [check.shares for part in self.starts.values() for check in part if check.shares is not None]
        return [*(check.shares for check in self.random), *named]

    @property
    def sizes(self) -> dict[tuple[str, str], Complexity]:
        """Sizes of the constructions that apply."""
        return {pair: check.size for pair, check in self.named.items() if check.size is not None}


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    tests = jobs.WordSets(settings.length, settings.words, settings.exhaustive, settings.most)
    named = [(name, method) for name in settings.named for method in METHODS]
    tried = [jobs.NamedJob(*pair, settings.named_length, settings.named_words, lab.device) for pair in named]
    random = [jobs.RandomJob(seed, tests, lab.device) for seed in range(settings.machines)]
    sizes = [jobs.SizeJob(*pair, settings.lengths) for pair in GROWING]
    return Results(
        settings=settings,
        random=lab.map(jobs.check_random, random, label="random automata"),
        starts=every_start(settings.everywhere, tests, lab),
        named=dict(zip(named, lab.map(jobs.check_named, tried, label="named automata"))),
        growth=dict(zip(GROWING, lab.map(jobs.measure_sizes, sizes, label="depths"))),
        grid_levels={size: named_machine(f"Grid{size}").decomposition.levels for size in range(3, 10)},
    )


def every_start(
    names: tuple[str, ...], tests: jobs.WordSets, lab: Lab
) -> dict[tuple[str, str], list[jobs.StartsCheck]]:
    """Checks of the scan, and of Krohn–Rhodes where it applies, from all starts of each automaton."""
    pairs = [(name, "scan") for name in names]
    pairs += [(name, "krohn-rhodes") for name in names if named_machine(name).is_solvable]
    parts = [jobs.starts_jobs(*pair, tests, lab.device) for pair in pairs]
    found = iter(lab.map(jobs.check_starts, [job for part in parts for job in part], label="every start"))
    return {pair: [next(found) for _ in part] for pair, part in zip(pairs, parts)}


@study.claim(NONE_WRONG, at="Theorem 1", paper="0")
def scan_exact(results: Results) -> int:
    """A transformer of ⌈log₂ T⌉ layers simulates every automaton.

    Wrong states over all random machines, starts and words.
    """
    return sum(check.scan_errors for check in results.random)


@study.claim(NONE_WRONG, at="Theorem 2", paper="0")
def cascade_exact(results: Results) -> int:
    """A transformer whose depth does not depend on T simulates every solvable automaton.

    Wrong states over all random machines, starts and words.
    """
    return sum(check.cascade_errors for check in results.random)


@study.claim(NONE_WRONG, at="Theorems 1 and 2", id="every-start", paper="0")
def from_every_start(results: Results) -> int:
    """Both simulate the named automata from every start (constant depth where solvable).

    Wrong states over named automata, all starts, all short words and long random ones.
    """
    return sum(check.errors for part in results.starts.values() for check in part)


@study.claim(NONE_WRONG, at="Lemmas 15 to 21 and Theorem 3", paper="0")
def named_exact(results: Results) -> int:
    """Every construction that applies to a named automaton is exact on it.

    Wrong states over named automata, constructions, starts and words.
    """
    return sum(check.errors for check in results.named.values())


@study.claim(Exact(below=1.0), at="Theorem 2", paper="≤ 1")
def cascade_depth(results: Results) -> float:
    """The depth of the constant-depth circuit does not grow with the length, and keeps its bound 3n² log₂ n + 7n.

    Largest depth divided by the bound, plus the largest difference of depths at two lengths.
    """
    depths = [[size.depth for size in sizes] for (_, method), sizes in results.growth.items() if method in CONSTANT]
    return max(share.depth for share in results.shares) + max(max(each) - min(each) for each in depths)


@study.claim(Exact(below=1.0), at="Theorem 2", paper="≤ 1")
def cascade_width(results: Results) -> float:
    """It keeps the bound on channels and on the largest weight.

    Largest quotient with the bounds.
    """
    return max(max(share.width, share.norm) for share in results.shares)


@study.claim(NONE_WRONG, source="Eilenberg 1976; Maler 2010")
def grid_levels(results: Results) -> int:
    """A gridworld of n positions decomposes into n − 1 levels.

    Sum of differences for n = 3 … 9.
    """
    return sum(abs(levels - (size - 1)) for size, levels in results.grid_levels.items())


@study.claim(Exact(equals=2, within=0), at="Theorem 3", paper="2")
def two_layers(results: Results) -> int:
    """A gridworld needs two layers whatever its size.

    Largest depth of the gridworld circuits.
    """
    found = [size.depth for (_, method), size in results.sizes.items() if method == "gridworld"]
    if not found:
        raise NotMeasured("no gridworld among the named automata")
    return max(found)


@study.claim(Exact(between=(0.0, 1.0)), at="Definition 3")
def shortcut(results: Results) -> list[float]:
    """A shortcut takes at most one more layer for each doubling of the length.

    Layers more per doubling, from each measured length to the next, over all shortcuts (step by step: T more).
    """
    doublings = np.diff(np.log2(results.settings.lengths))
    depths = [[size.depth for size in sizes] for (_, method), sizes in results.growth.items() if method != "sequential"]
    return (np.diff(depths, axis=1) / doublings).ravel().tolist()


@study.claim(NONE_WRONG, at="Lemma 21 as printed", held=False, paper="0")
def look_back_printed(results: Results) -> float:
    """The wiring between levels may read the states at its own position.

    Share of random machines that then go wrong.
    """
    return sum(check.no_look_back > 0 for check in results.random) / len(results.random)


@study.claim(NONE_WRONG, at="Lemma 20 as printed", held=False, paper="0")
def anchor_printed(results: Results) -> float:
    """A machine that was not reset yet may read its own position.

    Share of random machines that then go wrong.
    """
    return sum(check.no_anchor > 0 for check in results.random) / len(results.random)


@study.claim(NONE_WRONG, at="Theorem 10 as printed", held=False, paper="0")
def rotation_printed(results: Results) -> float:
    """The keys of the scan are turned by −π 2^{l−1}/T.

    Mean share of wrong states.
    """
    return sum(check.printed_rotation for check in results.random) / len(results.random)


@study.table
def every_start_of_named(results: Results) -> dict[str, Rows]:
    rows = [
        {"automaton": name, "method": method, "starts": sum(check.starts for check in part),
         "errors": sum(check.errors for check in part), "all words up to": part[0].exhaustive,
         "words": results.settings.words, "length": results.settings.length}
        for (name, method), part in results.starts.items()
    ]  # fmt: skip
    return {"every start": rows}


@study.table
def constructions(results: Results) -> Rows:
    return [
        {"automaton": name, "method": method, "applies": True, "errors": results.named[name, method].errors,
         "length": results.named[name, method].length,
         "depth": results.named[name, method].length if size.length is None else size.depth,
         "channels": size.width, "heads": size.heads, "head width": size.head_width, "network width": size.mlp_width,
         "largest weight": size.norm, "parameters": size.parameters}
        for (name, method), size in results.sizes.items()
    ]  # fmt: skip


@study.table
def refusals(results: Results) -> Rows:
    return [
        {"automaton": name, "method": method, "applies": False, "why not": check.refusal}
        for (name, method), check in results.named.items()
        if check.refusal
    ]


@study.figure
def drawings(results: Results) -> dict[str, Figure]:
    return draw_constructions()


@study.figure
def depth(results: Results) -> Figure:
    figure, axes = figures.new(3, width=4.3, height=3.5, title="What a shortcut costs")
    for (name, method), sizes in results.growth.items():
        columns = zip(*((size.depth, size.widest, size.norm) for size in sizes))
        for axis, values in zip(axes, columns):
            axis.plot(results.settings.lengths, list(values), marker=".", label=f"{method} ({name})")
    for axis, title in zip(axes, ("layers", "widest layer", "largest weight")):
        axis.set(xscale="log", yscale="log", xlabel="length T", title=title)
    axes[2].legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure
