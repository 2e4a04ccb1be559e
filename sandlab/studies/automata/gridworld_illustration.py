"""How prefix sums tell where a walker between walls is, drawn for a few walks and checked on all short ones.

A walker on S + 1 positions steps left and right and stops at the walls; z_t are the prefix sums of its steps.

**The algorithm.** The distant past does not matter: t_uniq is the last time from which on the sums still take S + 1
different values. From there they span exactly S, so their smallest and largest value are walls; t_min and t_max are
the last times they are reached, and the later of the two, t_final, is the last visit of a wall. After it nothing is
clamped: q_T = z_T − z_{t_final} + (0 or S). It follows that q_T = z_T − min z over t ≥ t_uniq in both cases. Steps to
the left are put in front of the walk so that it begins at a wall.

**What is checked.** Every walk up to a length, with and without pauses, from every start, for 2 to 5 positions. Where
the source prints a span of S + 1, it is S. And the two-layer circuit cannot rely on unmatched heads selecting their
own position: they find the latest visit of the nearest height that was visited.

**What to look for.** Upper panels: the sums drift, and the room between the walls (shaded) drifts with them. Lower
panels: the true state; the marked times are where the sums touch the edge of the room.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from sandlab import figures
from sandlab.circuits.automata.gridworld import gridworld_circuit
from sandlab.circuits.automata.gridworld_algorithm import WalkTrace, walk_by_boundaries
from sandlab.models.hooks import record
from sandlab.random import rng
from sandlab.studies.automata._shared import SOURCE
from sandlab.studies.claims import Exact, Mean
from sandlab.studies.study import Lab, Rows, Study
from sandlab.worlds.automata.counters import Grid

DRAWN = 40  # steps of the walks in the figure
SIZES = (1, 3, 8)  # S of the rooms whose unmatched heads are counted


@dataclass(frozen=True)
class Settings:
    """All walks of up to `longest` steps left and right on 2 … `largest` positions, and of up to `idle` with pauses."""

    largest: int = 5
    longest: int = 8
    idle: int = 6


study = Study(
    "automata/gridworld-illustration",
    title="Prefix sums know where the walker is: look for the last wall",
    source=SOURCE,
    at="Figure 13, Algorithm 1",
    quick=Settings(),
    full=Settings(longest=10, idle=8),
)


@dataclass(frozen=True)
class Room:
    """One size of the room and one start."""

    size: int
    start: int
    longest: int
    idle: int


@dataclass(frozen=True)
class Heads:
    """The circuit of a room whose walls are 0 and `wall`, on random walks of one seed."""

    wall: int
    seed: int
    length: int = 60
    walks: int = 20


@dataclass(frozen=True)
class Counts:
    """Walks; wrong states of the algorithm and of its short form; walks on which a stated fact fails."""

    walks: int = 0
    wrong: int = 0
    wrong_short: int = 0
    span: int = 0
    span_printed: int = 0
    first_end: int = 0
    wall: int = 0

    @staticmethod
    def total(rows: Iterable[tuple[int, ...]]) -> Counts:
        return Counts(*map(sum, zip(*rows)))


@dataclass(frozen=True)
class Results:
    """Counts over all walks, and by S the share of unmatched heads that select their own position (one per seed)."""

    counts: Counts
    unmatched: dict[int, np.ndarray]


@study.collect
def collect(settings: Settings, lab: Lab) -> Results:
    rooms = [
        Room(size, start, settings.longest, settings.idle)
        for size in range(2, settings.largest + 1)
        for start in range(size)
    ]
    checked = lab.map(check_walks, rooms, label="walks")
    heads = [Heads(size, seed) for size in SIZES for seed in range(6)]
    shares = np.reshape(lab.map(unmatched_heads, heads, label="heads"), (len(SIZES), -1))
    return Results(Counts.total(map(astuple, checked)), dict(zip(SIZES, shares)))


def check_walks(room: Room) -> Counts:
    """Run the algorithm on every walk."""
    return Counts.total(check_walk(moves, room) for moves in walks_in(room))


def walks_in(room: Room) -> Iterator[tuple[int, ...]]:
    straight = (itertools.product((-1, 1), repeat=length) for length in range(room.longest + 1))
    pausing = (itertools.product((-1, 0, 1), repeat=length) for length in range(room.idle + 1))
    return itertools.chain.from_iterable(itertools.chain(straight, pausing))


def check_walk(moves: tuple[int, ...], room: Room) -> tuple[int, ...]:
    """Fields of `Counts` for one walk."""
    states, trace = follow(moves, room.size, room.start), walk_by_boundaries(moves, room.size, room.start)
    tail = trace.sums[trace.unique :]
    span, since = int(tail.max() - tail.min()), trace.final - trace.first + 1
    first_end = min(trace.lowest, trace.highest) != trace.unique
    wall = since >= 0 and states[since] != trace.boundary
    wrong, wrong_short = trace.state != states[-1], trace.state_by_minimum != states[-1]
    return 1, wrong, wrong_short, span != room.size - 1, span != room.size, first_end, wall


def follow(moves: tuple[int, ...] | list[int], size: int, start: int = 0) -> list[int]:
    """The true states, the start included."""
    return list(itertools.accumulate(moves, lambda state, move: min(max(state + move, 0), size - 1), initial=start))


def unmatched_heads(job: Heads) -> float:
    """Among heads of the circuit that look for a height never visited, the share that select their own position."""
    wall, length = job.wall, job.length
    model = gridworld_circuit(Grid(size=wall + 1), length)
    walks = torch.randint(2, (job.walks, length), generator=rng(job.seed, "walks", wall))
    with record(model, "layers.1.attention.pattern", "layers.1.resid_mid") as cache, torch.no_grad():
        model(walks)
    stream, pattern = cache["layers.1.resid_mid"], cache["layers.1.attention.pattern"]
    channels, total = model.config.channels, model.config.prefix - 1 + length
    here, positions = stream[..., channels.index("height 0")], torch.arange(pattern.shape[-1])
    hits: list[torch.Tensor] = []
    for head in range(2 * wall + 1):
        found = stream[..., channels.index(f"height 0 found {head}")]
        missed = (found - here - (head - wall) / (2 * total)).abs() > 1 / (8 * total)
        missed[:, : model.config.prefix] = False
        hits.append((pattern[:, head].argmax(-1) == positions)[missed])
    return float(torch.cat(hits).double().mean())


@study.claim(Exact(equals=0, within=0), at="Algorithm 1", paper="0")
def exact(results: Results) -> int:
    """The last visit of a wall, found from prefix sums, gives the state.

    Wrong states over all short walks, sizes and starts.
    """
    return results.counts.wrong


@study.claim(Exact(equals=0, within=0), at="Algorithm 1, simplified", paper="0")
def minimum(results: Results) -> int:
    """The state is z_T − min over t ≥ t_uniq of z_t, whichever wall was visited last.

    Wrong states over all short walks, sizes and starts.
    """
    return results.counts.wrong_short


@study.claim(Exact(equals=0, within=0), at="Lemma 22", paper="0")
def wall(results: Results) -> int:
    """At t_final the walker is at the wall the algorithm names.

    Walks on which it is not.
    """
    return results.counts.wall


@study.claim(Exact(equals=0, within=0), at="Lemma 22, corrected")
def span(results: Results) -> int:
    """From t_uniq on the prefix sums span exactly S, and one end of the span is at t_uniq itself.

    Walks on which they do not.
    """
    return results.counts.span + results.counts.first_end


@study.claim(Exact(equals=0, within=0), at="Lemma 22 as printed", held=False, paper="0")
def span_printed(results: Results) -> float:
    """From t_uniq on the prefix sums span S + 1.

    Share of walks on which they do not.
    """
    return results.counts.span_printed / results.counts.walks


@study.claim(Mean(equals=1.0, within=0.0), at="Theorem 12 as printed", held=False, paper="1")
def unmatched_printed(results: Results) -> np.ndarray:
    """A head that finds no match selects its own position.

    Share of unmatched heads that do, S = 8, mean over draws of the walks.
    """
    return results.unmatched[8]


@study.claim(Mean(below=-0.3), at="Theorem 12, corrected")
def unmatched(results: Results) -> np.ndarray:
    """The larger the room, the more rarely an unmatched head selects its own position.

    Share at S = 8 minus share at S = 1, mean over draws of the walks.
    """
    return results.unmatched[8] - results.unmatched[1]


@study.table
def unmatched_heads_by_size(results: Results) -> dict[str, Rows]:
    share = "share of unmatched heads at their own position"
    return {"unmatched heads": [{"S": size, share: float(each.mean())} for size, each in results.unmatched.items()]}


@study.figure
def walks(results: Results) -> Figure:
    figure, axes = figures.new(2, 2, width=5.4, height=2.6, title="Two walks on four positions (S = 3)")
    for column, seed in enumerate((125, 8)):
        moves = (2 * torch.randint(2, (DRAWN,), generator=rng(seed, "picture")) - 1).tolist()
        trace = walk_by_boundaries(moves, 4)
        draw_sums(axes[column], trace)
        draw_states(axes[2 + column], trace, follow(moves, 4))
        axes[2 + column].set_xlim(axes[column].get_xlim())
    return figure


def draw_sums(axis: Axes, trace: WalkTrace) -> None:
    times, tail = np.arange(len(trace.sums)) - trace.first + 1, trace.sums[trace.unique :]
    axis.axhspan(tail.min(), tail.max(), color="#0b3954", alpha=0.08, linewidth=0)
    axis.plot(times, trace.sums, color=figures.COLOURS[0])
    axis.axvspan(times[0], 0, color="#eeeeee", linewidth=0, zorder=0)
    moments = (trace.unique, trace.lowest, trace.highest, trace.final)
    for number, (name, marker, time) in enumerate(zip(("t_uniq", "t_min", "t_max", "t_final"), "ov^*", moments), 1):
        point, size = ([times[time]], [trace.sums[time]]), 130 if marker == "*" else 45
        axis.scatter(*point, s=size, marker=marker, label=name, zorder=2 + number, color=figures.COLOURS[number])
    axis.set(title="prefix sums z_t (grey: the moves put in front)", ylabel="z_t")
    axis.legend(fontsize=7, ncols=4, loc="upper center", bbox_to_anchor=(0.5, -0.12))


def draw_states(axis: Axes, trace: WalkTrace, states: list[int]) -> None:
    axis.step(np.arange(len(states)), states, where="post", color=figures.COLOURS[2])
    final = trace.final - trace.first + 1
    if final >= 0:
        axis.scatter([final], [states[final]], marker="*", s=130, color=figures.COLOURS[4], zorder=4)
    axis.set(title=f"true state; q_T = z_T − z_final + {trace.boundary} = {trace.state}", xlabel="time", ylabel="q_t")
    axis.set_yticks(range(4))
