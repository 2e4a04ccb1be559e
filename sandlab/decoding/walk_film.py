"""A film of a decoder at work on a small tree of prefixes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sandlab import figures
from sandlab.decoding._session.session import Event
from sandlab.decoding.exact.trees import Tree
from sandlab.errors import BadInput, require

if TYPE_CHECKING:
    from matplotlib.animation import FuncAnimation
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["Moment", "WalkFilm", "moments"]

LARGEST = 400
_WORDS = {
    "": "the empty string",
    "sampled": "writes",
    "argmax": "writes the likeliest:",
    "restored": "puts back",
    "tried": "tries",
    "erased": "takes back",
    "rejected": "the verifier rejects",
}


@dataclass(frozen=True)
class Moment:
    """The string after one event, and what the event was."""

    string: tuple[int, ...]
    kind: str
    token: int = -1


def moments(events: Sequence[Event], prompt: Sequence[int] = ()) -> list[Moment]:
    """The string after each event of a run: tokens that are written lengthen it, erased ones shorten it."""
    found = [Moment(tuple(prompt), "")]
    for event in events:
        string = found[-1].string
        if event.kind == "erased":
            string = string[:-1]
        elif event.kind != "rejected":
            string = (*string, event.token)
        found.append(Moment(string, event.kind, event.token))
    return found


class WalkFilm:
    """One run of a decoder, event by event, on the tree of all prefixes.

    >>> done = VGB(returns="final", max_steps=80).generate(
    ...     TreeGenerator(tree), [[]], verifier=TableVerifier(values, 2), max_new=4, rng=rng(0), trace=True)
    >>> WalkFilm(tree, values, done.events[0]).save("walk.gif")

    A node's size is its value V, its shade how often it was visited so far; the string that is being written is drawn
    as a thick path, its last node framed. `strip` puts some moments side by side in one figure.
    """

    def __init__(
        self, tree: Tree, values: Sequence[np.ndarray], events: Sequence[Event], *, letters: Sequence[str] = ()
    ) -> None:
        nodes = sum(tree.tokens**level for level in range(tree.depth + 1))
        require(nodes <= LARGEST, "tree", f"{nodes} nodes", f"of at most {LARGEST} nodes to be drawn")
        if [len(level) for level in values] != [len(level) for level in tree.reach]:
            raise BadInput("values need one number per node of the tree, level by level")
        self.tree, self.size = tree, np.concatenate(list(values))
        self.letters = list(letters) or [str(token) for token in range(tree.tokens)]
        self.moments = moments(events)
        places = [
            ((node + 0.5) / tree.tokens**level, -float(level))
            for level in range(tree.depth + 1)
            for node in range(tree.tokens**level)
        ]
        self.places = np.array(places)

    def node(self, string: Sequence[int]) -> int:
        """Number of a prefix among all nodes; the children of node i are A·i + 1 … A·i + A."""
        place = 0
        for token in string:
            place = self.tree.tokens * place + 1 + token
        return place

    def visits(self, until: int) -> np.ndarray:
        """How many of the moments 0..until were spent at each node; a rejection is no moment of its own."""
        spent = [self.node(each.string) for each in self.moments[: until + 1] if each.kind != "rejected"]
        return np.bincount(spent, minlength=len(self.places))

    def title(self, moment: int) -> str:
        each = self.moments[moment]
        token = f" {self.letters[each.token]}" if each.kind not in ("", "rejected") else ""
        return f"{moment}: {_WORDS.get(each.kind, each.kind)}{token}"

    def draw(self) -> FuncAnimation:
        """The animation, one frame per event."""
        from matplotlib.animation import FuncAnimation

        figure, (axis,) = figures.new(width=6.0, height=3.8)

        def show(moment: int) -> list[Artist]:
            axis.clear()
            self._frame(axis, moment)
            return list(axis.collections)

        return FuncAnimation(figure, show, frames=len(self.moments), interval=300)

    def save(self, path: str | Path, *, fps: int = 3) -> Path:
        """Write the film as an animated GIF."""
        return figures.save_film(self.draw(), path, fps=fps)

    def strip(self, count: int = 6) -> Figure:
        """So many moments of the run, evenly spread, side by side."""
        count = min(count, len(self.moments))
        columns = min(3, count)
        figure, axes = figures.new(columns=columns, rows=-(-count // columns), width=3.5, height=2.5)
        chosen = np.linspace(0, len(self.moments) - 1, count).round().astype(int)
        for axis, moment in zip(axes, chosen):
            self._frame(axis, int(moment), scale=0.5)
        for axis in axes[count:]:
            axis.remove()
        return figure

    def _frame(self, axis: Axes, moment: int, scale: float = 1.0) -> None:
        with figures.style():
            self._tree(axis, moment, scale)
            self._string(axis, moment, scale)
            depth = self.tree.depth
            axis.set(xticks=[], yticks=-np.arange(depth + 1), yticklabels=range(depth + 1), ylabel="tokens written")
            axis.set(xlim=(-0.02, 1.02), ylim=(-depth - 0.45, 0.45))
            axis.set_title(self.title(moment), loc="left", fontweight="bold", fontsize=10.5)
            axis.grid(False)

    def _tree(self, axis: Axes, moment: int, scale: float) -> None:
        child = np.arange(1, len(self.places))
        ends = np.stack([self.places[(child - 1) // self.tree.tokens], self.places[child]])
        axis.plot(ends[:, :, 0], ends[:, :, 1], color="#c9c9c9", linewidth=0.8, linestyle="-", zorder=0)
        seen = self.visits(moment)
        possible = self.size > 0
        area = scale * (40 + 220 * self.size / max(self.size.max(), 1e-12))
        axis.scatter(
            *self.places[possible].T,
            s=area[possible],
            c=np.log1p(seen[possible]),
            cmap="Blues",
            vmin=0,
            vmax=np.log1p(max(6, int(seen.max()))),
            edgecolors="#555555",
            linewidths=0.6,
            zorder=2,
        )
        axis.scatter(*self.places[~possible].T, s=scale * 26, marker="x", color="#b5b5b5", linewidths=1, zorder=2)

    def _string(self, axis: Axes, moment: int, scale: float) -> None:
        each = self.moments[moment]
        path = self.places[[self.node(each.string[:cut]) for cut in range(len(each.string) + 1)]]
        colour = figures.COLOURS[1] if each.kind in ("rejected", "erased") else figures.COLOURS[0]
        axis.plot(*path.T, color=colour, linewidth=2.6 * scale**0.5, linestyle="-", zorder=1)
        frame: dict[str, Any] = {
            "s": 360 * scale,
            "facecolors": "none",
            "edgecolors": colour,
            "linewidths": 2.2,
            "zorder": 3,
        }
        axis.scatter(*path[-1], **frame)
        for (x0, y0), (x1, y1), token in zip(path, path[1:], each.string):
            middle = ((x0 + x1) / 2, (y0 + y1) / 2)
            offset = (9 if x1 > x0 else -9, 3)
            axis.annotate(self.letters[token], middle, offset, textcoords="offset points", fontsize=10, ha="center")
