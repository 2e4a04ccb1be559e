"""A film of the orbit of an HMM: parameters turn, predictions of one token stay, predictions of two tokens move."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sandlab import figures
from sandlab.lenses.hmm.identifiability import predictor_difference
from sandlab.worlds.hmm.instances import named_hmm
from sandlab.worlds.hmm.models import HMM
from sandlab.worlds.hmm.twins import orbit

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = ["OrbitFilm"]

SINGLE = ("2|1", "3|1", "1|2", "1|3")


def _printed() -> HMM:
    hmm = named_hmm("hmm-thm6")
    assert isinstance(hmm, HMM)
    return hmm


@dataclass(frozen=True)
class OrbitFilm:
    """(OR, RᵀTR) for angles from 0 to 2π/3 (where R is a permutation), and how far its predictions are from the first.

    hmm      a model of three states whose whole orbit is valid: by default the printed one of eq. 2.47
    frames   how many angles
    """

    hmm: HMM = field(default_factory=_printed)
    frames: int = 37

    @property
    def angles(self) -> np.ndarray:
        return np.linspace(0, 2 * np.pi / 3, self.frames)

    def differences(self) -> np.ndarray:
        """Largest difference of one-token and of two-token predictors from the first model, by angle."""
        models = [orbit(self.hmm, float(angle)) for angle in self.angles]
        single = [max(predictor_difference(self.hmm, each, task) for task in SINGLE) for each in models]
        return np.stack([single, [predictor_difference(self.hmm, each, "2x3|1") for each in models]])

    def draw(self, axes: list[Axes], frame: int, differences: np.ndarray) -> None:
        """One moment: O and T as heat maps, the differences up to here."""
        model = orbit(self.hmm, float(self.angles[frame]))
        for axis, matrix, name in zip(axes, (model.O, model.T), ("emissions O", "transitions T")):
            axis.clear()
            axis.imshow(matrix, vmin=0, vmax=0.7, aspect="auto")
            axis.set(title=name, xlabel="hidden state", xticks=[], yticks=[])
            for (row, column), value in np.ndenumerate(matrix):
                shade = "white" if value < 0.35 else "black"
                axis.text(column, row, f"{value:.2f}", ha="center", va="center", fontsize=8, color=shade)
        last = axes[2]
        last.clear()
        for row, name in zip(np.maximum(differences, 1e-17), ("one token from another", "two tokens from one")):
            last.semilogy(self.angles[: frame + 1], row[: frame + 1], label=name)
        last.set(
            xlim=(0, self.angles[-1]), ylim=(1e-17, 1), xlabel="angle (radians)", title="difference of predictions"
        )
        last.legend(loc="center right", fontsize=8)

    def save(self, path: str | Path, *, fps: int = 8) -> Path:
        """Write the film as a GIF."""
        from matplotlib.animation import FuncAnimation

        with figures.style():
            figure, axes = figures.new(3, width=3.2, height=2.6)
            differences = self.differences()
            film = FuncAnimation(figure, lambda frame: self.draw(axes, frame, differences), frames=self.frames)
            return figures.save_film(film, path, fps=fps)

    def strip(self) -> Figure:
        """Four moments side by side, for paper."""
        with figures.style():
            figure, axes = figures.new(3, 4, width=3.2, height=2.4, title="Parameters turn, one-token predictions stay")
            differences = self.differences()
            for row, frame in enumerate(np.linspace(0, self.frames - 1, 4).round().astype(int).tolist()):
                self.draw(axes[3 * row : 3 * row + 3], frame, differences)
        return figure
