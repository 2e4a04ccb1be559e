"""Every construction of the chapter, exact and measured; what is printed wrongly, shown to fail."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from sandlab.circuits.automata.krohn_rhodes import krohn_rhodes_circuit
from sandlab.circuits.automata.scan import scan_circuit
from sandlab.circuits.computation import draw_computation
from sandlab.circuits.drawing import draw_wiring
from sandlab.figures import new, style
from sandlab.studies.automata.construction_claims import CLAIMS, SOURCE
from sandlab.studies.automata.construction_jobs import (
    DepthJob,
    NamedJob,
    RandomJob,
    StartsJob,
    check_named,
    check_random,
    check_starts,
    measure_depths,
    starts_jobs,
)
from sandlab.studies.study import Lab, Outcome, study
from sandlab.worlds.automata.catalogue import machine_names, named_machine
from sandlab.worlds.automata.drawing import draw_cayley_graph, draw_machine, draw_rubik_net
from sandlab.worlds.automata.towers import draw_tower

SERIES = {"D6": 4, "D8": 7, "Q8": 7, "A4": 7, "S4": 10}
FEW = ("C2", "C3", "C2^3", "flip-flop", "memory4", "Grid4", "Grid9", "D6", "D8", "Q8", "A4", "S4", "A5", "S5", "abab")
MORE = (*FEW, *(f"C{n}" for n in range(4, 9)), "C2^2", "Grid3x4", "Dyck2_1", "Dyck4_2")


@dataclass(frozen=True)
class ConstructionSettings:
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
    seeds: int = 1


@study(
    "automata/constructions",
    title="Every shortcut is exact, and as shallow as stated",
    source=f"{SOURCE}, Figures 4 and 10 to 14, Theorems 1 to 3, appendix",
    claims=CLAIMS,
    quick=ConstructionSettings(),
    full=ConstructionSettings(
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
def constructions(config: ConstructionSettings, lab: Lab) -> Outcome:
    """Weights that are computed, not trained: each construction is built for many automata and checked on words.

    **What is built.** *Scan* (Theorem 10 of the thesis version): every position carries a map of the n states; layer l
    composes it with the map 2^{l−1} positions before; ⌈log₂ T⌉ layers. *Atoms*: a counter modulo n in one layer
    (uniform attention and a table of sums), a memory in one layer (attention to the last write). *Groups*: products
    of counters side by side (depth 1), semidirect products (L_N + L_H + 2), and any solvable group by its composition
    series, each step inside a wreath product (+3 layers). *Permutation-reset*: the group since the last reset.
    *Krohn–Rhodes*: the holonomy decomposition, level after level, each a permutation-reset machine; the depth does
    not depend on T. *Gridworld*: two layers. *Sequential* and *recurrent*: no shortcut, T layers or T steps.

    **What is checked.** Random automata of 2 to 5 states with 2 or 3 letters, from every start: all words up to a
    length, and long random words. Named automata likewise; eight letters have so many words that fewer letters must
    do (the table says how many). Named automata with every construction that applies, from a few starts. Zero wrong
    states is the claim, in float64 with softmax attention. Sizes stand beside the stated bounds. Full: 300 random
    automata and all named ones, words of up to 8 letters and 1000 words of 256; besides, a quarter as many words that
    keep away from sinks, since uniform letters soon lead there: three minutes of an H200 (`--on processes:4`), hours of
    one core. In the recorded run 46 pairs of named automaton and construction, 530 starts in all, and the 300 random
    automata are without a wrong state. `--set most=2100000000` takes all words of eight letters for every named one.

    **As printed.** Four statements of the source fail when taken literally, and are measured to fail: the wiring of a
    cascade must look back by one position; "no reset yet" must find an anchor that counts as a reset to q_0; the keys
    of the scan must be turned the other way; and the separation of points on a circle is 1 − 8/T², not 1 − 2π²/T².

    **What to look for.** In "scan", every box is a map of the four places (where 0, 1, 2, 3 lead), and the coloured
    lines make the tree that composes them for the last letter; in "levels", the places still possible after each layer,
    and the earlier position (the last reset) from which each was read; in "cascade", which channels each layer reads
    and writes, beside the tower of levels; in "depth", straight lines for what reads letter by letter, a logarithm for
    the scan, horizontal lines for the rest.
    """
    group = max(1, config.machines // 60)
    jobs = [
        RandomJob(
            first, min(group, config.machines - first), config.length, config.words, config.exhaustive, lab.device
        )
        for first in range(0, config.machines, group)
    ]
    random = _joined(lab.map(check_random, jobs, label="random automata"))
    everywhere = lab.map(check_starts, _starts(config, lab.device), label="every start")
    named = lab.map(
        check_named,
        [NamedJob(name, config.named_length, config.named_words, lab.device) for name in config.named],
        label="named automata",
    )
    depths = lab.map(measure_depths, _depth_jobs(config), label="depths")
    rows = [row for found in named for row in found["rows"]]
    measurements = {
        **_measure_random(random),
        **_measure_starts(random, everywhere),
        **_measure_named(rows),
        **_measure_depths(depths, config),
        **_circle(),
    }
    return Outcome(
        measurements,
        {
            "machines": _draw_machines(),
            "scan": _draw_scan(),
            "levels": _draw_levels(),
            "cascade": _draw_cascade(),
            "tower": draw_tower(named_machine("abab"), title="(abab)*: what stays possible, level by level"),
            "cayley": _draw_cayley(),
            "cube": draw_rubik_net(turn="F"),
            "depth": _draw_depths(depths, config),
        },
        {
            "every start": _rows_of_starts(everywhere),
            "constructions": [row for row in rows if row["applies"]],
            "refusals": [row for row in rows if not row["applies"]],
        },
    )


def _joined(parts: list[dict[str, Any]]) -> dict[str, np.ndarray]:
    return {name: np.concatenate([np.asarray(part[name], dtype=float) for part in parts]) for name in parts[0]}


def _measure_random(found: dict[str, np.ndarray]) -> dict[str, float]:
    return {
        "scan-exact": found["scan_errors"].sum(),
        "cascade-exact": found["cascade_errors"].sum(),
        "scan-depth": found["scan_depth_off"].max(),
        "scan-norm": found["scan_norm_off"].max(),
        "look-back-printed": (found["no_look_back"] > 0).mean(),
        "anchor-printed": (found["no_anchor"] > 0).mean(),
        "rotation-printed": found["printed_rotation"].mean(),
    }


def _starts(config: ConstructionSettings, device: str) -> list[StartsJob]:
    shared = {"length": config.length, "words": config.words, "exhaustive": config.exhaustive, "most": config.most}
    pairs = [(name, "scan") for name in config.everywhere]
    pairs += [(name, "krohn-rhodes") for name in config.everywhere if named_machine(name).is_solvable]
    return [job for name, method in pairs for job in starts_jobs(name, method, {**shared, "device": device})]


def _measure_starts(random: dict[str, np.ndarray], found: list[dict[str, Any]]) -> dict[str, float]:
    def largest(name: str) -> float:
        return max(float(random[name].max()), *(part.get(name, 0.0) for part in found))

    return {
        "every-start": float(sum(part["errors"] for part in found)),
        "cascade-depth": largest("depth_share"),
        "cascade-width": max(largest("width_share"), largest("norm_share")),
    }


def _rows_of_starts(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row per automaton and construction: its jobs' starts and errors added up."""
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for part in found:
        kept = {name: value for name, value in part.items() if not name.endswith("_share")}
        row = rows.setdefault((part["automaton"], part["method"]), {**kept, "starts": 0, "errors": 0})
        row["starts"] += part["starts"]
        row["errors"] += part["errors"]
    return list(rows.values())


