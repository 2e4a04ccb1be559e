"""A walk between walls in two layers: prefix sums, then a search for the last visit of every height (Theorem 12)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from sandlab.circuits.automata.gridworld_algorithm import grid_moves
from sandlab.circuits.builder import CircuitBuilder, Head
from sandlab.circuits.gadgets import Network, chain, interpolate, tabulate
from sandlab.circuits.targets import to_theory
from sandlab.errors import BadInput, choice, integer
from sandlab.models.automata.theory import TheoryTransformer
from sandlab.registry import register
from sandlab.worlds.automata.machine import Automaton

__all__ = ["gridworld_circuit"]

WIDEST_TABLE = 4


@register("circuits")
def gridworld_circuit(
    machine: Automaton, length: int, *, choose: str = "tree", embed: str = "table"
) -> TheoryTransformer:
    """A bounded walk on a line, or in a box of several axes, in two layers.

    Layer 1: uniform attention gives x_t = z_t/(2N), z the prefix sum of the moves; a network puts it on a circle,
    (cos πx, sin πx). Layer 2: for each s = 0 … 2S one head finds the latest position whose height is z_t + s − S, by
    β[cos(π(x_t + (s−S)/2N − x_i)) − cγ_i] with γ_i = log(2N − i), and reads its height and γ. The S + 1 heights that
    were all visited most recently are the room between the walls: its window s* minimises the oldest γ, q = S − s*.

    choose  how the second network picks the window: "tree" (a tournament of minima, about log₂ S deep, width O(S)),
            "pool" (max-pooling units: constant depth, width O(S)) or "table" (a table of 3S + 1 bits, S ≤ 4)
    embed   how the first puts heights on the circle: "table" (width 4(2N + 1)) or "sine" (two sine units)

    Moves are padded in front so that the walk starts at a wall. Axes of a box run side by side in the same two layers.
    Liu et al. 2023, Theorem 12; corrected: γ of the anchor, how unmatched heads are recognised, and the formula of q.
    """
    integer("length", length, 1)
    choice("choose", choose, ("tree", "pool", "table"))
    choice("embed", embed, ("table", "sine"))
    sizes, moves = grid_moves(machine)
    starts = np.unravel_index(machine.start, sizes)
    plain = bool((machine.labels == np.arange(machine.states)).all())
    if len(sizes) > 1 and not plain:
        raise BadInput("a box's circuit reads out states: leave out the observation, or take method 'krohn-rhodes'")
    if len(sizes) > 1 and choose == "pool":
        raise BadInput("max-pooling units are wired for one axis only: take choose='tree' or 'table' for a box")
    padding = max(size - 1 + int(start) for size, start in zip(sizes, starts))
    circuit = CircuitBuilder(machine.alphabet, length, anchors=1 + padding)
    steps = np.arange(circuit.tokens)
    shares = np.log(2 * (circuit.tokens - 1) - steps)
    anchor = circuit.channel("anchor", anchors=np.eye(1, 1 + padding)[0])
    share = circuit.channel("share", positions=shares[1 + padding :], anchors=shares[: 1 + padding])
    one = circuit.channel("one", positions=np.ones(length), anchors=1.0)
    state = circuit.channel("state")
    for axis, (size, start) in enumerate(zip(sizes, starts)):
        before = np.concatenate([np.full(size - 1, -1), np.full(int(start), 1)])
        prefix = np.concatenate([np.zeros(1 + padding - len(before)), before])
        move = circuit.channel(f"move {axis}", letters=moves[:, axis], anchors=prefix)
        labels = np.arange(size) * int(np.prod(sizes[axis + 1 :])) if len(sizes) > 1 else machine.labels
        _Axis(circuit, axis, size - 1, anchor, share, one, move).add(state, labels, choose, embed)
    note = f"gridworld: {'×'.join(map(str, sizes))}, prefix sums, then the last visit of each height; depth 2"
    return to_theory(circuit.read_number(state, machine.outputs), note)


class _Axis:
    """The channels, heads and networks of one axis."""

    def __init__(
        self, circuit: CircuitBuilder, axis: int, wall: int, anchor: int, share: int, one: int, move: int
    ) -> None:
        self.circuit, self.wall, self.total = circuit, wall, circuit.tokens - 1
        self.anchor, self.share, self.one, self.move = anchor, share, one, move
        self.height = circuit.channel(f"height {axis}")
        self.circle = [circuit.channel(f"{name} of height {axis}") for name in ("cosine", "sine")]
        self.heights = [circuit.channel(f"height {axis} found {s}") for s in range(2 * wall + 1)]
        self.shares = [circuit.channel(f"share {axis} found {s}") for s in range(2 * wall + 1)]

    def add(self, state: int, labels: np.ndarray, choose: str, embed: str) -> None:
        first, second = self.circuit.layer(0), self.circuit.layer(1)
        query, key = [(self.share, 0, 1.0)], [(self.anchor, 0, 1.0)]
        first.heads.append(Head.copying([self.move], [self.height], query=query, key=key))
        first.feed(self._circle_network(embed), [self.height], self.circle)
        second.heads += [self._search(s) for s in range(2 * self.wall + 1)]
        network = {"tree": self._by_tree, "pool": self._by_pool, "table": self._by_table}[choose](labels)
        second.feed(network, [self.height, *self.heights, *self.shares], [state])

    def _circle_network(self, embed: str) -> Network:
        if embed == "sine":
            return Network([np.full((2, 1), math.pi), np.eye(2)], [[math.pi / 2, 0.0]], ["sine"])
        grid = np.arange(-self.total, self.total + 1) / (2 * self.total)
        return interpolate(grid, np.column_stack([np.cos(math.pi * grid), np.sin(math.pi * grid)]))

    def _search(self, s: int) -> Head:
        """The head that looks for the height z_t + s − S; later positions have the smaller γ and win."""
        n = self.total
        sharpness = 32 * math.log(2) / math.pi**2 * n**3 * math.log(32 * n**2 * math.log(2 * n))
        root, turn = math.sqrt(sharpness), (s - self.wall) * math.pi / (2 * n)
        recency = math.pi**2 / (16 * math.log(2) * n**2)
        turned = np.array([[math.cos(turn), math.sin(turn)], [-math.sin(turn), math.cos(turn)]])
        return Head.copying(
            [self.height, self.share],
            [self.heights[s], self.shares[s]],
            query=[(self.circle, range(2), root * turned), (self.one, 2, -root * recency)],
            key=[([*self.circle, self.share], range(3), root)],
        )

    # ---------------------------------------------------------------- networks; inputs: height, heights found, shares

    def _matched(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Hidden units, 4 per head, whose signed sum says whether the head found its height; then the shares."""
        heads, n = 2 * self.wall + 1, self.total
        offsets = (np.arange(heads) - self.wall) / (2 * n)
        bump = interpolate([0.0], np.ones(1), gap=1 / (2 * n))
        first = np.zeros((5 * heads, 1 + 2 * heads))
        bias = np.zeros(5 * heads)
        marks = np.zeros((heads, 5 * heads))
        for s in range(heads):
            rows = slice(4 * s, 4 * s + 4)
            slope = bump.weights[0][:, 0]
            first[rows, 0], first[rows, 1 + s] = -slope, slope
            bias[rows] = bump.biases[0] - slope * offsets[s]
            marks[s, rows] = bump.weights[1][0]
            first[4 * heads + s, 1 + heads + s] = 1
        return first, bias, marks

    def _ages(self) -> Network:
        """v_s = γ of the position found, or log(2N) + 1 when the height was never visited."""
        heads, top = 2 * self.wall + 1, math.log(2 * self.total) + 1
        first, bias, marks = self._matched()
        shares = np.zeros((heads, 5 * heads))
        shares[:, 4 * heads :] = np.eye(heads)
        second = np.concatenate([shares + top * marks, -top * marks])
        offset = np.concatenate([np.full(heads, -top), np.full(heads, top)])
        last = np.concatenate([np.eye(heads), np.eye(heads)], 1)
        return Network([first, second, last], [bias, offset])

    def _pairs(self) -> np.ndarray:
        """The two ends of each window: rows v_s, v_{s+S} for s = 0 … S."""
        heads, wall = 2 * self.wall + 1, self.wall
        return np.eye(heads)[[end for s in range(wall + 1) for end in (s, s + wall)]]

    def _by_tree(self, labels: np.ndarray) -> Network:
        """Oldest end of each window by max(a, b) = b + (a − b)₊; the youngest of these by a tournament of minima."""
        count = self.wall + 1
        ends = self._pairs()
        left, right = ends[0::2], ends[1::2]
        both = np.concatenate([np.eye(count), np.eye(count)])
        lift = Network([np.concatenate([left - right, right]), both.T])
        network = chain(self._ages(), lift)
        # Carried along: the windows themselves, and the survivors of the tournament behind them.
        survivors = count
        network = chain(network, Network([both]))
        while survivors > 1:
            network = chain(network, _round(count, survivors))
            survivors = (survivors + 1) // 2
        return chain(network, self._pick(labels))

    def _by_pool(self, labels: np.ndarray) -> Network:
        count = self.wall + 1
        pairs = Network([self._pairs(), np.eye(count)], activations=[f"max:2x{count}"])
        spread = np.concatenate([-np.eye(count), np.eye(count)])
        back = np.zeros((count + 1, count + 1))
        back[:count, 1:], back[count, 0] = np.eye(count), -1
        smallest = Network([spread, back], activations=[f"max:{count}x1"])
        return chain(chain(chain(self._ages(), pairs), smallest), self._pick(labels))

    def _pick(self, labels: np.ndarray) -> Network:
        """(m_0 … m_S, min) ↦ label of S − s at the window whose m_s equals the minimum; others are 1/(2N) above."""
        count, reach = self.wall + 1, 1 / (6 * self.total)
        gap = np.concatenate([np.eye(count), -np.ones((count, 1))], 1) / reach
        chosen = labels[::-1].astype(np.float64)
        return Network(
            [np.concatenate([gap, gap]), np.concatenate([-chosen, chosen])[None]],
            [np.repeat([-1.0, -2.0], count), [chosen.sum()]],
        )

    def _by_table(self, labels: np.ndarray) -> Network:
        """Bits: each head matched?, and for s ≥ 1 is head s − 1 older than head s + S?; then a table of all cases."""
        wall, heads = self.wall, 2 * self.wall + 1
        if wall > WIDEST_TABLE:
            raise BadInput(f"the table has 2^{3 * wall + 1} cases for {wall + 1} states: take choose='tree' or 'pool'")
        first, bias, marks = self._matched()
        reach = 1 / (6 * self.total)
        older = np.zeros((2 * wall, first.shape[1]))
        for s in range(1, wall + 1):
            for row in (2 * s - 2, 2 * s - 1):
                older[row, 1 + heads + s - 1], older[row, 1 + heads + s + wall] = 1 / reach, -1 / reach
        ramps = np.tile([-1.0, -2.0], wall)
        bits = np.zeros((heads + wall, 4 * heads + 2 * wall))
        bits[:heads, : 4 * heads] = marks[:, : 4 * heads]
        for s in range(wall):
            bits[heads + s, 4 * heads + 2 * s : 4 * heads + 2 * s + 2] = 1, -1
        features = Network(
            [np.concatenate([first[: 4 * heads], older]), bits],
            [np.concatenate([bias[: 4 * heads], ramps])],
        )
        cases = np.array(list(np.ndindex(*[2] * (heads + wall))))
        values = np.array([labels[wall - _window(case, wall)] for case in cases], dtype=np.float64)
        kept = values != 0
        return chain(features, tabulate(cases[kept], values[kept]))


def _window(bits: Sequence[int] | np.ndarray, wall: int) -> int:
    """The window of S + 1 matched heads that no neighbour beats; the last one when the bits contradict each other."""
    heads = 2 * wall + 1
    matched, older = bits[:heads], bits[heads:]
    for s in range(wall + 1):
        below = s == 0 or not matched[s - 1] or older[s - 1]
        above = s == wall or not matched[s + wall + 1] or not older[s]
        if all(matched[s : s + wall + 1]) and below and above:
            return s
    return wall


def _round(carried: int, survivors: int) -> Network:
    """One round of the tournament: min(a, b) = a − (a − b)₊ for neighbours; all numbers are positive."""
    size, pairs = carried + survivors, survivors // 2
    kept, all_units = np.eye(size), np.eye(size + pairs)
    left = carried + 2 * np.arange(pairs)
    winners = all_units[left] - all_units[size:]
    alone = all_units[size - 1 : size] if survivors % 2 else all_units[:0]
    return Network(
        [np.concatenate([kept, kept[left] - kept[left + 1]]), np.concatenate([all_units[:carried], winners, alone])]
    )
