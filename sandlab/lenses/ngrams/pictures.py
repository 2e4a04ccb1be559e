"""Pictures of stage-wise learning: attention maps above the loss curves, and an animation of attention."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from torch import Tensor, nn

from sandlab import figures
from sandlab.lenses.attention_patterns import attention_maps
from sandlab.lenses.ngrams.stages import Stages

if TYPE_CHECKING:
    from matplotlib.animation import FuncAnimation
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

__all__ = ["AttentionSnapshots", "draw_stages"]


def draw_stages(
    steps: np.ndarray,
    losses: np.ndarray,
    maps: np.ndarray,
    stages: Stages,
    levels: Mapping[str, float],
    *,
    title: str = "",
) -> Figure:
    """Attention maps of the first run at four moments, above the loss curves of all runs.

    losses   (run, evaluation); the plateaus of the first run (`stages`) are shaded
    maps     of the first run (evaluation, head, query, key)
    levels   losses of known estimators, drawn as lines
    """
    heads, shown = maps.shape[1], _shown(steps, stages)
    figure, axes = figures.new(columns=len(shown), rows=heads + 1, width=2.5, height=2.1)
    for axis, (head, index) in zip(axes, [(head, index) for head in range(heads) for index in shown]):
        name = f"head {head + 1}, step {steps[index]}"
        figures.heatmap(axis, maps[index, head], title=name, low=0.0, high=1.0, bar=False)
        axis.title.set_fontsize(8.5)
        axis.tick_params(labelsize=6)
    grid = axes[0].get_gridspec()
    assert grid is not None
    for axis in axes[heads * len(shown) :]:
        axis.remove()
    curve = figure.add_subplot(grid[heads, :])
    for run, loss in enumerate(losses):
        shade = 1.0 if run == 0 else 0.35
        curve.plot(steps, loss, color=figures.COLOURS[0], alpha=shade, linewidth=1.2, linestyle="-")
    for each in stages.found:
        curve.axvspan(each.start, each.stop, color=figures.COLOURS[3], alpha=0.18, linewidth=0)
    figures.levels(curve, levels)
    curve.set(title=title, xlabel="training step", ylabel="test loss")
    return figure


def _shown(steps: np.ndarray, stages: Stages) -> list[int]:
    """Four evaluations: the start, the middle of the first plateaus, the end."""
    count = len(steps)
    middles = [int(np.abs(steps - (each.start + each.stop) / 2).argmin()) for each in stages.found[:2]]
    chosen = {0, count - 1, *middles}
    spare = [index for index in (count // 3, 2 * count // 3) if index not in chosen]
    return sorted([*chosen, *spare[: 4 - len(chosen)]])


class AttentionSnapshots:
    """A training callback that keeps the attention maps of each evaluation; `save` writes them as an animated GIF.

    >>> snapshots = AttentionSnapshots(probe_tokens, names="layers.0.attention.pattern")
    >>> train(model, world, steps=2000, rng=rng(0), callbacks=[snapshots], every=50)
    >>> snapshots.save("attention.gif")
    """

    def __init__(self, inputs: Tensor, *, names: str = "*attention.pattern") -> None:
        self.inputs, self.names = inputs, names
        self.steps: list[int] = []
        self.frames: dict[str, list[np.ndarray]] = {}

    def __call__(self, step: int, model: nn.Module, metrics: object = None) -> None:
        self.steps.append(step)
        for name, pattern in attention_maps(model, self.inputs, names=self.names).items():
            self.frames.setdefault(name, []).append(pattern.float().cpu().numpy())

    def maps(self, name: str) -> np.ndarray:
        """(evaluation, *member, head, query, key)."""
        return np.stack(self.frames[name])

    def draw(self, *, member: int | None = None, titles: Sequence[str] = ()) -> FuncAnimation:
        """An animation of every recorded head over training."""
        from matplotlib.animation import FuncAnimation

        panels = []
        for name in self.frames:
            maps = self.maps(name)
            maps = maps[:, member or 0] if maps.ndim == 5 else maps
            panels += [(f"{name.split('.')[1]}.{head}", maps[:, head]) for head in range(maps.shape[1])]
        figure, axes = figures.new(columns=len(panels), width=2.6, height=2.8)
        for axis, (label, maps) in zip(axes, panels):
            figures.heatmap(axis, maps[0], title=f"layer.head {label}", low=0.0, high=1.0, bar=False)

        def show(index: int) -> list[AxesImage]:
            text = titles[index] if index < len(titles) else f"step {self.steps[index]}"
            figure.suptitle(text, x=0.01, ha="left")
            for axis, (_, maps) in zip(axes, panels):
                axis.images[0].set_data(maps[index])
            return [axis.images[0] for axis in axes]

        return FuncAnimation(figure, show, frames=len(self.steps), interval=120)

    def save(self, path: str | Path, *, member: int | None = None) -> Path:
        """Write the animation as a GIF."""
        return figures.save_film(self.draw(member=member), path)
