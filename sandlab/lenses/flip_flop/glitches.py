"""Attention glitches: search for a short input on which a trained model errs, and a figure of its attention."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor, nn

from sandlab.errors import integer
from sandlab.lenses.attention_patterns import attention_maps
from sandlab.lenses.attention_pictures import mark_attention
from sandlab.lenses.flip_flop.tail_errors import wrong_targets
from sandlab.registry import register
from sandlab.worlds.base import Batch, World

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Glitch", "draw_glitch", "draw_glitch_maps", "find_glitch", "shorten"]


@dataclass(frozen=True)
class Glitch:
    """An input on which a model errs.

    tokens     up to and including the position of the wrong answer
    position   of the wrong answer; answer: the predicted class; truth: the target
    tried      number of inputs that were searched
    """

    tokens: Int[Tensor, "time"]
    position: int
    answer: int
    truth: int
    tried: int


@register("lenses")
def find_glitch(
    model: nn.Module,
    worlds: Iterable[World],
    *,
    examples: int = 2048,
    rng: torch.Generator,
    chunk: int = 256,
    label: Callable[[Tensor], Batch] | None = None,
    group: int = 1,
) -> Glitch | None:
    """The first error found in the worlds, in the given order, then shortened.

    worlds    usually the same world at increasing lengths
    label     inputs (example, time) → batch; if given, the input is shortened by removing groups of `group` tokens as
              long as the model still errs (see `shorten`)

    None means that `examples` examples of each world contained no error, not that there is none.
    """
    integer("examples", examples, low=1)
    tried = 0
    for world in worlds:
        for _ in range(0, examples, chunk):
            batch = world.sample(chunk, rng=rng)
            tried += chunk
            found = _first(model, batch, tried)
            if found is not None:
                return found if label is None else shorten(model, found, label, group=group)
    return None


def shorten(model: nn.Module, glitch: Glitch, label: Callable[[Tensor], Batch], *, group: int = 1) -> Glitch:
    """Remove blocks of tokens, of decreasing size and aligned to `group` tokens, as long as the model still errs.

    `label` may reject an input (a string that is no longer in the language) by returning an empty mask.
    """
    current = glitch
    size = max(group, (len(current.tokens) // 2) // group * group)
    while size >= group:
        candidates = _without(current.tokens, size, group)
        batch = label(candidates) if len(candidates) else None
        smaller = _first(model, batch, current.tried + len(candidates)) if batch is not None else None
        if smaller is None:
            size = size // 2 // group * group
        else:
            current = smaller
            size = min(size, len(current.tokens) // 2 // group * group) or group
    return current


def draw_glitch(model: nn.Module, glitch: Glitch, letters: Sequence[str]) -> Figure:
    """Attention of every layer and head on the failing input; the row of the wrong answer is framed."""
    maps = attention_maps(model, glitch.tokens.unsqueeze(0))
    return draw_glitch_maps({name: pattern.cpu().numpy() for name, pattern in maps.items()}, glitch, letters)


def draw_glitch_maps(
    maps: Mapping[str, np.ndarray], glitch: Glitch, letters: Sequence[str], writes: Mapping[int, int] | None = None
) -> Figure:
    """The same from recorded maps, name → (head, query, key); `writes` are marked (see `mark_attention`)."""
    from sandlab.figures import heatmap, new

    heads = max(pattern.shape[-3] for pattern in maps.values())
    written = [letters[int(token)] for token in glitch.tokens]
    short = len(written) <= 40
    title = f"says {letters[glitch.answer]}, true is {letters[glitch.truth]}"
    title += f", after {' '.join(written)}" if short else f", after {len(written)} tokens"
    size = min(3.6, max(2.2, 0.14 * len(written)))
    figure, axes = new(columns=heads, rows=len(maps), width=size, height=size, title=title)
    for row, (name, pattern) in enumerate(maps.items()):
        for head in range(pattern.shape[-3]):
            axis = axes[row * heads + head]
            layer = int(name.split(".")[1]) + 1
            heatmap(axis, pattern[head], title=f"layer {layer}, head {head + 1}", low=0.0, high=1.0, bar=False)
            mark_attention(axis, pattern[head], writes=writes, wrong=[glitch.position])
            axis.title.set_fontsize(9)
            if short:
                axis.set_xticks(range(len(written)), written, fontsize=6)
                axis.set_yticks(range(len(written)), written, fontsize=6)
            axis.set(xlabel="key" if row + 1 == len(maps) else "", ylabel="query" if head == 0 else "")
    return figure


def _first(model: nn.Module, batch: Batch, tried: int) -> Glitch | None:
    if not bool(batch.mask.any()):
        return None
    wrong = wrong_targets(model, batch)
    if not bool(wrong.any()):
        return None
    # The earliest error of all rows; later tokens are not needed.
    row, time = min(wrong.nonzero().tolist(), key=lambda found: (found[1], found[0]))
    offset = batch.inputs.shape[1] - batch.mask.shape[1]
    tokens = batch.inputs[row, : offset + time + 1]
    with torch.no_grad():
        answer = int(model(tokens.unsqueeze(0))[0, -1].argmax())
    return Glitch(tokens, offset + time, answer, int(batch.targets[row, time]), tried)


def _without(tokens: Tensor, size: int, group: int) -> Tensor:
    """The tokens without one block of `size`, for every aligned block that does not reach the end."""
    starts = range(0, len(tokens) - size, group)
    cut = [torch.cat([tokens[:start], tokens[start + size :]]) for start in starts]
    return torch.stack(cut) if cut else tokens.new_empty(0, 0)