def _measure_named(rows: list[dict[str, Any]]) -> dict[str, float]:
    exact = [row for row in rows if row["applies"]]
    series = {row["automaton"]: row["depth"] for row in exact if row["method"] == "solvable-group"}
    levels = {n: named_machine(f"Grid{n}").decomposition.levels for n in range(3, 10)}
    return {
        "named-exact": float(sum(row["errors"] for row in exact)),
        "series-depths": float(sum(abs(series[name] - depth) for name, depth in SERIES.items())),
        "grid-levels": float(sum(abs(level - (n - 1)) for n, level in levels.items())),
        "two-layers": float(max(row["depth"] for row in exact if row["method"] == "gridworld")),
    }


def _depth_jobs(config: ConstructionSettings) -> list[DepthJob]:
    pairs = [("D6", "sequential"), ("S5", "scan"), ("S4", "solvable-group"), ("abab", "krohn-rhodes")]
    pairs += [("Grid9", "krohn-rhodes"), ("Grid9", "gridworld"), ("C4", "modular-counter"), ("flip-flop", "memory")]
    return [DepthJob(name, method, config.lengths) for name, method in pairs]


def _measure_depths(depths: list[dict[str, Any]], config: ConstructionSettings) -> dict[str, float]:
    shortcuts = [found for found in depths if found["method"] != "sequential"]
    return {"shortcut": max(float(found["depth"][-1]) for found in shortcuts) / config.lengths[-1]}


