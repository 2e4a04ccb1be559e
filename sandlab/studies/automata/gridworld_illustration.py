"""How prefix sums tell where a walker between walls stands, drawn for a few walks and checked on all short ones."""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from sandlab.circuits.automata.gridworld import gridworld_circuit
from sandlab.circuits.automata.gridworld_algorithm import WalkTrace, walk_by_boundaries
from sandlab.figures import COLOURS, new, style
from sandlab.models.hooks import record
from sandlab.random import rng
from sandlab.studies.claims import Below, Claim, Equals
from sandlab.studies.study import Lab, Outcome, study
from sandlab.worlds.automata.counters import Grid

SOURCE = "Liu, Ash, Goel, Krishnamurthy & Zhang 2023"


@dataclass(frozen=True)
class WalkSettings:
    """All walks of up to `longest` steps left and right on 2 … `largest` places, and of up to `idle` with pauses."""

    largest: int = 5
    longest: int = 8
    idle: int = 6
    picture: int = 40
    seeds: int = 1


@dataclass(frozen=True)
class WalkJob:
    """One size of the room and one start."""

    size: int
    start: int
    longest: int
    idle: int


@dataclass(frozen=True)
class HeadJob:
    """Heads of the exact circuit whose height was never visited, on random walks."""

    wall: int
    length: int = 60
    words: int = 20


def check_walks(config: WalkJob) -> dict[str, float]:
    """Wrong states of the algorithm and of its short form, and walks on which a stated fact fails."""
    wall = config.size - 1
    counts = {"walks": 0, "wrong": 0, "wrong_short": 0, "span": 0, "span_printed": 0, "first_end": 0, "wall": 0}
    for moves in _walks(config):
        states = [config.start]
        for move in moves:
            states.append(min(max(states[-1] + move, 0), wall))
        trace = walk_by_boundaries(moves, config.size, config.start)
        tail = trace.sums[trace.unique :]
        counts["walks"] += 1
        counts["wrong"] += trace.state != states[-1]
        counts["wrong_short"] += trace.state_by_minimum != states[-1]
        counts["span"] += int(tail.max() - tail.min()) != wall
        counts["span_printed"] += int(tail.max() - tail.min()) != wall + 1
        counts["first_end"] += min(trace.lowest, trace.highest) != trace.unique
        since = trace.final - trace.first + 1
        counts["wall"] += since >= 0 and states[since] != trace.boundary
    return {name: float(count) for name, count in counts.items()}


def _walks(config: WalkJob) -> itertools.chain[tuple[int, ...]]:
    straight = (itertools.product((-1, 1), repeat=length) for length in range(config.longest + 1))
    pausing = (itertools.product((-1, 0, 1), repeat=length) for length in range(config.idle + 1))
    return itertools.chain.from_iterable(itertools.chain(straight, pausing))


def unmatched_heads(config: HeadJob) -> dict[str, float]:
    """Among heads that look for a height never visited, the share that select their own position."""
    machine = Grid(size=config.wall + 1)
    model = gridworld_circuit(machine, config.length)
    words = torch.randint(2, (config.words, config.length), generator=rng(config.wall, "walks"))
    with record(model, "layers.1.attention.pattern", "layers.1.resid_mid") as cache, torch.no_grad():
        model(words)
    stream, pattern = cache["layers.1.resid_mid"], cache["layers.1.attention.pattern"]
    channels, total = model.config.channels, model.config.prefix - 1 + config.length
    here, own = stream[..., channels.index("height 0")], torch.arange(pattern.shape[-1])
    hits: list[torch.Tensor] = []
    for head in range(2 * config.wall + 1):
        found = stream[..., channels.index(f"height 0 found {head}")]
        missed = (found - here - (head - config.wall) / (2 * total)).abs() > 1 / (8 * total)
        missed[:, : model.config.prefix] = False
        hits.append((pattern[:, head].argmax(-1) == own)[missed])
    return {"wall": float(config.wall), "share": float(torch.cat(hits).double().mean())}


CLAIMS = (
    Claim(
        "exact",
        "The last touch of a wall, found from prefix sums, gives the state.",
        f"{SOURCE}, Algorithm 1",
        "wrong states over all short walks, sizes and starts",
        Equals(0, 0),
        exact=True,
    ),
    Claim(
        "minimum",
        "The state is z_T − min over t ≥ t_uniq of z_t, whichever wall was touched last.",
        f"{SOURCE}, Algorithm 1, simplified",
        "wrong states over all short walks, sizes and starts",
        Equals(0, 0),
        exact=True,
    ),
    Claim(
        "wall",
        "At t_final the walker stands at the wall the algorithm names.",
        f"{SOURCE}, Lemma 22",
        "walks on which it does not",
        Equals(0, 0),
        exact=True,
    ),
    Claim(
        "span",
        "From t_uniq on the prefix sums span exactly S, and one end of the span is at t_uniq itself.",
        f"{SOURCE}, Lemma 22, corrected",
        "walks on which they do not",
        Equals(0, 0),
        exact=True,
    ),
    Claim(
        "span-printed",
        "From t_uniq on the prefix sums span S + 1.",
        f"{SOURCE}, Lemma 22 as printed",
        "share of walks on which they do not",
        Equals(0, 0),
        exact=True,
        held=False,
    ),
    Claim(
        "unmatched-printed",
        "A head that finds no match selects its own position.",
        f"{SOURCE}, Theorem 12 as printed",
        "share of unmatched heads that do, S = 8",
        Equals(1.0, 0.0),
        exact=True,
        held=False,
    ),
    Claim(
        "unmatched",
        "The larger the room, the rarer an unmatched head selects its own position.",
        f"{SOURCE}, Theorem 12, corrected",
        "share at S = 8 minus share at S = 1",
        Below(-0.3),
        exact=True,
    ),
)


