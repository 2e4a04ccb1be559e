"""The holonomy form of the Krohn–Rhodes theorem: an automaton as levels that permute or reset."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Int

from sandlab.errors import BadInput
from sandlab.worlds.automata.algebra.groups import FiniteGroup, group_name
from sandlab.worlds.automata.algebra.series import is_solvable

__all__ = ["Component", "Holonomy", "Move", "holonomy"]

MOST_SETS = 3000


@dataclass(frozen=True)
class Move:
    """What one letter does to a component: permute its tiles, or send them all to one."""

    permutation: tuple[int, ...] | None = None
    reset: int | None = None


@dataclass(frozen=True, eq=False)
class Component:
    """One class of sets of states that words carry into each other and back.

    representative   the set X̄ that stands for the class; members are the sets of the class
    tiles            the largest proper subsets of X̄ among the sets: the component's states
    level            its height above the single states; components of the highest level move first
    generators       permutations of the tiles induced by words that lead from X̄ back to X̄
    """

    representative: int
    members: tuple[int, ...]
    tiles: tuple[int, ...]
    level: int
    generators: tuple[tuple[int, ...], ...]

    @cached_property
    def group(self) -> FiniteGroup:
        """The holonomy group, as permutations of the tiles."""
        rows = list(self.generators) or [tuple(range(len(self.tiles)))]
        return FiniteGroup.generated(rows)

    @cached_property
    def solvable(self) -> bool:
        return is_solvable(self.group)

    @cached_property
    def group_name(self) -> str:
        return group_name(self.group)


@dataclass(frozen=True, eq=False)
class Holonomy:
    """The sets of states that remain possible after a word, ordered into levels (Eilenberg 1976).

    sets[i, q]       whether state q is in set i; set q < |Q| is the single state q, `everything` the set Q
    moved[i, σ]      the image of set i under letter σ
    height[i]        0 for single states; otherwise one more than the highest smaller set of two or more states
    component[i]     the component of the set, −1 for single states
    into[i], back[i] maps between the representative of i's component and i; inverse to each other there
    """

    letters: Int[np.ndarray, "letter state"]
    sets: Bool[np.ndarray, "set state"]
    moved: Int[np.ndarray, "set letter"]
    everything: int
    height: Int[np.ndarray, "set"]
    component: Int[np.ndarray, "set"]
    into: Int[np.ndarray, "set state"]
    back: Int[np.ndarray, "set state"]
    components: tuple[Component, ...]

    @property
    def levels(self) -> int:
        """Number of levels, h(Q)."""
        return int(self.height[self.everything])

    @property
    def solvable(self) -> bool:
        """Every holonomy group is solvable; equivalently, every group inside the semigroup is."""
        return all(component.solvable for component in self.components)

    @cached_property
    def _number(self) -> dict[bytes, int]:
        return {row.tobytes(): number for number, row in enumerate(self.sets)}

    def image(self, number: int, mapping: Int[np.ndarray, "state"]) -> int:
        """The image of a set under a map."""
        row = np.zeros(self.sets.shape[1], dtype=bool)
        row[mapping[self.sets[number]]] = True
        return self._number[row.tobytes()]

    def refine(self, number: int, tile: int) -> int:
        """The smaller set that tile `tile` of its component names inside set `number`: tile · m_X."""
        component = self.components[self.component[number]]
        return self.image(component.tiles[tile], self.into[number])

    def tile_containing(self, number: int, inner: int) -> int:
        """A tile of set `number`'s component that, carried into the set, contains the set `inner`."""
        row = np.zeros(self.sets.shape[1], dtype=bool)
        row[self.back[number][self.sets[inner]]] = True
        tiles = self.components[self.component[number]].tiles
        return next(index for index, tile in enumerate(tiles) if not (row & ~self.sets[tile]).any())

    def encode(self, state: int) -> Int[np.ndarray, "component"]:
        """Coordinates of a state: one tile per component; those not on its path are 0."""
        coordinates = np.zeros(len(self.components), dtype=np.int64)
        current = self.everything
        while self.height[current] > 0:
            index = self.tile_containing(current, state)
            coordinates[self.component[current]] = index
            current = self.refine(current, index)
        return coordinates

    def decode(self, coordinates: Int[np.ndarray, "component"]) -> int:
        """The state that the coordinates name: tile within tile until one state is left."""
        current = self.everything
        while self.height[current] > 0:
            current = self.refine(current, int(coordinates[self.component[current]]))
        return current

    def move(self, before: int, after: int, letter: int) -> Move:
        """What happens to the component of set `after` when letter σ leads from within `before` to within `after`.

        A permutation of the tiles, m_X σ n_Y, when the letter maps X exactly onto Y; otherwise all that is known is
        that the state is now in X·σ, and the component is reset to a tile that contains it.
        """
        moved = int(self.moved[before, letter])
        if moved != after or self.height[before] != self.height[after]:
            return Move(reset=self.tile_containing(after, moved))
        path = self.back[after][self.letters[letter][self.into[before]]]
        tiles = self.components[self.component[after]].tiles
        return Move(permutation=tuple(tiles.index(self.image(tile, path)) for tile in tiles))

    def step(self, coordinates: Int[np.ndarray, "component"], letter: int) -> Int[np.ndarray, "component"]:
        """One letter: levels move from the top; each looks only at the higher ones as they were before."""
        result = coordinates.copy()
        before = after = self.everything
        for level in range(self.levels, 0, -1):
            lower = before
            if self.height[before] == level:
                lower = self.refine(before, int(coordinates[self.component[before]]))
            if self.height[after] == level:
                current = self.component[after]
                move = self.move(before, after, letter)
                if move.permutation is not None:
                    result[current] = move.permutation[coordinates[self.component[before]]]
                else:
                    result[current] = move.reset
                after = self.refine(after, int(result[current]))
            before = lower
        return result