def _circle() -> dict[str, float]:
    excess, slack = [], []
    for count in range(3, 201):
        largest = math.cos(2 * math.pi / count)
        excess.append(largest - (1 - 2 * math.pi**2 / count**2))
        slack.append(1 - 8 / count**2 - largest)
    return {"circle-printed": max(excess), "circle": min(slack)}


def _draw_machines() -> Any:
    with style():
        figure, axes = new(2, 2, width=4.4, height=2.9)
        named = {"C2": "a counter modulo 2", "flip-flop": "a memory", "Grid4": "a gridworld", "Grid3x4": "a box"}
        for axis, (name, title) in zip(axes, named.items()):
            draw_machine(named_machine(name), axis, title)
    return figure


def _draw_scan() -> Any:
    machine = named_machine("Grid4")
    title = "Maps of four places, composed over windows that double"
    return draw_computation(scan_circuit(machine, 8), machine, machine.read("RRLRRRLR"), title=title)


def _draw_levels() -> Any:
    machine = named_machine("Grid4")
    title = "Krohn–Rhodes: places still possible, level by level"
    return draw_computation(krohn_rhodes_circuit(machine, 10), machine, machine.read("RRLRRRLRLL"), title=title)


def _draw_cascade() -> Any:
    return draw_wiring(krohn_rhodes_circuit(named_machine("abab"), 16), title="The cascade of (abab)* as wired")


def _draw_cayley() -> Any:
    with style():
        figure, axes = new(2, width=5.0, height=4.2)
        for axis, name, words in zip(axes, ("D8", "Q8"), ("D8 = C4 ⋊ C2 splits", "Q8 does not")):
            machine = named_machine(name)
            draw_cayley_graph(machine.semigroup(), axis, words, machine.letters)
    return figure


def _draw_depths(depths: list[dict[str, Any]], config: ConstructionSettings) -> Any:
    with style():
        figure, axes = new(3, width=4.3, height=3.5, title="What a shortcut costs")
        for found in depths:
            name = f"{found['method']} ({found['name']})"
            for axis, quantity in zip(axes, ("depth", "widest", "norm")):
                axis.plot(config.lengths, found[quantity], marker=".", label=name)
        for axis, title in zip(axes, ("layers", "widest layer", "largest weight")):
            axis.set(xscale="log", yscale="log", xlabel="length T", title=title)
        axes[2].legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    return figure
