"""A film of a teacher that learns a grammar: the tree of one sentence, and how uncertain each token still is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from sandlab import figures
from sandlab.learning.distillation.checkpoint_store import CheckpointStore
from sandlab.lenses.distillation.ngram_dependence import model_probs
from sandlab.worlds.base import Batch
from sandlab.worlds.distillation.derivations import derivations
from sandlab.worlds.distillation.diagrams import draw_derivation
from sandlab.worlds.distillation.grammar_tasks import MaskedGrammar

if TYPE_CHECKING:
    from matplotlib.animation import FuncAnimation
    from matplotlib.artist import Artist
    from matplotlib.collections import PathCollection
    from matplotlib.figure import Figure

__all__ = ["UncertaintyFilm"]


class UncertaintyFilm:
    """One sentence under its tree; below each token the entropy of its prediction, checkpoint after checkpoint.

    Each token is masked alone: H(p(x_i | the others)) in nats. The lower row of squares is the exact posterior's, which
    no model can stay below for long. Sentences of a grammar with fixed depth.

    >>> film = UncertaintyFilm(MaskedGrammar("cfg3b", root="13|14|15"), store, rng=rng(0))
    >>> film.save("tree.gif")
    """

    def __init__(self, world: MaskedGrammar, store: CheckpointStore, *, teacher: int = 0, rng: torch.Generator) -> None:
        self.world, self.steps = world, store.saved_steps
        self.trees = derivations(world.rules, 1, rng=rng)
        self.time = int(self.trees.lengths[0])
        masked = self._masked()
        self.entropies = np.stack(
            [self._entropy(model_probs(store.model(teacher, step))(masked).double()) for step in store.saved_steps]
        )
        self.exact = self._entropy(world.oracle(self._batch(masked)).exp())

    def _sentence(self) -> Int[Tensor, "position"]:
        first = torch.tensor([self.world.bos])
        return torch.cat([first, self.trees.tokens[0, : self.time].cpu()])

    def _masked(self) -> Int[Tensor, "token position"]:
        """The sentence once for each token, which is masked."""
        rows = self._sentence().repeat(self.time, 1)
        own = torch.arange(self.time)
        rows[own, own + 1] = self.world.mask_token
        return rows

    def _batch(self, masked: Int[Tensor, "token position"]) -> Batch:
        return Batch(masked, self._sentence().expand_as(masked), masked == self.world.mask_token)

    def _entropy(self, probs: Float[Tensor, "token position class"]) -> Float[np.ndarray, " token"]:
        """Entropy of each token's prediction in the row in which it is masked."""
        own = torch.arange(self.time)
        return torch.special.entr(probs[own, own + 1]).sum(-1).numpy()

    def title(self, frame: int) -> str:
        mean, best = self.entropies[frame].mean(), self.exact.mean()
        return f"step {self.steps[frame]}: {mean:.2f} nats a token (exact: {best:.2f})"

    def draw(self) -> FuncAnimation:
        """The animation, one frame per checkpoint."""
        from matplotlib.animation import FuncAnimation

        figure, squares = self._stage()
        axis = figure.axes[0]

        def show(frame: int) -> list[Artist]:
            squares.set_array(np.concatenate([self.entropies[frame], self.exact]))
            axis.set_title(self.title(frame), loc="left", fontsize=9)
            return [squares]

        show(0)
        return FuncAnimation(figure, show, frames=len(self.steps), interval=400)

    def _stage(self) -> tuple[Figure, PathCollection]:
        figure = draw_derivation(self.trees, most=self.time)
        axis, below = figure.axes[0], -float(self.trees.ends.shape[1])
        places = np.tile(np.arange(self.time), 2)
        rows = np.repeat([below + 0.3, below - 0.4], self.time)
        # log v is the entropy of a guess among all terminals.
        most, start = float(np.log(self.world.words)), np.zeros(len(places))
        squares = axis.scatter(places, rows, c=start, s=90, marker="s", cmap="cividis_r", vmin=0.0, vmax=most)
        for row, name in zip((below + 0.3, below - 0.4), ("model", "exact")):
            axis.text(-0.8, row, name, ha="right", va="center", fontsize=7)
        figure.colorbar(squares, ax=axis, shrink=0.5, label="entropy (nats)")
        return figure, squares

    def save(self, path: str | Path, *, fps: int = 3) -> Path:
        """Write the film as an animated GIF."""
        return figures.save_film(self.draw(), path, fps=fps)
