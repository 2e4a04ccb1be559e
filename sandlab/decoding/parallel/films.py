"""Films: spins under a sampler, and a translation being refined."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from sandlab import figures
from sandlab.decoding.parallel.refine import Refined
from sandlab.decoding.parallel.samplers import Trace
from sandlab.errors import require
from sandlab.learning.parallel.refinement import stutters
from sandlab.worlds.parallel.translation import PAD, TranslationWorld

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["RefinementFilm", "SpinFilm"]

RED, GREY, CHANGED = figures.COLOURS[1], "#b9bcc0", "#f4dca6"


class _Film:
    """Frames 0 … count − 1 drawn into one axis: `save` as a GIF, or some of them side by side."""

    count: int
    size: tuple[float, float] = (5.0, 3.4)

    def frame(self, axis: Axes, time: int) -> None:
        raise NotImplementedError

    def draw(self) -> Any:
        """The animation, one frame per step."""
        from matplotlib.animation import FuncAnimation

        figure, (axis,) = figures.new(width=self.size[0], height=self.size[1])

        def show(time: int) -> list[Any]:
            axis.clear()
            with figures.style():
                self.frame(axis, time)
            return []

        return FuncAnimation(figure, show, frames=self.count, interval=300)

    def save(self, path: str | Path, *, fps: int = 3) -> Path:
        """Write the film as an animated GIF."""
        return figures.save_film(self.draw(), path, fps=fps)

    def strip(self, count: int = 6) -> Figure:
        """So many frames, evenly spread, side by side."""
        count = min(count, self.count)
        columns = min(3, count)
        figure, axes = figures.new(columns=columns, rows=-(-count // columns), width=self.size[0], height=self.size[1])
        with figures.style():
            for axis, time in zip(axes, np.linspace(0, self.count - 1, count).round().astype(int)):
                self.frame(axis, int(time))
        for axis in axes[count:]:
            axis.remove()
        return figure


class SpinFilm(_Film):
    """Spins of one chain as a grid of squares, its magnetisation below; the spins just drawn are framed.

    >>> lattice = PairwiseSpins.lattice(16, coupling=0.44)
    >>> trace = Checkerboard.lattice(16).run(lattice, start, 40, rng=rng(0))
    >>> SpinFilm(trace, clique=256).save("spins.gif")

    clique   the first so many spins decide the colour of the title: all plus, all minus, or between
    """

    size = (3.2, 3.4)

    def __init__(self, trace: Trace, *, chain: int = 0, clique: int | None = None, columns: int | None = None) -> None:
        self.states, self.hidden = trace.states[:, chain].cpu().numpy(), trace.hidden[:, chain].cpu().numpy()
        self.count, sites = self.states.shape
        self.clique = clique or sites
        self.columns = columns or int(np.ceil(np.sqrt(sites)))

    def mode(self, time: int) -> str:
        """Which mode the clique is in."""
        plus = self.states[time, : self.clique].mean()
        return "all plus" if plus == 1 else "all minus" if plus == 0 else "between the modes"

    def frame(self, axis: Axes, time: int) -> None:
        sites = self.states.shape[1]
        grid = np.full(-(-sites // self.columns) * self.columns, np.nan)
        grid[:sites] = self.states[time]
        axis.imshow(grid.reshape(-1, self.columns), cmap="cividis", vmin=0, vmax=1, interpolation="nearest")
        for site in np.flatnonzero(self.hidden[time - 1]) if time and sites <= 144 else ():
            row, column = divmod(int(site), self.columns)
            axis.plot(column, row, "s", ms=9, mfc="none", mec=RED, mew=1.4)
        mean = 2 * self.states[time, : self.clique].mean() - 1
        axis.set(xticks=[], yticks=[], xlabel=f"magnetisation {mean:+.2f}")
        axis.set_title(f"step {time}: {self.mode(time)}", color=RED if "between" in self.mode(time) else "black")
        axis.grid(False)


class RefinementFilm(_Film):
    """One translation, pass by pass: changed words are shaded, repeats red, words that were put back grey.

    >>> refined = IterativeRefinement(4).translate(model, batch.inputs, rng=rng(0))
    >>> RefinementFilm(world, batch.inputs, refined, row=3).save("refinement.gif")
    """

    size = (6.4, 1.5)

    def __init__(
        self, world: TranslationWorld, source: Int[Tensor, "n source"], refined: Refined, *, row: int = 0
    ) -> None:
        require(0 <= row < len(source), "row", row, f"below {len(source)}")
        self._keep(world, source[row].cpu(), refined.history[:, row].cpu(), refined.remasked[:, row].cpu())

    @classmethod
    def of_arrays(
        cls, world: TranslationWorld, source: np.ndarray, history: np.ndarray, remasked: np.ndarray
    ) -> RefinementFilm:
        """The film of one stored run: (source,), (step, target) and (step, target)."""
        film = cls.__new__(cls)
        film._keep(world, *(torch.as_tensor(each) for each in (source, history, remasked)))
        return film

    def _keep(self, world: TranslationWorld, source: Tensor, history: Tensor, remasked: Tensor) -> None:
        self.source, self.letters = world.render(source), world.letters
        self.history, self.remasked, self.count = history, remasked, len(history)
        self.repeats = stutters(history)

    def words(self, time: int) -> list[tuple[str, str, bool]]:
        """(word, colour, changed) of each position after so many passes."""
        tokens = self.history[time]
        found = []
        for place, token in enumerate(tokens.tolist()):
            if token == PAD:
                break
            back = time > 0 and bool(self.remasked[time - 1, place])
            colour = GREY if back else RED if bool(self.repeats[time, place]) else "black"
            changed = time > 0 and token != int(self.history[time - 1, place])
            found.append((self.letters[token], colour, changed))
        return found

    def frame(self, axis: Axes, time: int) -> None:
        words = self.words(time)
        for place, (word, colour, changed) in enumerate(words):
            box = {"facecolor": CHANGED if changed else "white", "edgecolor": "none", "pad": 2.5}
            axis.text(
                (place + 0.5) / len(words), 0.45, word, ha="center", va="center", color=colour, bbox=box, fontsize=9
            )
        axis.set(xlim=(0, 1), ylim=(0, 1), xticks=[], yticks=[], xlabel=self.source)
        axis.set_title("noise" if time == 0 else f"after {time} pass{'es' if time > 1 else ''}")
        axis.grid(False)