@study(
    "automata/gridworld-illustration",
    title="Prefix sums know where the walker is: look for the last wall",
    source=f"{SOURCE}, Figure 13, Algorithm 1",
    claims=CLAIMS,
    quick=WalkSettings(),
    full=WalkSettings(longest=10, idle=8),
)
def gridworld_illustration(config: WalkSettings, lab: Lab) -> Outcome:
    """A walker on S + 1 places steps left and right and stops at the walls; z_t are the prefix sums of its steps.

    **The algorithm.** Far back in the past nothing matters: t_uniq is the last time from which on the sums still take
    S + 1 different values. From there they span exactly S, so their smallest and largest value are walls; t_min
    and t_max are the last times they are reached, and the later of the two, t_final, is the last touch of a wall.
    After it nothing is clamped: q_T = z_T − z_{t_final} + (0 or S). It follows that q_T = z_T − min z over t ≥ t_uniq
    in both cases. Steps to the left are put in front of the walk so that it begins at a wall.

    **What is checked.** Every walk up to a length, with and without pauses, from every start, for 2 to 5 places. Where
    the source prints a span of S + 1, it is S. And the two-layer circuit cannot rely on unmatched heads selecting
    their own position: they find the latest visit of the nearest height that was visited.

    **What to look for.** Upper panels: the sums drift, and the room between the walls (shaded) drifts with them.
    Lower panels: the true state; the marked times are where the sums touch the edge of the room.
    """
    jobs = [
        WalkJob(size, start, config.longest, config.idle)
        for size in range(2, config.largest + 1)
        for start in range(size)
    ]
    checked = lab.map(check_walks, jobs, label="walks")
    heads = lab.map(unmatched_heads, [HeadJob(wall) for wall in (1, 3, 8)], label="heads")
    total = {name: sum(found[name] for found in checked) for name in checked[0]}
    share = {found["wall"]: found["share"] for found in heads}
    measurements = {
        "exact": total["wrong"],
        "minimum": total["wrong_short"],
        "wall": total["wall"],
        "span": total["span"] + total["first_end"],
        "span-printed": total["span_printed"] / total["walks"],
        "unmatched-printed": share[8.0],
        "unmatched": share[8.0] - share[1.0],
    }
    table = [{"S": wall, "share of unmatched heads at their own position": value} for wall, value in share.items()]
    return Outcome(measurements, {"walks": _draw_walks(config.picture)}, {"unmatched heads": table})


def _draw_walks(length: int) -> Any:
    with style():
        figure, axes = new(2, 2, width=5.4, height=2.6, title="Two walks on four places (S = 3)")
        for column, seed in enumerate((125, 8)):
            moves = (2 * torch.randint(2, (length,), generator=rng(seed, "picture")) - 1).tolist()
            trace = walk_by_boundaries(moves, 4)
            states = [0]
            for move in moves:
                states.append(min(max(states[-1] + move, 0), 3))
            _draw_one(axes[column], axes[2 + column], trace, states)
    return figure


def _draw_one(upper: Any, lower: Any, trace: WalkTrace, states: list[int]) -> None:
    times = np.arange(len(trace.sums)) - trace.first + 1
    low, high = trace.sums[trace.unique :].min(), trace.sums[trace.unique :].max()
    upper.axhspan(low, high, color="#0b3954", alpha=0.08, linewidth=0)
    upper.plot(times, trace.sums, color=COLOURS[0])
    upper.axvspan(times[0], 0, color="#eeeeee", linewidth=0, zorder=0)
    marks = {"t_uniq": trace.unique, "t_min": trace.lowest, "t_max": trace.highest, "t_final": trace.final}
    shapes = {"t_uniq": "o", "t_min": "v", "t_max": "^", "t_final": "*"}
    for number, (name, place) in enumerate(marks.items()):
        size = 130 if name == "t_final" else 45
        upper.scatter(
            [times[place]],
            [trace.sums[place]],
            marker=shapes[name],
            s=size,
            label=name,
            zorder=3 + number,
            color=COLOURS[1 + number],
        )
    upper.set(title="prefix sums z_t (grey: the moves put in front)", ylabel="z_t")
    upper.legend(fontsize=7, ncols=4, loc="upper center", bbox_to_anchor=(0.5, -0.12))
    lower.step(np.arange(len(states)), states, where="post", color=COLOURS[2])
    final = trace.final - trace.first + 1
    if final >= 0:
        lower.scatter([final], [states[final]], marker="*", s=130, color=COLOURS[4], zorder=4)
    lower.set(title=f"true state; q_T = z_T − z_final + {trace.boundary} = {trace.state}", xlabel="time", ylabel="q_t")
    lower.set_yticks(range(4))
    lower.set_xlim(upper.get_xlim())