def holonomy(letters: Int[np.ndarray, "letter state"]) -> Holonomy:
    """Decompose the automaton whose letters are these maps of states.

    Sets are the images of Q under words, and the single states. P ≤ R when P lies in an image of R; sets that are
    ≤ each other form a component.
    """
    letters = np.asarray(letters, dtype=np.int64)
    sets, moved, everything = _images(letters)
    below = _order(sets, moved)
    height = _heights(sets.sum(1), below)
    component, into, back, components = _components(letters, sets, moved, below, height)
    return Holonomy(letters, sets, moved, everything, height, component, into, back, components)


def _images(letters: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """Single states first, then Q and its images under words."""
    states = letters.shape[1]
    rows = [np.eye(states, dtype=bool)[state] for state in range(states)]
    whole = np.ones(states, dtype=bool)
    number = {row.tobytes(): index for index, row in enumerate(rows)}
    if whole.tobytes() not in number:
        number[whole.tobytes()] = len(rows)
        rows.append(whole)
    moved, index = [], 0
    while index < len(rows):
        targets = []
        for letter in letters:
            target = np.zeros(states, dtype=bool)
            target[letter[rows[index]]] = True
            key = target.tobytes()
            if key not in number:
                number[key] = len(rows)
                rows.append(target)
            targets.append(number[key])
        moved.append(targets)
        index += 1
        if len(rows) > MOST_SETS:
            raise BadInput(f"the decomposition has more than {MOST_SETS} sets of states: take a smaller machine")
    return np.array(rows), np.array(moved), number[whole.tobytes()]


def _order(sets: np.ndarray, moved: np.ndarray) -> Bool[np.ndarray, "small large"]:
    """below[P, R]: P is contained in some image of R."""
    size = len(sets)
    reach = np.eye(size, dtype=bool)
    for letter in range(moved.shape[1]):
        reach[np.arange(size), moved[:, letter]] = True
    # Repeated squaring: paths of length 1, 2, 4, …
    for _ in range(max(1, (size - 1).bit_length())):
        reach = (reach.astype(np.float32) @ reach.astype(np.float32)) > 0
    inside = (sets.astype(np.float32) @ (~sets).astype(np.float32).T) == 0
    return (inside.astype(np.float32) @ reach.astype(np.float32).T) > 0


def _heights(sizes: np.ndarray, below: np.ndarray) -> np.ndarray:
    strictly = below & ~below.T
    height = np.zeros(len(sizes), dtype=np.int64)
    several = sizes > 1
    # A strictly smaller set has strictly fewer sets below it, so this order meets it first.
    for number in np.argsort(below.sum(0), kind="stable"):
        if several[number]:
            smaller = strictly[:, number] & several
            height[number] = 1 + (height[smaller].max() if smaller.any() else 0)
    return height


def _components(
    letters: np.ndarray, sets: np.ndarray, moved: np.ndarray, below: np.ndarray, height: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[Component, ...]]:
    size, states = sets.shape
    component = np.full(size, -1)
    into = np.tile(np.arange(states), (size, 1))
    back = into.copy()
    found: list[Component] = []
    for number in sorted(np.flatnonzero(height > 0), key=lambda n: (-height[n], n)):
        if component[number] >= 0:
            continue
        members = np.flatnonzero(below[number] & below[:, number] & (height > 0))
        component[members] = len(found)
        for member in members:
            into[member], back[member] = _there_and_back(letters, sets, moved, int(number), int(member), members)
        tiles = _tiles(sets, int(number))
        generators = _generators(letters, sets, moved, members, into, back, tiles)
        level = int(height[number])
        found.append(Component(int(number), tuple(members.tolist()), tuple(tiles), level, generators))
    return component, into, back, tuple(found)


def _tiles(sets: np.ndarray, number: int) -> list[int]:
    """Inclusion-maximal proper subsets of a set among all sets."""
    inside = ~(sets & ~sets[number]).any(1)
    inside[number] = False
    candidates = np.flatnonzero(inside)
    kept = []
    for one in candidates:
        larger = [other for other in candidates if other != one and not (sets[one] & ~sets[other]).any()]
        if not larger:
            kept.append(int(one))
    return kept


def _path(letters: np.ndarray, moved: np.ndarray, origin: int, goal: int, allowed: set[int]) -> np.ndarray:
    """The map of a shortest word that carries one set of a component onto another."""
    maps = {origin: np.arange(letters.shape[1])}
    queue = [origin]
    for current in queue:
        if current == goal:
            break
        for letter, target in enumerate(moved[current]):
            if int(target) in allowed and int(target) not in maps:
                maps[int(target)] = letters[letter][maps[current]]
                queue.append(int(target))
    return maps[goal]


def _there_and_back(
    letters: np.ndarray, sets: np.ndarray, moved: np.ndarray, origin: int, goal: int, members: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """m with origin·m = goal, and n with goal·n = origin, such that m then n is the identity on the origin."""
    allowed = set(members.tolist())
    there = _path(letters, moved, origin, goal, allowed)
    back = _path(letters, moved, goal, origin, allowed)
    points = np.flatnonzero(sets[origin])
    # The round trip permutes the origin; repeating it until it closes makes the way back an inverse.
    trip, closed = back[there], back
    while (closed[there[points]] != points).any():
        closed = trip[closed]
    return there, closed


def _generators(
    letters: np.ndarray,
    sets: np.ndarray,
    moved: np.ndarray,
    members: np.ndarray,
    into: np.ndarray,
    back: np.ndarray,
    tiles: list[int],
) -> tuple[tuple[int, ...], ...]:
    """Tile permutations of the round trips m_X σ n_Y over all letters that stay inside the component."""
    inside = set(members.tolist())
    keys = {sets[tile].tobytes(): index for index, tile in enumerate(tiles)}
    found: dict[tuple[int, ...], None] = {}
    for member in members:
        for letter, target in enumerate(moved[member]):
            if int(target) not in inside:
                continue
            trip = back[target][letters[letter][into[member]]]
            images = []
            for tile in tiles:
                row = np.zeros(sets.shape[1], dtype=bool)
                row[trip[sets[tile]]] = True
                images.append(keys[row.tobytes()])
            found[tuple(images)] = None
    found.pop(tuple(range(len(tiles))), None)
    return tuple(found)
